//! The turn that runs and the prompts that wait.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/turn.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Stops the turn. The result of the turn is then an error with `terminal_reason` `aborted_streaming` or `aborted_tools`.
    /// Subagents are stopped; shells in the background run on.
    pub struct Interrupt {
        optional {
            /// Also takes back the prompts that wait. The reply lists them.
            cancel_queued: "cancel_queued" => bool,
            /// Why the turn is stopped, which tools may depend on. The CLI knows `interrupt`, `user-cancel`, `remote-cancel` and
            /// others.
            reason: "reason" => String,
            /// Stops the turn so that a waiting prompt is taken at once.
            send_now: "send_now" => bool,
            /// The waiting prompt to take, for `send_now`.
            message_uuid: "message_uuid" => String,
            /// Stops only a turn that answers one of these prompts.
            for_user_message_uuids: "for_user_message_uuids" => Vec<String>,
            /// Leaves subagents in the background alone.
            spare_background_tasks: "spare_background_tasks" => bool,
            /// The process that this is meant for, when several take turns.
            worker_epoch: "worker_epoch" => u64,
        }
    }
}

/// What became of the prompts that waited when the turn was stopped. Older CLIs reply with an empty object.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct InterruptReply {
    /// Prompts that still wait.
    #[serde(default)]
    pub still_queued: Vec<String>,
    /// Prompts that were taken back.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cancelled: Option<Vec<String>>,
    /// Prompts of the stopped turn that wait again.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub put_back: Option<Vec<String>>,
    /// What became of `send_now`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub send_now: Option<SendNowOutcome>,
    /// What became of the turn.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub turn: Option<InterruptedTurn>,
}

crate::open_enum! {
    /// What became of `send_now`.
    pub enum SendNowOutcome {
        /// The turn was stopped.
        Stopped = "stopped",
        /// The prompt is on its way already.
        Delivering = "delivering",
        /// No prompt waits.
        NothingWaiting = "nothing_waiting",
    }
}

crate::open_enum! {
    /// What became of an interrupted turn.
    pub enum InterruptedTurn {
        /// The turn was stopped.
        Stopped = "stopped",
        /// No turn was running.
        Idle = "idle",
        /// Another turn ran, and continues.
        Spared = "spared",
    }
}

crate::outbound::control::request! {
    /// Takes back a prompt that waits.
    pub struct CancelAsyncMessage {
        required {
            /// The prompt's uuid.
            message_uuid: "message_uuid" => String,
        }
    }
}

/// Whether a prompt was taken back.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CancelAsyncMessageReply {
    /// Whether the prompt was taken back; false if it did not wait, or no longer waited.
    pub cancelled: bool,
    /// The prompt, if no turn can have read it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub message_uuid: Option<String>,
}

crate::outbound::control::request! {
    /// Ends the session: stops what runs and lets the process exit.
    pub struct EndSession {
        optional {
            /// Why the session ends, for the log.
            reason: "reason" => String,
        }
    }
}

crate::outbound::control::request! {
    /// Says whether anybody reads the session's messages as they come. Otherwise the CLI may leave out what is only for such
    /// readers.
    pub struct SetHasSubscribers {
        required {
            /// Whether anybody reads along; `None` if this is not known.
            has_subscribers: "has_subscribers" => Option<bool>,
        }
    }
}

crate::outbound::control::request! {
    /// Says whether the driving program holds back a prompt until the turn ends. The result then comes a little sooner.
    pub struct SetMessageWaiting {
        required {
            /// Whether a prompt is held back.
            waiting: "waiting" => bool,
        }
    }
}

crate::outbound::control::request! {
    /// Says that somebody is typing a prompt, so that the CLI can get ready. Send it at the first key, and then about every 10 s.
    pub struct PromptDraftActivity {}
}

crate::outbound::control::request! {
    /// Pauses suggestions of prompts.
    pub struct SetPromptSuggestionsPaused {
        required {
            /// Whether suggestions are paused.
            paused: "paused" => bool,
        }
    }
}
