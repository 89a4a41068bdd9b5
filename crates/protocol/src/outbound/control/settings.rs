//! Settings and hooks.

use serde::{Deserialize, Serialize};

use super::{SettingsParseError, request};
use crate::RawJson;
use crate::open_enum;
use crate::shared::JsonObject;
use crate::shared::closed_enum::closed_enum;

request! {
    /// Changes settings for this session: merged into the layer that `--settings` fills.
    pub struct ApplyFlagSettings {
        required {
            /// The settings; null takes one away.
            settings: "settings" => JsonObject,
        }
    }
}

request! {
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
    pub applied: Option<AppliedSettings>,
    /// Settings that could not be read.
    pub errors: Option<Vec<SettingsParseError>>,
    /// Why remote control is forbidden.
    pub remote_control_policy_lock_reason: Option<String>,
    /// How the organization's settings fare.
    pub served_settings_state: Option<ServedSettingsState>,
    /// Whether something was left out because the answer is stored somewhere.
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

open_enum! {
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

open_enum! {
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
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AppliedSettings {
    /// The model.
    pub model: String,
    /// The effort.
    pub effort: Option<String>,
    /// The model that advises.
    pub advisor: Option<String>,
    /// Whether ultracode is on.
    pub ultracode: Option<bool>,
    /// Whether it was asked for.
    pub ultracode_requested: Option<bool>,
    /// Whether it could be on.
    pub ultracode_available: Option<bool>,
    /// Whether a prompt may ask to think harder.
    pub ultrathink_available: Option<bool>,
    /// Whether tools may not read outside the working directories.
    pub outside_file_tool_reads_blocked: Option<bool>,
    /// Whether tools may not write outside the working directories.
    pub outside_file_tool_writes_blocked: Option<bool>,
    /// Whether only the directories of the launch count for that.
    pub outside_blocks_count_launch_folders_only: Option<bool>,
    /// Directories whose own configuration was not taken.
    pub additional_directory_config_roots_withheld: Option<Vec<ConfigRootWithheld>>,
    /// Whether the files that the launch's environment names were left alone.
    pub launch_env_left_own_files_in_place: Option<bool>,
}

/// A directory whose own configuration was not taken.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConfigRootWithheld {
    /// The directory.
    pub dir: String,
    /// The project that it belongs to.
    pub root: Option<String>,
    /// What is still read of it.
    pub reads: String,
    /// Why the directory is withheld.
    pub reason: String,
    /// How many entries were left out.
    pub entries_withheld: Option<u64>,
}

request! {
    /// Changes a settings file. Only a few keys may be changed, `outputStyle` and `effortLevel` among them.
    pub struct UpdateSettings {
        required {
            /// Which file.
            source: "source" => WritableSettings,
            /// The settings to change.
            settings: "settings" => JsonObject,
        }
    }
}

closed_enum! {
    /// A settings file that may be changed.
    #[non_exhaustive]
    pub enum WritableSettings {
        /// The project's on this machine.
        LocalSettings = "localSettings",
        /// The user's settings.
        UserSettings = "userSettings",
    }
}

request! {
    /// Lists the hooks.
    pub struct GetHooksListing {}
}

/// The hooks.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
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
    pub safe_mode: Option<HookSafeMode>,
    /// Set if the CLI was started bare.
    pub bare_mode: Option<HookBareMode>,
    /// Settings that could not be read.
    pub errors: Option<Vec<SettingsParseError>>,
}

/// An event that has hooks.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
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
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
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
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
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
    pub plugin_name: Option<String>,
    /// What kind of hook: `command`, `prompt`, …
    pub r#type: String,
    /// What to show of it.
    pub display_text: String,
    /// What it runs.
    pub command_text: String,
    /// What to call that.
    pub content_label: String,
    /// When it is run at all.
    pub condition: Option<String>,
    /// How long it may take, in seconds.
    pub timeout: Option<f64>,
    /// What is shown while it runs.
    pub status_message: Option<String>,
    /// Whether it runs only once.
    pub runs_once: Option<bool>,
    /// Whether nothing waits for it.
    pub runs_in_background: Option<bool>,
    /// Whether it is off.
    pub disabled: Option<bool>,
    /// What there is to change.
    pub editable: Option<EditableHook>,
}

/// What there is to change in a hook.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EditableHook {
    /// The pattern.
    pub matcher: String,
    /// The hook, as it is in settings.
    pub config: RawJson,
    /// Whether the values of headers were taken out.
    pub headers_redacted: Option<bool>,
}

/// Which hooks are allowed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
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
    pub policy_unreadable: Option<bool>,
}

/// The CLI was started in safe mode.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HookSafeMode {
    /// Whether the organization's hooks run all the same.
    pub managed_hooks_still_apply: bool,
    /// How to get out of it.
    pub exit_hint: String,
}

/// The CLI was started bare.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HookBareMode {
    /// How to get out of it.
    pub exit_hint: String,
}
