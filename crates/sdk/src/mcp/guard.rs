//! What stands between rmcp and the program's own code: panics stay in their request, and what is cancelled ends.

use std::any::Any;
use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::Duration;

use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, ProtocolVersion, ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, Service};

use super::output::failed;
use super::server::Service as Handler;
use crate::callbacks::Context;

/// How long a handler has to notice that its request was cancelled.
const GRACE: Duration = Duration::from_secs(5);

/// A code for what has no code in JSON-RPC, as language servers use it.
pub(super) const CANCELLED: ErrorCode = ErrorCode(-32800);

pub(super) struct Guarded {
    pub(super) handler: Handler,
    pub(super) has_grace: bool,
}

impl Service<RoleServer> for Guarded {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let tool = match &request {
            ClientRequest::CallToolRequest(call) => Some(call.params.name.to_string()),
            _ => None,
        };
        let (token, asked) = (context.ct.clone(), context.extensions.get::<Context>().cloned());
        let mut handling = pin!(caught(|| self.handler.handle_request(request, context)));
        let cancelled = async {
            match &asked {
                None => token.cancelled().await,
                Some(asked) => tokio::select! {
                    () = token.cancelled() => {}
                    () = asked.cancelled().cancelled() => token.cancel(),
                },
            }
        };
        let done = tokio::select! {
            biased;
            done = &mut handling => Some(done),
            () = cancelled => None,
        };
        let done = match done {
            None if self.has_grace => tokio::time::timeout(GRACE, handling).await.ok(),
            done => done,
        };
        match (done, tool) {
            (Some(Ok(answer)), _) => answer,
            (Some(Err(panic)), Some(tool)) => {
                tracing::error!(tool, panic, "a tool panicked");
                Ok(failed(format!("the tool {tool:?} failed: it panicked: {panic}")).into())
            }
            (Some(Err(panic)), None) => {
                tracing::error!(panic, "an MCP server panicked");
                Err(ErrorData::internal_error(
                    format!("the server panicked: {panic}"),
                    None,
                ))
            }
            (None, _) => Err(ErrorData::new(CANCELLED, "the request was cancelled", None)),
        }
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        caught(|| self.handler.handle_notification(notification, context))
            .await
            .unwrap_or_else(|panic| {
                tracing::error!(panic, "an MCP server panicked at a notification");
                Ok(())
            })
    }

    fn get_info(&self) -> ServerConfig {
        self.handler.get_info()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.handler.supported_protocol_versions()
    }
}

/// Makes and runs a future of the program's own; a panic is its error.
pub(super) async fn caught<F: Future>(make: impl FnOnce() -> F) -> Result<F::Output, String> {
    let future = caught_call(make)?;
    let mut future = pin!(future);
    poll_fn(|cx| {
        // Not polled again after a panic.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(message(&*panic))),
        }
    })
    .await
}

/// Calls a function of the program's own; a panic is its error.
pub(super) fn caught_call<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("(without a message)").to_owned()
}
