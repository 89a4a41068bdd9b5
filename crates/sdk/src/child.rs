//! The CLI as a process on this machine.

use std::io;
use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::options::Launch;
use crate::transport::{BoxFuture, Connection, Exit, Process, Signal, Transport};

#[cfg(unix)]
mod family;

/// Starts the CLI as a child process with exactly the environment of the launch, in a process group of its own.
///
/// The group is what gets signalled, so that the MCP servers that the CLI starts end with it. The commands that it runs are in
/// groups of their own: it ends them itself when it is closed or terminated, and when it is killed from here they are looked
/// for and killed with it (on Linux; elsewhere, and when somebody else kills the CLI, they live on). Dropping the process
/// kills everything at once and needs no runtime for that.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Local;

impl Local {
    /// Makes the transport.
    pub const fn new() -> Self {
        Self
    }
}

impl Transport for Local {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move { start(launch) })
    }

    fn is_local(&self) -> bool {
        true
    }
}

fn start(launch: &Launch) -> io::Result<Connection> {
    let mut command = Command::from(launch.command());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(windows)]
    {
        // No console window flashes up for a program that has none.
        const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        command.creation_flags(CREATE_NO_WINDOW);
    }
    let mut child = command.spawn()?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("the child was started without pipes"));
    };
    Ok(Connection {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Some(Box::new(stderr)),
        process: Box::new(LocalProcess {
            group: child.id(),
            child,
            exit: None,
        }),
    })
}

struct LocalProcess {
    child: Child,
    /// The process group, which has the child's own id.
    group: Option<u32>,
    exit: Option<Exit>,
}

impl Process for LocalProcess {
    fn id(&self) -> Option<u32> {
        self.group
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            if let Some(exit) = self.exit {
                return Ok(exit);
            }
            let exit = Exit::from(self.child.wait().await?);
            self.exit = Some(exit);
            // What the CLI left behind in its group would be orphaned from here on.
            signal_group(self.group, Signal::Kill)?;
            Ok(exit)
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        #[cfg(not(unix))]
        if self.exit.is_none() && signal == Signal::Kill {
            return self.child.start_kill();
        }
        signal_group(self.group, signal)
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        if self.exit.is_none() {
            // An error can't be reported from here; the group is most likely gone.
            let _ = signal_group(self.group, Signal::Kill);
        }
    }
}

#[cfg(unix)]
fn signal_group(group: Option<u32>, signal: Signal) -> io::Result<()> {
    use rustix::io::Errno;
    use rustix::process::{Pid, Signal as Unix, kill_process_group};

    let Some(group) = group.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) else {
        return Ok(());
    };
    let done = match signal {
        Signal::Terminate => kill_process_group(group, Unix::TERM),
        Signal::Kill => family::kill(group),
    };
    match done {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        // macOS says so of a group whose members are all zombies.
        Err(Errno::PERM) if cfg!(target_os = "macos") => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn signal_group(_: Option<u32>, _: Signal) -> io::Result<()> {
    Ok(())
}
