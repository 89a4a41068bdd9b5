//! A connection with an editor.
//!
//! The official crate handles one message at a time and waits for each handler. So a handler hands what it got to a task and returns;
//! nothing that takes time, and nothing of the editor's or the CLI's, happens there.

pub(crate) mod client;
mod gate;
pub(crate) mod hub;
mod pipe;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Agent, Lines, on_receive_notification, on_receive_request};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::gate::Gate;
use self::hub::Hub;
use crate::config::Config;

/// How long answers may take to be written once the editor has closed its end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves one editor until it goes away, or `stop` fires. Then all sessions are ended, with their processes.
///
/// `reader` and `writer` carry one JSON message a line, as the protocol has it on stdio. Nothing else is written there.
///
/// # Cancel safety
/// Dropping the future ends all sessions without waiting for that; their processes end in the background.
///
/// # Errors
/// When `reader` or `writer` fails.
pub async fn serve(
    config: Config,
    reader: impl AsyncRead + Send + 'static,
    writer: impl AsyncWrite + Send + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    let gate = Arc::new(Gate::default());
    let exit_grace = config.exit_grace;
    // Sessions end as soon as the input does, not only once the connection has worked off the rest.
    let stop = stop.child_token();
    let _ends_with_this = stop.clone().drop_guard();
    let hub = Hub::new(config, Arc::clone(&gate), stop.clone());
    let lines = Lines::new(pipe::outgoing(writer, gate), pipe::incoming(reader, stop.clone()));
    let connection = connect(&hub, lines);
    let served = async {
        let stopped = async {
            stop.cancelled().await;
            // Somebody who reads nothing any more is not waited for.
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            result = connection => result,
            () = stopped => Ok(()),
        }
    };
    let ended = async {
        stop.cancelled().await;
        hub.ended().await;
    };
    let (result, ended) = tokio::join!(
        async {
            let result = served.await;
            stop.cancel();
            result
        },
        async {
            stop.cancelled().await;
            tokio::time::timeout(exit_grace, ended).await
        }
    );
    if ended.is_err() {
        tracing::warn!("sessions did not end in time; what is left of them is killed");
    }
    result.map_err(|error| io::Error::other(error.to_string()))
}

async fn connect(
    hub: &Arc<Hub>,
    lines: impl agent_client_protocol::ConnectTo<Agent> + 'static,
) -> Result<(), agent_client_protocol::Error> {
    let of = || Arc::clone(hub);
    let (initialize, new_session, prompt, cancel) = (of(), of(), of(), of());
    let (set_mode, set_option, close_session) = (of(), of(), of());
    let (load_session, resume_session, fork_session) = (of(), of(), of());
    let (list_sessions, delete_session, logout) = (of(), of(), of());
    Agent
        .v1()
        .name("outrigger-acp")
        .on_receive_request(
            async move |request: acp::InitializeRequest, responder, _| {
                initialize.initialize(&request, responder);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::NewSessionRequest, responder, connection| {
                new_session.new_session(request, responder, connection);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::PromptRequest, responder, _| {
                prompt.prompt(request, responder);
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
        .on_receive_request(
            async move |request: acp::SetSessionModeRequest, responder, _| {
                set_mode.set_mode(request, responder);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::SetSessionConfigOptionRequest, responder, _| {
                set_option.set_option(request, responder);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::CloseSessionRequest, responder, _| {
                close_session.close_session(&request, responder);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::LoadSessionRequest, responder, connection| {
                load_session.load_session(request, responder, connection);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::ResumeSessionRequest, responder, connection| {
                resume_session.resume_session(request, responder, connection);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::ForkSessionRequest, responder, connection| {
                fork_session.fork_session(request, responder, connection);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::ListSessionsRequest, responder, _| {
                list_sessions.list_sessions(request, responder);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::DeleteSessionRequest, responder, _| {
                delete_session.delete_session(request, responder);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: acp::LogoutRequest, responder, _| {
                logout.logout(responder);
                Ok(())
            },
            on_receive_request!(),
        )
        .connect_to(lines)
        .await
}
