//! One turn: from `system/init` to the `result`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::brain::{Ask, CallPlan, ToolResult};
use super::context::{Abort, Context, Priority, Prompt, Said, Stop};
use super::hooks::Asked;
use super::structured;
use super::subagent::Subagent;
use crate::running::Exit;

use super::transcript::Deferred;
use super::{commands, cost, deferral, files, mcp, mcp_control, payload, tools};

pub(super) use super::ending::{ApiFailure, End};

/// What the model reads of an interrupt while tools ran.
pub(super) const INTERRUPTED: &str = "[Request interrupted by user for tool use]";

/// The prompt of a turn, and its options.
pub(super) struct Work {
    /// Its prompts; none if background work woke it.
    pub(super) prompts: Vec<Prompt>,
    /// What woke it, for the `origin` of its result.
    pub(super) origin: Option<Value>,
    /// The call of another process that it goes on with.
    pub(super) deferred: Option<Deferred>,
}

/// How often in a turn the model goes on where the limit of tokens has cut its response.
const RESUMPTIONS: u8 = 3;

/// What the model has been told in a turn.
#[derive(Default)]
struct Reminded {
    of_limit: u8,
    of_refusal: bool,
    of_output: bool,
    of_silence: bool,
}

/// A tool call of the model.
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// Whether the model has called it by the name that it had once.
    pub(super) by_old_name: bool,
    /// As the assistant message has it.
    pub(super) input: Value,
    /// As hooks and permission requests have it.
    pub(super) shown: Value,
    /// As the tool gets it.
    pub(super) used: Value,
    /// The handling of the call.
    pub(super) plan: CallPlan,
}

/// A turn under way.
pub(super) struct Turn {
    pub(super) ctx: Arc<Context>,
    /// Whose turn it is; none is the main agent's.
    pub(super) agent: Option<Arc<Subagent>>,
    /// Why it must stop.
    pub(super) abort: Stop,
    pub(super) prompts: Vec<Prompt>,
    pub(super) folded: Vec<Prompt>,
    pub(super) origin: Option<Value>,
    /// When it began, since the agent did.
    pub(super) began: Duration,
    /// How many rounds it may have.
    pub(super) max_turns: Option<u64>,
    /// The tools that there are, and those that there are not, for a subagent.
    pub(super) only_tools: Option<Vec<String>>,
    pub(super) no_tools: Vec<String>,
    /// The tools that were called, and how many calls there were.
    pub(super) tools_used: Vec<String>,
    pub(super) calls: u64,
    /// Tokens of the last response, in and out, and their sum.
    pub(super) last_usage: (u64, u64),
    pub(super) context: u64,
    /// Structured output that was given, and how often it was wrong.
    pub(super) structured: Option<Value>,
    pub(super) unstructured: u64,
    /// The last problem of its structured output.
    pub(super) last_flaw: String,
    /// The tool results of this response, for hooks.
    pub(super) batch: Vec<Value>,
    /// The id of the last message of the model.
    pub(super) last_message: String,
    /// The uuid of the last `assistant` line.
    pub(super) last_assistant: String,
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
    /// Missing while a call is taken up that was deferred.
    pub(super) prompt_id: Option<String>,
    /// A hook ended the turn.
    pub(super) stopped_by_hook: bool,
    /// The events at the end of a message that are still to come.
    pub(super) unstopped: VecDeque<(Value, Value)>,
    /// Callbacks before a tool that were called when its call was written, with its id.
    pub(super) asked_before: Option<(String, Asked)>,
    /// The text that a hook wants shown instead, if there is one.
    pub(super) displayed: Option<String>,
    /// The id of this turn for displayed messages.
    pub(super) turn_id: Option<String>,
}

