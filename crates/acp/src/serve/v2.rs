//! The draft of the second version of the protocol: what an editor asks in it, handed on in the words of the first.
//!
//! As with the first version, no handler waits for anything.

use std::sync::Arc;

use agent_client_protocol as sdk;
use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::{ConnectionTo, schema as draft};
use agent_client_protocol::{Agent, ConnectTo, Error, on_receive_notification, on_receive_request};

use crate::answer::Answer;
use crate::error::bad;
use crate::event::Doing;
use crate::hub::Hub;
use crate::mcp::Servers;
use crate::open::{Opened, Origin, Wanted, up_to};
use crate::rewind::Rewind;
use crate::session::owed::Owed;
use crate::session::servers::{DraftSetMcpServers, McpReconnect, McpStatus, McpToggle, Wish};
use crate::wire::v2::{self as wire, convert};
use crate::{capabilities, wire::Update};

/// Serves an editor that speaks this version.
pub(super) fn agent(hub: &Arc<Hub>) -> impl ConnectTo<sdk::Client> + use<> {
    let of = || Arc::clone(hub);
    let (set_servers, status_of_servers, reconnect, toggle) = (of(), of(), of(), of());
    let (initialize, new_session, prompt, cancel) = (of(), of(), of(), of());
    let (set_option, close_session, resume_session, fork_session) = (of(), of(), of(), of());
    let (list_sessions, delete_session, logout, of_server) = (of(), of(), of(), of());
    let auth_status = of();
    let (rewind, set_title, archive, unarchive, status) = (of(), of(), of(), of(), of());
    Agent
        .v2()
        .name("outrigger-acp")
        .on_receive_request(
            async move |request: draft::InitializeRequest, responder, _| {
                let client = convert::capabilities(request.capabilities);
                let answer = capabilities::draft_answer(&client);
                initialize.met(client);
                Answer::from(responder).give(Ok(answer));
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::LoginAuthRequest, responder, _| {
                // All ways to sign in are in a terminal, and the editor is not to ask for those here.
                let method = request.method_id.0;
                Answer::from(responder).refuse(bad(
                    "methodId",
                    format!("{method:?} is none that is asked for here; sign in in a terminal, with the method's arguments"),
                ));
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: draft::LogoutAuthRequest, responder, connection| {
                let answer = Answer::new(responder, |_| draft::LogoutAuthResponse::new());
                logout.logout(connection, answer);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: draft::AuthStatusRequest, responder, _| {
                auth_status.auth_status(Answer::new(responder, convert::auth_status));
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::NewSessionRequest, responder, connection| {
                let wanted = Wanted::of_draft(
                    request.cwd,
                    request.additional_directories,
                    &request.mcp_servers,
                    request.system_prompt.as_ref(),
                    Origin::New,
                    request.meta,
                );
                let answer = Answer::new(responder, |opened: Opened| {
                    draft::NewSessionResponse::new(id_of(&opened.id))
                        .config_options(options_of(&opened))
                        .meta(opened.meta)
                });
                open(&new_session, wanted, connection, answer);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::ResumeSessionRequest, responder, connection| {
                let id = acp::SessionId::new(request.session_id.0);
                let origin = match request.replay_from {
                    None => Ok(Origin::Resume(id)),
                    Some(draft::ReplayFrom::Start(_)) => Ok(Origin::Load(id)),
                    Some(_) => Err(bad("replayFrom", "there is no other place to begin than the start")),
                };
                let wanted = origin.and_then(|origin| {
                    Wanted::of_draft(
                        request.cwd,
                        request.additional_directories,
                        &request.mcp_servers,
                        request.system_prompt.as_ref(),
                        origin,
                        request.meta,
                    )
                });
                let client = resume_session.client(connection.clone());
                let answer = Answer::new(responder, move |opened: Opened| {
                    // The state comes behind what is told again, and before the answer.
                    let idle = wire::state(Doing::Idle, None, Vec::new());
                    client.update(&opened.id, Update::V2(Box::new(idle)));
                    draft::ResumeSessionResponse::new()
                        .config_options(options_of(&opened))
                        .meta(opened.meta)
                });
                open(&resume_session, wanted, connection, answer);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::ForkSessionRequest, responder, connection| {
                let id = acp::SessionId::new(request.session_id.0);
                let wanted = up_to(request.meta.as_ref()).and_then(|up_to| {
                    Wanted::of_draft(
                        request.cwd,
                        request.additional_directories,
                        &request.mcp_servers,
                        request.system_prompt.as_ref(),
                        Origin::Fork(id, up_to),
                        request.meta,
                    )
                });
                let answer = Answer::new(responder, |opened: Opened| {
                    draft::ForkSessionResponse::new(id_of(&opened.id))
                        .config_options(options_of(&opened))
                        .meta(opened.meta)
                });
                open(&fork_session, wanted, connection, answer);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::ListSessionsRequest, responder, _| {
                let wanted = acp::ListSessionsRequest::new()
                    .cwd(request.cwd.map(|cwd| cwd.0))
                    .cursor(request.cursor.map(|cursor| cursor.0.to_string()))
                    .archived(request.archived.and_then(convert::filter))
                    .meta(request.meta);
                list_sessions.list_sessions(wanted, Answer::new(responder, convert::sessions));
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::DeleteSessionRequest, responder, _| {
                let wanted = acp::DeleteSessionRequest::new(request.session_id.0);
                let answer = Answer::new(responder, |_| draft::DeleteSessionResponse::new());
                delete_session.delete_session(wanted, answer);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::CloseSessionRequest, responder, _| {
                let wanted = acp::CloseSessionRequest::new(request.session_id.0);
                let answer = Answer::new(responder, |_: acp::CloseSessionResponse| {
                    draft::CloseSessionResponse::new()
                });
                if close_session.session(&wanted.session_id).is_err() {
                    // One that is not open is closed already.
                    answer.give(Ok(acp::CloseSessionResponse::new()));
                } else {
                    close_session.close_session(&wanted, answer);
                }
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::PromptRequest, responder, _| {
                let answer = Answer::from(responder);
                match convert::said(request.prompt.clone()) {
                    Ok(blocks) => {
                        let wanted =
                            acp::PromptRequest::new(request.session_id.0, blocks).meta(request.meta);
                        prompt.prompt(wanted, Owed::at_begin(answer, request.prompt));
                    }
                    Err(error) => answer.refuse(error),
                }
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: draft::CancelSessionNotification, _| {
                cancel.cancel(&acp::CancelNotification::new(notification.session_id.0));
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: draft::SetSessionConfigOptionRequest, responder, _| {
                let answer = Answer::new(responder, |told: acp::SetSessionConfigOptionResponse| {
                    draft::SetSessionConfigOptionResponse::new(convert::options(&told.config_options))
                });
                match convert::chosen(request.value) {
                    Ok(value) => {
                        let wanted = acp::SetSessionConfigOptionRequest::new(
                            request.session_id.0,
                            request.config_id.0,
                            value,
                        );
                        set_option.set_option(wanted, answer);
                    }
                    Err(error) => answer.refuse(error),
                }
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: draft::MessageMcpNotification, _| {
                of_server.routes.tell(convert::mcp_notification(notification));
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: DraftSetMcpServers, responder, _| {
                let wish = convert::servers(&request.mcp_servers)
                    .and_then(|servers| Servers::of(&servers))
                    .map(Wish::Set);
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
            async move |request: Rewind, responder, _| {
                rewind.rewind(request, responder.into());
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::SetSessionTitleRequest, responder, connection| {
                let wanted = acp::SetSessionTitleRequest::new(request.session_id.0, request.title);
                let answer = Answer::new(responder, |told: acp::SetSessionTitleResponse| {
                    draft::SetSessionTitleResponse::new(told.title)
                });
                set_title.set_title(wanted, answer, connection);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::ArchiveSessionRequest, responder, _| {
                let wanted = acp::ArchiveSessionRequest::new(request.session_id.0);
                archive.archive(
                    wanted,
                    Answer::new(responder, |_| draft::ArchiveSessionResponse::new()),
                );
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::UnarchiveSessionRequest, responder, _| {
                let wanted = acp::UnarchiveSessionRequest::new(request.session_id.0);
                unarchive.unarchive(
                    wanted,
                    Answer::new(responder, |_| draft::UnarchiveSessionResponse::new()),
                );
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: draft::SessionStatusRequest, responder, _| {
                let wanted = acp::SessionStatusRequest::new(request.session_id.0);
                let answer = Answer::new(responder, |told: acp::SessionStatusResponse| {
                    convert::status(&told)
                });
                status.status(wanted, answer);
                Ok(())
            },
            on_receive_request!(),
        )
}

fn open(
    hub: &Arc<Hub>,
    wanted: Result<Wanted, Error>,
    connection: ConnectionTo<sdk::Client>,
    answer: Answer<Opened>,
) {
    match wanted {
        Ok(wanted) => hub.open(wanted, connection, answer),
        Err(error) => answer.refuse(error),
    }
}

fn id_of(id: &acp::SessionId) -> draft::SessionId {
    draft::SessionId::new(Arc::clone(&id.0))
}

fn options_of(opened: &Opened) -> Vec<draft::SessionConfigOption> {
    convert::options(&opened.choices.as_options())
}
