//! `user`: a prompt.

use serde::{Deserialize, Serialize};

use crate::RawJson;
use crate::shared::closed_enum::closed_enum;
use crate::shared::{MessageContent, Origin, PlainOrigin};

/// `user`: a prompt.
///
/// The CLI folds prompts into a turn that runs, and several that wait into one turn; with a `uuid` the result names the prompts that it
/// answers. A second prompt with the same `uuid` is dropped.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UserMessage {
    /// What is said.
    pub message: PromptMessage,
    /// Null: a prompt of ours belongs to no tool call.
    #[serde(default)]
    pub parent_tool_use_id: Option<String>,
    /// This prompt's id, a UUID of our choice.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub uuid: Option<String>,
    /// The session. The CLI does not need this.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub session_id: Option<String>,
    /// When the prompt is taken; `next` by default.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub priority: Option<Priority>,
    /// Where the message comes from.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub origin: Option<Origin>,
    /// False to add it to the conversation without a turn. An empty result follows at once.
    #[serde(rename = "shouldQuery", default, skip_serializing_if = "crate::whole::unset")]
    pub should_query: Option<bool>,
    /// True to use the message as it is: no files for `@mentions`, no slash commands.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub client_composed: Option<bool>,
    /// Texts that were pasted and not typed. They go after what was typed; blocks other than text are ignored.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub pasted_content: Option<Vec<MessageContent>>,
    /// Texts within the content that were pasted and not typed.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub inline_pastes: Option<Vec<String>>,
    /// True if no person wrote the message.
    #[serde(rename = "isSynthetic", default, skip_serializing_if = "crate::whole::unset")]
    pub is_synthetic: Option<bool>,
    /// The structured result of a tool, for a replayed conversation.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub tool_use_result: Option<RawJson>,
    /// When the message was written, as ISO 8601.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub timestamp: Option<String>,
}

/// What is said in a prompt.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct PromptMessage {
    role: UserRole,
    /// Text, or blocks.
    pub content: MessageContent,
}

/// The only role of prompts. The CLI dies of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
enum UserRole {
    #[serde(rename = "user")]
    User,
}

closed_enum! {
    /// When a prompt is taken while a turn runs.
    pub enum Priority {
        /// At once: the turn that runs ends as aborted.
        Now = "now",
        /// As soon as the running turn can read the prompt, after a tool call.
        Next = "next",
        /// When the turn that runs has ended.
        Later = "later",
    }
}

impl UserMessage {
    /// A prompt with text or blocks.
    pub fn new(content: impl Into<MessageContent>) -> Self {
        Self {
            message: PromptMessage {
                role: UserRole::User,
                content: content.into(),
            },
            parent_tool_use_id: None,
            uuid: None,
            session_id: None,
            priority: None,
            origin: None,
            should_query: None,
            client_composed: None,
            pasted_content: None,
            inline_pastes: None,
            is_synthetic: None,
            tool_use_result: None,
            timestamp: None,
        }
    }

    /// Gives the message an id, which results and lifecycle frames name.
    pub fn uuid(mut self, uuid: impl Into<String>) -> Self {
        self.uuid = Some(uuid.into());
        self
    }

    /// Says when the CLI takes the prompt.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Says that a person wrote the message.
    pub fn from_person(mut self) -> Self {
        self.origin = Some(Origin::Human(PlainOrigin::default()));
        self
    }

    /// Adds the message to the conversation without a turn.
    pub fn without_turn(mut self) -> Self {
        self.should_query = Some(false);
        self
    }

    /// Uses the message as it is: no files for `@mentions`, no slash commands.
    pub fn verbatim(mut self) -> Self {
        self.client_composed = Some(true);
        self
    }
}
