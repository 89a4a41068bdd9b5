//! One message of a conversation.

use std::borrow::Cow;
use std::fmt::Write as _;

use outrigger_protocol::inbound::{Message, NonExecutionKind};
use outrigger_protocol::shared::Origin;
use outrigger_protocol::{Frame, Misfit, RawJson, open_enum};
use serde::Serialize;

use super::index::is_queued;
use crate::id::MessageId;
use crate::record::{Fields, Record, RecordKind, elements, fields, is_truthy, last, text_of};

/// Who a message is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MessageKind {
    /// What went to the model: prompts and results of tools.
    User,
    /// Output of the model, one block a message.
    Assistant,
    /// A note of the CLI, such as the boundary of a compaction.
    System,
}

/// The reason why a tool call was not executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolResultMeta {
    /// The call.
    pub id: String,
    /// Why the tool was not executed.
    pub non_execution_kind: NonExecutionKind,
}

open_enum! {
    /// Why a permission request got no reply.
    pub enum ToolDenialUnanswered {
        /// The connection to the host had ended.
        StreamClosed = "stream-closed",
    }
}

/// One message of a conversation. As JSON it has the names of the TypeScript SDK's `SessionMessage`, and the undeclared fields
/// that the TypeScript SDK returns.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SessionMessage {
    /// Who wrote the message.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// The message's id: that of the record, or of the prompt that had queued up.
    pub uuid: MessageId,
    /// The session that the record names; a fork's records name the fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The API's message, as it is written. `system` messages mostly have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<RawJson>,
    /// The call of the tool that began this subagent; null in the main conversation.
    pub parent_tool_use_id: Option<String>,
    /// The subagent that began this subagent; null if that was the main conversation.
    pub parent_agent_id: Option<String>,
    /// True if an interrupt that was a shutdown cut it off.
    #[serde(rename = "interruptedByShutdown", skip_serializing_if = "is_false")]
    pub interrupted_by_shutdown: bool,
    /// Why the permission request for the tool of this result got no reply.
    #[serde(rename = "toolDenialUnanswered", skip_serializing_if = "Option::is_none")]
    pub tool_denial_unanswered: Option<ToolDenialUnanswered>,
    /// Of the one result of a tool that it has: why the tool was not executed. Empty if it was, or that is not recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_result_meta: Vec<ToolResultMeta>,
    /// True for the summary that replaces what a compaction cut off.
    #[serde(rename = "isCompactSummary", skip_serializing_if = "is_false")]
    pub is_compact_summary: bool,
    /// True if the message is not meant to be shown as the user's words.
    #[serde(skip_serializing_if = "is_false")]
    pub is_meta: bool,
    /// True if the message had queued up and was put into a turn that ran.
    #[serde(rename = "isQueuedCommand", skip_serializing_if = "is_false")]
    pub is_queued_command: bool,
    /// When, as ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Where a prompt came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<RawJson>,
    /// The record that the message was read from.
    #[serde(skip)]
    pub record: Record,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl SessionMessage {
    /// Takes a record that is one. `None` if it is none.
    pub(crate) fn of(record: Record) -> Option<Self> {
        let text = record.text();
        let all = fields(&text).ok()?;
        let envelope = record.envelope();
        let raw = |fields: &Fields<'_>, name| RawJson::from_text(last(fields, name)?).ok();
        let kind = match record.kind() {
            RecordKind::User | RecordKind::Attachment => MessageKind::User,
            RecordKind::Assistant => MessageKind::Assistant,
            RecordKind::System => MessageKind::System,
            _ => return None,
        };
        let holds = |name| last(&all, name).is_some_and(is_truthy);
        let hidden =
            envelope.is_meta || envelope.is_visible_in_transcript_only || envelope.is_compact_summary;
        let said = |name| last(&all, name).and_then(text_of);
        let denied = said("toolDenialKind").zip(last(&all, "message").and_then(only_result));
        let mut message = Self {
            kind,
            uuid: envelope.uuid.clone()?.into(),
            session_id: envelope.session_id.clone(),
            message: raw(&all, "message"),
            parent_tool_use_id: None,
            parent_agent_id: None,
            interrupted_by_shutdown: holds("interruptedByShutdown"),
            tool_denial_unanswered: said("toolDenialUnanswered").map(|why| ToolDenialUnanswered::from(&*why)),
            tool_result_meta: denied
                .map(|(why, id)| ToolResultMeta {
                    id,
                    non_execution_kind: NonExecutionKind::from(&*why),
                })
                .into_iter()
                .collect(),
            is_compact_summary: envelope.is_compact_summary,
            is_meta: hidden,
            is_queued_command: false,
            timestamp: envelope.timestamp.clone(),
            origin: raw(&all, "origin"),
            record: record.clone(),
        };
        if record.kind() == &RecordKind::Attachment {
            let attachment = fields(last(&all, "attachment")?).ok()?;
            if !is_queued(&attachment) {
                return None;
            }
            let said = |name| last(&attachment, name).and_then(text_of);
            if let Some(source) = said("source_uuid").filter(|source| !source.is_empty()) {
                message.uuid = source.into();
            }
            let content = last(&attachment, "prompt")?;
            message.message = RawJson::from_text(format!(r#"{{"role":"user","content":{content}}}"#)).ok();
            message.is_queued_command = true;
            message.is_meta = last(&attachment, "isMeta").is_some_and(is_truthy);
            message.origin = match (raw(&attachment, "origin"), said("commandMode").as_deref()) {
                (None, Some("task-notification")) => {
                    RawJson::from_text(r#"{"kind":"task-notification"}"#).ok()
                }
                (origin, _) => origin,
            };
        }
        Some(message)
    }

    /// Where the prompt came from, decoded.
    pub fn decode_origin(&self) -> Option<Origin> {
        self.origin.as_ref()?.read().ok()
    }

    /// Decodes it to the message that a live session would emit for it, so that the same code can show history and live
    /// messages.
    ///
    /// The names of the record's fields become those of the wire. A field whose value does not fit the wire's field of
    /// this name is dropped.
    ///
    /// # Errors
    /// When the message itself does not have the shape that this build expects.
    pub fn decode(&self) -> Result<Message, Misfit> {
        match self.to_frame().map(|frame| frame.decode()) {
            Some(decoded) => decoded,
            // A line is at least one frame.
            None => Ok(Message::Unknown(RawJson::null())),
        }
    }

    /// The frame that a live session would have sent for it; see [`decode`](Self::decode). `None` never happens: a line has
    /// at least one frame.
    pub fn to_frame(&self) -> Option<Frame> {
        let frame = |with_all| Frame::from_line(self.as_frame(with_all)).into_iter().next();
        let whole = frame(true)?;
        if whole.decode().is_ok() {
            return Some(whole);
        }
        // A field with another meaning in records must not hide the rest.
        let plain = frame(false).filter(|plain| plain.decode().is_ok());
        plain.or(Some(whole))
    }

    /// The line that a session that runs would write; with all fields of the record, or with those that every message has.
    fn as_frame(&self, with_all: bool) -> String {
        let kind = match self.kind {
            MessageKind::User => "user",
            MessageKind::Assistant => "assistant",
            MessageKind::System => "system",
        };
        let mut line = format!(r#"{{"type":"{kind}""#);
        let mut put = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = write!(line, ",{}:{value}", quoted(name));
        };
        let text = self.record.text();
        let all = fields(&text).unwrap_or_default();
        let is_needed = |name: &str| with_all || name == "subtype" || name == "compactMetadata";
        for (name, value) in all.iter().filter(|(name, _)| is_needed(name)) {
            match &**name {
                "type" | "uuid" | "sessionId" | "tool_result_meta" | "message" | "timestamp"
                | "attachment" | "origin" => {}
                "compactMetadata" => put("compact_metadata", &in_wire_names(value)),
                name => put(&snake(name), value),
            }
        }
        if !self.tool_result_meta.is_empty() {
            // Texts can always be written.
            put(
                "tool_result_meta",
                &serde_json::to_string(&self.tool_result_meta).unwrap_or_default(),
            );
        }
        put("uuid", &quoted(&self.uuid));
        put(
            "session_id",
            &quoted(self.session_id.as_deref().unwrap_or_default()),
        );
        let or_null = |text: &Option<String>| {
            text.as_deref()
                .map_or(Cow::Borrowed("null"), |text| Cow::Owned(quoted(text)))
        };
        put("parent_tool_use_id", &or_null(&self.parent_tool_use_id));
        put("timestamp", &or_null(&self.timestamp));
        put("origin", self.origin.as_ref().map_or("null", RawJson::get));
        if let Some(message) = &self.message {
            put("message", message.get());
        }
        line.push('}');
        line
    }
}

/// The call whose result a message has, if it has that of one call.
fn only_result(message: &str) -> Option<String> {
    let message = fields(message).ok()?;
    let blocks = elements(last(&message, "content")?)?;
    let mut calls = blocks.iter().filter_map(|block| {
        let block = fields(block).ok()?;
        let is_result = last(&block, "type").and_then(text_of).as_deref() == Some("tool_result");
        is_result.then(|| last(&block, "tool_use_id").and_then(text_of))
    });
    let only = calls.next()?;
    only.filter(|_| calls.next().is_none())
}

fn quoted(text: &str) -> String {
    // A text can always be written.
    serde_json::to_string(text).unwrap_or_default()
}

/// `sourceToolAssistantUUID` as `source_tool_assistant_uuid`.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut after_upper = true;
    for c in name.chars() {
        if c.is_ascii_uppercase() && !after_upper {
            snake.push('_');
        }
        after_upper = c.is_ascii_uppercase();
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// An object with the names of its fields, and of the objects in it, as they are on the wire.
fn in_wire_names(value: &str) -> String {
    fn rename(value: serde_json::Value) -> serde_json::Value {
        match value {
            serde_json::Value::Object(fields) => {
                let renamed = fields
                    .into_iter()
                    .map(|(name, value)| (snake(&name), rename(value)));
                serde_json::Value::Object(renamed.collect())
            }
            other => other,
        }
    }
    match serde_json::from_str(value) {
        Ok(value) => rename(value).to_string(),
        Err(_) => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Lines, Position};
    use serde_json::{Value, json};

    fn position() -> Position {
        Lines::new(&b"x"[..]).next().unwrap().unwrap().position
    }

    fn message(record: &Value) -> Option<SessionMessage> {
        SessionMessage::of(Record::read(position(), record.to_string().into_bytes()).unwrap())
    }

    #[test]
    fn a_message_has_the_names_of_the_typescript_sdk() {
        let record = json!({
            "type": "user", "uuid": "u", "sessionId": "s", "timestamp": "t", "message": {"role": "user", "content": "hi"},
            "isCompactSummary": true, "origin": {"kind": "human"}, "cwd": "/x",
        });
        let message = message(&record).unwrap();
        let expected = json!({
            "type": "user", "uuid": "u", "session_id": "s", "message": {"role": "user", "content": "hi"},
            "parent_tool_use_id": null, "parent_agent_id": null, "isCompactSummary": true, "is_meta": true,
            "timestamp": "t", "origin": {"kind": "human"},
        });
        assert_eq!(serde_json::to_value(&message).unwrap(), expected);
        assert!(
            matches!(message.decode_origin(), Some(Origin::Human(_))),
            "{:?}",
            message.decode_origin()
        );
    }

    #[test]
    fn a_tool_that_was_refused_can_be_told_from_one_that_failed() {
        let result =
            |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "no", "is_error": true});
        let of = |content: Value, more: Value| {
            let mut record = json!({"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": content}});
            record
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            message(&record).unwrap()
        };
        let refused = json!({"toolDenialKind": "user-rejected", "toolDenialUnanswered": "stream-closed"});
        let told = of(
            json!([{"type": "text", "text": "x"}, result("t")]),
            refused.clone(),
        );
        let shown = serde_json::to_value(&told).unwrap();
        assert_eq!(
            shown["tool_result_meta"],
            json!([{"id": "t", "non_execution_kind": "user-rejected"}])
        );
        assert_eq!(shown["toolDenialUnanswered"], "stream-closed");
        assert_eq!(
            told.tool_denial_unanswered,
            Some(ToolDenialUnanswered::StreamClosed)
        );
        let Ok(Message::User(live)) = told.decode() else {
            panic!("no message of the user")
        };
        let meta = live.tool_result_meta.unwrap();
        assert_eq!(
            (&*meta[0].id, &meta[0].non_execution_kind),
            ("t", &Some(NonExecutionKind::UserRejected))
        );

        for (content, more) in [
            (json!([result("t")]), json!({})),
            (json!([result("t"), result("u")]), refused.clone()),
            (json!([{"type": "tool_result"}]), refused.clone()),
            (json!("text"), refused),
        ] {
            let plain = of(content.clone(), more);
            assert!(plain.tool_result_meta.is_empty(), "{content}");
        }
    }

    #[test]
    fn a_prompt_that_had_queued_up_is_one_of_the_user() {
        let queued = |attachment: Value| {
            let record = json!({"type": "attachment", "uuid": "q", "attachment": attachment});
            message(&record)
        };
        let plain =
            queued(json!({"type": "queued_command", "prompt": "hello", "commandMode": "task-notification"}));
        let plain = serde_json::to_value(plain.unwrap()).unwrap();
        assert_eq!(plain["message"], json!({"role": "user", "content": "hello"}));
        assert_eq!(
            (&plain["uuid"], &plain["isQueuedCommand"]),
            (&json!("q"), &json!(true))
        );
        assert_eq!(plain["origin"], json!({"kind": "task-notification"}));
        let copy =
            queued(json!({"type": "queued_command", "prompt": [], "source_uuid": "src", "isMeta": true}))
                .unwrap();
        assert_eq!((copy.uuid.as_str(), copy.is_meta), ("src", true));
        assert!(queued(json!({"type": "queued_command", "prompt": {"x": 1}})).is_none());
        assert!(queued(json!({"type": "file"})).is_none());
    }

    #[test]
    fn history_decodes_to_what_a_running_session_says() {
        let user = json!({
            "type": "user", "uuid": "u", "sessionId": "s", "toolUseResult": {"stdout": "x"}, "sourceToolAssistantUUID": "a",
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x\u{fffd}"}]},
        });
        let Ok(Message::User(user)) = message(&user).unwrap().decode() else {
            panic!("no message of the user")
        };
        assert_eq!(user.tool_use_result.unwrap().get(), r#"{"stdout":"x"}"#);
        assert_eq!(user.source_tool_assistant_uuid.as_deref(), Some("a"));

        let answer = |extra: Value| {
            let mut record = json!({
                "type": "assistant", "uuid": "u", "sessionId": "s", "requestId": "req",
                "message": {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [{"type": "text", "text": "hi"}],
                    "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}},
            });
            record
                .as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
            message(&record).unwrap().decode()
        };
        let Ok(Message::Assistant(said)) = answer(json!({})) else {
            panic!("no answer")
        };
        assert_eq!(
            (said.uuid.as_str(), said.request_id.as_deref()),
            ("u", Some("req"))
        );
        // A field that means something else at rest hides nothing.
        let Ok(Message::Assistant(said)) = answer(json!({"supersedes": 7})) else {
            panic!("no answer")
        };
        assert_eq!(said.supersedes, None);

        let boundary = json!({
            "type": "system", "subtype": "compact_boundary", "uuid": "b", "sessionId": "s",
            "compactMetadata": {"trigger": "manual", "preTokens": 7, "preservedSegment": {"headUuid": "h", "anchorUuid": "a", "tailUuid": "t"}},
        });
        let decoded = message(&boundary).unwrap().decode().unwrap();
        let shown = format!("{decoded:?}");
        assert!(
            shown.contains("CompactBoundary") && shown.contains("pre_tokens: 7"),
            "{shown}"
        );
        assert!(
            message(&json!({"type": "user", "uuid": "u", "message": 7}))
                .unwrap()
                .decode()
                .is_err()
        );
    }

    #[test]
    fn names_are_brought_to_those_of_the_wire() {
        for (name, wire) in [
            ("sourceToolAssistantUUID", "source_tool_assistant_uuid"),
            ("uuid", "uuid"),
            ("isMeta", "is_meta"),
            ("a_b", "a_b"),
        ] {
            assert_eq!(snake(name), wire);
        }
    }
}
