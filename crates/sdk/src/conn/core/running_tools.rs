//! The running tools: calls of the model without a result.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memmem;
use outrigger_protocol::{Frame, walk};
use tracing::Span;

/// How many calls are tracked. With more open at once, tools count as running until the turn ends.
const MAX_OPEN: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct OpenTools {
    open: HashMap<Box<str>, RunningTool>,
    uncounted: bool,
    /// The id of the message with the last calls of the main conversation.
    message: String,
}

#[derive(Debug)]
struct RunningTool {
    /// Whether the main conversation made the call, rather than a subagent.
    is_main: bool,
    /// Lasts as long as the tool runs.
    span: Span,
}

impl OpenTools {
    /// Whether a tool of the main conversation runs.
    pub(crate) fn is_running(&self) -> bool {
        self.uncounted || self.open.values().any(|tool| tool.is_main)
    }

    /// Ends all calls.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes a frame; `turn` is the span for the calls.
    pub(crate) fn on_frame(&mut self, frame: &Frame, turn: Option<&Span>) {
        if frame.parent_tool_use_id().is_none() && self.is_running() && self.goes_on(frame) {
            // The model is asked again when it has the results: one may have been lost.
            self.open.retain(|_, tool| !tool.is_main);
            self.uncounted = false;
        }
        match frame.kind() {
            // The words may be anywhere, so the frame has to be decoded.
            "assistant" if memmem::find(frame.bytes(), b"tool_use").is_some() => self.begin(frame, turn),
            "user" if !self.open.is_empty() => self.end(frame),
            _ => {}
        }
    }

    /// Whether a frame of the main conversation is of a later message than the calls.
    fn goes_on(&self, frame: &Frame) -> bool {
        match frame.kind() {
            "stream_event" => frame.event_type() == Some("message_start"),
            "assistant" => message_id(&frame.text()).is_some_and(|id| !id.is_empty() && *id != *self.message),
            _ => false,
        }
    }

    fn begin(&mut self, frame: &Frame, turn: Option<&Span>) {
        let text = frame.text();
        if frame.parent_tool_use_id().is_none() {
            self.message = message_id(&text).unwrap_or_default().into_owned();
        }
        for call in calls(&text).unwrap_or_default() {
            if self.open.contains_key(&*call.id) {
                continue;
            }
            if self.open.len() == MAX_OPEN {
                self.uncounted = true;
                return;
            }
            let span = tracing::debug_span!(parent: turn.and_then(Span::id), "tool", name = %call.name, id = %call.id);
            tracing::debug!(parent: &span, "begun");
            let is_main = frame.parent_tool_use_id().is_none();
            self.open.insert(call.id.into(), RunningTool { is_main, span });
        }
    }

    /// Searches the bytes for results: a result can be large, and only the ids matter.
    fn end(&mut self, frame: &Frame) {
        const KEY: &[u8] = br#""tool_use_id""#;
        let bytes = frame.bytes();
        for at in memmem::find_iter(bytes, KEY) {
            // Within a string the quotes would be escaped, so this is a key.
            let value = bytes[at + KEY.len()..].trim_ascii_start();
            let Some(value) = value
                .strip_prefix(b":")
                .and_then(|value| value.trim_ascii_start().strip_prefix(b"\""))
            else {
                continue;
            };
            let id = &value[..memchr::memchr(b'"', value).unwrap_or(value.len())];
            if let Some(tool) = std::str::from_utf8(id).ok().and_then(|id| self.open.remove(id)) {
                tracing::debug!(parent: &tool.span, "ended");
                if self.open.is_empty() {
                    return;
                }
            }
        }
    }
}

/// A call in a message of the model.
#[derive(Debug, PartialEq)]
struct ToolCall<'t> {
    id: Cow<'t, str>,
    name: Cow<'t, str>,
}

fn message_id(text: &str) -> Option<Cow<'_, str>> {
    let [message] = values(text, ["message"])?;
    let [id] = values(message?, ["id"])?;
    walk::string(id?)
}

/// The calls in a message, read without decoding it: it can be long. `None` for a message without blocks.
fn calls(text: &str) -> Option<Vec<ToolCall<'_>>> {
    let [message] = values(text, ["message"])?;
    let [content] = values(message?, ["content"])?;
    let mut calls = Vec::new();
    walk::elements(content?, |block| calls.extend(call(block)))?;
    Some(calls)
}

/// The call that a block is, if it is one.
fn call(block: &str) -> Option<ToolCall<'_>> {
    let [kind, id, name] = values(block, ["type", "id", "name"])?;
    if walk::string(kind?)? != "tool_use" {
        return None;
    }
    Some(ToolCall {
        id: walk::string(id?)?,
        name: name.and_then(walk::string).unwrap_or_default(),
    })
}

