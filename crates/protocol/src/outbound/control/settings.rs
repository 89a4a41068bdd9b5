//! Settings and hooks.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/settings.toml: change that instead.

use serde::{Deserialize, Serialize};

use super::permission::SettingsParseError;
use crate::RawJson;

crate::outbound::control::request! {
    /// Changes settings for this session: merged into the layer that `--settings` fills.
    pub struct ApplyFlagSettings {
        required {
            /// The settings. Null removes a setting from the layer.
            settings: "settings" => crate::shared::JsonObject,
        }
    }
}

crate::outbound::control::request! {
    /// Reports the settings in force.
    pub struct GetSettings {}
}

/// The settings in force.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetSettingsReply {
    /// The settings of all layers, merged.
    pub effective: RawJson,
    /// The layers, weakest first.
    pub sources: Vec<SettingsLayer>,
    /// What the CLI made of the settings.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub applied: Option<AppliedSettings>,
    /// Settings that could not be read.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub errors: Option<Vec<SettingsParseError>>,
    /// Why the organization forbids remote control.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub remote_control_policy_lock_reason: Option<String>,
    /// Whether the CLI has the organization's settings.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub served_settings_state: Option<ServedSettingsState>,
    /// Whether the reply lacks something because replies are stored.
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
    /// Which layer of settings.
    pub enum SettingsLayerSource {
        /// The user's settings.
        UserSettings = "userSettings",
        /// The project's settings.
        ProjectSettings = "projectSettings",
        /// The project's settings on this machine.
        LocalSettings = "localSettings",
        /// Settings of the command line, or of `apply_flag_settings`.
        FlagSettings = "flagSettings",
        /// The organization's settings.
        PolicySettings = "policySettings",
    }
}

crate::open_enum! {
    /// Whether the CLI has the organization's settings.
    pub enum ServedSettingsState {
        /// The settings are there.
        Ok = "ok",
        /// The settings are being fetched.
        Pending = "pending",
        /// The settings are there, from an old cache.
        StaleCache = "stale_cache",
        /// The settings could not be fetched.
        Failed = "failed",
        /// The account has no such settings.
        Ineligible = "ineligible",
    }
}

/// What the CLI made of the settings.
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
    /// Whether ultracode was requested.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ultracode_requested: Option<bool>,
    /// Whether ultracode can be switched on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ultracode_available: Option<bool>,
    /// Whether a prompt can make the model think more.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ultrathink_available: Option<bool>,
    /// Whether tools may not read outside the working directories.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outside_file_tool_reads_blocked: Option<bool>,
    /// Whether tools may not write outside the working directories.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outside_file_tool_writes_blocked: Option<bool>,
    /// Whether only the directories that the CLI was launched with count as working directories for these two.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outside_blocks_count_launch_folders_only: Option<bool>,
    /// Directories whose own configuration the CLI does not use.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub additional_directory_config_roots_withheld: Option<Vec<ConfigRootWithheld>>,
    /// Whether the CLI did not change the files that the environment at launch names.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub launch_env_left_own_files_in_place: Option<bool>,
}

/// A directory whose own configuration the CLI does not use.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ConfigRootWithheld {
    /// The directory.
    pub dir: String,
    /// The project that the directory belongs to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub root: Option<String>,
    /// What the CLI still reads of the directory.
    pub reads: String,
    /// Why the CLI does not use the configuration.
    pub reason: String,
    /// How many entries the CLI does not use.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub entries_withheld: Option<u64>,
}

crate::outbound::control::request! {
    /// Changes a settings file. Only a few keys may be changed, `outputStyle` and `effortLevel` among them.
    pub struct UpdateSettings {
        required {
            /// Which settings file to change.
            source: "source" => WritableSettings,
            /// The settings to change.
            settings: "settings" => crate::shared::JsonObject,
        }
    }
}

crate::shared::closed_enum::closed_enum! {
    /// A settings file that `update_settings` can change.
    #[non_exhaustive]
    pub enum WritableSettings {
        /// The project's settings on this machine.
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
    /// All events that the CLI knows.
    pub event_catalog: Vec<HookEventInfo>,
    /// Which hooks the organization allows.
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
    /// When the event happens.
    pub summary: String,
    /// Whether hooks of the event can have a matcher.
    pub supports_matcher: bool,
    /// How many hooks the event has.
    pub hook_count: u64,
}

/// A hook event.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HookEventInfo {
    /// The event.
    pub name: String,
    /// When the event happens.
    pub summary: String,
    /// Whether hooks of the event can have a matcher.
    pub supports_matcher: bool,
}

/// One hook.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HookRow {
    /// The event that the hook is for.
    pub event: String,
    /// The matcher of the hook.
    pub matcher: String,
    /// Where the hook comes from.
    pub source: String,
    /// The source, in words for people.
    pub source_label: String,
    /// The plugin that the hook comes from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub plugin_name: Option<String>,
    /// The kind of the hook: `command`, `prompt`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// The text that stands for the hook in a list.
    pub display_text: String,
    /// What the hook runs.
    pub command_text: String,
    /// The word for what the hook runs.
    pub content_label: String,
    /// The condition under which the hook runs.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub condition: Option<String>,
    /// How long the hook may take, in seconds.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub timeout: Option<f64>,
    /// The text to show while the hook runs.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub status_message: Option<String>,
    /// Whether the hook runs only once.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub runs_once: Option<bool>,
    /// Whether the CLI does not wait for the hook.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub runs_in_background: Option<bool>,
    /// Whether the hook is switched off.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub disabled: Option<bool>,
    /// The parts of the hook that can be changed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub editable: Option<EditableHook>,
}

/// The parts of a hook that can be changed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct EditableHook {
    /// The matcher of the hook.
    pub matcher: String,
    /// The hook, as settings have it.
    pub config: RawJson,
    /// Whether the values of headers are redacted.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub headers_redacted: Option<bool>,
}

/// Which hooks are allowed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HookPolicy {
    /// The organization allows no hooks.
    pub disabled_by_policy: bool,
    /// The organization allows only its own hooks.
    pub managed_only: bool,
    /// The organization allows only hooks of plugins.
    pub plugin_only: bool,
    /// No hook runs.
    pub all_disabled: bool,
    /// How many hooks the organization has.
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
    /// Whether the organization's hooks still run.
    pub managed_hooks_still_apply: bool,
    /// How to end this mode, in words for people.
    pub exit_hint: String,
}

/// The CLI was started bare.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HookBareMode {
    /// How to end this mode, in words for people.
    pub exit_hint: String,
}
