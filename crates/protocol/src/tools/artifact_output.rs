//! What `Artifact` gives back.

use serde::{Deserialize, Serialize};

use super::artifact::ArtifactScope;
use super::read::ArtifactVersion;
use crate::json::RawJson;

/// Output of `Artifact`, told apart by the key that only one kind has.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ArtifactOutput {
    /// A page was published.
    Published(Box<ArtifactPublished>),
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
    /// Its address.
    pub url: String,
    /// The file it was made from.
    pub path: String,
    /// Its id.
    #[serde(rename = "artifact_id", skip_serializing_if = "crate::whole::unset")]
    pub artifact_id: Option<String>,
    /// Its title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
    /// The version that was made.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub version: Option<String>,
    /// What the page may do at run time.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub capabilities: Option<RawJson>,
    /// What is on record about its run time.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub stored: Option<ArtifactStored>,
    /// Things to know.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub warnings: Option<Vec<String>>,
    /// How often it can be published yet.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub publishes_remaining: Option<u64>,
    /// When that starts anew, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub publishes_reset_at: Option<f64>,
    /// The version of its run time.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub contract: Option<String>,
    /// Whether it was there before.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub updated: Option<bool>,
    /// Whether it is the user's own.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub owned: Option<bool>,
    /// The word for its icon.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub icon: Option<String>,
    /// Always true when present: the older form of icon was sent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub favicon_sent: Option<bool>,
    /// Always true when present: the icon was not taken.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub icon_dropped: Option<bool>,
    /// Who can see it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub audience: Option<String>,
    /// Whether others can see its folder: `others` or `unknown`.
    #[serde(rename = "folder_audience", skip_serializing_if = "crate::whole::unset")]
    pub folder_audience: Option<String>,
    /// Its number in the order of versions.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seq: Option<u64>,
    /// Always true when present: nothing was different.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub unchanged: Option<bool>,
    /// How it is kept up to date.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub live_subscription: Option<String>,
    /// Whether it is pinned.
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
    /// How it was read.
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
    /// Its title.
    pub title: String,
    /// Its address.
    pub url: String,
    /// Its icon.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub favicon: Option<String>,
    /// When it was last changed, in RFC 3339.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub updated_at: Option<String>,
    /// Whose it is: `mine` or `shared`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub rel: Option<String>,
    /// Always true when present: it belongs to somebody outside the organization.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub external: Option<bool>,
    /// What the user may do with it: `editor`, `commenter`, `reader` or `viewer`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub role: Option<String>,
    /// Always true when present: people outside the organization may have written to it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outsiders_may_have_written: Option<bool>,
    /// Whether it is pinned.
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
    /// Whether it is the user's own.
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
    /// Its address.
    pub url: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// The HTTP status.
    pub code: u64,
    /// The HTTP status in words.
    pub code_text: String,
    /// Its content, or the answer to the prompt.
    pub result: String,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// Its title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
}

/// What came of watching an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactWatch {
    /// How it is.
    pub watch: ArtifactWatchState,
}

/// Whether and how an artifact is watched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactWatchState {
    /// Its address.
    pub url: String,
    /// Whether it is watched.
    pub watching: bool,
    /// What came of the request.
    pub outcome: String,
    /// Why.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// Why it is not watched beyond this session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub durable_skip_reason: Option<String>,
    /// The id of the task that watches.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_id: Option<String>,
    /// Since when, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub since: Option<f64>,
    /// Until when the access for it lasts, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub token_expires_at: Option<f64>,
    /// By what means it is watched.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub rail: Option<String>,
    /// The trigger that watches beyond this session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub trigger_id: Option<String>,
    /// Since when that is.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub durable_since: Option<String>,
    /// An HTTP status.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub status: Option<u64>,
    /// More about it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub detail: Option<String>,
    /// Something to know.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub note: Option<String>,
    /// Which events are watched for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub events: Option<Vec<String>>,
}

/// An artifact that is no longer watched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUnwatch {
    /// Which one.
    pub unwatch: ArtifactUnwatched,
}

/// Which artifact is no longer watched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUnwatched {
    /// Its address.
    pub url: String,
    /// Whether it was watched before.
    pub was_watching: bool,
}

/// Which artifacts are watched.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactWatches {
    /// The watches.
    pub watches: Vec<ArtifactWatcher>,
    /// The only address that was asked about.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub filter_url: Option<String>,
    /// The connections behind them.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub arms: Option<Vec<ArtifactArm>>,
}

