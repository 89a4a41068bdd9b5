//! One turn: from `system/init` to the `result`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::api_failure::ApiFailure;
use super::brain::{CallResult, FaultKind, ModelRequest, ModelResponse};
use super::caller::Caller;
use super::context::{Abort, Context, ConversationLine, Priority, QueuedPrompt, UNCLASSIFIED};
use super::hands::Hands;
use super::hooks::{self, PromptRefusal};
use super::rules::RuleSource;
use super::structured;
use super::transcript::Deferred;
use super::{background, commands, cost, deferral, files, mcp, mcp_control, payload, subagent, tools};
use crate::fields::JsonFields as _;

pub(super) use super::ending::End;

/// What the model reads of an interrupt while tools ran.
pub(super) const INTERRUPTED: &str = "[Request interrupted by user for tool use]";

/// The prompt of a turn, and its options.
pub(super) struct TurnWork {
    /// The prompts of the turn; none if background work woke it.
    pub(super) prompts: Vec<QueuedPrompt>,
    /// What woke the turn, for the `origin` of its result.
    pub(super) origin: Option<Value>,
    /// The call of another process that it goes on with.
    pub(super) deferred: Option<Deferred>,
}

/// How often in a turn the model goes on where the limit of tokens has cut its response, and where it broke off.
const RESUMPTIONS: u8 = 3;

/// How often hooks may keep a turn from ending unless that is set.
const BLOCKS: u32 = 8;

/// What the model has been told in a turn.
#[derive(Default)]
struct Reminded {
    of_limit: u8,
    of_break: u8,
    of_refusal: bool,
    of_output: bool,
    of_silence: bool,
}

/// The calls of tools in a turn.
#[derive(Default)]
pub(super) struct ToolsUsed {
    /// The tools that there are.
    pub(super) tools: BTreeSet<String>,
    pub(super) calls: u64,
    pub(super) by_tool: BTreeMap<String, u64>,
    /// What the calls would write, whether or not they did.
    pub(super) lines_added: u64,
    pub(super) lines_removed: u64,
}

/// A turn under way.
pub(super) struct Turn {
    pub(super) caller: Arc<Caller>,
    /// The calls of the response under way.
    pub(super) hands: Arc<Hands>,
    pub(super) prompts: Vec<QueuedPrompt>,
    pub(super) folded: Vec<QueuedPrompt>,
    /// The prompts, and the ends of tasks, that wait for the end of the turn, because a hook wants it.
    held: (Vec<QueuedPrompt>, Vec<Value>),
    pub(super) origin: Option<Value>,
    /// When the turn began, since the agent did.
    pub(super) began: Duration,
    /// How many rounds the turn may have.
    pub(super) max_turns: Option<u64>,
    pub(super) used: ToolsUsed,
    /// Tokens of the last response, in and out, and their sum.
    pub(super) last_usage: (u64, u64),
    pub(super) context: u64,
    /// The id of the last message of the model.
    pub(super) last_message: String,
    /// Whether an assistant line has named the prompts already.
    pub(super) marked: bool,
    /// The ids of the messages that began, when stream events are sent.
    pub(super) begun: Vec<String>,
    pub(super) first_frame: Option<Duration>,
    /// Whether the first response did not come as a stream.
    pub(super) begins_whole: bool,
    pub(super) api_time: Duration,
    pub(super) tokens: (u64, u64),
    /// What the last response broke off with.
    pub(super) broken: Option<FaultKind>,
    /// The text of the last response.
    pub(super) text: String,
    pub(super) stop_reason: Option<String>,
    /// Whether nobody sees anything of that response.
    pub(super) is_silent: bool,
    /// The text that a hook wants shown instead, if there is one.
    pub(super) displayed: Option<String>,
    /// The id of this turn for displayed messages.
    pub(super) turn_id: Option<String>,
}

