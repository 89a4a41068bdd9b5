//! `TodoWrite`: the model's own list of what is left to do.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/todo.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `TodoWrite`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TodoWriteInput {
    /// The whole new list.
    pub todos: Vec<Todo>,
}

impl TodoWriteInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(todos: Vec<Todo>) -> Self {
        Self { todos }
    }
}

/// Output of `TodoWrite`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct TodoWriteOutput {
    /// The list before.
    pub old_todos: Vec<Todo>,
    /// The list now.
    pub new_todos: Vec<Todo>,
}

/// One thing to do.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// The state of the item.
    pub status: TodoStatus,
    /// The text while the item is worked on.
    pub active_form: String,
}

impl Todo {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(content: impl Into<String>, status: TodoStatus, active_form: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            status,
            active_form: active_form.into(),
        }
    }
}

crate::open_enum! {
    /// How far a thing to do is.
    pub enum TodoStatus {
        /// Not begun.
        Pending = "pending",
        /// Being done.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
        /// Given up; only for tasks of `TaskUpdate`.
        Deleted = "deleted",
    }
}
