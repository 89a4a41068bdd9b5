//! May this tool be used?

use std::path::Path;

use serde_json::{Value, json};

use super::brain::ToolResult;
use super::context::{Abort, Answer, Context, State};
use super::hooks::{self, Fired};
use super::rules::{Access, Place, Rule, Rules, Source, Subject, What, allowing};
use super::turn::{Call, Halt, Turn};
use super::{mcp, plans, settings, structured, tools};

/// Whether this tool is taken away altogether.
pub(super) fn disallowed(rules: &Rules, tool: &str) -> bool {
    rules.deny.iter().any(|rule| rule.text == tool)
}

/// The decision before any request is sent.
enum Verdict {
    Allow(&'static str),
    /// By a rule that the user has made for good.
    AllowForGood,
    Deny {
        message: String,
        reason: &'static str,
    },
    Ask(Why),
}

/// The reason of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Why {
    /// Nothing speaks for it.
    Undecided,
    /// A rule of this source wants it.
    Rule(Source),
    /// A hook wants it, for this reason.
    Hook(String),
}

/// Commands that only read.
const READ_ONLY: &[&str] = &[
    "echo", "ls", "cat", "pwd", "sleep", "head", "tail", "true", "false", "wc", "grep", "which", "whoami",
    "date",
];

/// Commands that `acceptEdits` allows, and that make the CLI suggest it.
const FILE_COMMANDS: &[&str] = &["touch", "mkdir", "rm", "rmdir", "mv", "cp", "sed"];

/// Files and directories that always need a permission request to change, whatever rule allows it.
const SENSITIVE: &[&str] = &[
    ".git",
    ".claude",
    ".vscode",
    ".idea",
    ".mcp.json",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".gitconfig",
    ".gitmodules",
];

fn is_sensitive(path: &str) -> bool {
    path.split('/').any(|part| SENSITIVE.contains(&part))
}

/// What rules look at in a call.
fn looked_at<'a>(tool: &'a str, input: &'a Value) -> Subject<'a> {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let what = match tool {
        "Bash" | "Monitor" => What::Command(text("command")),
        "Read" => What::File(Access::Read, text("file_path")),
        "Glob" | "Grep" => What::File(Access::Read, text("path").trim()),
        "Write" | "Edit" => What::File(Access::Write, text("file_path")),
        "NotebookEdit" => What::File(Access::Write, text("notebook_path")),
        "WebFetch" => What::Url(text("url")),
        _ => What::Other,
    };
    Subject { tool, what }
}

fn subject<'a>(tool: &str, input: &'a Value) -> &'a str {
    let key = match tool {
        "Bash" => "command",
        "WebFetch" => "url",
        _ => "file_path",
    };
    input[key].as_str().unwrap_or_default()
}

fn all_commands(command: &str, known: &[&str]) -> bool {
    // A redirection writes.
    !command.contains('>')
        && tools::commands(command)
            .iter()
            .all(|words| words.first().is_some_and(|word| known.contains(&word.as_str())))
}

