//! The texts of a record.

use serde::Serialize;

use crate::record::{Fields, elements, fields, is_truthy, last, text_of};

/// What part of a conversation a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConversationPart {
    /// A prompt of the user, of a program, or one that was made for them.
    Prompt,
    /// Output of the model.
    Answer,
    /// Thinking of the model, if it is recorded.
    Thinking,
    /// The input of a tool: each text in it by itself, without the names of fields.
    ToolInput,
    /// The result of a tool.
    ToolResult,
}

impl ConversationPart {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Prompt,
        Self::Answer,
        Self::Thinking,
        Self::ToolInput,
        Self::ToolResult,
    ];
}

/// A record of a conversation, as far as searching needs it.
#[derive(Debug)]
pub(super) struct SearchedRecord {
    pub(super) uuid: Option<String>,
    pub(super) timestamp: Option<String>,
    pub(super) branch: Option<String>,
    /// Whether the text is not meant to be shown.
    pub(super) is_meta: bool,
    pub(super) texts: Vec<Text>,
    pub(super) calls: Vec<SearchedToolCall>,
}

/// One text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) part: ConversationPart,
    /// The tool, of an input.
    pub(super) tool: Option<String>,
    pub(super) text: String,
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct SearchedToolCall {
    pub(super) tool: String,
    /// The file that the text is about, if it names one.
    pub(super) file: Option<String>,
}

impl SearchedRecord {
    /// Reads a line. `None` if it is no record; a record without a message has no texts.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let all = fields(&line).ok()?;
        let say = |name| last(&all, name).and_then(text_of);
        let holds = |name| last(&all, name).is_some_and(is_truthy);
        let mut said = Self {
            uuid: say("uuid"),
            timestamp: say("timestamp"),
            branch: say("gitBranch"),
            is_meta: holds("isMeta") || holds("isVisibleInTranscriptOnly") || holds("isCompactSummary"),
            texts: Vec::new(),
            calls: Vec::new(),
        };
        match say("type").as_deref() {
            Some("user") => said.take_message(&all, ConversationPart::Prompt),
            Some("assistant") => said.take_message(&all, ConversationPart::Answer),
            Some("attachment") => said.take_queued(&all),
            _ => {}
        }
        Some(said)
    }

    fn take_message(&mut self, all: &Fields<'_>, part: ConversationPart) {
        let message = last(all, "message").and_then(|message| fields(message).ok());
        if let Some(content) = message.as_ref().and_then(|message| last(message, "content")) {
            self.take_content(content, part);
        }
    }

    /// A prompt that had queued up, and was put beside a turn.
    fn take_queued(&mut self, all: &Fields<'_>) {
        let Some(attachment) = last(all, "attachment").and_then(|it| fields(it).ok()) else {
            return;
        };
        let say = |name| last(&attachment, name).and_then(text_of);
        if say("type").as_deref() != Some("queued_command") {
            return;
        }
        if let Some(source) = say("source_uuid").filter(|source| !source.is_empty()) {
            self.uuid = Some(source);
        }
        self.is_meta = last(&attachment, "isMeta").is_some_and(is_truthy);
        if let Some(prompt) = last(&attachment, "prompt") {
            self.take_content(prompt, ConversationPart::Prompt);
        }
    }

    fn take_content(&mut self, content: &str, part: ConversationPart) {
        if let Some(text) = text_of(content) {
            return self.put(part, None, text);
        }
        for block in elements(content).unwrap_or_default() {
            if let Ok(block) = fields(&block) {
                self.take_block(&block, part);
            }
        }
    }

    fn take_block(&mut self, block: &Fields<'_>, part: ConversationPart) {
        let say = |name| last(block, name).and_then(text_of);
        let Some(kind) = say("type") else {
            return;
        };
        match kind.as_str() {
            "text" => {
                if let Some(text) = say("text") {
                    self.put(part, None, text);
                }
            }
            "thinking" => {
                if let Some(text) = say("thinking") {
                    self.put(ConversationPart::Thinking, None, text);
                }
            }
            // Calls of server tools are calls too.
            kind if kind.ends_with("tool_use") => {
                let tool = say("name").unwrap_or_default();
                let input = last(block, "input").unwrap_or_default();
                for text in strings(input) {
                    self.put(ConversationPart::ToolInput, Some(tool.clone()), text);
                }
                let input = fields(input).unwrap_or_default();
                let names = ["file_path", "notebook_path", "path"];
                let file = names.into_iter().find_map(|name| text_of(last(&input, name)?));
                self.calls.push(SearchedToolCall { tool, file });
            }
            kind if kind.ends_with("tool_result") => {
                self.take_result(last(block, "content").unwrap_or_default())
            }
            _ => {}
        }
    }

    fn take_result(&mut self, content: &str) {
        if let Some(text) = text_of(content) {
            return self.put(ConversationPart::ToolResult, None, text);
        }
        for block in elements(content).unwrap_or_default() {
            let block = fields(&block).unwrap_or_default();
            // Results of a web search have a title and an address.
            for name in ["text", "title", "url"] {
                if let Some(text) = last(&block, name).and_then(text_of) {
                    self.put(ConversationPart::ToolResult, None, text);
                }
            }
        }
    }

    fn put(&mut self, part: ConversationPart, tool: Option<String>, text: String) {
        self.texts.push(Text { part, tool, text });
    }
}

