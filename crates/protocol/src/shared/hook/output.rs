//! What a hook may answer.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::{HookKind, HookSpecificOutput};
use crate::RawJson;
use crate::shared::closed_enum::closed_enum;
use crate::shared::object::JsonObject;
use crate::shared::permission::PermissionUpdate;
use crate::walk::string_at;

/// The answer of a hook for event `E`. Only what that event may give can be put into it.
pub struct HookOutput<E: HookKind>(Form<E>);

enum Form<E: HookKind> {
    Now {
        common: CommonOutput,
        specific: Option<E::Output>,
    },
    Later(AsyncHookOutput),
}

// A derived impl would demand the same of the event type, which has no values.
impl<E: HookKind> Clone for HookOutput<E> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Form::Now { common, specific } => Form::Now {
                common: common.clone(),
                specific: specific.clone(),
            },
            Form::Later(later) => Form::Later(later.clone()),
        })
    }
}

impl<E: HookKind> fmt::Debug for HookOutput<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Now { common, specific } => f
                .debug_struct("HookOutput")
                .field("common", common)
                .field("specific", specific)
                .finish(),
            Form::Later(later) => f.debug_tuple("HookOutput").field(later).finish(),
        }
    }
}

impl<E: HookKind> HookOutput<E> {
    /// No opinion: everything goes on as without the hook.
    pub fn none() -> Self {
        Self(Form::Now {
            common: CommonOutput::default(),
            specific: None,
        })
    }

    /// What this event in particular may be answered.
    pub fn specific(output: E::Output) -> Self {
        Self::none().and_specific(output)
    }

    /// Lets the CLI go on at once. It does not wait, and reads no second answer.
    pub fn in_background() -> Self {
        Self(Form::Later(AsyncHookOutput {
            r#async: True,
            async_timeout: None,
        }))
    }

    /// Refuses what is about to happen. At Stop that makes the turn go on; `reason` tells the model why.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::none().common(|common| {
            common.decision = Some(HookDecision::Block);
            common.reason = Some(reason.into());
        })
    }

    /// Ends the turn after this; `reason` is shown to the user. A tool that is about to run still runs.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self::none().common(|common| {
            common.r#continue = Some(false);
            common.stop_reason = Some(reason.into());
        })
    }

    /// Adds what this event in particular may be answered. Does nothing to an [`in_background`](Self::in_background) answer.
    pub fn and_specific(mut self, output: E::Output) -> Self {
        if let Form::Now { specific, .. } = &mut self.0 {
            *specific = Some(output);
        }
        self
    }

    /// Shows a text to the user. Does nothing to an [`in_background`](Self::in_background) answer.
    pub fn system_message(self, text: impl Into<String>) -> Self {
        self.common(|common| common.system_message = Some(text.into()))
    }

    /// Changes the part that is common to all events. Does nothing to an [`in_background`](Self::in_background) answer.
    pub fn common(mut self, change: impl FnOnce(&mut CommonOutput)) -> Self {
        if let Form::Now { common, .. } = &mut self.0 {
            change(common);
        }
        self
    }
}

impl<E: HookKind> Default for HookOutput<E> {
    fn default() -> Self {
        Self::none()
    }
}

impl<E: HookKind> From<HookOutput<E>> for AnyHookOutput {
    fn from(output: HookOutput<E>) -> Self {
        match output.0 {
            Form::Now { common, specific } => Self::Now(Box::new(SyncHookOutput {
                r#continue: common.r#continue,
                suppress_output: common.suppress_output,
                stop_reason: common.stop_reason,
                decision: common.decision,
                system_message: common.system_message,
                terminal_sequence: common.terminal_sequence,
                reason: common.reason,
                hook_specific_output: specific.map(E::wrap),
            })),
            Form::Later(later) => Self::Later(later),
        }
    }
}

/// The part of an answer that is common to all events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommonOutput {
    /// Whether the turn goes on; absent means yes.
    pub r#continue: Option<bool>,
    /// Keeps the hook's output out of the transcript.
    pub suppress_output: Option<bool>,
    /// Why the turn does not go on, for the user.
    pub stop_reason: Option<String>,
    /// The old form of a decision; still understood everywhere.
    pub decision: Option<HookDecision>,
    /// A text for the user.
    pub system_message: Option<String>,
    /// A terminal escape sequence for the CLI to write. Only notifications, titles and the bell get through.
    pub terminal_sequence: Option<String>,
    /// The reason of the decision, for the model.
    pub reason: Option<String>,
}

closed_enum! {
    /// The old form of a decision.
    pub enum HookDecision {
        /// The event may go on.
        Approve = "approve",
        /// The event is blocked.
        Block = "block",
    }
}

/// The answer of a hook for whatever event, as it is on the wire.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum AnyHookOutput {
    /// The answer.
    Now(Box<SyncHookOutput>),
    /// Leave to go on without an answer.
    Later(AsyncHookOutput),
}

