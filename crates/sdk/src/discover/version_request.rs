//! The version of a CLI, from `--version`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::io::AsyncReadExt;
use tokio::sync::OnceCell;

use super::binary::{Binary, Format, inspect, is_module};
use super::doctor::VersionCheck;
use crate::env::Surroundings;
use crate::private_dir::private_directory;

/// How long `--version` may take beside a start.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many program files are remembered; with more, all are forgotten.
const REMEMBERED: usize = 64;

/// The state of a program file when it ran; a replaced file differs.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ProgramFile {
    path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
}

/// `None` for what does not say the version of a CLI.
type KnownVersion = Arc<OnceCell<Option<String>>>;

/// What the CLIs that were started by this process answered.
static KNOWN: Mutex<BTreeMap<ProgramFile, KnownVersion>> = Mutex::new(BTreeMap::new());

/// What came of asking a CLI for its version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum VersionAnswer {
    Version(String),
    /// It was asked and did not say it: it took too long, could not be started, or said something else.
    Silent,
    /// It is not asked.
    Unasked,
}

/// What starts a CLI: the program, and what comes before the CLI's own arguments.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    pub(crate) program: PathBuf,
    pub(crate) before: Vec<OsString>,
}

impl Command {
    /// The version of the CLI that this starts. Each program file is asked until it has answered in this process, where it can neither see
    /// nor touch anything of the user's.
    pub(crate) async fn version(&self, surroundings: &Surroundings) -> VersionAnswer {
        let Some(file) = self.file(surroundings).await else {
            return VersionAnswer::Unasked;
        };
        let answer = Arc::clone(known().entry(file).or_default());
        let asked = answer.get_or_init(async || {
            let check = ask(self, surroundings, PATIENCE).await;
            if let VersionCheck::Version(version) = check {
                return Some(version);
            }
            tracing::debug!(?check, program = %self.program.display(), "the CLI does not say its version");
            if !matches!(check, VersionCheck::Odd(_)) {
                // Next time it may. Those who wait for this answer get it all the same.
                known().retain(|_, kept| !Arc::ptr_eq(kept, &answer));
            }
            None
        });
        match asked.await {
            Some(version) => VersionAnswer::Version(version.clone()),
            None => VersionAnswer::Silent,
        }
    }

    /// Remembers a version that the CLI reported in another way.
    pub(crate) async fn note(&self, version: &str, surroundings: &Surroundings) {
        if let Some(file) = self.file(surroundings).await {
            let told = OnceCell::new_with(Some(Some(version.to_owned())));
            known().insert(file, Arc::new(told));
        }
    }

    /// The file that has a version; `None` for what is not asked. That is a wrapper: what it does besides is its own affair, and it may
    /// leave something behind.
    async fn file(&self, surroundings: &Surroundings) -> Option<ProgramFile> {
        // A script is what has a version, not what runs it.
        let path = self
            .before
            .last()
            .map_or(self.program.as_path(), Path::new)
            .to_owned();
        let (is_run, surroundings) = (!self.before.is_empty(), surroundings.clone());
        let file = tokio::task::spawn_blocking(move || {
            if !is_run && is_wrapper(&path, &surroundings) {
                return None;
            }
            let meta = std::fs::metadata(&path).ok()?;
            let (length, modified) = (meta.len(), meta.modified().ok());
            Some(ProgramFile {
                path,
                length,
                modified,
            })
        });
        file.await.ok()?
    }
}

/// What is remembered.
fn known() -> MutexGuard<'static, BTreeMap<ProgramFile, KnownVersion>> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() > REMEMBERED {
        known.clear();
    }
    known
}

/// Whether this is a script for a shell rather than Claude Code itself, a program or a script for a JavaScript runtime.
fn is_wrapper(path: &Path, surroundings: &Surroundings) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_program = |binary: Binary| binary.format != Format::Script;
    !is_module(&real) && !inspect(&real, surroundings).is_ok_and(is_program)
}

