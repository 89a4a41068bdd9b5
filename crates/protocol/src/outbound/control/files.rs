//! Files and directories.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/files.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Restores files to what they were when a prompt was sent. The session needs file checkpointing.
    pub struct RewindFiles {
        required {
            /// The prompt's uuid.
            user_message_id: "user_message_id" => String,
        }
        optional {
            /// Changes no file, and reports what would change.
            dry_run: "dry_run" => bool,
        }
    }
}

/// What was changed, or on a dry run would be.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RewindFilesReply {
    /// Whether the files can be restored.
    pub can_rewind: bool,
    /// Why the files were not restored.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error: Option<String>,
    /// The files that change.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub files_changed: Option<Vec<String>>,
    /// How many lines are added.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub insertions: Option<u64>,
    /// How many lines are removed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub deletions: Option<u64>,
    /// How many files were not restored because they are links now, or otherwise not safe to write. Absent on a dry run.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub skipped_links: Option<u64>,
}

crate::outbound::control::request! {
    /// Reads a file that the session may read.
    pub struct ReadFile {
        required {
            /// The file.
            path: "path" => String,
        }
        optional {
            /// The most bytes to read.
            max_bytes: "max_bytes" => u64,
            /// The encoding of the reply; text by default.
            encoding: "encoding" => FileEncoding,
            /// What the path starts from.
            anchor: "anchor" => FileAnchor,
            /// The offset of the first byte to read.
            offset: "offset" => u64,
            /// Says that the file is for an upload. The CLI then refuses a file that looks like a secret.
            for_upload: "for_upload" => bool,
            /// Sends the reply only to clients that are connected at the moment.
            live_reply: "liveReply" => bool,
        }
    }
}

crate::shared::closed_enum::closed_enum! {
    /// How a reply has the contents of a file.
    #[non_exhaustive]
    pub enum FileEncoding {
        /// As text; what is not UTF-8 is replaced.
        Utf8 = "utf-8",
        /// In base64.
        Base64 = "base64",
    }
}

crate::wire_enum! {
    /// What a path starts from.
    pub enum FileAnchor by "kind" {
        /// The project.
        "workspace_root" => WorkspaceRoot(WorkspaceRootAnchor),
        /// The root of the last `get_workspace_diff`.
        "diff_root" => DiffRoot(DiffRootAnchor),
        /// A repository.
        "repo" => Repo(RepoAnchor),
        /// The path, as it is.
        "as_written" => AsWritten(AsWrittenAnchor),
    }
}

/// A path in the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WorkspaceRootAnchor {}

/// A path in the root of the last `get_workspace_diff`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DiffRootAnchor {
    /// The id of that root. The CLI refuses the request if the root is another one by now.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub root_id: Option<String>,
}

/// A path in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RepoAnchor {
    /// The repository.
    pub repo: String,
}

impl RepoAnchor {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(repo: impl Into<String>) -> Self {
        Self { repo: repo.into() }
    }
}

/// A path as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AsWrittenAnchor {
    /// The directories in one of which the path must be.
    pub within: Vec<String>,
}

impl AsWrittenAnchor {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(within: Vec<String>) -> Self {
        Self { within }
    }
}

/// A file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReadFileReply {
    /// The file's contents.
    pub contents: String,
    /// The absolute path of the file.
    pub abs_path: String,
    /// Whether the file has more than these contents.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub truncated: Option<bool>,
    /// The encoding of the contents; text if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub encoding: Option<String>,
    /// Whether bytes were replaced because they are no text.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub lossy: Option<bool>,
    /// The anchor of the path.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub anchor: Option<String>,
    /// The offset of the first byte of the contents.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub offset: Option<u64>,
    /// How many bytes of the file the contents are.
    #[serde(rename = "read_bytes", skip_serializing_if = "crate::whole::unset")]
    pub read_bytes: Option<u64>,
    /// How many bytes the file has.
    #[serde(rename = "total_bytes", skip_serializing_if = "crate::whole::unset")]
    pub total_bytes: Option<u64>,
    /// The file's version.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub etag: Option<String>,
    /// Whether the CLI looked for secrets in the file.
    #[serde(rename = "upload_screened", skip_serializing_if = "crate::whole::unset")]
    pub upload_screened: Option<bool>,
    /// The path of the request.
    #[serde(rename = "requested_path", skip_serializing_if = "crate::whole::unset")]
    pub requested_path: Option<String>,
}