impl Deref for Turn {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

/// What hooks want with something that would be folded into a turn.
enum Admission {
    Taken,
    Blocked(PromptRefusal),
    Held,
    /// The turn was stopped before they said it.
    Aborted,
}

/// Plays a turn. Gives whether its prompts count as cancelled although nobody stopped it.
pub(super) async fn run(ctx: Arc<Context>, work: TurnWork) -> bool {
    let abort = ctx.abort.clone();
    let prompt_id = ctx.uuid();
    let before = ctx.state().prompt_id.replace(prompt_id.clone());
    let mut turn = Turn::new(Caller::new(ctx, abort, prompt_id));
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
    turn.release();
    turn.finish(end).await;
    cancelled
}

impl Turn {
    pub(super) fn new(caller: Caller) -> Self {
        let caller = Arc::new(caller);
        Self {
            began: caller.ctx.log.elapsed(),
            hands: Arc::new(Hands::new(caller.clone())),
            // Only the main agent names its prompts.
            marked: caller.agent.is_some(),
            caller,
            prompts: Vec::new(),
            folded: Vec::new(),
            held: (Vec::new(), Vec::new()),
            origin: None,
            max_turns: None,
            used: ToolsUsed::default(),
            last_usage: (0, 0),
            context: 0,
            last_message: String::new(),
            begun: Vec::new(),
            first_frame: None,
            begins_whole: false,
            api_time: Duration::ZERO,
            tokens: (0, 0),
            broken: None,
            text: String::new(),
            stop_reason: None,
            is_silent: false,
            displayed: None,
            turn_id: None,
        }
    }

