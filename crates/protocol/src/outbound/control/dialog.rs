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
    /// What; absent for a row that is a sentence.
    pub label: Option<String>,
    /// The value or the sentence.
    pub value: String,
}

request! {
    /// What `/memory` shows. Forgets what is known of the files of instructions first.
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
    /// Whether the CLI remembers by itself.
    pub auto_memory: AutoMemory,
    /// Whether the CLI tidies memories up by itself.
    pub auto_dream: AutoDream,
}

/// A file of instructions.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MemoryDialogFile {
    /// Whose file it is.
    pub kind: MemoryFileKind,
    /// The path of the file.
    pub path: String,
    /// What to call it.
    pub label: String,
    /// The description of the file.
    pub description: String,
    /// Whether it is there.
    pub exists: bool,
}

open_enum! {
    /// Whose instructions a file holds.
    pub enum MemoryFileKind {
        /// A file of the user.
        User = "user",
        /// The project's.
        Project = "project",
        /// The project's, in `.claude`.
        ProjectAlt = "project-alt",
        /// The project's on this machine.
        Local = "local",
        /// Another file that was loaded.
        Loaded = "other",
    }
}

/// A directory of memories.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MemoryDialogFolder {
    /// Whose: `auto`, `team` or `agent`.
    pub kind: String,
    /// The path of the folder.
    pub path: String,
    /// What to call it.
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
    /// What it is about: `user`, `feedback`, `project` or `reference`.
    pub r#type: Option<String>,
    /// When it was changed, in milliseconds since 1970.
    pub modified_ms: f64,
}

/// Whether the CLI remembers by itself.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AutoMemory {
    /// Whether automatic memory is on.
    pub enabled: bool,
    /// Whether that can be changed.
    pub toggleable: bool,
    /// The state, for people.
    pub status: String,
}

/// Whether the CLI tidies memories up by itself.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AutoDream {
    /// Whether to show this.
    pub shown: bool,
    /// Whether the CLI tidies memories up by itself.
    pub enabled: bool,
    /// Whether that can be changed.
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
    /// What to call it.
    pub display_name: String,
    /// What it does.
    pub description: String,
    /// Where it comes from.
    pub source: String,
    /// How much room it takes, estimated.
    pub tokens: u64,
    /// Who may use it.
    pub state: SkillState,
    /// Who fixed that.
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
    /// Who fixed the state of a skill.
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
    /// Whether its bare name is the CLI's own.
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
    /// Whether this machine can do it.
    pub supported: bool,
    /// Why the sandbox is not supported.
    pub unsupported_reason: Option<SandboxUnsupported>,
    /// Whether the organization has fixed it.
    pub locked: bool,
    /// Whether the organization has fixed what happens to commands that fail.
    pub overrides_locked: bool,
    /// Where the organization says so.
    pub policy_origins: Option<Vec<String>>,
    /// Whether the sandbox is on.
    pub enabled: bool,
    /// Whether settings say it is.
    pub enabled_in_settings: bool,
    /// Why it is off though settings say it is on.
    pub unavailable_reason: Option<String>,
    /// How it works.
    pub mode: SandboxMode,
    /// Whether commands in it could run without a question.
    pub auto_allow_available: bool,
    /// Whether it may be off.
    pub no_sandbox_allowed: bool,
    /// Whether a command that fails in it may be tried outside.
    pub unsandboxed_fallback: bool,
    /// Whether what it needs is there.
    pub dependencies: SandboxDependencies,
    /// Commands that run outside.
    pub excluded_commands: Vec<String>,
    /// What it forbids.
    pub restrictions: SandboxRestrictions,
}

open_enum! {
    /// Why there is no sandbox.
    pub enum SandboxUnsupported {
        /// WSL 1.
        Wsl1 = "wsl1",
        /// The system.
        Platform = "platform",
        /// The organization's choice of systems.
        ExcludedPlatform = "excluded_platform",
    }
}

open_enum! {
    /// How the sandbox works.
    pub enum SandboxMode {
        /// Commands in it run without a question.
        AutoAllow = "auto-allow",
        /// Commands in it are asked as ever.
        Regular = "regular",
        /// There is no sandbox.
        Disabled = "disabled",
    }
}

/// Whether what the sandbox needs is there.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SandboxDependencies {
    /// What is not.
    pub errors: Vec<String>,
    /// What would be better.
    pub warnings: Vec<String>,
}

/// What the sandbox forbids.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SandboxRestrictions {
    /// Paths that may not be read.
    pub fs_deny_read: Vec<String>,
    /// Paths that may be read all the same.
    pub fs_allow_read: Vec<String>,
    /// Paths that may be written.
    pub fs_allow_write: Vec<String>,
    /// Paths that may not be written all the same.
    pub fs_deny_write: Vec<String>,
    /// Hosts that may be reached.
    pub network_allowed_domains: Vec<String>,
    /// Hosts that may not be reached.
    pub network_denied_domains: Vec<String>,
    /// Whether the organization chooses the hosts.
    pub network_managed: bool,
    /// Unix sockets that may be used.
    pub unix_sockets: Vec<String>,
    /// Whether all may be.
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
    /// Whether the organization allows it.
    pub allowed: bool,
    /// Whether the account has it.
    pub subscriber: bool,
    /// Whether this is WSL.
    pub wsl: bool,
    /// Whether the extension is there.
    pub installed: bool,
    /// Whether it is connected.
    pub connected: bool,
    /// The browser.
    pub paired_browser: Option<String>,
    /// Whether sessions have it by themselves.
    pub enabled_by_default: bool,
    /// Whether this session had it when it started.
    pub at_startup: Option<bool>,
    /// Pages to open.
    pub urls: ChromeUrls,
}

/// Pages to open for `/chrome`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ChromeUrls {
    /// To install the extension.
    pub install: String,
    /// To connect it again.
    pub reconnect: String,
    /// To say what it may do.
    pub permissions: String,
}

request! {
    /// Lists the browsers connected.
    pub struct GetChromeBrowsers {}
}

/// The browsers connected.
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
    /// What to call it.
    pub name: String,
    /// The system it runs on.
    pub os_platform: Option<String>,
    /// Whether it is the one in use.
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
    /// What to call it.
    pub name: Option<String>,
}

request! {
    /// Says which browsers are near, to choose between several.
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
            /// The browser chosen last; `None` for none.
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
