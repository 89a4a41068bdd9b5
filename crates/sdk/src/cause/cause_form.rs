//! The serialized form of causes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Cause;

/// Why a process did not start or ended, or why a turn failed.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CauseForm {
    /// The name: `rate_limit`, `not_logged_in`, `refused`, …
    name: String,
    /// The HTTP status, of `api`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The signal, of `terminated` and `crashed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// The CLI's reason, of `startup_failed` and `turn_failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<&Cause> for CauseForm {
    fn from(cause: &Cause) -> Self {
        let mut form = Self {
            name: cause.name().to_owned(),
            ..Self::default()
        };
        match cause {
            Cause::StartupFailed(reason) => form.reason.clone_from(reason),
            Cause::TurnFailed(reason) => form.reason = Some(reason.clone()),
            Cause::Api { status } => form.status = *status,
            Cause::Terminated { signal } => form.signal = Some(*signal),
            Cause::Crashed { signal } => form.signal = *signal,
            _ => {}
        }
        form
    }
}

impl TryFrom<CauseForm> for Cause {
    type Error = String;

    fn try_from(form: CauseForm) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|cause| cause.name() == form.name);
        Ok(match known {
            None => return Err(format!("the cause `{}` is not known", form.name)),
            Some(Self::StartupFailed(_)) => Self::StartupFailed(form.reason),
            Some(Self::TurnFailed(_)) => Self::TurnFailed(form.reason.unwrap_or_default()),
            Some(Self::Api { .. }) => Self::Api { status: form.status },
            Some(Self::Terminated { .. }) => Self::Terminated {
                signal: form.signal.unwrap_or_default(),
            },
            Some(Self::Crashed { .. }) => Self::Crashed { signal: form.signal },
            Some(other) => other.clone(),
        })
    }
}

/// An object with the [`name`](Cause::name), and what the cause holds: `status`, `signal` or `reason`.
impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        CauseForm::from(self).serialize(serializer)
    }
}

/// Fails for a cause that this build does not know.
impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = CauseForm::deserialize(deserializer)?;
        form.try_into().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Cause {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cause".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        CauseForm::json_schema(generator)
    }
}
