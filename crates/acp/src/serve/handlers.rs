//! The macros for the handlers of a connection.
//!
//! The official crate handles one message at a time and waits for each handler. So a handler passes its message to a task and returns.

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
                async move |$message: $kind, $responder, $connection| {
                    $work;
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
                async move |$message: $kind, _| {
                    $work;
                    Ok(())
                }
            },
            on_receive_notification!(),
        ); $($rows)* }
    };
}
