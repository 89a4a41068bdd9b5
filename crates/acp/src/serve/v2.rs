//! The handlers of the draft of protocol version 2: they convert requests to the types of version 1, and answers back.

use std::sync::Arc;

use agent_client_protocol as sdk;
use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use agent_client_protocol::{Agent, ConnectTo, on_receive_notification, on_receive_request};

use super::handlers::Decoded;
use crate::error::bad;
use crate::event::State;
use crate::hub::Hub;
use crate::mcp::Servers;
use crate::open_session::{Opened, Origin, Wanted, up_to};
use crate::replay::ReadHistory;
use crate::response_sender::ResponseSender;
use crate::rewind::Rewind;
use crate::session::SessionCommand;
use crate::session::mcp_servers::{DraftSetMcpServers, McpReconnect, McpStatus, McpToggle, Wish};
use crate::session::prompt_reply::PromptReply;
use crate::wire::v2::{self as wire, convert};
use crate::{capabilities, wire::Update};

/// The session that a request wants.
macro_rules! wanted {
    ($request:ident, $origin:expr) => {
        Wanted::of_draft(
            $request.cwd,
            $request.additional_directories,
            &$request.mcp_servers,
            $request.system_prompt.as_ref(),
            $origin,
            $request.meta,
        )
    };
}

/// The response for an opened session.
macro_rules! opened {
    ($opened:ident, $response:expr) => {
        $response
            .config_options(convert::options(&$opened.choices.as_options()))
            .meta($opened.meta)
    };
}

