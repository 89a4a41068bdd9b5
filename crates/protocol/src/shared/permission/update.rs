//! Changes of permission rules, mode and directories.

use serde::{Deserialize, Serialize};

use super::{PermissionBehavior, PermissionMode, PermissionUpdateDestination};
use crate::wire_enum;

wire_enum! {
    /// One change to the permissions in force.
    ///
    /// Comes as a suggestion in `can_use_tool` and the PermissionRequest hook, ready to be echoed, and goes out with an
    /// allowing answer. A form, destination or mode that this build does not know stays as it came (`Unknown`, `Misfit`)
    /// and is echoed verbatim. The CLI takes at most [`PermissionUpdate::LIMIT`] of them in one answer.
    pub enum PermissionUpdate by "type" {
        /// Adds rules.
        "addRules" => AddRules(RulesUpdate),
        /// Replaces all rules of that behaviour and destination.
        "replaceRules" => ReplaceRules(RulesUpdate),
        /// Removes rules.
        "removeRules" => RemoveRules(RulesUpdate),
        /// Changes the mode.
        "setMode" => SetMode(ModeUpdate),
        /// Adds working directories.
        "addDirectories" => AddDirectories(DirectoriesUpdate),
        /// Removes working directories.
        "removeDirectories" => RemoveDirectories(DirectoriesUpdate),
    }
}

impl PermissionUpdate {
    /// How many updates one answer may hold, and how many rules or directories one update. The CLI refuses more.
    pub const LIMIT: usize = 4096;

    /// Adds rules that allow.
    pub fn allow(
        rules: impl IntoIterator<Item = PermissionRuleValue>,
        destination: PermissionUpdateDestination,
    ) -> Self {
        Self::AddRules(RulesUpdate::new(rules, PermissionBehavior::Allow, destination))
    }

    /// Adds rules that refuse.
    pub fn deny(
        rules: impl IntoIterator<Item = PermissionRuleValue>,
        destination: PermissionUpdateDestination,
    ) -> Self {
        Self::AddRules(RulesUpdate::new(rules, PermissionBehavior::Deny, destination))
    }

    /// Changes the mode.
    pub fn set_mode(mode: PermissionMode, destination: PermissionUpdateDestination) -> Self {
        Self::SetMode(ModeUpdate { mode, destination })
    }

    /// Adds working directories.
    pub fn add_directories<S: Into<String>>(
        directories: impl IntoIterator<Item = S>,
        destination: PermissionUpdateDestination,
    ) -> Self {
        Self::AddDirectories(DirectoriesUpdate::new(directories, destination))
    }

    /// Where the change is kept; `None` for a form that this build does not know.
    pub fn destination(&self) -> Option<PermissionUpdateDestination> {
        match self {
            Self::AddRules(rules) | Self::ReplaceRules(rules) | Self::RemoveRules(rules) => {
                Some(rules.destination)
            }
            Self::SetMode(mode) => Some(mode.destination),
            Self::AddDirectories(list) | Self::RemoveDirectories(list) => Some(list.destination),
            Self::Unknown(_) | Self::Misfit(_) => None,
        }
    }
}

/// Rules to add, replace or remove.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct RulesUpdate {
    /// The rules.
    pub rules: Vec<PermissionRuleValue>,
    /// What they do.
    pub behavior: PermissionBehavior,
    /// Where they are kept.
    pub destination: PermissionUpdateDestination,
}

impl RulesUpdate {
    /// Rules with one behaviour for one destination.
    pub fn new(
        rules: impl IntoIterator<Item = PermissionRuleValue>,
        behavior: PermissionBehavior,
        destination: PermissionUpdateDestination,
    ) -> Self {
        Self {
            rules: rules.into_iter().collect(),
            behavior,
            destination,
        }
    }
}

/// The mode to change to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ModeUpdate {
    /// The new mode.
    pub mode: PermissionMode,
    /// Where it is kept.
    pub destination: PermissionUpdateDestination,
}

/// Working directories to add or remove.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct DirectoriesUpdate {
    /// The directories.
    pub directories: Vec<String>,
    /// Where they are kept.
    pub destination: PermissionUpdateDestination,
}

impl DirectoriesUpdate {
    /// Directories for one destination.
    pub fn new<S: Into<String>>(
        directories: impl IntoIterator<Item = S>,
        destination: PermissionUpdateDestination,
    ) -> Self {
        Self {
            directories: directories.into_iter().map(Into::into).collect(),
            destination,
        }
    }
}

/// One permission rule: a tool, or some calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRuleValue {
    /// The tool, such as `Bash`, `mcp__server__tool` or `mcp__server` for all tools of a server.
    pub tool_name: String,
    /// What the call must match, such as `git status:*`; `None` for every call. Left out on the wire if `None`, because
    /// the CLI refuses `null`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub rule_content: Option<String>,
}

impl PermissionRuleValue {
    /// A rule for every call of a tool.
    pub fn tool(tool_name: impl Into<String>) -> Self {
        Self {
            tool_name: tool_name.into(),
            rule_content: None,
        }
    }

    /// A rule for the calls of a tool that match `rule_content`.
    pub fn calls(tool_name: impl Into<String>, rule_content: impl Into<String>) -> Self {
        Self {
            tool_name: tool_name.into(),
            rule_content: Some(rule_content.into()),
        }
    }
}

impl std::fmt::Display for PermissionRuleValue {
    /// As in settings and on the command line: `Tool` or `Tool(content)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.rule_content {
            Some(content) => write!(f, "{}({content})", self.tool_name),
            None => f.write_str(&self.tool_name),
        }
    }
}
