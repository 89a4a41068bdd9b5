//! `Edit` and `Write`: change and make files.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/edit.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `Edit`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileEditInput {
    /// The file, as an absolute path.
    pub file_path: String,
    /// The text to be replaced.
    pub old_string: String,
    /// The new text.
    pub new_string: String,
    /// Whether to replace each occurrence, not only a single one. The default is false.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub replace_all: Option<bool>,
}

impl FileEditInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(
        file_path: impl Into<String>,
        old_string: impl Into<String>,
        new_string: impl Into<String>,
    ) -> Self {
        Self {
            file_path: file_path.into(),
            old_string: old_string.into(),
            new_string: new_string.into(),
            replace_all: None,
        }
    }
}

/// Input of `Write`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileWriteInput {
    /// The file, as an absolute path.
    pub file_path: String,
    /// The whole new content.
    pub content: String,
}

impl FileWriteInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(file_path: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            file_path: file_path.into(),
            content: content.into(),
        }
    }
}

/// Output of `Edit`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FileEditOutput {
    /// The file.
    pub file_path: String,
    /// The text that was replaced.
    pub old_string: String,
    /// The new text.
    pub new_string: String,
    /// The whole file as it was; null when it was too long to keep.
    pub original_file: Option<String>,
    /// The change as a diff.
    pub structured_patch: Vec<PatchHunk>,
    /// Whether the user altered the edit before allowing it.
    pub user_modified: bool,
    /// Whether each occurrence was replaced.
    pub replace_all: bool,
    /// The change against git, if the CLI computed it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub git_diff: Option<GitDiff>,
    /// Whether the edit was only put aside for review; the file is then as before.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub staged: Option<bool>,
    /// True if the model has not read the file as it was. Seen on the wire, not documented.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content_not_in_model_context: Option<bool>,
}

/// Output of `Write`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FileWriteOutput {
    /// Whether the file is new.
    #[serde(rename = "type")]
    pub kind: FileWriteKind,
    /// The file.
    pub file_path: String,
    /// What was written.
    pub content: String,
    /// The change as a diff; empty for a new file or when it could not be worked out.
    pub structured_patch: Vec<PatchHunk>,
    /// The whole file as it was; null for a new file and when it was too long to keep.
    pub original_file: Option<String>,
    /// The change against git, if the CLI computed it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub git_diff: Option<GitDiff>,
    /// Whether the user altered the content before allowing it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub user_modified: Option<bool>,
    /// Whether the write was only put aside for review; the file is then as before.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub staged: Option<bool>,
}

crate::open_enum! {
    /// What `Write` did.
    pub enum FileWriteKind {
        /// Made a new file.
        Create = "create",
        /// Replaced the content of a file.
        Update = "update",
    }
}

/// One hunk of a diff.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct PatchHunk {
    /// First line in the old file, from 1.
    pub old_start: u64,
    /// How many lines of the old file.
    pub old_lines: u64,
    /// First line in the new file, from 1.
    pub new_start: u64,
    /// How many lines of the new file.
    pub new_lines: u64,
    /// The lines, each with a space, `-` or `+` in front.
    pub lines: Vec<String>,
}

/// The change of one file against git.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GitDiff {
    /// The file, relative to the repository.
    pub filename: String,
    /// Whether git knew the file.
    pub status: GitDiffStatus,
    /// Lines added.
    pub additions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// Lines added and removed.
    pub changes: u64,
    /// The change as a unified diff.
    pub patch: String,
    /// Owner and name on GitHub.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub repository: Option<String>,
}

crate::open_enum! {
    /// Whether git knew a changed file.
    pub enum GitDiffStatus {
        /// The file existed, and was changed.
        Modified = "modified",
        /// The file is new.
        Added = "added",
    }
}
