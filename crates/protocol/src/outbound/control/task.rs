//! Tasks in the background.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/task.toml: change that instead.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RawJson;

crate::outbound::control::request! {
    /// Stops a task. The request succeeds even if there is no such task.
    pub struct StopTask {
        required {
            /// The task.
            task_id: "task_id" => String,
        }
    }
}

crate::outbound::control::request! {
    /// Moves running tools into the background.
    pub struct BackgroundTasks {
        optional {
            /// Moves only the tool of this call.
            tool_use_id: "tool_use_id" => String,
        }
    }
}

/// Whether the CLI moved a tool into the background.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BackgroundTasksReply {
    /// Whether the tool runs in the background now. Absent if the request named no call.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub backgrounded: Option<bool>,
}

crate::outbound::control::request! {
    /// Reads the output of a task.
    pub struct GetTaskOutput {
        required {
            /// The task.
            task_id: "task_id" => String,
        }
        optional {
            /// Sends the reply only to clients that are connected at the moment.
            live_reply: "liveReply" => bool,
            /// Also sends the output that comes later.
            follow: "follow" => bool,
            /// Reads only the output behind this point, which an earlier reply named as `last`.
            after: "after" => String,
            /// Reads only the output before this point.
            before: "before" => String,
        }
    }
}

/// The output of a task.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetTaskOutputReply {
    /// The output, or its end.
    pub output: String,
    /// The size of the whole output, in bytes.
    pub total_bytes: u64,
    /// Whether the reply lacks a part of the output.
    pub truncated: bool,
    /// The task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_id: Option<String>,
    /// Whether later output will be sent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub follow: Option<FollowState>,
    /// The messages of the task, if the task is an agent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub messages: Option<TaskMessages>,
    /// Whether the task has ended.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub done: Option<bool>,
    /// The point up to which the output was read, for `after`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub last: Option<String>,
    /// Whether more output can be read.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub more: Option<bool>,
}

/// Whether the CLI sends the later output of a task.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FollowState {
    /// Whether later output is sent.
    pub status: FollowStatus,
    /// Why later output is not sent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// Whether another request for later output may succeed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub may_follow_again: Option<bool>,
}

crate::open_enum! {
    /// Whether the CLI sends the later output of a task.
    pub enum FollowStatus {
        /// The CLI sends later output.
        Following = "following",
        /// The CLI cannot send later output.
        Unavailable = "unavailable",
        /// The CLI no longer sends later output.
        FollowStopped = "follow_stopped",
    }
}

/// The messages of an agent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskMessages {
    /// The messages, as they would be on stdout.
    pub frames: Vec<RawJson>,
    /// The point behind which the messages came.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub after: Option<String>,
    /// The point up to which messages were read, for `after`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub last: Option<String>,
    /// How many messages came before these.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub earlier: Option<u64>,
    /// Whether later messages are sent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub live: Option<bool>,
    /// Whether these messages replace all that were sent before.
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
            /// The directory to run the command in; the session's directory by default.
            cwd: "cwd" => String,
            /// Environment variables to add.
            env: "env" => BTreeMap<String, String>,
            /// How long the command may run, in milliseconds.
            timeout_ms: "timeout_ms" => u64,
            /// What the command does, in words for people.
            description: "description" => String,
        }
    }
}

crate::wire_enum! {
    /// Whether the command was started.
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
    /// The id of the task.
    pub task_id: String,
}

/// The command was refused.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ShellTaskDenied {
    /// Why the command was refused.
    pub message: String,
}