/// The strings in a JSON text, however deep, that are no names of fields.
fn strings(json: &str) -> Vec<String> {
    let bytes = json.as_bytes();
    let mut strings = Vec::new();
    let mut at = 0;
    while let Some(quote) = memchr::memchr(b'"', &bytes[at..]) {
        let start = at + quote;
        let mut end = start + 1;
        loop {
            match memchr::memchr2(b'"', b'\\', bytes.get(end..).unwrap_or_default()) {
                Some(found) if bytes[end + found] == b'"' => break end += found,
                Some(found) => end += found + 2,
                // The string does not end, so the line is no JSON.
                None => return strings,
            }
        }
        at = end + 1;
        let behind = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace());
        if behind != Some(&b':') {
            strings.extend(text_of(&json[start..at]));
        }
    }
    strings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn texts(record: &Value) -> Vec<(ConversationPart, String)> {
        let said = SearchedRecord::read(record.to_string().as_bytes()).unwrap();
        said.texts.into_iter().map(|it| (it.part, it.text)).collect()
    }

    #[test]
    fn each_text_is_of_its_part_and_names_of_fields_are_none() {
        let user = json!({"type": "user", "message": {"content": [
            {"type": "text", "text": "a"}, {"type": "image", "source": {"data": "no"}},
            {"type": "tool_result", "tool_use_id": "no", "content": [{"type": "text", "text": "b\nb"}]},
            {"type": "tool_result", "content": "c"},
        ]}});
        let expected = [
            (ConversationPart::Prompt, "a"),
            (ConversationPart::ToolResult, "b\nb"),
            (ConversationPart::ToolResult, "c"),
        ];
        assert_eq!(texts(&user), expected.map(|(part, text)| (part, text.to_owned())));
        let answer = json!({"type": "assistant", "message": {"model": "no", "content": [
            {"type": "thinking", "thinking": "a", "signature": "no"}, {"type": "text", "text": "b"},
            {"type": "tool_use", "id": "no", "name": "Edit", "input": {"file_path": "/x", "edits": [{"old": "y\"", "n": 1}]}},
        ]}});
        let expected = [
            (ConversationPart::Thinking, "a"),
            (ConversationPart::Answer, "b"),
            (ConversationPart::ToolInput, "/x"),
            (ConversationPart::ToolInput, "y\""),
        ];
        let mut found = texts(&answer);
        found.sort();
        let mut expected = expected.map(|(part, text)| (part, text.to_owned()));
        expected.sort();
        assert_eq!(found, expected);
        let said = SearchedRecord::read(answer.to_string().as_bytes()).unwrap();
        assert_eq!(
            (said.calls[0].tool.as_str(), said.calls[0].file.as_deref()),
            ("Edit", Some("/x"))
        );

        let queued = json!({"type": "attachment", "uuid": "q", "attachment": {"type": "queued_command", "prompt": "later", "source_uuid": "s"}});
        assert_eq!(texts(&queued), [(ConversationPart::Prompt, "later".to_owned())]);
        assert_eq!(
            SearchedRecord::read(queued.to_string().as_bytes())
                .unwrap()
                .uuid
                .as_deref(),
            Some("s")
        );
        assert!(
            texts(&json!({"type": "attachment", "attachment": {"type": "file", "prompt": "no"}})).is_empty()
        );
        assert!(texts(&json!({"type": "last-prompt", "lastPrompt": "no"})).is_empty());
        assert!(
            SearchedRecord::read(b"{\"type\":\"user\"").is_none() && SearchedRecord::read(b"[]").is_none()
        );
    }
}
