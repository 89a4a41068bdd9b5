//! How a turn ended.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use outrigger_protocol::inbound::DeferredToolUse;
use outrigger_protocol::{Frame, Message, Misfit, RawJson};
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::transport::Exit;
use crate::usage::TurnUsage;

/// The verdict on a turn: one of these, computed from all that the CLI says about it.
///
/// `subtype` alone does not tell: a failed API call is a `success` with `is_error`, and a turn that another prompt
/// displaced is a `success` without.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The model finished its answer.
    Completed,
    /// A local command (`/context`, `/compact`, …) ran; no model was called. Its name, if the CLI said it.
    LocalCommand(Option<String>),
    /// The prompt was taken into the conversation without asking the model for an answer (`shouldQuery: false`).
    Appended,
    /// A hook refused the prompt, or the CLI answered it by itself; the model was not called. The text is the CLI's.
    NotRun,
    /// A hook ended the turn early.
    StoppedByHook,
    /// A hook deferred a tool call; the turn goes on when the session is resumed.
    Deferred,
    /// The turn was moved to the background.
    Backgrounded,
    /// The turn finished, but the structured output that was asked for is missing.
    NoStructuredOutput,
    /// An interrupt, or a prompt of priority `now`, ended the turn.
    Interrupted,
    /// The limit of turns was reached.
    MaxTurns,
    /// The budget is spent.
    BudgetExhausted,
    /// The model could not produce output of the required shape within the CLI's retries.
    StructuredOutputFailed,
    /// The API refused or failed, after whatever retries the CLI makes.
    ApiError {
        /// The HTTP status, if there was an answer.
        status: Option<u16>,
    },
    /// The conversation does not fit the model's window, or the CLI refused to send it for its size.
    TooLong,
    /// The CLI could not start the session (unknown session id, refused settings, …); its reason code, if it gave one.
    StartupFailed(Option<String>),
    /// The CLI failed in another way; its `terminal_reason` or `subtype`. `unreadable_result` if its result could not be read,
    /// such as one that is longer than `max_line_bytes`.
    Failed(String),
    /// The prompt was taken back before its turn began.
    Cancelled,
    /// The CLI dropped the prompt without running it: `discarded`, `refused`, or a state that this build does not know.
    Dropped(String),
    /// The CLI says that it is done with the prompt, but gave no result for it.
    NoResult,
    /// The process ended before the turn did. There is no outcome then but an error, whose
    /// [`verdict`](crate::Error::verdict) this is.
    ProcessEnded(Exit),
}

impl Verdict {
    /// Whether the turn did what was asked for.
    pub fn is_success(&self) -> bool {
        matches!(
            self,
            Self::Completed | Self::LocalCommand(_) | Self::Appended | Self::Backgrounded | Self::Deferred
        )
    }

