//! The end of a turn: its `result`.

use serde_json::{Map, Value, json};

use super::api_failure::ApiFailure;
use super::context::{Abort, Context};
use super::ids::wall_ms;
use super::turn::Turn;
use super::{cost, payload};
use crate::running::Exit;

/// How a turn ends other than by the model's last word.
pub(super) enum End {
    /// The turn was stopped, while the model wrote or (`tools`) while tools ran.
    Aborted { why: Abort, tools: bool },
    /// The API failed for good.
    Api(Box<ApiFailure>),
    /// The turn took more rounds than allowed.
    MaxTurns(u64),
    /// The session cost more than allowed.
    Budget(f64),
    /// The model gave structured output.
    Structured(Value),
    /// The model gave structured output of a wrong shape too often; the last time this was wrong with it.
    Unstructured { attempts: u64, error: String },
    /// The model was not called; the text is that of the result.
    NoQuery(String),
    /// The CLI answered itself, with a command of this name.
    Local { command: Option<String>, text: String },
    /// A hook was against a command of a file; the text is that of the result.
    Unexpanded(String),
    /// The prompt wants what is not simulated.
    NotSimulated(String),
    /// A hook answered for another event; the text says so.
    Misnamed(String),
    /// A hook ended it behind a tool.
    HookStopped,
    /// A hook ended it where it would have ended.
    StopHookPrevented,
    /// A hook put a tool call off.
    Deferred(Value),
    /// A call was to be taken up of a tool that there is not any more.
    Unavailable(Value),
}

/// The parts of a result: the subtype, the text or the errors, and whether it is an error.
struct ResultParts {
    subtype: &'static str,
    text: String,
    failed: bool,
}

impl ResultParts {
    fn success(text: impl Into<String>) -> Self {
        Self {
            subtype: "success",
            text: text.into(),
            failed: false,
        }
    }

    fn error(subtype: &'static str, text: String) -> Self {
        Self {
            subtype,
            text,
            failed: true,
        }
    }
}

impl Turn {
    /// The parts of the result for this end. Adds the fields that are particular to it.
    fn judge_end(&mut self, end: Option<&End>, fields: &mut Map<String, Value>) -> ResultParts {
        let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
        let reason = |name: &str| json!(name);
        match end {
            None => {
                set("terminal_reason", reason("completed"));
                set("api_error_status", Value::Null);
                ResultParts::success(&self.text)
            }
            Some(End::Structured(output)) => {
                set("terminal_reason", reason("completed"));
                set("api_error_status", Value::Null);
                set("structured_output", output.clone());
                ResultParts::success(output.to_string())
            }
            Some(End::StopHookPrevented) => {
                set("terminal_reason", reason("stop_hook_prevented"));
                set("api_error_status", Value::Null);
                ResultParts::success(&self.text)
            }
            Some(End::NoQuery(text)) => {
                self.stop_reason = None;
                ResultParts::success(text)
            }
            Some(End::Local { command, text }) => {
                self.stop_reason = None;
                if let Some(command) = command {
                    set("local_command", json!(command));
                }
                ResultParts::success(text)
            }
            Some(End::NotSimulated(text) | End::Misnamed(text)) => {
                ResultParts::error("error_during_execution", text.clone())
            }
            Some(End::Unexpanded(text)) => {
                self.stop_reason = None;
                set("local_command", json!("custom"));
                ResultParts::success(text)
            }
            Some(End::HookStopped) => {
                set("terminal_reason", reason("hook_stopped"));
                set("api_error_status", Value::Null);
                ResultParts::success("")
            }
            Some(End::Deferred(call)) => {
                self.stop_reason = Some("tool_deferred".to_owned());
                // A call that is deferred once more leaves no reason.
                if self.tally().prompt_id.is_some() {
                    set("terminal_reason", reason("tool_deferred"));
                }
                set("deferred_tool_use", call.clone());
                ResultParts::success("")
            }
            Some(End::Unavailable(call)) => {
                self.stop_reason = Some("tool_deferred_unavailable".to_owned());
                set("terminal_reason", reason("tool_deferred_unavailable"));
                set("deferred_tool_use", call.clone());
                let tool = call["name"].as_str().unwrap_or_default();
                ResultParts {
                    failed: true,
                    ..ResultParts::success(format!(
                        "{tool} isn't available, so its deferred call didn't run. Reconnect the tool and resume."
                    ))
                }
            }
            Some(End::Aborted { why, tools }) => {
                let aborted = if *tools {
                    "aborted_tools"
                } else {
                    "aborted_streaming"
                };
                set("terminal_reason", reason(aborted));
                if *why == Abort::Displaced {
                    set("api_error_status", Value::Null);
                    return ResultParts::success(&self.text);
                }
                let stop = self.stop_reason.as_deref().unwrap_or("null");
                let text =
                    format!("[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={stop}");
                ResultParts::error("error_during_execution", text)
            }
            Some(End::Api(failure)) => {
                self.stop_reason = Some(failure.stop_reason.to_owned());
                set("terminal_reason", reason(failure.terminal_reason));
                set("api_error_status", json!(failure.status));
                for (key, value) in failure.ended.as_object().into_iter().flatten() {
                    set(key, value.clone());
                }
                ResultParts {
                    failed: true,
                    ..ResultParts::success(&failure.text)
                }
            }
            Some(End::MaxTurns(limit)) => {
                set("terminal_reason", reason("max_turns"));
                let text = format!("Reached maximum number of turns ({limit})");
                ResultParts::error("error_max_turns", text)
            }
            Some(End::Budget(limit)) => {
                set("terminal_reason", reason("budget_exhausted"));
                ResultParts::error(
                    "error_max_budget_usd",
                    format!("Reached maximum budget (${limit})"),
                )
            }
            Some(End::Unstructured { attempts, error }) => {
                set("terminal_reason", reason("structured_output_retry_exhausted"));
                let text = format!(
                    "Failed to provide valid structured output after {attempts} attempts — last StructuredOutput error: \
                     {error}"
                );
                ResultParts::error("error_max_structured_output_retries", text)
            }
        }
    }

