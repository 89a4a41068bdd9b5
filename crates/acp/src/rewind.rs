//! Going back to an earlier prompt: `_session/rewind`, an extension. What it asks and answers, and where a transcript has the place.

use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error, JsonRpcRequest, JsonRpcResponse};
use outrigger::Options;
use outrigger::sessions::{MessageOptions, SessionId, SessionMessage, Sessions};
use serde::{Deserialize, Serialize};

use crate::error::{self, bad};
use crate::stored;

/// How long a message may take to be written down, and how often that is looked at. The CLI writes a moment after it tells.
const WRITTEN: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(50);

/// Takes files, the conversation, or both back to what they were before a prompt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/rewind", response = Rewound)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rewind {
    pub(crate) session_id: acp::SessionId,
    /// The prompt.
    pub(crate) message_id: String,
    /// Only says what would be done.
    #[serde(default)]
    pub(crate) dry_run: bool,
    #[serde(default = "yes")]
    pub(crate) files: bool,
    #[serde(default = "yes")]
    pub(crate) conversation: bool,
}

fn yes() -> bool {
    true
}

/// What was done, or would be. If it can't be, nothing was.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonRpcResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rewound {
    pub(crate) can_rewind: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files_changed: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) insertions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deletions: Option<u64>,
    /// Files that were left alone, because they are links now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skipped_links: Option<u64>,
    /// How many messages the conversation loses, the prompt with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages_removed: Option<usize>,
}

/// What the conversation goes on behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Behind {
    /// This answer of the model.
    Answer(String),
    /// Nothing: the prompt was the first.
    Nothing,
}

/// Where a prompt is in its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) behind: Behind,
    /// How many messages there are from the prompt on.
    pub(crate) removed: usize,
}

/// Finds a prompt in a conversation. One that was just sent is waited for.
///
/// # Errors
/// When it is not there, or is no prompt.
pub(crate) async fn place(options: &Options, conversation: &str, message_id: &str) -> Result<Place, Error> {
    let id = SessionId::new(conversation).map_err(|_| error::no_session(conversation))?;
    let until = tokio::time::Instant::now() + WRITTEN;
    loop {
        let (id, message_id) = (id.clone(), message_id.to_owned());
        let found = stored::work(options, move |sessions| look(&sessions, &id, &message_id)).await;
        match found {
            Ok(Ok(place)) => return Ok(place),
            Ok(Err(why)) if tokio::time::Instant::now() >= until => return Err(bad("messageId", why)),
            Err(error) if tokio::time::Instant::now() >= until => return Err(error),
            _ => tokio::time::sleep(AGAIN).await,
        }
    }
}

fn look(
    sessions: &Sessions,
    id: &SessionId,
    message_id: &str,
) -> outrigger::sessions::Result<Result<Place, String>> {
    let mut behind = Behind::Nothing;
    let mut messages = sessions.messages(id, &MessageOptions::new())?;
    while let Some(message) = messages.next() {
        let message = message?;
        if message.uuid == message_id {
            let removed = messages.count() + 1;
            return Ok(match is_prompt(&message) {
                true => Ok(Place { behind, removed }),
                false => Err(format!("{message_id} is no prompt of the user's")),
            });
        }
        if message.kind == outrigger::sessions::MessageKind::Assistant {
            behind = Behind::Answer(message.uuid.into());
        }
    }
    Ok(Err(format!("the conversation has no message {message_id}")))
}

/// Whether it is something that the user said, and no result of a tool.
fn is_prompt(message: &SessionMessage) -> bool {
    let is_result = |message: &SessionMessage| {
        let raw = message.message.as_ref();
        raw.is_some_and(|raw| raw.get().contains(r#""tool_result""#))
    };
    message.kind == outrigger::sessions::MessageKind::User && !message.is_meta && !is_result(message)
}

/// Says to which message of the conversation an answer to a prompt belongs: `_meta.claudeCode.messageUuid`.
pub(crate) fn name_prompt(response: &mut acp::PromptResponse, message: String) {
    let meta = response.meta.get_or_insert_default();
    let own = meta
        .entry("claudeCode")
        .or_insert_with(|| serde_json::Value::Object(serde_json::Map::new()));
    if let Some(own) = own.as_object_mut() {
        own.insert("messageUuid".to_owned(), serde_json::Value::String(message));
    }
}

/// The same, for one that failed: `data.messageUuid`.
pub(crate) fn name_failed(error: &mut Error, message: String) {
    let data = error
        .data
        .get_or_insert_with(|| serde_json::Value::Object(serde_json::Map::new()));
    if let Some(data) = data.as_object_mut() {
        data.insert("messageUuid".to_owned(), serde_json::Value::String(message));
    }
}
