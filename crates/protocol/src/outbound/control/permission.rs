//! How tool calls are decided.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/permission.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Changes how tool calls are decided. A question that is already open stays open.
    pub struct SetPermissionMode {
        required {
            /// The new mode. `BypassPermissions` needs a CLI that was launched with leave for it.
            mode: "mode" => crate::shared::PermissionMode,
        }
        optional {
            /// Marks a session of ultraplan.
            ultraplan: "ultraplan" => bool,
            /// The mode is the default of somebody's settings and not a choice.
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
    /// Whether something was left out because the answer is stored somewhere.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub withheld: Option<bool>,
}

/// One permission rule.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct PermissionRuleEntry {
    /// What it does.
    pub behavior: RuleBehavior,
    /// Where it comes from.
    pub source: PermissionRuleSource,
    /// The rule as it is written in settings.
    pub rule: String,
    /// The rule in words.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub description: Option<PermissionRuleDescription>,
    /// Whether it can be changed.
    pub editability: PermissionRuleEditability,
    /// Whether it is there but does not count.
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
        /// Calls run.
        Allow = "allow",
        /// Calls are refused.
        Deny = "deny",
        /// Calls are asked.
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
        /// For good.
        Persistent = "persistent",
        /// For this session.
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
    /// Decides otherwise for one MCP server.
    pub struct SetMcpPermissionModeOverride {
        required {
            /// The server.
            server_name: "serverName" => String,
            /// The mode for it; `None` for that of the session.
            mode: "mode" => Option<McpPermissionMode>,
        }
        optional {
            /// Tools of the server that are asked even where they need not be.
            ask_for_tools: "askForTools" => Vec<ToolName>,
        }
    }
}

crate::shared::closed_enum::closed_enum! {
    /// A mode that one MCP server may have.
    #[non_exhaustive]
    pub enum McpPermissionMode {
        /// Calls are asked.
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

/// What became of an override.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SetMcpPermissionModeOverrideReply {
    /// Why it may not do what it should.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub warning: Option<String>,
}