/// Runs a program with `--version`, with its own home and almost no environment.
pub(super) async fn ask(cli: &Command, surroundings: &Surroundings, deadline: Duration) -> VersionCheck {
    let home = match private_directory("outrigger-version-") {
        Ok(home) => home,
        Err(error) => return VersionCheck::Failed(format!("no temporary home: {error}")),
    };
    let mut command = tokio::process::Command::new(&cli.program);
    command
        .args(&cli.before)
        .arg("--version")
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("USERPROFILE", home.path())
        .env("CLAUDE_CONFIG_DIR", home.path())
        .env("CLAUDE_CODE_TMPDIR", home.path())
        .env("DISABLE_AUTOUPDATER", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for name in ["PATH", "SYSTEMROOT", "WINDIR", "NIX_LD", "NIX_LD_LIBRARY_PATH"] {
        if let Some(value) = surroundings.var(name) {
            command.env(name, value);
        }
    }
    let run = async {
        let mut child = command.spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr) = tokio::join!(head(stdout), head(stderr));
        Ok::<_, std::io::Error>((child.wait().await?, stdout, stderr))
    };
    match tokio::time::timeout(deadline, run).await {
        Err(_) => VersionCheck::TimedOut,
        Ok(Err(error)) => VersionCheck::Failed(error.to_string()),
        Ok(Ok((status, stdout, stderr))) => match parse_version(&stdout) {
            Some(version) if status.success() => VersionCheck::Version(version),
            _ => {
                let said = if stdout.trim().is_empty() { stderr } else { stdout };
                VersionCheck::Odd(format!(
                    "{} ({status})",
                    said.trim().chars().take(200).collect::<String>()
                ))
            }
        },
    }
}

/// What a program says, up to 4 KiB; the rest is read and dropped so that it can end.
async fn head(source: Option<impl tokio::io::AsyncRead + Unpin>) -> String {
    let mut kept = Vec::new();
    let Some(mut source) = source else {
        return String::new();
    };
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = source.read(&mut chunk).await {
        let room = 4096 - kept.len().min(4096);
        kept.extend(chunk.iter().take(read.min(room)));
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// The version in `2.1.330 (Claude Code)`.
fn parse_version(said: &str) -> Option<String> {
    let word = said.split_whitespace().next()?;
    let sound = said.contains("Claude Code")
        && word.split('.').count() >= 3
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c));
    sound.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_line() {
        assert_eq!(
            parse_version("2.1.330 (Claude Code)\n").as_deref(),
            Some("2.1.330")
        );
        assert_eq!(
            parse_version("2.2.0-beta.1 (Claude Code)").as_deref(),
            Some("2.2.0-beta.1")
        );
        assert_eq!(parse_version("node v20"), None);
        assert_eq!(parse_version("GNU bash, version 5.2.15"), None);
        assert_eq!(parse_version(""), None);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_program_file_is_asked_once() {
        let directory = tempfile::tempdir().unwrap();
        let (program, asked) = (directory.path().join("claude"), directory.path().join("asked"));
        let write = |version: &str| {
            let text = format!(
                "#!/bin/sh\necho x >> {}\necho '{version} (Claude Code)'\n",
                asked.display()
            );
            outrigger_needs::script(&program, text).unwrap();
        };
        let times = || {
            std::fs::read_to_string(&asked)
                .unwrap_or_default()
                .lines()
                .count()
        };
        let command = Command {
            program: "/bin/sh".into(),
            before: vec![program.clone().into()],
        };
        let surroundings = Surroundings::of_this_process();
        write("2.0.77");
        let both = tokio::join!(command.version(&surroundings), command.version(&surroundings));
        let version = |version: &str| VersionAnswer::Version(version.to_owned());
        assert_eq!(both, (version("2.0.77"), version("2.0.77")));
        assert_eq!(times(), 1);
        // Another length, so it is another file.
        write("2.1.100");
        assert_eq!(command.version(&surroundings).await, version("2.1.100"));
        assert_eq!(times(), 2);
        // What was told is not asked.
        write("2.1.100-beta");
        command.note("2.1.330", &surroundings).await;
        assert_eq!(command.version(&surroundings).await, version("2.1.330"));
        assert_eq!(times(), 2);
        // By itself it may be anything.
        let wrapper = Command {
            program,
            before: Vec::new(),
        };
        assert_eq!(wrapper.version(&surroundings).await, VersionAnswer::Unasked);
        assert_eq!(times(), 2);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn who_could_not_answer_is_asked_again() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("claude");
        outrigger_needs::script(&script, "#!/bin/sh\necho '2.1.330 (Claude Code)'\n").unwrap();
        let by = |program: PathBuf| Command {
            program,
            before: vec![script.clone().into()],
        };
        let surroundings = Surroundings::of_this_process();
        let missing = by(directory.path().join("sh"));
        assert_eq!(missing.version(&surroundings).await, VersionAnswer::Silent);
        let version = VersionAnswer::Version("2.1.330".to_owned());
        assert_eq!(by("/bin/sh".into()).version(&surroundings).await, version);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_is_told_outranks_silence() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("claude");
        outrigger_needs::script(&script, "#!/bin/sh\necho hello\n").unwrap();
        let command = Command {
            program: "/bin/sh".into(),
            before: vec![script.into()],
        };
        let surroundings = Surroundings::of_this_process();
        assert_eq!(command.version(&surroundings).await, VersionAnswer::Silent);
        command.note("2.1.330", &surroundings).await;
        let version = VersionAnswer::Version("2.1.330".to_owned());
        assert_eq!(command.version(&surroundings).await, version);
    }
}
