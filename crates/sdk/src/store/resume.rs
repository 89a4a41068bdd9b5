//! From a store to the files that the CLI goes on with.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_protocol::RawJson;
use outrigger_sessions::place::{project_dir_name, real_path};
use outrigger_sessions::store::{SessionKey, split_metadata};
use tempfile::TempDir;

use super::Keeping;
use super::call::{Failure, call};
use super::seed::{self, Source};
use crate::env::{self, Surroundings, Variables};
use crate::error::{Error, Kind, Result};
use crate::options::{Isolation, Launch, Options, private_directory};

/// Names the CLI's directory for all projects; heeded only where `CLAUDE_CONFIG_DIR` is set.
const PROJECT_NAME: &str = "CLAUDE_CODE_PROJECT_DIR_NAME";

/// A session as a store has it.
#[derive(Debug)]
pub(crate) struct Restored {
    key: SessionKey,
    main: Vec<RawJson>,
    /// The parts by their subpaths, which are the names of files.
    parts: Vec<(String, Vec<RawJson>)>,
}

/// Loads what the options ask to go on with, and names it in them. `None` where there is nothing to write: no store, nothing to
/// go on with, or a session that the store doesn't have.
pub(crate) async fn load(options: &mut Options, surroundings: &Surroundings) -> Result<Option<Restored>> {
    let Some(keeping) = options.hosting.store.keeping() else {
        return Ok(None);
    };
    // Of titles, and of ids that would lead elsewhere as names of files, the CLI may know more.
    let resume = options.resume.clone();
    if resume.as_deref().is_some_and(|id| uuid(id).is_none())
        || (resume.is_none() && !options.continue_conversation)
    {
        return Ok(None);
    }
    let project = project_key(options, surroundings)?;
    let found = match resume {
        Some(id) => load_main(&keeping, SessionKey::new(project, id)).await?,
        None => newest(&keeping, project).await?,
    };
    if options.continue_conversation {
        // The store has decided, not the disk.
        options.continue_conversation = false;
        options.fork_session &= found.is_some();
    }
    let Some((key, main)) = found else { return Ok(None) };
    options.resume = Some(key.session_id.clone());
    let parts = load_parts(&keeping, &key).await?;
    Ok(Some(Restored { key, main, parts }))
}

async fn load_main(keeping: &Keeping, key: SessionKey) -> Result<Option<(SessionKey, Vec<RawJson>)>> {
    let loaded = load_one(keeping, key.clone()).await?;
    Ok(loaded
        .filter(|entries| !entries.is_empty())
        .map(|entries| (key, entries)))
}

async fn load_one(keeping: &Keeping, key: SessionKey) -> Result<Option<Vec<RawJson>>> {
    let (store, what) = (Arc::clone(&keeping.store), format!("load of {key}"));
    let loaded = call(keeping.load_timeout, async move { store.load(&key).await }).await;
    loaded.map_err(|failure| failed(what, failure))
}

/// The session that was appended to last; subagents that are listed as sessions are passed over.
async fn newest(keeping: &Keeping, project: String) -> Result<Option<(SessionKey, Vec<RawJson>)>> {
    let (store, of) = (Arc::clone(&keeping.store), project.clone());
    let listed = call(
        keeping.load_timeout,
        async move { store.list_sessions(&of).await },
    )
    .await;
    let mut listed =
        listed.map_err(|failure| failed(format!("list of the sessions of {project}"), failure))?;
    listed.retain(|session| uuid(&session.session_id).is_some());
    listed.sort_by(|a, b| (b.mtime, &b.session_id).cmp(&(a.mtime, &a.session_id)));
    for session in listed {
        let loaded = load_main(keeping, SessionKey::new(project.clone(), session.session_id)).await?;
        let is_aside = |entries: &[RawJson]| {
            #[derive(serde::Deserialize)]
            struct First {
                #[serde(rename = "isSidechain")]
                aside: Option<bool>,
            }
            let first = entries.first().and_then(|entry| entry.decode::<First>().ok());
            first.and_then(|first| first.aside) == Some(true)
        };
        if let Some((key, entries)) = loaded.filter(|(_, entries)| !is_aside(entries)) {
            return Ok(Some((key, entries)));
        }
    }
    Ok(None)
}

