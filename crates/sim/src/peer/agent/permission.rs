//! May this tool be used?

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::oneshot::error::RecvError;

use super::brain::CallResult;
use super::caller::{CallLine, Caller, Halt, Made, ModelCall};
use super::context::{Abort, HostReply};
use super::decision::{self, Verdict, Why, decide};
use super::hands::Stopped;
use super::hooks::{self, Fired};
use super::permission_request::permission_request;
use super::subagent::is_agent_tool;
use super::{disk, inputs, mcp, plans, settings, tools};
use crate::fields::JsonFields as _;

const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a \
     file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you \
     how to proceed.";

/// Follows [`REJECTED`] when the tool was already at work.
pub(super) const STOPPED: &str = " Correction to the text above: this call was stopped while running, not refused before \
     it ran. It may have run in part or in full, and its changes may have been written. No permission prompt was \
     involved. Work it started elsewhere (a remote command, a background process) may still be running, so check before \
     starting the same work again. The instruction to stop and wait still stands.";

const INVALID: &str = "The canUseTool callback returned an invalid permission result. Expected {behavior: 'allow', \
     updatedInput?: object} or {behavior: 'deny', message: string}. updatedPermissions may hold at most 4096 updates, \
     rules and directories in all.";

/// Why a call is refused that nobody can check.
const UNCHECKED: &str = "Classifier unavailable";

/// How a question was answered.
enum Decision {
    Allow {
        /// Another input than that of the call.
        input: Option<Value>,
        meta: Value,
    },
    /// Somebody gave another input, which is none.
    Unfit(String),
    Refuse {
        message: String,
        meta: Value,
        /// Whether a hook tells the model that it may try again.
        again: bool,
    },
    Interrupt,
}

impl Decision {
    /// Allows a call as it is.
    fn allow(source: &str, reason: Option<&str>) -> Self {
        Self::Allow {
            input: None,
            meta: decided("accept", source, reason),
        }
    }

    fn refuse(message: impl Into<String>, source: &str, reason: Option<&str>) -> Self {
        Self::refuse_as("permission-rule", message, source, reason)
    }

    fn refuse_as(kind: &str, message: impl Into<String>, source: &str, reason: Option<&str>) -> Self {
        let decision = decided("reject", source, reason);
        Self::Refuse {
            message: message.into(),
            meta: json!({"non_execution_kind": kind, "permission_decision": decision}),
            again: false,
        }
    }
}

/// Who has decided about a call, and by what.
fn decided(decision: &str, source: &str, reason: Option<&str>) -> Value {
    let mut meta = json!({"decision": decision, "source": source});
    meta.put("reason_type", reason);
    meta
}

impl Caller {
    /// One tool call. Hooks are told of all calls of a response, whatever came of them.
    pub(super) async fn call(self: Arc<Self>, call: ModelCall) -> Result<Made, Halt> {
        let (id, input) = (call.id.clone(), call.input.clone());
        let made = self.clone().make(call).await?;
        // A hook may not have replied when another one, or a person, decided.
        self.ctx.keep_requests_about(&id);
        self.tally().batch.push(json!({
            "tool_name": made.result.name, "tool_input": input, "tool_use_id": id, "tool_response": made.result.content,
        }));
        Ok(made)
    }

