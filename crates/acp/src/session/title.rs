//! A title that the user gives to a session that is open: the CLI is told, since it writes down what it knows.

use agent_client_protocol::Error;
use tokio::sync::oneshot;

use super::actor::Actor;
use crate::sdk_error;

/// Told with whether the CLI has it. If there is none that runs, it is for whoever asks to write it down.
pub(super) type Reply = oneshot::Sender<Result<bool, Error>>;

impl Actor {
    pub(super) fn set_title(&self, title: String, reply: Reply) {
        let Some(session) = self.process.running().cloned() else {
            // Whoever asked may have gone.
            let _ = reply.send(Ok(false));
            return;
        };
        // Its answer has a deadline, and the request is of no use once the session has ended.
        tokio::spawn(async move {
            let done = session.rename_session(&title).await;
            let told = done.map(|_| true).map_err(|error| sdk_error::of_sdk(&error));
            // As above.
            let _ = reply.send(told);
        });
    }
}
