//! `Bash`: runs a shell command.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/bash.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Input of `Bash`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BashInput {
    /// The command line.
    pub command: String,
    /// How long the command may run, in milliseconds; at most 600000 in the foreground.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub timeout: Option<u64>,
    /// What the command does, in a few words.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub description: Option<String>,
    /// Whether the model goes on without waiting for the command.
    #[serde(rename = "run_in_background", skip_serializing_if = "crate::whole::unset")]
    pub run_in_background: Option<bool>,
    /// Whether to run the command outside of the sandbox, if settings allow this.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub dangerously_disable_sandbox: Option<bool>,
}

impl BashInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            timeout: None,
            description: None,
            run_in_background: None,
            dangerously_disable_sandbox: None,
        }
    }
}

/// Output of `Bash`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BashOutput {
    /// What the command wrote to stdout, cut if long.
    pub stdout: String,
    /// What the command wrote to stderr.
    pub stderr: String,
    /// Whether the command was stopped before its end.
    pub interrupted: bool,
    /// Whether `stdout` is an image.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_image: Option<bool>,
    /// The file with the raw output, if that was kept.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub raw_output_path: Option<String>,
    /// The id of the task, if the command runs in the background.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub background_task_id: Option<String>,
    /// Whether the user moved the command to the background.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub backgrounded_by_user: Option<bool>,
    /// The timeout at which the command was moved to the background, in milliseconds.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub timed_out_after_ms: Option<u64>,
    /// A note to the model that a `cd` in the command did not change the session's directory.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub background_cwd_hint: Option<String>,
    /// Whether the command is stopped when its caller is done, so that no notification will follow.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub background_ends_with_final_response: Option<bool>,
    /// Whether the end of the command wakes the subagent that started it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub background_wakes_owner: Option<bool>,
    /// Whether the command ran outside of the sandbox.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub dangerously_disable_sandbox: Option<bool>,
    /// What an exit code that is no failure means, such as that nothing was found.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub return_code_interpretation: Option<String>,
    /// Whether such a command writes nothing when it succeeds.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub no_output_expected: Option<bool>,
    /// Content blocks to be shown instead of the text.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub structured_content: Option<Vec<RawJson>>,
    /// The file with the whole output, if the output was too long.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub persisted_output_path: Option<String>,
    /// How long the whole output is, in bytes.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub persisted_output_size: Option<u64>,
    /// A note to the model about files that it had read and that the command changed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub stale_read_file_state_hint: Option<String>,
    /// A note to the model that GitHub refused for too many requests.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub gh_rate_limit_hint: Option<String>,
    /// What the command did to a git repository or on GitHub, as far as the CLI could tell.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub git_operation: Option<GitOperation>,
    /// Where the output of the background task is, on the machine that keeps the command.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub background_output_path: Option<String>,
    /// Whether a plugin moved the command to the background.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub backgrounded_by_turn_abort: Option<bool>,
    /// Whether the command was moved to the background for a message to the model.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub backgrounded_to_deliver_message: Option<bool>,
    /// Whether that message came from a subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub backgrounded_for_agent_report: Option<bool>,
    /// Whether the timeout was shortened for a subagent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub subagent_cap_applied: Option<bool>,
    /// Whether `stdout` has the beginning and the end of a long output.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub stdout_holds_output_end: Option<bool>,
    /// A note to the model that the kernel killed a process for lack of memory.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub memory_limit_note: Option<String>,
    /// A line of advice to the model.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub triggered_note: Option<String>,
    /// The files that the command changed, as diffs.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub bash_edit_diff: Option<RawJson>,
    /// The images that the model got with the result.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub viewed_image_paths: Option<Vec<String>>,
}

/// What a command did to a git repository.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GitOperation {
    /// A commit of the command.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub commit: Option<GitCommit>,
    /// A branch that the command pushed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub push: Option<GitPush>,
    /// A branch that the command merged or rebased.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub branch: Option<GitBranchChange>,
    /// A pull request that the command worked on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub pr: Option<GitPullRequest>,
}

/// A commit that a command made.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GitCommit {
    /// The commit's hash.
    pub sha: String,
    /// How the commit came about.
    pub kind: GitCommitKind,
    /// The branch of the commit.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub branch: Option<String>,
}

crate::open_enum! {
    /// How a commit came about.
    pub enum GitCommitKind {
        /// By an ordinary commit.
        Committed = "committed",
        /// By amending the last one.
        Amended = "amended",
        /// By a cherry-pick.
        CherryPicked = "cherry-picked",
    }
}

/// A push.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GitPush {
    /// The branch that was pushed.
    pub branch: String,
}

/// A merge or rebase.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GitBranchChange {
    /// The other branch or commit.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Which of the two.
    pub action: GitBranchAction,
}

crate::open_enum! {
    /// What happened to a branch.
    pub enum GitBranchAction {
        /// The branch was merged.
        Merged = "merged",
        /// The branch was rebased.
        Rebased = "rebased",
    }
}

/// A pull request a command worked on.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GitPullRequest {
    /// The pull request's number.
    pub number: u64,
    /// The pull request's address.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub url: Option<String>,
    /// What was done.
    pub action: PullRequestAction,
}

crate::open_enum! {
    /// What was done to a pull request.
    pub enum PullRequestAction {
        /// Opened.
        Created = "created",
        /// Edited.
        Edited = "edited",
        /// Merged.
        Merged = "merged",
        /// Commented on.
        Commented = "commented",
        /// Closed.
        Closed = "closed",
        /// Opened again.
        Reopened = "reopened",
        /// Marked ready for review.
        Ready = "ready",
        /// Made a draft.
        Draft = "draft",
        /// Set to be merged when all checks pass.
        AutoMergeEnabled = "auto-merge-enabled",
        /// No longer set to be merged by itself.
        AutoMergeDisabled = "auto-merge-disabled",
    }
}
