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
use tokio::process::Command;

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
            .stderr(Stdio::piped())
            .kill_on_drop(true);
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

    /// Runs git. Dropped, git is killed.
    ///
    /// # Errors
    /// When it does not start, or takes longer than its deadline.
    pub(crate) async fn run(mut self) -> Result<Output, String> {
        let failed = |error: std::io::Error| format!("git {}: {error}", self.name);
        let mut child = self.command.spawn().map_err(failed)?;
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
                "git {} took longer than {:?}, and was killed",
                self.name, self.deadline
            ));
        };
        let status = ended.map_err(failed)?;
        let truncated = bytes.len() as u64 > self.limit;
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
