//! The open CLI requests, and answering them from outside of their callback.

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

/// An open request for a person: its callback works on it, or has parked it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Pending {
    /// A permission request; questions to the user and plans are such requests, too.
    Permission(Box<PermissionRequest>),
    /// An elicitation of an MCP server.
    Elicitation(ElicitationRequest),
    /// A dialog.
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
    /// The open requests for a person, in no order. A request that does not decode is rejected at once and never listed.
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

    /// Decides about a [pending](Self::pending) tool call in place of the handler: one that the handler left open
    /// ([`PermissionDecision::Parked`]), or one that it still works on; then the handler's future is dropped.
    ///
    /// For questions and plans pass [`Answers`](crate::permissions::Answers) or a [`PlanReply`](crate::permissions::PlanReply).
    ///
    /// # Cancel safety
    /// The future completes at its first poll. Dropped before, it decides nothing.
    ///
    /// # Errors
    /// When no such request is open ([`Error::is_not_open`]): it was decided or withdrawn before; when the request is of another
    /// kind; when the session has ended. Then nothing was sent.
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

    /// Answers an elicitation in place of the callback; see [`decide`](Self::decide).
    ///
    /// # Cancel safety
    /// As [`decide`](Self::decide).
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn answer_elicitation(&self, id: &RequestId, answer: ElicitationResult) -> Result<()> {
        self.settle(id, ELICITATION, CliReply::success(&answer))
    }

    /// Answers a dialog in place of the callback; see [`decide`](Self::decide).
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
