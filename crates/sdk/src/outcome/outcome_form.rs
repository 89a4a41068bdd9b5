//! The serialized form of outcomes and verdicts.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::facts::{Around, Facts, RetryAdvice};
use super::{Body, Outcome, Verdict, error_text};
use crate::cause::Cause;
use crate::frame_form::FrameForm;
#[cfg(test)]
use crate::frame_form::FrameSchema;
use crate::usage::TurnUsage;

/// How a turn ended.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OutcomeForm {
    /// The verdict.
    #[cfg_attr(test, schemars(with = "VerdictForm"))]
    verdict: Verdict,
    /// Whether the turn succeeded. Not read back: the verdict has it.
    #[serde(default)]
    is_success: bool,
    /// The CLI's text about a failure; never the model's text. Not read back: the frame has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_text: Option<String>,
    /// The HTTP status of a failed API call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api_error_status: Option<u16>,
    /// How long to wait after the end of the turn before the same prompt is sent again, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// When a limit resets, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_at_ms: Option<u64>,
    /// What this turn alone used.
    usage: TurnUsage,
    /// The ids of all prompts that this answers.
    #[serde(default)]
    prompts: Vec<String>,
    /// The CLI's `result`; absent for a prompt that ended without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<FrameSchema>"))]
    frame: Option<FrameForm>,
}

/// What a turn's end comes down to.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct VerdictForm {
    /// `completed`, `failed`, `interrupted`, …
    name: String,
    /// Why the turn failed, of `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
    /// The name of the command, of `local_command`, if the CLI reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The CLI's word for it, of `dropped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

impl From<&Verdict> for VerdictForm {
    fn from(verdict: &Verdict) -> Self {
        let mut form = Self {
            name: verdict.name().to_owned(),
            ..Self::default()
        };
        match verdict {
            Verdict::Failed(cause) => form.cause = Some(cause.clone()),
            Verdict::LocalCommand(command) => form.command.clone_from(command),
            Verdict::Dropped(state) => form.state = Some(state.clone()),
            _ => {}
        }
        form
    }
}

impl TryFrom<VerdictForm> for Verdict {
    type Error = String;

    fn try_from(form: VerdictForm) -> Result<Self, String> {
        Ok(match (form.name.as_str(), form.cause) {
            ("completed", _) => Self::Completed,
            ("local_command", _) => Self::LocalCommand(form.command),
            ("appended", _) => Self::Appended,
            ("backgrounded", _) => Self::Backgrounded,
            ("deferred", _) => Self::Deferred,
            ("not_run", _) => Self::NotRun,
            ("stopped_by_hook", _) => Self::StoppedByHook,
            ("interrupted", _) => Self::Interrupted,
            ("cancelled", _) => Self::Cancelled,
            ("dropped", _) => Self::Dropped(form.state.unwrap_or_default()),
            ("no_result", _) => Self::NoResult,
            ("failed", Some(cause)) => Self::Failed(cause),
            ("failed", None) => return Err("a failed turn has a cause".to_owned()),
            (name, _) => return Err(format!("the verdict `{name}` is not known")),
        })
    }
}

/// An object with the [`name`](Verdict::name), and what the verdict holds: `cause`, `command` or `state`.
impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        VerdictForm::from(self).serialize(serializer)
    }
}

/// Fails for a verdict or a cause that this build does not know.
impl<'de> Deserialize<'de> for Verdict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = VerdictForm::deserialize(deserializer)?;
        form.try_into().map_err(serde::de::Error::custom)
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The `result` frame goes along byte for byte; times are in whole milliseconds.
impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = &*self.0;
        let (mut retry_after_ms, mut retry_at_ms) = (None, None);
        match body.retry {
            Some(RetryAdvice::After(delay)) => retry_after_ms = Some(whole_ms(delay)),
            Some(RetryAdvice::At(time)) => {
                retry_at_ms = time.duration_since(SystemTime::UNIX_EPOCH).ok().map(whole_ms);
            }
            None => {}
        }
        let form = OutcomeForm {
            verdict: body.verdict.clone(),
            is_success: self.is_success(),
            error_text: body.error_text.clone(),
            api_error_status: body.facts.api_error_status,
            retry_after_ms,
            retry_at_ms,
            usage: body.usage.clone(),
            prompts: body.prompts.clone(),
            frame: body.frame.clone().map(FrameForm),
        };
        form.serialize(serializer)
    }
}

/// Fails for a verdict or a cause that this build does not know.
impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = OutcomeForm::deserialize(deserializer)?;
        let frame = form.frame.map(|frame| frame.0);
        let mut facts = match &frame {
            Some(frame) => Facts::read(frame, &Around::default()),
            None => Facts::default(),
        };
        // The result of older CLIs lacks it.
        facts.api_error_status = form.api_error_status;
        let at = |ms| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms));
        let retry = match form.retry_at_ms.and_then(at) {
            Some(time) => Some(RetryAdvice::At(time)),
            None => form
                .retry_after_ms
                .map(Duration::from_millis)
                .map(RetryAdvice::After),
        };
        Ok(Self(Arc::new(Body {
            error_text: error_text(&form.verdict, &facts),
            verdict: form.verdict,
            facts,
            retry,
            usage: form.usage,
            frame,
            prompts: form.prompts,
        })))
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Outcome {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Outcome".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        OutcomeForm::json_schema(generator)
    }
}
