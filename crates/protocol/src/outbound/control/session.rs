//! The session itself.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/session.toml: change that instead.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Names the session. `session_title_changed` follows.
    pub struct RenameSession {
        required {
            /// The name.
            title: "title" => String,
        }
        optional {
            /// Who chose it.
            source: "source" => TitleSource,
            /// The session that it is for; refused if the process has moved on to another one.
            session_id: "session_id" => String,
            /// Also names the group of tabs in the browser.
            names_chrome_tab_group: "names_chrome_tab_group" => bool,
        }
    }
}

crate::shared::closed_enum::closed_enum! {
    /// Who chose a title.
    #[non_exhaustive]
    pub enum TitleSource {
        /// Somebody on claude.ai.
        Remote = "remote",
        /// Somebody in the driving program; counts as the user's choice.
        Host = "host",
    }
}

crate::outbound::control::request! {
    /// Colours the session. A session without a terminal does not have it.
    pub struct SetColor {
        required {
            /// The colour's name.
            color: "color" => String,
        }
    }
}

crate::outbound::control::request! {
    /// Lets a small model find a title.
    pub struct GenerateSessionTitle {
        required {
            /// What the session is about.
            description: "description" => String,
        }
        optional {
            /// Also names the session so.
            persist: "persist" => bool,
        }
    }
}

/// A title.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GenerateSessionTitleReply {
    /// The title; `None` if none was found.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
}

crate::outbound::control::request! {
    /// Takes a process that was started ahead with `--await-claim`. Once a process.
    pub struct ClaimSession {
        required {
            /// The working directory.
            cwd: "cwd" => String,
        }
        optional {
            /// Environment variables to add.
            env: "env" => BTreeMap<String, String>,
            /// More working directories.
            additional_directories: "additional_directories" => Vec<String>,
            /// How tool calls are decided.
            permission_mode: "permission_mode" => crate::shared::PermissionMode,
            /// The system prompt.
            system_prompt: "system_prompt" => Vec<String>,
            /// What to say after the system prompt.
            append_system_prompt: "append_system_prompt" => String,
            /// Subagents.
            agents: "agents" => BTreeMap<String, crate::shared::AgentDefinition>,
            /// The session's name.
            title: "title" => String,
            /// MCP servers in our own program.
            sdk_mcp_servers: "sdk_mcp_servers" => Vec<String>,
            /// Wants the answer of `initialize` along.
            include_initialize: "include_initialize" => bool,
            /// A person trusts the directory.
            workspace_trust: "workspace_trust" => crate::outbound::initialize::WorkspaceTrust,
        }
    }
}

/// The process is ours.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ClaimSessionReply {
    /// `ok`.
    pub status: String,
    /// The working directory without links.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cwd: Option<String>,
    /// The session.
    pub session_id: String,
    /// How long the process waited, in milliseconds.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub parked_ms: Option<f64>,
    /// Whether the MCP servers in our own program are connected.
    pub sdk_mcp_settled: bool,
    /// The answer of `initialize`, if wanted.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub initialize: Option<Box<crate::outbound::initialize::InitializeReply>>,
    /// Whether the trust was recorded.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub workspace_trust_recorded: Option<bool>,
}

crate::outbound::control::request! {
    /// Gives the conversation as text.
    pub struct ExportConversation {}
}

/// The conversation as text.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ExportConversationReply {
    /// The conversation.
    pub text: String,
    /// What to call the file.
    pub default_filename: String,
}

crate::outbound::control::request! {
    /// Gives the plan of plan mode.
    pub struct GetPlan {}
}

/// The plan.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetPlanReply {
    /// Whether there is one.
    pub exists: bool,
    /// The plan, in Markdown.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content: Option<String>,
    /// The plan's file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
}

crate::outbound::control::request! {
    /// Opens the session to claude.ai, or closes it.
    pub struct RemoteControl {
        required {
            /// Whether it is open.
            enabled: "enabled" => bool,
        }
        optional {
            /// What to call it there.
            name: "name" => String,
            /// The session there to go on with.
            reattach_session_id: "reattach_session_id" => String,
            /// Leaves the session there when the process ends.
            keep_session_on_exit: "keep_session_on_exit" => bool,
            /// The secret of the session there.
            work_secret: "work_secret" => String,
        }
    }
}

/// Where the session is open. Empty when it was closed.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RemoteControlReply {
    /// The session there.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub session_url: Option<String>,
    /// The page to connect a device.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub connect_url: Option<String>,
    /// The environment there.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub environment_id: Option<String>,
    /// Which attempt this is.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub bridge_epoch: Option<u64>,
    /// The session there, by id.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub bridge_session_id: Option<String>,
}

crate::outbound::control::request! {
    /// Tells the CLI's version.
    pub struct GetBinaryVersion {}
}

/// The CLI's version.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetBinaryVersionReply {
    /// The version.
    pub version: String,
    /// When it was built, as ISO 8601.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub build_time: Option<String>,
    /// The oldest SDK of the desktop application that goes with it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub oldest_desktop_sdk: Option<String>,
}
