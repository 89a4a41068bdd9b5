//! `EnterWorktree` and `ExitWorktree`.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/worktree.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `EnterWorktree`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct EnterWorktreeInput {
    /// A name for a new worktree.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub name: Option<String>,
    /// A worktree that is there already.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
}

/// Output of `EnterWorktree`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct EnterWorktreeOutput {
    /// The path of the worktree.
    pub worktree_path: String,
    /// The worktree's branch.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub worktree_branch: Option<String>,
    /// The result, for people.
    pub message: String,
    /// What the change means for the sandbox.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub sandbox_note: Option<String>,
}

/// Input of `ExitWorktree`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ExitWorktreeInput {
    /// What to do with the worktree.
    pub action: WorktreeExit,
    /// Whether changes in the worktree may be thrown away.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub discard_changes: Option<bool>,
}

impl ExitWorktreeInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(action: WorktreeExit) -> Self {
        Self {
            action,
            discard_changes: None,
        }
    }
}

/// Output of `ExitWorktree`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ExitWorktreeOutput {
    /// What was done with the worktree.
    pub action: WorktreeExit,
    /// Where the session was before it entered the worktree.
    pub original_cwd: String,
    /// The directory of the worktree.
    pub worktree_path: String,
    /// The worktree's branch.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub worktree_branch: Option<String>,
    /// The tmux session that belongs to the worktree.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub tmux_session_name: Option<String>,
    /// How many changed files were thrown away.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub discarded_files: Option<u64>,
    /// How many commits were thrown away.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub discarded_commits: Option<u64>,
    /// The result, for people.
    pub message: String,
    /// Where the session is now, if that differs from where it was.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub restored_cwd: Option<String>,
    /// Whether the directory from before is gone.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub original_cwd_missing: Option<bool>,
    /// How to get the work back, if a plugin removed the worktree.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub release_note: Option<String>,
    /// What the change means for the sandbox.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub sandbox_note: Option<String>,
}

crate::open_enum! {
    /// What becomes of a worktree that the session leaves.
    pub enum WorktreeExit {
        /// The worktree stays.
        Keep = "keep",
        /// The worktree and its branch are removed.
        Remove = "remove",
    }
}
