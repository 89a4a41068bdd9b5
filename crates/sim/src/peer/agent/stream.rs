//! One response of the model: its faults, its pace, and what is left of it when it is cut short.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::act::Act;
use super::brain::{FaultKind, ModelResponse};
use super::caller::ModelCall;
use super::context::{Abort, ConversationLine};
use super::subagent::is_agent_tool;
use super::turn::{End, Turn};
use super::{background, decision, disk, inputs, mcp, payload, permission_request};
use crate::fields::JsonFields as _;
use crate::script::response::Block;

/// The side effects before a block.
fn acts_before(acts: &[(usize, Act)], block: usize) -> impl Iterator<Item = &Act> + Clone {
    acts.iter()
        .filter(move |(index, _)| *index == block)
        .map(|(_, act)| act)
}

/// The signature under thinking.
const SIGNATURE: &str = "c2lnbmF0dXJl";

/// A message under way.
pub(super) struct StreamedMessage {
    id: String,
    model: String,
    input: u64,
    /// How many blocks have been written as `assistant` lines.
    written: usize,
    /// Characters of all blocks so far.
    characters: u64,
    /// Whether the message comes whole, so that the host does not see it come.
    whole: bool,
}

impl Turn {
    /// Calls the model once and writes its response. Its tool calls are made meanwhile.
    pub(super) async fn respond(&mut self, model: &str, mut response: ModelResponse) -> Result<(), End> {
        let acts = std::mem::take(&mut response.acts);
        if self.streams() {
            let mut status = json!({"status": "requesting"});
            status.put("user_message_uuids", self.uuids().map(|(_, all)| all));
            self.ctx.send_system("status", status).await;
        }
        let asked = self.ctx.log.elapsed();
        if let Err(why) = self.or_abort(self.ctx.pause(self.ctx.config.latency)).await {
            return Err(self.cut_short(why, None, None).await);
        }
        let whole = self.fail(model, &response).await?;
        if let Err(why) = self.perform(acts_before(&acts, 0)).await {
            return Err(self.cut_short(why, None, None).await);
        }
        if response.hang && response.blocks.is_empty() {
            let Err(why) = self.or_abort(std::future::pending::<()>()).await else {
                return Ok(());
            };
            return Err(self.cut_short(why, None, None).await);
        }
        self.message(model, &response, &acts, whole).await?;
        self.api_time += self.ctx.log.elapsed().saturating_sub(asked);
        Ok(())
    }