fn judge(ctx: &Context, state: &State, tool: &str, input: &Value) -> Verdict {
    let subject = subject(tool, input);
    let bash = tool == "Bash";
    let (cwd, home) = (ctx.cwd(), Path::new(&ctx.config.home));
    let place = Place { cwd: &cwd, home };
    let call = looked_at(tool, input);
    let hit = |rules: &'_ [Rule]| rules.iter().find(|rule| rule.touches(&call, &place)).cloned();
    if hit(&state.rules.deny).is_some() {
        let what = if bash {
            format!("{tool} with command {subject}")
        } else {
            tool.to_owned()
        };
        return Verdict::Deny {
            message: format!("Permission to use {what} has been denied."),
            reason: if bash { "subcommandResults" } else { "rule" },
        };
    }
    if super::subagent::is_agent_tool(tool) {
        return Verdict::Allow("");
    }
    if tool == "AskUserQuestion" || tool == "ExitPlanMode" {
        return Verdict::Ask(Why::Undecided);
    }
    if let Some(rule) = hit(&state.rules.ask) {
        return Verdict::Ask(Why::Rule(rule.source));
    }
    if state.mode == "bypassPermissions" {
        return Verdict::Allow("mode");
    }
    let inside = |path: &str| {
        let path = cwd.join(path);
        path.starts_with(&cwd)
            || state
                .all_directories()
                .any(|directory| path.starts_with(directory))
    };
    // A command with a path elsewhere needs a permission request even if it only reads.
    let stays = |command: &str| {
        let words = tools::commands(command).into_iter().flatten();
        words
            .filter(|word| word.starts_with(['/', '~']) || word.contains(".."))
            .all(|word| !word.contains("..") && inside(&word))
    };
    if let Some(rule) = allowing(&state.rules.allow, &call, &place, READ_ONLY) {
        if rule.source.is_file() && rule.names(subject) {
            return Verdict::AllowForGood;
        }
        let whole = state.rules.allow.iter().any(|rule| rule.text == tool);
        let is_kept = match call.what {
            What::Command(line) if !whole => {
                stays(line)
                    && !tools::commands(line)
                        .iter()
                        .flatten()
                        .any(|word| is_sensitive(word))
            }
            What::File(Access::Write, path) => !is_sensitive(path),
            _ => true,
        };
        if is_kept {
            return Verdict::Allow(if bash && !whole {
                "subcommandResults"
            } else {
                "rule"
            });
        }
    }
    let edits = state.mode == "acceptEdits";
    match tool {
        "Bash" if all_commands(subject, READ_ONLY) && stays(subject) => Verdict::Allow("subcommandResults"),
        "Bash" if edits && all_commands(subject, FILE_COMMANDS) => Verdict::Allow("subcommandResults"),
        "Read" if inside(subject) => Verdict::Allow("mode"),
        "Glob" | "Grep" if inside(input["path"].as_str().unwrap_or_default()) => Verdict::Allow("mode"),
        "EnterPlanMode" => Verdict::Allow("mode"),
        "Write" | "Edit" if subject.starts_with(&plans::directory(ctx)) => Verdict::Allow("other"),
        "Write" | "Edit" if edits && inside(subject) => Verdict::Allow("mode"),
        _ if state.mode == "dontAsk" => Verdict::Deny {
            message: format!(
                "Permission to use {tool} has been denied because Claude Code is running in don't ask mode."
            ),
            reason: "mode",
        },
        _ => Verdict::Ask(Why::Undecided),
    }
}

/// Removes the fields of a request that have no value.
fn only(request: &mut Value) {
    const UNDECIDED: &[&str] = &[
        "permission_suggestions",
        "blocked_path",
        "decision_reason",
        "decision_reason_type",
    ];
    if let Some(request) = request.as_object_mut() {
        request.retain(|key, _| !UNDECIDED.contains(&key.as_str()));
    }
}

