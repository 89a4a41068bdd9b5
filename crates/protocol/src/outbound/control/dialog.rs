//! What the terminal shows in its dialogs, for programs that draw them themselves.

use serde::{Deserialize, Serialize};

use super::request;
use crate::open_enum;
use crate::shared::closed_enum::closed_enum;

request! {
    /// What `/status` shows.
    pub struct GetStatus {}
}

/// What `/status` shows.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetStatusReply {
    /// The sections.
    pub sections: Vec<StatusSection>,
}

/// A section of `/status`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct StatusSection {
    /// The section's title.
    pub title: String,
    /// The section's rows.
    pub rows: Vec<StatusRow>,
}

/// A row of `/status`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct StatusRow {
    /// The name of the value; absent for a row that is a sentence.
    pub label: Option<String>,
    /// The value or the sentence.
    pub value: String,
}

request! {
    /// What `/memory` shows. The CLI reads the files of instructions again for this.
    pub struct GetMemoryDialog {}
}

/// What `/memory` shows.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetMemoryDialogReply {
    /// Files of instructions.
    pub files: Vec<MemoryDialogFile>,
    /// Directories of memories.
    pub folders: Vec<MemoryDialogFolder>,
    /// Memories.
    pub memories: Option<Vec<MemoryDialogMemory>>,
    /// Whether the CLI writes memories by itself.
    pub auto_memory: AutoMemory,
    /// Whether the CLI tidies memories up by itself.
    pub auto_dream: AutoDream,
}

/// A file of instructions.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MemoryDialogFile {
    /// Whose instructions the file has.
    pub kind: MemoryFileKind,
    /// The path of the file.
    pub path: String,
    /// The name for people.
    pub label: String,
    /// The description of the file.
    pub description: String,
    /// Whether the file exists.
    pub exists: bool,
}

open_enum! {
    /// Whose instructions a file has.
    pub enum MemoryFileKind {
        /// A file of the user.
        User = "user",
        /// A file of the project.
        Project = "project",
        /// A file in the project's `.claude`.
        ProjectAlt = "project-alt",
        /// A file of the project on this machine.
        Local = "local",
        /// Another file that was loaded.
        Loaded = "other",
    }
}

/// A directory of memories.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MemoryDialogFolder {
    /// Whose memories: `auto`, `team` or `agent`.
    pub kind: String,
    /// The path of the folder.
    pub path: String,
    /// The name for people.
    pub label: String,
    /// The description of the folder.
    pub description: String,
}

/// A memory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MemoryDialogMemory {
    /// The memory's name.
    pub name: String,
    /// The path of the memory.
    pub path: String,
    /// The description of the memory.
    pub description: Option<String>,
    /// The subject: `user`, `feedback`, `project` or `reference`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// When the memory was changed last, in milliseconds since 1970.
    pub modified_ms: f64,
}

/// Whether the CLI writes memories by itself.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AutoMemory {
    /// Whether automatic memory is on.
    pub enabled: bool,
    /// Whether the user can change this.
    pub toggleable: bool,
    /// The state, for people.
    pub status: String,
}

/// Whether the CLI tidies memories up by itself.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AutoDream {
    /// Whether to show this part.
    pub shown: bool,
    /// Whether the CLI tidies memories up by itself.
    pub enabled: bool,
    /// Whether the user can change this.
    pub toggleable: bool,
    /// The state, for people.
    pub status: String,
    /// Details of the state.
    pub detail: String,
}

request! {
    /// What `/skills` shows.
    pub struct GetSkillsDialog {}
}

/// What `/skills` shows.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetSkillsDialogReply {
    /// The skills.
    pub skills: Vec<SkillRow>,
}

/// A skill.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SkillRow {
    /// The name of the skill, as settings have it.
    pub name: String,
    /// The name for people.
    pub display_name: String,
    /// What the skill does.
    pub description: String,
    /// Where the skill comes from.
    pub source: String,
    /// The estimated tokens of the skill in the context.
    pub tokens: u64,
    /// Who may use the skill.
    pub state: SkillState,
    /// Who decided the state, if the user cannot change it.
    pub locked_by: Option<SkillLock>,
    /// Whether the model knows of the skill.
    pub advertised: bool,
    /// The skill's other names.
    pub handles: SkillHandles,
}

open_enum! {
    /// Who may use a skill.
    pub enum SkillState {
        /// The model and the user.
        On = "on",
        /// The model knows only its name.
        NameOnly = "name-only",
        /// The user.
        UserInvocableOnly = "user-invocable-only",
        /// Nobody.
        Off = "off",
    }
}

open_enum! {
    /// Who decided the state of a skill.
    pub enum SkillLock {
        /// The skill's author.
        Author = "author",
        /// The skill's plugin.
        Plugin = "plugin",
        /// The organization.
        Policy = "policy",
        /// The command line.
        Flag = "flag",
        /// The CLI: the name of the skill is reserved.
        ReservedName = "reserved-name",
    }
}

/// Other names of a skill.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SkillHandles {
    /// The skill's name without the plugin's.
    pub unqualified_name: Option<String>,
    /// The skill's aliases.
    pub aliases: Option<Vec<String>>,
    /// Whether the name without the plugin's is reserved for the CLI.
    pub bare_name_reserved: Option<bool>,
}

request! {
    /// What `/sandbox` shows.
    pub struct GetSandboxDialog {}
}