    /// Hooks, permission, work, result.
    async fn make(self: Arc<Self>, mut call: ModelCall) -> Result<Made, Halt> {
        if self.is_structured(&call.name) {
            self.send_stop().await;
            return Ok(self.take_structured(call));
        }
        let alias = self.ctx.state().tool_aliases.get(&call.name).cloned();
        if let Some(tool) = alias {
            call.name = tool;
        }
        if !self.is_handled(&call.name) {
            call.name = tools::present_name(&call.name).to_owned();
        }
        // The model may call it by its old name; it is told to nobody else.
        if call.name == "Task" && !self.is_handled("Task") {
            "Agent".clone_into(&mut call.name);
            call.by_old_name = true;
        }
        if let Some(reason) = self.missing(&call.name) {
            self.send_stop().await;
            let content = format!("<tool_use_error>Error: {reason}</tool_use_error>");
            return Ok(failed(&call, &content, &format!("Error: {reason}"), None));
        }
        if let Some(refused) = self.prepare(&mut call).await {
            return Ok(refused);
        }
        let before = self.before_tool(&mut call).await?;
        // The sender lives as long as the caller.
        let _ = self.telling.subscribe().wait_for(|telling| !*telling).await;
        if let Some(what) = before.broken {
            self.send_stop().await;
            let content = format!(
                "{what} The tool call was not executed; other configured hooks may not have completed."
            );
            return Ok(failed(&call, &content, &format!("Error: {content}"), None));
        }
        let mut refused_rewrite = None;
        if let Some(input) = before.updated_input {
            let from_model = call.shown.clone();
            let flaws = inputs::check(&call.name, &input).err();
            call.shown = self.placed(&call.name, input);
            call.used = call.shown.clone();
            refused_rewrite = match flaws {
                Some(flaws) => Some(flaws),
                None => disk::unfit(&self.ctx, &self.reader(), &call).await,
            };
            if refused_rewrite.is_some() {
                call.shown = from_model;
            }
        }
        let is_denied = matches!(before.decision, Some(hooks::HookDecision::Deny(_)));
        let decision = match before.decision {
            decision
                if refused_rewrite.is_some() && !matches!(decision, Some(hooks::HookDecision::Deny(_))) =>
            {
                let message = format!(
                    "A hook changed the input of {} to one that the tool refuses: {}",
                    call.name,
                    refused_rewrite.unwrap_or_default()
                );
                Decision::refuse(message, "hook", Some("hook"))
            }
            Some(hooks::HookDecision::Deny(reason)) => {
                // The result knows an agent by its old name then.
                call.by_old_name |= is_agent_tool(&call.name);
                // What is said of a path that was not absolute is the reason alone.
                let message = if call.is_placed() {
                    reason
                } else {
                    format!("PreToolUse:{} hook error: {reason}", call.name)
                };
                Decision::refuse(message, "hook", Some("hook"))
            }
            Some(hooks::HookDecision::Defer) => {
                self.send_stop().await;
                return Err(Halt::Deferred(
                    json!({"id": call.id, "name": call.name, "input": call.shown}),
                ));
            }
            Some(hooks::HookDecision::Ask(reason)) => {
                // So does the result here, if a person refuses the agent.
                call.by_old_name |= is_agent_tool(&call.name);
                let verdict = match self.verdict(&call) {
                    Verdict::Ask(why) if why.is_danger() => Verdict::Ask(why),
                    _ => Verdict::Ask(Why::Hook(reason)),
                };
                self.settle(&call, verdict).await?
            }
            allowed => {
                let verdict = self.verdict(&call);
                let line = call.shown["command"].as_str().filter(|_| call.name == "Bash");
                let is_kept = line.is_some_and(|line| {
                    let state = self.ctx.state();
                    decision::is_kept_from_plans(
                        &self.ctx,
                        &state,
                        state.mode_of(self.agent.as_deref()),
                        line,
                    )
                });
                let by_hook = allowed.is_some() && !verdict.outweighs_hooks() && !is_kept;
                if by_hook {
                    Decision::allow("hook", Some("hook"))
                } else if let (
                    Some(_),
                    Verdict::Deny {
                        message,
                        reason,
                        source,
                        ..
                    },
                ) = (&allowed, &verdict)
                    && *reason != "mode"
                {
                    // Of what a hook has allowed the client is told nothing more.
                    Decision::refuse(message, source, Some(*reason))
                } else {
                    self.settle(&call, verdict).await?
                }
            }
        };
        if !is_agent_tool(&call.name) {
            self.send_stop().await;
        }
        // A hook that ends the turn does so with a call that runs, or that it denies itself.
        self.tally().stopped_by_hook |=
            before.stop && (is_denied || matches!(decision, Decision::Allow { .. }));
        match decision {
            Decision::Allow { input, meta } => {
                if let Some(input) = input.filter(|input| *input != call.shown) {
                    // Another path alone is no change of what is written.
                    let written = ["content", "old_string", "new_string", "replace_all"];
                    let is_other = written.iter().any(|key| input[key] != call.shown[key]);
                    call.by_user = is_other && meta["source"] != "hook";
                    let same_file = input["file_path"] == call.shown["file_path"];
                    let given = call.used.get("file_path").filter(|_| same_file).cloned();
                    call.used.clone_from(&input);
                    if let Some(given) = given {
                        call.used["file_path"] = given;
                    }
                    call.shown = input;
                }
                self.work(call, json!({"permission_decision": meta}), before.messages)
                    .await
            }
            Decision::Unfit(flaws) => {
                let text = format!(
                    "The permission handler returned updatedInput for {} that failed schema validation: {flaws}\nThis is a \
                     configuration issue in the permission handler.",
                    call.name
                );
                let content = format!("<tool_use_error>{text}</tool_use_error>");
                let meta = json!({"permission_decision": {"decision": "reject", "source": "permission_updated_input_invalid"}});
                Ok(failed(&call, &content, &format!("Error: {text}"), Some(meta)))
            }
            Decision::Refuse { message, meta, again } => {
                // Who had nobody to check it knows it by its old name.
                call.by_old_name |=
                    meta["non_execution_kind"] == "automode-unavailable" && is_agent_tool(&call.name);
                self.deny(&call);
                let mut made = failed(&call, &message, &format!("Error: {message}"), Some(meta));
                let messages = before.messages.into_iter().map(CallLine::Message);
                made.lines.splice(0..0, messages);
                if again {
                    let text = "A hook says that this call may be tried again.";
                    made.lines.push(CallLine::result(
                        json!({"type": "text", "text": text}),
                        json!({"isSynthetic": true}),
                    ));
                }
                Ok(made)
            }
            Decision::Interrupt => {
                self.deny(&call);
                self.abort.send_replace(Some(Abort::Interrupt));
                match &self.agent {
                    None => self.ctx.cancel_requests().await,
                    Some(agent) => self.ctx.withdraw_of(&agent.id).await,
                }
                Err(Halt::Interrupts)
            }
        }
    }

