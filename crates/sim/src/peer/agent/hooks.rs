//! Callbacks of the host on events.

use std::time::Duration;

use outrigger_protocol::shared::hook::HookSpecificOutput;
use regex_lite::Regex;
use serde_json::{Value, json};
use tokio::time::Instant;

use tokio::sync::oneshot;

use super::caller::{Caller, ModelCall};
use super::context::{Abort, Cancel, Context, HostReply};
use super::models::Model;
use super::subagent::RunningSubagent;
use super::turn::{End, INTERRUPTED};
use super::{mcp, settings};
use crate::fields::JsonFields as _;
use crate::word_list::WordList;

/// The event of a prompt.
pub(super) const ON_PROMPT: &str = "UserPromptSubmit";

/// The default deadline of a callback.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Events without the permission mode.
const WITHOUT_MODE: WordList = WordList(
    "Elicitation ElicitationResult InstructionsLoaded MessageDisplay PostCompact PostModelSwitch PreCompact \
     PreModelSwitch SessionEnd SessionStart StopFailure SubagentStart",
);

/// Callbacks that are registered for an event.
#[derive(Debug, Clone)]
pub(super) struct Hook {
    event: String,
    matcher: Option<String>,
    callback_ids: Vec<String>,
    timeout: Duration,
    blocks_on_failure: bool,
}

/// What came of one callback.
pub(super) enum Fired {
    /// An answer.
    Answer(Value),
    /// An error, or something that is no answer.
    Failed { callback_id: String, blocks: bool },
    /// Nothing in time.
    TimedOut,
    /// An answer for another event; the text says so.
    Misnamed(String),
}

/// The decision of PreToolUse callbacks.
#[derive(Debug, Default)]
pub(super) struct BeforeTool {
    pub(super) decision: Option<HookDecision>,
    /// Refuse with this text, which has no permission behind it.
    pub(super) broken: Option<&'static str>,
    pub(super) updated_input: Option<Value>,
    pub(super) messages: Vec<String>,
    /// End the turn behind the tool.
    pub(super) stop: bool,
}

/// A decision of a hook, the strongest last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HookDecision {
    Allow,
    Ask(String),
    Defer,
    Deny(String),
}

/// Reads `initialize.hooks`, whose shape has been checked.
pub(super) fn read(hooks: &Value) -> Vec<Hook> {
    let mut read = Vec::new();
    for (event, matchers) in hooks.as_object().into_iter().flatten() {
        for matcher in matchers.as_array().into_iter().flatten() {
            let ids = matcher["hookCallbackIds"].as_array().into_iter().flatten();
            let seconds = matcher["timeout"]
                .as_f64()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            read.push(Hook {
                event: event.clone(),
                matcher: matcher["matcher"].as_str().map(str::to_owned),
                callback_ids: ids.filter_map(|id| id.as_str().map(str::to_owned)).collect(),
                timeout: seconds.unwrap_or(TIMEOUT),
                blocks_on_failure: matcher["onFailure"] == "block",
            });
        }
    }
    read
}

impl Hook {
    pub(super) fn fits(&self, event: &str, tool: Option<&str>) -> bool {
        if self.event != event {
            return false;
        }
        let (Some(matcher), Some(tool)) = (self.matcher.as_deref(), tool) else {
            return true;
        };
        if matcher.is_empty() || matcher == "*" {
            return true;
        }
        // The subagent tool has two names.
        let names: &[&str] = if tool == "Agent" || tool == "Task" {
            &["Agent", "Task"]
        } else {
            &[tool]
        };
        let plain = matcher
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_|, -".contains(c));
        if plain {
            return matcher.split(['|', ',']).any(|part| names.contains(&part.trim()));
        }
        Regex::new(matcher).is_ok_and(|regex| names.iter().any(|name| regex.is_match(name)))
    }
}

/// Callbacks that were called and have not replied yet.
pub(super) struct PendingCallbacks {
    waiting: Vec<(String, oneshot::Receiver<HostReply>, String, Hook)>,
    began: Instant,
}

