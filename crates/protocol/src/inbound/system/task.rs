//! Background work: subagents, shells, monitors, workflows.

use serde::{Deserialize, Serialize};

use super::notice::McpResourceLink;
use crate::open_enum;
use crate::shared::count;

/// `task_started`: background work, a subagent or a slow command began.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskStarted {
    /// The task; equal to `agent_id` for subagents.
    pub task_id: String,
    /// This run of the task; run ids of a task sort by time.
    pub run_id: Option<String>,
    /// The call that started the task.
    pub tool_use_id: Option<String>,
    /// What the task does.
    pub description: String,
    /// The kind of subagent.
    pub subagent_type: Option<String>,
    /// Whether the turn goes on without the task.
    pub is_backgrounded: Option<bool>,
    /// True if a tool call waits for a resumed subagent.
    pub awaited: Option<bool>,
    /// How deep the subagent nests, from 1.
    pub spawn_depth: Option<u64>,
    /// The subagent that started the task.
    pub parent_task_id: Option<String>,
    /// True for a command of a subagent: the subagent hears of its end, not the main agent.
    pub owned_by_subagent: Option<bool>,
    /// The task's kind, such as `local_agent` or `local_bash`.
    pub task_type: Option<String>,
    /// The workflow.
    pub workflow_name: Option<String>,
    /// What the subagent was asked.
    pub prompt: Option<String>,
    /// True if a transcript should not show the task.
    pub skip_transcript: Option<bool>,
    /// True if the task is not to be shown as activity.
    pub ambient: Option<bool>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `task_updated`: the state of a task changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskUpdated {
    /// The task.
    pub task_id: String,
    /// The run.
    pub run_id: Option<String>,
    /// What changed.
    pub patch: TaskPatch,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// What changed about a task.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskPatch {
    /// The task's state.
    pub status: Option<TaskStatus>,
    /// What the task does.
    pub description: Option<String>,
    /// When the task ended, in milliseconds since 1970.
    pub end_time: Option<f64>,
    /// How long the task was paused, in milliseconds.
    pub total_paused_ms: Option<f64>,
    /// Why the task failed.
    pub error: Option<String>,
    /// Whether the turn goes on without the task.
    pub is_backgrounded: Option<bool>,
}

open_enum! {
    /// The state of a task.
    pub enum TaskStatus {
        /// The task has not begun.
        Pending = "pending",
        /// The task runs.
        Running = "running",
        /// The task is done.
        Completed = "completed",
        /// The task failed.
        Failed = "failed",
        /// The task was stopped.
        Killed = "killed",
        /// The task is paused.
        Paused = "paused",
    }
}

/// `task_progress`: a subagent goes on.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskProgress {
    /// The task.
    pub task_id: String,
    /// The run.
    pub run_id: Option<String>,
    /// The call that started the task.
    pub tool_use_id: Option<String>,
    /// What the task is doing.
    pub description: String,
    /// The kind of subagent.
    pub subagent_type: Option<String>,
    /// What the task has used.
    pub usage: TaskUsage,
    /// The tool that the task called last.
    pub last_tool_name: Option<String>,
    /// What the task has done, in a line.
    pub summary: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// What a task has used.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskUsage {
    /// Tokens.
    #[serde(deserialize_with = "count")]
    pub total_tokens: u64,
    /// Tool calls.
    pub tool_uses: u64,
    /// Time, in milliseconds.
    pub duration_ms: f64,
}

/// `task_notification`: a task has ended.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskNotification {
    /// The task.
    pub task_id: String,
    /// The run.
    pub run_id: Option<String>,
    /// The call that started the task.
    pub tool_use_id: Option<String>,
    /// How the task ended.
    pub status: TaskOutcome,
    /// `worker_restart` if a restart ended the task.
    pub reason: Option<String>,
    /// The file with the output of the task; may be empty.
    pub output_file: String,
    /// What the task did.
    pub summary: String,
    /// True if the summary is the subagent's own report, and absent while commands of the subagent still run: it goes on when one ends.
    pub summary_is_report: Option<bool>,
    /// True for a command of a subagent: the subagent hears of its end, not the main agent.
    pub owned_by_subagent: Option<bool>,
    /// What the task used.
    pub usage: Option<TaskUsage>,
    /// Resources that the result points to.
    pub resource_links: Option<Vec<McpResourceLink>>,
    /// What became of a subagent's report.
    pub handback: Option<Handback>,
    /// The report.
    pub handback_report: Option<HandbackReport>,
    /// True if a transcript should not show the task.
    pub skip_transcript: Option<bool>,
    /// True if the task is not to be shown as activity.
    pub ambient: Option<bool>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

open_enum! {
    /// How a task ended.
    pub enum TaskOutcome {
        /// Well.
        Completed = "completed",
        /// The task failed.
        Failed = "failed",
        /// The task was stopped.
        Stopped = "stopped",
    }
}

open_enum! {
    /// What became of a subagent's report.
    pub enum Handback {
        /// The report was handed over.
        Send = "send",
        /// The report was handed over with a warning.
        Flagged = "flagged",
        /// The report was held back.
        Withheld = "withheld",
    }
}

/// A subagent's report.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HandbackReport {
    /// The report.
    pub text: String,
    /// A warning to show above the report.
    pub warning: Option<String>,
    /// The call of the subagent that sent the report.
    pub tool_use_id: Option<String>,
}

/// `background_tasks_changed`: all background tasks there are. Replaces what was said before.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BackgroundTasksChanged {
    /// The tasks.
    #[serde(default)]
    pub tasks: Vec<BackgroundTask>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A background task.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BackgroundTask {
    /// The task.
    pub task_id: String,
    /// The run of the task.
    pub run_id: Option<String>,
    /// The task's kind, such as `local_agent` or `local_bash`.
    pub task_type: String,
    /// The kind of subagent.
    pub subagent_type: Option<String>,
    /// What the task does.
    pub description: String,
    /// The subagent that started the task.
    pub parent_task_id: Option<String>,
    /// True if the task is not to be shown as activity.
    pub ambient: Option<bool>,
    /// True if a tool call waits for the task.
    pub awaited: Option<bool>,
    /// True if the task runs on another machine.
    pub off_host: Option<bool>,
    /// The call that started the task.
    pub tool_use_id: Option<String>,
}

/// `task_summary`: what the turn is doing, in a line.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskSummary {
    /// The line; null when the turn is over.
    pub detail: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `task_list_statuses`: states of the to-do list.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskListStatuses {
    /// The items.
    #[serde(default)]
    pub statuses: Vec<TaskListStatus>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// One item of a to-do list.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskListStatus {
    /// The item.
    pub id: String,
    /// The task's state.
    pub status: TodoStatus,
}

open_enum! {
    /// The state of an item of a to-do list.
    pub enum TodoStatus {
        /// Not begun.
        Pending = "pending",
        /// Under way.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
    }
}