    /// The truth table. `wanted_output`: a JSON schema was asked for.
    fn of(facts: &Facts, wanted_output: bool) -> Self {
        let reason = facts.terminal_reason.as_deref();
        let subtype = facts.subtype.as_deref().unwrap_or_default();
        // What the CLI says most precisely goes first.
        match reason {
            Some("aborted_streaming" | "aborted_tools") => return Self::Interrupted,
            Some("max_turns") => return Self::MaxTurns,
            Some("budget_exhausted") => return Self::BudgetExhausted,
            Some("structured_output_retry_exhausted") => return Self::StructuredOutputFailed,
            Some("prompt_too_long" | "blocking_limit") => return Self::TooLong,
            Some("hook_stopped" | "stop_hook_prevented") => return Self::StoppedByHook,
            Some("tool_deferred") => return Self::Deferred,
            Some("background_requested") => return Self::Backgrounded,
            _ => {}
        }
        match subtype {
            "error_max_turns" => return Self::MaxTurns,
            "error_max_budget_usd" => return Self::BudgetExhausted,
            "error_max_structured_output_retries" => return Self::StructuredOutputFailed,
            _ => {}
        }
        if facts.startup_failure_reason.is_some() {
            return Self::StartupFailed(facts.startup_failure_reason.clone());
        }
        if facts.is_error || subtype != "success" {
            if reason == Some("api_error") || facts.api_error_status.is_some() {
                return Self::ApiError {
                    status: facts.api_error_status,
                };
            }
            // A result before any turn could begin is what a failed `--resume` leaves.
            if reason.is_none() && subtype == "error_during_execution" && facts.num_turns == Some(0) {
                return Self::StartupFailed(None);
            }
            return Self::Failed(reason.unwrap_or(subtype).to_owned());
        }
        if let Some(reason) = reason.filter(|reason| *reason != "completed") {
            return Self::Failed(reason.to_owned());
        }
        if facts.local_command.is_some() {
            return Self::LocalCommand(facts.local_command.clone());
        }
        if reason.is_none() && facts.num_turns == Some(0) {
            return if facts.result.as_deref().unwrap_or_default().is_empty() {
                Self::Appended
            } else {
                Self::NotRun
            };
        }
        if wanted_output && facts.structured_output.is_none() {
            return Self::NoStructuredOutput;
        }
        Self::Completed
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::LocalCommand(Some(name)) => write!(f, "local command {name}"),
            Self::LocalCommand(None) => f.write_str("local command"),
            Self::Appended => f.write_str("appended without a turn"),
            Self::NotRun => f.write_str("not run"),
            Self::StoppedByHook => f.write_str("stopped by a hook"),
            Self::Deferred => f.write_str("deferred"),
            Self::Backgrounded => f.write_str("moved to the background"),
            Self::NoStructuredOutput => f.write_str("no structured output"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::MaxTurns => f.write_str("limit of turns reached"),
            Self::BudgetExhausted => f.write_str("budget spent"),
            Self::StructuredOutputFailed => f.write_str("structured output failed"),
            Self::ApiError { status: Some(status) } => write!(f, "API error {status}"),
            Self::ApiError { status: None } => f.write_str("API error"),
            Self::TooLong => f.write_str("conversation too long"),
            Self::StartupFailed(Some(reason)) => write!(f, "could not start: {reason}"),
            Self::StartupFailed(None) => f.write_str("could not start"),
            Self::Failed(reason) => write!(f, "failed: {reason}"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Dropped(state) => write!(f, "dropped by the CLI: {state}"),
            Self::NoResult => f.write_str("ended without a result"),
            Self::ProcessEnded(exit) => write!(f, "the process ended: {exit}"),
        }
    }
}

/// How a turn ended: the [`Verdict`], the answer, the usage, and the `result` frame with everything else.
///
/// Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Outcome(Arc<Body>);

#[derive(Debug)]
struct Body {
    verdict: Verdict,
    facts: Facts,
    usage: TurnUsage,
    frame: Option<Frame>,
    prompts: Vec<String>,
}

impl Outcome {
    pub(crate) fn of_result(
        frame: &Frame,
        usage: TurnUsage,
        prompts: Vec<String>,
        wanted_output: bool,
    ) -> Self {
        let facts = Facts::read(frame);
        let verdict = Verdict::of(&facts, wanted_output);
        Self(Arc::new(Body {
            verdict,
            facts,
            usage,
            frame: Some(frame.clone()),
            prompts,
        }))
    }

    /// The end of a prompt that never got a result.
    pub(crate) fn without_result(verdict: Verdict, prompt: &str) -> Self {
        let body = Body {
            verdict,
            facts: Facts::default(),
            usage: TurnUsage::default(),
            frame: None,
            prompts: vec![prompt.into()],
        };
        Self(Arc::new(body))
    }

    /// The verdict.
    pub fn verdict(&self) -> &Verdict {
        &self.0.verdict
    }

    /// Whether the turn did what was asked for.
    pub fn is_success(&self) -> bool {
        self.0.verdict.is_success()
    }

    /// The outcome again if it is a success, else an error that carries it.
    ///
    /// # Errors
    /// When [`is_success`](Self::is_success) is false; [`Error::outcome`] gives it back.
    pub fn into_success(self) -> Result<Self, Error> {
        if self.is_success() {
            Ok(self)
        } else {
            Err(Error::turn_failed(self))
        }
    }

    /// The final text: the model's last answer, the local command's output, or the CLI's error text.
    pub fn text(&self) -> &str {
        self.0.facts.result.as_deref().unwrap_or_default()
    }

    /// What the CLI says went wrong.
    pub fn errors(&self) -> &[String] {
        &self.0.facts.errors
    }

    /// The structured output, if the options asked for one and the model gave it.
    pub fn structured_output(&self) -> Option<&RawJson> {
        self.0.facts.structured_output.as_ref()
    }

