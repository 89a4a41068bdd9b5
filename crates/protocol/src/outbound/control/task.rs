//! Tasks in the background.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/task.toml: change that instead.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RawJson;

crate::outbound::control::request! {
    /// Stops a task. Succeeds for a task that there is not, too.
    pub struct StopTask {
        required {
            /// The task.
            task_id: "task_id" => String,
        }
    }
}

crate::outbound::control::request! {
    /// Puts what runs into the background.
    pub struct BackgroundTasks {
        optional {
            /// Only what this call started.
            tool_use_id: "tool_use_id" => String,
        }
    }
}

/// Whether anything was put into the background.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BackgroundTasksReply {
    /// Whether; absent if no particular call was asked for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub backgrounded: Option<bool>,
}

crate::outbound::control::request! {
    /// Reads what a shell task has put out.
    pub struct GetTaskOutput {
        required {
            /// The task.
            task_id: "task_id" => String,
        }
        optional {
            /// Sends the answer only to those who look on at the moment.
            live_reply: "liveReply" => bool,
            /// Goes on sending.
            follow: "follow" => bool,
            /// Only what came after this.
            after: "after" => String,
            /// Only what came before this.
            before: "before" => String,
        }
    }
}

/// What a task has put out.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetTaskOutputReply {
    /// The output, or its end.
    pub output: String,
    /// How much there is.
    pub total_bytes: u64,
    /// Whether this is not all.
    pub truncated: bool,
    /// The task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_id: Option<String>,
    /// What became of following.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub follow: Option<FollowState>,
    /// The messages of an agent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub messages: Option<TaskMessages>,
    /// Whether the task has ended.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub done: Option<bool>,
    /// The last piece, to go on from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub last: Option<String>,
    /// Whether there is more.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub more: Option<bool>,
}

/// What became of following a task.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FollowState {
    /// Whether the output is followed.
    pub status: FollowStatus,
    /// Why the output is not followed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// Whether it can be asked for again.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub may_follow_again: Option<bool>,
}

crate::open_enum! {
    /// What became of following a task.
    pub enum FollowStatus {
        /// The output is followed.
        Following = "following",
        /// The output cannot be followed.
        Unavailable = "unavailable",
        /// The output is no longer followed.
        FollowStopped = "follow_stopped",
    }
}

/// The messages of an agent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskMessages {
    /// The messages, as they would be on stdout.
    pub frames: Vec<RawJson>,
    /// What they come after.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub after: Option<String>,
    /// The last of them.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub last: Option<String>,
    /// How many came before.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub earlier: Option<u64>,
    /// Whether they are sent as they come.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub live: Option<bool>,
    /// Whether what was sent before is void.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reset: Option<bool>,
}

crate::outbound::control::request! {
    /// Runs a command as a task, without the model. Permission rules apply.
    pub struct StartShellTask {
        required {
            /// The program: one word of the shell.
            command: "command" => String,
        }
        optional {
            /// The arguments of the command. The shell expands nothing in them.
            args: "args" => Vec<String>,
            /// Where to run it; the session's directory by default.
            cwd: "cwd" => String,
            /// Environment variables to add.
            env: "env" => BTreeMap<String, String>,
            /// How long it may run, in milliseconds.
            timeout_ms: "timeout_ms" => u64,
            /// What it does, for people.
            description: "description" => String,
        }
    }
}

crate::wire_enum! {
    /// What became of a command.
    pub enum StartShellTaskReply by "status" {
        /// The command runs.
        "started" => Started(ShellTaskStarted),
        /// The command was refused.
        "denied" => Denied(ShellTaskDenied),
    }
}

/// The command runs.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ShellTaskStarted {
    /// The task.
    pub task_id: String,
}

/// The command was refused.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ShellTaskDenied {
    /// The reason.
    pub message: String,
}
