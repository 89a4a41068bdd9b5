//! Messages: of the model, of the user, and results of tools.

use std::sync::Arc;
use std::time::Instant;

use outrigger::protocol::inbound::{
    ApiStreamEvent, AssistantMessage, BlockDelta, NonExecutionKind, StreamEvent, UserMessage,
};
use outrigger::protocol::shared::{ContentBlock, MessageContent, Origin, TextOr, ToolResultBlock};
use outrigger::protocol::{PieceKind, RawJson};

use super::calls::CallResult;
use super::step::Steps;
use super::text::Begun;
use super::{MOST_AGENTS, Reducer};
use crate::event::{AgentDetails, AgentPrompt, CallContent, Chunk, Content, Event, Notice, Status, Topic};
use crate::prompt;
use crate::tool::{self, Printed, Role, ToolResultView};

impl Reducer {
    /// A delta of a block.
    pub(super) fn delta(
        &mut self,
        parent: Option<&str>,
        index: u64,
        kind: PieceKind,
        text: &str,
        steps: &mut Steps,
    ) {
        if let Some(call) = self.streams.piece(parent, index, kind, text, steps) {
            self.calls.piece(&call, text, &self.dir, steps);
        }
    }

    pub(super) fn stream(&mut self, event: StreamEvent, now: Instant, steps: &mut Steps) {
        let parent = event.parent_tool_use_id.as_deref();
        match event.event {
            ApiStreamEvent::MessageStart(start) => {
                if parent.is_none() {
                    self.meter.model(&start.message.model);
                    self.meter.begun(start.message.usage.as_ref());
                }
                let id = start.message.id.as_deref().or(event.api_message_id.as_deref());
                self.streams.name(parent, id.map(Arc::from));
            }
            ApiStreamEvent::ContentBlockStart(start) => {
                let begun = match &start.content_block {
                    ContentBlock::Text(block) => Begun::Text(&block.text),
                    ContentBlock::Thinking(block) => Begun::Thought(&block.thinking),
                    ContentBlock::ToolUse(block) => {
                        let parent = parent.map(Arc::from);
                        self.calls.begin(&block.id, &block.name, parent, now, steps);
                        Begun::Call(block.id.as_str().into())
                    }
                    ContentBlock::ServerToolUse(block) => {
                        let parent = parent.map(Arc::from);
                        self.calls.begin(&block.id, &block.name, parent, now, steps);
                        Begun::Call(block.id.as_str().into())
                    }
                    _ => Begun::Other,
                };
                self.streams.block(parent, start.index, begun, steps);
            }
            ApiStreamEvent::ContentBlockDelta(delta) => {
                let index = delta.index;
                match delta.delta {
                    BlockDelta::Text(piece) => {
                        self.delta(parent, index, PieceKind::Text, &piece.text, steps);
                    }
                    BlockDelta::Thinking(piece) => {
                        self.delta(parent, index, PieceKind::Thinking, &piece.thinking, steps);
                    }
                    BlockDelta::InputJson(piece) => {
                        self.delta(parent, index, PieceKind::InputJson, &piece.partial_json, steps);
                    }
                    // Signatures are for the API; citations and compactions come with the whole block.
                    BlockDelta::Signature(_) | BlockDelta::Citations(_) | BlockDelta::Compaction(_) => {}
                    BlockDelta::Unknown(raw) => steps.raw_extra(Topic::Unknown, raw),
                    BlockDelta::Misfit(misfit) => steps.raw_extra(Topic::Misfit, misfit.raw),
                    _ => {}
                }
            }
            ApiStreamEvent::MessageDelta(delta) => {
                if let Some(usage) = delta.usage.filter(|_| parent.is_none()) {
                    self.meter.message(&usage, steps);
                }
            }
            // The whole block comes in a message; an aborted one is reported otherwise.
            ApiStreamEvent::ContentBlockStop(_)
            | ApiStreamEvent::MessageStop(_)
            | ApiStreamEvent::Ping(_)
            | ApiStreamEvent::Error(_) => {}
            ApiStreamEvent::Unknown(raw) => steps.raw_extra(Topic::Unknown, raw),
            ApiStreamEvent::Misfit(misfit) => steps.raw_extra(Topic::Misfit, misfit.raw),
            _ => {}
        }
    }