crate::outbound::control::request! {
    /// Lists a directory of the project.
    pub struct ListDirectory {
        required {
            /// The directory, from the project's root, with `/`; empty for the root.
            path: "path" => String,
        }
    }
}

/// The entries of a directory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListDirectoryReply {
    /// The absolute path of the directory.
    pub abs_path: String,
    /// The entries of the directory.
    pub entries: Vec<DirectoryEntry>,
    /// Whether the directory has more entries than these.
    pub truncated: bool,
}

/// One entry of a directory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DirectoryEntry {
    /// The entry's name.
    pub name: String,
    /// Whether the entry is a directory.
    pub is_directory: bool,
    /// Whether the entry is a link.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_symlink: Option<bool>,
    /// Whether the entry is neither a file nor a directory nor a link.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_special: Option<bool>,
}

crate::outbound::control::request! {
    /// Suggests files for a mention.
    pub struct FileSuggestions {
        required {
            /// The text that was typed so far.
            query: "query" => String,
        }
    }
}

/// Files that may be meant.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileSuggestionsReply {
    /// The files, best first.
    pub suggestions: Vec<FileSuggestion>,
    /// The directory that the paths are relative to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cwd: Option<String>,
}

/// A file that may be meant.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileSuggestion {
    /// The file.
    pub path: String,
    /// How well the file fits the text; less is better.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub score: Option<f64>,
}

crate::outbound::control::request! {
    /// Tells the CLI that the model has read a file. The model can then edit the file without reading it again.
    pub struct SeedReadState {
        required {
            /// The file.
            path: "path" => String,
            /// When the file had been changed last, in milliseconds since 1970.
            mtime: "mtime" => f64,
        }
    }
}

crate::outbound::control::request! {
    /// Adds a working directory. The directory must be inside the session's, or inside one that the CLI was launched with.
    pub struct RegisterRepoRoot {
        required {
            /// The directory.
            directory: "directory" => String,
        }
        optional {
            /// Also loads the directory's instructions.
            reload_claude_md: "reload_claude_md" => bool,
            /// Also loads the directory's plugins.
            reload_plugins: "reload_plugins" => bool,
            /// Also loads the directory's skills.
            reload_skills: "reload_skills" => bool,
        }
    }
}

/// The directory that was added.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RegisterRepoRootReply {
    /// The directory, with links resolved.
    pub directory: String,
}

crate::outbound::control::request! {
    /// Changes the working directory.
    pub struct SetCwd {
        required {
            /// The new directory. A `~` at the beginning is the home directory.
            path: "path" => String,
        }
        optional {
            /// Says that a person has seen the directory's name and trusts the directory. `trusted_directory` has to be set, too.
            trust_accepted: "trust_accepted" => bool,
            /// The directory that the reply `needs_trust` named.
            trusted_directory: "trusted_directory" => String,
        }
    }
}

crate::wire_enum! {
    /// Whether the working directory was changed.
    pub enum SetCwdReply by "status" {
        /// The working directory was changed.
        "ok" => Done(CwdSet),
        /// Somebody has to trust the directory first.
        "needs_trust" => NeedsTrust(CwdNeedsTrust),
        /// The working directory was not changed.
        "rejected" => Rejected(CwdRejected),
    }
}

/// The working directory was set.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CwdSet {
    /// The directory, with links resolved.
    pub cwd: String,
    /// Whether this is another directory than before.
    pub changed: bool,
    /// Whether the transcript is now among those of that directory's project.
    pub transcript_relocated: bool,
}

/// Somebody has to trust the directory first.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CwdNeedsTrust {
    /// The project that would be trusted.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub trust_root: Option<String>,
    /// The directory, for `trusted_directory` of the next request.
    pub directory: String,
}

/// The working directory was not set.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CwdRejected {
    /// The reason for the rejection.
    pub reason: CwdRejection,
    /// The reason, for people.
    pub message: String,
}

crate::open_enum! {
    /// Why the working directory was not set.
    pub enum CwdRejection {
        /// The directory does not exist.
        NotFound = "not_found",
        /// The path is not a directory.
        NotADirectory = "not_a_directory",
        /// A rule forbids the directory.
        BlockedByRule = "blocked_by_rule",
        /// A turn runs.
        Busy = "busy",
        /// The path is not safe.
        UnsafePath = "unsafe_path",
        /// The session runs on another machine.
        RemoteOrigin = "remote_origin",
    }
}
