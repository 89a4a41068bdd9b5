//! The first version of the protocol: what an editor asks in it, handed on.
//!
//! The official crate handles one message at a time and waits for each handler. So a handler hands what it got to a task and returns;
//! nothing that takes time, and nothing of the editor's or the CLI's, happens there.

use std::sync::Arc;

use agent_client_protocol as sdk;
use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Agent, ConnectTo, on_receive_notification, on_receive_request};

use crate::answer::Answer;
use crate::capabilities;
use crate::hub::Hub;
use crate::mcp::Servers;
use crate::open::{Opened, Wanted};
use crate::rewind::Rewind;
use crate::session::servers::{McpReconnect, McpStatus, McpToggle, SetMcpServers, Wish};
use crate::steer::Steer;

/// Serves an editor that speaks this version.
pub(super) fn agent(hub: &Arc<Hub>) -> impl ConnectTo<sdk::Client> + use<> {
    let of = || Arc::clone(hub);
    let (initialize, new_session, prompt, cancel) = (of(), of(), of(), of());
    let (set_mode, set_option, close_session) = (of(), of(), of());
    let (load_session, resume_session, fork_session) = (of(), of(), of());
    let (list_sessions, delete_session, logout, of_server) = (of(), of(), of(), of());
    let (rewind, set_title, archive, unarchive, status) = (of(), of(), of(), of(), of());
    let (auth_status, authenticate, steer) = (of(), of(), of());
    let (set_servers, status_of_servers, reconnect, toggle) = (of(), of(), of(), of());
    Agent
        .v1()
        .name("outrigger-acp")
        .on_receive_request(
            async move |request: acp::InitializeRequest, responder, _| {
                let answer = capabilities::answer(&request.client_capabilities);
                Answer::from(responder).give(Ok(answer));
                initialize.met(request.client_capabilities);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::AuthenticateRequest, responder, connection| {
                authenticate.authenticate(request, connection, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::NewSessionRequest, responder, connection| {
                new_session.open(
                    Wanted::new(request),
                    connection,
                    Answer::new(responder, opened_new),
                );
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::PromptRequest, responder, _| {
                prompt.prompt(request, Answer::from(responder).into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: Steer, responder, _| {
                steer.steer(request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: acp::CancelNotification, _| {
                cancel.cancel(&notification);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_notification(
            async move |notification: acp::MessageMcpNotification, _| {
                of_server.routes.tell(notification);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: acp::SetSessionModeRequest, responder, _| {
                set_mode.set_mode(request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::SetSessionConfigOptionRequest, responder, _| {
                set_option.set_option(request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::CloseSessionRequest, responder, _| {
                close_session.close_session(&request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::LoadSessionRequest, responder, connection| {
                load_session.open(
                    Wanted::load(request),
                    connection,
                    Answer::new(responder, opened_load),
                );
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::ResumeSessionRequest, responder, connection| {
                resume_session.open(
                    Wanted::resume(request),
                    connection,
                    Answer::new(responder, opened_resume),
                );
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::ForkSessionRequest, responder, connection| {
                let answer = Answer::new(responder, opened_fork);
                match Wanted::fork(request) {
                    Ok(wanted) => fork_session.open(wanted, connection, answer),
                    Err(error) => answer.refuse(error),
                }
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::ListSessionsRequest, responder, _| {
                list_sessions.list_sessions(request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::DeleteSessionRequest, responder, _| {
                delete_session.delete_session(request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetMcpServers, responder, _| {
                let wish = Servers::of(&request.mcp_servers).map(Wish::Set);
                set_servers.mcp(&request.session_id, wish, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: McpStatus, responder, _| {
                status_of_servers.mcp(&request.session_id, Ok(Wish::Status), responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: McpReconnect, responder, _| {
                let wish = Wish::Reconnect(request.server_name);
                reconnect.mcp(&request.session_id, Ok(wish), responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: McpToggle, responder, _| {
                let McpToggle {
                    server_name: name,
                    enabled,
                    ..
                } = request;
                toggle.mcp(
                    &request.session_id,
                    Ok(Wish::Toggle { name, enabled }),
                    responder.into(),
                );
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: acp::LogoutRequest, responder, connection| {
                logout.logout(connection, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: acp::AuthStatusRequest, responder, _| {
                auth_status.auth_status(responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: Rewind, responder, _| {
                rewind.rewind(request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::SetSessionTitleRequest, responder, connection| {
                set_title.set_title(request, responder.into(), connection);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::ArchiveSessionRequest, responder, _| {
                archive.archive(request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::UnarchiveSessionRequest, responder, _| {
                unarchive.unarchive(request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::SessionStatusRequest, responder, _| {
                status.status(request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
}

fn opened_new(opened: Opened) -> acp::NewSessionResponse {
    acp::NewSessionResponse::new(opened.id)
        .modes(opened.choices.as_modes())
        .config_options(opened.choices.as_options())
        .meta(opened.meta)
}

fn opened_load(opened: Opened) -> acp::LoadSessionResponse {
    acp::LoadSessionResponse::new()
        .modes(opened.choices.as_modes())
        .config_options(opened.choices.as_options())
        .meta(opened.meta)
}

fn opened_resume(opened: Opened) -> acp::ResumeSessionResponse {
    acp::ResumeSessionResponse::new()
        .modes(opened.choices.as_modes())
        .config_options(opened.choices.as_options())
        .meta(opened.meta)
}

fn opened_fork(opened: Opened) -> acp::ForkSessionResponse {
    acp::ForkSessionResponse::new(opened.id)
        .modes(opened.choices.as_modes())
        .config_options(opened.choices.as_options())
        .meta(opened.meta)
}