    /// How long the turn has taken so far.
    pub(super) fn took(&self) -> Duration {
        self.ctx.log.elapsed().saturating_sub(self.began)
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
        // In a list of blocks such a text goes to the model.
        let is_blank = |prompt: &QueuedPrompt| {
            let text = prompt.message["content"].as_str().unwrap_or_default();
            !text.is_empty() && text.trim().is_empty()
        };
        if !self.prompts.is_empty() && self.prompts.iter().all(is_blank) {
            self.send_init().await;
            let text = "Blank prompt: there was nothing but whitespace, so the model was not called.";
            let fields = json!({"content": text, "level": "warning"});
            self.ctx.send_system("informational", fields).await;
            return Err(End::NoQuery(text.to_owned()));
        }
        let (mut context, mut lines) = (Vec::new(), Vec::new());
        let mut blocked = None;
        if queries {
            let mut texts: Vec<String> = self.prompts.iter().map(|prompt| prompt.text.clone()).collect();
            texts.extend(taken_up.is_some().then(|| deferral::PROMPT.to_owned()));
            texts.extend(self.origin.as_ref().and_then(|origin| self.notice(origin)));
            for text in texts {
                match self.before_prompt(&text, &mut lines).await {
                    Ok((refusal, added)) => {
                        context.extend(added);
                        blocked = blocked.or(refusal.map(|refusal| (refusal, text)));
                    }
                    Err(end @ End::Misnamed(_)) => return Err(end),
                    // An abort is noticed before the model is called.
                    Err(_) => {}
                }
            }
        }
        let refused = self.expand().await;
        self.send_init().await;
        self.send_lines(lines).await;
        if let Some(end) = refused {
            if let End::Unexpanded(text) = &end {
                self.send_unexpanded(text).await;
            }
            return Err(end);
        }
        if let Some((refusal, prompt)) = blocked {
            let kept = matches!(refusal, PromptRefusal::Stopped(_));
            let text = self.send_refused(refusal, &prompt).await;
            for prompt in self.prompts.iter().filter(|_| kept) {
                match prompt.uuid {
                    Some(_) => self.take_in(prompt).await,
                    None => drop(self.keep_prompt(prompt)),
                }
            }
            return Err(End::NoQuery(text));
        }
        let history = self.ctx.state().history;
        for prompt in self.prompts.clone() {
            self.take_in(&prompt).await;
        }
        {
            let mut state = self.ctx.state();
            let origins: Vec<Value> = self.origin.iter().cloned().collect();
            // If several tasks have ended, the turn of the last one reports all of them to the model.
            let is_woken_again = !origins.is_empty() && !state.wakes.is_empty();
            if !queries || is_woken_again {
                let texts = self.prompts.iter().map(|prompt| prompt.text.clone());
                state.unasked.extend(texts);
                state.unheard.extend(origins);
                return Err(End::NoQuery(String::new()));
            }
            state.unheard.extend(origins);
        }
        self.within_budget()?;
        let mut ask = {
            let mut state = self.ctx.state();
            state.turns += 1;
            ModelRequest {
                prompt: self
                    .prompts
                    .last()
                    .map(|prompt| prompt.text.clone())
                    .unwrap_or_default(),
                prompts: self.prompts.iter().map(|prompt| prompt.text.clone()).collect(),
                seen: self.ctx.log.lock().lines.len(),
                woken_by: state.hear(),
                turn: state.turns - 1,
                woken: self.origin.is_some(),
                folded: std::mem::take(&mut state.unasked),
                context,
                history,
                resumed: state.resumed,
                system_prompt: state.system_prompt.clone(),
                appended_prompt: state.appended_prompt.clone(),
                max_thinking_tokens: state.thinking,
                ..ModelRequest::default()
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

    /// Reports that hooks are against a prompt. Gives the text.
    async fn send_refused(&self, refusal: PromptRefusal, prompt: &str) -> String {
        let (kind, reason, text) = match refusal {
            PromptRefusal::Blocked(reason) => {
                let why = reason.as_deref().unwrap_or(hooks::BLOCKED);
                let text = format!(
                    "UserPromptSubmit operation blocked by hook:\n{why}\n\nOriginal prompt: {prompt}"
                );
                ("blocked_by_hook", reason, text)
            }
            PromptRefusal::Stopped(reason) => {
                let why = reason.iter().map(|reason| format!(": {reason}"));
                let text = format!("Operation stopped by hook{}", why.collect::<String>());
                ("stopped_by_hook", reason, text)
            }
        };
        let mut outcome = json!({"kind": kind, "prompt_kept": kind == "stopped_by_hook"});
        outcome.put("reason", reason);
        let fields = json!({
            "content": text, "level": "warning", "prevent_continuation": true, "prompt_submit_outcome": outcome,
        });
        self.ctx.send_system("informational", fields).await;
        text
    }

    /// What hooks for prompts are told of the end of a task.
    fn notice(&self, origin: &Value) -> Option<String> {
        self.ctx.state().origin_task(origin).map(background::Task::notice)
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
    pub(super) async fn converse(&mut self, mut ask: ModelRequest) -> Result<(), End> {
        let mut stops = 0;
        let blocks = self.ctx.config.stop_hook_block_cap.unwrap_or(BLOCKS);
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
                None => {
                    let mut state = self.ctx.state();
                    state.subagents.are_read();
                    state.model.clone()
                }
            };
            ask.tools = tools::listed(&self.ctx.config, &self.ctx.state());
            ask.cwd = self.ctx.cwd().to_string_lossy().into_owned();
            ask.home.clone_from(&self.ctx.config.home);
            if ask.round > before {
                ask.woken_by = background::heard(&self.ctx, self.agent.as_deref());
            }
            let response = self.ctx.brain.lock().await.respond(&ask);
            let hands = Arc::new(Hands::new(self.caller.clone()));
            self.hands = hands.clone();
            let results = hands.beside(self.round(&ask.model, response)).await?;
            ask.tool_results.clear();
            ask.folded.clear();
            ask.context.clear();
            ask.continued = false;
            ask.round += 1;
            let Some(results) = results else {
                let wanted = self.agent.is_none() && self.ctx.state().schema.is_some();
                if let Some(reminder) = self.reminder(&mut reminded, wanted).await? {
                    self.remind(reminder).await;
                    ask.context.push(reminder.to_owned());
                    continue;
                }
                let stop = self.before_stop(stops > 0, &self.text).await;
                let stop = stop.map_err(|why| End::Aborted { why, tools: false })?;
                if let Some(reason) = &stop.feedback {
                    self.remind(&format!("Stop hook feedback:\n{reason}")).await;
                    // The last word is the hook's.
                    if self.agent.is_none() && (stop.prevented || stops == blocks) {
                        self.text.clear();
                    }
                }
                self.send_hook_messages(&stop.messages).await;
                for text in stop.failed {
                    let fields = json!({"content": text, "level": "warning"});
                    self.ctx.send_system("informational", fields).await;
                }
                if stop.feedback.is_some() && stops == 0 {
                    let text = "stop hook problem · ctrl+o to see";
                    let how = json!({"priority": "immediate"});
                    self.notify("stop-hook-error", text, how).await;
                }
                if stop.prevented {
                    return Err(End::StopHookPrevented);
                }
                if stop.feedback.is_none() && stop.context.is_empty() {
                    return Ok(());
                }
                stops += 1;
                if stops > blocks {
                    self.overrule(stops).await;
                    return Ok(());
                }
                ask.context.extend(stop.feedback.into_iter().chain(stop.context));
                continue;
            };
            ask.tool_results = results;
            ask.context.extend(self.after_batch().await?);
            self.has_ended()?;
            if self.agent.is_none() {
                self.fold(&mut ask).await?;
            }
        }
    }

    /// A response with its calls; no results if it has none.
    async fn round(&mut self, model: &str, response: ModelResponse) -> Result<Option<Vec<CallResult>>, End> {
        self.respond(model, response).await?;
        self.within_budget()?;
        if !self.hands.are_empty()
            && let Some(fault) = self.broken.take()
        {
            self.send_api_error(&ApiFailure::of_break(&fault, true)).await;
        }
        if self.hands.are_empty() {
            return Ok(None);
        }
        self.finish_calls().await.map(Some)
    }

    /// Whether a hook or the structured output has ended the turn.
    fn has_ended(&self) -> Result<(), End> {
        let mut tally = self.tally();
        if tally.stopped_by_hook {
            return Err(End::HookStopped);
        }
        if let Some(output) = tally.structured.take() {
            return Err(End::Structured(output));
        }
        if tally.unstructured >= structured::ATTEMPTS {
            return Err(End::Unstructured {
                attempts: tally.unstructured,
                error: tally.last_flaw.clone(),
            });
        }
        Ok(())
    }

    /// What the CLI tells the model that has stopped before its end; nothing if the turn is over.
    async fn reminder(&mut self, reminded: &mut Reminded, wanted: bool) -> Result<Option<&'static str>, End> {
        if self.stop_reason.as_deref() == Some("refusal") {
            self.ctx.state().refusals += 1;
        }
        if let Some(fault) = self.broken.take() {
            if reminded.of_break == RESUMPTIONS {
                return Err(self.fail_at(ApiFailure::of_break(&fault, false)).await);
            }
            reminded.of_break += 1;
            return Ok(Some(
                "The response above has broken off. Go on where it did, or begin again if nothing of it is left.",
            ));
        }
        Ok(match self.stop_reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") if reminded.of_limit < RESUMPTIONS => {
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
            _ if self.is_silent && !std::mem::replace(&mut reminded.of_silence, true) => {
                Some("The response had nothing that can be seen. Go on, and say something.")
            }
            _ => None,
        })
    }

