//! `outrigger stop`.

use std::io;

use super::{HostArgs, NAMES, failure, id_of};
use crate::exit::{CommandResult, Status};
use crate::paint::Paint;
use crate::screen::note;

/// End the process of a session of a host, or interrupt its turn.
///
/// The session stays: the next prompt goes on with it, in another process. What was sent and not begun waits.
#[derive(Debug, clap::Args)]
#[command(after_help = NAMES)]
pub(crate) struct Stop {
    /// The session.
    session: String,
    /// Interrupts the turn that runs, and leaves the process.
    #[arg(long)]
    interrupt: bool,
    /// Ends the session for good: it takes no prompts any more, and can be read.
    #[arg(long, conflicts_with = "interrupt")]
    archive: bool,
    #[command(flatten)]
    host: HostArgs,
}

impl Stop {
    pub(crate) async fn run(self) -> CommandResult {
        let client = self.host.client()?;
        let session = id_of(&client, &self.session).await?;
        let (done, session) = if self.interrupt {
            ("interrupted", client.interrupt(&session).await)
        } else if self.archive {
            ("archived", client.archive(&session).await)
        } else {
            ("stopped", client.stop(&session).await)
        };
        let session = session.map_err(failure)?;
        // Who may not read is not told what the session does.
        let said = match session.state.as_str() {
            "" => format!("{done}; the session {}", session.id),
            state => format!("{done}; the session {} is {state}", session.id),
        };
        note(&said, Paint::on(&io::stderr()));
        Ok(Status::Success)
    }
}