/// Plays a turn. Gives whether its prompts count as cancelled although nobody stopped it.
pub(super) async fn run(ctx: Arc<Context>, work: Work) -> bool {
    let abort = ctx.abort.clone();
    let prompt_id = ctx.uuid();
    let before = ctx.state().prompt_id.replace(prompt_id.clone());
    let mut turn = Turn::new(ctx, abort, prompt_id);
    let _ = turn.or_abort(turn.catch_up(before.as_deref())).await;
    turn.max_turns = turn.ctx.config.max_turns;
    turn.prompts = work.prompts;
    turn.origin = work.origin;
    let end = turn.play(work.deferred).await.err();
    if let Some(End::Api(failure)) = &end {
        let fields = json!({"error": failure.error, "last_assistant_message": failure.text});
        let _ = turn.fire("StopFailure", Some(failure.error), None, fields).await;
    }
    let cancelled = matches!(end, Some(End::Unavailable(_)));
    turn.finish(end).await;
    cancelled
}

impl Turn {
    pub(super) fn new(ctx: Arc<Context>, abort: Stop, prompt_id: String) -> Self {
        Self {
            began: ctx.log.elapsed(),
            ctx,
            agent: None,
            abort,
            prompts: Vec::new(),
            folded: Vec::new(),
            origin: None,
            max_turns: None,
            only_tools: None,
            no_tools: Vec::new(),
            tools_used: Vec::new(),
            calls: 0,
            last_usage: (0, 0),
            context: 0,
            structured: None,
            unstructured: 0,
            last_flaw: String::new(),
            batch: Vec::new(),
            last_message: String::new(),
            last_assistant: String::new(),
            user_lines: 0,
            denials: Vec::new(),
            marked: false,
            begun: Vec::new(),
            first_frame: None,
            api_time: Duration::ZERO,
            tokens: (0, 0),
            text: String::new(),
            stop_reason: None,
            prompt_id: Some(prompt_id),
            stopped_by_hook: false,
            unstopped: VecDeque::new(),
            asked_before: None,
            displayed: None,
            turn_id: None,
        }
    }

    /// How long it has taken so far.
    pub(super) fn took(&self) -> Duration {
        self.ctx.log.elapsed().saturating_sub(self.began)
    }

    /// The turn of a subagent.
    pub(super) fn of_agent(ctx: Arc<Context>, agent: Arc<Subagent>, abort: Stop, prompt_id: String) -> Self {
        Self {
            agent: Some(agent),
            marked: true,
            ..Self::new(ctx, abort, prompt_id)
        }
    }

