//! The context of a tool call.

use std::fmt;

use rmcp::model::ProgressNotificationParam;
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::conn::Context;

/// The key under which the CLI names the model's call.
const TOOL_USE_ID: &str = "claudecode/toolUseId";

/// The context of a tool call.
#[derive(Clone)]
pub struct ToolContext {
    request: RequestContext<RoleServer>,
    context: Option<Context>,
}

impl ToolContext {
    pub(super) fn new(request: RequestContext<RoleServer>) -> Self {
        let context = request.extensions.get::<Context>().cloned();
        Self { request, context }
    }

    /// The id of the model's call, as in [`ToolUse`](crate::ToolUse) and in permission requests. `None` if not the model made the
    /// call, and for CLIs that do not send it.
    pub fn tool_use_id(&self) -> Option<&str> {
        self.request.meta.get(TOOL_USE_ID)?.as_str()
    }

    /// Fires when the call is cancelled: the turn was interrupted, a deadline passed, or the session ended.
    ///
    /// The tool's own future is dropped then. Use this for spawned tasks, and for blocking work.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.request.ct
    }

    /// The context of the CLI's request.
    pub(crate) fn request(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// Reports progress: `progress` of `total`, in any unit. `progress` should grow with every call.
    ///
    /// It does nothing if the CLI did not request progress, and after the end of the session. The CLI does not report progress on
    /// its stdout, and progress does not extend its time limit.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the report may have been sent or not.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = self.request.meta.get_progress_token() else {
            return;
        };
        let mut told = ProgressNotificationParam::new(token, progress);
        told.total = total;
        told.message = message.map(str::to_owned);
        // Nobody is left who wants to know.
        let _ = self.request.peer.notify_progress(told).await;
    }

    /// The CLI's metadata of the call (`_meta`), by key.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.request.meta.get(key)
    }

    /// The CLI as MCP's client, for what there is no method for.
    pub fn peer(&self) -> &Peer<RoleServer> {
        &self.request.peer
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("tool_use_id", &self.tool_use_id())
            .field("cancelled", &self.request.ct.is_cancelled())
            .finish_non_exhaustive()
    }
}