    /// The tool call that a hook deferred ([`PreToolUseOutput::defer`](crate::hooks::PreToolUseOutput::defer)), for a turn that ended as
    /// [`Deferred`](Verdict::Deferred). When the session is resumed, the CLI asks the hook about it again.
    pub fn deferred(&self) -> Option<&DeferredToolUse> {
        self.0.facts.deferred.as_ref()
    }

    /// Usage and cost of this turn alone (the CLI's own numbers are sums over the session).
    pub fn usage(&self) -> &TurnUsage {
        &self.0.usage
    }

    /// What this turn cost in US dollars, by the CLI's price table.
    ///
    /// Zero for a turn that called no model. Not exact for the first turn of a resumed session on CLIs that do not
    /// report deltas; see [`TurnUsage::cost_usd`].
    pub fn cost(&self) -> f64 {
        self.0.usage.cost_usd
    }

    /// How long the turn took by the CLI's clock, in milliseconds.
    pub fn duration_ms(&self) -> Option<u64> {
        self.0.facts.duration_ms
    }

    /// How many agentic turns it took, as the CLI counts them.
    pub fn num_turns(&self) -> Option<u64> {
        self.0.facts.num_turns
    }

    /// The HTTP status of a failed API call.
    pub fn api_error_status(&self) -> Option<u16> {
        self.0.facts.api_error_status
    }

    /// The CLI's `terminal_reason`.
    pub fn terminal_reason(&self) -> Option<&str> {
        self.0.facts.terminal_reason.as_deref()
    }

    /// The ids of all prompts that this result answers. More than one when the CLI merged prompts that waited together, or
    /// folded one into the running turn.
    pub fn prompts(&self) -> &[String] {
        &self.0.prompts
    }

    /// The `kind` of the `origin`, for a turn that no prompt of ours began.
    pub fn origin(&self) -> Option<&str> {
        self.0.frame.as_ref().and_then(Frame::origin_kind)
    }

    /// The `result` frame; `None` for a prompt that ended without one.
    pub fn frame(&self) -> Option<&Frame> {
        self.0.frame.as_ref()
    }

    /// The whole `result`, typed; `None` for a prompt that ended without one.
    ///
    /// # Errors
    /// When the frame does not have the shape that this build expects.
    pub fn result(&self) -> Option<Result<outrigger_protocol::inbound::ResultMessage, Misfit>> {
        match self.0.frame.as_ref()?.decode() {
            Ok(Message::Result(result)) => Some(Ok(*result)),
            Ok(_) => None,
            Err(misfit) => Some(Err(misfit)),
        }
    }
}

/// The few fields that the verdict needs, each read on its own so that one odd field cannot hide the end of a turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) subtype: Option<String>,
    pub(crate) is_error: bool,
    pub(crate) terminal_reason: Option<String>,
    pub(crate) startup_failure_reason: Option<String>,
    pub(crate) api_error_status: Option<u16>,
    pub(crate) local_command: Option<String>,
    pub(crate) result: Option<String>,
    pub(crate) errors: Vec<String>,
    pub(crate) structured_output: Option<RawJson>,
    pub(crate) deferred: Option<DeferredToolUse>,
    pub(crate) num_turns: Option<u64>,
    pub(crate) duration_ms: Option<u64>,
}

/// Whether a frame is the result of a turn.
///
/// The CLI writes a result's `type` last. Of one that is too long to be kept only the beginning is there, which is then told by
/// its `subtype`: a turn must not go on for ever because its answer was long.
pub(crate) fn is_result(frame: &Frame) -> bool {
    let told_by_subtype = || {
        let subtype = frame.subtype().unwrap_or_default();
        frame.flaw().is_some() && (subtype == "success" || subtype.starts_with("error_"))
    };
    frame.kind() == "result" || (frame.kind().is_empty() && told_by_subtype())
}

