//! What spans need of frames, and no more: texts stay where they are.

use std::borrow::Cow;

use outrigger::protocol::Frame;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An `assistant` or `user` frame.
#[derive(Deserialize)]
pub(crate) struct ConversationFrame<'f> {
    #[serde(borrow, default)]
    pub(crate) uuid: Option<Cow<'f, str>>,
    #[serde(borrow)]
    pub(crate) message: ConversationMessage<'f>,
}

#[derive(Deserialize)]
pub(crate) struct ConversationMessage<'f> {
    #[serde(borrow, default)]
    pub(crate) id: Option<Cow<'f, str>>,
    #[serde(borrow, default)]
    pub(crate) model: Option<Cow<'f, str>>,
    #[serde(borrow, default)]
    usage: Option<&'f RawValue>,
    #[serde(borrow, default)]
    content: Option<&'f RawValue>,
}

impl<'f> ConversationMessage<'f> {
    /// The usage, if it can be read: odd counts do not take the rest of the message with them.
    pub(crate) fn usage(&self) -> Option<SaidUsage> {
        serde_json::from_str(self.usage?.get()).ok()
    }

    /// The content blocks; none if the content is a text.
    pub(crate) fn blocks(&self) -> Vec<Block<'f>> {
        self.content
            .and_then(|content| serde_json::from_str(content.get()).ok())
            .unwrap_or_default()
    }

    /// The content as JSON.
    pub(crate) fn json(&self) -> &'f str {
        self.content.map_or("null", RawValue::get)
    }
}

/// The usage of one request to the model.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SaidUsage {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) cache_read_input_tokens: Option<u64>,
    pub(crate) cache_creation_input_tokens: Option<u64>,
}

/// A content block: a tool call, a result, or another one.
#[derive(Deserialize)]
pub(crate) struct Block<'f> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'f, str>,
    #[serde(borrow, default)]
    pub(crate) id: Option<Cow<'f, str>>,
    #[serde(borrow, default)]
    pub(crate) name: Option<Cow<'f, str>>,
    #[serde(borrow, default)]
    pub(crate) input: Option<&'f RawValue>,
    #[serde(borrow, default)]
    pub(crate) tool_use_id: Option<Cow<'f, str>>,
    #[serde(default)]
    pub(crate) is_error: Option<bool>,
    #[serde(borrow, default)]
    pub(crate) content: Option<&'f RawValue>,
}

/// `task_notification`.
#[derive(Deserialize)]
pub(crate) struct EndedTask<'f> {
    #[serde(borrow, default)]
    pub(crate) tool_use_id: Option<Cow<'f, str>>,
}

/// A request of the CLI.
#[derive(Deserialize)]
pub(crate) struct CliRequestFrame<'f> {
    #[serde(borrow)]
    pub(crate) request: CliRequestBody<'f>,
}

#[derive(Deserialize)]
pub(crate) struct CliRequestBody<'f> {
    #[serde(borrow, default)]
    pub(crate) tool_name: Option<Cow<'f, str>>,
    #[serde(borrow, default)]
    pub(crate) tool_use_id: Option<Cow<'f, str>>,
    #[serde(borrow, default)]
    input: Option<&'f RawValue>,
}

impl CliRequestBody<'_> {
    /// The event, of the input of a hook.
    pub(crate) fn hook_event(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Input {
            hook_event_name: String,
        }
        let input: Input = serde_json::from_str(self.input?.get()).ok()?;
        Some(input.hook_event_name)
    }
}

/// Reads a frame; `None` if it has another shape, which is never an error here.
pub(crate) fn read<'f, T: Deserialize<'f>>(frame: &'f Frame) -> Option<T> {
    serde_json::from_slice(frame.bytes()).ok()
}
