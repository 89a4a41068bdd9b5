//! The CLI as a process on this machine.

use std::io;

use crate::options::Launch;
use crate::options::transport::Transport;
use crate::peer::{BoxFuture, Connection};

#[cfg(unix)]
mod family;
#[cfg(unix)]
mod guardian;
#[cfg(unix)]
mod mark;
#[cfg(target_os = "linux")]
mod oom;
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
/// What a command detached on purpose (`setsid`, `nohup … &`) has left both the group and the family. The CLI leaves it running
/// however it is ended, and so does this unless [`Detached::End`] is [chosen](Self::detached).
///
/// # When this program is killed
///
/// Nothing can be done then from here, so it is arranged before:
///
/// * On all Unixes a [`guardian`](Self::guardian), a small shell beside the CLI, sees the end of this program by the end of a
///   pipe. It sends SIGTERM to the group, so that the CLI may end the commands that it runs, and three seconds later SIGKILL to
///   what is left; then, where that is chosen, to what was detached. Last it removes the session's private directories and files,
///   but for transcripts that a [session store](crate::Options::session_store) may lack. It runs as the CLI's user
///   ([`Options::user`](crate::Options::user)), with no more rights. What was made for another user is thus emptied, and the empty
///   directories around it stay.
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
#[cfg_attr(not(unix), allow(dead_code, reason = "a job object does both by itself"))]
pub struct Local {
    guardian: bool,
    detached: Detached,
}

/// What becomes of processes that a command of the CLI detached on purpose (`setsid`, `nohup … &`) when the session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Detached {
    /// Detached processes run on, as they do after every end of the CLI by itself: somebody meant them to. Build servers, agents that hold keys
    /// and the like are often started by whoever needs them first, and used by others.
    ///
    /// The SDK closes its ends of the CLI's pipes two seconds after the CLI has ended. A process that inherited one of them and
    /// writes to it gets SIGPIPE.
    ///
    /// On Windows they are ended all the same.
    #[default]
    Leave,
    /// Detached processes are killed (SIGKILL) when the CLI has ended, however it did: closed, terminated, killed or by itself; and by the
    /// guardian when this program is killed.
    ///
    /// All that the CLI starts inherits a mark in its environment (`OUTRIGGER_SESSION_MARK`), and whoever was started with it is
    /// found in `/proc` and ended, whatever session and group it is in, and whoever its parent is. Programs that use this SDK in
    /// such a session hand the mark on to theirs.
    ///
    /// It does not hold for a process
    ///
    /// * that was started without the mark, or overwrote its environment: `env -i`, `sudo`, what a service manager or a
    ///   container engine starts when asked, and daemons that write a title of their own over it (nginx, PostgreSQL);
    /// * that this program may not look at: of another user, unless this program is the superuser's; set-user-id programs; one
    ///   that made itself not dumpable;
    /// * that starts others faster than they are found, in 16 rounds or 5 s.
    ///
    /// Nor when this program is killed and has no [guardian](Local::guardian). It is no means against a model that wants to
    /// stay: a container, or a control group of the service manager, holds for everything that is in it.
    ///
    /// Linux (5.3 or newer) and Windows only: elsewhere the CLI is not started.
    End,
}

impl Local {
    /// Makes the transport, with a guardian.
    pub const fn new() -> Self {
        Self {
            guardian: true,
            detached: Detached::Leave,
        }
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

    /// What becomes of processes that a command detached on purpose; [`Detached::Leave`] unless set, which is what the CLI does.
    #[must_use]
    pub const fn detached(mut self, detached: Detached) -> Self {
        self.detached = detached;
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
        Box::pin(system::start(launch, *self))
    }

    fn is_local(&self) -> bool {
        true
    }
}