impl Facts {
    pub(crate) fn read(frame: &Frame) -> Self {
        let fields = Fields::of(frame);
        if let (true, Some(flaw)) = (fields.0.is_empty(), frame.flaw()) {
            return Self {
                is_error: true,
                terminal_reason: Some("unreadable_result".to_owned()),
                errors: vec![flaw.to_string()],
                ..Self::default()
            };
        }
        let is_error = fields.get("is_error");
        Self {
            subtype: fields.get("subtype"),
            // A result that does not say whether it is an error is no success.
            is_error: is_error.unwrap_or(true),
            terminal_reason: fields.get("terminal_reason"),
            startup_failure_reason: fields.get("startup_failure_reason"),
            api_error_status: fields.get("api_error_status"),
            local_command: fields.get("local_command"),
            result: fields.get("result"),
            errors: fields.get("errors").unwrap_or_default(),
            structured_output: fields
                .get::<RawJson>("structured_output")
                .filter(|output| !output.is_null()),
            deferred: fields.get("deferred_tool_use"),
            num_turns: fields.get("num_turns"),
            duration_ms: fields.get::<f64>("duration_ms").map(|ms| ms as u64),
        }
    }
}

/// The top-level fields of a frame, each still undecoded.
pub(crate) struct Fields(HashMap<String, RawJson>);

impl Fields {
    pub(crate) fn of(frame: &Frame) -> Self {
        Self(serde_json::from_str(&frame.text()).unwrap_or_default())
    }

