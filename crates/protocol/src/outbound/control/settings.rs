//! Settings and hooks.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/settings.toml: change that instead.

use serde::{Deserialize, Serialize};

use super::permission::SettingsParseError;
use crate::RawJson;

crate::outbound::control::request! {
    /// Changes settings for this session: merged into the layer that `--settings` fills.
    pub struct ApplyFlagSettings {
        required {
            /// The settings; null takes one away.
            settings: "settings" => crate::shared::JsonObject,
        }
    }
}

crate::outbound::control::request! {
    /// Tells the settings in force.
    pub struct GetSettings {}
}

/// The settings in force.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetSettingsReply {
    /// All layers merged.
    pub effective: RawJson,
    /// The layers, weakest first.
    pub sources: Vec<SettingsLayer>,
    /// What came of it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub applied: Option<AppliedSettings>,
    /// Settings that could not be read.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub errors: Option<Vec<SettingsParseError>>,
    /// Why remote control is forbidden.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub remote_control_policy_lock_reason: Option<String>,
    /// How the organization's settings fare.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub served_settings_state: Option<ServedSettingsState>,
    /// Whether something was left out because the answer is stored somewhere.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub withheld: Option<bool>,
}

/// One layer of settings.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SettingsLayer {
    /// The source of the layer.
    pub source: SettingsLayerSource,
    /// The settings.
    pub settings: RawJson,
}

crate::open_enum! {
    /// The layers of settings.
    pub enum SettingsLayerSource {
        /// The user's settings.
        UserSettings = "userSettings",
        /// The project's.
        ProjectSettings = "projectSettings",
        /// The project's on this machine.
        LocalSettings = "localSettings",
        /// Given on the command line or at run time.
        FlagSettings = "flagSettings",
        /// The organization's.
        PolicySettings = "policySettings",
    }
}

crate::open_enum! {
    /// How the organization's settings fare.
    pub enum ServedSettingsState {
        /// The settings are there.
        Ok = "ok",
        /// The settings are being fetched.
        Pending = "pending",
        /// The settings are there, from an old cache.
        StaleCache = "stale_cache",
        /// The settings could not be fetched.
        Failed = "failed",
        /// The account has none.
        Ineligible = "ineligible",
    }
}

/// What came of the settings.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AppliedSettings {
    /// The model.
    pub model: String,
    /// The effort.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<String>,
    /// The model that advises.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub advisor: Option<String>,
    /// Whether ultracode is on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ultracode: Option<bool>,
    /// Whether it was asked for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ultracode_requested: Option<bool>,
    /// Whether it could be on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ultracode_available: Option<bool>,
    /// Whether a prompt may ask to think harder.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ultrathink_available: Option<bool>,
    /// Whether tools may not read outside the working directories.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outside_file_tool_reads_blocked: Option<bool>,
    /// Whether tools may not write outside the working directories.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outside_file_tool_writes_blocked: Option<bool>,
    /// Whether only the directories of the launch count for that.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outside_blocks_count_launch_folders_only: Option<bool>,
    /// Directories whose own configuration was not taken.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub additional_directory_config_roots_withheld: Option<Vec<ConfigRootWithheld>>,
    /// Whether the files that the launch's environment names were left alone.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub launch_env_left_own_files_in_place: Option<bool>,
}

/// A directory whose own configuration was not taken.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ConfigRootWithheld {
    /// The directory.
    pub dir: String,
    /// The project that it belongs to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub root: Option<String>,
    /// What is still read of it.
    pub reads: String,
    /// Why the directory is withheld.
    pub reason: String,
    /// How many entries were left out.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub entries_withheld: Option<u64>,
}

crate::outbound::control::request! {
    /// Changes a settings file. Only a few keys may be changed, `outputStyle` and `effortLevel` among them.
    pub struct UpdateSettings {
        required {
            /// Which file.
            source: "source" => WritableSettings,
            /// The settings to change.
            settings: "settings" => crate::shared::JsonObject,
        }
    }
}

crate::shared::closed_enum::closed_enum! {
    /// A settings file that may be changed.
    #[non_exhaustive]
    pub enum WritableSettings {
        /// The project's on this machine.
        LocalSettings = "localSettings",
        /// The user's settings.
        UserSettings = "userSettings",
    }
}

crate::outbound::control::request! {
    /// Lists the hooks.
    pub struct GetHooksListing {}
}

/// The hooks.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetHooksListingReply {
    /// The events that have hooks.
    pub events: Vec<HookEventRow>,
    /// The hooks.
    pub hooks: Vec<HookRow>,
    /// All events that there are.
    pub event_catalog: Vec<HookEventInfo>,
    /// What is allowed.
    pub policy: HookPolicy,
    /// Set if the CLI was started in safe mode.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub safe_mode: Option<HookSafeMode>,
    /// Set if the CLI was started bare.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub bare_mode: Option<HookBareMode>,
    /// Settings that could not be read.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub errors: Option<Vec<SettingsParseError>>,
}

/// An event that has hooks.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HookEventRow {
    /// The event.
    pub name: String,
    /// When it happens.
    pub summary: String,
    /// Whether hooks may choose by a pattern.
    pub supports_matcher: bool,
    /// How many hooks it has.
    pub hook_count: u64,
}

/// An event.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HookEventInfo {
    /// The event.
    pub name: String,
    /// When it happens.
    pub summary: String,
    /// Whether hooks may choose by a pattern.
    pub supports_matcher: bool,
}

/// One hook.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HookRow {
    /// The event.
    pub event: String,
    /// The pattern.
    pub matcher: String,
    /// Where it comes from.
    pub source: String,
    /// The same for people.
    pub source_label: String,
    /// The plugin that brought it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub plugin_name: Option<String>,
    /// What kind of hook: `command`, `prompt`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// What to show of it.
    pub display_text: String,
    /// What it runs.
    pub command_text: String,
    /// What to call that.
    pub content_label: String,
    /// When it is run at all.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub condition: Option<String>,
    /// How long it may take, in seconds.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub timeout: Option<f64>,
    /// What is shown while it runs.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub status_message: Option<String>,
    /// Whether it runs only once.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub runs_once: Option<bool>,
    /// Whether nothing waits for it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub runs_in_background: Option<bool>,
    /// Whether it is off.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub disabled: Option<bool>,
    /// What there is to change.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub editable: Option<EditableHook>,
}

/// What there is to change in a hook.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct EditableHook {
    /// The pattern.
    pub matcher: String,
    /// The hook, as it is in settings.
    pub config: RawJson,
    /// Whether the values of headers were taken out.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub headers_redacted: Option<bool>,
}

/// Which hooks are allowed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HookPolicy {
    /// The organization allows none.
    pub disabled_by_policy: bool,
    /// The organization allows only its own.
    pub managed_only: bool,
    /// The organization allows only those of plugins.
    pub plugin_only: bool,
    /// None runs.
    pub all_disabled: bool,
    /// How many the organization has.
    pub policy_hook_count: u64,
    /// The organization's settings could not be read.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub policy_unreadable: Option<bool>,
}

/// The CLI was started in safe mode.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HookSafeMode {
    /// Whether the organization's hooks run all the same.
    pub managed_hooks_still_apply: bool,
    /// How to get out of it.
    pub exit_hint: String,
}

/// The CLI was started bare.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HookBareMode {
    /// How to get out of it.
    pub exit_hint: String,
}
