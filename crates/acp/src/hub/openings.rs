//! The requests for sessions that are being opened. A session may be open while it is opened again: what is sent behind that is not for
//! the process that is about to end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema as acp;

use super::Hub;
use crate::error;
use crate::session::{COMMANDS, SessionCommand};

/// The sessions that requests open now, by their ids.
#[derive(Default)]
pub(crate) struct Openings(Mutex<HashMap<String, WaitingCommands>>);

/// What waits until a session is open.
#[derive(Default)]
struct WaitingCommands {
    /// How many requests open the session.
    requests: usize,
    commands: Vec<SessionCommand>,
}

impl Openings {
    fn all(&self) -> MutexGuard<'_, HashMap<String, WaitingCommands>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a command for a session that is being opened. Returns it if none is, or too many wait.
    pub(super) fn keep(&self, id: &acp::SessionId, command: SessionCommand) -> Option<SessionCommand> {
        let mut all = self.all();
        let Some(opening) = all.get_mut(id.0.as_ref()) else {
            return Some(command);
        };
        match opening.commands.len() < COMMANDS {
            true => opening.commands.push(command),
            false => command.refuse(error::internal(
                "too many requests wait for the session to be open",
            )),
        }
        None
    }

    /// Cancels the prompts that wait.
    pub(super) fn cancel(&self, id: &acp::SessionId) {
        let mut all = self.all();
        let Some(opening) = all.get_mut(id.0.as_ref()) else {
            return;
        };
        let is_prompt = |command: &mut SessionCommand| matches!(command, SessionCommand::Prompt { .. });
        for prompt in opening.commands.extract_if(.., is_prompt) {
            prompt.closed();
        }
    }
}

/// A request opens a session. When this is dropped, the session gets what was sent for it meanwhile.
pub(crate) struct OpeningSession {
    hub: Arc<Hub>,
    id: acp::SessionId,
}

impl OpeningSession {
    pub(crate) fn new(hub: &Arc<Hub>, id: &acp::SessionId) -> Self {
        hub.openings.all().entry(id.0.to_string()).or_default().requests += 1;
        Self {
            hub: Arc::clone(hub),
            id: id.clone(),
        }
    }
}

impl Drop for OpeningSession {
    fn drop(&mut self) {
        let mut all = self.hub.openings.all();
        let Some(opening) = all.get_mut(self.id.0.as_ref()) else {
            return;
        };
        opening.requests -= 1;
        if opening.requests > 0 {
            return;
        }
        // Under the lock, so that none overtakes them.
        for command in all
            .remove(self.id.0.as_ref())
            .into_iter()
            .flat_map(|opening| opening.commands)
        {
            match self.hub.session(&self.id) {
                Ok(session) => session.command(command),
                Err(error) => command.refuse(error),
            }
        }
    }
}