    /// Those of a value inside of one.
    pub(crate) fn of_object(value: &RawJson) -> Self {
        Self(value.decode().unwrap_or_default())
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.0.get(key)?.decode().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(fields: &str) -> Verdict {
        verdict_with(fields, false)
    }

    fn verdict_with(fields: &str, wanted_output: bool) -> Verdict {
        let frame = Frame::from_line(format!(r#"{{"type":"result",{fields}}}"#).into_bytes()).remove(0);
        Verdict::of(&Facts::read(&frame), wanted_output)
    }

    #[test]
    fn a_result_that_was_cut_off_is_one() {
        let frame = |head: &str| {
            let framed = outrigger_protocol::framer::Framed::Oversized {
                head: head.as_bytes().to_vec(),
                length: 1_000_000,
            };
            Frame::read(framed).remove(0)
        };
        let cut = frame(r#"{"subtype":"success","is_error":false,"result":"so lo"#);
        assert!(is_result(&cut));
        let facts = Facts::read(&cut);
        assert_eq!(
            Verdict::of(&facts, false),
            Verdict::Failed("unreadable_result".into())
        );
        assert!(facts.errors[0].contains("1000000 bytes"), "{:?}", facts.errors);
        assert!(!is_result(&frame(r#"{"message":{"content":[{"text":"so lo"#)));
    }

    #[test]
    fn the_truth_table() {
        use Verdict::*;
        let table = [
            (
                r#""subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":1,"result":"hi""#,
                Completed,
            ),
            (
                r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":529,"num_turns":1"#,
                ApiError { status: Some(529) },
            ),
            (
                r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":null,"num_turns":1"#,
                ApiError { status: None },
            ),
            (
                r#""subtype":"success","is_error":true,"terminal_reason":"image_error","num_turns":1"#,
                Failed("image_error".into()),
            ),
            (
                r#""subtype":"success","is_error":true,"terminal_reason":"prompt_too_long","num_turns":1"#,
                TooLong,
            ),
            (
                r#""subtype":"success","is_error":true,"terminal_reason":"blocking_limit","num_turns":1"#,
                TooLong,
            ),
            (
                r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","num_turns":2"#,
                Interrupted,
            ),
            (
                r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","num_turns":3"#,
                Interrupted,
            ),
            (
                r#""subtype":"success","is_error":false,"terminal_reason":"aborted_streaming","num_turns":1"#,
                Interrupted,
            ),
            (
                r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["No conversation found"]"#,
                StartupFailed(None),
            ),
            (
                r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"startup_failure_reason":"bypass_root""#,
                StartupFailed(Some("bypass_root".into())),
            ),
            (
                r#""subtype":"error_during_execution","is_error":true,"num_turns":2"#,
                Failed("error_during_execution".into()),
            ),
            (
                r#""subtype":"error_max_turns","is_error":true,"terminal_reason":"max_turns","num_turns":2"#,
                MaxTurns,
            ),
            (
                r#""subtype":"error_max_turns","is_error":true,"num_turns":2"#,
                MaxTurns,
            ),
            (
                r#""subtype":"error_max_budget_usd","is_error":true,"terminal_reason":"budget_exhausted","num_turns":1"#,
                BudgetExhausted,
            ),
            (
                r#""subtype":"error_max_structured_output_retries","is_error":true,"num_turns":5"#,
                StructuredOutputFailed,
            ),
            (
                r#""subtype":"success","is_error":false,"num_turns":0,"result":"""#,
                Appended,
            ),
            (
                r#""subtype":"success","is_error":false,"num_turns":0,"result":"Operation stopped by hook""#,
                NotRun,
            ),
            (
                r#""subtype":"success","is_error":false,"num_turns":0,"local_command":"context","result":"x""#,
                LocalCommand(Some("context".into())),
            ),
            (
                r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"hook_stopped","result":"""#,
                StoppedByHook,
            ),
            (
                r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"tool_deferred","result":"""#,
                Deferred,
            ),
            (
                r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"something_new","result":"""#,
                Failed("something_new".into()),
            ),
            (
                r#""subtype":"error_something_new","is_error":false,"num_turns":1"#,
                Failed("error_something_new".into()),
            ),
            (
                r#""subtype":"success","num_turns":1,"result":"no is_error""#,
                Failed("success".into()),
            ),
            (r#""is_error":{"mistyped":1},"subtype":7"#, Failed(String::new())),
        ];
        for (fields, expected) in table {
            assert_eq!(verdict(fields), expected, "{fields}");
        }
    }

    /// One recorded result of the real CLI for each way in which it ended turns.
    #[test]
    fn the_truth_table_holds_for_recorded_results() {
        let mut seen = Vec::new();
        for line in include_str!("../tests/fixtures/results.jsonl").lines() {
            let recorded: std::collections::BTreeMap<String, RawJson> = serde_json::from_str(line).unwrap();
            let frame = Frame::from_line(recorded["msg"].get().as_bytes()).remove(0);
            let scenario: String = recorded["scenario"].decode().unwrap();
            let outcome = Outcome::of_result(&frame, TurnUsage::default(), Vec::new(), false);
            let success = if outcome.is_success() { "+" } else { "-" };
            seen.push(format!("{success} {scenario}: {}", outcome.verdict()));
        }
        assert_eq!(
            seen,
            [
                "- api_idle_stream: interrupted",
                "- hook_pending_interrupt: interrupted",
                "- mcp_await_initialize.not_first: could not start: initialize_not_first",
                "- resume.5_unknown_uuid: could not start",
                "- max_budget: budget spent",
                "- structured_output_invalid.bad_input: structured output failed",
                "- max_turns.1: limit of turns reached",
                "- queue_priorities.now: interrupted",
                "+ api_stop_reasons.empty: completed",
                "+ background_bash: completed",
                "+ all_controls: completed",
                "+ structured_output_flag: completed",
                "- hook_pretooluse.continue_false: stopped by a hook",
                "+ hooks_all_events: local command clear",
                "+ hooks_all_events: local command compact",
                "+ slash_commands: local command context",
                "+ slash_commands: local command cost",
                "- hook_userpromptsubmit.block: not run",
                "- api_error_mid_tool_loop: API error 400",
                "- api_errors_fatal.403: API error 403",
                "- api_errors_fatal.404: API error 404",
                "- api_errors_exhausted.429: API error 429",
                "- api_errors_exhausted.500: API error 500",
                "- api_529_default_retries: API error 529",
                "- api_connection_refused: API error",
                "- big_prompt.3mb_text: conversation too long",
                "- api_errors_fatal.413: API error 413",
                "- api_errors_fatal.prompt_too_long: conversation too long",
            ]
        );
    }

    #[test]
    fn a_success_without_the_output_that_was_asked_for_is_none() {
        let done =
            r#""subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":1,"result":"""#;
        assert_eq!(verdict_with(done, true), Verdict::NoStructuredOutput);
        assert_eq!(
            verdict_with(&format!(r#"{done},"structured_output":null"#), true),
            Verdict::NoStructuredOutput
        );
        assert_eq!(
            verdict_with(&format!(r#"{done},"structured_output":{{"a":1}}"#), true),
            Verdict::Completed
        );
    }

    #[test]
    fn an_odd_field_cannot_hide_the_end() {
        let frame = Frame::from_line(
            br#"{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":"many","ttft_ms":[],"result":"cut \ud83d"}"#
                .as_slice(),
        )
        .remove(0);
        let outcome = Outcome::of_result(&frame, TurnUsage::default(), Vec::new(), false);
        assert_eq!(
            (outcome.verdict(), outcome.text()),
            (&Verdict::Completed, "cut \u{fffd}")
        );
    }
}
