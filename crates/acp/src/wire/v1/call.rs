//! Tool calls.

use agent_client_protocol::v1::schema::{
    ContentBlock, Diff as WireDiff, SessionUpdate, TerminalId, TextContent, ToolCall, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::{Value, json};

use super::super::{about, ours, raw, truncate};
use super::{V1Encoder, block, kind, locations};
use crate::event::{CallChange, CallContent, Content, Diff, NewToolCall, Status};

impl V1Encoder {
    pub(super) fn call(&mut self, call: NewToolCall) -> SessionUpdate {
        let mut meta = about(&call.tool, call.parent.as_deref(), None);
        self.begin_terminals(&call, &mut meta);
        SessionUpdate::ToolCall(
            ToolCall::new(call.id, call.title)
                .name(call.tool.to_string())
                .kind(kind(call.kind))
                .status(status(call.status))
                .content(self.contents(call.content))
                .locations(locations(call.locations))
                .raw_input(call.input.as_ref().and_then(raw))
                .meta(meta),
        )
    }

    pub(super) fn call_changed(&mut self, change: CallChange) -> SessionUpdate {
        let mut meta = about(&change.tool, change.parent.as_deref(), change.elapsed);
        let ends = matches!(
            change.status,
            Some(Status::Completed | Status::Failed | Status::Cancelled)
        );
        if change.status == Some(Status::Cancelled)
            && let Some(Value::Object(ours)) = meta.get_mut("claudeCode")
        {
            ours.insert("cancelled".to_owned(), Value::Bool(true));
        }
        let printed = match ends {
            true => self.end_terminal(&change.id, &mut meta),
            false => None,
        };
        let content = change.content.map(|content| self.contents(content)).or(printed);
        let fields = ToolCallUpdateFields::new()
            .title(change.title)
            .kind(change.kind.map(kind))
            .status(change.status.map(status))
            .content(content)
            .locations(change.locations.map(locations))
            .raw_input(change.input.as_ref().and_then(raw))
            .raw_output(change.output.as_ref().and_then(raw));
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(change.id, fields).meta(meta))
    }

    fn contents(&self, contents: Vec<CallContent>) -> Vec<ToolCallContent> {
        contents
            .into_iter()
            .filter_map(|content| self.content(content))
            .collect()
    }

    fn content(&self, content: CallContent) -> Option<ToolCallContent> {
        match content {
            CallContent::Content(Content::Text(text)) => {
                Some(ContentBlock::Text(TextContent::new(truncate::text(text, truncate::MOST_TEXT))).into())
            }
            CallContent::Content(content) => Some(block(content).into()),
            CallContent::Diff(diff) => Some(changed(diff)),
            CallContent::Terminal(id) => self.client.terminals.then(|| {
                ToolCallContent::Terminal(agent_client_protocol::v1::schema::Terminal::new(TerminalId::new(
                    id,
                )))
            }),
        }
    }
}

fn changed(diff: Diff) -> ToolCallContent {
    let size = diff.new.len() + diff.old.as_ref().map_or(0, String::len);
    if size > truncate::MOST_DIFF {
        let text = format!(
            "A change of {size} bytes in {}, too long to be shown.",
            diff.path.display()
        );
        return ContentBlock::Text(TextContent::new(text)).into();
    }
    let line = diff.line.map(|line| ours(json!({"line": line})));
    WireDiff::new(diff.path, diff.new)
        .old_text(diff.old)
        .meta(line)
        .into()
}

pub(super) fn status(status: Status) -> ToolCallStatus {
    match status {
        Status::Pending => ToolCallStatus::Pending,
        Status::InProgress => ToolCallStatus::InProgress,
        Status::Completed => ToolCallStatus::Completed,
        Status::Failed | Status::Cancelled => ToolCallStatus::Failed,
    }
}