pub(super) fn agent(hub: &Arc<Hub>) -> impl ConnectTo<sdk::Client> + use<> {
    agent! { hub, Agent.v2(),
        request(request: draft::InitializeRequest, responder, _) => {
            let client = convert::capabilities(request.capabilities);
            let answer = match &hub.config.host {
                None => capabilities::draft_answer(&client),
                Some(_) => capabilities::draft_answer_on_host(),
            };
            hub.initialized(client);
            ResponseSender::from(responder).give(Ok(answer));
        };
        request(request: draft::LoginAuthRequest, responder, _) => {
            // All ways to sign in are terminal methods, which this request does not serve.
            let method = request.method_id.0;
            let why = format!(
                "{method:?} is not served by this request; sign in in a terminal, with the method's arguments"
            );
            ResponseSender::from(responder).refuse(bad("methodId", why));
        };
        request(_: draft::LogoutAuthRequest, responder, connection) =>
            hub.logout(connection, ResponseSender::new(responder, |_| draft::LogoutAuthResponse::new()));
        request(_: draft::AuthStatusRequest, responder, _) =>
            hub.auth_status(ResponseSender::new(responder, convert::auth_status));

        request(request: draft::NewSessionRequest, responder, connection) => {
            let answer = ResponseSender::new(responder, |opened: Opened| {
                opened!(opened, draft::NewSessionResponse::new(opened.id.0))
            });
            hub.open(wanted!(request, Origin::New), connection, answer);
        };
        request(request: draft::ResumeSessionRequest, responder, connection) => {
            let id = acp::SessionId::new(request.session_id.0);
            let origin = match request.replay_from {
                None => Ok(Origin::Resume(id)),
                Some(draft::ReplayFrom::Start(_)) => Ok(Origin::Load(id)),
                Some(_) => Err(bad("replayFrom", "a replay can only begin at the start")),
            };
            let wanted = origin.and_then(|origin| wanted!(request, origin));
            let client = hub.client(connection.clone());
            let answer = ResponseSender::new(responder, move |opened: Opened| {
                // The state comes behind the replayed messages, and before the answer.
                let idle = wire::state(State::Idle, None, Vec::new());
                client.update(&opened.id, Update::V2(Box::new(idle)));
                opened!(opened, draft::ResumeSessionResponse::new())
            });
            hub.open(wanted, connection, answer);
        };
        request(request: draft::ForkSessionRequest, responder, connection) => {
            let id = acp::SessionId::new(request.session_id.0);
            let wanted = up_to(request.meta.as_ref())
                .and_then(|up_to| wanted!(request, Origin::Fork(id, up_to)));
            let answer = ResponseSender::new(responder, |opened: Opened| {
                opened!(opened, draft::ForkSessionResponse::new(opened.id.0))
            });
            hub.open(wanted, connection, answer);
        };
        request(request: draft::CloseSessionRequest, responder, _) => {
            let wanted = acp::CloseSessionRequest::new(request.session_id.0);
            let answer = ResponseSender::new(responder, |_| draft::CloseSessionResponse::new());
            // A session that is not open is closed already.
            hub.close_session(&wanted, false, answer);
        };

        request(request: draft::ListSessionsRequest, responder, _) => {
            let wanted = acp::ListSessionsRequest::new()
                .cwd(request.cwd.map(|cwd| cwd.0))
                .cursor(request.cursor.map(|cursor| cursor.0.to_string()))
                .archived(request.archived.and_then(convert::filter))
                .meta(request.meta);
            hub.list_sessions(wanted, ResponseSender::new(responder, convert::sessions));
        };
        request(request: draft::DeleteSessionRequest, responder, _) => {
            let wanted = acp::DeleteSessionRequest::new(request.session_id.0);
            hub.delete_session(wanted, ResponseSender::new(responder, |_| draft::DeleteSessionResponse::new()));
        };
        request(request: draft::SetSessionTitleRequest, responder, connection) => {
            let wanted = acp::SetSessionTitleRequest::new(request.session_id.0, request.title);
            let answer = ResponseSender::new(responder, |done: acp::SetSessionTitleResponse| {
                draft::SetSessionTitleResponse::new(done.title)
            });
            hub.set_title(wanted, answer, connection);
        };
        request(request: draft::ArchiveSessionRequest, responder, _) => {
            let wanted = acp::ArchiveSessionRequest::new(request.session_id.0);
            hub.archive(wanted, ResponseSender::new(responder, |_| draft::ArchiveSessionResponse::new()));
        };
        request(request: draft::UnarchiveSessionRequest, responder, _) => {
            let wanted = acp::UnarchiveSessionRequest::new(request.session_id.0);
            hub.unarchive(wanted, ResponseSender::new(responder, |_| draft::UnarchiveSessionResponse::new()));
        };
        request(request: draft::SessionStatusRequest, responder, _) => {
            let wanted = acp::SessionStatusRequest::new(request.session_id.0);
            hub.status(wanted, ResponseSender::new(responder, |status| convert::status(&status)));
        };

        request(request: draft::PromptRequest, responder, _) => {
            let answer = ResponseSender::from(responder);
            match convert::prompt_blocks(request.prompt.clone()) {
                Ok(blocks) => {
                    let wanted = acp::PromptRequest::new(request.session_id.0, blocks).meta(request.meta);
                    let answer = PromptReply::at_begin(answer, request.prompt);
                    hub.command(&wanted.session_id.clone(), SessionCommand::Prompt { request: wanted, answer });
                }
                Err(error) => answer.refuse(error),
            }
        };
        notification(notification: draft::CancelSessionNotification) =>
            hub.cancel(&acp::SessionId::new(notification.session_id.0));
        request(request: draft::SetSessionConfigOptionRequest, responder, _) => {
            let answer = ResponseSender::new(responder, |done: acp::SetSessionConfigOptionResponse| {
                draft::SetSessionConfigOptionResponse::new(convert::options(&done.config_options))
            });
            match convert::chosen(request.value) {
                Ok(value) => {
                    let session = acp::SessionId::new(request.session_id.0);
                    let option = request.config_id.0;
                    let request = acp::SetSessionConfigOptionRequest::new(session.clone(), option, value);
                    hub.command(&session, SessionCommand::SetOption { request, answer });
                }
                Err(error) => answer.refuse(error),
            }
        };

        notification(notification: draft::MessageMcpNotification) =>
            hub.routes.pass_on(convert::mcp_notification(notification));
        request(request: DraftSetMcpServers, responder, _) => {
            let wish = convert::servers(&request.mcp_servers)
                .and_then(|servers| Servers::of(&servers))
                .map(Wish::Set);
            hub.mcp(&request.session_id, wish, responder.into());
        };
    }
}
