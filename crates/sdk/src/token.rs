//! Fresh credentials for the CLI (`oauth_token_refresh`, `host_auth_token_refresh`).

use std::ops::Deref;
use std::time::Duration;

use outrigger_protocol::Frame;
pub use outrigger_protocol::inbound::{HostAuthTokenRefresh, OauthTokenRefresh};
pub use outrigger_protocol::outbound::{HostAuthTokenAnswer, NoTokenReason, OauthTokenAnswer};

use crate::callback_kind::{Callback, read};
use crate::conn::Context;
use crate::conn::cli_requests::{Answerer, CliReply, CliRequest};
use crate::deadline::{NoResult, in_time};
use crate::peer::BoxFuture;

/// A request of the CLI for a credential. Its fields are those of [`OauthTokenRefresh`] or [`HostAuthTokenRefresh`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TokenRequest<T> {
    /// The request's id, whether it was withdrawn, and the session.
    pub context: Context,
    refresh: T,
}

impl<T> Deref for TokenRequest<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.refresh
    }
}

/// Answers with a credential; with none if there is no callback, or it takes too long.
#[derive(Clone)]
pub(crate) struct TokenRequests {
    pub(crate) oauth: Option<Callback<TokenRequest<OauthTokenRefresh>, OauthTokenAnswer>>,
    pub(crate) host: Option<Callback<TokenRequest<HostAuthTokenRefresh>, HostAuthTokenAnswer>>,
    pub(crate) deadline: Duration,
}

impl Answerer for TokenRequests {
    fn accept(&self, asking: CliRequest) -> BoxFuture<'static, CliReply> {
        let tokens = self.clone();
        Box::pin(async move {
            let CliRequest { frame, context } = asking;
            let cancelled = context.cancelled().clone();
            let none = none(&frame);
            let deadline = tokens.deadline;
            let answer = in_time(deadline, async move { tokens.answer(frame, context).await }).await;
            match answer.map_err(NoResult::unwind) {
                Ok(Some(answer)) => answer,
                Ok(None) => none,
                Err(_) => {
                    tracing::warn!(?deadline, "no credential came in time");
                    cancelled.cancel();
                    none
                }
            }
        })
    }

    fn refuse(&self, frame: &Frame, _: &str) -> CliReply {
        none(frame)
    }
}

impl TokenRequests {
    async fn answer(&self, frame: Frame, context: Context) -> Option<CliReply> {
        if frame.subtype() == Some("oauth_token_refresh") {
            let refresh = read(&frame).ok()?;
            let answer = self.oauth.as_ref()?(TokenRequest { context, refresh }).await;
            Some(CliReply::success(&answer))
        } else {
            let refresh = read(&frame).ok()?;
            let answer = self.host.as_ref()?(TokenRequest { context, refresh }).await;
            Some(CliReply::success(&answer))
        }
    }
}

/// No credential; the CLI does not take this for a sign-out.
fn none(frame: &Frame) -> CliReply {
    if frame.subtype() == Some("oauth_token_refresh") {
        CliReply::success(&OauthTokenAnswer {
            access_token: None,
            reason: None,
        })
    } else {
        CliReply::success(&HostAuthTokenAnswer {
            auth_token: None,
            material_unchanged: None,
        })
    }
}
