//! `Projects`: the documents of a claude.ai project.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/projects.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Input of `Projects`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectsInput {
    /// What to do.
    pub method: ProjectsMethod,
    /// The document or file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
    /// What to write.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content: Option<String>,
    /// The file to upload instead of `content`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub local_path: Option<String>,
    /// Whether the document is what the user is waiting for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub present_to_user: Option<bool>,
    /// What to search for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub query: Option<String>,
    /// How many hits to give; 5 if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub n: Option<u64>,
}

impl ProjectsInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(method: ProjectsMethod) -> Self {
        Self {
            method,
            path: None,
            content: None,
            local_path: None,
            present_to_user: None,
            query: None,
            n: None,
        }
    }
}

crate::open_enum! {
    /// What to do with a project.
    pub enum ProjectsMethod {
        /// Describe the project.
        Info = "project_info",
        /// Read a document.
        Read = "project_read",
        /// Search the project.
        Search = "project_search",
        /// Write a document.
        Write = "project_write",
        /// Delete a document.
        Delete = "project_delete",
        /// List the files of the project's memory.
        MemoryList = "project_memory_list",
        /// Read a file of the project's memory.
        MemoryRead = "project_memory_read",
    }
}

crate::wire_enum! {
    /// Output of `Projects`, by what was done.
    pub enum ProjectsOutput by "method" {
        /// The project.
        "project_info" => Info(ProjectInfo),
        /// A document.
        "project_read" => Read(ProjectRead),
        /// What was found.
        "project_search" => Search(ProjectSearch),
        /// A document was written.
        "project_write" => Write(ProjectWrite),
        /// A document was deleted.
        "project_delete" => Delete(ProjectDelete),
        /// The files of the memory.
        "project_memory_list" => MemoryList(ProjectMemoryList),
        /// A file of the memory.
        "project_memory_read" => MemoryRead(ProjectMemoryRead),
    }
}

/// What a project is.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectInfo {
    /// A notice.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub notice: Option<String>,
    /// The file with the whole text, if the text was too long.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub local_file: Option<String>,
    /// The project's name.
    pub name: String,
    /// The project's description.
    pub description: String,
    /// The project's instructions.
    pub instructions: String,
    /// The project's documents.
    pub docs: Vec<ProjectDoc>,
    /// The project's files.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub files: Option<Vec<ProjectFile>>,
    /// Where more of the project's content comes from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub sync_sources: Option<Vec<ProjectSource>>,
    /// How full the project is.
    pub knowledge: ProjectKnowledge,
}

/// A document of a project.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectDoc {
    /// The document's path.
    pub path: String,
    /// When the document was created, in RFC 3339; null if unknown.
    pub created_at: Option<String>,
}

/// A file of a project.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectFile {
    /// The file's path.
    pub path: String,
    /// The file's kind.
    pub file_kind: String,
    /// When the file was created, in RFC 3339; null if unknown.
    pub created_at: Option<String>,
}

/// Where content of a project comes from.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectSource {
    /// The kind of source; null if unknown.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The source's configuration.
    pub config: RawJson,
}

/// How full a project is.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectKnowledge {
    /// The size of the project's content.
    pub knowledge_size: u64,
    /// The largest size that the project's content may have.
    pub max_knowledge_size: u64,
}

/// A document that was read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectRead {
    /// A notice.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub notice: Option<String>,
    /// The file's path.
    pub path: String,
    /// The kind of the file, if this is a file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub file_kind: Option<String>,
    /// The file's text.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content: Option<String>,
    /// The file with the whole text, if the text was too long.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub local_file: Option<String>,
    /// When the document was created, in RFC 3339; null if unknown.
    pub created_at: Option<String>,
}

/// What a search found.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectSearch {
    /// A notice.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub notice: Option<String>,
    /// Whether the search was by meaning.
    pub rag: bool,
    /// What was found.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub hits: Option<Vec<ProjectHit>>,
    /// The documents there are, when there was no search by meaning.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub docs: Option<Vec<String>>,
}

/// One thing that was found.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectHit {
    /// The document's name.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub name: Option<String>,
    /// The document's id.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub doc_uuid: Option<String>,
    /// The text that was found.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub text: Option<String>,
    /// Whether a picture belongs to the result.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub image_attached: Option<bool>,
    /// The page of the result.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub page: Option<u64>,
}

/// A document that was written.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectWrite {
    /// A notice.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub notice: Option<String>,
    /// The document's path.
    pub path: String,
    /// The document's id.
    pub doc_uuid: String,
    /// Whether there was one before.
    pub replaced: bool,
    /// Whether the document is what the user is waiting for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub present_to_user: Option<bool>,
    /// The file that was uploaded.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub local_path: Option<String>,
}

/// A document that was deleted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectDelete {
    /// A notice.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub notice: Option<String>,
    /// The document's path.
    pub path: String,
    /// Whether the document was deleted.
    pub deleted: bool,
}

/// The files of a project's memory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectMemoryList {
    /// A notice.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub notice: Option<String>,
    /// The files.
    pub files: Vec<ProjectMemoryFile>,
    /// Whether there are more.
    pub truncated: bool,
}

/// A file of a project's memory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectMemoryFile {
    /// The file's path.
    pub path: String,
    /// The file's size.
    pub size_bytes: u64,
    /// When the file was changed last, in RFC 3339; null if unknown.
    pub updated_at: Option<String>,
    /// Whether only a part of the file is kept.
    pub truncated: bool,
}

/// A file of a project's memory that was read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProjectMemoryRead {
    /// A notice.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub notice: Option<String>,
    /// The file's path.
    pub path: String,
    /// The file's text.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content: Option<String>,
    /// The file with the whole text, if the text was too long.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub local_file: Option<String>,
    /// The file's size.
    pub size_bytes: u64,
    /// When the file was changed last, in RFC 3339; null if unknown.
    pub updated_at: Option<String>,
    /// Whether only a part of the file is kept.
    pub truncated: bool,
}