    /// Writes the result.
    pub(super) async fn finish(mut self, end: Option<End>) {
        if let Some(End::Misnamed(text)) = &end {
            return self.ctx.crash(text).await;
        }
        let mut fields = Map::new();
        if matches!(end, Some(End::Budget(_))) {
            // Of such a turn the CLI tells no usage.
            self.tokens = (0, 0);
        }
        let verdict = self.judge_end(end.as_ref(), &mut fields);
        let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
        let asked = !matches!(
            end,
            Some(End::NoQuery(_) | End::Local { .. } | End::Unexpanded(_) | End::NotSimulated(_))
        );
        let is_success = verdict.subtype == "success";
        if is_success {
            set("result", json!(verdict.text));
        } else {
            set("errors", json!([verdict.text]));
        }
        set("subtype", json!(verdict.subtype));
        set("is_error", json!(verdict.failed));
        set(
            "num_turns",
            json!(if asked { 1 + self.tally().user_lines } else { 0 }),
        );
        if let Some((last, all)) = self.uuids() {
            set("user_message_uuid", json!(last));
            set("user_message_uuids", json!(all));
        }
        let is_deferred = matches!(end, Some(End::Deferred(_)));
        let api_failed = matches!(end, Some(End::Api(_)));
        let aborted = matches!(end, Some(End::Aborted { .. }));
        if let (Some(first), true) = (self.first_frame, is_success && !is_deferred && !api_failed) {
            let ms = first.as_millis() as u64;
            let answered = !self.tally().last_assistant.is_empty();
            if answered {
                set("ttft_ms", json!(ms + 1));
            }
            if !self.begins_whole {
                set("ttft_stream_ms", json!(ms));
                let latency = self.ctx.config.latency.as_millis() as u64;
                set("time_to_request_ms", json!(latency));
            }
            if answered && !self.begins_whole {
                set("first_content_frame_ms", json!(ms));
            }
            if self.prompts.iter().any(|prompt| prompt.uuid.is_some()) {
                let sent = wall_ms(self.began);
                set("request_sent_wall_ms", json!(sent));
                set("first_request_input_tokens", json!(10));
                set("first_request_cache_read_input_tokens", json!(0));
            }
        }
        if !self.begun.is_empty() || (asked && self.ctx.config.partial) {
            set("begun_message_ids", json!(self.begun));
        }
        let of_prompt = self.prompts.last().and_then(|prompt| prompt.origin);
        let origin = self.origin.clone();
        if let Some(origin) = origin.or_else(|| of_prompt.map(|kind| json!({"kind": kind}))) {
            set("origin", origin);
        }
        {
            let mut state = self.ctx.state();
            state.last_is_error = verdict.failed;
            state.last_failed_at_api = api_failed;
            state.last_aborted = aborted;
            state.api_time += self.api_time;
        }
        set("type", json!("result"));
        set("duration_ms", json!(self.took().as_millis() as u64));
        set("duration_api_ms", json!(self.api_time.as_millis() as u64));
        set("stop_reason", json!(self.stop_reason));
        set("usage", payload::usage(self.tokens.0, self.tokens.1));
        set(
            "permission_denials",
            Value::Array(std::mem::take(&mut self.tally().denials)),
        );
        set("fast_mode_state", json!("off"));
        set("fast_mode_disabled_reason", json!("sdk_opt_in_required"));
        set("queued_turn_count", json!(0));
        // Folded prompts are through before the result, the turn's own behind it.
        for prompt in &self.folded {
            self.ctx
                .send_lifecycle(prompt, if aborted { "cancelled" } else { "completed" })
                .await;
        }
        self.ctx.keep(super::transcript::SessionTranscript::mark_tip);
        self.ctx.send_mirror().await;
        self.ctx.state().results_due.push(fields);
        self.ctx.send_results(false).await;
    }
}

impl Context {
    /// Ends the process with a result, for something that the CLI does not survive.
    async fn crash(&self, text: &str) {
        let more = "[session_crash] error_name=Error api_error_status=none cause_name=none";
        let mut line = payload::crashed(json!([text, more]));
        {
            let mut state = self.state();
            line["result_index"] = json!(state.results);
            state.results += 1;
            let since = std::mem::take(&mut state.used_since);
            line["model_usage_since_last_result"] = cost::by_model(&since);
            state.exit_after_turn = Some(Exit::Code(1));
        }
        self.send_stamped(line).await;
    }

    /// Sends what turns have ended with. Behind the end of the input results wait for agents in the background, unless the
    /// process ends.
    pub(super) async fn send_results(&self, ends: bool) {
        loop {
            let fields = {
                let mut state = self.state();
                let mut tasks = state.tasks.iter();
                let waits = state.closed && !ends && tasks.any(|task| task.runs() && task.is_agent());
                if waits || state.results_due.is_empty() {
                    return;
                }
                let mut fields = state.results_due.remove(0);
                let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
                set("result_index", json!(state.results));
                state.results += 1;
                set("modelUsage", cost::by_model(&state.used));
                let since = std::mem::take(&mut state.used_since);
                set("model_usage_since_last_result", cost::by_model(&since));
                set("total_cost_usd", json!(cost::total(&state.used)));
                set("subagent_stats", state.subagents.to_json());
                set("safety_stops", json!(state.refusals));
                fields
            };
            self.send_stamped(Value::Object(fields)).await;
        }
    }
}
