//! The CLI's conversation behind a session: the editor keeps its id, but the CLI changes its own.

use agent_client_protocol::v1::schema as acp;
use outrigger::Options;
use outrigger::protocol::Frame;
use outrigger::sessions::SessionId;

use super::actor::Actor;
use crate::{lineage, stored};

pub(super) struct Conversation {
    /// The CLI's id.
    pub(super) id: String,
    /// For a new process, should this one end before the conversation has a message.
    pub(super) again: Options,
    /// After a rewind: the last message that is kept, until the CLI has written the next one.
    pub(super) behind: Option<String>,
}

impl Conversation {
    pub(super) fn new(session: &acp::SessionId, again: Options) -> Self {
        let id = [&again.session_id, &again.resume].into_iter().flatten().next();
        Self {
            id: id.map_or_else(|| session.0.to_string(), Clone::clone),
            again,
            behind: None,
        }
    }

    /// The next process begins an empty conversation.
    pub(super) fn start_over(&mut self) {
        self.behind = None;
        self.again.resume = None;
        self.again.session_id = Some(uuid::Uuid::new_v4().to_string());
    }
}

impl Actor {
    /// Follows the CLI to another conversation: stores its id, so that the session is found after this process, and tells the editor.
    pub(super) fn follow_conversation(&mut self, frame: &Frame) {
        if frame.kind() == "assistant" || frame.kind() == "result" {
            // The CLI has written the new branch.
            self.conversation.behind = None;
        }
        if frame.kind() != "system" || frame.subtype() != Some("init") {
            return;
        }
        let Some(id) = frame.session_id().filter(|id| *id != self.conversation.id) else {
            return;
        };
        let Ok(next) = SessionId::new(id) else {
            return;
        };
        self.conversation.id = id.to_owned();
        self.conversation.again.resume = None;
        self.conversation.again.session_id = Some(id.to_owned());
        self.show(|updates| updates.conversation(id));
        let options = self.conversation.again.clone();
        let Ok(session) = SessionId::new(self.id.0.as_ref()) else {
            return;
        };
        tokio::spawn(async move {
            let noted = stored::work(&options, move |sessions| {
                Ok(lineage::goes_on_as(&sessions, &session, &next))
            });
            match noted.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the new id of the conversation could not be stored")
                }
                Err(error) => tracing::warn!(%error, "the new id of the conversation could not be stored"),
            }
        });
    }
}
