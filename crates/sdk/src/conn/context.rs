//! The context of a CLI request.

use std::fmt;
use std::sync::{Arc, Weak};

use outrigger_protocol::shared::RequestId;
use tokio_util::sync::CancellationToken;

use super::{Conn, Withdrawn};

/// The context of the CLI request that a callback answers. It is cheap to clone.
#[derive(Clone)]
pub struct Context {
    request_id: RequestId,
    withdrawn: Withdrawn,
    conn: Weak<Conn>,
}

impl Context {
    pub(crate) fn new(request_id: RequestId, withdrawn: Withdrawn, conn: Weak<Conn>) -> Self {
        Self {
            request_id,
            withdrawn,
            conn,
        }
    }

    /// The context of a request without a session: it is never withdrawn.
    pub(crate) fn detached(request_id: RequestId) -> Self {
        Self::new(request_id, Withdrawn::default(), Weak::new())
    }

    /// The id of the request, which the CLI chose.
    pub fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// Fires when no reply is needed any more: the CLI withdrew the request (an interrupt, another decision), this program decided in
    /// place of the callback ([`Session::decide`](crate::Session::decide) and the like), a deadline of the SDK passed, or the session
    /// ended. It does not fire after the callback itself has replied.
    ///
    /// The callback's own future is dropped then. Use this for spawned tasks, for a request that the callback parked, and the like.
    pub fn cancelled(&self) -> &CancellationToken {
        self.withdrawn.token()
    }

    /// The connection of the request, while it exists.
    pub(crate) fn conn(&self) -> Option<Arc<Conn>> {
        self.conn.upgrade()
    }

    /// Resolves when the session has ended, without keeping it from that.
    pub(crate) fn session_end(&self) -> impl Future<Output = ()> + Send + use<> {
        let ended = self.conn.upgrade().map(|conn| conn.ended.clone());
        let detached = self.conn.ptr_eq(&Weak::new());
        async move {
            match ended {
                Some(mut ended) => {
                    // If nobody is left to say so, it has.
                    let _ = ended.wait_for(Option::is_some).await;
                }
                None if detached => std::future::pending().await,
                None => {}
            }
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("request_id", &self.request_id)
            .field("cancelled", &self.withdrawn.is_cancelled())
            .finish_non_exhaustive()
    }
}