    async fn play(&mut self, deferred: Option<Deferred>) -> Result<(), End> {
        self.ctx.pause(self.ctx.config.latency).await;
        // Without an `initialize` nobody has begun to connect them.
        mcp_control::start(&self.ctx);
        // An abort is noticed before the model is called.
        let _ = self.or_abort(mcp::settled(&self.ctx)).await;
        let mut taken_up = None;
        if let Some(deferred) = deferred {
            let results = self.take_up(&deferred).await?;
            taken_up = Some((deferred, results));
        }
        let queries = self.prompts.is_empty() || self.prompts.iter().any(|prompt| prompt.query);
        if let Some(end) = self.refuse_unsimulated().await {
            return Err(end);
        }
        if let Some(end) = self.answer_locally().await {
            return Err(end);
        }
        let (mut context, mut messages) = (Vec::new(), Vec::new());
        let mut blocked = None;
        if queries {
            let mut texts: Vec<String> = self.prompts.iter().map(|prompt| prompt.text.clone()).collect();
            texts.extend(taken_up.is_some().then(|| deferral::PROMPT.to_owned()));
            for text in texts {
                if let Ok((reason, added)) = self.before_prompt(&text, &mut messages).await {
                    context.extend(added);
                    blocked = blocked.or(reason.map(|reason| (reason, text)));
                }
            }
        }
        let refused = self.expand().await;
        self.send_init().await;
        self.send_hook_messages(&messages).await;
        if let Some(end) = refused {
            if let End::Unexpanded(text) = &end {
                self.send_unexpanded(text).await;
            }
            return Err(end);
        }
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
        let history = self.ctx.state().history;
        for prompt in self.prompts.clone() {
            self.take_in(&prompt).await;
        }
        if !queries {
            let mut state = self.ctx.state();
            state
                .unasked
                .extend(self.prompts.iter().map(|prompt| prompt.text.clone()));
            return Err(End::NoQuery(String::new()));
        }
        self.within_budget()?;
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
                history,
                resumed: state.resumed,
                system_prompt: state.system_prompt.clone(),
                appended_prompt: state.appended_prompt.clone(),
                max_thinking_tokens: state.thinking,
                ..Ask::default()
            }
        };
        if let Some((deferred, results)) = taken_up {
            ask.continued = true;
            ask.prompts = vec![deferred.prompt.clone()];
            ask.prompt = deferred.prompt;
            ask.round = deferred.rounds;
            ask.tool_results = results;
        }
        self.converse(ask).await
    }

    /// Whether there is money left.
    fn within_budget(&self) -> Result<(), End> {
        let spent = cost::total(&self.ctx.state().used);
        match self.ctx.config.max_budget {
            Some(limit) if spent >= limit => Err(End::Budget(limit)),
            _ => Ok(()),
        }
    }

    /// Calls the model and its tools, until the model calls no more tools.
    pub(super) async fn converse(&mut self, mut ask: Ask) -> Result<(), End> {
        let mut stopping = false;
        let mut reminded = Reminded::default();
        let before = ask.round;
        loop {
            if let Some(limit) = self.max_turns
                && (ask.round - before) as u64 >= limit
            {
                return Err(End::MaxTurns(limit));
            }
            ask.model = match &self.agent {
                Some(agent) => agent.model.clone(),
                None => self.ctx.state().model.clone(),
            };
            ask.tools = tools::listed(&self.ctx.config, &self.ctx.state());
            ask.cwd = self.ctx.cwd().to_string_lossy().into_owned();
            ask.home.clone_from(&self.ctx.config.home);
            let response = self.ctx.brain.lock().await.respond(&ask);
            let calls = self.respond(&ask.model, response).await?;
            self.within_budget()?;
            ask.tool_results.clear();
            ask.folded.clear();
            ask.context.clear();
            ask.continued = false;
            ask.round += 1;
            if calls.is_empty() {
                let wanted = self.agent.is_none() && self.ctx.state().schema.is_some();
                if let Some(reminder) = self.reminder(&mut reminded, wanted).await? {
                    self.remind(reminder).await;
                    ask.context.push(reminder.to_owned());
                    continue;
                }
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
            ask.context.extend(self.after_batch().await);
            if self.stopped_by_hook {
                return Err(End::HookStopped);
            }
            if let Some(output) = self.structured.take() {
                return Err(End::Structured(output));
            }
            if self.unstructured >= structured::ATTEMPTS {
                return Err(End::Unstructured {
                    attempts: self.unstructured,
                    error: self.last_flaw.clone(),
                });
            }
            if self.agent.is_none() {
                ask.folded = self.fold().await;
            }
        }
    }

    /// What the CLI tells the model that has stopped before its end; nothing if the turn is over.
    async fn reminder(&mut self, reminded: &mut Reminded, wanted: bool) -> Result<Option<&'static str>, End> {
        Ok(match self.stop_reason.as_deref() {
            Some("max_tokens") if reminded.of_limit < RESUMPTIONS => {
                reminded.of_limit += 1;
                Some("The response has reached the limit of tokens. Go on where it was cut.")
            }
            Some("max_tokens") => return Err(self.fail_at(ApiFailure::of_limit()).await),
            Some("refusal") if !std::mem::replace(&mut reminded.of_refusal, true) => {
                if self.agent.is_none() {
                    let text =
                        "The response above was stopped by the safeguards of the model; going on once.";
                    let fields = json!({"content": text, "level": "notice"});
                    self.ctx.send_system("informational", fields).await;
                }
                Some(
                    "The response was stopped by a safety classifier, and the rest of it withheld. Go on without it.",
                )
            }
            Some("refusal") => {
                let fields = json!({
                    "original_model": self.ctx.state().model, "request_id": format!("req_sim_{}", self.last_message),
                    "api_refusal_category": null, "api_refusal_explanation": null,
                    "refused_user_message_uuid": self.ctx.uuid(), "content": "",
                });
                self.ctx.send_system("model_refusal_no_fallback", fields).await;
                return Err(self.fail_at(ApiFailure::of_refusal(&self.last_message)).await);
            }
            _ if wanted && !std::mem::replace(&mut reminded.of_output, true) => Some(
                "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request. Call this tool \
                 now.",
            ),
            _ if self.text.is_empty() && !std::mem::replace(&mut reminded.of_silence, true) => {
                Some("The response had nothing that can be seen. Go on, and say something.")
            }
            _ => None,
        })
    }

    async fn fail_at(&mut self, failure: ApiFailure) -> End {
        self.send_api_error(&failure).await;
        End::Api(Box::new(failure))
    }

    /// What the CLI says to the model in the user's place. Of an agent the host does not hear it.
    async fn remind(&mut self, text: &str) {
        self.user_lines += 1;
        let message = json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let mut extra = json!({"isSynthetic": true});
        if self.stop_reason.as_deref() == Some("refusal") {
            extra["refusal_retry"] = json!(true);
            extra["refused_message_id"] = json!(self.last_message);
        }
        self.ctx
            .say(Said {
                agent: self.agent.as_deref(),
                kind: "user",
                kept: Some(json!({"message": message, "promptId": self.prompt_id, "isMeta": true})),
                message,
                extra,
                shown: self.agent.is_none(),
            })
            .await;
    }

    /// Waits for something, unless the turn is to stop.
    pub(super) async fn or_abort<T>(&self, work: impl Future<Output = T>) -> Result<T, Abort> {
        let mut abort = self.abort.subscribe();
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

    pub(super) async fn send_init(&self) {
        let commands = commands::all(&self.ctx);
        let cwd = self.ctx.cwd();
        let line = {
            let state = self.ctx.state();
            let config = &self.ctx.config;
            let mut line = payload::init(&payload::Init {
                cwd: &cwd,
                home: &config.home,
                session_id: &state.session_id,
                model: &state.model,
                mode: &state.mode,
                tools: super::tools::listed(config, &state),
                mcp_servers: mcp::listed(&state.servers),
                directories: &state.directories,
            });
            if !config.server_errors.is_empty() {
                line["mcp_server_errors"] = json!(config.server_errors);
            }
            if let Some(style) = state.settings.get(&["outputStyle"]) {
                line["output_style"] = style;
            }
            if let Some(agents) = line["agents"].as_array_mut() {
                agents.extend(state.agents.keys().map(|name| json!(name)));
            }
            if let Some(names) = line["slash_commands"].as_array_mut() {
                names.splice(0..0, commands.iter().map(|command| json!(command.name)));
                names.extend(mcp::prompts(&state.servers).map(|prompt| json!(prompt.name)));
            }
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

    /// Adds a prompt to the conversation, and replays it if the host wants that.
    pub(super) async fn take_in(&self, prompt: &Prompt) {
        let uuid = prompt.uuid.clone().unwrap_or_else(|| self.ctx.uuid());
        let fields = json!({
            "promptId": self.prompt_id, "message": prompt.message, "permissionMode": self.ctx.state().mode,
            "promptSource": "sdk", "turnOrigin": "sdk",
        });
        self.ctx.keep(|transcript| transcript.prompted(&prompt.text));
        self.ctx.state().prompts += 1;
        self.ctx.record(None, "user", &uuid, fields);
        files::checkpoint(&self.ctx, &uuid);
        if !self.ctx.config.replay {
            return;
        }
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
            let timestamp = self.ctx.timestamp();
            self.ctx.keep(|transcript| transcript.dequeue(timestamp));
            self.take_in(&prompt).await;
            texts.push(prompt.text.clone());
            self.folded.push(prompt);
        }
    }

    /// A `user` line that the CLI writes itself.
    pub(super) async fn send_user(&mut self, content: Value, extra: Value) {
        self.user_lines += 1;
        let message = json!({"role": "user", "content": content});
        let mut kept = json!({"message": message});
        if let Some(prompt_id) = &self.prompt_id {
            kept["promptId"] = json!(prompt_id);
        }
        if extra["isSynthetic"] == true {
            kept["isMeta"] = json!(true);
        }
        if let Some(details) = extra.get("tool_use_result") {
            kept["toolUseResult"] = details.clone();
            kept["sourceToolAssistantUUID"] = json!(self.last_assistant);
            self.ctx.send_mirror().await;
        }
        if let Some(decision) = extra["tool_result_meta"][0].get("permission_decision") {
            kept["permissionDecision"] = decision.clone();
        }
        let mut extra = extra;
        if let (Some(_), Some(extra)) = (&self.agent, extra.as_object_mut()) {
            // What came out of a subagent's tools is only for its own model; why there is nothing is not.
            extra.retain(|key, value| key != "tool_use_result" || value.is_string());
        }
        self.ctx
            .say(Said {
                agent: self.agent.as_deref(),
                kind: "user",
                message,
                extra,
                shown: true,
                kept: Some(kept),
            })
            .await;
    }

    /// The prompt of a subagent, as the conversation with it begins.
    pub(super) async fn say_prompt(&self, content: Value, text: &str, shown: bool) {
        self.ctx
            .say(Said {
                agent: self.agent.as_deref(),
                kind: "user",
                message: json!({"role": "user", "content": content}),
                extra: json!({}),
                shown,
                kept: Some(json!({"promptId": self.prompt_id, "message": {"role": "user", "content": text}})),
            })
            .await;
    }

    /// Whether the turn of the parent agent reports its stop.
    pub(super) fn stops_silently(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| !agent.shows_text())
            || self.agent.as_ref().is_some_and(|agent| !agent.background)
    }

    /// Which prompts a line belongs to: the last uuid and all of them.
    pub(super) fn uuids(&self) -> Option<(String, Vec<String>)> {
        let uuids =
            |prompts: &[Prompt]| -> Vec<String> { prompts.iter().filter_map(|p| p.uuid.clone()).collect() };
        let (own, folded) = (uuids(&self.prompts), uuids(&self.folded));
        let last = own.last().or(folded.last())?.clone();
        Some((last, [own, folded].concat()))
    }

    /// Runs the tool calls of a response one after the other.
    pub(super) async fn call_all(&mut self, calls: Vec<Call>) -> Result<Vec<ToolResult>, End> {
        let (mut results, mut deferred) = (Vec::new(), None);
        let mut calls = calls.into_iter();
        while let Some(call) = calls.next() {
            match self.call(call).await {
                Ok(_) if *self.ctx.terminating.borrow() => {
                    self.ctx.exit.send_replace(Some(Exit::Code(143)));
                    return std::future::pending().await;
                }
                Ok(result) => {
                    self.send_stop().await;
                    results.push(result);
                }
                // The others of the same answer are made. Of several that are deferred the last one is taken up.
                Err(Halt::Deferred(call)) => {
                    deferred = Some(call);
                }
                Err(Halt::Abort(why)) => {
                    // Each call gets a result, those that were not reached too.
                    for call in calls {
                        self.send_rejected(&call.id, "").await;
                    }
                    self.send_stop().await;
                    if why != Abort::Displaced && !self.stops_silently() {
                        let text = match why {
                            Abort::Signal => "[Request interrupted by user]",
                            _ => INTERRUPTED,
                        };
                        self.send_user(json!([{"type": "text", "text": text}]), json!({}))
                            .await;
                    }
                    return Err(End::Aborted { why, tools: true });
                }
            }
        }
        let Some(call) = deferred else { return Ok(results) };
        self.keep_deferred(&call);
        Err(End::Deferred(call))
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
