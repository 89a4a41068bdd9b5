//! The serialized form of events.

use outrigger_protocol::inbound::StopReason;
use outrigger_protocol::shared::{ContentBlock, MessageContent};
use outrigger_protocol::{RawJson, wire_enum};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{BlockKind, Event, Lag, SubagentEvent, ToolResult, ToolUse};
#[cfg(test)]
use crate::frame_form::FrameSchema;
use crate::frame_form::{FrameForm, MisfitForm};

/// An event that this build cannot read, from [`Event`]'s serialized form. A newer version of this crate may have written it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownEvent {
    /// The `type`.
    pub kind: String,
    /// The whole event. It is written as it was read.
    pub json: RawJson,
    /// Why the event could not be read; `None` if this build does not know the kind.
    pub misfit: Option<String>,
}

wire_enum! {
    /// An event by its `type`.
    pub(crate) enum EventForm by "type" {
        "message_start" => MessageStart(MessageStartForm),
        "content_block_start" => BlockStart(BlockForm),
        "content_block_stop" => BlockStop(BlockForm),
        "message_stop" => MessageStop(MessageStopForm),
        "text" => Text(TextForm),
        "thinking" => Thinking(TextForm),
        "tool_use" => ToolUse(ToolUseForm),
        "tool_input" => ToolInput(ToolInputForm),
        "tool_result" => ToolResult(ToolResultForm),
        "api_error" => ApiError(ApiErrorForm),
        "block" => Block(ContentForm),
        "subagent" => Subagent(SubagentForm),
        "message" => Message(MessageForm),
        "undecodable" => Undecodable(UndecodableForm),
        "lagged" => Lagged(LaggedForm),
    }
}

/// A message of the model begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MessageStartForm {
    /// The API's id of the message, if it is known already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The model that writes it; `<synthetic>` when the CLI wrote it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

/// A content block of the message begins, or has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct BlockForm {
    /// The API's id of the message, if it is known already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    /// The block's index in the message.
    index: u64,
    /// The kind of the block: `text`, `thinking`, `tool_use`, or another of the Messages API.
    kind: String,
}

/// The message that began last has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MessageStopForm {
    /// The API's id of the message, if it is known by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The model that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Why the model stopped, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
}

/// Text of the answer, or of the model's thinking: the next piece, or a whole block.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TextForm {
    /// The text.
    text: String,
}

/// The model calls a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ToolUseForm {
    /// The id of the call.
    id: String,
    /// The tool's name.
    name: String,
    /// The input, as the model wrote it.
    #[cfg_attr(test, schemars(with = "serde_json::Value"))]
    input: RawJson,
    /// The frame with it.
    #[cfg_attr(test, schemars(with = "FrameSchema"))]
    frame: FrameForm,
}

/// A part of a tool call's input as it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ToolInputForm {
    /// The index of the block in the message.
    index: u64,
    /// The next piece of the JSON text.
    partial_json: String,
}

/// A tool call ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ToolResultForm {
    /// The id of the call.
    tool_use_id: String,
    /// Whether the call failed or was denied.
    is_error: bool,
    /// The text that the model sees, without other kinds of content.
    text: String,
    /// What the model sees: a string or content blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<serde_json::Value>"))]
    content: Option<MessageContent>,
    /// The tool's own structured output, or a string when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<serde_json::Value>"))]
    output: Option<RawJson>,
    /// The frame with it.
    #[cfg_attr(test, schemars(with = "FrameSchema"))]
    frame: FrameForm,
}

/// The API call failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ApiErrorForm {
    /// The kind of failure.
    kind: String,
    /// The text of the CLI.
    text: String,
}

/// A content block of another kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ContentForm {
    /// The block, as in the Messages API.
    #[cfg_attr(test, schemars(with = "serde_json::Value"))]
    block: ContentBlock,
}

/// An event of a subagent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SubagentForm {
    /// The tool call that started the subagent.
    parent_tool_use_id: String,
    /// The event, which is of no subagent itself.
    #[cfg_attr(test, schemars(with = "serde_json::Value"))]
    event: RawJson,
}

