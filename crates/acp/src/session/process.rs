//! The CLI process of a session: running, being revived, or ended until it is needed.

use agent_client_protocol::Error;
use futures_util::future::BoxFuture;
use outrigger::{Frames, LostPrompt, ReviveProblem, Session};

use super::conversation::Conversation;
use crate::sdk_error;

pub(super) enum Process {
    Running(RunningProcess),
    Reviving {
        /// The session of the process that ended.
        ended: Session,
        revival: BoxFuture<'static, Result<Session, outrigger::Error>>,
    },
    /// The process ended. The next prompt or change revives the session.
    Ended(Session),
}

/// A running process, and its frames.
pub(super) struct RunningProcess {
    pub(super) session: Session,
    pub(super) frames: Frames,
}

impl RunningProcess {
    pub(super) fn new(session: Session) -> Self {
        let frames = session.frames();
        Self { session, frames }
    }
}

impl Process {
    pub(super) fn running(&self) -> Option<&Session> {
        match self {
            Self::Running(running) => Some(&running.session),
            _ => None,
        }
    }

    /// The session of the current or the last process.
    pub(super) fn session(&self) -> &Session {
        match self {
            Self::Running(RunningProcess { session, .. })
            | Self::Ended(session)
            | Self::Reviving { ended: session, .. } => session,
        }
    }

    /// Begins to revive the process, if it ended.
    pub(super) fn revive(&mut self, conversation: &Conversation) {
        if let Self::Ended(session) = self {
            let (again, behind) = (conversation.again.clone(), conversation.behind.clone());
            *self = Self::Reviving {
                ended: session.clone(),
                revival: Box::pin(revive(session.clone(), again, behind)),
            };
        }
    }

    /// The process ended or could not be revived: waits until it is needed.
    pub(super) fn give_up(&mut self) {
        *self = Self::Ended(self.session().clone());
    }
}

/// Continues the conversation in a new process, behind a message if there is one. Starts an empty conversation with `again`.
async fn revive(
    session: Session,
    again: outrigger::Options,
    behind: Option<String>,
) -> Result<Session, outrigger::Error> {
    let revived = match behind {
        Some(behind) => session.revive_at(&behind).await,
        None => session.revive().await,
    };
    match revived {
        Ok(revived) => {
            for LostPrompt { id, progress, .. } in &revived.lost.prompts {
                tracing::info!(id, ?progress, "a prompt was open when the process ended");
            }
            for (server, why) in &revived.lost.mcp_servers {
                tracing::warn!(server, why, "an MCP server did not come back");
            }
            Ok(revived.session)
        }
        Err(error) => match error.as_revive_problem() {
            Some(ReviveProblem::NeverBegan | ReviveProblem::NotKept) => again.start().await,
            _ => Err(error),
        },
    }
}

/// The error for a prompt whose turn was lost with the process.
pub(super) fn lost(ended: &outrigger::Error) -> Error {
    let told = sdk_error::of_sdk(ended);
    let message = format!(
        "the turn was lost: {}. The session goes on with the next prompt.",
        told.message
    );
    let mut lost = Error::new(told.code, message);
    lost.data = told.data;
    lost
}
