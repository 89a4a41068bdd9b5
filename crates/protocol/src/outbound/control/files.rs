//! Files and directories.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/files.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Takes files back to what they were when a prompt was sent. Needs file checkpointing.
    pub struct RewindFiles {
        required {
            /// The prompt's uuid.
            user_message_id: "user_message_id" => String,
        }
        optional {
            /// Only reports what would be done.
            dry_run: "dry_run" => bool,
        }
    }
}

/// What was done, or would be.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RewindFilesReply {
    /// Whether it could be done.
    pub can_rewind: bool,
    /// Why the files were not rewound.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error: Option<String>,
    /// The files that change.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub files_changed: Option<Vec<String>>,
    /// How many lines come back.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub insertions: Option<u64>,
    /// How many lines go away.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub deletions: Option<u64>,
    /// How many files were left alone because they are links now, or otherwise not safe to write. Not on a dry run.
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
            /// The most to read.
            max_bytes: "max_bytes" => u64,
            /// The encoding of the reply; text by default.
            encoding: "encoding" => FileEncoding,
            /// What the path starts from.
            anchor: "anchor" => FileAnchor,
            /// Where to start, in bytes.
            offset: "offset" => u64,
            /// The file is to be uploaded: refuses what looks like a secret.
            for_upload: "for_upload" => bool,
            /// Sends the answer only to those who look on at the moment.
            live_reply: "liveReply" => bool,
        }
    }
}

crate::shared::closed_enum::closed_enum! {
    /// How a file is written into an answer.
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
        /// Wherever it says.
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
    /// That root's id, to be refused if it is another one now.
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
    /// The directories that it must be in.
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
    /// Whether there is more.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub truncated: Option<bool>,
    /// How the contents are written; as text if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub encoding: Option<String>,
    /// Whether bytes were replaced because they are no text.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub lossy: Option<bool>,
    /// What the path started from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub anchor: Option<String>,
    /// Where this part starts, in bytes.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub offset: Option<u64>,
    /// How many bytes this part has.
    #[serde(rename = "read_bytes", skip_serializing_if = "crate::whole::unset")]
    pub read_bytes: Option<u64>,
    /// How many bytes the file has.
    #[serde(rename = "total_bytes", skip_serializing_if = "crate::whole::unset")]
    pub total_bytes: Option<u64>,
    /// The file's version.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub etag: Option<String>,
    /// Whether it was looked at for secrets.
    #[serde(rename = "upload_screened", skip_serializing_if = "crate::whole::unset")]
    pub upload_screened: Option<bool>,
    /// The path as it was asked for.
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

/// A directory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListDirectoryReply {
    /// The absolute path of the directory.
    pub abs_path: String,
    /// What is in it.
    pub entries: Vec<DirectoryEntry>,
    /// Whether there is more.
    pub truncated: bool,
}

/// One entry of a directory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DirectoryEntry {
    /// The entry's name.
    pub name: String,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Whether it is a link.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_symlink: Option<bool>,
    /// Whether it is neither file, directory nor link.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub is_special: Option<bool>,
}

crate::outbound::control::request! {
    /// Suggests files for a mention.
    pub struct FileSuggestions {
        required {
            /// What was typed so far.
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
    /// What their paths start from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cwd: Option<String>,
}

/// A file that may be meant.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileSuggestion {
    /// The file.
    pub path: String,
    /// How well it fits; less is better.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub score: Option<f64>,
}

crate::outbound::control::request! {
    /// Tells the CLI that the model knows a file as it was at some time, so that it may edit it without reading it again.
    pub struct SeedReadState {
        required {
            /// The file.
            path: "path" => String,
            /// When it was changed last, in milliseconds since 1970.
            mtime: "mtime" => f64,
        }
    }
}

crate::outbound::control::request! {
    /// Adds a working directory. It must be inside the session's, or inside one that the CLI was launched with.
    pub struct RegisterRepoRoot {
        required {
            /// The directory.
            directory: "directory" => String,
        }
        optional {
            /// Also loads its instructions.
            reload_claude_md: "reload_claude_md" => bool,
            /// Also loads its plugins.
            reload_plugins: "reload_plugins" => bool,
            /// Also loads its skills.
            reload_skills: "reload_skills" => bool,
        }
    }
}

/// The directory that was added.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RegisterRepoRootReply {
    /// The directory without links.
    pub directory: String,
}

crate::outbound::control::request! {
    /// Changes the working directory.
    pub struct SetCwd {
        required {
            /// The directory. `~` is understood.
            path: "path" => String,
        }
        optional {
            /// A person was shown the directory and trusts it. Needs `trusted_directory`.
            trust_accepted: "trust_accepted" => bool,
            /// The directory as the `needs_trust` answer named it.
            trusted_directory: "trusted_directory" => String,
        }
    }
}

crate::wire_enum! {
    /// What became of the change of directory.
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
    /// The directory without links.
    pub cwd: String,
    /// Whether it is another one than before.
    pub changed: bool,
    /// Whether the transcript moved to that directory's project.
    pub transcript_relocated: bool,
}

/// Somebody has to trust the directory first.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CwdNeedsTrust {
    /// The project that would be trusted.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub trust_root: Option<String>,
    /// The directory, to be given back as `trusted_directory`.
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
        /// The path is no directory.
        NotADirectory = "not_a_directory",
        /// A rule forbids it.
        BlockedByRule = "blocked_by_rule",
        /// A turn runs.
        Busy = "busy",
        /// The path is not safe.
        UnsafePath = "unsafe_path",
        /// The session is somewhere else.
        RemoteOrigin = "remote_origin",
    }
}
