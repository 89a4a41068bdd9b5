//! Runs git, so that nothing that a repository says is run along with it.
//!
//! An agent may write to the files of a repository, its configuration included. So the host reads and writes the files of a workspace only through a
//! git directory of its own, whose configuration has nothing in it: no hooks, filters, drivers or monitors. On the repository itself it runs only
//! commands that need none of these, with hooks and network turned off.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

/// The most that is kept of what git says on stderr, in bytes.
const WORDS: u64 = 4096;

/// What git wrote.
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    /// Whether there was more than the limit.
    pub(crate) truncated: bool,
    /// Whether git succeeded. A run that was cut at the limit counts as one.
    pub(crate) success: bool,
    pub(crate) stderr: String,
}

/// How long a git that is to end has to remove its locks, before it is killed.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// A git that runs. Dropped, it is to end: a git that is killed at once leaves its locks in the repository of the user, where they are in the way of everybody.
struct RunningGit(Option<Child>);

impl Drop for RunningGit {
    fn drop(&mut self) {
        // Without an id it has ended.
        let Some(mut child) = self.0.take().filter(|child| child.id().is_some()) else {
            return;
        };
        #[cfg(unix)]
        if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok())
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        #[cfg(not(unix))]
        let _ = child.start_kill();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if tokio::time::timeout(LAST_MOMENT, child.wait()).await.is_err() {
                    let _ = child.start_kill();
                }
            });
        }
    }
}

/// A run of git.
pub(crate) struct Git {
    command: Command,
    name: String,
    deadline: Duration,
    limit: u64,
    input: Vec<u8>,
}

impl Git {
    /// A subcommand in a directory.
    pub(crate) fn new(subcommand: &str, directory: &Path, deadline: Duration) -> Self {
        let mut command = Command::new("git");
        command
            .env_clear()
            .envs(["PATH", "SYSTEMROOT", "TMPDIR"].into_iter().filter_map(|name| {
                let value = std::env::var_os(name)?;
                Some((name, value))
            }))
            .envs([
                ("LC_ALL", "C"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_ATTR_NOSYSTEM", "1"),
                ("GIT_TERMINAL_PROMPT", "0"),
                ("GIT_NO_LAZY_FETCH", "1"),
                ("GIT_NO_REPLACE_OBJECTS", "1"),
            ])
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"])
            .args([
                "-c",
                "protocol.allow=never",
                "-c",
                "gc.auto=0",
                "-c",
                "maintenance.auto=false",
            ])
            .arg(subcommand)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self {
            command,
            name: subcommand.to_owned(),
            deadline,
            limit: 1024 * 1024,
            input: Vec::new(),
        }
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The most bytes to read; 1 MiB unless set.
    pub(crate) fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// What git reads on stdin; nothing unless set.
    pub(crate) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = bytes;
        self
    }

    /// Runs git. Dropped, git is ended.
    ///
    /// # Errors
    /// When it does not start, takes longer than its deadline, or is killed.
    pub(crate) async fn run(mut self) -> Result<Output, String> {
        let failed = |error: std::io::Error| format!("git {}: {error}", self.name);
        let mut running = RunningGit(Some(self.command.spawn().map_err(failed)?));
        let Some(child) = running.0.as_mut() else {
            return Err(format!("git {} did not start", self.name));
        };
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut bytes, mut words) = (Vec::new(), Vec::new());
        let run = async {
            // Dropped at the end of this block, stdin is closed.
            let write = async {
                match stdin {
                    Some(mut stdin) => stdin.write_all(&self.input).await,
                    None => Ok(()),
                }
            };
            let read = async {
                match stdout {
                    // A git that has more to write ends by a broken pipe.
                    Some(stdout) => stdout
                        .take(self.limit + 1)
                        .read_to_end(&mut bytes)
                        .await
                        .map(drop),
                    None => Ok(()),
                }
            };
            let listen = async {
                let Some(mut stderr) = stderr else { return Ok(()) };
                (&mut stderr).take(WORDS).read_to_end(&mut words).await?;
                // The rest is not kept, and must not hold git up.
                tokio::io::copy(&mut stderr, &mut tokio::io::sink())
                    .await
                    .map(drop)
            };
            tokio::try_join!(write, read, listen)?;
            child.wait().await
        };
        let Ok(ended) = tokio::time::timeout(self.deadline, run).await else {
            return Err(format!(
                "git {} took longer than {:?}, and was ended",
                self.name, self.deadline
            ));
        };
        let status = ended.map_err(failed)?;
        let truncated = bytes.len() as u64 > self.limit;
        if !truncated && status.code().is_none() {
            return Err(format!("git {} was killed ({status})", self.name));
        }
        bytes.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        Ok(Output {
            bytes,
            truncated,
            success: truncated || status.success(),
            stderr: String::from_utf8_lossy(&words).trim().to_owned(),
        })
    }

    /// Runs git, and returns what it wrote, without the end of the line.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when git fails or writes something else than text.
    pub(crate) async fn text(self) -> Result<String, String> {
        let name = self.name.clone();
        let output = self.run().await?;
        if !output.success {
            return Err(format!("git {name}: {}", output.stderr));
        }
        let text = String::from_utf8(output.bytes).map_err(|_| format!("git {name} did not write text"))?;
        Ok(text.trim_end_matches('\n').to_owned())
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// Git waits for somebody to write to the file of what it has to ignore, and has the index locked meanwhile.
    #[tokio::test]
    async fn a_git_that_is_ended_leaves_no_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let git = |name: &str| Git::new(name, &path, Duration::from_secs(60));
        git("init").text().await.unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(path.join(".gitignore"))
            .status();
        assert!(made.unwrap().success());
        let lock = path.join(".git/index.lock");
        let add = tokio::spawn(git("add").args(["."]).run());
        while !lock.exists() {
            tokio::task::yield_now().await;
        }
        add.abort();
        assert!(add.await.is_err());
        while lock.exists() {
            tokio::task::yield_now().await;
        }
        let slow = Git::new("add", &path, Duration::from_millis(100));
        assert!(slow.args(["."]).run().await.is_err());
        while lock.exists() {
            tokio::task::yield_now().await;
        }
    }
}