    /// Tells that hooks have kept the turn from ending too often.
    async fn overrule(&self, stops: u32) {
        let text = format!(
            "A hook has kept the turn from ending {stops} times in a row, and it ends now. A hook can see by \
             stop_hook_active that it has blocked before; CLAUDE_CODE_STOP_HOOK_BLOCK_CAP sets another limit."
        );
        if self.agent.is_none() {
            let fields = json!({"content": text, "level": "warning"});
            self.ctx.send_system("informational", fields).await;
        }
        let how = json!({"priority": "high", "color": "warning"});
        self.notify("stop-hook-block-cap", &text, how).await;
    }

    /// Shows a note. Those of agents are shown to nobody.
    async fn notify(&self, key: &str, text: &str, mut how: Value) {
        if self.agent.is_none() {
            how["key"] = json!(key);
            how["text"] = json!(text);
            self.ctx.send_system("notification", how).await;
        }
    }

    async fn fail_at(&mut self, failure: ApiFailure) -> End {
        self.send_api_error(&failure).await;
        End::Api(Box::new(failure))
    }

    /// What the CLI says to the model in the user's place. Of an agent the host does not hear it.
    async fn remind(&mut self, text: &str) {
        self.tally().user_lines += 1;
        let message = json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let mut extra = json!({"isSynthetic": true});
        if self.stop_reason.as_deref() == Some("refusal") {
            extra["refusal_retry"] = json!(true);
            extra["refused_message_id"] = json!(self.last_message);
        }
        self.ctx
            .say(ConversationLine {
                agent: self.agent.as_deref(),
                kind: "user",
                kept: Some(json!({"message": message, "promptId": self.prompt_id(), "isMeta": true})),
                message,
                extra,
                shown: self.agent.is_none(),
            })
            .await;
    }