impl<'de> Deserialize<'de> for AnyHookOutput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Peek {
            r#async: Option<bool>,
        }
        let raw = RawJson::deserialize(deserializer)?;
        let is_async = raw.read::<Peek>().is_ok_and(|peek| peek.r#async == Some(true));
        if is_async {
            raw.read().map(Self::Later)
        } else {
            raw.read().map(Self::Now)
        }
        .map_err(serde::de::Error::custom)
    }
}

/// Leave to go on without an answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AsyncHookOutput {
    r#async: True,
    /// How long the hook may take, in milliseconds.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub async_timeout: Option<u64>,
}

/// The `true` that marks an [`AsyncHookOutput`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct True;

impl Serialize for True {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }
}

impl<'de> Deserialize<'de> for True {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match bool::deserialize(deserializer)? {
            true => Ok(Self),
            false => Err(serde::de::Error::custom("expected true")),
        }
    }
}

/// The answer of a hook for whatever event. To write one, use [`HookOutput`].
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SyncHookOutput {
    /// See [`CommonOutput`].
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub r#continue: Option<bool>,
    /// See [`CommonOutput`].
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub suppress_output: Option<bool>,
    /// See [`CommonOutput`].
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub stop_reason: Option<String>,
    /// See [`CommonOutput`].
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub decision: Option<HookDecision>,
    /// See [`CommonOutput`].
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub system_message: Option<String>,
    /// See [`CommonOutput`].
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub terminal_sequence: Option<String>,
    /// See [`CommonOutput`].
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// What the event in particular may be answered.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub hook_specific_output: Option<HookSpecificOutput>,
}

/// Nothing: an event that may not be answered beyond the common part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum NoOutput {}

