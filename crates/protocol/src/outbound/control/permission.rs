//! The permission mode, and the rules.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/permission.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Changes the permission mode. A permission request that is open stays open.
    pub struct SetPermissionMode {
        required {
            /// The new mode. For `BypassPermissions` the CLI must have been launched with a flag that allows this mode.
            mode: "mode" => crate::shared::PermissionMode,
        }
        optional {
            /// Says that ultraplan runs the session.
            ultraplan: "ultraplan" => bool,
            /// Says that the mode comes from settings, and that nobody chose it.
            from_settings: "from_settings" => bool,
            /// A person's answer to the question whether to go back to bypassing permissions.
            answers_bypass_switch_back: "answers_bypass_switch_back" => BypassSwitchBack,
        }
    }
}

crate::shared::closed_enum::closed_enum! {
    /// A person's answer to the question whether to go back to bypassing permissions.
    #[non_exhaustive]
    pub enum BypassSwitchBack {
        /// For some days.
        Now = "bypass_now",
        /// For good.
        Always = "bypass_always",
    }
}

/// The mode in force.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SetPermissionModeReply {
    /// The mode, which may differ from the requested one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub mode: Option<crate::shared::ReportedPermissionMode>,
}

crate::outbound::control::request! {
    /// Lists the rules and directories in force.
    pub struct ListPermissionRules {}
}

/// The rules and directories in force.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ListPermissionRulesReply {
    /// The rules and directories.
    pub state: PermissionRulesState,
}

/// The rules and directories in force.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct PermissionRulesState {
    /// The rules.
    pub rules: Vec<PermissionRuleEntry>,
    /// The directories besides the first.
    pub workspace_directories: Vec<WorkspaceDirectory>,
    /// The directory that the session was started in.
    pub original_cwd: String,
    /// Whether the organization lets only its own rules count.
    pub managed_only: bool,
    /// Settings that could not be read.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub errors: Option<Vec<SettingsParseError>>,
    /// Whether the reply lacks something because replies are stored.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub withheld: Option<bool>,
}

/// One permission rule.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct PermissionRuleEntry {
    /// What the rule does.
    pub behavior: RuleBehavior,
    /// Where the rule comes from.
    pub source: PermissionRuleSource,
    /// The rule, as settings have it.
    pub rule: String,
    /// The rule in words.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub description: Option<PermissionRuleDescription>,
    /// Whether the rule can be changed.
    pub editability: PermissionRuleEditability,
    /// Whether the rule has no effect.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub not_in_effect: Option<bool>,
}

/// A rule in words, in three pieces of which the middle one is to be emphasized.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PermissionRuleDescription {
    /// The first piece.
    pub prefix: String,
    /// The piece to emphasize.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub emphasis: Option<String>,
    /// The last piece.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub suffix: Option<String>,
}

crate::open_enum! {
    /// What a rule does, as the CLI reports it.
    pub enum RuleBehavior {
        /// Calls run without a request.
        Allow = "allow",
        /// Calls are refused.
        Deny = "deny",
        /// The CLI requests permission for calls.
        Ask = "ask",
    }
}

crate::open_enum! {
    /// Where a rule comes from.
    pub enum PermissionRuleSource {
        /// The user's settings.
        UserSettings = "userSettings",
        /// The project's settings.
        ProjectSettings = "projectSettings",
        /// The project's settings on this machine.
        LocalSettings = "localSettings",
        /// Settings given on the command line or by `apply_flag_settings`.
        FlagSettings = "flagSettings",
        /// The organization's settings.
        PolicySettings = "policySettings",
        /// A flag.
        CliArg = "cliArg",
        /// A slash command.
        Command = "command",
        /// This session.
        Session = "session",
        /// A mounted MCP server.
        McpMount = "mcpMount",
        /// The narrowing of the tool set.
        ToolsNarrowing = "toolsNarrowing",
        /// The policy of an MCP server.
        McpServerPolicy = "mcpServerPolicy",
        /// The host's credentials.
        HostCredential = "hostCredential",
    }
}

crate::open_enum! {
    /// Whether a rule can be changed.
    pub enum PermissionRuleEditability {
        /// The rule can be changed for good.
        Persistent = "persistent",
        /// The rule can be changed for this session.
        Session = "session",
        /// The rule cannot be changed.
        Readonly = "readonly",
    }
}

/// One working directory.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WorkspaceDirectory {
    /// The directory.
    pub path: String,
    /// Who added it.
    pub source: String,
}

/// Settings that could not be read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SettingsParseError {
    /// The file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub file: Option<String>,
    /// Where in the settings.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

crate::outbound::control::request! {
    /// Sets a permission mode of its own for one MCP server.
    pub struct SetMcpPermissionModeOverride {
        required {
            /// The server.
            server_name: "serverName" => String,
            /// The mode of the server; `None` for that of the session.
            mode: "mode" => Option<McpPermissionMode>,
        }
        optional {
            /// Tools of the server for which the CLI requests permission even where it need not.
            ask_for_tools: "askForTools" => Vec<ToolName>,
        }
    }
}

crate::shared::closed_enum::closed_enum! {
    /// A mode that one MCP server may have.
    #[non_exhaustive]
    pub enum McpPermissionMode {
        /// The CLI requests permission for calls.
        Default = "default",
        /// A classifier decides.
        Auto = "auto",
    }
}

/// One tool by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ToolName {
    /// The name, without the `mcp__server__` in front.
    pub name: String,
}

impl ToolName {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// What became of the server's mode.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SetMcpPermissionModeOverrideReply {
    /// Why the mode may have no effect.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub warning: Option<String>,
}