    fn verdict(&self, call: &ModelCall) -> Verdict {
        let state = self.ctx.state();
        let mode = state.mode_of(self.agent.as_deref());
        decide(&self.ctx, &state, mode, &call.name, &call.shown)
    }

    fn permission_request(&self, call: &ModelCall, why: Why, mcp: Option<&mcp::FoundTool>) -> Value {
        let state = self.ctx.state();
        let mode = state.mode_of(self.agent.as_deref()).name;
        permission_request(&self.ctx, &state, mode, call, why, mcp)
    }

    fn placed(&self, tool: &str, input: Value) -> Value {
        inputs::placed(tool, input, &self.ctx.cwd(), Path::new(&self.ctx.config.home))
    }

    /// Reads the input of a call, and checks what needs no decision. Gives the result of a call that cannot be made.
    async fn prepare(&self, call: &mut ModelCall) -> Option<Made> {
        let mut meta = None;
        let error = match inputs::read(&call.name, &call.input) {
            Err(flaws) => Some((
                format!("InputValidationError: {flaws}"),
                format!("InputValidationError: {flaws}"),
            )),
            Ok(input) => {
                call.shown = self.placed(&call.name, input.clone());
                call.used = input;
                // An edit that changes nothing is none, wherever the file is.
                let edits = call.name != "Edit" || call.used["old_string"] != call.used["new_string"];
                let is_outside = disk::outside_worktree(&self.ctx, &call.name, &call.used).is_some();
                let denied = (edits && !is_outside)
                    .then(|| decision::denied_file(&self.ctx, &call.name, &call.shown))
                    .flatten();
                if let Some((_, source)) = &denied {
                    self.deny(call);
                    let decision = decided("reject", source.decided(false), Some("rule"));
                    meta = Some(json!({"permission_decision": decision}));
                }
                let unfit = match denied {
                    Some((reason, _)) => Some(reason.to_owned()),
                    None => disk::unfit(&self.ctx, &self.reader(), call).await,
                };
                unfit.map(|reason| (reason.clone(), format!("Error: {reason}")))
            }
        };
        if let Some((content, details)) = error {
            self.send_stop().await;
            let content = format!("<tool_use_error>{content}</tool_use_error>");
            return Some(failed(call, &content, &details, meta));
        }
        if call.name == "ExitPlanMode" {
            // The plan is what is in its file, whatever the model says.
            if let Some(input) = call.shown.as_object_mut() {
                input.shift_remove("plan");
                input.shift_remove("planFilePath");
            }
            if let Some((path, plan)) = plans::written(&self.ctx) {
                call.shown["plan"] = json!(plan);
                call.shown["planFilePath"] = json!(path);
            }
            call.used.clone_from(&call.shown);
        }
        None
    }