/// What an event belongs to.
pub(super) struct HookCause<'a> {
    /// The prompt that it comes of, if any.
    pub(super) prompt_id: Option<&'a str>,
    /// The agent that it happens to.
    pub(super) agent: Option<&'a RunningSubagent>,
    /// How the callbacks are taken back.
    pub(super) cancel: fn(Option<&str>) -> Cancel,
}

impl<'a> HookCause<'a> {
    /// Something that does not end with the turn.
    pub(super) fn session(prompt_id: Option<&'a str>) -> Self {
        Self {
            prompt_id,
            agent: None,
            cancel: |_| Cancel::Never,
        }
    }

    /// Something in a turn.
    pub(super) fn turn(prompt_id: Option<&'a str>, agent: Option<&'a RunningSubagent>) -> Self {
        Self {
            prompt_id,
            agent,
            cancel: |agent| match agent {
                Some(agent) => Cancel::OfAgent(agent.to_owned()),
                None => Cancel::Request,
            },
        }
    }
}

impl Context {
    /// Whether anybody wants to hear of an event.
    pub(super) fn is_hooked(&self, event: &str) -> bool {
        self.state().hooks.iter().any(|hook| hook.event == event)
    }

    /// Calls all callbacks of an event at once. Their matchers match the subject, if there is one.
    pub(super) async fn call_hooks(
        &self,
        event: &str,
        subject: Option<&str>,
        tool_use_id: Option<&str>,
        cause: &HookCause<'_>,
        fields: Value,
    ) -> PendingCallbacks {
        let hooks: Vec<Hook> = {
            let state = self.state();
            state
                .hooks
                .iter()
                .filter(|hook| hook.fits(event, subject))
                .cloned()
                .collect()
        };
        let mut asked = PendingCallbacks {
            waiting: Vec::new(),
            began: Instant::now(),
        };
        if hooks.is_empty() {
            return asked;
        }
        let (session_id, mode, model, made_up) = {
            let mut state = self.state();
            let made_up = match event {
                "PostToolBatch" => format!("hook-{}", state.ids.uuid()),
                _ => state.ids.uuid(),
            };
            (
                state.session_id.clone(),
                state.mode_of(cause.agent).name.to_owned(),
                state.model.clone(),
                made_up,
            )
        };
        let mut input = json!({
            "session_id": session_id,
            "transcript_path": self.transcript_path(),
            "cwd": self.cwd().to_string_lossy(),
            "hook_event_name": event,
        });
        input.put("prompt_id", cause.prompt_id);
        let tells_mode = !WITHOUT_MODE.has(event);
        input.put("permission_mode", tells_mode.then_some(mode));
        let tells_effort = (tells_mode && !event.starts_with("UserPrompt")) || event == "StopFailure";
        if tells_effort && Model::of(&model).has_effort() {
            input["effort"] = json!({"level": "medium"});
        }
        input.put("agent_id", cause.agent.map(|agent| &agent.id));
        input.put("agent_type", cause.agent.map(|agent| &agent.kind));
        input.merge(fields);
        for hook in hooks {
            for callback_id in hook.callback_ids.clone() {
                let request = json!({
                    "subtype": "hook_callback", "callback_id": callback_id, "input": input,
                    "tool_use_id": tool_use_id.unwrap_or(&made_up),
                });
                let cancel = (cause.cancel)(cause.agent.map(|agent| agent.id.as_str()));
                let (id, answer) = self.request(request, cancel).await;
                asked.waiting.push((id, answer, callback_id, hook.clone()));
            }
        }
        asked
    }

