//! What a tool knows of the call that it answers.

use std::fmt;

use rmcp::model::ProgressNotificationParam;
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::conn::Context;

/// The key under which the CLI names the model's call.
const TOOL_USE_ID: &str = "claudecode/toolUseId";

/// What a tool knows of the call that it answers.
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

    /// The id of the model's call, as in [`ToolUse`](crate::ToolUse) and in permission requests. `None` when it was not the
    /// model that called, and for CLIs that do not tell.
    pub fn tool_use_id(&self) -> Option<&str> {
        self.request.meta.get(TOOL_USE_ID)?.as_str()
    }

    /// Fires when the call is cancelled: the turn was interrupted, a deadline passed, or the session ended.
    ///
    /// The tool's own future is dropped then. This is for what it has spawned, and for blocking work that it waits for.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.request.ct
    }

    /// What is known of the CLI's request.
    pub(crate) fn request(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// Tells how far the work is: `progress` of `total`, in units of your own. It should grow with every call.
    ///
    /// Does nothing where the CLI does not want to know, and when the session is over. The CLI shows it to nobody on its own
    /// standard output; it does not extend the CLI's time limit either.
    ///
    /// # Cancel safety
    /// Dropped before it is done, it may have been told or not.
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

    /// What the CLI attached to the call (`_meta`), by key.
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
