//! Renames an open session. The CLI does it, since it would overwrite a change of the transcript.

use agent_client_protocol::Error;
use tokio::sync::oneshot;

use super::actor::Actor;
use crate::sdk_error;

/// Whether the CLI has taken the title. Without a running CLI, the caller stores it.
pub(super) type TitleReply = oneshot::Sender<Result<bool, Error>>;

impl Actor {
    pub(super) fn set_title(&self, title: String, reply: TitleReply) {
        let Some(session) = self.process.running().cloned() else {
            // The caller may have gone.
            let _ = reply.send(Ok(false));
            return;
        };
        // Detached: the reply has a deadline, and the session's end makes it void.
        tokio::spawn(async move {
            let done = session.rename_session(&title).await;
            let told = done.map(|_| true).map_err(|error| sdk_error::of_sdk(&error));
            // The caller may have gone.
            let _ = reply.send(told);
        });
    }
}
