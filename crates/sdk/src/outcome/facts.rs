//! The CLI's data about the end of a turn: the fields of its result, and of the frames before it.

use std::time::{Duration, SystemTime};

use outrigger_protocol::inbound::DeferredToolUse;
use outrigger_protocol::{Frame, RawJson};

use crate::fields::Fields;

/// The few fields that the verdict needs, each read on its own so that one odd field cannot hide the end of a turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) subtype: Option<String>,
    /// `None` if the result lacks it, or if it is not a boolean.
    pub(crate) is_error: Option<bool>,
    pub(crate) terminal_reason: Option<String>,
    pub(crate) startup_failure_reason: Option<String>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) api_error: Option<String>,
    pub(crate) api_error_status: Option<u16>,
    pub(crate) local_command: Option<String>,
    pub(crate) result: Option<String>,
    pub(crate) errors: Vec<String>,
    pub(crate) structured_output: Option<RawJson>,
    pub(crate) deferred: Option<DeferredToolUse>,
    pub(crate) num_turns: Option<u64>,
    pub(crate) duration_ms: Option<u64>,
    /// The `error` of the message that the CLI wrote in place of the model's: `authentication_failed`, `rate_limit`, …
    pub(crate) kind: Option<String>,
    /// Whether a message before the result reports that the model refused.
    pub(crate) refused: bool,
    /// Whether this program interrupted the turn.
    pub(crate) interrupted: bool,
    /// Whether the options set a JSON schema.
    pub(crate) wanted_output: bool,
}

/// What is known of a turn when its result comes, besides the result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Around {
    /// The options set a JSON schema.
    pub(crate) wanted_output: bool,
    /// This program interrupted the turn before the result came.
    pub(crate) interrupted: bool,
    /// The frames before the result.
    pub(crate) before: FailureEvidence,
}

/// The frames of a turn that explain a failure.
#[derive(Debug, Clone, Default)]
pub(crate) struct FailureEvidence {
    /// The last `assistant` frame of the conversation. For a turn that fails at the API, the CLI writes it.
    assistant: Option<Frame>,
    /// The last `api_retry`.
    retry: Option<Frame>,
    /// The last `rate_limit_event` of the session.
    limit: Option<Frame>,
    /// `model_refusal_no_fallback` came.
    refused: bool,
}

impl FailureEvidence {
    /// A turn begins: drops what belongs to the last turn, and keeps what belongs to the session.
    pub(crate) fn next_turn(&mut self) {
        *self = Self {
            limit: self.limit.take(),
            ..Self::default()
        };
    }

    pub(crate) fn on_frame(&mut self, frame: &Frame) {
        if frame.parent_tool_use_id().is_some() {
            return;
        }
        match (frame.kind(), frame.subtype()) {
            ("assistant", _) => self.assistant = Some(frame.clone()),
            ("rate_limit_event", _) => self.limit = Some(frame.clone()),
            ("system", Some("api_retry")) => self.retry = Some(frame.clone()),
            ("system", Some("model_refusal_no_fallback")) => self.refused = true,
            _ => {}
        }
    }
}

/// When to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    /// This long after the end of the turn.
    After(Duration),
    /// At this time.
    At(SystemTime),
}

impl RetryAdvice {
    /// When the limit resets for which the API rejected a request.
    pub(crate) fn of_limit(before: &FailureEvidence) -> Option<Self> {
        let of_message = || {
            let params: RawJson = Fields::of(before.assistant.as_ref()?).get("api_error_params")?;
            Fields::of_object(&params).get::<RawJson>("rate_limit_info")
        };
        let of_event = || Fields::of(before.limit.as_ref()?).get::<RawJson>("rate_limit_info");
        let resets_at = |info: RawJson| {
            let info = Fields::of_object(&info);
            let status: String = info.get("status")?;
            let at: f64 = info.get("resetsAt")?;
            let at = Duration::try_from_secs_f64(at).ok()?;
            let at = SystemTime::UNIX_EPOCH.checked_add(at)?;
            (status == "rejected").then_some(Self::At(at))
        };
        of_message()
            .and_then(resets_at)
            .or_else(|| of_event().and_then(resets_at))
    }

    /// The delay before the CLI's own last retry.
    pub(crate) fn of_retries(before: &FailureEvidence) -> Option<Self> {
        let delay: f64 = Fields::of(before.retry.as_ref()?).get("retry_delay_ms")?;
        Duration::try_from_secs_f64(delay / 1000.0).ok().map(Self::After)
    }
}

/// Whether a frame is the result of a turn.
///
/// The CLI writes a result's `type` last. Of an oversized one only the beginning is kept, so its `subtype` identifies it: a turn
/// must not go on for ever because its answer was long.
pub(crate) fn is_result(frame: &Frame) -> bool {
    let told_by_subtype = || {
        let subtype = frame.subtype().unwrap_or_default();
        frame.flaw().is_some() && (subtype == "success" || subtype.starts_with("error_"))
    };
    frame.kind() == "result" || (frame.kind().is_empty() && told_by_subtype())
}

impl Facts {
    pub(crate) fn read(frame: &Frame, around: &Around) -> Self {
        let fields = Fields::of(frame);
        let known = Self {
            interrupted: around.interrupted,
            wanted_output: around.wanted_output,
            ..Self::default()
        };
        if let (true, Some(flaw)) = (fields.is_empty(), frame.flaw()) {
            return Self {
                is_error: Some(true),
                terminal_reason: Some("unreadable_result".to_owned()),
                errors: vec![flaw.to_string()],
                ..known
            };
        }
        let mut facts = Self {
            subtype: fields.get("subtype"),
            is_error: fields.get("is_error"),
            terminal_reason: fields.get("terminal_reason"),
            startup_failure_reason: fields.get("startup_failure_reason"),
            stop_reason: fields.get("stop_reason"),
            api_error: fields.get("api_error"),
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
            ..known
        };
        // The frames before it are only looked at when they are needed.
        if facts.is_error != Some(false) {
            facts.read_message(&around.before);
        }
        facts
    }

    /// Adds the data of the CLI's message before a failed result: older CLIs have there what newer ones have in the result.
    fn read_message(&mut self, before: &FailureEvidence) {
        self.refused = before.refused;
        let Some(message) = &before.assistant else { return };
        let fields = Fields::of(message);
        self.kind = fields.get("error");
        if self.kind.is_some() {
            let of_message = |key| fields.get::<String>(key);
            self.api_error = self.api_error.take().or_else(|| of_message("api_error"));
            self.api_error_status = self.api_error_status.or_else(|| fields.get("api_error_status"));
        }
    }
}