/// Generates the answers: public optional fields in camel case, and a setter for each.
macro_rules! hook_outputs {
    ($( $(#[$m:meta])* pub struct $name:ident {
        $( $(#[doc = $doc:literal])* $(#[serde($($s:tt)*)])? pub $field:ident: $ty:ty $(as $how:ident)?, )*
    } )+) => { $(
        $(#[$m])*
        #[derive(Debug, Clone, Default, Deserialize, Serialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[doc = $doc])* $(#[serde($($s)*)])? #[serde(default, skip_serializing_if = "crate::whole::unset")] pub $field: Option<$ty>, )*
        }

        impl $name {
            $( hook_setter! { $(#[doc = $doc])* $field: $ty $(as $how)? } )*
        }
    )+ };
}

/// The setter of a field. What is `encoded` takes whatever becomes a JSON object, as answers to permission requests do.
macro_rules! hook_setter {
    ($(#[doc = $doc:literal])* $field:ident: $ty:ty) => {
        $(#[doc = $doc])*
        pub fn $field(mut self, value: impl Into<$ty>) -> Self {
            self.$field = Some(value.into());
            self
        }
    };
    ($(#[doc = $doc:literal])* $field:ident: $ty:ty as encoded) => {
        $(#[doc = $doc])*
        ///
        /// The value is a type of [`tools`](crate::tools), a map, a JSON value, or anything else that becomes a JSON object.
        ///
        /// # Errors
        /// When `value` does not serialize, or not to an object.
        pub fn $field(mut self, value: impl Serialize) -> Result<Self, serde_json::Error> {
            self.$field = Some(<$ty>::encode(&value)?);
            Ok(self)
        }
    };
}

hook_outputs! {
    /// For events that may only tell the model something.
    pub struct ContextOutput {
        /// Tells the model something.
        pub additional_context: String,
    }
    /// For PreToolUse. A refusal counts more than any other hook's consent.
    pub struct PreToolUseOutput {
        /// Decides about the call.
        pub permission_decision: PreToolUseDecision,
        /// The reason for the decision.
        pub permission_decision_reason: String,
        /// Runs the tool with another input. Without a decision the call is still asked, with the new input.
        pub updated_input: JsonObject as encoded,
        /// Tells the model something.
        pub additional_context: String,
        /// Words for the question that `ask` leads to. Only a CLI that says `host_worded_asks` reads it.
        pub permission_display: PermissionDisplay,
    }
    /// For PostToolUse.
    pub struct PostToolUseOutput {
        /// Tells the model something.
        pub additional_context: String,
        /// Tells the classifier of auto mode something.
        pub classifier_context: String,
        /// Replaces what the tool gave; must have the shape of the tool's own output.
        pub updated_tool_output: RawJson,
        /// Replaces what an MCP tool gave. The older form.
        #[serde(rename = "updatedMCPToolOutput")]
        pub updated_mcp_tool_output: RawJson,
    }
    /// For UserPromptSubmit.
    pub struct UserPromptSubmitOutput {
        /// Tells the model something along with the prompt.
        pub additional_context: String,
        /// Names the session.
        pub session_title: String,
        /// Keeps the prompt from the model.
        pub suppress_original_prompt: bool,
    }
    /// For UserPromptExpansion.
    pub struct UserPromptExpansionOutput {
        /// Tells the model something along with the prompt.
        pub additional_context: String,
        /// Keeps the prompt from the model.
        pub suppress_original_prompt: bool,
    }
    /// For SessionStart.
    pub struct SessionStartOutput {
        /// Tells the model something.
        pub additional_context: String,
        /// Sends a first prompt.
        pub initial_user_message: String,
        /// Names the session.
        pub session_title: String,
        /// Files to watch; a FileChanged event follows each change.
        pub watch_paths: Vec<String>,
        /// Loads the skills again.
        pub reload_skills: bool,
    }
    /// For PreModelSwitch.
    pub struct PreModelSwitchOutput {
        /// Decides about the change.
        pub permission_decision: PreModelSwitchDecision,
        /// The reason for the decision.
        pub permission_decision_reason: String,
    }
    /// For PreSkillShellCommand. A command that a hook does not allow does not run: nobody can be asked, and the model reads a
    /// notice in the place of the command's output.
    pub struct PreSkillShellCommandOutput {
        /// Decides about the command. All but `Allow` refuse it.
        pub permission_decision: PreToolUseDecision,
        /// The reason.
        pub permission_decision_reason: String,
    }
    /// For PermissionDenied.
    pub struct PermissionDeniedOutput {
        /// Tells the model that it may try the call again.
        pub retry: bool,
    }
    /// For Elicitation and ElicitationResult.
    pub struct ElicitationOutput {
        /// Answers in the user's place.
        pub action: ElicitationAction,
        /// What to fill in.
        pub content: JsonObject,
    }
    /// For CwdChanged and FileChanged.
    pub struct WatchOutput {
        /// Watches these files from now on.
        pub watch_paths: Vec<String>,
    }
    /// For MessageDisplay.
    pub struct MessageDisplayOutput {
        /// Shows this instead.
        pub display_content: String,
    }
}

impl ContextOutput {
    /// Tells the model something.
    pub fn new(context: impl Into<String>) -> Self {
        Self::default().additional_context(context)
    }
}

impl PreToolUseOutput {
    /// Runs the tool without a question.
    pub fn allow() -> Self {
        Self::default().permission_decision(PreToolUseDecision::Allow)
    }

    /// Does not run the tool; the model reads why.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::default()
            .permission_decision(PreToolUseDecision::Deny)
            .permission_decision_reason(reason)
    }

    /// Asks, whatever the rules say.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::default()
            .permission_decision(PreToolUseDecision::Ask)
            .permission_decision_reason(reason)
    }

    /// Ends the turn with the call left open; the result tells which.
    pub fn defer() -> Self {
        Self::default().permission_decision(PreToolUseDecision::Defer)
    }
}

impl PreSkillShellCommandOutput {
    /// Refuses the command, with the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::default()
            .permission_decision(PreToolUseDecision::Deny)
            .permission_decision_reason(reason)
    }
}

closed_enum! {
    /// What becomes of a tool call.
    pub enum PreToolUseDecision {
        /// The call runs without a permission request.
        Allow = "allow",
        /// The call does not run.
        Deny = "deny",
        /// Somebody is asked.
        Ask = "ask",
        /// The turn ends with the call left open.
        Defer = "defer",
    }
}

closed_enum! {
    /// What becomes of a change of model.
    pub enum PreModelSwitchDecision {
        /// The model changes.
        Allow = "allow",
        /// The model stays.
        Deny = "deny",
        /// Somebody is asked.
        Ask = "ask",
    }
}

closed_enum! {
    /// How a question of an MCP server is answered.
    pub enum ElicitationAction {
        /// With content.
        Accept = "accept",
        /// With a no.
        Decline = "decline",
        /// Not at all.
        Cancel = "cancel",
    }
}

/// Words for the question that a hook's `ask` leads to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionDisplay {
    /// The title; at most 200 characters.
    pub title: String,
    /// The text; at most 2,000 characters, not blank.
    pub description: String,
    /// What to call the tool; at most 64 characters.
    pub display_name: String,
}

/// For PermissionRequest.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionRequestOutput {
    /// Decides in the user's place.
    pub decision: PermissionRequestDecision,
}

impl From<PermissionRequestDecision> for PermissionRequestOutput {
    fn from(decision: PermissionRequestDecision) -> Self {
        Self { decision }
    }
}

/// A decision in the user's place.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
pub enum PermissionRequestDecision {
    /// The call runs.
    Allow(PermissionRequestAllow),
    /// The call does not run.
    Deny(PermissionRequestDeny),
}

hook_outputs! {
    /// The call runs.
    pub struct PermissionRequestAllow {
        /// Runs the call with another input.
        pub updated_input: JsonObject as encoded,
        /// Changes permissions too.
        pub updated_permissions: Vec<PermissionUpdate>,
    }
    /// The call does not run.
    pub struct PermissionRequestDeny {
        /// Tells the model why.
        pub message: String,
        /// Ends the turn as well.
        pub interrupt: bool,
    }
}

impl<'de> Deserialize<'de> for PermissionRequestDecision {
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

/// For WorktreeCreate.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorktreeCreateOutput {
    /// Where the worktree was made.
    pub worktree_path: String,
}

impl WorktreeCreateOutput {
    /// The worktree was made there.
    pub fn new(worktree_path: impl Into<String>) -> Self {
        Self {
            worktree_path: worktree_path.into(),
        }
    }
}