    /// Waits for what callbacks answer.
    pub(super) async fn collect(&self, asked: PendingCallbacks) -> Vec<Fired> {
        let mut fired = Vec::new();
        for (id, answer, callback_id, hook) in asked.waiting {
            let failed = |callback_id| Fired::Failed {
                callback_id,
                blocks: hook.blocks_on_failure,
            };
            let answer = tokio::time::timeout_at(asked.began + hook.timeout, answer).await;
            fired.push(match answer {
                Ok(Ok(HostReply::Success(answer))) if fits(&answer) => match misnamed(&answer, &hook.event) {
                    Some(text) => Fired::Misnamed(text),
                    None => Fired::Answer(answer),
                },
                // It was withdrawn.
                Ok(Err(_)) => continue,
                Ok(Ok(_)) => failed(callback_id),
                Err(_) => {
                    self.withdraw(&id).await;
                    Fired::TimedOut
                }
            });
        }
        fired
    }

    /// What callbacks have answered: a text where an answer is for another event. Reports the callbacks that failed.
    pub(super) async fn answers(&self, event: &str, fired: Vec<Fired>) -> Vec<Result<Value, String>> {
        let mut answers = Vec::new();
        for fired in fired {
            match fired {
                Fired::Answer(answer) => answers.push(Ok(answer)),
                Fired::Misnamed(text) => answers.push(Err(text)),
                Fired::Failed { callback_id, blocks } => self.send_failed(event, &callback_id, blocks).await,
                Fired::TimedOut => {}
            }
        }
        answers
    }

    pub(super) async fn send_failed(&self, event: &str, callback_id: &str, blocks: bool) {
        self.send_system("informational", failed(event, callback_id, blocks))
            .await;
    }

    /// Calls all callbacks of something that does not end with the turn, and waits for them.
    pub(super) async fn fire(
        &self,
        event: &str,
        subject: Option<&str>,
        prompt_id: Option<&str>,
        fields: Value,
    ) -> Vec<Fired> {
        let cause = HookCause::session(prompt_id);
        let asked = self.call_hooks(event, subject, None, &cause, fields).await;
        self.collect(asked).await
    }
}

/// How it is reported that a callback failed.
fn failed(event: &str, callback_id: &str, blocks: bool) -> Value {
    let what = if blocks {
        "onFailure is \"block\", so this failure counts as a block."
    } else {
        "Its answer was treated as empty."
    };
    let content = format!(
        "{event}: Hook callback {callback_id} failed: the SDK host replied with an error or an invalid answer. {what}"
    );
    json!({"content": content, "level": "warning", "tag": "hook_callback_failed"})
}

/// Why hooks are against a prompt.
pub(super) enum PromptRefusal {
    /// The prompt is dropped.
    Blocked(Option<String>),
    /// The prompt is kept, and not answered.
    Stopped(Option<String>),
}

/// The reason of a hook that gives none.
pub(super) const BLOCKED: &str = "Blocked by hook";

/// Why a hook blocks.
fn reason_of(answer: &Value) -> String {
    answer["reason"].as_str().unwrap_or(BLOCKED).to_owned()
}

/// What hooks say where a turn would end.
#[derive(Default)]
pub(super) struct StopReply {
    /// Whether the turn ends, whatever other hooks say.
    pub(super) prevented: bool,
    /// Why the turn goes on.
    pub(super) feedback: Option<String>,
    /// What else the model is told, for which it goes on as well.
    pub(super) context: Vec<String>,
    /// What the hooks have to say.
    pub(super) messages: Vec<String>,
    /// What was wrong with their answers.
    pub(super) failed: Vec<String>,
}

/// What is wrong with an answer that names another event.
fn misnamed(answer: &Value, event: &str) -> Option<String> {
    let named = answer["hookSpecificOutput"]["hookEventName"].as_str()?;
    (named != event).then(|| {
        format!("Hook returned incorrect event name: expected '{event}' but got '{named}'. Full stdout: {answer:#}")
    })
}