async fn load_parts(keeping: &Keeping, key: &SessionKey) -> Result<Vec<(String, Vec<RawJson>)>> {
    if !keeping.store.capabilities().list_subkeys {
        return Ok(Vec::new());
    }
    let (store, of) = (Arc::clone(&keeping.store), key.clone());
    let listed = call(keeping.load_timeout, async move { store.list_subkeys(&of).await }).await;
    let listed = listed.map_err(|failure| failed(format!("list of the parts of {key}"), failure))?;
    let mut parts = Vec::new();
    for subpath in listed {
        if !is_safe(&subpath) {
            tracing::warn!(
                subpath,
                "a part in the session store has a name that is no file below its session; left out"
            );
            continue;
        }
        let loaded = load_one(keeping, key.with_subpath(&subpath)).await?;
        parts.extend(loaded.map(|entries| (subpath, entries)));
    }
    Ok(parts)
}

fn failed(what: String, failure: Failure) -> Error {
    match failure {
        Failure::Store(source) => Error::new(Kind::Store { what, source }),
        Failure::Late(after) => Error::timeout(format!("the session store's {what}"), after),
        Failure::Broken(how) => Error::invalid_because(format!("session store: the {what} broke down"), how),
    }
}

fn uuid(text: &str) -> Option<outrigger_sessions::SessionId> {
    outrigger_sessions::SessionId::new(text).ok()
}

/// Whether this names a file below its session on any system: a store is written by many, and what they say becomes a path.
fn is_safe(subpath: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..");
    subpath.split(['/', '\\']).all(is_name)
        && !subpath.contains(['\0', ':'])
        && !subpath.chars().any(char::is_control)
}

/// The environment that the CLI is going to have, as far as the user's choice makes it.
fn variable(options: &Options, surroundings: &Surroundings, name: &str) -> Option<std::ffi::OsString> {
    let own = env::get(options.environment.own(), name).map(Into::into);
    let inherited = || {
        let inherited = options.environment.inherited(&surroundings.env);
        env::get(&inherited, name).map(Into::into)
    };
    own.or_else(inherited)
        .filter(|value: &std::ffi::OsString| !value.is_empty())
}

/// What the CLI calls the project of the working directory.
fn project_key(options: &Options, surroundings: &Surroundings) -> Result<String> {
    let cwd = options.working_directory(surroundings);
    let cwd = cwd.map_err(|error| Error::new(Kind::Options(error)))?;
    let is_hermetic = options.isolation == Isolation::Hermetic;
    let named = variable(options, surroundings, PROJECT_NAME)
        .filter(|_| is_hermetic || variable(options, surroundings, "CLAUDE_CONFIG_DIR").is_some())
        .and_then(|name| name.into_string().ok());
    Ok(named.unwrap_or_else(|| project_dir_name(&real_path(&cwd))))
}

impl Restored {
    /// Writes it where the CLI of this launch finds it: into the home of a hermetic session that goes away, else into a
    /// directory of its own, which goes away with the launch's guard.
    pub(crate) fn put(&self, options: &Options, launch: &mut Launch) -> Result<()> {
        let put = self.try_put(options, launch);
        put.map_err(|error| {
            Error::invalid_because("place for a session from the store: it can't be written", error)
        })
    }

    fn try_put(&self, options: &Options, launch: &mut Launch) -> io::Result<()> {
        let config = config_dir(&launch.env);
        if options.isolation == Isolation::Hermetic && options.hermetic_home.is_none() {
            let config = config.ok_or_else(|| io::Error::other("there is no config directory"))?;
            return self.write(&config, options);
        }
        let place = private_directory("claude-resume-")?;
        options.hand_over(place.path())?;
        if let Some(config) = config {
            let named = env::get(&launch.env, "CLAUDE_CONFIG_DIR").is_some();
            let home = env::get(&launch.env, "HOME").map(PathBuf::from);
            let claude_json = home
                .filter(|_| !named)
                .unwrap_or_else(|| config.clone())
                .join(".claude.json");
            let source = Source {
                config,
                claude_json,
                login: options.auth.lives_in_home() || options.auth == crate::options::Auth::Inherit,
            };
            seed::copy(&source, place.path())?;
            if !named {
                // It was not heeded before, and must not be now.
                env::remove(&mut launch.env, PROJECT_NAME);
            }
        }
        self.write(place.path(), options)?;
        for copied in fs::read_dir(place.path())? {
            options.hand_over(&copied?.path())?;
        }
        env::put(&mut launch.env, "CLAUDE_CONFIG_DIR".into(), place.path().into());
        launch.guard.keep(Place(Some(place)));
        Ok(())
    }

