//! One turn: from `system/init` to the `result`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::brain::{Ask, CallPlan, ToolResult};
use super::context::{Abort, Context, Priority, Prompt};
use super::ids::wall_ms;
use super::{mcp, payload};

/// What a turn is about.
pub(super) struct Work {
    /// Its prompts; none if background work woke it.
    pub(super) prompts: Vec<Prompt>,
    /// What woke it, for the `origin` of its result.
    pub(super) origin: Option<Value>,
}

/// How a turn ends other than well.
pub(super) enum End {
    /// It was stopped, while the model spoke or (`tools`) while tools were at work.
    Aborted { why: Abort, tools: bool },
    /// The API failed for good.
    Api(ApiFailure),
    /// It took more rounds than allowed.
    MaxTurns(u64),
    /// Nothing was to be asked; the text is that of the result.
    NoQuery(String),
    /// A hook ended it behind a tool.
    HookStopped,
    /// A hook put a tool call off.
    Deferred(Value),
}

/// A failure of the API, as the host gets to see it.
pub(super) struct ApiFailure {
    pub(super) status: Option<u16>,
    pub(super) kind: &'static str,
    pub(super) api_type: Option<&'static str>,
    /// The `error` of the assistant line.
    pub(super) error: &'static str,
    pub(super) text: String,
    pub(super) terminal_reason: &'static str,
}

/// A tool call of the model.
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
    /// What becomes of it.
    pub(super) plan: CallPlan,
}

/// A turn under way.
pub(super) struct Turn {
    pub(super) ctx: Arc<Context>,
    prompts: Vec<Prompt>,
    folded: Vec<Prompt>,
    origin: Option<Value>,
    began: Instant,
    /// `user` lines so far; `num_turns` counts them.
    pub(super) user_lines: u64,
    pub(super) denials: Vec<Value>,
    /// Whether an assistant line has named the prompts already.
    pub(super) marked: bool,
    /// The ids of the messages that began, when stream events are sent.
    pub(super) begun: Vec<String>,
    pub(super) first_frame: Option<Duration>,
    pub(super) api_time: Duration,
    pub(super) tokens: (u64, u64),
    /// The text of the last response.
    pub(super) text: String,
    pub(super) stop_reason: Option<String>,
    pub(super) prompt_id: String,
    /// A hook said that the turn is to end.
    pub(super) stopped_by_hook: bool,
    /// A `message_stop` event that is still to come.
    pub(super) unstopped: Option<Value>,
}

pub(super) async fn run(ctx: Arc<Context>, work: Work) {
    let mut turn = Turn {
        prompt_id: ctx.uuid(),
        stopped_by_hook: false,
        ctx,
        prompts: work.prompts,
        folded: Vec::new(),
        origin: work.origin,
        began: Instant::now(),
        user_lines: 0,
        denials: Vec::new(),
        marked: false,
        begun: Vec::new(),
        first_frame: None,
        api_time: Duration::ZERO,
        tokens: (0, 0),
        text: String::new(),
        stop_reason: None,
        unstopped: None,
    };
    let end = turn.play().await.err();
    turn.finish(end).await;
}