/// The values of some fields of an object; of a key that stands twice the last one.
fn values<'t, const N: usize>(text: &'t str, keys: [&str; N]) -> Option<[Option<&'t str>; N]> {
    let mut found = [None; N];
    walk::fields(text, |key, value| {
        if let Some(at) = keys.iter().position(|wanted| *wanted == key) {
            found[at] = Some(value);
        }
    })?;
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(line: &str) -> Frame {
        Frame::from_line(line.as_bytes()).remove(0)
    }

    fn call(ids: &[&str], parent: &str) -> Frame {
        let blocks: Vec<_> = ids
            .iter()
            .map(|id| format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"type":"tool_use","id":"no"}}}}"#))
            .collect();
        frame(&format!(
            r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"content":[{{"type":"text","text":"tool_use"}},7,{}]}}}}"#,
            blocks.join(",")
        ))
    }

    fn result(id: &str) -> Frame {
        frame(&format!(
            r#"{{"type":"user","message":{{"content":[{{"tool_use_id": "{id}","type":"tool_result","content":"\"tool_use_id\":\"b\""}}]}}}}"#
        ))
    }

    #[test]
    fn a_call_runs_until_its_result() {
        let mut tools = OpenTools::default();
        tools.on_frame(
            &frame(r#"{"type":"assistant","message":{"content":"tool_use"}}"#),
            None,
        );
        assert!(!tools.is_running());
        tools.on_frame(&call(&["a", "b"], "null"), None);
        tools.on_frame(&call(&["b"], "null"), None);
        tools.on_frame(&result("a"), None);
        assert!(tools.is_running(), "what a result says is no result");
        tools.on_frame(&result("b"), None);
        assert!(!tools.is_running());
        assert!(tools.open.is_empty());
    }

    #[test]
    fn a_call_whose_result_is_lost_ends_with_the_next_message() {
        let said = |id: &str, parent: &str, block: &str| {
            frame(&format!(
                r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"id":"{id}","content":[{block}]}}}}"#
            ))
        };
        let call = r#"{"type":"tool_use","id":"a","name":"Bash"}"#;
        let text = r#"{"type":"text","text":"and so"}"#;
        let begins =
            frame(r#"{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_start"}}"#);
        for next in [said("m2", "null", text), begins] {
            let mut tools = OpenTools::default();
            tools.on_frame(&said("m1", "null", call), None);
            tools.on_frame(&said("m1", "null", text), None);
            tools.on_frame(&said("m3", r#""agent""#, text), None);
            assert!(tools.is_running());
            tools.on_frame(&next, None);
            assert!(!tools.is_running());
        }
        let mut tools = OpenTools::default();
        tools.on_frame(&said("m1", "null", call), None);
        tools.on_frame(&said("m2", "null", &call.replace("\"a\"", "\"b\"")), None);
        tools.on_frame(&result("a"), None);
        assert!(tools.is_running(), "another call has begun");
    }

    #[test]
    fn calls_are_found_however_they_are_written() {
        let block = r#"{"type":"tool_use","id":"a","name":"Bash","input":{"id":"é\""}}"#;
        let text = r#"{"type":"text","text":"tool_use \"é"}"#;
        for (content, ids) in [
            (format!("[{text}, {block}]"), &["a"][..]),
            ("[]".to_owned(), &[]),
            (format!("[7,{block}, {{\"type\":\"tool_use\"}}]"), &["a"]),
            (r#"[{"type":"tool_use","id":"\u0061"}]"#.to_owned(), &["a"]),
            (
                format!("\n[{block}\t,{}] ", block.replace("\"a\"", "\"c\"")),
                &["a", "c"],
            ),
            (
                r#"[{"type":"tool_use","id":"a","id":"b","name":"c"}]"#.to_owned(),
                &["b"],
            ),
        ] {
            let line = format!(r#"{{"message":{{"content":{content}}},"type":"assistant"}}"#);
            let found = calls(&line).unwrap();
            let found: Vec<&str> = found.iter().map(|call| &*call.id).collect();
            assert_eq!(found, ids, "{line}");
        }
        assert_eq!(calls(r#"{"message":"tool_use"}"#), None);
    }

    #[test]
    fn a_subagents_tools_are_not_the_conversations() {
        let mut tools = OpenTools::default();
        tools.on_frame(&call(&["a"], r#""parent""#), None);
        assert!(!tools.is_running());
        assert_eq!(tools.open.len(), 1);
    }

    #[test]
    fn too_many_count_as_running() {
        let mut tools = OpenTools::default();
        let ids: Vec<String> = (0..=MAX_OPEN).map(|number| number.to_string()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        tools.on_frame(&call(&ids, "null"), None);
        for id in &ids {
            tools.on_frame(&result(id), None);
        }
        assert!(tools.is_running());
        tools.clear();
        assert!(!tools.is_running());
    }
}
