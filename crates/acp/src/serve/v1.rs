//! The handlers of protocol version 1.

use std::sync::Arc;

use agent_client_protocol as sdk;
use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Agent, ConnectTo, on_receive_notification, on_receive_request};

use super::handlers::Decoded;
use crate::capabilities;
use crate::hub::Hub;
use crate::mcp::Servers;
use crate::open_session::{Opened, Origin, Wanted, up_to};
use crate::replay::ReadHistory;
use crate::response_sender::ResponseSender;
use crate::rewind::Rewind;
use crate::session::SessionCommand;
use crate::session::mcp_servers::{McpReconnect, McpStatus, McpToggle, SetMcpServers, Wish};
use crate::steer::Steer;

/// The session that a request wants.
macro_rules! wanted {
    ($request:ident, $origin:expr) => {
        Wanted {
            origin: $origin,
            cwd: $request.cwd,
            directories: $request.additional_directories,
            servers: $request.mcp_servers,
            system_prompt: $request.system_prompt,
            meta: $request.meta,
        }
    };
}

/// The answer that is due for an opened session.
macro_rules! opened {
    ($responder:ident, $opened:ident => $response:expr) => {
        ResponseSender::new($responder, |$opened: Opened| {
            $response
                .modes($opened.choices.as_modes())
                .config_options($opened.choices.as_options())
                .meta($opened.meta)
        })
    };
}

pub(super) fn agent(hub: &Arc<Hub>) -> impl ConnectTo<sdk::Client> + use<> {
    agent! { hub, Agent.v1(),
        request(request: acp::InitializeRequest, responder, _) => {
            let answer = match &hub.config.host {
                None => capabilities::answer(&request.client_capabilities),
                Some(_) => capabilities::answer_on_host(),
            };
            ResponseSender::from(responder).give(Ok(answer));
            hub.initialized(request.client_capabilities);
        };
        request(request: acp::AuthenticateRequest, responder, connection) =>
            hub.authenticate(request, connection, responder.into());
        request(_: acp::LogoutRequest, responder, connection) => hub.logout(connection, responder.into());
        request(_: acp::AuthStatusRequest, responder, _) => hub.auth_status(responder.into());

        request(request: acp::NewSessionRequest, responder, connection) => {
            let answer = opened!(responder, opened => acp::NewSessionResponse::new(opened.id));
            hub.open(Ok(wanted!(request, Origin::New)), connection, answer);
        };
        request(request: acp::LoadSessionRequest, responder, connection) => {
            let answer = opened!(responder, opened => acp::LoadSessionResponse::new());
            hub.open(Ok(wanted!(request, Origin::Load(request.session_id))), connection, answer);
        };
        request(request: acp::ResumeSessionRequest, responder, connection) => {
            let answer = opened!(responder, opened => acp::ResumeSessionResponse::new());
            hub.open(Ok(wanted!(request, Origin::Resume(request.session_id))), connection, answer);
        };
        request(request: acp::ForkSessionRequest, responder, connection) => {
            let answer = opened!(responder, opened => acp::ForkSessionResponse::new(opened.id));
            let wanted = up_to(request.meta.as_ref())
                .map(|up_to| wanted!(request, Origin::Fork(request.session_id, up_to)));
            hub.open(wanted, connection, answer);
        };
        request(request: acp::CloseSessionRequest, responder, _) =>
            hub.close_session(&request, true, responder.into());

        request(request: acp::ListSessionsRequest, responder, _) =>
            hub.list_sessions(request, responder.into());
        request(request: acp::DeleteSessionRequest, responder, _) =>
            hub.delete_session(request, responder.into());
        request(request: acp::SetSessionTitleRequest, responder, connection) =>
            hub.set_title(request, responder.into(), connection);
        request(request: acp::ArchiveSessionRequest, responder, _) => hub.archive(request, responder.into());
        request(request: acp::UnarchiveSessionRequest, responder, _) =>
            hub.unarchive(request, responder.into());
        request(request: acp::SessionStatusRequest, responder, _) => hub.status(request, responder.into());

        request(request: acp::PromptRequest, responder, _) => {
            let answer = ResponseSender::from(responder).into();
            hub.command(&request.session_id.clone(), SessionCommand::Prompt { request, answer });
        };
        request(request: Steer, responder, _) => hub.steer(request, responder.into());
        notification(notification: acp::CancelNotification) => hub.cancel(&notification.session_id);
        request(request: acp::SetSessionModeRequest, responder, _) => {
            let answer = responder.into();
            hub.command(&request.session_id.clone(), SessionCommand::SetMode { request, answer });
        };
        request(request: acp::SetSessionConfigOptionRequest, responder, _) => {
            let answer = responder.into();
            hub.command(&request.session_id.clone(), SessionCommand::SetOption { request, answer });
        };

        notification(notification: acp::MessageMcpNotification) => hub.routes.pass_on(notification);
        request(request: SetMcpServers, responder, _) => {
            let wish = Servers::of(&request.mcp_servers).map(Wish::Set);
            hub.mcp(&request.session_id, wish, responder.into());
        };
    }
}
