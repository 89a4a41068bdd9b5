//! `TaskCreate`, `TaskGet`, `TaskUpdate`, `TaskList`: the list of tasks that replaces `TodoWrite`; and `TaskStop`.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/task.toml: change that instead.

use serde::{Deserialize, Serialize};

use super::todo::TodoStatus;
use crate::RawJson;

/// Input of `TaskCreate`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct TaskCreateInput {
    /// A short title.
    pub subject: String,
    /// What is to be done.
    pub description: String,
    /// The title while the task is worked on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub active_form: Option<String>,
    /// An object of the model's choice, kept with the task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub metadata: Option<RawJson>,
}

impl TaskCreateInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(subject: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            description: description.into(),
            active_form: None,
            metadata: None,
        }
    }
}

/// Output of `TaskCreate`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskCreateOutput {
    /// The new task.
    pub task: CreatedTask,
}

/// A task that was just made.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CreatedTask {
    /// The task's id.
    pub id: String,
    /// The task's title.
    pub subject: String,
    /// The description of the task, as it was saved.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub description: Option<String>,
}

/// Input of `TaskGet`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct TaskGetInput {
    /// The task.
    pub task_id: String,
}

impl TaskGetInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self {
            task_id: task_id.into(),
        }
    }
}

/// Output of `TaskGet`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskGetOutput {
    /// The task; null if there is none of that id.
    pub task: Option<Task>,
}

/// One task of the list.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The task's id.
    pub id: String,
    /// The task's title.
    pub subject: String,
    /// What is to be done.
    pub description: String,
    /// The state of the task.
    pub status: TodoStatus,
    /// Ids of the tasks that wait for this one.
    pub blocks: Vec<String>,
    /// Ids of the tasks that this one waits for.
    pub blocked_by: Vec<String>,
}

/// Input of `TaskUpdate`. What is absent does not change.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct TaskUpdateInput {
    /// The task.
    pub task_id: String,
    /// The task's new title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub subject: Option<String>,
    /// The task's new description.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub description: Option<String>,
    /// The new title of the task while it is worked on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub active_form: Option<String>,
    /// The new state of the task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub status: Option<TodoStatus>,
    /// Ids of more tasks that wait for this one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub add_blocks: Option<Vec<String>>,
    /// Ids of more tasks that this one waits for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub add_blocked_by: Option<Vec<String>>,
    /// The agent that has the task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub owner: Option<String>,
    /// Keys to merge into what is kept with the task; null takes one out.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub metadata: Option<RawJson>,
}

impl TaskUpdateInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self {
            task_id: task_id.into(),
            subject: None,
            description: None,
            active_form: None,
            status: None,
            add_blocks: None,
            add_blocked_by: None,
            owner: None,
            metadata: None,
        }
    }
}

/// Output of `TaskUpdate`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct TaskUpdateOutput {
    /// Whether the task was changed.
    pub success: bool,
    /// The task.
    pub task_id: String,
    /// What was changed.
    pub updated_fields: Vec<String>,
    /// Why the task was not changed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error: Option<String>,
    /// The state before and after, if the state changed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub status_change: Option<TaskStatusChange>,
}

/// How far a task was and is.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskStatusChange {
    /// The state before.
    pub from: String,
    /// The state after.
    pub to: String,
}

/// Input of `TaskList`: nothing.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskListInput {}

/// Output of `TaskList`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskListOutput {
    /// The tasks.
    pub tasks: Vec<TaskListEntry>,
}

/// One line of the list of tasks.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct TaskListEntry {
    /// The task's id.
    pub id: String,
    /// The task's title.
    pub subject: String,
    /// The state of the task.
    pub status: TodoStatus,
    /// The agent that has the task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub owner: Option<String>,
    /// Ids of the tasks that this one waits for.
    pub blocked_by: Vec<String>,
}

/// Input of `TaskStop`: ends a background task, which is no task of the list.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskStopInput {
    /// The background task, or a background agent by id or name.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_id: Option<String>,
    /// Older name of `task_id`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub shell_id: Option<String>,
}

/// Output of `TaskStop`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TaskStopOutput {
    /// The result, for people.
    pub message: String,
    /// The background task.
    pub task_id: String,
    /// The task's kind.
    pub task_type: String,
    /// The command of the task, or what the task was about.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub command: Option<String>,
}
