//! The CLI of a session: running, being brought back, or gone until it is needed again.

use agent_client_protocol::Error;
use futures_util::future::BoxFuture;
use outrigger::{Frames, LostPrompt, ReviveProblem, Session};

use super::conversation::Conversation;
use crate::sdk_error;

/// What there is of the CLI.
pub(super) enum Process {
    Running(Running),
    /// It is being brought back.
    Reviving {
        /// The one that ended.
        ended: Session,
        revival: BoxFuture<'static, Result<Session, outrigger::Error>>,
    },
    /// It ended. It is brought back when something is to be done.
    Ended(Session),
}

/// A CLI that runs, and all that it says.
pub(super) struct Running {
    pub(super) session: Session,
    pub(super) frames: Frames,
}

impl Running {
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

    /// The session, whether it runs or not.
    pub(super) fn session(&self) -> &Session {
        match self {
            Self::Running(Running { session, .. })
            | Self::Ended(session)
            | Self::Reviving { ended: session, .. } => session,
        }
    }

    /// Begins to bring it back, if it ended.
    pub(super) fn revive(&mut self, conversation: &Conversation) {
        if let Self::Ended(session) = self {
            let (again, behind) = (conversation.again.clone(), conversation.behind.clone());
            *self = Self::Reviving {
                ended: session.clone(),
                revival: Box::pin(revive(session.clone(), again, behind)),
            };
        }
    }

    /// It ended, or did not come back: it is left until it is needed.
    pub(super) fn give_up(&mut self) {
        *self = Self::Ended(self.session().clone());
    }
}

/// Goes on with a conversation in a new process, behind an answer if one is given. One that had not begun is begun anew, with `again`.
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

/// What a prompt is told whose turn was lost with the process.
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
