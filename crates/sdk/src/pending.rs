//! What the CLI waits for an answer to, and answering it from elsewhere than its callback.

use std::sync::Arc;

use outrigger_protocol::shared::{PermissionResult, RequestId};

use crate::conn::Context;
use crate::conn::cli_requests::CliReply;
use crate::dialog::{DialogRequest, UserDialogResult};
use crate::elicitation::{ElicitationRequest, ElicitationResult};
use crate::error::{Error, Result};
use crate::permissions::{DecidedCall, PermissionRequest};
use crate::session::Session;

const PERMISSION: &str = "can_use_tool";
const ELICITATION: &str = "elicitation";
const DIALOG: &str = "request_user_dialog";

/// A request for a person to answer that is open: its callback works on it, or has parked it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Pending {
    /// A tool call waits for a decision, a question to the user or a plan among them.
    Permission(Box<PermissionRequest>),
    /// An MCP server asks.
    Elicitation(ElicitationRequest),
    /// A dialog is to be shown.
    Dialog(DialogRequest),
}

impl Pending {
    /// The id of the request.
    pub fn id(&self) -> &RequestId {
        match self {
            Self::Permission(request) => request.id(),
            Self::Elicitation(request) => request.context.request_id(),
            Self::Dialog(request) => request.context.request_id(),
        }
    }
}

impl Session {
    /// The requests for a person to answer that are open, in no order. One that can't be read is refused at once and never
    /// among them.
    pub fn pending(&self) -> Vec<Pending> {
        let conn = Arc::downgrade(self.conn());
        let open = self.conn().pending(&[PERMISSION, ELICITATION, DIALOG]);
        let read = |(id, frame, withdrawn): (_, outrigger_protocol::Frame, _)| {
            let context = Context::new(id, withdrawn, conn.clone());
            let pending = match frame.subtype()? {
                PERMISSION => Pending::Permission(Box::new(PermissionRequest::read(&frame, context).ok()?)),
                ELICITATION => Pending::Elicitation(ElicitationRequest::read(&frame, context).ok()?),
                _ => Pending::Dialog(DialogRequest::read(&frame, context).ok()?),
            };
            Some(pending)
        };
        open.into_iter().filter_map(read).collect()
    }

    /// Decides about a tool call that is [pending](Self::pending), in the place of the handler: one that the handler left open
    /// ([`PermissionDecision::Parked`]), or one that it still works on, which is then stopped.
    ///
    /// For questions and plans pass [`Answers`](crate::permissions::Answers) or what
    /// [`PlanReply`](crate::permissions::PlanReply) becomes.
    ///
    /// # Cancel safety
    /// The future is done when it is first polled: dropped before, nothing was decided.
    ///
    /// # Errors
    /// When no such request is open ([`Error::is_not_open`]): it was decided or withdrawn before; when the request is of another
    /// kind; when the session has ended. Nothing is sent then.
    ///
    /// [`PermissionDecision::Parked`]: crate::permissions::PermissionDecision::Parked
    pub async fn decide(&self, id: &RequestId, decision: impl Into<PermissionResult>) -> Result<()> {
        let open = self
            .conn()
            .core()
            .request(id.as_str())
            .map(|(_, id, frame)| (id.clone(), frame.clone()));
        let request =
            open.and_then(|(id, frame)| PermissionRequest::read(&frame, Context::detached(id)).ok());
        let answer = match request {
            Some(request) => DecidedCall::of(&request).answer(decision.into()),
            // There is no such request, or it is of another kind, which the connection tells apart.
            None => CliReply::success(&decision.into()),
        };
        self.settle(id, PERMISSION, answer)
    }

    /// Answers an MCP server in the place of the callback; see [`decide`](Self::decide).
    ///
    /// # Cancel safety
    /// As [`decide`](Self::decide).
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn answer_elicitation(&self, id: &RequestId, answer: ElicitationResult) -> Result<()> {
        self.settle(id, ELICITATION, CliReply::success(&answer))
    }

    /// Answers a dialog in the place of the callback; see [`decide`](Self::decide).
    ///
    /// # Cancel safety
    /// As [`decide`](Self::decide).
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn answer_dialog(&self, id: &RequestId, answer: UserDialogResult) -> Result<()> {
        self.settle(id, DIALOG, CliReply::success(&answer))
    }

    fn settle(&self, id: &RequestId, subtype: &str, answer: CliReply) -> Result<()> {
        match answer {
            CliReply::Success(payload) => self.conn().settle(id.as_str(), subtype, &payload),
            _ => Err(Error::invalid("answer: it can't be written as JSON")),
        }
    }
}
