//! How a turn ended.

mod facts;
#[cfg(feature = "serde")]
mod outcome_form;
mod turn_cause;
mod verdict;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outrigger_protocol::inbound::DeferredToolUse;
use outrigger_protocol::{Frame, Misfit, RawJson};

use self::facts::RetryAdvice;
pub(crate) use self::facts::{Around, Facts, FailureEvidence, is_result};
pub use self::verdict::Verdict;
use crate::cause::Cause;
use crate::usage::TurnUsage;

/// How a turn ended: the [`Verdict`], the usage, and the `result` frame with everything else.
///
/// A failed turn has an outcome, too. [`answer`](Self::answer) is the model's text, or an error if the turn has no answer.
///
/// Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Outcome(Arc<Body>);

#[derive(Debug)]
struct Body {
    verdict: Verdict,
    facts: Facts,
    error_text: Option<String>,
    retry: Option<RetryAdvice>,
    usage: TurnUsage,
    frame: Option<Frame>,
    prompts: Vec<String>,
}

impl Outcome {
    pub(crate) fn of_result(frame: &Frame, usage: TurnUsage, prompts: Vec<String>, around: &Around) -> Self {
        let facts = Facts::read(frame, around);
        let verdict = Verdict::of(&facts);
        let retry = match verdict.cause() {
            Some(Cause::RateLimit) => {
                RetryAdvice::of_limit(&around.before).or_else(|| RetryAdvice::of_retries(&around.before))
            }
            Some(cause) if cause.is_transient() => RetryAdvice::of_retries(&around.before),
            _ => None,
        };
        Self(Arc::new(Body {
            error_text: error_text(&verdict, &facts),
            verdict,
            facts,
            retry,
            usage,
            frame: Some(frame.clone()),
            prompts,
        }))
    }

    /// The end of prompts that never got a result.
    pub(crate) fn without_result<'a>(verdict: Verdict, prompts: impl IntoIterator<Item = &'a str>) -> Self {
        let body = Body {
            verdict,
            facts: Facts::default(),
            error_text: None,
            retry: None,
            usage: TurnUsage::default(),
            frame: None,
            prompts: prompts.into_iter().map(str::to_owned).collect(),
        };
        Self(Arc::new(body))
    }

    /// Whether both are clones of one outcome.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The verdict.
    pub fn verdict(&self) -> &Verdict {
        &self.0.verdict
    }

    /// Whether the turn succeeded; see [`Verdict::is_success`].
    pub fn is_success(&self) -> bool {
        self.0.verdict.is_success()
    }

    /// Why the turn failed, if it [`Failed`](Verdict::Failed).
    ///
    /// `None` for successes, and for ends that are no failures: an interrupt, a hook, a prompt that was taken back.
    pub fn cause(&self) -> Option<Cause> {
        self.0.verdict.cause().cloned()
    }

    /// Whether the cause of the failure is temporary, so that the same prompt may succeed later; see
    /// [`Cause::is_transient`].
    pub fn is_transient(&self) -> bool {
        self.0.verdict.cause().is_some_and(Cause::is_transient)
    }

    /// How long to wait before sending the same prompt again, if the CLI reported it; for failures that are
    /// [transient](Self::is_transient).
    ///
    /// When a subscription's limit is reached, the CLI reports when the limit resets (`resetsAt` of `rate_limit_event`, or of the
    /// failed message): this is the time from now until then, zero if that has passed. For other failures it is the delay before
    /// the CLI's own last retry in this turn (`retry_delay_ms` of `api_retry`), which follows the API's `retry-after` if the API
    /// sent one. `None` if the CLI reported neither, for example when it did not retry.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0.retry? {
            RetryAdvice::After(delay) => Some(delay),
            RetryAdvice::At(time) => Some(time.duration_since(SystemTime::now()).unwrap_or_default()),
        }
    }

    /// The CLI's text about the failure; never the model's text.
    ///
    /// `None` for [successes](Self::is_success), and when the CLI gives no text.
    pub fn error_text(&self) -> Option<&str> {
        self.0.error_text.as_deref()
    }

    /// The CLI's `result` field: the answer of the model, the output of a local command, or the CLI's text about a failure. Empty
    /// if there is none. [`answer`](Self::answer) and [`error_text`](Self::error_text) distinguish them.
    pub fn result_text(&self) -> &str {
        self.0.facts.result.as_deref().unwrap_or_default()
    }

    /// Whether the CLI reports by this result that it could not start the session.
    pub(crate) fn is_failed_start(&self) -> bool {
        Cause::of_startup(&self.0.facts).is_some()
    }

    /// The `errors` of the result. Empty for a failed API call; see
    /// [`error_text`](Self::error_text).
    pub fn errors(&self) -> &[String] {
        &self.0.facts.errors
    }

    /// The structured output, if the options set a schema and the model wrote it.
    pub fn structured_output(&self) -> Option<&RawJson> {
        self.0.facts.structured_output.as_ref()
    }

    /// The tool call that a hook deferred ([`PreToolUseOutput::defer`](crate::hooks::PreToolUseOutput::defer)), for a turn that ended as
    /// [`Deferred`](Verdict::Deferred). When the session is resumed, the CLI calls the hook for it again, if the CLI waits for its hooks
    /// ([`await_initialize`](crate::Options#structfield.await_initialize)).
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

    /// The number of agentic turns, as the CLI counts them.
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

    /// The id of the session that the CLI names in the result; `None` for a prompt that ended without one.
    pub fn session_id(&self) -> Option<&str> {
        self.0.frame.as_ref().and_then(Frame::session_id)
    }

    /// The `kind` of the `origin`, for a turn that no prompt of this session began.
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
        let frame = self.0.frame.as_ref()?;
        (frame.kind() == "result").then(|| frame.decode_as())
    }
}

fn error_text(verdict: &Verdict, facts: &Facts) -> Option<String> {
    // The text of a turn whose output is missing is the model's.
    if verdict.is_success() || *verdict == Verdict::Failed(Cause::NoStructuredOutput) {
        return None;
    }
    let text = match facts.errors.as_slice() {
        [] => facts.result.clone()?,
        errors => errors.join("; "),
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests;
