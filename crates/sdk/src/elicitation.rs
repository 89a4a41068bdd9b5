//! Elicitations: requests of MCP servers to the user.

use std::ops::Deref;

use outrigger_protocol::Frame;
use outrigger_protocol::inbound::Elicitation;
pub use outrigger_protocol::outbound::ElicitationResult;

use crate::callback_kind::{Callback, CallbackReply, read};
use crate::conn::Context;
use crate::conn::cli_requests::{Answerer, CliReply, CliRequest};
use crate::error::Error;
use crate::peer::BoxFuture;

/// A request of an MCP server to the user: a form to fill in, or a URL to open. Its fields are those of [`Elicitation`].
///
/// The CLI does not offer this to servers in this program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ElicitationRequest {
    /// The request's id, whether it was withdrawn, and the session.
    pub context: Context,
    /// The frame of the request.
    pub frame: Frame,
    elicitation: Elicitation,
}

impl Deref for ElicitationRequest {
    type Target = Elicitation;

    fn deref(&self) -> &Elicitation {
        &self.elicitation
    }
}

impl ElicitationRequest {
    /// Decodes a stored request, from [`frame`](Self::frame) or a recording. Its context belongs to no session.
    ///
    /// # Errors
    /// When the frame is not an `elicitation`, or lacks a required field.
    pub fn from_frame(frame: &Frame) -> Result<Self, Error> {
        if frame.subtype() != Some("elicitation") {
            return Err(Error::invalid("elicitation: the frame is another one"));
        }
        let id = frame.written_request_id().unwrap_or_else(|| "".into());
        Self::read(frame, Context::detached(id))
            .map_err(|reason| Error::invalid(format!("elicitation: {reason}")))
    }

    pub(crate) fn read(frame: &Frame, context: Context) -> Result<Self, String> {
        Ok(Self {
            elicitation: read(frame)?,
            context,
            frame: frame.clone(),
        })
    }
}

/// An error declines.
impl<E: std::fmt::Display> From<Result<ElicitationResult, E>> for CallbackReply<ElicitationResult> {
    fn from(result: Result<ElicitationResult, E>) -> Self {
        Self::Now(result.unwrap_or_else(|error| {
            tracing::warn!(%error, "the question of an MCP server is declined");
            ElicitationResult::Decline
        }))
    }
}

/// Answers `elicitation`; declines if there is no callback.
pub(crate) struct Elicitations(
    pub(crate) Option<Callback<ElicitationRequest, CallbackReply<ElicitationResult>>>,
);

impl Answerer for Elicitations {
    fn accept(&self, asking: CliRequest) -> BoxFuture<'static, CliReply> {
        let callback = self.0.clone();
        Box::pin(async move {
            let Some(callback) = callback else {
                return declined();
            };
            match ElicitationRequest::read(&asking.frame, asking.context) {
                Ok(request) => callback(request).await.into_answer(),
                Err(error) => {
                    tracing::warn!(
                        error,
                        "a question of an MCP server could not be read; it is declined"
                    );
                    declined()
                }
            }
        })
    }

    fn refuse(&self, _: &Frame, _: &str) -> CliReply {
        declined()
    }
}

fn declined() -> CliReply {
    CliReply::success(&ElicitationResult::Decline)
}
