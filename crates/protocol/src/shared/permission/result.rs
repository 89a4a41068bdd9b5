//! The decision on one tool call.

use serde::{Deserialize, Deserializer, Serialize};

use super::{PermissionDecisionClassification, PermissionUpdate};
use crate::RawJson;
use crate::shared::object::JsonObject;
use crate::walk::string_at;

/// The answer to `can_use_tool`.
///
/// Closed, because a third kind of decision would be read by nobody: the CLI turns anything else into an error for the
/// model. `Allow` cannot carry an input that is no object, `Deny` cannot lack its message; the CLI refuses both.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
pub enum PermissionResult {
    /// The call runs.
    Allow(PermissionAllow),
    /// The call is refused.
    Deny(PermissionDeny),
}

impl PermissionResult {
    /// Allows the call as the model made it.
    pub fn allow() -> Self {
        Self::Allow(PermissionAllow::default())
    }

    /// Refuses the call; the model reads `message` as the tool's result.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny(PermissionDeny::new(message))
    }

    /// Whether the call runs.
    pub fn is_allow(&self) -> bool {
        matches!(self, Self::Allow(_))
    }
}

impl From<PermissionAllow> for PermissionResult {
    fn from(allow: PermissionAllow) -> Self {
        Self::Allow(allow)
    }
}

impl From<PermissionDeny> for PermissionResult {
    fn from(deny: PermissionDeny) -> Self {
        Self::Deny(deny)
    }
}

impl<'de> Deserialize<'de> for PermissionResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let raw = RawJson::deserialize(deserializer)?;
        match string_at(raw.get(), "behavior").as_deref() {
            Some("allow") => raw.read().map(Self::Allow).map_err(Error::custom),
            Some("deny") => raw.read().map(Self::Deny).map_err(Error::custom),
            Some(other) => Err(Error::unknown_variant(other, &["allow", "deny"])),
            None => Err(Error::missing_field("behavior")),
        }
    }
}

/// Reads an optional field that may be absent but not null, as the CLI reads answers.
fn not_null<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Leave to run.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionAllow {
    /// The input to run with instead of the model's. `None` and the empty object both keep the model's.
    #[serde(
        default,
        skip_serializing_if = "crate::whole::unset",
        deserialize_with = "not_null"
    )]
    pub updated_input: Option<JsonObject>,
    /// Changes of permissions to apply along with it, at most [`PermissionUpdate::LIMIT`].
    #[serde(
        default,
        skip_serializing_if = "crate::whole::unset",
        deserialize_with = "not_null"
    )]
    pub updated_permissions: Option<Vec<PermissionUpdate>>,
    /// The call that this is about.
    #[serde(
        rename = "toolUseID",
        default,
        skip_serializing_if = "crate::whole::unset",
        deserialize_with = "not_null"
    )]
    pub tool_use_id: Option<String>,
    /// How a person decided, if one did.
    #[serde(
        default,
        skip_serializing_if = "crate::whole::unset",
        deserialize_with = "not_null"
    )]
    pub decision_classification: Option<PermissionDecisionClassification>,
}

impl PermissionAllow {
    /// Runs with this input instead of the model's: a type of [`tools`](crate::tools), a map, a JSON value, or anything else that
    /// becomes a JSON object.
    ///
    /// # Errors
    /// When `input` does not serialize, or not to an object.
    pub fn updated_input(mut self, input: impl Serialize) -> Result<Self, serde_json::Error> {
        self.updated_input = Some(JsonObject::encode(&input)?);
        Ok(self)
    }

    /// Applies these changes of permissions too.
    pub fn updated_permissions(mut self, updates: impl IntoIterator<Item = PermissionUpdate>) -> Self {
        self.updated_permissions = Some(updates.into_iter().collect());
        self
    }

    /// Says how a person decided.
    pub fn decision_classification(mut self, how: PermissionDecisionClassification) -> Self {
        self.decision_classification = Some(how);
        self
    }
}

/// A denied call.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionDeny {
    /// What the model reads as the tool's result, verbatim. Lost if `interrupt` is set.
    pub message: String,
    /// Ends the turn as well.
    #[serde(
        default,
        skip_serializing_if = "crate::whole::unset",
        deserialize_with = "not_null"
    )]
    pub interrupt: Option<bool>,
    /// The call that this is about.
    #[serde(
        rename = "toolUseID",
        default,
        skip_serializing_if = "crate::whole::unset",
        deserialize_with = "not_null"
    )]
    pub tool_use_id: Option<String>,
    /// How a person decided, if one did.
    #[serde(
        default,
        skip_serializing_if = "crate::whole::unset",
        deserialize_with = "not_null"
    )]
    pub decision_classification: Option<PermissionDecisionClassification>,
}

impl PermissionDeny {
    /// Refuses with a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            interrupt: None,
            tool_use_id: None,
            decision_classification: None,
        }
    }

    /// Ends the turn as well.
    pub fn interrupt(mut self) -> Self {
        self.interrupt = Some(true);
        self
    }

    /// Says how a person decided.
    pub fn decision_classification(mut self, how: PermissionDecisionClassification) -> Self {
        self.decision_classification = Some(how);
        self
    }
}
