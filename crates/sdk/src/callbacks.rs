//! What all callbacks have in common: what they know of the request that they answer.

use std::fmt;
use std::sync::Weak;

use outrigger_protocol::Frame;
use outrigger_protocol::outbound::{ElicitationResult, HostAuthTokenAnswer, OauthTokenAnswer};
use outrigger_protocol::shared::RequestId;
use tokio_util::sync::CancellationToken;

use crate::conn::Conn;
use crate::conn::ask::{Answer, Answerer, Asking};
use crate::session::Session;
use crate::transport::BoxFuture;

/// What a callback knows of the request that it answers. A cheap handle.
#[derive(Clone)]
pub struct Context {
    request_id: RequestId,
    cancelled: CancellationToken,
    conn: Weak<Conn>,
}

impl Context {
    pub(crate) fn new(request_id: RequestId, cancelled: CancellationToken, conn: Weak<Conn>) -> Self {
        Self {
            request_id,
            cancelled,
            conn,
        }
    }

    /// The context of a request that came from no session: it is never withdrawn.
    pub(crate) fn detached(request_id: RequestId) -> Self {
        Self::new(request_id, CancellationToken::new(), Weak::new())
    }

    /// The id of the request, which the CLI chose.
    pub fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// Fires when nobody waits for the answer any more: the CLI withdrew the request (an interrupt, another decision), a
    /// deadline of ours passed, or the session ended.
    ///
    /// The callback's own future is dropped then. This is for what it has spawned or handed out.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// The session that asks. Its control methods may be called from within a callback.
    ///
    /// `None` while the session is being started (a hook or an MCP server may be called before), and once its last handle was
    /// dropped. Holding the session keeps it from ending.
    pub fn session(&self) -> Option<Session> {
        self.conn.upgrade()?.session()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("request_id", &self.request_id)
            .field("cancelled", &self.cancelled.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// Refuses what nobody handles.
pub(crate) struct Nobody;

impl Answerer for Nobody {
    fn accept(&self, asking: Asking) -> BoxFuture<'static, Answer> {
        let why = match asking.frame.subtype() {
            Some("hook_callback") => "no hook callback has this id",
            _ => "SDK MCP server not found",
        };
        Box::pin(std::future::ready(self.refuse(&asking.frame, why)))
    }

    fn refuse(&self, frame: &Frame, why: &str) -> Answer {
        match frame.subtype() {
            Some("elicitation") => Answer::success(&ElicitationResult::Decline),
            Some("request_user_dialog") => Answer::NotOurs,
            Some("oauth_token_refresh") => Answer::success(&OauthTokenAnswer {
                access_token: None,
                reason: None,
            }),
            Some("host_auth_token_refresh") => Answer::success(&HostAuthTokenAnswer {
                auth_token: None,
                material_unchanged: None,
            }),
            _ => Answer::Error(why.to_owned()),
        }
    }
}