    pub(super) async fn send_init(&self) {
        let commands = commands::all(&self.ctx);
        let (cwd, project) = (self.ctx.cwd(), self.ctx.project());
        let line = {
            let state = self.ctx.state();
            let config = &self.ctx.config;
            let mut line = payload::init(&payload::Init {
                cwd: &cwd,
                project: &project,
                home: &config.home,
                session_id: &state.session_id,
                model: &state.model,
                mode: &state.mode,
                tools: super::tools::listed(config, &state),
                mcp_servers: mcp::listed(&state.servers),
                directories: &state.directories,
            });
            if !state.server_errors.is_empty() {
                line["mcp_server_errors"] = json!(state.server_errors);
            }
            line.put("output_style", state.settings.get(&["outputStyle"]));
            line["agents"] = json!(subagent::kinds(config, &state));
            if let Some(names) = line["slash_commands"].as_array_mut() {
                names.splice(0..0, commands.iter().map(|command| json!(command.name)));
                names.extend(mcp::prompts(&state.servers).map(|prompt| json!(prompt.name)));
            }
            let uuids: Vec<&String> = self
                .prompts
                .iter()
                .filter_map(|prompt| prompt.uuid.as_ref())
                .collect();
            line.put("user_message_uuids", (!uuids.is_empty()).then_some(uuids));
            line
        };
        self.ctx.send_stamped(line).await;
        let torn: Vec<(&str, String)> = {
            let state = self.ctx.state();
            let lists = [
                ("--allowedTools", &state.rules.allow),
                ("--disallowedTools", &state.rules.deny),
            ];
            let torn = lists.into_iter().flat_map(|(flag, rules)| {
                let torn = rules
                    .iter()
                    .filter(|rule| rule.source == RuleSource::CliArg && rule.is_torn());
                torn.map(move |rule| (flag, rule.text.clone()))
            });
            let config = &self.ctx.config;
            if state.turns > 0 || !config.by_official_sdk || config.entrypoint == "sdk-cli" {
                Vec::new()
            } else {
                torn.collect()
            }
        };
        for (flag, rule) in torn {
            let content =
                format!("{flag}: \"{rule}\" is no complete rule. Rules look like Bash or Bash(git *).");
            self.ctx
                .send_system("informational", json!({"content": content, "level": "warning"}))
                .await;
        }
    }

    /// Adds a prompt to the conversation. Gives its uuid.
    fn keep_prompt(&self, prompt: &QueuedPrompt) -> String {
        let uuid = prompt.uuid.clone().unwrap_or_else(|| self.ctx.uuid());
        let fields = json!({
            "promptId": self.prompt_id(), "message": prompt.message, "permissionMode": self.ctx.state().mode,
            "promptSource": "sdk", "turnOrigin": "sdk",
        });
        self.ctx.keep(|transcript| transcript.prompted(&prompt.text));
        self.ctx.state().prompts += 1;
        self.ctx.record(None, "user", &uuid, fields);
        files::checkpoint(&self.ctx, &uuid);
        uuid
    }