/// One watch. Which fields are there depends on its `rail`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactWatcher {
    /// The artifact's address.
    pub url: String,
    /// By what means: absent for a live one, `durable_wake`, or `live_stopped`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub rail: Option<String>,
    /// The id of the task that watches.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_id: Option<String>,
    /// Since when: a number for a live one, text for a durable one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub since: Option<RawJson>,
    /// Whether it was asked for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub explicit: Option<bool>,
    /// Whether it is connected.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub connected: Option<bool>,
    /// Whether it is about to be.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub connecting: Option<bool>,
    /// Until when the access for it lasts, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub token_expires_at: Option<f64>,
    /// What set it up.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub armed_via: Option<String>,
    /// The trigger behind it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub trigger_id: Option<String>,
    /// Which events are watched for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub events: Option<Vec<String>>,
    /// Whether it was taken over from an earlier session.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub restored: Option<bool>,
    /// How it ended.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub stop_kind: Option<String>,
}

/// A connection behind watches.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactArm {
    /// The artifact's address.
    pub url: String,
    /// By what means.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub rail: Option<String>,
    /// How it is.
    pub state: String,
    /// Whether it will be made again.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reconnect: Option<bool>,
    /// How often it failed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub failures: Option<u64>,
    /// How often it may fail.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub max_failures: Option<u64>,
    /// When it is tried again, in seconds from now.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub next_in_s: Option<f64>,
    /// How it failed last.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub last_failure: Option<String>,
    /// Why it is so.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// More about it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub detail: Option<String>,
    /// What the server said.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub server_message: Option<String>,
    /// When that was, as a time since 1970.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub at: Option<f64>,
}

/// The address of an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUrl {
    /// The address.
    pub url: String,
}

/// A file that was uploaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAssetUpload {
    /// The artifact that was changed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub written: Option<ArtifactUrl>,
    /// Whether it is the user's own.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub owned: Option<bool>,
    /// The file.
    pub asset_upload: ArtifactUploaded,
}

/// A file of an artifact, just uploaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUploaded {
    /// Its id.
    pub id: String,
    /// Its address.
    pub url: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its media type.
    pub content_type: String,
    /// Its hash.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub sha256: Option<String>,
    /// Its name.
    pub file_name: String,
}

/// Several files that were uploaded.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAssetUploads {
    /// The artifact that was changed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub written: Option<ArtifactUrl>,
    /// Whether it is the user's own.
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

/// What came of uploading one file. Which fields are there depends on its `status`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUploadResult {
    /// The file.
    pub file_path: String,
    /// `uploaded`, `failed` or `not_attempted`.
    pub status: String,
    /// Its id.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub id: Option<String>,
    /// Its address.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub url: Option<String>,
    /// Its size.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub size_bytes: Option<u64>,
    /// Its media type.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content_type: Option<String>,
    /// Its hash.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub sha256: Option<String>,
    /// Its name.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub file_name: Option<String>,
    /// Why it was not uploaded, as a word.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub reason: Option<String>,
    /// Why it was not uploaded.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub message: Option<String>,
    /// Always true when present: it may be there all the same.
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
    /// How much room they take.
    pub usage: ArtifactUsage,
    /// Where to go on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub next: Option<String>,
    /// Always true when present: others write to it too.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cowritten: Option<bool>,
    /// Always true when present: somebody outside the organization writes to it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outside_writer: Option<bool>,
}

/// A file of an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAsset {
    /// Its id.
    pub id: String,
    /// Its address.
    pub url: String,
    /// Its media type.
    pub content_type: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its hash.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub sha256: Option<String>,
    /// When it was uploaded, in RFC 3339.
    pub created_at: String,
}

/// How much room an artifact's files take.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactUsage {
    /// How many there are.
    pub files: u64,
    /// How large they are together.
    pub bytes: u64,
    /// How many there may be.
    pub max_files: u64,
    /// How large they may be together.
    pub max_bytes: u64,
}

/// A file of an artifact that was saved.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactAssetRead {
    /// Which one.
    pub asset_read: ArtifactSaved,
}

/// Where a file of an artifact was saved.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactSaved {
    /// Its id.
    pub id: String,
    /// Where it was saved.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its media type.
    pub content_type: String,
    /// Its hash.
    pub sha256: String,
    /// Always true when present: others write to the artifact too.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cowritten: Option<bool>,
    /// Always true when present: somebody outside the organization writes to it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outside_writer: Option<bool>,
    /// Always true when present: everybody can read it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub public_read: Option<bool>,
    /// Always true when present: it is somebody else's.
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
    /// Whether it is the user's own.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub owned: Option<bool>,
    /// Which one.
    pub asset_delete: ArtifactDeleted,
}

/// A deleted file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactDeleted {
    /// Its id.
    pub id: String,
    /// Whether it is gone.
    pub deleted: bool,
}

/// An artifact that was pinned or unpinned.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactPin {
    /// Which one.
    pub pin: ArtifactPinned,
}

/// Whether an artifact is pinned.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactPinned {
    /// What was asked for: `pin` or `unpin`.
    pub action: String,
    /// Its address.
    pub url: String,
    /// Whether it is pinned now.
    pub pinned: bool,
    /// Its title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
}