impl Turn {
    async fn play(&mut self) -> Result<(), End> {
        let latency = self.ctx.config.latency;
        // Even a sleep of no time takes a tick of the clock.
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        // An abort shows as soon as the model would be asked.
        let _ = self.or_abort(mcp::settled(&self.ctx)).await;
        let queries = self.prompts.is_empty() || self.prompts.iter().any(|prompt| prompt.query);
        let mut context = Vec::new();
        let mut blocked = None;
        if queries {
            for prompt in self.prompts.clone() {
                if let Ok((reason, added)) = self.before_prompt(&prompt.text).await {
                    context.extend(added);
                    blocked = blocked.or(reason.map(|reason| (reason, prompt.text)));
                }
            }
        }
        self.send_init().await;
        if let Some((reason, prompt)) = blocked {
            let text =
                format!("UserPromptSubmit operation blocked by hook:\n{reason}\n\nOriginal prompt: {prompt}");
            let outcome = json!({"kind": "blocked_by_hook", "prompt_kept": false, "reason": reason});
            let fields = json!({
                "content": text, "level": "warning", "prevent_continuation": true, "prompt_submit_outcome": outcome,
            });
            self.ctx.send_system("informational", fields).await;
            return Err(End::NoQuery(text));
        }
        if self.ctx.config.replay {
            for prompt in self.prompts.clone() {
                self.replay(&prompt).await;
            }
        }
        if !queries {
            let mut state = self.ctx.state();
            state
                .unasked
                .extend(self.prompts.iter().map(|prompt| prompt.text.clone()));
            return Err(End::NoQuery(String::new()));
        }
        let mut ask = {
            let mut state = self.ctx.state();
            state.turns += 1;
            Ask {
                prompt: self
                    .prompts
                    .last()
                    .map(|prompt| prompt.text.clone())
                    .unwrap_or_default(),
                prompts: self.prompts.iter().map(|prompt| prompt.text.clone()).collect(),
                seen: self.ctx.log.lock().lines.len(),
                woken_by: self.origin.as_ref().and_then(|origin| state.tag(origin)),
                turn: state.turns - 1,
                woken: self.origin.is_some(),
                folded: std::mem::take(&mut state.unasked),
                context,
                ..Ask::default()
            }
        };
        let mut stopping = false;
        loop {
            if let Some(limit) = self.ctx.config.max_turns
                && ask.round as u64 >= limit
            {
                return Err(End::MaxTurns(limit));
            }
            ask.model = self.ctx.state().model.clone();
            let reply = self.ctx.brain.lock().await.reply(&ask);
            let calls = self.respond(&ask.model, reply).await?;
            ask.tool_results.clear();
            ask.folded.clear();
            ask.context.clear();
            ask.round += 1;
            if calls.is_empty() {
                let stop = self.before_stop(stopping).await;
                match stop.map_err(|why| End::Aborted { why, tools: false })? {
                    None => return Ok(()),
                    Some(reason) => {
                        stopping = true;
                        let content =
                            json!([{"type": "text", "text": format!("Stop hook feedback:\n{reason}")}]);
                        self.send_user(content, json!({"isSynthetic": true})).await;
                        let text = "stop hook problem · ctrl+o to see";
                        let fields = json!({"key": "stop-hook-error", "text": text, "priority": "immediate"});
                        self.ctx.send_system("notification", fields).await;
                        ask.context.push(reason);
                        continue;
                    }
                }
            }
            ask.tool_results = self.call_all(calls).await?;
            if self.stopped_by_hook {
                return Err(End::HookStopped);
            }
            ask.folded = self.fold().await;
        }
    }