    /// Why there is no such tool; none if there is.
    pub(super) fn missing(&self, name: &str) -> Option<String> {
        let only = self.only_tools.as_ref();
        // An agent may have a tool to look for files that the session has not.
        let own = tools::SEARCH.contains(&name)
            && self.ctx.config.tools.is_none()
            && only.is_some_and(|only| only.iter().any(|tool| tool == name))
            && !decision::disallowed(&self.ctx.state().rules, name);
        let reason = tools::missing(&self.ctx, name).filter(|_| !own);
        let kept_from = only.is_some_and(|only| !only.iter().any(|tool| tool == name || tool == "*"))
            || self.no_tools.iter().any(|tool| tool == name);
        let why = "is not among the tools available here. Continue with the tools you have.";
        reason.or_else(|| kept_from.then(|| format!("No such tool available: {name}. {name} {why}")))
    }

    /// The answer in the shape of the schema, or an attempt at one.
    fn take_structured(&self, call: ModelCall) -> Made {
        let flaws = self
            .ctx
            .state()
            .schema
            .as_ref()
            .map(|schema| schema.flaws(&call.input));
        let flaws = flaws.unwrap_or_default();
        let meta = json!({"id": call.id, "permission_decision": {"decision": "accept", "source": "config"}});
        let (block, details, content) = if flaws.is_empty() {
            self.tally().structured = Some(call.input);
            let text = "Structured output provided successfully";
            let block = json!({"tool_use_id": call.id, "type": "tool_result", "content": text});
            (block, text.to_owned(), text.to_owned())
        } else {
            let text = format!("Output does not match required schema: {}", flaws.join(", "));
            {
                let mut tally = self.tally();
                tally.unstructured += 1;
                tally.last_flaw.clone_from(&text);
            }
            let block =
                json!({"type": "tool_result", "content": text, "is_error": true, "tool_use_id": call.id});
            (block, format!("Error: {text}"), text)
        };
        let extra = json!({"tool_use_result": details, "tool_result_meta": [meta]});
        Made {
            result: CallResult {
                name: call.name,
                content: json!(content),
                is_error: !flaws.is_empty(),
            },
            lines: vec![CallLine::result(block, extra)],
        }
    }