    fn write(&self, config: &Path, options: &Options) -> io::Result<()> {
        let project = config.join("projects").join(&self.key.project_key);
        make(&project, config, options)?;
        let main = project.join(format!("{}.jsonl", self.key.session_id));
        write_lines(&main, &self.main, options)?;
        let beside = project.join(&self.key.session_id);
        for (subpath, entries) in &self.parts {
            let file = beside.join(format!("{subpath}.jsonl"));
            if let Some(directory) = file.parent() {
                make(directory, config, options)?;
            }
            let (lines, metadata) = split_metadata(entries.clone());
            if !lines.is_empty() {
                write_lines(&file, &lines, options)?;
            }
            if let Some(metadata) = metadata {
                let sidecar = beside.join(format!("{subpath}.meta.json"));
                seed::write_private(&sidecar, metadata.as_bytes())?;
                options.hand_over(&sidecar)?;
            }
        }
        Ok(())
    }
}

/// Makes the directories from `base` on that are missing, for this user alone.
fn make(directory: &Path, base: &Path, options: &Options) -> io::Result<()> {
    if directory == base || directory.is_dir() {
        return Ok(());
    }
    if let Some(above) = directory.parent() {
        make(above, base, options)?;
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(directory)?;
    options.hand_over(directory)
}

fn write_lines(file: &Path, entries: &[RawJson], options: &Options) -> io::Result<()> {
    let mut text = String::with_capacity(entries.iter().map(|entry| entry.get().len() + 1).sum());
    for entry in entries {
        // Line ends can only stand between the parts of a value, where a blank means the same.
        if entry.get().contains(['\n', '\r']) {
            text.push_str(&entry.get().replace(['\n', '\r'], " "));
        } else {
            text.push_str(entry.get());
        }
        text.push('\n');
    }
    seed::write_private(file, text.as_bytes())?;
    options.hand_over(file)
}

/// The config directory of a CLI with this environment.
pub(crate) fn config_dir(env: &Variables) -> Option<PathBuf> {
    let set = |name: &str| env::get(env, name).filter(|value| !value.is_empty());
    let home = || set("HOME").or_else(|| set("USERPROFILE").filter(|_| cfg!(windows)));
    match set("CLAUDE_CONFIG_DIR") {
        Some(config) => Some(config.into()),
        None => home().map(|home| Path::new(home).join(".claude")),
    }
}

/// A temporary directory that is removed even if somebody, such as a scanner, still has one of its files open.
#[derive(Debug)]
pub(crate) struct Place(Option<TempDir>);

impl Drop for Place {
    fn drop(&mut self) {
        let Some(place) = self.0.take() else { return };
        let path = place.keep();
        if fs::remove_dir_all(&path).is_ok() || !path.exists() {
            return;
        }
        // Elsewhere, since it waits.
        let again = move || {
            for _ in 0..5 {
                std::thread::sleep(std::time::Duration::from_millis(100));
                if fs::remove_dir_all(&path).is_ok() || !path.exists() {
                    return;
                }
            }
            tracing::error!(path = %path.display(), "the temporary directory of a session can't be removed");
        };
        // Without threads it stays; the system removes what is temporary.
        let _ = std::thread::Builder::new()
            .name("outrigger-remove".to_owned())
            .spawn(again);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_subpath_leaves_its_session() {
        for safe in [
            "subagents/agent-1",
            "a",
            "subagents/workflows/run 1/agent-é",
            "..a/b..",
        ] {
            assert!(is_safe(safe), "{safe}");
        }
        for unsafe_one in [
            "",
            "/etc/x",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            "C:x",
            "C:\\x",
            "\\\\host\\x",
            "a\\..\\b",
            "./a",
            "a\0",
            "a\nb",
        ] {
            assert!(!is_safe(unsafe_one), "{unsafe_one}");
        }
    }
}
