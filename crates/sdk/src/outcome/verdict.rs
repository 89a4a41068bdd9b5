//! The verdict on a turn.

use std::fmt;

use super::facts::Facts;
use crate::cause::Cause;

/// How a turn ended, computed from all that the CLI reports about it.
///
/// `subtype` alone does not suffice: a failed API call is a `success` with `is_error`, and a turn that another prompt
/// displaced is a `success` without.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The model finished its answer.
    Completed,
    /// A local command (`/context`, `/compact`, …) ran; no model was called. The name of the command, if the CLI reported it.
    LocalCommand(Option<String>),
    /// The prompt was added to the conversation without calling the model (`shouldQuery: false`).
    Appended,
    /// The turn was moved to the background; an ambient turn reports its result.
    Backgrounded,
    /// A hook deferred a tool call; the turn goes on when the session is resumed.
    Deferred,
    /// A hook blocked the prompt, or the CLI answered it by itself; the model was not called.
    /// [`Outcome::error_text`](crate::Outcome::error_text) is the CLI's text.
    NotRun,
    /// A hook ended the turn early.
    StoppedByHook,
    /// An interrupt, or a prompt of priority `now`, ended the turn.
    Interrupted,
    /// The prompt was taken back before its turn began.
    Cancelled,
    /// The CLI dropped the prompt without running it: `discarded`, `refused`, or a state that this build does not know.
    Dropped(String),
    /// The CLI is done with the prompt, but its result did not come: the CLI reports so, is idle, or runs the next turn.
    NoResult,
    /// The turn failed, for this cause.
    Failed(Cause),
}

impl Verdict {
    /// Whether the turn succeeded: it is [`Completed`](Self::Completed), a
    /// [`LocalCommand`](Self::LocalCommand), [`Appended`](Self::Appended), [`Backgrounded`](Self::Backgrounded) or
    /// [`Deferred`](Self::Deferred).
    pub fn is_success(&self) -> bool {
        matches!(
            self,
            Self::Completed | Self::LocalCommand(_) | Self::Appended | Self::Backgrounded | Self::Deferred
        )
    }

    /// Whether the turn has an answer: it is [`Completed`](Self::Completed), or a [`LocalCommand`](Self::LocalCommand),
    /// whose output is the answer.
    ///
    /// The other successes have none: a prompt that was only appended gets no answer, and the answer of a turn that was
    /// backgrounded or deferred comes later.
    pub fn has_answer(&self) -> bool {
        matches!(self, Self::Completed | Self::LocalCommand(_))
    }

    /// Why the turn failed, if it [`Failed`](Self::Failed).
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Failed(cause) => Some(cause),
            _ => None,
        }
    }

    /// The variant in `snake_case`, for logs and metrics: `completed`, `stopped_by_hook`, `failed`, …
    pub fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::LocalCommand(_) => "local_command",
            Self::Appended => "appended",
            Self::Backgrounded => "backgrounded",
            Self::Deferred => "deferred",
            Self::NotRun => "not_run",
            Self::StoppedByHook => "stopped_by_hook",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::Dropped(_) => "dropped",
            Self::NoResult => "no_result",
            Self::Failed(_) => "failed",
        }
    }

    /// The truth table.
    pub(super) fn of(facts: &Facts) -> Self {
        let reason = facts.terminal_reason.as_deref();
        let subtype = facts.subtype.as_deref().unwrap_or_default();
        // What the CLI says most precisely goes first.
        match reason {
            Some("aborted_streaming" | "aborted_tools") => return Self::Interrupted,
            Some("max_turns") => return Self::Failed(Cause::MaxTurns),
            Some("budget_exhausted") => return Self::Failed(Cause::Budget),
            Some("structured_output_retry_exhausted") => return Self::Failed(Cause::StructuredOutput),
            Some("prompt_too_long" | "blocking_limit") => return Self::Failed(Cause::TooLong),
            Some("hook_stopped" | "stop_hook_prevented") => return Self::StoppedByHook,
            Some("tool_deferred") => return Self::Deferred,
            Some("background_requested") => return Self::Backgrounded,
            _ => {}
        }
        match subtype {
            "error_max_turns" => return Self::Failed(Cause::MaxTurns),
            "error_max_budget_usd" => return Self::Failed(Cause::Budget),
            "error_max_structured_output_retries" => return Self::Failed(Cause::StructuredOutput),
            _ => {}
        }
        // Older CLIs give no reason, and tell of an interrupted turn as of one that broke.
        if reason.is_none()
            && subtype == "error_during_execution"
            && facts.interrupted
            && Cause::of_startup(facts).is_none()
        {
            return Self::Interrupted;
        }
        if facts.is_error != Some(false) || subtype != "success" {
            return Self::Failed(Cause::of_turn(facts));
        }
        if let Some(reason) = reason.filter(|reason| *reason != "completed") {
            return Self::Failed(Cause::TurnFailed(reason.to_owned()));
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
        if facts.wanted_output && facts.structured_output.is_none() {
            return Self::Failed(Cause::NoStructuredOutput);
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
            Self::Backgrounded => f.write_str("moved to the background"),
            Self::Deferred => f.write_str("deferred"),
            Self::NotRun => f.write_str("not run"),
            Self::StoppedByHook => f.write_str("stopped by a hook"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Dropped(state) => write!(f, "dropped by the CLI: {state}"),
            Self::NoResult => f.write_str("ended without a result"),
            Self::Failed(Cause::TurnFailed(reason)) => write!(f, "failed: {reason}"),
            Self::Failed(cause) => write!(f, "failed: {cause}"),
        }
    }
}