/// A field of an answer that the CLI knows, and whether a value fits it.
type KnownField = (&'static str, fn(&Value) -> bool);

/// Whether an answer is one: a field that the CLI knows has a value that it takes, and others may be anything.
fn fits(answer: &Value) -> bool {
    let all = |object: &Value, fields: &[KnownField]| {
        object.is_object()
            && fields
                .iter()
                .all(|(key, is_fit)| object.get(key).is_none_or(is_fit))
    };
    let top: &[KnownField] = &[
        ("continue", Value::is_boolean),
        ("suppressOutput", Value::is_boolean),
        ("stopReason", Value::is_string),
        ("reason", Value::is_string),
        ("systemMessage", Value::is_string),
        ("decision", |decision| {
            decision == "approve" || decision == "block"
        }),
    ];
    let specific: &[KnownField] = &[
        ("permissionDecision", |decision| {
            ["allow", "deny", "ask", "defer"]
                .iter()
                .any(|known| decision == known)
        }),
        ("permissionDecisionReason", Value::is_string),
        ("updatedInput", Value::is_object),
        ("additionalContext", Value::is_string),
    ];
    // What a decision of the other kind would have does not matter.
    let allowing: &[KnownField] = &[
        ("updatedInput", Value::is_object),
        ("updatedPermissions", settings::are_updates),
    ];
    let denying: &[KnownField] = &[("message", Value::is_string), ("interrupt", Value::is_boolean)];
    let decides = |decision: &Value| match decision["behavior"].as_str() {
        Some("allow") => all(decision, allowing),
        Some("deny") => all(decision, denying),
        _ => false,
    };
    let is_of_an_event = |output: &Value| {
        let event = output["hookEventName"].as_str();
        event.is_some_and(|event| HookSpecificOutput::KNOWN.contains(&event))
    };
    let output = answer.get("hookSpecificOutput");
    all(answer, top)
        && output.is_none_or(|output| {
            let of_request = output["hookEventName"] == "PermissionRequest";
            is_of_an_event(output)
                && all(output, specific)
                && output
                    .get("decision")
                    .is_none_or(|decision| !of_request || decides(decision))
        })
}

impl Caller {
    /// Calls all callbacks of an event at once.
    pub(super) async fn call_hooks(
        &self,
        event: &str,
        subject: Option<&str>,
        tool_use_id: Option<&str>,
        mut fields: Value,
    ) -> PendingCallbacks {
        let server = fields["tool_name"]
            .as_str()
            .and_then(|name| mcp::find(&self.ctx, name));
        let server = server.map(|found| json!({"name": found.server, "source": "sdk"}));
        fields.put("mcp_server", server);
        let prompt_id = self.prompt_id();
        let cause = HookCause::turn(prompt_id.as_deref(), self.agent.as_deref());
        self.ctx
            .call_hooks(event, subject, tool_use_id, &cause, fields)
            .await
    }

    /// Calls all callbacks of an event at once and waits for them.
    pub(super) async fn fire(
        &self,
        event: &str,
        tool: Option<&str>,
        tool_use_id: Option<&str>,
        fields: Value,
    ) -> Result<Vec<Fired>, Abort> {
        let asked = self.call_hooks(event, tool, tool_use_id, fields).await;
        self.or_abort(self.ctx.collect(asked)).await
    }

    /// Sends the `systemMessage`s of hooks.
    pub(super) async fn send_hook_messages(&self, messages: &[String]) {
        for content in messages {
            self.ctx
                .send_system("informational", json!({"content": content, "level": "notice"}))
                .await;
        }
    }

    /// Calls the hooks before a tool.
    pub(super) async fn ask_before_tool(&self, id: &str, name: &str, input: &Value) -> PendingCallbacks {
        let fields = json!({"tool_name": name, "tool_input": input, "tool_use_id": id});
        self.call_hooks("PreToolUse", Some(name), Some(id), fields).await
    }

    /// PreToolUse.
    pub(super) async fn before_tool(&self, call: &mut ModelCall) -> Result<BeforeTool, Abort> {
        let asked = match call.asked.take() {
            Some(asked) => asked,
            None => self.ask_before_tool(&call.id, &call.name, &call.shown).await,
        };
        let fired = self.or_abort(self.ctx.collect(asked)).await?;
        let mut before = BeforeTool::default();
        let mut decide =
            |decision: HookDecision| before.decision = before.decision.take().max(Some(decision));
        for fired in fired {
            match fired {
                Fired::TimedOut => {
                    before.broken = Some(
                        "PreToolUse hook did not respond before its timeout (host client may be unreachable).",
                    );
                }
                Fired::Failed { callback_id, blocks } => {
                    self.ctx.send_failed("PreToolUse", &callback_id, blocks).await;
                    if blocks {
                        decide(HookDecision::Deny(format!(
                            "[callback]: failed; blocking because onFailure is \"block\"\nHook callback {callback_id} \
                             failed: the SDK host replied with an error or an invalid answer."
                        )));
                    }
                }
                Fired::Misnamed(_) => {
                    before.broken = Some("PreToolUse hook failed with an unexpected error.");
                }
                Fired::Answer(answer) => {
                    let output = &answer["hookSpecificOutput"];
                    let given = output["permissionDecisionReason"].as_str();
                    match output["permissionDecision"].as_str() {
                        Some("allow") => decide(HookDecision::Allow),
                        Some("ask") => decide(HookDecision::Ask(given.unwrap_or_default().to_owned())),
                        Some("defer") => decide(HookDecision::Defer),
                        Some("deny") => decide(HookDecision::Deny(given.unwrap_or(BLOCKED).to_owned())),
                        _ => {}
                    }
                    match answer["decision"].as_str() {
                        Some("block") => decide(HookDecision::Deny(reason_of(&answer))),
                        Some("approve") => decide(HookDecision::Allow),
                        _ => {}
                    }
                    if output["updatedInput"].is_object() {
                        before.updated_input = Some(output["updatedInput"].clone());
                    }
                    if let Some(message) = answer["systemMessage"].as_str() {
                        before
                            .messages
                            .push(format!("PreToolUse:{} says: {message}", call.name));
                    }
                    before.stop |= answer["continue"] == false;
                }
            }
        }
        Ok(before)
    }

    /// PostToolUse, or PostToolUseFailure: may replace what came out of the tool. Returns what is to be said behind the result.
    pub(super) async fn after_tool(
        &self,
        call: &ModelCall,
        outcome: &mut super::brain::ToolOutcome,
        took: Duration,
    ) -> Result<Vec<String>, Abort> {
        let mut messages = Vec::new();
        let failed = outcome.is_error == Some(true);
        let event = if failed {
            "PostToolUseFailure"
        } else {
            "PostToolUse"
        };
        let mut fields = json!({
            "tool_name": call.name, "tool_input": call.shown, "tool_use_id": call.id,
            "duration_ms": took.as_millis() as u64,
        });
        if failed {
            fields["error"] = outcome.content.clone();
            fields["is_interrupt"] = json!(outcome.content == INTERRUPTED);
        } else {
            // Of what a server says hooks get the content alone.
            let content = outcome
                .details
                .get("content")
                .filter(|_| call.name.starts_with("mcp__"));
            fields["tool_response"] = content.unwrap_or(&outcome.details).clone();
        }
        let asked = self
            .call_hooks(event, Some(&call.name), Some(&call.id), fields)
            .await;
        // A prompt that comes in between lets the call end.
        let asked = self.or_aborted_by(|why| why != Abort::Displaced, self.ctx.collect(asked));
        let answers = self.ctx.answers(event, asked.await?).await;
        for answer in answers.into_iter().flatten() {
            let output = &answer["hookSpecificOutput"];
            let is_of_server = call.name.starts_with("mcp__");
            let of_server = is_of_server && !output["updatedMCPToolOutput"].is_null();
            let updated = &output[if of_server {
                "updatedMCPToolOutput"
            } else {
                "updatedToolOutput"
            }];
            // An output of another shape than the tool's own is ignored.
            let needs = |key: &str| outcome.details.get(key).is_none() || updated.get(key).is_some();
            let is_alike = updated.is_object() == outcome.details.is_object()
                && ["stdout", "stderr", "interrupted"].into_iter().all(needs);
            if !updated.is_null() && (is_of_server || is_alike) {
                outcome.details = updated.clone();
                outcome.content = match (updated, updated["stdout"].as_str()) {
                    (_, Some(stdout)) => json!(stdout),
                    (Value::Object(_), None) if !is_of_server => json!(updated.to_string()),
                    (updated, None) => updated.clone(),
                };
            }
            if let Some(message) = answer["systemMessage"].as_str() {
                messages.push(format!("{event}:{} says: {message}", call.name));
            }
            // Behind a failure nobody can stop the turn.
            self.tally().stopped_by_hook |= answer["continue"] == false && !failed;
        }
        Ok(messages)
    }

    /// PostToolBatch: returns the additions for the model.
    pub(super) async fn after_batch(&self) -> Result<Vec<String>, End> {
        let calls = std::mem::take(&mut self.tally().batch);
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let fired = self
            .fire("PostToolBatch", None, None, json!({"tool_calls": calls}))
            .await;
        let mut context = Vec::new();
        for fired in fired.into_iter().flatten() {
            match fired {
                Fired::Answer(answer) => {
                    let added = &answer["hookSpecificOutput"]["additionalContext"];
                    context.extend(added.as_str().map(str::to_owned));
                    self.tally().stopped_by_hook |= answer["continue"] == false;
                }
                Fired::Misnamed(text) => return Err(End::Misnamed(text)),
                _ => {}
            }
        }
        Ok(context)
    }

    /// UserPromptSubmit: returns the refusal if there is one, and the additions for the model. What is to be reported of the hooks is
    /// added to the lines.
    pub(super) async fn before_prompt(
        &self,
        prompt: &str,
        lines: &mut Vec<Value>,
    ) -> Result<(Option<PromptRefusal>, Vec<String>), End> {
        let (mut refusal, mut context) = (None, Vec::new());
        let mut fields = json!({"prompt": prompt});
        fields.put("session_title", self.ctx.state().title.as_ref());
        let fired = self.fire(ON_PROMPT, None, None, fields).await;
        for fired in fired.map_err(|why| End::Aborted { why, tools: false })? {
            let answer = match fired {
                Fired::Answer(answer) => answer,
                Fired::Misnamed(text) => return Err(End::Misnamed(text)),
                Fired::Failed { callback_id, blocks } => {
                    lines.push(failed(ON_PROMPT, &callback_id, blocks));
                    continue;
                }
                Fired::TimedOut => continue,
            };
            let text = |value: &Value| value.as_str().map(str::to_owned);
            if answer["decision"] == "block" {
                refusal = Some(PromptRefusal::Blocked(text(&answer["reason"])));
            } else if answer["continue"] == false {
                refusal = Some(PromptRefusal::Stopped(text(&answer["stopReason"])));
            }
            let output = &answer["hookSpecificOutput"];
            context.extend(output["additionalContext"].as_str().map(str::to_owned));
            let is_new = output["sessionTitle"].as_str() != self.ctx.state().title.as_deref();
            if let Some(title) = output["sessionTitle"].as_str().filter(|_| is_new) {
                super::control::rename(&self.ctx, title).await;
            }
            let said = answer["systemMessage"].as_str();
            let line = |said| json!({"content": format!("{ON_PROMPT} says: {said}"), "level": "notice"});
            lines.extend(said.map(line));
        }
        Ok((refusal, context))
    }

    /// How a request of this turn is taken back.
    pub(super) fn cancel(&self) -> Cancel {
        match &self.agent {
            Some(agent) => Cancel::OfAgent(agent.id.clone()),
            None => Cancel::Request,
        }
    }

    /// SubagentStart: returns the additions for its model, and the callbacks that failed.
    pub(super) async fn agent_starts(&self) -> Result<(Vec<String>, Vec<(String, bool)>), End> {
        let kind = self.agent.as_ref().map(|agent| agent.kind.as_str());
        let asked = self.call_hooks("SubagentStart", kind, None, json!({})).await;
        if let Some(agent) = &self.agent {
            agent.began.notify_one();
        }
        let fired = self.or_abort(self.ctx.collect(asked)).await;
        let fired = fired.map_err(|why| End::Aborted { why, tools: false })?;
        let (mut context, mut failed) = (Vec::new(), Vec::new());
        for fired in fired {
            match fired {
                Fired::Answer(answer) => {
                    let added = &answer["hookSpecificOutput"]["additionalContext"];
                    context.extend(added.as_str().map(str::to_owned));
                }
                Fired::Failed { callback_id, blocks } => failed.push((callback_id, blocks)),
                Fired::Misnamed(text) => return Err(End::Misnamed(text)),
                Fired::TimedOut => {}
            }
        }
        Ok((context, failed))
    }

    /// Where the conversation of an agent is kept.
    pub(super) fn agent_path(&self, id: &str) -> std::path::PathBuf {
        let path = self.ctx.keep(|transcript| transcript.subagent_path(id));
        path.unwrap_or_else(|| {
            let beside = self.ctx.transcript_path().with_extension("");
            beside.join("subagents").join(format!("agent-{id}.jsonl"))
        })
    }

    /// Stop, or SubagentStop.
    pub(super) async fn before_stop(&self, again: bool, last: &str) -> Result<StopReply, Abort> {
        let tasks: Vec<Value> = {
            let state = self.ctx.state();
            let running = state.tasks.iter().filter(|task| task.runs());
            running.map(super::background::Task::summary).collect()
        };
        let mut fields = json!({
            "stop_hook_active": again, "last_assistant_message": last, "background_tasks": tasks,
            "session_crons": [],
        });
        let event = match &self.agent {
            Some(agent) => {
                fields["agent_transcript_path"] = json!(self.agent_path(&agent.id));
                "SubagentStop"
            }
            None => "Stop",
        };
        let kind = self.agent.as_ref().map(|agent| agent.kind.as_str());
        let mut stop = StopReply::default();
        let fired = self.fire(event, kind, None, fields).await?;
        for answer in self.ctx.answers(event, fired).await {
            let answer = match answer {
                Ok(answer) => answer,
                Err(text) => {
                    let said = self
                        .agent
                        .is_none()
                        .then(|| format!("{event} hook failed: {text}"));
                    stop.failed.extend(said);
                    continue;
                }
            };
            stop.prevented |= answer["continue"] == false;
            let added = answer["hookSpecificOutput"]["additionalContext"].as_str();
            stop.context.extend(added.map(str::to_owned));
            if answer["decision"] == "block" {
                stop.feedback = Some(reason_of(&answer));
            }
            // What hooks of agents have to say is shown to nobody.
            let said = answer["systemMessage"].as_str().filter(|_| self.agent.is_none());
            stop.messages
                .extend(said.map(|said| format!("{event} says: {said}")));
        }
        Ok(stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers() {
        let hook = |matcher: Option<&str>| Hook {
            event: "PreToolUse".into(),
            matcher: matcher.map(str::to_owned),
            callback_ids: Vec::new(),
            timeout: TIMEOUT,
            blocks_on_failure: false,
        };
        for (matcher, tool, fits) in [
            (None, "Bash", true),
            (Some(""), "Bash", true),
            (Some("*"), "Bash", true),
            (Some("Bash|Write"), "Write", true),
            (Some("Bash"), "BashOutput", false),
            (Some("mcp__.*"), "mcp__calc__add", true),
            (Some("T.*k"), "Agent", true),
            (Some("Task"), "Agent", true),
            (Some("("), "Bash", false),
        ] {
            assert_eq!(
                hook(matcher).fits("PreToolUse", Some(tool)),
                fits,
                "{matcher:?} {tool}"
            );
        }
        assert!(!hook(None).fits("Stop", None));
    }
}
