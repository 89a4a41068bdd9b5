//! `Glob` and `Grep`: find files by name and by content.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/search.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `Glob`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GlobInput {
    /// The glob.
    pub pattern: String,
    /// The directory to look in; absent for the session's.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
}

impl GlobInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: None,
        }
    }
}

/// Output of `Glob`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GlobOutput {
    /// How long the search took, in milliseconds.
    pub duration_ms: f64,
    /// How many paths are given.
    pub num_files: u64,
    /// The paths.
    pub filenames: Vec<String>,
    /// Whether there were more.
    pub truncated: bool,
    /// How many there were in all.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub total_matches: Option<u64>,
    /// Whether `totalMatches` is exact; if false there are at least so many.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub count_is_complete: Option<bool>,
    /// Whether the time limit ended the search.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub timed_out: Option<bool>,
}

/// Input of `Grep`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GrepInput {
    /// The regular expression.
    pub pattern: String,
    /// The file or directory to look in; absent for the session's.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
    /// Which files to look in, as a glob.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub glob: Option<String>,
    /// What to report; `files_with_matches` if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub output_mode: Option<GrepMode>,
    /// How many lines before a match to show.
    #[serde(rename = "-B", skip_serializing_if = "crate::whole::unset")]
    pub before: Option<u64>,
    /// How many lines after a match to show.
    #[serde(rename = "-A", skip_serializing_if = "crate::whole::unset")]
    pub after: Option<u64>,
    /// Short for `context`.
    #[serde(rename = "-C", skip_serializing_if = "crate::whole::unset")]
    pub around: Option<u64>,
    /// How many lines before and after a match to show.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub context: Option<u64>,
    /// Whether to show line numbers; true if absent.
    #[serde(rename = "-n", skip_serializing_if = "crate::whole::unset")]
    pub line_numbers: Option<bool>,
    /// Whether case is ignored.
    #[serde(rename = "-i", skip_serializing_if = "crate::whole::unset")]
    pub ignore_case: Option<bool>,
    /// Whether to show the matching parts of lines only.
    #[serde(rename = "-o", skip_serializing_if = "crate::whole::unset")]
    pub only_matching: Option<bool>,
    /// Which files to look in, as a file type that ripgrep knows.
    #[serde(rename = "type", skip_serializing_if = "crate::whole::unset")]
    pub kind: Option<String>,
    /// How many lines or entries to give.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub head_limit: Option<u64>,
    /// How many lines or entries to skip first.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub offset: Option<u64>,
    /// Whether a match may go over several lines.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub multiline: Option<bool>,
}

impl GrepInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: None,
            glob: None,
            output_mode: None,
            before: None,
            after: None,
            around: None,
            context: None,
            line_numbers: None,
            ignore_case: None,
            only_matching: None,
            kind: None,
            head_limit: None,
            offset: None,
            multiline: None,
        }
    }
}

crate::open_enum! {
    /// What `Grep` reports.
    pub enum GrepMode {
        /// The matching lines.
        Content = "content",
        /// The files that match.
        FilesWithMatches = "files_with_matches",
        /// How many matches each file has.
        Count = "count",
    }
}

/// Output of `Grep`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GrepOutput {
    /// What the output lists.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mode: Option<GrepMode>,
    /// How many files are given.
    pub num_files: u64,
    /// The files.
    pub filenames: Vec<String>,
    /// The lines or counts.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content: Option<String>,
    /// How many lines are given.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub num_lines: Option<u64>,
    /// How many matches there were.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub num_matches: Option<u64>,
    /// How many files there were in all.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub total_files: Option<u64>,
    /// How many lines there were in all.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub total_lines: Option<u64>,
    /// The limit that cut the result.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub applied_limit: Option<u64>,
    /// How much was skipped first.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub applied_offset: Option<u64>,
    /// Whether the time limit ended the search.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub timed_out: Option<bool>,
}
