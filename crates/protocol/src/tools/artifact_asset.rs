//! The files of an artifact.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/artifact_asset.toml: change that instead.

use serde::{Deserialize, Serialize};

use super::artifact_output::ArtifactUrl;

/// A file that was uploaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAssetUpload {
    /// The artifact that was changed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub written: Option<ArtifactUrl>,
    /// Whether the artifact is the user's own.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub owned: Option<bool>,
    /// The file.
    pub asset_upload: ArtifactUploaded,
}

/// A file of an artifact, just uploaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUploaded {
    /// The file's id.
    pub id: String,
    /// The file's address.
    pub url: String,
    /// The file's size.
    pub size_bytes: u64,
    /// The file's media type.
    pub content_type: String,
    /// The file's hash.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub sha256: Option<String>,
    /// The file's name.
    pub file_name: String,
}

/// Several files that were uploaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAssetUploads {
    /// The artifact that was changed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub written: Option<ArtifactUrl>,
    /// Whether the artifact is the user's own.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub owned: Option<bool>,
    /// The files.
    pub asset_uploads: ArtifactUploads,
}

/// What came of uploading several files.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUploads {
    /// The artifact's address.
    pub url: String,
    /// What came of each.
    pub results: Vec<ArtifactUploadResult>,
}

/// What came of the upload of one file. `status` says which fields are there.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUploadResult {
    /// The file.
    pub file_path: String,
    /// `uploaded`, `failed` or `not_attempted`.
    pub status: String,
    /// The file's id.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub id: Option<String>,
    /// The file's address.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub url: Option<String>,
    /// The file's size.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub size_bytes: Option<u64>,
    /// The file's media type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content_type: Option<String>,
    /// The file's hash.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub sha256: Option<String>,
    /// The file's name.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub file_name: Option<String>,
    /// Why the file was not uploaded, as a word.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// Why the file was not uploaded.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub message: Option<String>,
    /// Always true when present: the file may have been uploaded all the same.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub may_be_stored: Option<bool>,
}

/// The files of an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAssetList {
    /// The files.
    pub asset_list: ArtifactAssets,
}

/// A list of an artifact's files.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAssets {
    /// The artifact's address.
    pub url: String,
    /// The files.
    pub assets: Vec<ArtifactAsset>,
    /// How much room the files take.
    pub usage: ArtifactUsage,
    /// Where to go on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub next: Option<String>,
    /// Always true when present: others write to the artifact, too.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cowritten: Option<bool>,
    /// Always true when present: somebody outside the organization writes to the artifact.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outside_writer: Option<bool>,
}

/// A file of an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAsset {
    /// The file's id.
    pub id: String,
    /// The file's address.
    pub url: String,
    /// The file's media type.
    pub content_type: String,
    /// The file's size.
    pub size_bytes: u64,
    /// The file's hash.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub sha256: Option<String>,
    /// When the file was uploaded, in RFC 3339.
    pub created_at: String,
}

/// How much room an artifact's files take.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUsage {
    /// How many there are.
    pub files: u64,
    /// The size of all files together.
    pub bytes: u64,
    /// How many there may be.
    pub max_files: u64,
    /// The largest size that all files may have together.
    pub max_bytes: u64,
}

/// A file of an artifact that was saved.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAssetRead {
    /// The file.
    pub asset_read: ArtifactSaved,
}

/// Where a file of an artifact was saved.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactSaved {
    /// The file's id.
    pub id: String,
    /// The file that the asset was saved to.
    pub path: String,
    /// The file's size.
    pub size_bytes: u64,
    /// The file's media type.
    pub content_type: String,
    /// The file's hash.
    pub sha256: String,
    /// Always true when present: others write to the artifact too.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cowritten: Option<bool>,
    /// Always true when present: somebody outside the organization writes to the artifact.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outside_writer: Option<bool>,
    /// Always true when present: everybody can read the file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub public_read: Option<bool>,
    /// Always true when present: the file is somebody else's.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub foreign: Option<bool>,
}

/// A file of an artifact that was deleted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAssetDelete {
    /// The artifact that was changed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub written: Option<ArtifactUrl>,
    /// Whether the artifact is the user's own.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub owned: Option<bool>,
    /// The file.
    pub asset_delete: ArtifactDeleted,
}

/// A deleted file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactDeleted {
    /// The file's id.
    pub id: String,
    /// Whether the file was deleted.
    pub deleted: bool,
}