    pub(super) fn assistant(&mut self, said: AssistantMessage, now: Instant, steps: &mut Steps) {
        if said.historical == Some(true) && !self.is_history {
            return;
        }
        if said.is_meta == Some(true) {
            return;
        }
        if let Some(usage) = &said.context_usage {
            steps.extra(Topic::ContextUsage, usage);
        }
        if let Some(report) = &said.usage_report {
            steps.extra(Topic::UsageReport, report);
        }
        let parent: Option<Arc<str>> = said.parent_tool_use_id.as_deref().map(Arc::from);
        let message: Option<Arc<str>> = said.message.id.as_deref().map(Arc::from);
        if parent.is_none() {
            self.meter.model(&said.message.model);
        }
        for block in said.message.content {
            match block {
                ContentBlock::Text(block) => {
                    if said.local_command_source.is_some() {
                        self.local_output(&block.text, steps);
                        continue;
                    }
                    self.streams
                        .whole(parent.as_ref(), message.as_ref(), false, &block.text, steps);
                    match &parent {
                        Some(call) => self.remember(call.clone(), block.text),
                        None => self.compactions.goes_on(steps),
                    }
                }
                ContentBlock::Thinking(block) => {
                    self.streams
                        .whole(parent.as_ref(), message.as_ref(), true, &block.thinking, steps);
                }
                ContentBlock::ToolUse(block) => {
                    self.called(&block.id, &block.name, parent.clone(), &block.input, now, steps);
                }
                ContentBlock::ServerToolUse(block) => {
                    self.called(&block.id, &block.name, parent.clone(), &block.input, now, steps);
                    self.calls.run(&block.id, &self.dir, steps);
                }
                ContentBlock::McpToolUse(block) => {
                    let tool = format!("mcp__{}__{}", block.server_name, block.name);
                    self.called(&block.id, &tool, parent.clone(), &block.input, now, steps);
                    self.calls.run(&block.id, &self.dir, steps);
                }
                ContentBlock::McpToolResult(block) => {
                    let shown = ToolResultView {
                        content: Some(tool::blocks(block.content.as_ref())),
                        ..ToolResultView::default()
                    };
                    self.served(
                        &block.tool_use_id,
                        shown,
                        block.is_error == Some(true),
                        now,
                        steps,
                    );
                }
                ContentBlock::WebSearchToolResult(block) => {
                    self.served_quietly(&block.tool_use_id, now, steps)
                }
                ContentBlock::WebFetchToolResult(block) => {
                    self.served_quietly(&block.tool_use_id, now, steps)
                }
                ContentBlock::CodeExecutionToolResult(block) => {
                    self.served_quietly(&block.tool_use_id, now, steps);
                }
                ContentBlock::BashCodeExecutionToolResult(block) => {
                    self.served_quietly(&block.tool_use_id, now, steps);
                }
                ContentBlock::TextEditorCodeExecutionToolResult(block) => {
                    self.served_quietly(&block.tool_use_id, now, steps);
                }
                ContentBlock::ToolSearchToolResult(block) => {
                    self.served_quietly(&block.tool_use_id, now, steps)
                }
                ContentBlock::AdvisorToolResult(block) => self.served_quietly(&block.tool_use_id, now, steps),
                ContentBlock::Fallback(fallback) => {
                    let name = |model: Option<&outrigger::protocol::shared::FallbackModel>| {
                        model.map_or_else(|| "another model".to_owned(), |model| model.model.clone())
                    };
                    let title = format!("{} goes on", name(fallback.to.as_ref()));
                    steps.notice(Notice::warning(Topic::Fallback, title).important(), &fallback);
                }
                ContentBlock::Compaction(block) => {
                    if let Some(summary) = &block.content {
                        self.compactions.summary(summary, Some(&said.uuid), steps);
                    }
                }
                ContentBlock::Unknown(raw) => steps.raw_extra(Topic::Unknown, raw),
                ContentBlock::Misfit(misfit) => steps.raw_extra(Topic::Misfit, misfit.raw),
                // Blocks without a view, or that answers do not have.
                _ => {}
            }
        }
    }

    /// Keeps the last text of a subagent: it is its answer.
    fn remember(&mut self, call: Arc<str>, text: String) {
        if self.last_words.len() < MOST_AGENTS || self.last_words.contains_key(&call) {
            self.last_words.insert(call, text);
        }
    }

