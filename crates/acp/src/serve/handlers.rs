//! The macros for the handlers of a connection, and how their messages are read.
//!
//! The official crate handles one message at a time and waits for each handler. So a handler passes its message to a task and returns.

use agent_client_protocol::{Error, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, UntypedMessage};
use serde_json::Value;

/// A message that may not decode.
///
/// To the official crate a message that does not decode is a handler that fails. The crate logs that, with a description of all handlers, in which
/// each handler doubles the escapes of those before it: with as many handlers as here, the description never ends.
#[derive(Debug, Clone)]
pub(super) struct Decoded<T>(pub(super) Result<T, Error>);

impl<T: JsonRpcMessage> JsonRpcMessage for Decoded<T> {
    fn matches_method(method: &str) -> bool {
        T::matches_method(method)
    }

    fn method(&self) -> &str {
        self.0.as_ref().map_or("", T::method)
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage, Error> {
        match &self.0 {
            Ok(message) => message.to_untyped_message(),
            Err(error) => Err(error.clone()),
        }
    }

    fn parse_message(method: &str, params: &Value) -> Result<Self, Error> {
        Ok(Self(T::parse_message(method, params).map_err(without_params)))
    }
}

impl<T: JsonRpcRequest> JsonRpcRequest for Decoded<T> {
    type Response = T::Response;
}

impl<T: JsonRpcNotification> JsonRpcNotification for Decoded<T> {}

/// The error of a message without the message, which the editor has, and which may be long.
fn without_params(mut error: Error) -> Error {
    if let Some(data) = error.data.as_mut().and_then(Value::as_object_mut) {
        data.remove("json");
    }
    error
}

/// An agent with these handlers, and those that are the same in each version. A row is `request(message: Type, responder, connection)`
/// or `notification(message: Type)`, and what the handler does; `$hub` is the handler's own clone of the hub.
macro_rules! agent {
    ($hub:ident, $agent:expr, $($rows:tt)*) => {
        handlers! { $hub, $agent.name("outrigger-acp");
            $($rows)*
            request(message: McpStatus, responder, _) =>
                $hub.mcp(&message.session_id, Ok(Wish::Status), responder.into());
            request(message: McpReconnect, responder, _) =>
                $hub.mcp(&message.session_id, Ok(Wish::Reconnect(message.server_name)), responder.into());
            request(message: McpToggle, responder, _) => {
                let (name, enabled) = (message.server_name, message.enabled);
                $hub.mcp(&message.session_id, Ok(Wish::Toggle { name, enabled }), responder.into());
            };
            request(message: ReadHistory, responder, connection) =>
                $hub.read_history(message, connection, responder.into());
            request(message: Rewind, responder, _) => $hub.rewind(message, responder.into());
        }
    };
}

/// The rows of [`agent!`], one behind the other.
macro_rules! handlers {
    ($hub:ident, $agent:expr;) => { $agent };
    (
        $hub:ident, $agent:expr;
        request($message:tt: $kind:ty, $responder:tt, $connection:tt) => $work:expr;
        $($rows:tt)*
    ) => {
        handlers! { $hub, $agent.on_receive_request(
            {
                #[allow(unused_variables, reason = "one handler needs no hub")]
                let $hub = Arc::clone($hub);
                async move |message: Decoded<$kind>, $responder, $connection| {
                    match message.0 {
                        Ok($message) => {
                            $work;
                        }
                        Err(error) => ResponseSender::from($responder).refuse(error),
                    }
                    Ok(())
                }
            },
            on_receive_request!(),
        ); $($rows)* }
    };
    ($hub:ident, $agent:expr; notification($message:tt: $kind:ty) => $work:expr; $($rows:tt)*) => {
        handlers! { $hub, $agent.on_receive_notification(
            {
                let $hub = Arc::clone($hub);
                async move |message: Decoded<$kind>, _| {
                    match message.0 {
                        Ok($message) => {
                            $work;
                        }
                        // Notifications have no answer.
                        Err(error) => tracing::warn!(%error, "a notification of the editor does not decode"),
                    }
                    Ok(())
                }
            },
            on_receive_notification!(),
        ); $($rows)* }
    };
}
