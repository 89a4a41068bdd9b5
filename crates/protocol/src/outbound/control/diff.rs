//! What changed in the working directory.

use serde::{Deserialize, Serialize};

use super::request;
use crate::open_enum;
use crate::wire_enum;

request! {
    /// Shows what changed in the working directory, at most 50 files of at most 1 MB.
    pub struct GetWorkspaceDiff {}
}

/// What changed in the working directory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetWorkspaceDiffReply {
    /// The changes; `None` if there is nothing to compare with.
    pub diff: Option<WorkspaceDiff>,
    /// Why there is nothing to compare with.
    pub no_diff_reason: Option<NoDiffReason>,
}

open_enum! {
    /// Why there is nothing to compare with.
    pub enum NoDiffReason {
        /// The directory is not a repository.
        NoRepository = "no-repository",
        /// git does not trust the repository.
        RepositoryRefused = "repository-refused",
        /// Another program works on the repository.
        RepositoryBusy = "repository-busy",
        /// git failed.
        DiffFailed = "diff-failed",
        /// The root is another directory by now.
        RootMoved = "root-moved",
    }
}

/// The changes.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkspaceDiff {
    /// How much changed.
    pub stats: DiffStats,
    /// How much changed, by file.
    pub per_file_stats: Vec<FileDiffStats>,
    /// How many files are not listed.
    pub omitted: Option<DiffOmitted>,
    /// The changes as text, by file.
    pub hunks: Vec<FileHunks>,
    /// Files whose text in `hunks` is cut.
    pub line_capped: Option<Vec<String>>,
    /// Files that are too large to be shown.
    pub skipped_large: Vec<String>,
    /// Files that may not be shown.
    pub restricted: Vec<String>,
    /// What is compared with what.
    pub source: DiffSource,
    /// The root, for `read_file`.
    pub root_id: Option<String>,
}

/// How much changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiffStats {
    /// How many files.
    pub files_count: u64,
    /// How many lines were added.
    pub lines_added: u64,
    /// How many lines were removed.
    pub lines_removed: u64,
}

/// How much changed in a file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FileDiffStats {
    /// The file.
    pub path: String,
    /// How many lines were added.
    pub added: u64,
    /// How many lines were removed.
    pub removed: u64,
    /// Whether the file is binary.
    pub is_binary: bool,
    /// Whether git does not track the file.
    pub is_untracked: bool,
    /// What happened to the file.
    pub status: Option<FileDiffStatus>,
    /// How the file differs from the last commit, whatever `status` compares with: a word of `status`, or `none`.
    pub uncommitted_status: Option<String>,
    /// The path before the change.
    pub previous_path: Option<String>,
    /// The path after the change.
    pub new_path: Option<String>,
}

open_enum! {
    /// What happened to a file.
    pub enum FileDiffStatus {
        /// The file was added.
        Added = "added",
        /// The file was changed.
        Modified = "modified",
        /// The file was removed.
        Removed = "removed",
        /// The file was renamed.
        Renamed = "renamed",
        /// The file was copied.
        Copied = "copied",
    }
}

/// How many files are not listed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DiffOmitted {
    /// How many files.
    pub files: u64,
    /// Whether the number is exact.
    pub exact: bool,
}

/// The changes of a file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileHunks {
    /// The file.
    pub path: String,
    /// The changes.
    pub hunks: Vec<DiffHunk>,
}

/// One change of a file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiffHunk {
    /// The first line of the old text, from 1.
    pub old_start: u64,
    /// How many lines the old text has.
    pub old_lines: u64,
    /// The first line of the new text, from 1.
    pub new_start: u64,
    /// How many lines the new text has.
    pub new_lines: u64,
    /// The lines, each with ` `, `+` or `-` in front.
    pub lines: Vec<String>,
}

wire_enum! {
    /// What is compared with what.
    pub enum DiffSource by "kind" {
        /// The files are compared with the last commit.
        "working-tree" => WorkingTree(WorkingTreeDiff),
        /// The files are compared with the commit at which the branch began.
        "branch" => Branch(BranchDiff),
    }
}

/// The files are compared with the last commit.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WorkingTreeDiff {}

/// The files are compared with the commit at which the branch began.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BranchDiff {
    /// The branch that this branch began from.
    pub base_branch: String,
    /// The commit that this branch began at.
    pub base_ref: String,
}
