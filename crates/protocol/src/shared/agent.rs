//! Subagents that the program defines.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::closed_enum::closed_enum;
use super::effort::Effort;
use super::mcp::McpServerConfig;
use super::permission::PermissionMode;
use crate::RawJson;

/// A subagent, given in `initialize`.
///
/// The CLI drops *all* agents without a word if one of them is invalid; [`validate`](Self::validate) says so beforehand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentDefinition {
    /// When to use the agent, for the model to read.
    pub description: String,
    /// The system prompt of the subagent.
    pub prompt: String,
    /// The only tools that the agent may use; all of the parent's if `None`. They are names: of a rule such as `Bash(git *)` the CLI gives
    /// the agent the whole tool.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub tools: Option<Vec<String>>,
    /// Tools that the agent may not use. `mcp__server` stands for all tools of a server, and `mcp__*` for those of all servers. They are
    /// names: of patterns, and of names in other letters, the CLI takes no notice.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub disallowed_tools: Option<Vec<String>>,
    /// The agent's model: an alias, a full id, or `inherit` for the main one.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub model: Option<String>,
    /// The subagent's MCP servers.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub mcp_servers: Option<Vec<AgentMcpServer>>,
    /// A reminder that is added to the agent's system prompt. Experimental upstream.
    #[serde(
        rename = "criticalSystemReminder_EXPERIMENTAL",
        default,
        skip_serializing_if = "crate::whole::unset"
    )]
    pub critical_system_reminder: Option<String>,
    /// Skills to load into the agent's context at once.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub skills: Option<Vec<String>>,
    /// The first prompt of the agent when it is the main agent; sent before the user's.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub initial_prompt: Option<String>,
    /// The most round trips to the API before the agent stops; at least 1.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub max_turns: Option<u64>,
    /// The size in tokens at which it compacts its conversation; can only lower what it would inherit.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub auto_compact_window: Option<u64>,
    /// Runs in the background.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub background: Option<bool>,
    /// Runs without the instruction files of user and project.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub omit_claude_md: Option<bool>,
    /// Where the agent's memory is kept; without one if `None`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub memory: Option<AgentMemory>,
    /// How hard the agent thinks.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub effort: Option<AgentEffort>,
    /// The permission mode of the agent; the parent's if `None`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub permission_mode: Option<PermissionMode>,
    /// The agent, or up to four separated by commas, that watches this one in the background.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub observer: Option<String>,
    /// What to add to each report that the observer gets.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub observer_message: Option<String>,
}

closed_enum! {
    /// Where an agent's memory is kept.
    #[non_exhaustive]
    pub enum AgentMemory {
        /// With the user.
        User = "user",
        /// With the project.
        Project = "project",
        /// With the project on this machine.
        Local = "local",
    }
}

/// How hard an agent thinks: a level or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEffort {
    /// A named level.
    Level(Effort),
    /// A number on the model's own scale.
    Number(i64),
}

impl From<Effort> for AgentEffort {
    fn from(level: Effort) -> Self {
        Self::Level(level)
    }
}

impl Serialize for AgentEffort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Level(level) => level.serialize(serializer),
            Self::Number(number) => serializer.serialize_i64(*number),
        }
    }
}

impl<'de> Deserialize<'de> for AgentEffort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        if raw.get().starts_with('"') {
            raw.read().map(Self::Level)
        } else {
            raw.read().map(Self::Number)
        }
        .map_err(serde::de::Error::custom)
    }
}

/// An MCP server of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentMcpServer {
    /// One that is configured for the session, by name.
    Named(String),
    /// Servers for this agent alone, by name.
    Inline(BTreeMap<String, McpServerConfig>),
}

impl Serialize for AgentMcpServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(name) => serializer.serialize_str(name),
            Self::Inline(servers) => servers.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AgentMcpServer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        if raw.get().starts_with('"') {
            raw.read().map(Self::Named)
        } else {
            raw.read().map(Self::Inline)
        }
        .map_err(serde::de::Error::custom)
    }
}

/// Why the CLI would drop an agent, and all others of the option.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidAgent {
    /// The field that is wrong, as it is on the wire.
    pub field: &'static str,
    /// What is wrong with the field.
    pub problem: &'static str,
}

impl fmt::Display for InvalidAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent field `{}` {}", self.field, self.problem)
    }
}

impl std::error::Error for InvalidAgent {}

impl AgentDefinition {
    /// The smallest `auto_compact_window` that the CLI takes.
    pub const MIN_COMPACT_WINDOW: u64 = 100_000;

    /// An agent with the two fields that each must have.
    pub fn new(description: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            prompt: prompt.into(),
            ..Self::default()
        }
    }

    /// Limits the tools that the agent may use.
    pub fn tools<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the agent's model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Checks what the CLI would check.
    ///
    /// # Errors
    /// With the first field that the CLI would refuse.
    pub fn validate(&self) -> Result<(), InvalidAgent> {
        let problem = |field, problem| Err(InvalidAgent { field, problem });
        if self.description.is_empty() {
            return problem("description", "must not be empty");
        }
        if self.model.as_deref().is_some_and(|model| model.trim().is_empty()) {
            return problem("model", "must not be blank");
        }
        if self.max_turns == Some(0) {
            return problem("maxTurns", "must be at least 1");
        }
        if self
            .auto_compact_window
            .is_some_and(|window| window < Self::MIN_COMPACT_WINDOW)
        {
            return problem("autoCompactWindow", "must be at least 100,000");
        }
        for server in self.mcp_servers.iter().flatten() {
            let AgentMcpServer::Inline(servers) = server else {
                continue;
            };
            for config in servers.values() {
                if config.timeout() == Some(0) {
                    return problem("mcpServers", "has a server with a timeout of 0");
                }
                if matches!(config, McpServerConfig::Stdio(stdio) if stdio.command.is_empty()) {
                    return problem("mcpServers", "has a server without a command");
                }
            }
        }
        Ok(())
    }
}