    async fn settle(&self, call: &ModelCall, verdict: Verdict) -> Result<Decision, Abort> {
        Ok(match verdict {
            // Agents are started without a rule.
            Verdict::Allow("") => Decision::allow("config", None),
            Verdict::Allow(reason) => Decision::allow("config", Some(reason)),
            Verdict::AllowByRule(source) => Decision::allow(source.decided(true), Some("rule")),
            Verdict::Deny {
                message,
                reason,
                source,
                ..
            } => {
                self.send_denied(call, &message, Some(reason)).await;
                Decision::refuse(message, source, Some(reason))
            }
            Verdict::Unchecked { .. } => self.refuse_unchecked(call).await?,
            Verdict::Ask(why) if self.ctx.config.permission_prompts => self.ask(call, why).await?,
            Verdict::Ask(_) if self.ctx.config.unattended => {
                let message = format!(
                    "{} needs approval, and nobody can give it in this session.",
                    call.name
                );
                self.send_denied(call, &message, Some("asyncAgent")).await;
                Decision::refuse(message, "config", Some("asyncAgent"))
            }
            Verdict::Ask(why) => {
                if let Some(decision) = self.ask_only_hooks(call, why).await? {
                    return Ok(decision);
                }
                let message = format!("{} needs approval, and there is nobody to ask.", call.name);
                self.send_denied(call, &message, None).await;
                Decision::refuse_as("user-rejected", message, "config", None)
            }
        })
    }

    /// Refuses a call that only a check on the server could allow. A scripted API has no such check.
    async fn refuse_unchecked(&self, call: &ModelCall) -> Result<Decision, Abort> {
        if !std::mem::replace(&mut self.ctx.state().told_unchecked, true) {
            let content = "Auto mode can't check actions in this session: the API has no safety check. Every action that \
                           needs it is refused.";
            let timestamp = self.ctx.timestamp();
            let fields = json!({
                "content": content, "level": "warning", "isMeta": false, "tag": "auto_mode_no_server_check",
                "timestamp": timestamp,
            });
            self.ctx.send_system("informational", fields).await;
        }
        let message = format!(
            "Auto mode is unavailable: its safety check does not run for this session, so {} was not run.",
            call.name
        );
        self.send_denied(call, &message, Some("classifier")).await;
        let fields = json!({
            "tool_name": call.name, "tool_input": call.shown, "tool_use_id": call.id, "reason": UNCHECKED,
        });
        let event = "PermissionDenied";
        let fired = self.fire(event, Some(&call.name), Some(&call.id), fields).await?;
        let mut decision = Decision::refuse_as("automode-unavailable", message, "config", Some("classifier"));
        let answers = self.ctx.answers(event, fired).await;
        let mut answers = answers.iter().flatten();
        if let Decision::Refuse { again, .. } = &mut decision {
            *again = answers.any(|answer| answer["hookSpecificOutput"]["retry"] == true);
        }
        Ok(decision)
    }

    /// Lets the hooks for permission requests decide where there is nobody else.
    async fn ask_only_hooks(&self, call: &ModelCall, why: Why) -> Result<Option<Decision>, Abort> {
        let found = mcp::find(&self.ctx, &call.name);
        let request = self.permission_request(call, why, found.as_ref());
        let (input, mut suggestions) = (
            request["input"].clone(),
            request["permission_suggestions"].clone(),
        );
        // Nothing is suggested for good where no person is.
        if let Some(suggestions) = suggestions.as_array_mut() {
            suggestions.retain(|update| update["destination"] != "localSettings");
        }
        let decision = self.call_permission_hooks(call, input, suggestions).await;
        let Some(mut decision) = self.or_abort(decision).await? else {
            return Ok(None);
        };
        if decision["behavior"] == "deny" {
            if decision["message"].is_null() {
                decision["message"] = json!("Permission denied by hook");
            }
            let message = decision["message"].as_str().unwrap_or_default();
            self.send_denied(call, message, Some("hook")).await;
        }
        let answer = Ok(HostReply::Success(decision));
        Ok(Some(self.take_answer(call, answer).await))
    }

