//! From what happens in a session to spans, metrics and logs.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, Severity};
use opentelemetry::trace::{Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::Span;
use outrigger::protocol::{Frame, RawJson};
use outrigger::{Observer, Outcome};
use serde::Deserialize;

use super::Telemetry;
use crate::content::redacted;
use crate::frame_fields::{
    CliRequestFrame, ConversationFrame, ConversationMessage, EndedTask, SaidUsage, read,
};
use crate::instruments::record;
use crate::names;

/// More spans of a kind are not open at once in one session; further ones are left out.
const MAX_OPEN: usize = 4096;

const PROVIDER: &str = "anthropic";

/// The spans of a session.
#[derive(Debug)]
pub(crate) struct SessionSpans {
    telemetry: Telemetry,
    context: SpanContext,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    span: Span,
    has_id: bool,
    turns: Vec<OpenTurn>,
    /// Requests to the model: one in the main conversation, and one in each subagent.
    chats: HashMap<Option<String>, Chat>,
    tools: HashMap<String, OpenSpan>,
    requests: HashMap<String, OpenSpan>,
    /// The model could begin to work then: a prompt was sent, or a tool had ended.
    fed: SystemTime,
}

/// A turn without an outcome.
#[derive(Debug)]
struct OpenTurn {
    /// The id of the prompt; `None` for an ambient turn.
    prompt: Option<String>,
    began: SystemTime,
    /// The model has shown a sign.
    seen: bool,
    span: Span,
}

/// A tool call or a request of the CLI.
#[derive(Debug)]
struct OpenSpan {
    began: SystemTime,
    span: Span,
    /// The tool, or the event of a hook.
    name: String,
    is_hook: bool,
}

/// A request to the model.
#[derive(Debug)]
struct Chat {
    id: Option<String>,
    model: String,
    began: SystemTime,
    last: SystemTime,
    usage: SaidUsage,
    parent: SpanContext,
    output: Vec<String>,
}

impl SessionSpans {
    /// Begins the span of the session.
    pub(crate) fn begin(telemetry: Telemetry, parent: &Context) -> Self {
        let now = SystemTime::now();
        let span = SpanBuilder::from_name(names::SPAN_SESSION)
            .with_kind(SpanKind::Internal)
            .with_start_time(now)
            .with_attributes([KeyValue::new(names::PROVIDER_NAME, PROVIDER)])
            .start_with_context(&telemetry.tracer, parent);
        Self {
            context: span.span_context().clone(),
            telemetry,
            state: Mutex::new(State {
                span,
                has_id: false,
                turns: Vec::new(),
                chats: HashMap::new(),
                tools: HashMap::new(),
                requests: HashMap::new(),
                fed: now,
            }),
        }
    }

    pub(crate) fn started_for(&self, attributes: Vec<KeyValue>, follows: Option<SpanContext>) {
        let span = &mut self.state().span;
        span.set_attributes(attributes);
        if let Some(before) = follows {
            span.add_link(before, Vec::new());
        }
    }

    pub(crate) fn event(&self, name: &'static str, attributes: Vec<KeyValue>) {
        self.state().span.add_event(name, attributes);
    }

    pub(crate) fn context(&self) -> &SpanContext {
        &self.context
    }

    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(
        &self,
        name: String,
        kind: SpanKind,
        began: SystemTime,
        parent: &SpanContext,
        attributes: Vec<KeyValue>,
    ) -> Span {
        SpanBuilder::from_name(name)
            .with_kind(kind)
            .with_start_time(began)
            .with_attributes(attributes)
            .start_with_context(
                &self.telemetry.tracer,
                &Context::new().with_remote_span_context(parent.clone()),
            )
    }

    fn begin_turn(
        &self,
        state: &mut State,
        prompt: Option<String>,
        now: SystemTime,
        input: Option<&ConversationMessage<'_>>,
    ) {
        if state.turns.len() == MAX_OPEN {
            return;
        }
        let mut attributes = vec![
            KeyValue::new(names::OPERATION_NAME, names::INVOKE_AGENT),
            KeyValue::new(names::PROVIDER_NAME, PROVIDER),
            KeyValue::new(names::AGENT_NAME, "Claude Code"),
            KeyValue::new(names::AMBIENT, prompt.is_none()),
        ];
        if let Some(input) = input.filter(|_| self.telemetry.content) {
            attributes.push(KeyValue::new(
                names::INPUT_MESSAGES,
                messages("user", [redacted(input.json())]),
            ));
        }
        let name = names::SPAN_TURN.to_owned();
        let span = self.start(name, SpanKind::Internal, now, &self.context, attributes);
        state.turns.push(OpenTurn {
            seen: prompt.is_none(),
            prompt,
            began: now,
            span,
        });
    }

    /// A sign of the model: its turn has begun.
    fn sign(&self, state: &mut State, now: SystemTime) {
        match state.turns.first_mut() {
            Some(turn) if !turn.seen => {
                turn.seen = true;
                let waited = since(turn.began, now);
                record(&self.telemetry.instruments.wait, waited, &[]);
            }
            Some(_) => {}
            None => self.begin_turn(state, None, now, None),
        }
    }

    fn assistant(&self, state: &mut State, frame: &Frame, now: SystemTime) {
        let Some(said) = read::<ConversationFrame<'_>>(frame) else {
            return;
        };
        let message = &said.message;
        let parent_call = frame.parent_tool_use_id().map(str::to_owned);
        if message.model.as_deref() == Some("<synthetic>") {
            return;
        }
        let parent = self.parent(state, parent_call.as_deref());
        let is_same = |chat: &Chat| chat.id.as_deref() == message.id.as_deref();
        if !state.chats.get(&parent_call).is_some_and(is_same) {
            let model = message.model.as_deref().unwrap_or("unknown").to_owned();
            // A streamed request is known before its message.
            let streamed = state.chats.remove(&parent_call);
            let began = match &streamed {
                Some(chat) if chat.id.is_none() => chat.began,
                _ => state.fed,
            };
            if let Some(chat) = streamed.filter(|chat| chat.id.is_some()) {
                self.end_chat(chat);
            }
            if state.chats.len() < MAX_OPEN {
                let chat = Chat {
                    id: message.id.as_deref().map(str::to_owned),
                    model,
                    began,
                    last: now,
                    usage: SaidUsage::default(),
                    parent,
                    output: Vec::new(),
                };
                state.chats.insert(parent_call.clone(), chat);
            }
        }
        if let Some(chat) = state.chats.get_mut(&parent_call) {
            chat.last = now;
            chat.usage = message.usage().unwrap_or(chat.usage);
            // What is beyond the bound of a text would be cut anyway.
            if self.telemetry.content && chat.output.len() < 64 {
                chat.output.push(redacted(message.json()));
            }
        }
        for block in message.blocks() {
            let (Some(id), Some(name)) = (block.id, block.name) else {
                continue;
            };
            if block.kind != "tool_use" || state.tools.len() == MAX_OPEN || state.tools.contains_key(&*id) {
                continue;
            }
            let parent = self.parent(state, parent_call.as_deref());
            let mut attributes = vec![
                KeyValue::new(names::OPERATION_NAME, names::EXECUTE_TOOL),
                KeyValue::new(names::TOOL_NAME, name.to_string()),
                KeyValue::new(names::TOOL_CALL_ID, id.to_string()),
            ];
            if let Some(input) = block.input.filter(|_| self.telemetry.content) {
                attributes.push(KeyValue::new(names::TOOL_ARGUMENTS, redacted(input.get())));
            }
            let title = format!("{} {name}", names::EXECUTE_TOOL);
            let span = self.start(title, SpanKind::Internal, now, &parent, attributes);
            let tool = OpenSpan {
                began: now,
                span,
                name: name.into_owned(),
                is_hook: false,
            };
            state.tools.insert(id.into_owned(), tool);
        }
    }

    /// The span of the subagent's call, else of the turn, else of the session.
    fn parent(&self, state: &State, call: Option<&str>) -> SpanContext {
        let call = call.and_then(|call| state.tools.get(call)).map(|tool| &tool.span);
        let span = call.or_else(|| state.turns.first().map(|turn| &turn.span));
        span.map_or(&self.context, |span| span.span_context()).clone()
    }

    fn user(&self, state: &mut State, frame: &Frame, now: SystemTime) {
        let Some(said) = read::<ConversationFrame<'_>>(frame) else {
            return;
        };
        for block in said.message.blocks() {
            let Some(call) = block.tool_use_id.as_deref() else {
                continue;
            };
            // The last request of its subagent.
            if let Some(chat) = state.chats.remove(&Some(call.to_owned())) {
                self.end_chat(chat);
            }
            let Some(mut tool) = state.tools.remove(call) else {
                continue;
            };
            let is_error = block.is_error == Some(true);
            if is_error {
                tool.span
                    .set_status(Status::error("the tool call failed or was denied"));
                tool.span
                    .set_attribute(KeyValue::new(names::ERROR_TYPE, "tool_error"));
            }
            if let Some(result) = block.content.filter(|_| self.telemetry.content) {
                tool.span
                    .set_attribute(KeyValue::new(names::TOOL_RESULT, redacted(result.get())));
            }
            tool.span.end_with_timestamp(now);
            let mut attributes = vec![KeyValue::new(names::TOOL_NAME, tool.name)];
            if is_error {
                attributes.push(KeyValue::new(names::ERROR_TYPE, "tool_error"));
            }
            record(
                &self.telemetry.instruments.tool,
                since(tool.began, now),
                &attributes,
            );
        }
        if let Some(chat) = state.chats.remove(&frame.parent_tool_use_id().map(str::to_owned)) {
            self.end_chat(chat);
        }
        state.fed = now;
    }

    /// A piece of a message.
    fn streamed(&self, state: &mut State, frame: &Frame, now: SystemTime) {
        let call = frame.parent_tool_use_id();
        // Nearly always the one of the main conversation.
        if let Some(chat) = state.chats.get_mut(&call.map(str::to_owned)) {
            chat.last = now;
        }
    }

    fn end_chat(&self, chat: Chat) {
        let usage = chat.usage;
        let [input, output, cache_read, cache_creation] = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
        ]
        .map(Option::unwrap_or_default);
        let mut attributes = vec![
            KeyValue::new(names::OPERATION_NAME, names::CHAT),
            KeyValue::new(names::PROVIDER_NAME, PROVIDER),
            KeyValue::new(names::RESPONSE_MODEL, chat.model.clone()),
            KeyValue::new(
                names::INPUT_TOKENS,
                number(sum([input, cache_read, cache_creation])),
            ),
            KeyValue::new(names::OUTPUT_TOKENS, number(output)),
            KeyValue::new(names::CACHE_READ_TOKENS, number(cache_read)),
            KeyValue::new(names::CACHE_CREATION_TOKENS, number(cache_creation)),
        ];
        attributes.extend(chat.id.map(|id| KeyValue::new(names::RESPONSE_ID, id)));
        if !chat.output.is_empty() {
            attributes.push(KeyValue::new(
                names::OUTPUT_MESSAGES,
                messages("assistant", chat.output),
            ));
        }
        let name = format!("{} {}", names::CHAT, chat.model);
        let mut span = self.start(name, SpanKind::Client, chat.began, &chat.parent, attributes);
        span.end_with_timestamp(chat.last);
        let attributes = [
            KeyValue::new(names::OPERATION_NAME, names::CHAT),
            KeyValue::new(names::PROVIDER_NAME, PROVIDER),
            KeyValue::new(names::RESPONSE_MODEL, chat.model),
        ];
        record(
            &self.telemetry.instruments.chat,
            since(chat.began, chat.last),
            &attributes,
        );
    }

    /// The CLI asks for a permission, or calls a hook.
    fn cli_request_began(&self, state: &mut State, frame: &Frame, now: SystemTime) {
        let is_hook = match frame.subtype() {
            Some("can_use_tool") => false,
            Some("hook_callback") => true,
            _ => return,
        };
        let (Some(id), Some(asked)) = (frame.request_id(), read::<CliRequestFrame<'_>>(frame)) else {
            return;
        };
        if state.requests.len() == MAX_OPEN || state.requests.contains_key(id) {
            return;
        }
        let asked = asked.request;
        let parent = self.parent(state, asked.tool_use_id.as_deref());
        let name = if is_hook {
            asked.hook_event()
        } else {
            asked.tool_name.as_deref().map(str::to_owned)
        };
        let name = name.unwrap_or_else(|| "unknown".to_owned());
        let (kind, key) = if is_hook {
            (names::HOOK, names::HOOK_EVENT)
        } else {
            (names::PERMISSION, names::TOOL_NAME)
        };
        let mut attributes = vec![KeyValue::new(key, name.clone())];
        if let Some(call) = asked.tool_use_id {
            attributes.push(KeyValue::new(names::TOOL_CALL_ID, call.into_owned()));
        }
        let span = self.start(
            format!("{kind} {name}"),
            SpanKind::Internal,
            now,
            &parent,
            attributes,
        );
        let request = OpenSpan {
            began: now,
            span,
            name,
            is_hook,
        };
        state.requests.insert(id.to_owned(), request);
    }

    fn end_request(&self, mut request: OpenSpan, decision: &'static str, now: SystemTime) {
        if decision == "error" {
            request.span.set_status(Status::error("the reply is an error"));
        }
        let took = since(request.began, now);
        if request.is_hook {
            if decision != "allow" {
                request
                    .span
                    .set_attribute(KeyValue::new(names::DECISION, decision));
            }
            let attributes = [KeyValue::new(names::HOOK_EVENT, request.name)];
            record(&self.telemetry.instruments.hook, took, &attributes);
        } else {
            request
                .span
                .set_attribute(KeyValue::new(names::DECISION, decision));
            let attributes = [
                KeyValue::new(names::TOOL_NAME, request.name),
                KeyValue::new(names::DECISION, decision),
            ];
            record(&self.telemetry.instruments.permission, took, &attributes);
        }
        request.span.end_with_timestamp(now);
    }

    fn end_turn(&self, turn: &mut OpenTurn, outcome: &Outcome, now: SystemTime, counts: bool) {
        let verdict = outcome.verdict().name();
        let cause = outcome.cause().map(|cause| cause.name());
        let mut attributes = vec![KeyValue::new(names::VERDICT, verdict)];
        if counts {
            let usage = outcome.usage().total();
            attributes.extend([
                KeyValue::new(names::COST_USD, outcome.cost()),
                KeyValue::new(
                    names::INPUT_TOKENS,
                    number(sum([usage.input, usage.cache_read, usage.cache_creation])),
                ),
                KeyValue::new(names::OUTPUT_TOKENS, number(usage.output)),
                KeyValue::new(names::CACHE_READ_TOKENS, number(usage.cache_read)),
                KeyValue::new(names::CACHE_CREATION_TOKENS, number(usage.cache_creation)),
            ]);
        }
        attributes.extend(
            outcome
                .session_id()
                .map(|id| KeyValue::new(names::CONVERSATION_ID, id.to_owned())),
        );
        if let Some(cause) = cause {
            attributes.push(KeyValue::new(names::ERROR_TYPE, cause));
            turn.span.set_status(Status::error(cause));
        }
        turn.span.set_attributes(attributes);
        turn.span.end_with_timestamp(now);
        let mut attributes = vec![
            KeyValue::new(names::AGENT_NAME, "Claude Code"),
            KeyValue::new(names::VERDICT, verdict),
        ];
        attributes.extend(cause.map(|cause| KeyValue::new(names::ERROR_TYPE, cause)));
        record(
            &self.telemetry.instruments.turn,
            since(turn.began, now),
            &attributes,
        );
    }

    /// The usage of a turn, once for all prompts that ended with it.
    fn count(&self, outcome: &Outcome) {
        let metrics = &self.telemetry.instruments;
        for (model, usage) in &outcome.usage().by_model {
            for (kind, tokens) in [
                (
                    "input",
                    sum([usage.input, usage.cache_read, usage.cache_creation]),
                ),
                ("output", usage.output),
            ] {
                let attributes = [
                    KeyValue::new(names::OPERATION_NAME, names::INVOKE_AGENT),
                    KeyValue::new(names::PROVIDER_NAME, PROVIDER),
                    KeyValue::new(names::RESPONSE_MODEL, model.clone()),
                    KeyValue::new(names::TOKEN_TYPE, kind),
                ];
                metrics.tokens.record(tokens, &attributes);
            }
            metrics.cost.add(
                usage.cost_usd,
                &[KeyValue::new(names::RESPONSE_MODEL, model.clone())],
            );
        }
    }

    /// Writes a log that belongs to a span.
    fn log(
        &self,
        event: &'static str,
        severity: Severity,
        of: &SpanContext,
        attributes: Vec<(&'static str, AnyValue)>,
    ) {
        let mut record = self.telemetry.logger.create_log_record();
        record.set_event_name(event);
        record.set_timestamp(SystemTime::now());
        record.set_severity_number(severity);
        record.set_severity_text(severity.name());
        record.set_body(AnyValue::from(event));
        record.set_trace_context(of.trace_id(), of.span_id(), Some(of.trace_flags()));
        record.add_attributes(attributes);
        self.telemetry.logger.emit(record);
    }

    /// Ends what is open. Nothing comes any more from this process.
    fn end_open(&self, state: &mut State, now: SystemTime) {
        for (_, chat) in mem::take(&mut state.chats) {
            self.end_chat(chat);
        }
        for (_, request) in mem::take(&mut state.requests) {
            self.end_request(request, "unanswered", now);
        }
        let spans = mem::take(&mut state.tools).into_values().map(|tool| tool.span);
        for mut span in spans.chain(mem::take(&mut state.turns).into_iter().map(|turn| turn.span)) {
            span.set_status(Status::error("the process ended before"));
            span.end_with_timestamp(now);
        }
    }
}

