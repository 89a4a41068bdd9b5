//! What becomes of prompts, conversations and the session file.

use serde::{Deserialize, Serialize};

use crate::RawJson;
use crate::open_enum;

/// `command_lifecycle`: what becomes of a prompt. Only for prompts that were sent with a `uuid`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CommandLifecycle {
    /// The prompt.
    pub command_uuid: String,
    /// The new state of the command.
    pub state: CommandState,
    /// What sent the command, if no client did: `loop_wakeup` or `schedule_wakeup`.
    pub wakeup_source: Option<String>,
    /// When the command was due, in milliseconds since 1970.
    pub scheduled_for: Option<f64>,
    /// True if the command ran before prompts that were sent earlier.
    pub ran_ahead: Option<bool>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// What became of a prompt.
    pub enum CommandState {
        /// The prompt waits in the queue.
        Queued = "queued",
        /// The turn of the prompt has begun, or the running turn took the prompt in.
        Started = "started",
        /// Its turn is over. Comes after the `result`, before it if it was taken into a running turn.
        Completed = "completed",
        /// The prompt was withdrawn.
        Cancelled = "cancelled",
        /// The prompt was dropped.
        Discarded = "discarded",
        /// The prompt was rejected.
        Refused = "refused",
    }
}

/// `conversation_reset`: the conversation starts from scratch; the session id changes.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ConversationReset {
    /// The new conversation.
    pub new_conversation_id: String,
    /// What caused the reset.
    pub trigger: Option<ResetTrigger>,
    /// The prompt that requested the reset.
    pub user_message_uuid: Option<String>,
    /// True if a person wrote that prompt.
    pub user_message_from_human: Option<bool>,
    /// When, as ISO 8601.
    pub timestamp: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session that ends.
    pub session_id: String,
}

open_enum! {
    /// Why a conversation starts from scratch.
    pub enum ResetTrigger {
        /// `/clear`.
        Clear = "clear",
        /// A plan was approved with a fresh start.
        PlanModeExit = "plan_mode_exit",
        /// A new session was asked for.
        FreshSession = "fresh_session",
        /// The introduction is over.
        Onboarding = "onboarding",
    }
}

/// `active_goal`: the goal that the session works towards.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ActiveGoal {
    /// The goal; null when there is none any more.
    pub value: Option<Goal>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A goal that a session works towards.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Goal {
    /// When the goal is reached, in words.
    pub condition: String,
    /// How often the CLI checked the goal.
    pub iterations: u64,
    /// When the goal was set, in milliseconds since 1970.
    pub set_at: f64,
    /// Tokens used by then.
    pub tokens_at_start: u64,
    /// Why the goal was not reached at the last check.
    pub last_reason: Option<String>,
}

/// `autocompact_state`: when the conversation will be compacted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AutocompactState {
    /// The settings in force.
    pub value: Autocompact,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// When a conversation will be compacted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Autocompact {
    /// Whether the CLI compacts the conversation by itself.
    pub enabled: bool,
    /// How many tokens count as full.
    pub effective_window: u64,
    /// The tokens at which the CLI compacts the conversation.
    pub threshold: u64,
    /// Whether the threshold is enforced.
    pub enforced: bool,
    /// What set the threshold.
    pub source: AutocompactSource,
}

open_enum! {
    /// Who set when a conversation is compacted.
    pub enum AutocompactSource {
        /// The environment.
        Env = "env",
        /// The settings.
        Settings = "settings",
        /// Data of the account.
        Clientdata = "clientdata",
        /// An experiment.
        Experiment = "experiment",
        /// The model's default.
        ModelDefault = "model-default",
        /// The default for models that are not known.
        UnknownModel = "unknown-model",
        /// The CLI, by itself.
        Auto = "auto",
    }
}

/// `transcript_mirror`: what was written to the session file (`--session-mirror`).
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TranscriptMirror {
    /// The file.
    #[serde(rename = "filePath")]
    pub file_path: String,
    /// The lines of the file, of all kinds.
    #[serde(default)]
    pub entries: Vec<RawJson>,
}
