//! What stands between rmcp and the program's own code: panics stay in their request, and what is cancelled ends.

use std::borrow::Cow;
use std::pin::pin;
use std::time::Duration;

use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, ProtocolVersion, ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, Service};

use super::RmcpServer;
use super::output::failed;
use crate::conn::Context;
use crate::mcp::jsonrpc::CANCELLED;
use crate::mcp::panics::caught;

/// How long a handler has to notice that its request was cancelled.
const GRACE: Duration = Duration::from_secs(5);

pub(super) struct Guarded {
    pub(super) handler: RmcpServer,
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
            (None, _) => Err(ErrorData::new(
                ErrorCode(CANCELLED),
                "the request was cancelled",
                None,
            )),
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
