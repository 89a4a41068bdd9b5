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
        /// The directory is no repository.
        NoRepository = "no-repository",
        /// git does not trust the repository.
        RepositoryRefused = "repository-refused",
        /// Something else works on the repository.
        RepositoryBusy = "repository-busy",
        /// git failed.
        DiffFailed = "diff-failed",
        /// The root is another one by now.
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
    /// How much is not listed.
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
    /// Files.
    pub files_count: u64,
    /// Lines that came.
    pub lines_added: u64,
    /// Lines that went.
    pub lines_removed: u64,
}

/// How much changed in a file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FileDiffStats {
    /// The file.
    pub path: String,
    /// Lines that came.
    pub added: u64,
    /// Lines that went.
    pub removed: u64,
    /// Whether it is no text.
    pub is_binary: bool,
    /// Whether git does not know it.
    pub is_untracked: bool,
    /// What happened to it.
    pub status: Option<FileDiffStatus>,
    /// How the file differs from the last commit, whatever `status` compares with: a word of `status`, or `none`.
    pub uncommitted_status: Option<String>,
    /// What it was called before.
    pub previous_path: Option<String>,
    /// What it is called now.
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

/// How much is not listed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DiffOmitted {
    /// Files.
    pub files: u64,
    /// Whether that is the exact number.
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
    /// Where it was, from 1.
    pub old_start: u64,
    /// How many lines it had.
    pub old_lines: u64,
    /// Where it is, from 1.
    pub new_start: u64,
    /// How many lines it has.
    pub new_lines: u64,
    /// The lines, each with ` `, `+` or `-` in front.
    pub lines: Vec<String>,
}

wire_enum! {
    /// What is compared with what.
    pub enum DiffSource by "kind" {
        /// The files with the last commit.
        "working-tree" => WorkingTree(WorkingTreeDiff),
        /// The files with the point where the branch began.
        "branch" => Branch(BranchDiff),
    }
}

/// The files are compared with the last commit.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WorkingTreeDiff {}

/// The files are compared with the point where the branch began.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BranchDiff {
    /// The branch that it began from.
    pub base_branch: String,
    /// The commit that it began at.
    pub base_ref: String,
}