    /// Waits for something, unless the turn is to stop.
    pub(super) async fn or_abort<T>(&self, work: impl Future<Output = T>) -> Result<T, Abort> {
        let mut abort = self.ctx.abort.subscribe();
        let stopped = async move {
            let why = abort.wait_for(Option::is_some).await.ok().and_then(|why| *why);
            match why {
                Some(why) => why,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            why = stopped => Err(why),
            done = work => Ok(done),
        }
    }

    async fn send_init(&self) {
        let line = {
            let state = self.ctx.state();
            let config = &self.ctx.config;
            let mut line = payload::init(&payload::Init {
                cwd: self.ctx.cwd(),
                home: &config.home,
                session_id: &state.session_id,
                model: &state.model,
                mode: &state.mode,
                tools: super::tools::listed(config, &state),
                mcp_servers: mcp::listed(&state.servers),
                directories: &state.directories,
            });
            let uuids: Vec<&String> = self
                .prompts
                .iter()
                .filter_map(|prompt| prompt.uuid.as_ref())
                .collect();
            if !uuids.is_empty() {
                line["user_message_uuids"] = json!(uuids);
            }
            line
        };
        self.ctx.send_stamped(line).await;
    }

    async fn replay(&self, prompt: &Prompt) {
        let uuid = prompt.uuid.clone().unwrap_or_else(|| self.ctx.uuid());
        let session_id = self.ctx.state().session_id.clone();
        let line = json!({
            "type": "user",
            "message": prompt.message,
            "session_id": session_id,
            "parent_tool_use_id": null,
            "uuid": uuid,
            "timestamp": self.ctx.timestamp(),
            "isReplay": true,
        });
        self.ctx.send(line).await;
    }

    /// Takes in the prompts that came while the turn ran.
    async fn fold(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        loop {
            let prompt = {
                let mut state = self.ctx.state();
                let folds = |prompt: &Prompt| prompt.query && prompt.priority == Priority::Next;
                let position = state.queue.iter().position(folds);
                position.and_then(|n| state.queue.remove(n))
            };
            let Some(prompt) = prompt else { return texts };
            self.ctx.send_lifecycle(&prompt, "started").await;
            if self.ctx.config.replay {
                self.replay(&prompt).await;
            }
            texts.push(prompt.text.clone());
            self.folded.push(prompt);
        }
    }

    /// A `user` line that the CLI writes itself.
    pub(super) async fn send_user(&mut self, content: Value, extra: Value) {
        self.user_lines += 1;
        let message = json!({"role": "user", "content": content});
        self.ctx.send_message("user", message, extra).await;
    }

    /// Which prompts a line belongs to: the last uuid and all of them.
    pub(super) fn uuids(&self) -> Option<(String, Vec<String>)> {
        let uuids =
            |prompts: &[Prompt]| -> Vec<String> { prompts.iter().filter_map(|p| p.uuid.clone()).collect() };
        let (own, folded) = (uuids(&self.prompts), uuids(&self.folded));
        let last = own.last().or(folded.last())?.clone();
        Some((last, [own, folded].concat()))
    }

    async fn finish(mut self, end: Option<End>) {
        let mut fields = Map::new();
        let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
        let success = |text: &str| (json!("success"), json!(text));
        let mut failed = false;
        let (subtype, result) = match &end {
            None => {
                set("terminal_reason", json!("completed"));
                set("api_error_status", Value::Null);
                success(&self.text)
            }
            Some(End::NoQuery(text)) => {
                self.stop_reason = None;
                success(text)
            }
            Some(End::HookStopped) => {
                set("terminal_reason", json!("hook_stopped"));
                set("api_error_status", Value::Null);
                success("")
            }
            Some(End::Deferred(call)) => {
                self.stop_reason = Some("tool_deferred".to_owned());
                set("terminal_reason", json!("tool_deferred"));
                set("api_error_status", Value::Null);
                set("deferred_tool_use", call.clone());
                success("")
            }
            Some(End::Aborted { why, tools }) => {
                let reason = if *tools && *why != Abort::Signal {
                    "aborted_tools"
                } else {
                    "aborted_streaming"
                };
                set("terminal_reason", json!(reason));
                if *why == Abort::Displaced {
                    set("api_error_status", Value::Null);
                    success(&self.text)
                } else {
                    failed = true;
                    let stop = self.stop_reason.as_deref().unwrap_or("null");
                    let text =
                        format!("[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={stop}");
                    (json!("error_during_execution"), json!([text]))
                }
            }
            Some(End::Api(failure)) => {
                failed = true;
                self.stop_reason = Some("stop_sequence".to_owned());
                set("terminal_reason", json!(failure.terminal_reason));
                set("api_error_status", json!(failure.status));
                if let Some(api_type) = failure.api_type {
                    set("api_error_type", json!(api_type));
                } else {
                    set("api_error", json!(failure.kind));
                }
                success(&failure.text)
            }
            Some(End::MaxTurns(limit)) => {
                failed = true;
                set("terminal_reason", json!("max_turns"));
                let text = format!("Reached maximum number of turns ({limit})");
                (json!("error_max_turns"), json!([text]))
            }
        };
        let asked = !matches!(end, Some(End::NoQuery(_)));
        let is_success = subtype == "success";
        set(if is_success { "result" } else { "errors" }, result);
        set("subtype", subtype);
        set("is_error", json!(failed));
        set("num_turns", json!(if asked { 1 + self.user_lines } else { 0 }));
        if let Some((last, all)) = self.uuids() {
            set("user_message_uuid", json!(last));
            set("user_message_uuids", json!(all));
        }
        if let (Some(first), true) = (self.first_frame, is_success) {
            let ms = first.as_millis() as u64;
            set("ttft_ms", json!(ms + 1));
            set("ttft_stream_ms", json!(ms));
            set("first_content_frame_ms", json!(ms));
            set(
                "time_to_request_ms",
                json!(self.ctx.config.latency.as_millis() as u64),
            );
            if self.prompts.iter().any(|prompt| prompt.uuid.is_some()) {
                let sent = wall_ms(self.ctx.log.elapsed().saturating_sub(self.began.elapsed()));
                set("request_sent_wall_ms", json!(sent));
                set("first_request_input_tokens", json!(10));
                set("first_request_cache_read_input_tokens", json!(0));
            }
        }
        if !self.begun.is_empty() {
            set("begun_message_ids", json!(self.begun));
        }
        if let Some(origin) = &self.origin {
            set("origin", origin.clone());
        }
        {
            let mut state = self.ctx.state();
            state.last_is_error = failed;
            set("result_index", json!(state.results));
            state.results += 1;
            let by_model = |used: &std::collections::BTreeMap<String, (u64, u64)>| -> Value {
                let entries = used.iter();
                entries
                    .map(|(model, (input, output))| {
                        (model.clone(), payload::model_usage(model, *input, *output))
                    })
                    .collect()
            };
            set("modelUsage", by_model(&state.used));
            set(
                "model_usage_since_last_result",
                by_model(&std::mem::take(&mut state.used_since)),
            );
            let (input, output) = state
                .used
                .values()
                .fold((0, 0), |sum, used| (sum.0 + used.0, sum.1 + used.1));
            set("total_cost_usd", json!(payload::cost(input, output)));
        }
        set("type", json!("result"));
        set("duration_ms", json!(self.began.elapsed().as_millis() as u64));
        set("duration_api_ms", json!(self.api_time.as_millis() as u64));
        set("stop_reason", json!(self.stop_reason));
        set("usage", payload::usage(self.tokens.0, self.tokens.1));
        set(
            "permission_denials",
            Value::Array(std::mem::take(&mut self.denials)),
        );
        set("fast_mode_state", json!("off"));
        set("fast_mode_disabled_reason", json!("sdk_opt_in_required"));
        set("subagent_stats", payload::subagent_stats());
        set("safety_stops", json!(0));
        set("queued_turn_count", json!(0));
        // Folded prompts are through before the result, the turn's own behind it.
        let aborted = matches!(end, Some(End::Aborted { .. }));
        for prompt in &self.folded {
            self.ctx
                .send_lifecycle(prompt, if aborted { "cancelled" } else { "completed" })
                .await;
        }
        self.ctx.send_stamped(Value::Object(fields)).await;
    }

    /// Runs the tool calls of a response one after the other.
    async fn call_all(&mut self, calls: Vec<Call>) -> Result<Vec<ToolResult>, End> {
        let mut results = Vec::new();
        let mut calls = calls.into_iter();
        while let Some(call) = calls.next() {
            match self.call(call).await {
                Ok(result) => results.push(result),
                Err(Halt::Deferred(call)) => return Err(End::Deferred(call)),
                Err(Halt::Abort(why)) => {
                    // Each call gets a result, those that were not reached too.
                    for call in calls {
                        self.send_rejected(&call.id, "").await;
                    }
                    self.send_stop().await;
                    if why != Abort::Displaced {
                        let text = match why {
                            Abort::Signal => "[Request interrupted by user]",
                            _ => "[Request interrupted by user for tool use]",
                        };
                        self.send_user(json!([{"type": "text", "text": text}]), json!({}))
                            .await;
                    }
                    return Err(End::Aborted { why, tools: true });
                }
            }
        }
        Ok(results)
    }
}

/// Why a tool call has no result.
pub(super) enum Halt {
    /// The turn is to stop.
    Abort(Abort),
    /// A hook has put the call off.
    Deferred(Value),
}

impl From<Abort> for Halt {
    fn from(why: Abort) -> Self {
        Self::Abort(why)
    }
}
