//! The extension `_session/rewind`: its request and reply, and the place of a prompt in a transcript.

use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error, JsonRpcRequest, JsonRpcResponse};
use outrigger::Options;
use outrigger::sessions::{MessageOptions, SessionId, SessionMessage, Sessions};
use serde::{Deserialize, Serialize};

use crate::error::{self, bad};
use crate::stored;

/// How long a message may take to be in the transcript, and how often to look. The CLI writes it shortly after the frame.
const WRITTEN: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(50);

/// Rewinds files, the conversation, or both to the state before a prompt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/rewind", response = Rewound)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rewind {
    pub(crate) session_id: acp::SessionId,
    /// The uuid of the prompt.
    pub(crate) message_id: String,
    /// Only report what would be done.
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

/// What was done, or would be done. If `can_rewind` is false, nothing was done.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonRpcResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rewound {
    pub(crate) can_rewind: bool,
    /// Why the rewind can't be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files_changed: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) insertions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deletions: Option<u64>,
    /// The number of skipped files that are symbolic links now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skipped_links: Option<u64>,
    /// How many messages the conversation loses, including the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages_removed: Option<usize>,
}

/// The message behind which the conversation continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The uuid of this answer.
    Answer(String),
    /// None: the prompt was the first.
    Nothing,
}

/// The position of a prompt in its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptPosition {
    pub(crate) behind: Behind,
    /// The number of messages from the prompt on.
    pub(crate) removed: usize,
}

/// Finds a prompt in a conversation. Waits for a prompt that was just sent.
///
/// # Errors
/// When there is no such message, or it is no prompt.
pub(crate) async fn place(
    options: &Options,
    conversation: &str,
    message_id: &str,
) -> Result<PromptPosition, Error> {
    let id = SessionId::new(conversation).map_err(|_| error::no_session(conversation))?;
    let until = tokio::time::Instant::now() + WRITTEN;
    loop {
        let (id, message_id) = (id.clone(), message_id.to_owned());
        let found = stored::work(options, move |sessions| {
            prompt_position(&sessions, &id, &message_id)
        })
        .await;
        match found {
            Ok(Ok(place)) => return Ok(place),
            Ok(Err(why)) if tokio::time::Instant::now() >= until => return Err(bad("messageId", why)),
            Err(error) if tokio::time::Instant::now() >= until => return Err(error),
            _ => tokio::time::sleep(AGAIN).await,
        }
    }
}

fn prompt_position(
    sessions: &Sessions,
    id: &SessionId,
    message_id: &str,
) -> outrigger::sessions::Result<Result<PromptPosition, String>> {
    let mut behind = Behind::Nothing;
    let mut messages = sessions.messages(id, &MessageOptions::new())?;
    while let Some(message) = messages.next() {
        let message = message?;
        if message.uuid == message_id {
            let removed = messages.count() + 1;
            return Ok(match is_prompt(&message) {
                true => Ok(PromptPosition { behind, removed }),
                false => Err(format!("{message_id} is not a prompt of the user")),
            });
        }
        if message.kind == outrigger::sessions::MessageKind::Assistant {
            behind = Behind::Answer(message.uuid.into());
        }
    }
    Ok(Err(format!("the conversation has no message {message_id}")))
}

/// Whether a message is a prompt of the user, and not a tool result.
fn is_prompt(message: &SessionMessage) -> bool {
    let is_result = |message: &SessionMessage| {
        let raw = message.message.as_ref();
        raw.is_some_and(|raw| raw.get().contains(r#""tool_result""#))
    };
    message.kind == outrigger::sessions::MessageKind::User && !message.is_meta && !is_result(message)
}

/// Puts the uuid of the prompt into its answer: `_meta.claudeCode.messageUuid`.
pub(crate) fn name_prompt(response: &mut acp::PromptResponse, message: String) {
    let meta = response.meta.get_or_insert_default();
    let own = meta
        .entry("claudeCode")
        .or_insert_with(|| serde_json::Value::Object(serde_json::Map::new()));
    if let Some(own) = own.as_object_mut() {
        own.insert("messageUuid".to_owned(), serde_json::Value::String(message));
    }
}

/// The same for a failed prompt: `data.messageUuid`.
pub(crate) fn name_failed(error: &mut Error, message: String) {
    let data = error
        .data
        .get_or_insert_with(|| serde_json::Value::Object(serde_json::Map::new()));
    if let Some(data) = data.as_object_mut() {
        data.insert("messageUuid".to_owned(), serde_json::Value::String(message));
    }
}
