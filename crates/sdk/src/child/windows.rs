//! A child process on Windows, in a job object that ends with this program. Compiled, but not tested.

use std::io;
use std::process::Stdio;

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use windows::Win32::System::Threading::CREATE_NO_WINDOW;

use super::Local;
use crate::options::Launch;
use crate::peer::{BoxFuture, Connection, Exit, Process, Signal};

pub(super) async fn start(launch: &Launch, _: Local) -> io::Result<Connection> {
    let mut command = CommandWrap::from(tokio::process::Command::from(launch.command()));
    command
        .command_mut()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
        // No console window flashes up for a program that has none.
        .wrap(CreationFlags(CREATE_NO_WINDOW))
        // The job has the only handle to itself here, and ends all that is in it when that is closed, by us or by our death.
        .wrap(KillOnDrop)
        .wrap(JobObject);
    let mut child = command.spawn()?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin().take(), child.stdout().take(), child.stderr().take())
    else {
        return Err(io::Error::other("the child was started without pipes"));
    };
    Ok(Connection {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Some(Box::new(stderr)),
        process: Box::new(LocalProcess {
            id: child.id(),
            child,
            exit: None,
        }),
    })
}

struct LocalProcess {
    id: Option<u32>,
    child: Box<dyn ChildWrapper>,
    exit: Option<Exit>,
}

impl Process for LocalProcess {
    fn id(&self) -> Option<u32> {
        self.id
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            if let Some(exit) = self.exit {
                return Ok(exit);
            }
            // The CLI alone: the job ends only with the last of what it started, and that is ended next.
            let exit = Exit::from(self.child.inner_mut().wait().await?);
            self.exit = Some(exit);
            self.child.start_kill()?;
            Ok(exit)
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match signal {
            // There is nothing between closing stdin and this.
            Signal::Kill => self.child.start_kill(),
            Signal::Terminate => Ok(()),
        }
    }
}