    /// Adds a prompt to the conversation, and replays it if the host wants that.
    pub(super) async fn take_in(&self, prompt: &QueuedPrompt) {
        let uuid = self.keep_prompt(prompt);
        if !self.ctx.config.replay || prompt.origin == Some(UNCLASSIFIED) {
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

    /// Takes in the prompts that came while the turn ran, and the ends of tasks, unless hooks are against it.
    async fn fold(&mut self, ask: &mut ModelRequest) -> Result<(), End> {
        loop {
            let prompt = {
                let mut state = self.ctx.state();
                let folds = |prompt: &QueuedPrompt| prompt.priority == Priority::Next;
                let position = state.queue.iter().position(folds);
                position.and_then(|n| state.queue.remove(n))
            };
            let Some(prompt) = prompt else { break };
            let admission = self.admit(&prompt.text, ask).await?;
            match admission {
                Admission::Aborted => {
                    self.ctx.state().queue.push_front(prompt);
                    return Ok(());
                }
                Admission::Held => {
                    self.held.0.push(prompt);
                    continue;
                }
                Admission::Taken | Admission::Blocked(_) => {}
            }
            self.ctx.send_lifecycle(&prompt, "started").await;
            let timestamp = self.ctx.timestamp();
            self.ctx.keep(|transcript| transcript.dequeue(timestamp));
            if let Admission::Blocked(refusal) = admission {
                self.ctx.send_lifecycle(&prompt, "completed").await;
                self.send_refused(refusal, &prompt.text).await;
                continue;
            }
            self.take_in(&prompt).await;
            ask.folded.push(prompt.text.clone());
            self.folded.push(prompt);
        }
        if !self.ctx.is_hooked(hooks::ON_PROMPT) {
            return Ok(());
        }
        let origins = std::mem::take(&mut self.ctx.state().wakes);
        for origin in origins {
            let text = self.notice(&origin).unwrap_or_default();
            match self.admit(&text, ask).await? {
                Admission::Taken => self.ctx.state().unheard.push(origin),
                Admission::Blocked(refusal) => drop(self.send_refused(refusal, &text).await),
                Admission::Held => self.held.1.push(origin),
                Admission::Aborted => self.ctx.state().wakes.push_back(origin),
            }
        }
        Ok(())
    }

    /// Lets hooks decide about what would be folded into the turn.
    async fn admit(&self, text: &str, ask: &mut ModelRequest) -> Result<Admission, End> {
        if !self.ctx.is_hooked(hooks::ON_PROMPT) {
            return Ok(Admission::Taken);
        }
        let mut lines = Vec::new();
        let admission = match self.before_prompt(text, &mut lines).await {
            Ok((None, context)) => {
                ask.context.extend(context);
                Admission::Taken
            }
            Ok((Some(PromptRefusal::Stopped(_)), _)) => Admission::Held,
            Ok((Some(refusal), _)) => Admission::Blocked(refusal),
            Err(end @ End::Misnamed(_)) => return Err(end),
            Err(_) => Admission::Aborted,
        };
        self.send_lines(lines).await;
        Ok(admission)
    }

    /// Reports what hooks for prompts say.
    async fn send_lines(&self, lines: Vec<Value>) {
        for fields in lines {
            self.ctx.send_system("informational", fields).await;
        }
    }

    /// Leaves what hooks would not have in this turn to the next one.
    fn release(&mut self) {
        let (prompts, origins) = std::mem::take(&mut self.held);
        let mut state = self.ctx.state();
        prompts
            .into_iter()
            .rev()
            .for_each(|prompt| state.queue.push_front(prompt));
        state.wakes.extend(origins);
    }

    /// The prompt of a subagent, as the conversation with it begins.
    pub(super) async fn say_prompt(&self, content: Value, text: &str, shown: bool) {
        self.ctx
            .say(ConversationLine {
                agent: self.agent.as_deref(),
                kind: "user",
                message: json!({"role": "user", "content": content}),
                extra: json!({}),
                shown,
                kept: Some(
                    json!({"promptId": self.prompt_id(), "message": {"role": "user", "content": text}}),
                ),
            })
            .await;
    }

    /// Which prompts a line belongs to: the last uuid and all of them.
    pub(super) fn uuids(&self) -> Option<(String, Vec<String>)> {
        let uuids = |prompts: &[QueuedPrompt]| -> Vec<String> {
            prompts.iter().filter_map(|p| p.uuid.clone()).collect()
        };
        let (own, folded) = (uuids(&self.prompts), uuids(&self.folded));
        let last = own.last().or(folded.last())?.clone();
        Some((last, [own, folded].concat()))
    }

    /// Waits until the calls of the response have been made.
    pub(super) async fn finish_calls(&mut self) -> Result<Vec<CallResult>, End> {
        let outcomes = self.hands.finished().await;
        if let Some(why) = outcomes.why {
            self.reject(outcomes.stopped).await;
            self.let_go().await;
            self.send_stop().await;
            if why != Abort::Displaced && !self.stops_silently() {
                self.send_user(json!([{"type": "text", "text": INTERRUPTED}]), json!({}))
                    .await;
            }
            return Err(End::Aborted { why, tools: true });
        }
        // A prompt that is to come at once has let them end.
        if *self.abort.borrow() == Some(Abort::Displaced) {
            let why = Abort::Displaced;
            return Err(End::Aborted { why, tools: true });
        }
        let Some(call) = outcomes.deferred else {
            return Ok(outcomes.results);
        };
        self.keep_deferred(&call);
        Err(End::Deferred(call))
    }
}