/// What `/sandbox` shows.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetSandboxDialogReply {
    /// Whether this machine supports the sandbox.
    pub supported: bool,
    /// Why the sandbox is not supported.
    pub unsupported_reason: Option<SandboxUnsupported>,
    /// Whether the organization decides whether the sandbox is on.
    pub locked: bool,
    /// Whether the organization decides what happens to commands that fail.
    pub overrides_locked: bool,
    /// Which settings files the CLI reads, as `--setting-sources` has them.
    pub setting_sources: Option<String>,
    /// The settings in which the organization decides this.
    pub policy_origins: Option<Vec<String>>,
    /// Whether the sandbox is on.
    pub enabled: bool,
    /// Whether settings switch the sandbox on.
    pub enabled_in_settings: bool,
    /// Why the sandbox is off although settings switch it on.
    pub unavailable_reason: Option<String>,
    /// How the sandbox treats permission requests.
    pub mode: SandboxMode,
    /// Whether commands in the sandbox can run without a permission request.
    pub auto_allow_available: bool,
    /// Whether the user may switch the sandbox off.
    pub no_sandbox_allowed: bool,
    /// Whether a command that fails in the sandbox may run again outside.
    pub unsandboxed_fallback: bool,
    /// Whether this machine has what the sandbox needs.
    pub dependencies: SandboxDependencies,
    /// Commands that run outside of the sandbox.
    pub excluded_commands: Vec<String>,
    /// What the sandbox forbids.
    pub restrictions: SandboxRestrictions,
}

open_enum! {
    /// Why there is no sandbox.
    pub enum SandboxUnsupported {
        /// WSL 1.
        Wsl1 = "wsl1",
        /// The operating system.
        Platform = "platform",
        /// The organization allows the sandbox on other systems only.
        ExcludedPlatform = "excluded_platform",
    }
}

open_enum! {
    /// How the sandbox treats permission requests.
    pub enum SandboxMode {
        /// Commands in the sandbox run without a permission request.
        AutoAllow = "auto-allow",
        /// The CLI requests permission for commands in the sandbox, too.
        Regular = "regular",
        /// There is no sandbox.
        Disabled = "disabled",
    }
}

/// Whether this machine has what the sandbox needs.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SandboxDependencies {
    /// What is missing.
    pub errors: Vec<String>,
    /// What could be better.
    pub warnings: Vec<String>,
}

/// What the sandbox forbids.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SandboxRestrictions {
    /// Paths that may not be read.
    pub fs_deny_read: Vec<String>,
    /// Paths below those that may be read all the same.
    pub fs_allow_read: Vec<String>,
    /// Paths that may be written.
    pub fs_allow_write: Vec<String>,
    /// Paths below those that may not be written.
    pub fs_deny_write: Vec<String>,
    /// Hosts that may be reached.
    pub network_allowed_domains: Vec<String>,
    /// Hosts that may not be reached.
    pub network_denied_domains: Vec<String>,
    /// Whether the organization chooses the hosts.
    pub network_managed: bool,
    /// Unix sockets that may be used.
    pub unix_sockets: Vec<String>,
    /// Whether all Unix sockets may be used.
    pub allow_all_unix_sockets: bool,
    /// Patterns that this system cannot apply.
    pub ignored_glob_patterns: Vec<String>,
    /// Unix sockets that this system cannot allow one by one.
    pub ignored_unix_sockets: Option<Vec<String>>,
}

request! {
    /// What `/chrome` shows.
    pub struct GetChromeDialog {}
}

/// What `/chrome` shows.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetChromeDialogReply {
    /// Whether the organization allows the extension.
    pub allowed: bool,
    /// Whether the account's plan has the extension.
    pub subscriber: bool,
    /// Whether this is WSL.
    pub wsl: bool,
    /// Whether the extension is installed.
    pub installed: bool,
    /// Whether the extension is connected.
    pub connected: bool,
    /// The browser that is connected.
    pub paired_browser: Option<String>,
    /// Whether new sessions use the extension.
    pub enabled_by_default: bool,
    /// Whether this session used the extension when it started.
    pub at_startup: Option<bool>,
    /// Pages to open.
    pub urls: ChromeUrls,
}

/// Pages to open for `/chrome`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ChromeUrls {
    /// The page to install the extension.
    pub install: String,
    /// The page to connect the extension again.
    pub reconnect: String,
    /// The page to change what the extension may do.
    pub permissions: String,
}

request! {
    /// Lists the browsers that are connected.
    pub struct GetChromeBrowsers {}
}

/// The browsers that are connected.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetChromeBrowsersReply {
    /// The browsers.
    pub browsers: Vec<ChromeBrowser>,
}

/// A browser.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ChromeBrowser {
    /// The browser's id.
    pub device_id: String,
    /// The name for people.
    pub name: String,
    /// The operating system that the browser runs on.
    pub os_platform: Option<String>,
    /// Whether this browser is in use.
    pub current: bool,
}

request! {
    /// Chooses a browser.
    pub struct SelectChromeBrowser {
        required {
            /// The browser.
            device_id: "device_id" => String,
        }
    }
}

/// The browser in use.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SelectChromeBrowserReply {
    /// The name for people.
    pub name: Option<String>,
}

request! {
    /// Says which browsers run on this computer, for a choice between several.
    pub struct SetChromeBrowserHints {
        required {
            /// The browsers on this computer, at most 32.
            local_device_ids: "localDeviceIds" => Vec<String>,
        }
        optional {
            /// This computer's system.
            host_platform: "hostPlatform" => HostPlatform,
        }
        nullable {
            /// The browser that was chosen last; `None` if there is none.
            preferred_device_id: "preferredDeviceId" => String,
        }
    }
}

closed_enum! {
    /// A computer's system.
    #[non_exhaustive]
    pub enum HostPlatform {
        /// macOS.
        Darwin = "darwin",
        /// Windows.
        Win32 = "win32",
        /// Linux.
        Linux = "linux",
    }
}