/// Any other message of the CLI.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MessageForm {
    /// The frame with it.
    #[cfg_attr(test, schemars(with = "FrameSchema"))]
    frame: FrameForm,
}

/// A frame that could not be decoded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct UndecodableForm {
    /// The reason.
    misfit: MisfitForm,
    /// The frame.
    #[cfg_attr(test, schemars(with = "FrameSchema"))]
    frame: FrameForm,
}

/// The program read too slowly, and frames were dropped at this point.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LaggedForm {
    /// The number of frames.
    frames: u64,
    /// How many bytes the frames have.
    bytes: u64,
}

impl EventForm {
    /// The form of an event. `Err` is that of an unknown event.
    fn of(event: &Event) -> Result<Self, RawJson> {
        Ok(match event.clone() {
            Event::MessageStart { id, model } => Self::MessageStart(MessageStartForm { id, model }),
            Event::ContentBlockStart {
                message_id,
                index,
                kind,
            } => Self::BlockStart(BlockForm {
                message_id,
                index,
                kind: kind.to_string(),
            }),
            Event::ContentBlockStop {
                message_id,
                index,
                kind,
            } => Self::BlockStop(BlockForm {
                message_id,
                index,
                kind: kind.to_string(),
            }),
            Event::MessageStop {
                id,
                model,
                stop_reason,
            } => Self::MessageStop(MessageStopForm {
                id,
                model,
                stop_reason: stop_reason.map(|reason| reason.to_string()),
            }),
            Event::Text(text) => Self::Text(TextForm { text }),
            Event::Thinking(text) => Self::Thinking(TextForm { text }),
            Event::ToolUse(tool) => Self::ToolUse(ToolUseForm {
                id: tool.id,
                name: tool.name,
                input: tool.input,
                frame: FrameForm(tool.frame),
            }),
            Event::ToolInput { index, partial_json } => {
                Self::ToolInput(ToolInputForm { index, partial_json })
            }
            Event::ToolResult(result) => Self::ToolResult(ToolResultForm {
                tool_use_id: result.tool_use_id,
                is_error: result.is_error,
                text: result.text,
                content: result.content,
                output: result.output,
                frame: FrameForm(result.frame),
            }),
            Event::ApiError { kind, text } => Self::ApiError(ApiErrorForm { kind, text }),
            Event::Block(block) => Self::Block(ContentForm { block: *block }),
            Event::Subagent(of) => Self::Subagent(SubagentForm {
                parent_tool_use_id: of.parent_tool_use_id,
                event: RawJson::encode(&of.event).unwrap_or_default(),
            }),
            Event::Message(_, frame) => Self::Message(MessageForm {
                frame: FrameForm(frame),
            }),
            Event::Undecodable(frame, misfit) => Self::Undecodable(UndecodableForm {
                misfit: misfit.into(),
                frame: FrameForm(frame),
            }),
            Event::Lagged(Lag { frames, bytes }) => Self::Lagged(LaggedForm { frames, bytes }),
            Event::Unknown(unknown) => return Err(unknown.json),
        })
    }