    /// A complete call.
    fn called(
        &mut self,
        id: &str,
        tool: &str,
        parent: Option<Arc<str>>,
        input: &RawJson,
        now: Instant,
        steps: &mut Steps,
    ) {
        self.calls.begin(id, tool, parent.clone(), now, steps);
        if !self.calls.is_open(id) {
            return;
        }
        self.calls.seal(id, input, &self.dir, now, steps);
        match tool::role(tool) {
            // The task list of a subagent is not the session's plan.
            Role::Plan if tool == "TodoWrite" && parent.is_some() => {}
            Role::Plan if tool == "TodoWrite" => self.plan.todos(input, steps),
            Role::Plan => self.calls.keep_input(id, input),
            _ => {}
        }
    }

    /// The result of a tool of the API.
    fn served(&mut self, id: &str, shown: ToolResultView, is_error: bool, now: Instant, steps: &mut Steps) {
        let status = if is_error {
            Status::Failed
        } else {
            Status::Completed
        };
        let result = CallResult {
            shown,
            status,
            ran: true,
        };
        self.calls.result(id, result, &self.dir, now, steps);
    }

    fn served_quietly(&mut self, id: &str, now: Instant, steps: &mut Steps) {
        self.served(id, ToolResultView::default(), false, now, steps);
    }

    pub(super) fn user(&mut self, said: UserMessage, now: Instant, steps: &mut Steps) {
        if said.historical == Some(true) && !self.is_history {
            return;
        }
        let results = said
            .message
            .content
            .blocks()
            .iter()
            .filter_map(|block| match block {
                ContentBlock::ToolResult(result) => Some(result),
                _ => None,
            });
        let results: Vec<_> = results.collect();
        for result in &results {
            // The structure belongs to the only result of the line.
            let output = said.tool_use_result.as_ref().filter(|_| results.len() == 1);
            self.tool_result(result, output, &said, now, steps);
        }
        if !results.is_empty() {
            return;
        }
        let is_made_up = said.is_synthetic == Some(true) || said.is_compact_summary == Some(true);
        if is_made_up && (said.is_compact_summary == Some(true) || self.compactions.awaits_summary()) {
            if let Some(text) = text_of(&said.message.content) {
                self.compactions.summary(&text, said.uuid.as_deref(), steps);
            }
            return;
        }
        if let Some(call) = said.parent_tool_use_id.as_deref().filter(|_| self.is_history) {
            return agent_prompt(&said, call, steps);
        }
        if self.is_foreign_prompt(&said) {
            self.prompt(&said, steps);
        }
    }

    /// Whether the line is a user message that the client did not send.
    fn is_foreign_prompt(&self, said: &UserMessage) -> bool {
        let is_hidden = said.is_meta == Some(true)
            || said.is_synthetic == Some(true)
            || said.is_visible_in_transcript_only == Some(true)
            || said.parent_tool_use_id.is_some();
        let is_human = matches!(
            said.origin,
            None | Some(Origin::Human(_) | Origin::Channel(_) | Origin::VoiceCall(_))
        );
        let is_own = said.uuid.as_ref().is_some_and(|uuid| self.prompts.contains(uuid));
        let is_echo = said.is_replay == Some(true);
        !is_hidden && is_human && !is_own && (is_echo || self.is_history)
    }

    fn prompt(&mut self, said: &UserMessage, steps: &mut Steps) {
        let message_id: Option<Arc<str>> = said.uuid.as_deref().map(Arc::from);
        let blocks = tool::blocks(Some(&said.message.content));
        for (position, block) in blocks.into_iter().enumerate() {
            let CallContent::Content(mut content) = block else {
                continue;
            };
            if let Content::Text(text) = &content {
                match typed(text) {
                    // The user sees the link to it.
                    Typed::Words(words) if position > 0 && prompt::is_context(&words) => continue,
                    Typed::Words(words) => content = Content::Text(words),
                    Typed::Printed(printed) if self.is_history => {
                        self.local_output(&printed, steps);
                        self.local = None;
                        continue;
                    }
                    Typed::Printed(_) | Typed::Nothing => continue,
                }
            }
            steps.event(Event::User(Chunk {
                message_id: message_id.clone(),
                parent: None,
                content,
            }));
        }
    }