    /// Calls the hooks for permission requests. The future gives their decision when all have replied; none if they leave it to others.
    async fn call_permission_hooks(
        &self,
        call: &ModelCall,
        input: Value,
        suggestions: Value,
    ) -> impl Future<Output = Option<Value>> + Send + 'static {
        let mut fields = json!({"tool_name": call.name, "tool_input": input});
        fields.put(
            "permission_suggestions",
            (!suggestions.is_null()).then_some(suggestions),
        );
        let asked = self
            .call_hooks("PermissionRequest", Some(&call.name), Some(&call.id), fields)
            .await;
        let ctx = Arc::clone(&self.ctx);
        async move {
            for fired in ctx.collect(asked).await {
                if let Fired::Failed { callback_id, blocks } = &fired {
                    ctx.send_failed("PermissionRequest", callback_id, *blocks).await;
                }
                if let Fired::Answer(answer) = fired {
                    let mut decision = answer["hookSpecificOutput"]["decision"].clone();
                    if decision["behavior"].is_string() {
                        decision["from_hook"] = json!(true);
                        return Some(decision);
                    }
                }
            }
            None
        }
    }

    /// Sends a permission request to the client.
    async fn ask(&self, call: &ModelCall, why: Why) -> Result<Decision, Abort> {
        let found = mcp::find(&self.ctx, &call.name);
        let mut request = self.permission_request(call, why, found.as_ref());
        request.put("agent_id", self.agent.as_ref().map(|agent| &agent.id));
        let suggestions = request["permission_suggestions"].clone();
        let input = request["input"].clone();
        self.ctx.await_action().await;
        let (id, mut answer) = self.ctx.request(request, self.cancel()).await;
        self.send_stop().await;
        let mut hooks = Box::pin(self.call_permission_hooks(call, input, suggestions).await);
        let mut are_open = true;
        let race = async {
            loop {
                tokio::select! {
                    biased;
                    answer = &mut answer => return answer,
                    decision = &mut hooks, if are_open => {
                        are_open = false;
                        let Some(mut decision) = decision else { continue };
                        // Denials of hooks need no message.
                        if decision["message"].is_null() {
                            decision["message"] = json!("Permission denied by PermissionRequest hook");
                        }
                        return Ok(HostReply::Success(decision));
                    }
                }
            }
        };
        let answer = match self.or_abort(race).await {
            Ok(answer) => answer,
            Err(Abort::Displaced) => {
                self.ctx.resume_action().await;
                return Ok(Decision::refuse(
                    "Tool permission request aborted",
                    "user_abort",
                    None,
                ));
            }
            Err(why) => {
                self.ctx.resume_action().await;
                // A question that was withdrawn counts as a denial.
                self.deny(call);
                return Err(why);
            }
        };
        self.ctx.resume_action().await;
        // A hook that fails is reported, also when the client has decided before.
        if are_open && matches!(answer, Ok(HostReply::Success(_))) {
            tokio::spawn(hooks);
        }
        let decision = self.take_answer(call, answer).await;
        // The request is still open if a hook was faster.
        self.ctx.withdraw(&id).await;
        Ok(decision)
    }

    /// What the answer to a permission request means.
    async fn take_answer(&self, call: &ModelCall, answer: Result<HostReply, RecvError>) -> Decision {
        let refuse = |message: String| Decision::refuse(message, "config", Some("other"));
        let payload = match answer {
            Ok(HostReply::Success(payload)) => payload,
            Ok(HostReply::Error(error)) => {
                return refuse(format!("Tool permission request failed: Error: {error}"));
            }
            // The channel is only dropped by an abort, which has been handled.
            Ok(HostReply::Closed) | Err(_) => {
                let error = "Tool permission stream closed before response received";
                return refuse(format!("Tool permission request failed: Error: {error}"));
            }
        };
        let input = match payload.get("updatedInput") {
            None => Some(&call.shown),
            Some(Value::Object(input)) if input.is_empty() => Some(&call.shown),
            Some(input @ Value::Object(_)) => Some(input),
            Some(_) => None,
        };
        match (payload["behavior"].as_str(), input, payload["message"].as_str()) {
            (Some("allow"), Some(input), _) => {
                if *input != call.shown
                    && let Err(flaws) = inputs::check(&call.name, input)
                {
                    return Decision::Unfit(flaws);
                }
                let mode = settings::apply_permissions(&self.ctx, &payload["updatedPermissions"]).await;
                if let Some(mode) = mode {
                    let fields = json!({"status": null, "permissionMode": mode});
                    self.ctx.send_system("status", fields).await;
                }
                let by_hook = payload["from_hook"] == true;
                let input = input.clone();
                Decision::Allow {
                    input: Some(if by_hook {
                        self.placed(&call.name, input)
                    } else {
                        input
                    }),
                    meta: match by_hook {
                        true => decided("accept", "hook", Some("hook")),
                        false => decided("accept", "user_temporary", None),
                    },
                }
            }
            (Some("deny"), _, Some(_)) if payload["interrupt"] == true => Decision::Interrupt,
            (Some("deny"), _, Some(message)) => match payload["from_hook"] == true {
                true => Decision::refuse(message, "hook", Some("hook")),
                false => Decision::refuse(message, "user_reject", None),
            },
            _ => refuse(INVALID.to_owned()),
        }
    }

    fn deny(&self, call: &ModelCall) {
        let name = if call.by_old_name { "Task" } else { &call.name };
        let denial = json!({"tool_name": name, "tool_use_id": call.id, "tool_input": call.shown});
        self.tally().denials.push(denial);
    }

    async fn send_denied(&self, call: &ModelCall, message: &str, reason: Option<&str>) {
        let mut fields = json!({"tool_name": call.name, "tool_use_id": call.id, "message": message});
        fields.put("agent_id", self.agent.as_ref().map(|agent| &agent.id));
        if let Some(reason) = reason {
            fields["decision_reason_type"] = json!(reason);
            match reason {
                "other" => fields["decision_reason"] = json!("The target is a symbolic link"),
                "asyncAgent" => fields["decision_reason"] = json!("nobody can be asked in this session"),
                "classifier" => {
                    fields["decision_reason_code"] = json!("auto_mode_no_check_in_session");
                    fields["decision_reason"] = json!(UNCHECKED);
                }
                _ => {}
            }
        }
        self.ctx.send_system("permission_denied", fields).await;
    }

    /// The results of calls that were stopped.
    pub(super) async fn reject(&self, stopped: Vec<Stopped>) {
        let silent = self.stops_silently();
        let killed = *self.abort.borrow() == Some(Abort::Killed);
        for call in stopped
            .into_iter()
            .filter(|call| call.by_answer || killed || !silent)
        {
            let more = if killed { "" } else { call.more };
            let content = format!("{REJECTED}{more}");
            let block =
                json!({"type": "tool_result", "content": content, "is_error": true, "tool_use_id": call.id});
            let mut extra = json!({"tool_use_result": "User rejected tool use"});
            if !silent && !killed {
                extra["tool_result_meta"] = json!([{"id": call.id, "non_execution_kind": "user-rejected"}]);
            }
            self.send_user(json!([block]), extra).await;
        }
    }
}

/// A call that did not run.
fn failed(call: &ModelCall, content: &str, details: &str, meta: Option<Value>) -> Made {
    let block = json!({"type": "tool_result", "content": content, "is_error": true, "tool_use_id": call.id});
    let mut extra = json!({"tool_use_result": details});
    if let Some(mut meta) = meta {
        meta["id"] = json!(call.id);
        extra["tool_result_meta"] = json!([meta]);
    }
    Made {
        result: CallResult {
            name: call.name.clone(),
            content: json!(content),
            is_error: true,
        },
        lines: vec![CallLine::result(block, extra)],
    }
}
