//! A session that the editor knows, but whose CLI is still starting.

use std::collections::VecDeque;

use agent_client_protocol::Error;
use futures_util::future::BoxFuture;
use outrigger::Session;
use tokio::sync::mpsc;

use super::{COMMANDS, CancelBell, ConnectionEnd, SessionCommand};
use crate::error;

/// Starts the CLI, each time that it is called.
pub(crate) type Start = Box<dyn FnMut() -> BoxFuture<'static, Result<Session, Error>> + Send>;

/// Waits for the CLI. Returns it with the commands that came meanwhile; `None` if the session was closed before.
///
/// If the start fails, all waiting commands get the error, and the next command starts the CLI again.
pub(crate) async fn arrival(
    mut start: Start,
    commands: &mut mpsc::Receiver<SessionCommand>,
    cancel: &CancelBell,
    stop: &ConnectionEnd,
) -> Option<(Session, VecDeque<SessionCommand>)> {
    let mut waiting = VecDeque::new();
    loop {
        let mut starting = start();
        let failed = loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return gone(waiting, None),
                rung = cancel.rung() => if rung.all { cancelled(&mut waiting) },
                command = commands.recv() => match command {
                    // A process that was started ends when it is dropped.
                    None => return gone(waiting, None),
                    Some(SessionCommand::Close(done)) => {
                        drop(starting);
                        return gone(waiting, Some(done));
                    }
                    Some(SessionCommand::Cancel) => cancelled(&mut waiting),
                    // No subagent works yet.
                    Some(SessionCommand::CancelAgent(_)) => {}
                    Some(command) if waiting.len() == COMMANDS => command.refuse(error::internal(format!(
                        "the session is still starting, and {COMMANDS} requests wait already; wait for some of them to be answered"
                    ))),
                    Some(command) => waiting.push_back(command),
                },
                session = &mut starting => match session {
                    Ok(session) => return Some((session, waiting)),
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
                () = stop.cancelled() => return None,
                _ = cancel.rung() => {}
                command = commands.recv() => match command {
                    None => return None,
                    Some(SessionCommand::Close(done)) => return gone(waiting, Some(done)),
                    Some(SessionCommand::Cancel | SessionCommand::CancelAgent(_)) => {}
                    Some(command) => {
                        waiting.push_back(command);
                        break;
                    }
                },
            }
        }
    }
}

/// Cancels the waiting prompts. Other commands stay.
fn cancelled(waiting: &mut VecDeque<SessionCommand>) {
    for command in std::mem::take(waiting) {
        match command {
            SessionCommand::Prompt { answer, .. } => answer.cancel(),
            command => waiting.push_back(command),
        }
    }
}

fn gone(
    mut waiting: VecDeque<SessionCommand>,
    done: Option<tokio::sync::oneshot::Sender<()>>,
) -> Option<(Session, VecDeque<SessionCommand>)> {
    cancelled(&mut waiting);
    for command in waiting {
        command.refuse(error::internal("the session was closed"));
    }
    if let Some(done) = done {
        // The caller may have gone.
        let _ = done.send(());
    }
    None
}