    /// The event, or why it is none.
    fn into_event(self) -> Result<Event, String> {
        Ok(match self {
            Self::MessageStart(MessageStartForm { id, model }) => Event::MessageStart { id, model },
            Self::BlockStart(form) => Event::ContentBlockStart {
                message_id: form.message_id,
                index: form.index,
                kind: BlockKind::from(form.kind.as_str()),
            },
            Self::BlockStop(form) => Event::ContentBlockStop {
                message_id: form.message_id,
                index: form.index,
                kind: BlockKind::from(form.kind.as_str()),
            },
            Self::MessageStop(form) => Event::MessageStop {
                id: form.id,
                model: form.model,
                stop_reason: form.stop_reason.as_deref().map(StopReason::from),
            },
            Self::Text(TextForm { text }) => Event::Text(text),
            Self::Thinking(TextForm { text }) => Event::Thinking(text),
            Self::ToolUse(form) => Event::ToolUse(ToolUse {
                id: form.id,
                name: form.name,
                input: form.input,
                frame: form.frame.0,
            }),
            Self::ToolInput(ToolInputForm { index, partial_json }) => {
                Event::ToolInput { index, partial_json }
            }
            Self::ToolResult(form) => Event::ToolResult(ToolResult {
                tool_use_id: form.tool_use_id,
                is_error: form.is_error,
                text: form.text,
                content: form.content,
                output: form.output,
                frame: form.frame.0,
            }),
            Self::ApiError(ApiErrorForm { kind, text }) => Event::ApiError { kind, text },
            Self::Block(ContentForm { block }) => Event::Block(Box::new(block)),
            Self::Subagent(form) => {
                // Subagents do not nest in events, and what comes from outside must not nest without end.
                if outrigger_protocol::walk::string_at(form.event.get(), "type").as_deref()
                    == Some("subagent")
                {
                    return Err("the event of a subagent is of a subagent itself".to_owned());
                }
                Event::Subagent(Box::new(SubagentEvent {
                    parent_tool_use_id: form.parent_tool_use_id,
                    event: Event::read(form.event)?,
                }))
            }
            Self::Message(MessageForm {
                frame: FrameForm(frame),
            }) => match frame.decode_told() {
                Ok(message) => Event::Message(Box::new(message), frame),
                Err(misfit) => return Err(misfit.to_string()),
            },
            Self::Undecodable(form) => Event::Undecodable(form.frame.0, (&form.misfit).into()),
            Self::Lagged(LaggedForm { frames, bytes }) => Event::Lagged(Lag { frames, bytes }),
            Self::Unknown(_) => return Err("its kind is not known".to_owned()),
            Self::Misfit(misfit) => return Err(misfit.reason),
        })
    }
}

impl Event {
    /// Reads an event. What this build can't read is [`Unknown`](Self::Unknown).
    fn read(json: RawJson) -> Result<Self, String> {
        let form: EventForm = json.read().map_err(|error| error.to_string())?;
        let is_known = !matches!(form, EventForm::Unknown(_));
        let kind = form.tag().into_owned();
        Ok(form.into_event().unwrap_or_else(|reason| {
            Self::Unknown(UnknownEvent {
                kind,
                json,
                misfit: is_known.then_some(reason),
            })
        }))
    }

    /// An event that this build can't read.
    pub(crate) fn unreadable(kind: &str, json: RawJson, reason: String) -> Self {
        Self::Unknown(UnknownEvent {
            kind: kind.to_owned(),
            json,
            misfit: Some(reason),
        })
    }
}

/// As JSON, an object with a `type`; see the page on events. Other formats than JSON can't hold frames.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match EventForm::of(self) {
            Ok(form) => form.serialize(serializer),
            Err(json) => json.serialize(serializer),
        }
    }
}

/// Fails only for what is no object with a `type`: an event that this build can't read is [`Event::Unknown`].
impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = RawJson::deserialize(deserializer)?;
        Self::read(json).map_err(serde::de::Error::custom)
    }
}

/// The schema of each kind.
#[cfg(test)]
pub(crate) fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
    use schemars::JsonSchema as _;
    vec![
        ("message_start", MessageStartForm::json_schema(generator)),
        ("content_block_start", BlockForm::json_schema(generator)),
        ("content_block_stop", BlockForm::json_schema(generator)),
        ("message_stop", MessageStopForm::json_schema(generator)),
        ("text", TextForm::json_schema(generator)),
        ("thinking", TextForm::json_schema(generator)),
        ("tool_use", ToolUseForm::json_schema(generator)),
        ("tool_input", ToolInputForm::json_schema(generator)),
        ("tool_result", ToolResultForm::json_schema(generator)),
        ("api_error", ApiErrorForm::json_schema(generator)),
        ("block", ContentForm::json_schema(generator)),
        ("subagent", SubagentForm::json_schema(generator)),
        ("message", MessageForm::json_schema(generator)),
        ("undecodable", UndecodableForm::json_schema(generator)),
        ("lagged", LaggedForm::json_schema(generator)),
    ]
}
