//! Which conversation of the CLI the session is by now: the editor keeps its id, the CLI does not.

use outrigger::protocol::Frame;
use outrigger::sessions::SessionId;

use super::actor::Actor;
use crate::{lineage, stored};

impl Actor {
    /// A frame that may tell of another conversation. It is noted where the session is found by it after this process, and the editor
    /// is told.
    pub(super) fn follow_conversation(&mut self, frame: &Frame) {
        if frame.kind() == "assistant" || frame.kind() == "result" {
            // The branch that was begun is written down.
            self.behind = None;
        }
        if frame.kind() != "system" || frame.subtype() != Some("init") {
            return;
        }
        let Some(id) = frame.session_id().filter(|id| *id != self.conversation) else {
            return;
        };
        let Ok(conversation) = SessionId::new(id) else {
            return;
        };
        self.conversation = id.to_owned();
        // Should the process end before anything is said.
        self.again.resume = None;
        self.again.session_id = Some(self.conversation.clone());
        let news = self.updates.conversation(id);
        self.tell(news);
        let options = self.again.clone();
        let Ok(session) = SessionId::new(self.id.0.as_ref()) else {
            return;
        };
        tokio::spawn(async move {
            let noted = stored::work(&options, move |sessions| {
                Ok(lineage::goes_on_as(&sessions, &session, &conversation))
            });
            match noted.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "what the session went on as could not be noted"),
                Err(error) => tracing::warn!(%error, "what the session went on as could not be noted"),
            }
        });
    }
}
