//! Encodes events as `session/update`s of version 1.
//!
//! Without the capability of a client, important notices are sent as text, compactions as a tool call, terminals as a block of text, and
//! the rest as `_meta.claudeCode` on an update without content.

mod call;
mod child;
mod terminal;

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ClientCapabilities, CompactionId,
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, Cost, CurrentModeUpdate, ImageContent,
    MessageId, Notice as WireNotice, NoticeSeverity, Plan, PlanEntry as WirePlanEntry, PlanEntryPriority,
    PlanEntryStatus, ResourceLink, SessionInfoUpdate, SessionUpdate, TextContent, ToolCall, ToolCallLocation,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind, UnstructuredCommandInput, UsageUpdate,
};
use serde_json::{Value, json};

use self::terminal::Terminal;
use super::{notice_data, ours, parent_meta, status_name, truncate};
use crate::event::{
    CallChange, Chunk, Command, Compaction, Content, Event, Extra, Kind, Location, Notice, PlanEntry,
    PlanStatus, Severity, Status, Subagent, Usage,
};

/// The capabilities of a client that updates depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UpdateCapabilities {
    /// `session.notices`.
    pub(crate) notices: bool,
    /// `session.compaction`.
    pub(crate) compaction: bool,
    /// `_meta.terminal_output`: output of the agent's terminals, piece by piece.
    pub(crate) terminals: bool,
    /// `_meta.claudeCode.subagentText`: text of subagents, marked with their call. Other clients would show it as a part of the answer.
    pub(crate) subagent_text: bool,
}

impl UpdateCapabilities {
    /// From the capabilities in `initialize`.
    pub(crate) fn of(capabilities: &ClientCapabilities) -> Self {
        let session = capabilities.session.as_ref();
        let meta = capabilities.meta.as_ref();
        let is_set = |value: Option<&Value>| value.and_then(Value::as_bool) == Some(true);
        Self {
            notices: session.is_some_and(|session| session.notices.is_some()),
            compaction: session.is_some_and(|session| session.compaction.is_some()),
            terminals: is_set(meta.and_then(|meta| meta.get("terminal_output"))),
            subagent_text: is_set(
                meta.and_then(|meta| meta.get("claudeCode"))
                    .and_then(|ours| ours.get("subagentText")),
            ),
        }
    }
}

/// Encodes the events of one session.
#[derive(Debug)]
pub(crate) struct V1Encoder {
    client: UpdateCapabilities,
    /// The terminals of open calls.
    terminals: HashMap<Arc<str>, Terminal>,
    /// The compactions that were sent as a tool call.
    compactions: Vec<Arc<str>>,
}

impl V1Encoder {
    pub(crate) fn new(client: UpdateCapabilities) -> Self {
        Self {
            client,
            terminals: HashMap::new(),
            compactions: Vec::new(),
        }
    }

    /// The updates for an event, in order; mostly one. `ConfigChanged` has none: the session sends the options.
    pub(crate) fn encode(&mut self, event: Event) -> Vec<SessionUpdate> {
        let update = match event {
            Event::User(chunk) => self.content_chunk(chunk).map(SessionUpdate::UserMessageChunk),
            Event::Text(chunk) => self.content_chunk(chunk).map(SessionUpdate::AgentMessageChunk),
            Event::Thought(chunk) => self.content_chunk(chunk).map(SessionUpdate::AgentThoughtChunk),
            Event::Call(call) => Some(self.call(*call)),
            Event::CallChanged(change) => Some(self.call_changed(*change)),
            Event::Terminal(change) => self.terminal(change),
            Event::Plan(entries) => Some(SessionUpdate::Plan(Plan::new(plan_entries(entries)))),
            Event::Commands(list) => Some(commands(list)),
            Event::Mode(mode) => Some(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode))),
            Event::ConfigChanged => None,
            Event::Title(text) => Some(title(text)),
            Event::Usage(used) => Some(usage(used)),
            Event::Compaction(compaction) => self.compaction(compaction),
            Event::Notice(notice) => Some(self.notice(notice)),
            Event::Subagent(agent) => Some(subagent(&agent)),
            // For the sessions of subagents, which have updates of their own.
            Event::RecordedAgent(_) | Event::AgentPrompt(_) => None,
            Event::Child(session) => Some(child::announced(*session)),
            Event::ChildState(state) => Some(child::state(*state)),
            Event::Told(message) => Some(child::session_message(*message)),
            Event::Extra(data) => Some(extra(*data)),
        };
        update.into_iter().collect()
    }

    /// The call in a permission request.
    pub(crate) fn shown(&mut self, change: CallChange) -> ToolCallUpdate {
        let id = change.id.clone();
        match self.call_changed(change) {
            SessionUpdate::ToolCallUpdate(call) => call,
            _ => ToolCallUpdate::new(id, ToolCallUpdateFields::new()),
        }
    }

    fn content_chunk(&self, chunk: Chunk) -> Option<ContentChunk> {
        if chunk.parent.is_some() && !self.client.subagent_text {
            return None;
        }
        let parent = parent_meta(chunk.parent.as_deref());
        Some(
            ContentChunk::new(block(chunk.content))
                .message_id(chunk.message_id.map(MessageId::new))
                .meta(parent),
        )
    }

    fn compaction(&mut self, update: Compaction) -> Option<SessionUpdate> {
        if !self.client.compaction {
            return self.compaction_as_call(update);
        }
        Some(compaction(update))
    }

    fn compaction_as_call(&mut self, compaction: Compaction) -> Option<SessionUpdate> {
        let is_known = self.compactions.contains(&compaction.id);
        let status = call::status(compaction.status);
        let text = compaction.summary.or(compaction.error);
        let content = text.map(|text| vec![ContentBlock::Text(TextContent::new(text)).into()]);
        let meta = ours(json!({"toolName": "compact"}));
        if is_known {
            let fields = ToolCallUpdateFields::new().status(status).content(content);
            let update = ToolCallUpdate::new(compaction.id, fields).meta(meta);
            return Some(SessionUpdate::ToolCallUpdate(update));
        }
        // Older ones do not change any more.
        if self.compactions.len() == 8 {
            self.compactions.remove(0);
        }
        self.compactions.push(compaction.id.clone());
        let call = ToolCall::new(compaction.id, "Compact conversation")
            .kind(ToolKind::Think)
            .status(status)
            .content(content.unwrap_or_default())
            .meta(meta);
        Some(SessionUpdate::ToolCall(call))
    }

    fn notice(&self, notice: Notice) -> SessionUpdate {
        if self.client.notices {
            return self::notice(notice);
        }
        let data = notice_data(&notice);
        let severity = match notice.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let about = json!({
            "topic": notice.topic.as_str(), "severity": severity, "title": notice.title,
            "description": notice.description, "data": data,
        });
        if !notice.important {
            return meta_update("notice", about);
        }
        let more = notice.description.map(|more| format!("\n\n{more}"));
        let text = format!("\n\n**{}**{}\n\n", notice.title, more.unwrap_or_default());
        let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(text)));
        SessionUpdate::AgentMessageChunk(chunk.meta(ours(json!({"notice": about}))))
    }
}

shared!();

fn command(command: Command) -> AvailableCommand {
    let hint = command.hint.map(UnstructuredCommandInput::new);
    AvailableCommand::new(command.name, command.description)
        .input(hint.map(AvailableCommandInput::Unstructured))
}

#[cfg(test)]
mod tests;