    /// Writes a message of the model, up to where it breaks off if it does.
    pub(super) async fn message(
        &mut self,
        model: &str,
        response: &ModelResponse,
        acts: &[(usize, Act)],
        whole: bool,
    ) -> Result<(), End> {
        let number = self.ctx.state().ids.message();
        let mut message = StreamedMessage {
            id: format!("msg_sim_{number:04}"),
            model: model.to_owned(),
            input: response.usage.input,
            written: 0,
            characters: 0,
            whole,
        };
        if self.first_frame.is_none() {
            self.first_frame = Some(self.ctx.log.elapsed());
            self.begins_whole = message.whole;
        }
        if self.streams() && !message.whole {
            self.begun.push(message.id.clone());
            let usage = payload::usage_so_far(message.input, 1);
            let event = json!({"type": "message_start", "message": {
                "id": message.id, "type": "message", "role": "assistant", "model": model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": usage,
            }});
            let mut extra =
                json!({"ttft_ms": self.ctx.config.latency.as_millis() as u64, "thinking_display": "updates"});
            // The first event of a turn names its prompts, as the first message does.
            if let (false, Some((last, all))) = (self.marked, self.uuids()) {
                extra["user_message_uuid"] = json!(last);
                extra["user_message_uuids"] = json!(all);
                extra["owed_rows"] = json!([]);
            }
            self.send_event(&message, event, extra).await;
        }
        let mut plans = response.calls.iter().cloned();
        let mut starts_agent = None;
        for (index, block) in response.blocks.iter().enumerate() {
            // A call begins before the next block has come.
            self.hands.stir().await;
            let call = self.block(&mut message, index, block, response, number).await?;
            if let Some(mut call) = call {
                starts_agent.get_or_insert(is_agent_tool(&call.name));
                call.plan = plans.next().unwrap_or_default();
                self.hands.take(call);
            }
            // A response that stalls or breaks off does so before its last block has ended.
            let is_open = response.stays_open_at(index);
            let text = match block {
                Block::Text(text) => Some(text.clone()),
                _ => None,
            };
            let open = is_open.then_some((index, text));
            let mut done = self.perform(acts_before(acts, index + 1)).await;
            if done.is_ok() && is_open && response.hang {
                done = self.or_abort(std::future::pending::<()>()).await;
            }
            if let Err(why) = done {
                return Err(self.cut_short(why, Some(&message), open).await);
            }
        }
        if let Some(fault) = &response.breaks {
            self.break_off(&message, response.blocks.len().checked_sub(1), fault)
                .await;
            return Ok(());
        }
        let usage = response.usage;
        self.tokens = (self.tokens.0 + usage.input, self.tokens.1 + usage.output);
        self.last_usage = (usage.input, usage.output);
        self.context = usage.input + usage.output;
        {
            let mut state = self.ctx.state();
            state.use_tokens(model, usage.input, usage.output, response.cost);
            if self.agent.is_none() {
                state.context = self.context;
            }
        }
        self.text = response
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) => Some(text.as_str()),
                Block::Raw(block) => block["text"].as_str(),
                _ => None,
            })
            .next_back()
            .unwrap_or_default()
            .to_owned();
        self.is_silent = response.blocks.iter().all(|block| !block.is_seen());
        if let Some(displayed) = self.displayed.take() {
            self.text = displayed;
        }
        self.stop_reason = Some(response.stop_reason().to_owned());
        self.last_message.clone_from(&message.id);
        if self.streams() && !message.whole {
            let delta = json!({"stop_reason": response.stop_reason(), "stop_sequence": null});
            let usage = payload::usage_so_far(usage.input, usage.output);
            let event = json!({"type": "message_delta", "delta": delta, "usage": usage});
            let extra = json!({"api_message_id": message.id});
            self.tally()
                .unstopped
                .extend([(event, extra.clone()), (json!({"type": "message_stop"}), extra)]);
            // With tools the CLI goes to work before the stream has ended, and an agent has begun before anything more of it is there.
            if starts_agent != Some(true) || self.ctx.is_hooked("PreToolUse") {
                self.send_next_stop().await;
            }
            if starts_agent.is_none() || self.hands.are_busy() {
                self.send_stop().await;
            }
        }
        Ok(())
    }

    /// One content block: its deltas, its `assistant` line, its end. Returns the call, if it is one.
    async fn block(
        &mut self,
        message: &mut StreamedMessage,
        index: usize,
        block: &Block,
        response: &ModelResponse,
        number: u32,
    ) -> Result<Option<ModelCall>, End> {
        let (start, deltas, done): (Value, Vec<Value>, Value) = match block {
            Block::Text(text) => (
                json!({"type": "text", "text": ""}),
                chunks(text, response)
                    .map(|text| json!({"type": "text_delta", "text": text}))
                    .collect(),
                json!({"type": "text", "text": text}),
            ),
            Block::Thinking(text) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                chunks(text, response)
                    .map(|text| json!({"type": "thinking_delta", "thinking": text}))
                    .chain([json!({"type": "signature_delta", "signature": SIGNATURE})])
                    .collect(),
                json!({"type": "thinking", "thinking": text, "signature": SIGNATURE}),
            ),
            Block::ToolUse { name, input } => {
                let id = format!("toolu_sim_{number:04}_{index}");
                let answer = self.schema_of_answer(name);
                let is_missing = answer.is_none() && self.missing(name).is_some();
                let schema = answer.or_else(|| mcp::schema(&self.ctx, name));
                let written = match is_missing {
                    true => input.clone(),
                    false => inputs::written(name, schema.as_ref(), input, &self.ctx.cwd()),
                };
                (
                    json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                    chunks(&input.to_string(), response)
                        .map(|text| json!({"type": "input_json_delta", "partial_json": text}))
                        .collect(),
                    json!({"type": "tool_use", "id": id, "name": name, "input": written}),
                )
            }
            Block::Redacted(data) => {
                let block = json!({"type": "redacted_thinking", "data": data});
                (block.clone(), Vec::new(), block)
            }
            Block::Raw(block) => {
                let (start, deltas) = Block::streamed(block);
                (start, deltas, block.clone())
            }
        };
        if let Block::ToolUse { name, .. } = block {
            message.characters += name.chars().count() as u64;
        }
        let event = json!({"type": "content_block_start", "index": index, "content_block": start});
        let thinks = done["type"] == "thinking";
        let display = |shown: bool| {
            if shown {
                json!({"thinking_display": "updates"})
            } else {
                json!({})
            }
        };
        self.send_event(message, event, display(thinks)).await;
        let began = self.ctx.log.elapsed();
        let (mut so_far, mut tokens) = (String::new(), 0);
        for delta in deltas {
            let pause = response.pace.map_or(Duration::ZERO, |pace| pace.every);
            // A look at the abort even if there is no pause.
            if let Err(why) = self.or_abort(self.ctx.pause(pause)).await {
                let open = Some((index, matches!(block, Block::Text(_)).then_some(so_far)));
                return Err(self.cut_short(why, Some(message), open).await);
            }
            let chunk = ["text", "thinking", "partial_json"]
                .iter()
                .find_map(|key| delta[*key].as_str());
            let chunk = chunk.unwrap_or_default().to_owned();
            message.characters += chunk.chars().count() as u64;
            so_far.push_str(&chunk);
            let thought = delta["type"] == "thinking_delta";
            let more = match (thought, delta["signature"].as_str()) {
                (true, _) => tokens_of(&chunk),
                // The CLI takes the greater of both counts, where there is something to sign.
                (_, Some(signature)) if tokens > 0 => tokens_of(signature).saturating_sub(tokens),
                _ => 0,
            };
            if more > 0 && self.agent.is_none() {
                tokens += more;
                let mut fields = json!({"estimated_tokens": tokens, "estimated_tokens_delta": more});
                fields.put("user_message_uuid", self.uuids().map(|(last, _)| last));
                self.ctx.send_system("thinking_tokens", fields).await;
            }
            let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
            self.send_event(message, event, display(thought)).await;
        }
        if response.stays_open_at(index) {
            return Ok(None);
        }
        let extra = if thinks {
            let ms = self.ctx.log.elapsed().saturating_sub(began).as_millis() as u64;
            json!({"thinking_duration_ms": ms.max(1), "thinking_display": "updates"})
        } else {
            json!({})
        };
        let mut extra = extra;
        let there = done["name"].as_str().filter(|name| self.missing(name).is_none());
        let found = there.and_then(|name| mcp::find(&self.ctx, name));
        let unknown = done["name"].as_str().filter(|_| found.is_none());
        if let Some((_, tool)) = unknown.and_then(|name| name.strip_prefix("mcp__")?.split_once("__")) {
            extra["tool_use_meta"] = json!([{"id": done["id"], "display_name": mcp::display_name(tool)}]);
        }
        if let (Some(found), true) = (found, done["type"] == "tool_use") {
            extra["tool_use_meta"] = json!([{
                "id": done["id"], "display_name": mcp::display_name(&found.tool),
                "server_display_name": found.server_shown, "tool_name": found.tool,
            }]);
        }
        let background = self.agent.as_ref().is_some_and(|agent| agent.background);
        // Nobody is shown a text with nothing in it.
        let is_shown = block.is_seen() || done["type"] != "text";
        if is_shown && !background {
            self.send_progress(message, &done).await;
        }
        let mut call = (done["type"] == "tool_use").then(|| {
            let text = |key: &str| done[key].as_str().unwrap_or_default();
            ModelCall::new(text("id"), text("name"), done["input"].clone())
        });
        if let Some(call) = call.as_mut().filter(|_| self.agent.is_some() && !background) {
            self.ask_early(call).await;
        }
        if is_shown {
            let (stop_reason, output) = (response.stop_reason(), response.usage.output);
            self.send_assistant(message, &done, extra, stop_reason, output)
                .await;
        }
        if is_shown && background {
            self.send_progress(message, &done).await;
        }
        message.written += 1;
        let event = json!({"type": "content_block_stop", "index": index});
        self.send_event(message, event, json!({})).await;
        Ok(call)
    }

    /// Asks the hooks about the first call of an agent, which comes before the line of the call.
    async fn ask_early(&self, call: &mut ModelCall) {
        if !self.hands.are_empty() || self.missing(&call.name).is_some() {
            return;
        }
        let Ok(input) = inputs::read(&call.name, &call.input) else {
            return;
        };
        let name = if call.name == "Task" { "Agent" } else { &call.name };
        let shown = inputs::placed(
            name,
            input.clone(),
            &self.ctx.cwd(),
            Path::new(&self.ctx.config.home),
        );
        let read = ModelCall {
            shown: shown.clone(),
            used: input,
            ..ModelCall::new(&call.id, name, call.input.clone())
        };
        if decision::denied_file(&self.ctx, name, &shown).is_none()
            && disk::unfit(&self.ctx, &self.reader(), &read).await.is_none()
        {
            call.asked = Some(self.ask_before_tool(&call.id, name, &shown).await);
        }
    }

    /// Reports what a subagent is about to do.
    async fn send_progress(&mut self, message: &StreamedMessage, block: &Value) {
        let (Some(name), true) = (block["name"].as_str(), block["type"] == "tool_use") else {
            return;
        };
        let lines = |text: &str| match block["input"][text].as_str() {
            None | Some("") => 0,
            Some(text) => text.split('\n').count() as u64,
        };
        self.used.calls += 1;
        *self.used.by_tool.entry(name.to_owned()).or_default() += 1;
        match name {
            "Write" => self.used.lines_added += lines("content"),
            "Edit" => {
                self.used.lines_added += lines("new_string");
                self.used.lines_removed += lines("old_string");
            }
            _ => {}
        }
        if self.missing(name).is_none() {
            self.used.tools.insert(name.to_owned());
        }
        self.ctx.keep(|transcript| transcript.used_tool(name));
        if self.agent.is_none() {
            self.ctx.state().subagents.calls(name);
        }
        if let Some(agent) = &self.agent {
            let input = &block["input"];
            let what = permission_request::description(&self.ctx, name, input);
            let what = what.as_str().unwrap_or(name);
            let doing = match name {
                "Write" => "Writing",
                "Edit" => "Editing",
                "Read" => "Reading",
                "Glob" => "Finding",
                _ => "Running",
            };
            let description = match name {
                // The end of a task is shown as the agent that ends it.
                "KillBash" | "KillShell" | "TaskStop" => agent.description.clone(),
                // The start of another agent is shown as its description alone.
                name if is_agent_tool(name) => what.to_owned(),
                _ => format!("{doing} {what}"),
            };
            let fields = json!({
                "task_id": agent.id, "run_id": agent.run_id(), "tool_use_id": agent.tool_use_id,
                "description": description, "subagent_type": agent.kind, "last_tool_name": name,
                "usage": {
                    "total_tokens": message.input + 1, "tool_uses": self.used.calls,
                    "duration_ms": self.took().as_millis() as u64,
                },
            });
            self.ctx.send_system("task_progress", fields).await;
        }
    }

    /// Names the prompts in the first message of a turn.
    pub(super) fn mark(&mut self, extra: &mut Value) {
        if let (false, Some((last, all))) = (self.marked, self.uuids()) {
            self.marked = true;
            extra["user_message_uuid"] = json!(last);
            extra["user_message_uuids"] = json!(all);
        }
    }

    async fn send_assistant(
        &mut self,
        message: &StreamedMessage,
        block: &Value,
        mut extra: Value,
        stop_reason: &str,
        output: u64,
    ) {
        extra["request_id"] = json!(format!("req_sim_{}", message.id));
        self.mark(&mut extra);
        let mut shown = json!({
            "id": message.id, "type": "message", "role": "assistant", "model": message.model, "content": [block],
            "stop_reason": null, "stop_sequence": null, "usage": payload::usage_so_far(message.input, 1),
            "context_management": null,
        });
        let mut kept = shown.clone();
        if let (Some(text), true) = (block["text"].as_str(), extra["aborted"].is_null()) {
            self.displayed = self.display(text).await;
            if let Some(text) = &self.displayed {
                shown["content"][0]["text"] = json!(text);
            }
        }
        kept["stop_reason"] = json!(stop_reason);
        kept["usage"] = payload::usage(message.input, output);
        if message.whole {
            for field in ["stop_reason", "usage"] {
                shown[field] = kept[field].clone();
            }
        }
        let is_text = block["type"] == "text" || block["type"] == "thinking";
        let said = ConversationLine {
            agent: self.agent.as_deref(),
            kind: "assistant",
            message: shown,
            extra: extra.clone(),
            shown: self
                .agent
                .as_ref()
                .is_none_or(|agent| !is_text || agent.shows_text()),
            kept: Some(json!({
                "message": kept, "requestId": extra["request_id"], "requestedModel": message.model, "effort": "medium",
            })),
        };
        let uuid = self.ctx.say(said).await;
        self.tally().last_assistant = uuid;
    }

    async fn send_event(&self, message: &StreamedMessage, event: Value, mut extra: Value) {
        if !message.whole {
            extra["api_message_id"] = json!(message.id);
            self.send_raw_event(event, extra).await;
        }
    }

    /// The end of a response that has broken off, in the open block.
    async fn break_off(&mut self, message: &StreamedMessage, open: Option<usize>, fault: &FaultKind) {
        // The API has not said how much it was: the CLI estimates it where the connection broke.
        let output = match fault {
            FaultKind::Cut => message.characters.div_ceil(3).max(1),
            _ => 1,
        };
        self.tokens = (self.tokens.0 + message.input, self.tokens.1 + 1);
        if message.written > 0 || matches!(fault, FaultKind::Cut) {
            self.ctx
                .state()
                .use_tokens(&message.model, message.input, output, None);
        }
        self.text.clear();
        self.stop_reason = None;
        self.abandon(message, message.written, open, None).await;
        self.broken = Some(fault.clone());
    }

    /// The end of the stream of a message without its end: from which block on it does not count.
    async fn abandon(
        &self,
        message: &StreamedMessage,
        from: usize,
        open: Option<usize>,
        delta: Option<Value>,
    ) {
        let block = open.map(|index| json!({"type": "content_block_stop", "index": index}));
        for event in block.into_iter().chain(delta) {
            self.send_event(message, event, json!({})).await;
        }
        let abandoned = json!({"api_message_id": message.id, "from_block_index": from});
        let extra = json!({"abandoned_blocks": abandoned});
        self.send_event(message, json!({"type": "message_stop"}), extra)
            .await;
    }

    /// The end of a response that was stopped: what there is of its text, a word about it, and the end of its stream.
    pub(super) async fn cut_short(
        &mut self,
        why: Abort,
        message: Option<&StreamedMessage>,
        open: Option<(usize, Option<String>)>,
    ) -> End {
        self.text.clear();
        let mut written = message.map_or(0, |message| message.written);
        if let Some(message) = message {
            // An unfinished message has no counts; the CLI estimates them.
            let output = message.characters.div_ceil(3);
            self.ctx
                .state()
                .use_tokens(&message.model, message.input, output, None);
            let is_behind = self.agent.as_ref().is_some_and(|agent| agent.background);
            if let Some((_, Some(text))) = &open
                && !text.is_empty()
                && !is_behind
            {
                self.text.clone_from(text);
                let block = json!({"type": "text", "text": text});
                self.send_assistant(message, &block, json!({"aborted": true}), "end_turn", output)
                    .await;
                written += 1;
            }
        }
        if self.agent.is_none() {
            // Agents that were stopped with it have their last words first.
            background::last_words(&self.ctx).await;
        }
        let calls = self.hands.finished().await;
        self.reject(calls.stopped).await;
        self.let_go().await;
        if why != Abort::Displaced && !self.stops_silently() {
            self.send_user(
                json!([{"type": "text", "text": "[Request interrupted by user]"}]),
                json!({}),
            )
            .await;
        }
        if let Some(message) = message {
            let delta = json!({
                "type": "message_delta",
                "context_management": null,
                "delta": {"container": null, "stop_details": null, "stop_reason": null, "stop_sequence": null},
                "usage": {
                    "output_tokens_details": {"thinking_tokens": 0},
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0,
                    "input_tokens": message.input,
                    "iterations": [],
                    "output_tokens": 1,
                    "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
                    "fallback_credit": null,
                },
            });
            let open = open.map(|(index, _)| index);
            self.abandon(message, written, open, Some(delta)).await;
        }
        End::Aborted { why, tools: false }
    }
}

/// How the CLI estimates the tokens of thinking.
fn tokens_of(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

/// A text cut into deltas: at the response's pace, or into three.
fn chunks(text: &str, response: &ModelResponse) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let size = response
        .pace
        .map_or(characters.len().div_ceil(3), |pace| pace.chunk)
        .max(1);
    let chunks: Vec<String> = characters
        .chunks(size)
        .map(|chunk| chunk.iter().collect())
        .collect();
    chunks.into_iter()
}
