//! The CLI as a process on this machine.

use std::io;

use crate::options::Launch;
use crate::transport::{BoxFuture, Connection, Transport};

#[cfg(unix)]
mod family;
#[cfg(unix)]
mod guardian;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

/// Starts the CLI as a child process with exactly the environment of the launch, in a process group of its own.
///
/// The group is what gets signalled, so that the MCP servers that the CLI starts end with it, also those that outlive a CLI
/// that ends by itself. The commands that it runs are in groups of their own: it ends them itself when it is closed or
/// terminated, and when it is killed from here they are looked for and killed with it (on Linux; elsewhere, and when somebody
/// else kills the CLI, they live on). Dropping the process kills everything at once and needs no runtime for that; it is
/// reaped whether or not one is left.
///
/// # When this program is killed
///
/// Nothing can be done then from here, so it is arranged before:
///
/// * On all Unixes a [`guardian`](Self::guardian), a small shell beside the CLI, sees the end of this program by the end of a
///   pipe. It sends SIGTERM to the group, so that the CLI may end the commands that it runs, and three seconds later SIGKILL to
///   what is left. Then it removes the session's private directories and files, but for transcripts that a
///   [session store](crate::Options::session_store) may lack.
/// * On Linux the kernel too sends the CLI a signal when this program dies (`PR_SET_PDEATHSIG`): SIGTERM beside a guardian, else
///   SIGKILL. It takes a fork to arrange that, which holds up a large program, so it is left out beside a guardian once this
///   program has 64 MiB in memory.
/// * On Windows the CLI and all that it starts are in a job object that ends with this program.
///
/// Only Linux is tested; the guardian on other Unixes, and the job object, are not.
///
/// Each session has a thread of this program, which starts the process and waits for its end, and which uses next to nothing
/// (on Windows there is none).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Local {
    guardian: bool,
}

impl Local {
    /// Makes the transport, with a guardian.
    pub const fn new() -> Self {
        Self { guardian: true }
    }

    /// Whether each CLI has a guardian beside it; true unless set. See [`Local`] for what it does.
    ///
    /// It is one `/bin/sh` that sleeps: a few milliseconds at the start of a session, and about 0.2 MB of memory while it lasts.
    /// Without one, or where there is no `/bin/sh`, MCP servers of the CLI may outlive this program when that is killed, and so
    /// may the commands that the CLI was running; outside Linux the CLI itself may. No effect on Windows.
    #[must_use]
    pub const fn guardian(mut self, on: bool) -> Self {
        self.guardian = on;
        self
    }
}

impl Default for Local {
    fn default() -> Self {
        Self::new()
    }
}

impl Transport for Local {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(system::start(
            launch.command(),
            self.guardian,
            launch.guard.leftovers(),
        ))
    }

    fn is_local(&self) -> bool {
        true
    }
}
