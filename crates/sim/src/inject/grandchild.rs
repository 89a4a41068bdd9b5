//! Processes that outlive the one that starts them, as MCP servers and commands of the CLI may.

use serde::{Deserialize, Serialize};

#[cfg(unix)]
pub use unix::be_grandchild;
#[cfg(unix)]
pub(crate) use unix::{leave, start, survive};

/// A process that the stand-in starts, as the CLI starts MCP servers and commands. It does nothing, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Grandchild {
    /// Whether the process ignores SIGTERM, SIGINT and SIGHUP.
    pub survives: bool,
    /// Whether the process is in a session, and so in a process group, of its own.
    pub own_session: bool,
    /// Whether the process keeps the stand-in's stdout and stderr open.
    pub holds_pipes: bool,
}

/// Ignores SIGTERM, SIGINT and SIGHUP from now on, inside a runtime.
pub(super) fn survive_in_runtime() {
    // It takes a runtime of its own, which may not be made where one runs already.
    #[cfg(unix)]
    let _ = std::thread::spawn(survive).join();
}

/// There is no stand-in that could be the grandchild.
#[cfg(not(unix))]
pub(super) fn leave(_: Grandchild) {}

#[cfg(unix)]
mod unix {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::fd::AsFd as _;
    use std::process::{Command, ExitCode, Stdio};

    use rustix::process::setsid;
    use rustix::stdio;

    use super::Grandchild;

    /// The argument that makes the executable a [`Grandchild`], which is the next one, as JSON.
    const GRANDCHILD: &str = "--grandchild";

    /// Lives as a [`Grandchild`] if the command line says that this process is one; else `None`, and nothing was done. For the first
    /// line of an executable that starts grandchildren, which are itself.
    pub fn be_grandchild() -> Option<ExitCode> {
        let mut arguments = std::env::args().skip(1);
        if arguments.next()? != GRANDCHILD {
            return None;
        }
        let what = arguments.next().and_then(|json| serde_json::from_str(&json).ok());
        Some(be_a_grandchild(what.unwrap_or_default()))
    }

    fn be_a_grandchild(what: Grandchild) -> ExitCode {
        if what.own_session && setsid().is_err() {
            return ExitCode::FAILURE;
        }
        if what.survives {
            survive();
        }
        // Whoever started this waits for it.
        let _ = std::io::stdout().write_all(b"ready\n");
        let _ = std::io::stdout().flush();
        loop {
            std::thread::park();
        }
    }

    /// Ignores SIGTERM, SIGINT and SIGHUP from now on. Handlers stay when their runtime is gone, and nobody looks at what they note down.
    pub(crate) fn survive() {
        use tokio::signal::unix::{SignalKind, signal};

        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        let _inside = runtime.enter();
        for kind in [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ] {
            let _ = signal(kind);
        }
    }

    /// Starts a grandchild of this process, and waits until it runs.
    pub(crate) fn start(grandchild: Grandchild) -> std::io::Result<std::process::Child> {
        std::env::current_exe().and_then(|program| {
            let mut command = Command::new(program);
            command
                .arg(GRANDCHILD)
                .arg(serde_json::to_string(&grandchild)?)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            if grandchild.holds_pipes {
                // Its own stdout is the pipe from which its start-up line is read, so it inherits our stdout as its stdin.
                command
                    .stdin(stdio::stdout().as_fd().try_clone_to_owned()?)
                    .stderr(Stdio::inherit());
            }
            let mut child = command.spawn()?;
            if let Some(stdout) = child.stdout.take() {
                BufReader::new(stdout).read_line(&mut String::new())?;
            }
            Ok(child)
        })
    }

    /// Starts a grandchild and lets it be. A failure is reported on stderr.
    pub(crate) fn leave(grandchild: Grandchild) {
        match start(grandchild) {
            // It runs on: a `Child` does not kill when it is dropped.
            Ok(child) => drop(child),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "no grandchild: {error}");
            }
        }
    }
}
