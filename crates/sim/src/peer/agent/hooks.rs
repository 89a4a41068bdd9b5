//! Callbacks of the host on events.

use std::time::Duration;

use regex_lite::Regex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::context::{Abort, Answer, Cancel};
use super::turn::{Call, Turn};

/// How long a callback may take unless its matcher says so.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Events that tell neither the permission mode nor the effort.
const NEITHER: &[&str] = &[
    "MessageDisplay",
    "PostCompact",
    "PostModelSwitch",
    "PreCompact",
    "PreModelSwitch",
    "SessionEnd",
    "SessionStart",
    "StopFailure",
    "SubagentStart",
];

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
}

/// What a PreToolUse callback has decided.
#[derive(Debug, Default)]
pub(super) struct BeforeTool {
    pub(super) decision: Option<Decision>,
    /// Refuse with this text, which has no permission behind it.
    pub(super) broken: Option<&'static str>,
    pub(super) updated_input: Option<Value>,
    pub(super) messages: Vec<String>,
    /// End the turn behind the tool.
    pub(super) stop: bool,
}

/// A decision of a hook, the strongest last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Decision {
    Allow,
    Ask,
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
    fn fits(&self, event: &str, tool: Option<&str>) -> bool {
        if self.event != event {
            return false;
        }
        let (Some(matcher), Some(tool)) = (self.matcher.as_deref(), tool) else {
            return true;
        };
        if matcher.is_empty() || matcher == "*" {
            return true;
        }
        // The subagent tool goes by both of its names.
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

impl Turn {
    /// Calls all callbacks of an event at once and waits for them.
    pub(super) async fn fire(
        &self,
        event: &str,
        tool: Option<&str>,
        tool_use_id: Option<&str>,
        fields: Value,
    ) -> Result<Vec<Fired>, Abort> {
        let hooks: Vec<Hook> = {
            let state = self.ctx.state();
            state
                .hooks
                .iter()
                .filter(|hook| hook.fits(event, tool))
                .cloned()
                .collect()
        };
        if hooks.is_empty() {
            return Ok(Vec::new());
        }
        let (session_id, mode, made_up) = {
            let mut state = self.ctx.state();
            (state.session_id.clone(), state.mode.clone(), state.ids.uuid())
        };
        let mut input = json!({
            "session_id": session_id,
            "transcript_path": self.ctx.transcript_path(),
            "cwd": self.ctx.cwd().to_string_lossy(),
            "prompt_id": self.prompt_id,
            "hook_event_name": event,
        });
        if !NEITHER.contains(&event) {
            input["permission_mode"] = json!(mode);
            if !event.starts_with("UserPrompt") {
                input["effort"] = json!({"level": "medium"});
            }
        }
        if let Some(agent) = &self.agent {
            input["agent_id"] = json!(agent.id);
            input["agent_type"] = json!(agent.kind);
        }
        if let (Some(input), Value::Object(fields)) = (input.as_object_mut(), fields) {
            input.extend(fields);
        }
        let mut waiting = Vec::new();
        for hook in &hooks {
            for callback_id in &hook.callback_ids {
                let request = json!({
                    "subtype": "hook_callback", "callback_id": callback_id, "input": input,
                    "tool_use_id": tool_use_id.unwrap_or(&made_up),
                });
                let (id, answer) = self.ctx.request(request, self.cancel()).await;
                waiting.push((id, answer, callback_id.clone(), hook));
            }
        }
        let began = Instant::now();
        let mut fired = Vec::new();
        for (id, answer, callback_id, hook) in waiting {
            let failed = |callback_id| Fired::Failed {
                callback_id,
                blocks: hook.blocks_on_failure,
            };
            let answer = tokio::time::timeout_at(began + hook.timeout, answer);
            fired.push(match self.or_abort(answer).await? {
                Ok(Ok(Answer::Success(answer))) if answer.is_object() => Fired::Answer(answer),
                Ok(_) => failed(callback_id),
                Err(_) => {
                    self.ctx.withdraw(&id).await;
                    Fired::TimedOut
                }
            });
        }
        Ok(fired)
    }

    async fn send_failed(&self, event: &str, callback_id: &str, blocks: bool) {
        let what = if blocks {
            "onFailure is \"block\", so this failure counts as a block."
        } else {
            "Its answer was treated as empty."
        };
        let content = format!(
            "{event}: Hook callback {callback_id} failed: the SDK host replied with an error or an invalid answer. {what}"
        );
        let fields = json!({"content": content, "level": "warning", "tag": "hook_callback_failed"});
        self.ctx.send_system("informational", fields).await;
    }

    /// What `systemMessage`s of hooks say.
    pub(super) async fn send_hook_messages(&self, messages: &[String]) {
        for content in messages {
            self.ctx
                .send_system("informational", json!({"content": content, "level": "notice"}))
                .await;
        }
    }

    /// PreToolUse.
    pub(super) async fn before_tool(&self, call: &Call) -> Result<BeforeTool, Abort> {
        let fields = json!({"tool_name": call.name, "tool_input": call.input, "tool_use_id": call.id});
        let fired = self
            .fire("PreToolUse", Some(&call.name), Some(&call.id), fields)
            .await?;
        let mut before = BeforeTool::default();
        let mut decide = |decision: Decision| before.decision = before.decision.take().max(Some(decision));
        for fired in fired {
            match fired {
                Fired::TimedOut => {
                    before.broken = Some(
                        "PreToolUse hook did not respond before its timeout (host client may be unreachable).",
                    );
                }
                Fired::Failed { callback_id, blocks } => {
                    self.send_failed("PreToolUse", &callback_id, blocks).await;
                    if blocks {
                        decide(Decision::Deny(format!(
                            "[callback]: failed; blocking because onFailure is \"block\"\nHook callback {callback_id} \
                             failed: the SDK host replied with an error or an invalid answer."
                        )));
                    }
                }
                Fired::Answer(answer) => {
                    let output = &answer["hookSpecificOutput"];
                    if output.is_object() && output["hookEventName"] != "PreToolUse" {
                        before.broken = Some("PreToolUse hook failed with an unexpected error.");
                        continue;
                    }
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    match output["permissionDecision"].as_str() {
                        Some("allow") => decide(Decision::Allow),
                        Some("ask") => decide(Decision::Ask),
                        Some("defer") => decide(Decision::Defer),
                        Some("deny") => decide(Decision::Deny(text(&output["permissionDecisionReason"]))),
                        _ => {}
                    }
                    match answer["decision"].as_str() {
                        Some("block") => decide(Decision::Deny(text(&answer["reason"]))),
                        Some("approve") => decide(Decision::Allow),
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

    /// PostToolUse, or PostToolUseFailure: may replace what came out of the tool.
    pub(super) async fn after_tool(
        &mut self,
        call: &Call,
        outcome: &mut super::brain::Outcome,
        took: Duration,
    ) -> Result<(), Abort> {
        let failed = outcome.is_error == Some(true);
        let event = if failed {
            "PostToolUseFailure"
        } else {
            "PostToolUse"
        };
        let mut fields = json!({
            "tool_name": call.name, "tool_input": call.input, "tool_use_id": call.id,
            "duration_ms": took.as_millis() as u64,
        });
        if failed {
            fields["error"] = outcome.content.clone();
            fields["is_interrupt"] = json!(false);
        } else {
            fields["tool_response"] = outcome.details.clone();
        }
        for fired in self.fire(event, Some(&call.name), Some(&call.id), fields).await? {
            match fired {
                Fired::TimedOut => {}
                Fired::Failed { callback_id, blocks } => self.send_failed(event, &callback_id, blocks).await,
                Fired::Answer(answer) => {
                    let updated = &answer["hookSpecificOutput"]["updatedToolOutput"];
                    if !updated.is_null() {
                        outcome.details = updated.clone();
                        outcome.content = match (updated, updated["stdout"].as_str()) {
                            (_, Some(stdout)) => json!(stdout),
                            (Value::String(_) | Value::Array(_), None) => updated.clone(),
                            (other, None) => json!(other.to_string()),
                        };
                    }
                    if let Some(message) = answer["systemMessage"].as_str() {
                        self.send_hook_messages(&[format!("{event}:{} says: {message}", call.name)])
                            .await;
                    }
                    self.stopped_by_hook |= answer["continue"] == false;
                }
            }
        }
        Ok(())
    }

    /// PostToolBatch: what is added for the model.
    pub(super) async fn after_batch(&mut self) -> Vec<String> {
        let calls = std::mem::take(&mut self.batch);
        if calls.is_empty() {
            return Vec::new();
        }
        let fired = self
            .fire("PostToolBatch", None, None, json!({"tool_calls": calls}))
            .await;
        let mut context = Vec::new();
        for fired in fired.into_iter().flatten() {
            if let Fired::Answer(answer) = fired {
                let added = &answer["hookSpecificOutput"]["additionalContext"];
                context.extend(added.as_str().map(str::to_owned));
                self.stopped_by_hook |= answer["continue"] == false;
            }
        }
        context
    }

    /// UserPromptSubmit: the reason if the prompt is blocked, and what is added for the model.
    pub(super) async fn before_prompt(&self, prompt: &str) -> Result<(Option<String>, Vec<String>), Abort> {
        let (mut blocked, mut context) = (None, Vec::new());
        for fired in self
            .fire("UserPromptSubmit", None, None, json!({"prompt": prompt}))
            .await?
        {
            match fired {
                Fired::TimedOut => {}
                Fired::Failed { callback_id, blocks } => {
                    self.send_failed("UserPromptSubmit", &callback_id, blocks).await
                }
                Fired::Answer(answer) => {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    if answer["decision"] == "block" {
                        blocked = Some(text(&answer["reason"]));
                    } else if answer["continue"] == false {
                        blocked = Some(text(&answer["stopReason"]));
                    }
                    let added = &answer["hookSpecificOutput"]["additionalContext"];
                    context.extend(added.as_str().map(str::to_owned));
                }
            }
        }
        Ok((blocked, context))
    }

    /// How a request of this turn is taken back.
    pub(super) fn cancel(&self) -> Cancel {
        match &self.agent {
            Some(agent) => Cancel::OfAgent(agent.id.clone()),
            None => Cancel::Request,
        }
    }

    /// SubagentStart: what is added for its model.
    pub(super) async fn agent_starts(&self) -> Result<Vec<String>, Abort> {
        let kind = self.agent.as_ref().map(|agent| agent.kind.as_str());
        let fired = self.fire("SubagentStart", kind, None, json!({})).await?;
        let context = fired.into_iter().filter_map(|fired| match fired {
            Fired::Answer(answer) => {
                let added = &answer["hookSpecificOutput"]["additionalContext"];
                added.as_str().map(str::to_owned)
            }
            _ => None,
        });
        Ok(context.collect())
    }

    /// Stop, or SubagentStop: the reason if the turn is to go on.
    pub(super) async fn before_stop(&self, again: bool) -> Result<Option<String>, Abort> {
        let tasks: Vec<Value> = {
            let state = self.ctx.state();
            let running = state.tasks.iter().filter(|task| task.runs());
            running.map(super::background::Task::summary).collect()
        };
        let mut fields = json!({
            "stop_hook_active": again, "last_assistant_message": self.text, "background_tasks": tasks,
            "session_crons": [],
        });
        let event = match &self.agent {
            Some(agent) => {
                let path = self.ctx.keep(|transcript| transcript.subagent_path(&agent.id));
                let path = path.unwrap_or_else(|| {
                    let beside = self.ctx.transcript_path().with_extension("");
                    beside.join("subagents").join(format!("agent-{}.jsonl", agent.id))
                });
                fields["agent_transcript_path"] = json!(path);
                "SubagentStop"
            }
            None => "Stop",
        };
        let kind = self.agent.as_ref().map(|agent| agent.kind.as_str());
        let mut reason = None;
        for fired in self.fire(event, kind, None, fields).await? {
            match fired {
                Fired::TimedOut => {}
                Fired::Failed { callback_id, blocks } => self.send_failed(event, &callback_id, blocks).await,
                Fired::Answer(answer) if answer["decision"] == "block" => {
                    reason = Some(answer["reason"].as_str().unwrap_or_default().to_owned());
                }
                Fired::Answer(_) => {}
            }
        }
        Ok(reason)
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