impl Observer for SessionSpans {
    fn prompt(&self, frame: &Frame) {
        let now = SystemTime::now();
        let mut state = self.state();
        let Some(said) = read::<ConversationFrame<'_>>(frame) else {
            return;
        };
        let prompt = said.uuid.as_deref().unwrap_or_default().to_owned();
        self.begin_turn(&mut state, Some(prompt), now, Some(&said.message));
        state.fed = now;
    }

    fn frame(&self, frame: &Frame) {
        if frame.is_replay() {
            return;
        }
        let now = SystemTime::now();
        let state = &mut *self.state();
        match frame.kind() {
            "stream_event" => {
                self.sign(state, now);
                self.streamed(state, frame, now);
            }
            "assistant" => {
                self.sign(state, now);
                self.assistant(state, frame, now);
            }
            "user" => self.user(state, frame, now),
            "control_request" => self.cli_request_began(state, frame, now),
            "control_cancel_request" => {
                if let Some(request) = frame.request_id().and_then(|id| state.requests.remove(id)) {
                    self.end_request(request, "withdrawn", now);
                }
            }
            "system" => {
                if !state.has_id
                    && let Some(id) = frame.session_id()
                {
                    state.has_id = true;
                    state
                        .span
                        .set_attribute(KeyValue::new(names::CONVERSATION_ID, id.to_owned()));
                }
                // A subagent in the background ends after its call.
                if frame.subtype() == Some("task_notification")
                    && let Some(ended) = read::<EndedTask<'_>>(frame)
                    && let Some(call) = ended.tool_use_id
                    && let Some(chat) = state.chats.remove(&Some(call.into_owned()))
                {
                    self.end_chat(chat);
                }
            }
            "result" => {
                if let Some(chat) = state.chats.remove(&None) {
                    self.end_chat(chat);
                }
            }
            _ => {}
        }
    }

    fn replied(&self, id: &str, reply: Option<&RawJson>) {
        #[derive(Deserialize)]
        struct PermissionReply<'r> {
            #[serde(borrow, default)]
            behavior: Option<std::borrow::Cow<'r, str>>,
        }
        let now = SystemTime::now();
        let Some(request) = self.state().requests.remove(id) else {
            return;
        };
        let decision = match reply {
            None => "error",
            Some(_) if request.is_hook => "allow",
            Some(reply) => match serde_json::from_str::<PermissionReply<'_>>(reply.get()) {
                Ok(PermissionReply { behavior: Some(is) }) if is == "allow" => "allow",
                _ => "deny",
            },
        };
        self.end_request(request, decision, now);
    }

    fn turn_ended(&self, outcome: &Outcome) {
        let now = SystemTime::now();
        let mut state = self.state();
        let is_ambient = outcome.prompts().is_empty();
        let is_of = |turn: &mut OpenTurn| match &turn.prompt {
            Some(prompt) => outcome.prompts().contains(prompt),
            None => is_ambient,
        };
        let ended: Vec<OpenTurn> = state.turns.extract_if(.., is_of).collect();
        drop(state);
        // Prompts that end together have one outcome, which is told for each: the first time ended all of them.
        let severity = match outcome.cause() {
            Some(_) => Severity::Error,
            None => Severity::Info,
        };
        for (number, mut turn) in ended.into_iter().enumerate() {
            if number == 0 {
                self.count(outcome);
                let mut attributes = vec![
                    (names::VERDICT, AnyValue::from(outcome.verdict().name())),
                    (names::COST_USD, AnyValue::from(outcome.cost())),
                ];
                attributes.extend(
                    outcome
                        .cause()
                        .map(|cause| (names::ERROR_TYPE, AnyValue::from(cause.name()))),
                );
                self.log(names::LOG_TURN, severity, turn.span.span_context(), attributes);
            }
            self.end_turn(&mut turn, outcome, now, number == 0);
        }
    }

    fn session_ended(&self) {
        let now = SystemTime::now();
        self.end_open(&mut self.state(), now);
        self.log(names::LOG_SESSION, Severity::Info, &self.context, Vec::new());
    }
}

fn since(began: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(began).unwrap_or_default()
}

/// A message as the conventions have it. A part is JSON of the content, as text: it may be cut.
fn messages(role: &str, parts: impl IntoIterator<Item = String>) -> String {
    let parts = parts.into_iter();
    let parts: Vec<_> = parts
        .map(|content| serde_json::json!({"type": "text", "content": content}))
        .collect();
    serde_json::json!([{"role": role, "parts": parts}]).to_string()
}

/// The counts come from outside: any of them may be the largest number.
fn sum(counts: [u64; 3]) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
