//! What `Artifact` gives back.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/artifact_output.toml: change that instead.

use serde::{Deserialize, Serialize};

use super::artifact::ArtifactScope;
use super::artifact_asset::{
    ArtifactAssetDelete, ArtifactAssetList, ArtifactAssetRead, ArtifactAssetUpload, ArtifactAssetUploads,
};
use super::artifact_watch::{ArtifactUnwatch, ArtifactWatch, ArtifactWatches};
use super::read::ArtifactVersion;
use crate::RawJson;

/// Output of `Artifact`, told apart by the key that only one kind has.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ArtifactOutput {
    /// A list of artifacts.
    List(Box<ArtifactList>),
    /// An artifact that was read.
    Read(Box<ArtifactRead>),
    /// Whether one is watched now.
    Watch(Box<ArtifactWatch>),
    /// One is no longer watched.
    Unwatch(Box<ArtifactUnwatch>),
    /// Which are watched.
    Watches(Box<ArtifactWatches>),
    /// A file was uploaded.
    AssetUpload(Box<ArtifactAssetUpload>),
    /// Several files were uploaded.
    AssetUploads(Box<ArtifactAssetUploads>),
    /// The files of one.
    AssetList(Box<ArtifactAssetList>),
    /// A file of one was saved.
    AssetRead(Box<ArtifactAssetRead>),
    /// A file of one was deleted.
    AssetDelete(Box<ArtifactAssetDelete>),
    /// One was pinned or unpinned.
    Pin(Box<ArtifactPin>),
    /// A page was published.
    Published(Box<ArtifactPublished>),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_key!(ArtifactOutput {
    "artifacts" => List,
    "read" => Read,
    "watch" => Watch,
    "unwatch" => Unwatch,
    "watches" => Watches,
    "asset_upload" => AssetUpload,
    "asset_uploads" => AssetUploads,
    "asset_list" => AssetList,
    "asset_read" => AssetRead,
    "asset_delete" => AssetDelete,
    "pin" => Pin,
    "url" => Published,
});

/// A page that was published.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ArtifactPublished {
    /// The artifact's address.
    pub url: String,
    /// The file that the artifact was made from.
    pub path: String,
    /// The artifact's id.
    #[serde(rename = "artifact_id", skip_serializing_if = "crate::whole::unset")]
    pub artifact_id: Option<String>,
    /// The artifact's title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
    /// The version that was made.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub version: Option<String>,
    /// What the page may do at run time.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub capabilities: Option<RawJson>,
    /// The stored data about the artifact's run time.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub stored: Option<ArtifactStored>,
    /// Things to know.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub warnings: Option<Vec<String>>,
    /// How often the artifact can still be published.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub publishes_remaining: Option<u64>,
    /// When that starts anew, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub publishes_reset_at: Option<f64>,
    /// The version of the artifact's run time.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub contract: Option<String>,
    /// Whether the artifact existed before.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub updated: Option<bool>,
    /// Whether the artifact is the user's own.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub owned: Option<bool>,
    /// The word for the artifact's icon.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub icon: Option<String>,
    /// Always true when present: the older form of icon was sent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub favicon_sent: Option<bool>,
    /// Always true when present: the icon was not taken.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub icon_dropped: Option<bool>,
    /// Who can see the artifact.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub audience: Option<String>,
    /// Whether others can see the artifact's folder: `others` or `unknown`.
    #[serde(rename = "folder_audience", skip_serializing_if = "crate::whole::unset")]
    pub folder_audience: Option<String>,
    /// The number of the version, in their order.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seq: Option<u64>,
    /// Always true when present: nothing was different.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub unchanged: Option<bool>,
    /// How the artifact is kept up to date.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub live_subscription: Option<String>,
    /// Whether the artifact is pinned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub pinned: Option<bool>,
}

/// What is on record about a page's run time.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ArtifactStored {
    /// The version in use.
    pub contract: String,
    /// The version that is preferred.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub preferred_contract: Option<String>,
    /// What the page may do at run time, by name.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub capabilities: Option<RawJson>,
    /// Whether that was taken over from the version before.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub carried: Option<bool>,
    /// How the artifact was read.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub read: Option<String>,
}

/// A list of artifacts.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactList {
    /// The artifacts.
    pub artifacts: Vec<ArtifactEntry>,
    /// Whether there are more.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub truncated: Option<bool>,
    /// How many there are in all.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub total: Option<u64>,
    /// Always true when present: there are at least `total`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub total_at_least: Option<bool>,
    /// Where to go on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub next_page_token: Option<String>,
    /// Whether artifacts can be pinned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub pins_enabled: Option<bool>,
    /// Whose were listed, if not the user's own.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub scope: Option<ArtifactScope>,
    /// Always true when present: some belong to people outside the organization.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub external_listed: Option<bool>,
}

/// An artifact in a list.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ArtifactEntry {
    /// The artifact's title.
    pub title: String,
    /// The artifact's address.
    pub url: String,
    /// The artifact's icon.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub favicon: Option<String>,
    /// When the artifact was changed last, in RFC 3339.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub updated_at: Option<String>,
    /// Whose artifact this is: `mine` or `shared`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub rel: Option<String>,
    /// Always true when present: the artifact belongs to somebody outside the organization.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub external: Option<bool>,
    /// What the user may do with the artifact: `editor`, `commenter`, `reader` or `viewer`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub role: Option<String>,
    /// Always true when present: people outside the organization may have written to the artifact.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outsiders_may_have_written: Option<bool>,
    /// The kind under which the artifact is listed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub listed_kind: Option<String>,
    /// Whether the artifact is pinned.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub pinned: Option<bool>,
}

/// An artifact that was read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ArtifactRead {
    /// What was read.
    pub read: ArtifactPage,
    /// Whether the artifact is the user's own.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub owned: Option<bool>,
    /// Which version now counts as seen.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub artifact_read: Option<ArtifactVersion>,
}

/// The content of an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ArtifactPage {
    /// The page's address.
    pub url: String,
    /// The page's size, in bytes.
    pub bytes: u64,
    /// The HTTP status.
    pub code: u64,
    /// The HTTP status in words.
    pub code_text: String,
    /// The content of the page, or the answer to the prompt.
    pub result: String,
    /// How long the request took, in milliseconds.
    pub duration_ms: f64,
    /// The page's title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
}

/// The address of an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUrl {
    /// The address.
    pub url: String,
}

/// An artifact that was pinned or unpinned.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactPin {
    /// The artifact.
    pub pin: ArtifactPinned,
}

/// Whether an artifact is pinned.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactPinned {
    /// What was asked for: `pin` or `unpin`.
    pub action: String,
    /// The artifact's address.
    pub url: String,
    /// Whether the artifact is pinned now.
    pub pinned: bool,
    /// The artifact's title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
}
