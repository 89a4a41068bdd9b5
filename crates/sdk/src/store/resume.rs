//! Writes a session of a store to files from which the CLI resumes it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use outrigger_protocol::RawJson;
use outrigger_sessions::SessionId;
use outrigger_sessions::store::{SessionKey, Transcripts};

use super::resume_dir::Filled;
use super::seed::{self, UserConfig};
use crate::env::{self, Surroundings};
use crate::error::{Error, Result};
use crate::location::{PROJECT_NAME, config_dir, project_key};
use crate::options::{Isolation, Launch, Options};
use crate::store_config::{Keeping, call, failed};

/// The entries of a session in a store.
#[derive(Debug)]
pub(crate) struct Restored {
    project: String,
    id: SessionId,
    transcripts: Arc<Transcripts>,
}

/// A session in a store that will be resumed.
pub(crate) struct StoredSession {
    keeping: Keeping,
    key: SessionKey,
    /// The entries that were loaded to find it.
    main: Option<Vec<RawJson>>,
}

impl StoredSession {
    /// The session with this key.
    pub(super) fn of(keeping: &Keeping, key: &SessionKey) -> Self {
        let (keeping, key) = (keeping.clone(), key.clone());
        Self {
            keeping,
            key,
            main: None,
        }
    }

    pub(super) fn keeping(&self) -> &Keeping {
        &self.keeping
    }

    pub(super) fn key(&self) -> &SessionKey {
        &self.key
    }
}

/// Finds the session that the options resume, and sets its id in them. `None` if there is no store, or nothing to resume.
pub(crate) async fn find(
    options: &mut Options,
    surroundings: &Surroundings,
) -> Result<Option<StoredSession>> {
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
    let project = project_key(options, surroundings, false)?;
    if let Some(id) = resume {
        let key = SessionKey::new(project, id);
        let main = None;
        return Ok(Some(StoredSession { keeping, key, main }));
    }
    let found = newest(&keeping, project).await?;
    // The store has decided, not the disk.
    options.continue_conversation = false;
    options.fork_session &= found.is_some();
    let Some((key, main)) = found else { return Ok(None) };
    options.resume = Some(key.session_id.clone());
    // Before it was ours, somebody may have gone on with it.
    let main = Some(main).filter(|_| options.hosting.lease.is_none());
    Ok(Some(StoredSession { keeping, key, main }))
}

/// Loads the session. `None` if the store lacks it.
pub(crate) async fn load(found: StoredSession) -> Result<Option<Restored>> {
    let StoredSession { keeping, key, main } = found;
    let main = match main {
        Some(main) => main,
        None => match load_main(&keeping, key.clone()).await? {
            Some((_, main)) => main,
            None => return Ok(None),
        },
    };
    let Some(id) = uuid(&key.session_id) else {
        return Ok(None);
    };
    let mut transcripts = Transcripts::new(main);
    transcripts.parts = load_parts(&keeping, &key).await?;
    Ok(Some(Restored {
        project: key.project_key,
        id,
        transcripts: Arc::new(transcripts),
    }))
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

/// The session with the last append, without subagents that are listed as sessions.
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
        let loaded = load_one(keeping, key.with_subpath(&subpath)).await?;
        parts.extend(loaded.map(|entries| (subpath, entries)));
    }
    Ok(parts)
}

fn uuid(text: &str) -> Option<outrigger_sessions::SessionId> {
    outrigger_sessions::SessionId::new(text).ok()
}

impl Restored {
    pub(super) fn transcripts(&self) -> &Arc<Transcripts> {
        &self.transcripts
    }

    /// Writes the session into a private directory for the CLI, which is removed with the launch's files.
    pub(crate) fn put(self, options: &Options, launch: &mut Launch) -> Result<()> {
        let put = self.try_put(options, launch);
        put.map_err(|error| {
            Error::invalid_because("place for a session from the store: it can't be written", error)
        })
    }

    fn try_put(self, options: &Options, launch: &mut Launch) -> io::Result<()> {
        let place = Filled::make(options.user)?;
        if let Some(config) = config_dir(&launch.env).filter(|_| !brings_a_home(options)) {
            let named = env::get(&launch.env, "CLAUDE_CONFIG_DIR").is_some();
            let home = env::get(&launch.env, "HOME").map(PathBuf::from);
            let claude_json = home
                .filter(|_| !named)
                .unwrap_or_else(|| config.clone())
                .join(".claude.json");
            let source = UserConfig {
                config,
                claude_json,
                login: options.auth.may_be_login(),
            };
            seed::copy(&source, options.user, place.config())?;
            if !named {
                // It was not heeded before, and must not be now.
                env::remove(&mut launch.env, PROJECT_NAME);
            }
        }
        let project = place.config().join("projects").join(&self.project);
        let written = Arc::unwrap_or_clone(self.transcripts).write(&project, &self.id);
        written.map_err(io::Error::other)?;
        place.become_config_of(launch)
    }
}

/// Whether the session has a home that is made for it and goes away with it.
fn brings_a_home(options: &Options) -> bool {
    options.isolation == Isolation::Hermetic && options.hermetic_home.is_none()
}

/// Has a session that brings a home of its own keep its config directory where it outlasts an end that the store did not keep up with.
pub(crate) fn house(options: &Options, launch: &mut Launch) -> Result<()> {
    if !brings_a_home(options) || !options.has_session_store() {
        return Ok(());
    }
    let made = Filled::make(options.user).and_then(|place| {
        if launch.guard.parking().is_some() {
            // A spare waits below its config directory.
            let parking = place.config().join("spares").join("spare");
            std::fs::create_dir_all(&parking)?;
            env::put(&mut launch.env, "PWD".into(), parking.clone().into());
            launch.cwd = parking;
        }
        place.become_config_of(launch)
    });
    made.map_err(|error| Error::invalid_because("place for a hermetic session with a store", error))
}
