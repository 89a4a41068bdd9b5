//! `Artifact`: pages that are published on claude.ai.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/artifact.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Input of `Artifact`. Which fields count depends on the action.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactInput {
    /// What to do; publish if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub action: Option<ArtifactAction>,
    /// The page to publish, or the file to upload.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub file_path: Option<String>,
    /// Older form of `icon`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub favicon: Option<String>,
    /// A word for the page's icon.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub icon: Option<String>,
    /// How many to list; 25 if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub limit: Option<u64>,
    /// Where to go on in a list, from the page before.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub page_token: Option<String>,
    /// Whose to list; the user's own if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub scope: Option<ArtifactScope>,
    /// The page's title.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
    /// One sentence about the page.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub description: Option<String>,
    /// A name for this version.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub label: Option<String>,
    /// The artifact's address.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub url: Option<String>,
    /// What to find out from somebody else's artifact.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub prompt: Option<String>,
    /// Whether to write over a newer version.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub force: Option<bool>,
    /// Whether to pin the artifact once it is published.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub pin: Option<bool>,
    /// The directory to save into.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub out_dir: Option<String>,
    /// Several files to upload.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub file_paths: Option<Vec<String>>,
    /// The asset.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub asset_id: Option<String>,
    /// Where to go on in a list of assets, from the page before.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub after: Option<String>,
    /// What the page may do at run time, by name.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub capabilities: Option<RawJson>,
    /// The version of the page's run time: `latest` or a certain one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub contract: Option<String>,
}

crate::open_enum! {
    /// What to do with artifacts.
    pub enum ArtifactAction {
        /// Publish a page.
        Publish = "publish",
        /// List the artifacts.
        List = "list",
        /// Read one.
        Read = "read",
        /// List the kinds there are.
        ListTypes = "list_types",
        /// Get to know when one changes.
        Watch = "watch",
        /// No longer get to know.
        Unwatch = "unwatch",
        /// Tell which are watched.
        Status = "status",
        /// Upload files to one.
        UploadAsset = "upload_asset",
        /// List the files of one.
        ListAssets = "list_assets",
        /// Save a file of one.
        ReadAsset = "read_asset",
        /// Delete a file of one.
        DeleteAsset = "delete_asset",
        /// Pin one to the side bar.
        Pin = "pin",
        /// Take one off the side bar.
        Unpin = "unpin",
    }
}

crate::open_enum! {
    /// Whose artifacts to list.
    pub enum ArtifactScope {
        /// The user's own.
        Mine = "mine",
        /// Those that others share with the user.
        Shared = "shared",
        /// Both.
        All = "all",
    }
}
