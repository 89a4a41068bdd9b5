//! Servers of tools, and all others that are written with [`rmcp`]: each serves a raw connection.

mod guarded;
mod output;
mod schema;
mod tool;
mod tool_context;
mod toolbox;

use std::io;
use std::sync::Arc;

use outrigger_protocol::RawJson;
use rmcp::ServerHandler;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage,
    ServerNotification, ServerResult,
};
use rmcp::service::{DynService, RoleServer, ServiceExt, serve_server_with_ct};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use self::guarded::Guarded;
use self::output::failed;
pub use self::output::{IntoToolResult, Json};
pub use self::tool::Tool;
pub use self::tool_context::ToolContext;
use self::toolbox::ToolServer;
pub use self::toolbox::ToolSet;
pub(in crate::mcp) use self::toolbox::{Card, Toolbox};
use super::jsonrpc::{INTERNAL_ERROR, INVALID_REQUEST, MessageHead, RequestId, failure};
use super::panics::caught_call;
use super::raw::{RawConnection, RawMessage, Serve};

/// A server as rmcp runs it.
type RmcpServer = Box<dyn DynService<RoleServer>>;

/// Serves by tools alone.
pub(super) fn serve_tools(card: &Card, toolbox: &Arc<Toolbox>) -> Serve {
    let (card, toolbox) = (card.clone(), Arc::clone(toolbox));
    let make = move || {
        let server = ToolServer {
            card: card.clone(),
            toolbox: Arc::clone(&toolbox),
        };
        server.into_dyn()
    };
    serve(make, false)
}

/// Serves by what the function makes. A cancelled request may look at its token before its future is dropped.
pub(super) fn serve_handler<H: ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> Serve {
    serve(move || make().into_dyn(), true)
}

fn serve(make: impl Fn() -> RmcpServer + Send + Sync + 'static, has_grace: bool) -> Serve {
    let make = Arc::new(make);
    Arc::new(move |connection, end| {
        let make = Arc::clone(&make);
        Box::pin(async move { run(&*make, has_grace, connection, end).await })
    })
}

async fn run(
    make: &(dyn Fn() -> RmcpServer + Send + Sync),
    has_grace: bool,
    mut connection: RawConnection,
    end: CancellationToken,
) {
    let name = connection.server_name();
    let handler = match caught_call(make) {
        Ok(handler) => handler,
        Err(panic) => {
            tracing::error!(server = %name, panic, "making an MCP server panicked");
            connection
                .link
                .refuse_all(&format!("the server could not be made: {panic}"));
            return;
        }
    };
    match serve_server_with_ct(Guarded { handler, has_grace }, Wire(connection), end).await {
        Ok(running) => {
            let ended = running.waiting().await;
            tracing::debug!(server = %name, ?ended, "rmcp has let go of a connection");
        }
        Err(error) => tracing::debug!(server = %name, %error, "an MCP server did not begin"),
    }
}

/// A raw connection as rmcp wants it.
struct Wire(RawConnection);

impl Wire {
    /// Reads a message; one that can't be read is answered here.
    fn read(&self, message: RawMessage) -> Option<ClientJsonRpcMessage> {
        let RawMessage { message, context } = message;
        let read = match message.decode::<ClientJsonRpcMessage>() {
            Ok(JsonRpcMessage::Request(request)) if is_misread(&request.request) => {
                Err("its parameters are not those of a tool call".to_owned())
            }
            Ok(message) => Ok(message),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(mut message) => {
                if let (JsonRpcMessage::Request(request), Some(context)) = (&mut message, context) {
                    request.request.extensions_mut().insert(context);
                }
                Some(message)
            }
            Err(error) => {
                let head: MessageHead = message.decode().unwrap_or_default();
                let why = format!("the message could not be read: {error}");
                let sender = &self.0.link.sender;
                tracing::warn!(server = %sender.name, method = head.method, why);
                if let Some(id) = head.id() {
                    // The model is to see what is wrong with its call.
                    let answer = if head.method.as_deref() == Some("tools/call") {
                        let result = ServerResult::CallToolResult(failed(why));
                        encoded(&id, &JsonRpcMessage::response(result, theirs(&id)))
                    } else {
                        failure(Some(&id), INVALID_REQUEST, &why)
                    };
                    sender.shared.answer(&id, answer);
                }
                None
            }
        }
    }
}

/// The text of a reply, or of one that says why there is none.
fn encoded(id: &RequestId, reply: &ServerJsonRpcMessage) -> RawJson {
    RawJson::encode(reply).unwrap_or_else(|error| {
        let why = format!("the answer could not be written as JSON: {error}");
        failure(Some(id), INTERNAL_ERROR, &why)
    })
}

fn theirs(id: &RequestId) -> rmcp::model::RequestId {
    match id {
        RequestId::Number(number) => rmcp::model::RequestId::Number(*number),
        RequestId::String(text) => rmcp::model::RequestId::String(text.as_str().into()),
    }
}

fn ours(id: &rmcp::model::RequestId) -> RequestId {
    match id {
        rmcp::model::RequestId::Number(number) => RequestId::Number(*number),
        rmcp::model::RequestId::String(text) => RequestId::String(text.as_ref().to_owned()),
    }
}

impl Transport<RoleServer> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sender = self.0.sender();
        async move {
            let replied = match &item {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => match &error.id {
                    Some(id) => Some(id),
                    // Nobody can tell what it replies to.
                    None => return Ok(()),
                },
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
            };
            if let Some(id) = replied {
                let id = ours(id);
                sender.shared.answer(&id, encoded(&id, &item));
                return Ok(());
            }
            let is_change_of_tools = matches!(
                &item,
                JsonRpcMessage::Notification(notification)
                    if matches!(notification.notification, ServerNotification::ToolListChangedNotification(_))
            );
            let message = RawJson::encode(&item).map_err(io::Error::other)?;
            sender.send_unanswered(message, is_change_of_tools).await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let message = self.0.next().await?;
            if let Some(message) = self.read(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.0.link.close();
        self.0.link.sender.shared.end();
        Ok(())
    }
}

/// Whether a tool call was read as something that only has its name.
fn is_misread(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::CustomRequest(request) if request.method == "tools/call")
}