/// The `can_use_tool` request.
fn question(ctx: &Context, state: &State, call: &Call, why: Why, mcp: Option<&mcp::Found>) -> Value {
    let subject = subject(&call.name, &call.input);
    let mut request = json!({
        "subtype": "can_use_tool",
        "tool_name": call.name,
        "display_name": call.name,
        "input": call.input,
        "tool_use_id": call.id,
    });
    let accept_edits = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    let rule = |content: Option<&str>| {
        let mut rule = json!({"toolName": call.name});
        if let Some(content) = content {
            rule["ruleContent"] = json!(content);
        }
        json!({"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "localSettings"})
    };
    let cwd = ctx.cwd();
    let relative = |path: &str| {
        let path = std::path::Path::new(path);
        path.strip_prefix(&cwd)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned()
    };
    match call.name.as_str() {
        "Bash" => {
            request["description"] = match &call.input["description"] {
                Value::String(description) => json!(description),
                _ => json!(subject),
            };
            let mut suggestions = vec![rule(Some(subject))];
            if all_commands(subject, FILE_COMMANDS) {
                let directory = cwd.to_string_lossy();
                suggestions.push(
                    json!({"type": "addDirectories", "directories": [directory], "destination": "session"}),
                );
                suggestions.push(accept_edits);
                let file = tools::commands(subject)
                    .pop()
                    .and_then(|words| words.last().cloned());
                let file = ctx.cwd().join(file.unwrap_or_default());
                request["blocked_path"] = json!(file.to_string_lossy());
            } else {
                request["decision_reason"] = json!("This command requires approval");
                request["decision_reason_type"] = json!("other");
            }
            request["permission_suggestions"] = json!(suggestions);
        }
        "Write" | "Edit" | "Read" => {
            request["description"] = json!(relative(subject));
            if state.mode == "plan" {
                request["decision_reason_type"] = json!("mode");
            } else {
                request["permission_suggestions"] = json!([accept_edits]);
            }
        }
        "AskUserQuestion" | "ExitPlanMode" => request["requires_user_interaction"] = json!(true),
        _ => request["permission_suggestions"] = json!([rule(None)]),
    }
    match why {
        Why::Undecided => {}
        // A request by an explicit rule has no suggestion to remove the rule.
        Why::Rule(source) => {
            only(&mut request);
            request["decision_reason_type"] = json!("rule");
            request["decision_reason_rule_source"] = json!(source.as_str());
            request["server_policy_ask_only"] = json!(false);
        }
        Why::Hook(reason) => {
            only(&mut request);
            request["decision_reason"] = json!(reason);
            request["decision_reason_type"] = json!("hook");
            request["decision_reason_hook_event"] = json!("PreToolUse");
            request["decision_reason_hook_source"] = json!("settings");
        }
    }
    if let Some(found) = mcp {
        request["mcp_server"] = json!({"name": found.server, "source": "sdk"});
        request["display_name"] = json!(mcp::display_name(&found.tool));
        request["server_policy_ask_only"] = json!(true);
    }
    request
}

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

/// How a question was answered.
enum Decision {
    Allow { input: Value, meta: Value },
    Refuse { message: String, meta: Value },
    Interrupt,
}

impl Turn {
    /// One tool call: hooks, permission, work, result.
    pub(super) async fn call(&mut self, mut call: Call) -> Result<ToolResult, Halt> {
        if call.name == structured::TOOL && self.agent.is_none() && self.ctx.state().schema.is_some() {
            self.send_stop().await;
            return Ok(self.take_structured(call).await);
        }
        if let Some(reason) = self.missing(&call.name) {
            self.send_stop().await;
            let content = format!("<tool_use_error>Error: {reason}</tool_use_error>");
            return Ok(self
                .send_error(&call, &content, &format!("Error: {reason}"), None)
                .await);
        }
        if call.name == "ExitPlanMode" {
            call.input = plans::written(&self.ctx).map_or_else(
                || json!({}),
                |(path, plan)| json!({"plan": plan, "planFilePath": path}),
            );
        }
        let before = match self.before_tool(&call).await {
            Ok(before) => before,
            Err(why) => {
                self.send_rejected(&call.id, "").await;
                return Err(why.into());
            }
        };
        self.stopped_by_hook |= before.stop;
        if let Some(what) = before.broken {
            self.send_stop().await;
            let content = format!(
                "{what} The tool call was not executed; other configured hooks may not have completed."
            );
            return Ok(self
                .send_error(&call, &content, &format!("Error: {content}"), None)
                .await);
        }
        if let Some(input) = before.updated_input {
            call.input = input;
        }
        let decision = match before.decision {
            Some(hooks::Decision::Deny(reason)) => Decision::Refuse {
                message: format!("PreToolUse:{} hook error: {reason}", call.name),
                meta: refused(json!({"decision": "reject", "source": "hook", "reason_type": "hook"})),
            },
            Some(hooks::Decision::Defer) => {
                self.send_stop().await;
                return Err(Halt::Deferred(
                    json!({"id": call.id, "name": call.name, "input": call.input}),
                ));
            }
            Some(hooks::Decision::Allow) => Decision::Allow {
                input: call.input.clone(),
                meta: json!({"decision": "accept", "source": "hook", "reason_type": "hook"}),
            },
            Some(hooks::Decision::Ask(reason)) => self.settle(&call, Verdict::Ask(Why::Hook(reason))).await?,
            None => {
                let verdict = judge(&self.ctx, &self.ctx.state(), &call.name, &call.input);
                self.settle(&call, verdict).await?
            }
        };
        self.send_stop().await;
        match decision {
            Decision::Allow { input, meta } => {
                call.input = input;
                Ok(self
                    .work(call, json!({"permission_decision": meta}), &before.messages)
                    .await?)
            }
            Decision::Refuse { message, meta } => {
                self.deny(&call);
                Ok(self
                    .send_error(&call, &message, &format!("Error: {message}"), Some(meta))
                    .await)
            }
            Decision::Interrupt => {
                self.deny(&call);
                self.send_rejected(&call.id, "").await;
                self.abort.send_replace(Some(Abort::Interrupt));
                Err(Abort::Interrupt.into())
            }
        }
    }

    /// Why there is no such tool; none if there is.
    fn missing(&self, name: &str) -> Option<String> {
        let reason = tools::missing(&self.ctx, name);
        let only = self.only_tools.as_ref();
        let kept_from = only.is_some_and(|only| !only.iter().any(|tool| tool == name || tool == "*"))
            || self.no_tools.iter().any(|tool| tool == name);
        reason.or_else(|| kept_from.then(|| format!("No such tool available: {name}")))
    }

    /// The answer in the shape of the schema, or an attempt at one.
    async fn take_structured(&mut self, call: Call) -> ToolResult {
        let flaws = self
            .ctx
            .state()
            .schema
            .as_ref()
            .map(|schema| schema.flaws(&call.input));
        let flaws = flaws.unwrap_or_default();
        let meta = json!({"id": call.id, "permission_decision": {"decision": "accept", "source": "config"}});
        let (block, details, content) = if flaws.is_empty() {
            self.structured = Some(call.input);
            let text = "Structured output provided successfully";
            let block = json!({"tool_use_id": call.id, "type": "tool_result", "content": text});
            (block, text.to_owned(), text.to_owned())
        } else {
            self.unstructured += 1;
            let text = format!("Output does not match required schema: {}", flaws.join(", "));
            self.last_flaw.clone_from(&text);
            let block =
                json!({"type": "tool_result", "content": text, "is_error": true, "tool_use_id": call.id});
            (block, format!("Error: {text}"), text)
        };
        let extra = json!({"tool_use_result": details, "tool_result_meta": [meta]});
        self.send_user(json!([block]), extra).await;
        ToolResult {
            name: call.name,
            content: json!(content),
            is_error: !flaws.is_empty(),
        }
    }

    async fn settle(&mut self, call: &Call, verdict: Verdict) -> Result<Decision, Abort> {
        Ok(match verdict {
            // Agents are started without a rule.
            Verdict::Allow("") => Decision::Allow {
                input: call.input.clone(),
                meta: json!({"decision": "accept", "source": "config"}),
            },
            Verdict::Allow(reason) => Decision::Allow {
                input: call.input.clone(),
                meta: json!({"decision": "accept", "source": "config", "reason_type": reason}),
            },
            Verdict::AllowForGood => Decision::Allow {
                input: call.input.clone(),
                meta: json!({"decision": "accept", "source": "user_permanent", "reason_type": "rule"}),
            },
            Verdict::Deny { message, reason } => {
                self.send_denied(call, &message, Some(reason)).await;
                Decision::Refuse {
                    message,
                    meta: refused(json!({"decision": "reject", "source": "config", "reason_type": reason})),
                }
            }
            Verdict::Ask(why) if self.ctx.config.permission_prompts => self.ask(call, why).await?,
            Verdict::Ask(_) => {
                let message = format!("{} needs approval, and there is nobody to ask.", call.name);
                self.send_denied(call, &message, None).await;
                let decision = json!({"decision": "reject", "source": "config"});
                Decision::Refuse {
                    message,
                    meta: json!({"non_execution_kind": "user-rejected", "permission_decision": decision}),
                }
            }
        })
    }

    /// Calls the hooks for permission requests; returns only with a decision.
    async fn ask_hooks(&self, call: &Call, suggestions: Value) -> Result<Answer, Abort> {
        let mut fields = json!({"tool_name": call.name, "tool_input": call.input});
        if !suggestions.is_null() {
            fields["permission_suggestions"] = suggestions;
        }
        for fired in self
            .fire("PermissionRequest", Some(&call.name), Some(&call.id), fields)
            .await?
        {
            if let Fired::Answer(answer) = fired {
                let mut decision = answer["hookSpecificOutput"]["decision"].clone();
                if decision["behavior"].is_string() {
                    // Denials of hooks need no message.
                    if decision["message"].is_null() {
                        decision["message"] = json!("Permission denied by hook");
                    }
                    decision["from_hook"] = json!(true);
                    return Ok(Answer::Success(decision));
                }
            }
        }
        std::future::pending().await
    }

    /// Sends a permission request to the client.
    async fn ask(&mut self, call: &Call, why: Why) -> Result<Decision, Abort> {
        let found = mcp::find(&self.ctx, &call.name);
        let mut request = question(&self.ctx, &self.ctx.state(), call, why, found.as_ref());
        if let Some(agent) = &self.agent {
            request["agent_id"] = json!(agent.id);
        }
        let suggestions = request["permission_suggestions"].clone();
        self.ctx.set_session_state("requires_action").await;
        let (id, answer) = self.ctx.request(request, self.cancel()).await;
        self.send_stop().await;
        let race = async {
            tokio::select! {
                biased;
                answer = self.or_abort(answer) => answer,
                decision = self.ask_hooks(call, suggestions) => decision.map(Ok),
            }
        };
        let answer = match race.await {
            Ok(answer) => answer,
            Err(why) => {
                self.ctx.set_session_state("running").await;
                // A question that was withdrawn counts as a denial.
                self.deny(call);
                self.send_rejected(&call.id, "").await;
                return Err(why);
            }
        };
        // The request is still open if a hook was faster.
        self.ctx.withdraw(&id).await;
        self.ctx.set_session_state("running").await;
        let failed = |message: String| Decision::Refuse {
            message,
            meta: refused(json!({"decision": "reject", "source": "config", "reason_type": "other"})),
        };
        let payload = match answer {
            Ok(Answer::Success(payload)) => payload,
            Ok(Answer::Error(error)) => {
                return Ok(failed(format!("Tool permission request failed: Error: {error}")));
            }
            // The channel is only dropped by an abort, which has been handled.
            Ok(Answer::Closed) | Err(_) => {
                let error = "Tool permission stream closed before response received";
                return Ok(failed(format!("Tool permission request failed: Error: {error}")));
            }
        };
        let input = match payload.get("updatedInput") {
            None => Some(&call.input),
            Some(Value::Object(input)) if input.is_empty() => Some(&call.input),
            Some(input @ Value::Object(_)) => Some(input),
            Some(_) => None,
        };
        Ok(
            match (payload["behavior"].as_str(), input, payload["message"].as_str()) {
                (Some("allow"), Some(input), _) => {
                    let mode = settings::apply_permissions(&self.ctx, &payload["updatedPermissions"]).await;
                    if let Some(mode) = mode {
                        let fields = json!({"status": null, "permissionMode": mode});
                        self.ctx.send_system("status", fields).await;
                    }
                    Decision::Allow {
                        input: input.clone(),
                        meta: json!({"decision": "accept", "source": "user_temporary"}),
                    }
                }
                (Some("deny"), _, Some(_)) if payload["interrupt"] == true => Decision::Interrupt,
                (Some("deny"), _, Some(message)) => Decision::Refuse {
                    message: message.to_owned(),
                    meta: refused(json!({"decision": "reject", "source": "user_reject"})),
                },
                _ => failed(INVALID.to_owned()),
            },
        )
    }

    fn deny(&mut self, call: &Call) {
        let denial = json!({"tool_name": call.name, "tool_use_id": call.id, "tool_input": call.input});
        self.denials.push(denial);
    }

    async fn send_denied(&self, call: &Call, message: &str, reason: Option<&str>) {
        let mut fields = json!({"tool_name": call.name, "tool_use_id": call.id, "message": message});
        if let Some(reason) = reason {
            fields["decision_reason_type"] = json!(reason);
        }
        self.ctx.send_system("permission_denied", fields).await;
    }

    /// The result of a call that the user stopped.
    pub(super) async fn send_rejected(&mut self, id: &str, more: &str) {
        if self.stops_silently() {
            return;
        }
        let content = format!("{REJECTED}{more}");
        let block = json!({"type": "tool_result", "content": content, "is_error": true, "tool_use_id": id});
        let extra = json!({
            "tool_use_result": "User rejected tool use",
            "tool_result_meta": [{"id": id, "non_execution_kind": "user-rejected"}],
        });
        self.send_user(json!([block]), extra).await;
    }

    /// The result of a call that did not run.
    async fn send_error(
        &mut self,
        call: &Call,
        content: &str,
        details: &str,
        meta: Option<Value>,
    ) -> ToolResult {
        let block =
            json!({"type": "tool_result", "content": content, "is_error": true, "tool_use_id": call.id});
        let mut extra = json!({"tool_use_result": details});
        if let Some(mut meta) = meta {
            meta["id"] = json!(call.id);
            extra["tool_result_meta"] = json!([meta]);
        }
        self.send_user(json!([block]), extra).await;
        ToolResult {
            name: call.name.clone(),
            content: json!(content),
            is_error: true,
        }
    }
}

fn refused(decision: Value) -> Value {
    json!({"non_execution_kind": "permission-rule", "permission_decision": decision})
}