    /// The result of a call.
    fn tool_result(
        &mut self,
        result: &ToolResultBlock,
        output: Option<&RawJson>,
        said: &UserMessage,
        now: Instant,
        steps: &mut Steps,
    ) {
        let id = &result.tool_use_id;
        if !self.is_history && !self.calls.is_open(id) {
            // The call was lost. Reports it now, unless it has ended before.
            let parent = said.parent_tool_use_id.as_deref().map(Arc::from);
            self.calls.begin(id, tool::LOST, parent, now, steps);
        }
        let Some(tool) = self.calls.tool(id) else {
            return;
        };
        let is_error = result.is_error == Some(true);
        let mut shown = tool::result(&tool, result.content.as_ref(), output, is_error, &self.dir);
        if self.is_history {
            // In a replay, background work has ended, but no record has its end.
            shown.background = None;
        }
        let meta = said.tool_result_meta.iter().flatten().find(|meta| meta.id == *id);
        let not_run = meta.and_then(|meta| meta.non_execution_kind.as_ref());
        let decision = meta.and_then(|meta| meta.permission_decision.as_ref());
        // A call that was open when the turn stopped is "rejected" too, but without a decision about it.
        let is_stopped = is_error
            && match not_run {
                Some(NonExecutionKind::Interrupted | NonExecutionKind::Cancelled) => true,
                Some(NonExecutionKind::UserRejected) => decision.is_none(),
                _ => false,
            };
        if is_stopped || (is_error && not_run.is_some() && tool::is_refusal(result.content.as_ref())) {
            // The remaining text is for the model only.
            shown = ToolResultView {
                printed: shown.printed.map(|_| Printed::default()),
                ..ToolResultView::default()
            };
        }
        if let (Some(output), false) = (output, is_error)
            && let Some(input) = self.calls.input(id)
        {
            self.plan.tool_result(&tool, &input, output, steps);
        }
        let status = match is_error {
            false => Status::Completed,
            true if is_stopped && !self.calls.is_rejected(id) => Status::Cancelled,
            true => Status::Failed,
        };
        if shown.background.is_none() && tool::role(&tool) == Role::Agent {
            self.last_words.remove(id.as_str());
            if self.subagents.contains_key(id.as_str()) {
                self.subagent(id, None, "", status, AgentDetails::default(), steps);
            }
        }
        let ran = not_run.is_none();
        let result = CallResult { shown, status, ran };
        self.calls.result(id, result, &self.dir, now, steps);
    }
}

/// The prompt of a subagent, as its transcript has it.
fn agent_prompt(said: &UserMessage, call: &str, steps: &mut Steps) {
    if said.is_meta == Some(true) || said.is_synthetic == Some(true) {
        return;
    }
    let Some(text) = text_of(&said.message.content) else {
        return;
    };
    if let Typed::Words(text) = typed(&text) {
        steps.event(Event::AgentPrompt(Box::new(AgentPrompt {
            call: call.into(),
            message_id: said.uuid.as_deref().unwrap_or(call).into(),
            text,
        })));
    }
}

/// The text of a prompt for the user.
enum Typed {
    Words(String),
    /// The output of a slash command.
    Printed(String),
    Nothing,
}

/// Transcripts have prompts as the model gets them: commands within tags.
fn typed(text: &str) -> Typed {
    let tagged = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        let (inner, _) = rest.split_once(&format!("</{tag}>"))?;
        Some(inner.trim().to_owned())
    };
    let trimmed = text.trim_start();
    if trimmed.starts_with("<local-command-stdout>") || trimmed.starts_with("<local-command-stderr>") {
        let printed = tagged("local-command-stdout").or_else(|| tagged("local-command-stderr"));
        return printed.map_or(Typed::Nothing, Typed::Printed);
    }
    if trimmed.starts_with("<command-name>") || trimmed.starts_with("<command-message>") {
        let Some(name) = tagged("command-name") else {
            return Typed::Nothing;
        };
        let args = tagged("command-args").unwrap_or_default();
        return Typed::Words(format!("{name} {args}").trim_end().to_owned());
    }
    let is_internal = [
        "<local-command-caveat>",
        "<task-notification>",
        "<system-reminder>",
    ]
    .iter()
    .any(|tag| trimmed.starts_with(tag));
    match is_internal || trimmed.starts_with("[Request interrupted by user") {
        true => Typed::Nothing,
        false => Typed::Words(text.to_owned()),
    }
}

fn text_of(content: &MessageContent) -> Option<String> {
    match content {
        TextOr::Text(text) => Some(text.clone()),
        TextOr::Blocks(blocks) => {
            let texts = blocks.iter().filter_map(|block| match block {
                ContentBlock::Text(block) => Some(block.text.as_str()),
                _ => None,
            });
            let text = texts.collect::<Vec<_>>().join("\n");
            Some(text).filter(|text| !text.is_empty())
        }
    }
}
