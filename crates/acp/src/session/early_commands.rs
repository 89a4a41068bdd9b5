//! A session that the editor knows, but whose CLI is still starting.

use std::collections::VecDeque;

use agent_client_protocol::Error;
use futures_util::future::BoxFuture;
use outrigger::Session;

use super::{COMMANDS, Inbox, SessionCommand};
use crate::error;

/// Starts the CLI, each time that it is called.
pub(crate) type Start = Box<dyn FnMut() -> BoxFuture<'static, Result<Session, Error>> + Send>;

/// Waits for the CLI. Returns it with the commands that came meanwhile; `None` if the session was closed before.
///
/// If the start fails, all waiting commands get the error, and the next command starts the CLI again.
pub(crate) async fn arrival(
    mut start: Start,
    inbox: &mut Inbox,
) -> Option<(Session, VecDeque<SessionCommand>)> {
    let mut waiting = VecDeque::new();
    let arrived = arrives(&mut start, inbox, &mut waiting).await;
    if arrived.is_none() {
        waiting.into_iter().for_each(SessionCommand::closed);
        inbox.close();
        return None;
    }
    arrived.map(|session| (session, waiting))
}

async fn arrives(
    start: &mut Start,
    inbox: &mut Inbox,
    waiting: &mut VecDeque<SessionCommand>,
) -> Option<Session> {
    loop {
        let mut starting = start();
        let failed = loop {
            tokio::select! {
                biased;
                // A process that was started ends when it is dropped.
                () = inbox.end.cancelled() => return None,
                rung = inbox.cancel.rung() => if rung.all { cancelled(waiting) },
                command = inbox.commands.recv() => match command {
                    None => return None,
                    Some(SessionCommand::Cancel) => cancelled(waiting),
                    // No subagent works yet.
                    Some(SessionCommand::CancelAgent(_)) => {}
                    Some(command) if waiting.len() == COMMANDS => command.refuse(error::internal(format!(
                        "the session is still starting, and {COMMANDS} requests wait already; wait for some of them to be answered"
                    ))),
                    Some(command) => waiting.push_back(command),
                },
                session = &mut starting => match session {
                    Ok(session) => return Some(session),
                    Err(error) => break error,
                },
            }
        };
        tracing::warn!(%failed, "the CLI of a session did not come");
        waiting
            .drain(..)
            .for_each(|command| command.refuse(failed.clone()));
        // Now no command waits.
        loop {
            tokio::select! {
                biased;
                () = inbox.end.cancelled() => return None,
                _ = inbox.cancel.rung() => {}
                command = inbox.commands.recv() => match command? {
                    SessionCommand::Cancel | SessionCommand::CancelAgent(_) => {}
                    command => {
                        waiting.push_back(command);
                        break;
                    }
                },
            }
        }
    }
}

/// Cancels the waiting prompts, and what would steer their turns. Other commands stay.
fn cancelled(waiting: &mut VecDeque<SessionCommand>) {
    for command in std::mem::take(waiting) {
        match command {
            SessionCommand::Prompt { answer, .. } => answer.cancel(),
            // It would begin a turn.
            SessionCommand::Steer { .. } => command.refuse(Error::request_cancelled()),
            command => waiting.push_back(command),
        }
    }
}
