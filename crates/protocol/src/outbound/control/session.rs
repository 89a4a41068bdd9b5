//! The session itself.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/session.toml: change that instead.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Gives the session a title. The CLI then emits `session_title_changed`.
    pub struct RenameSession {
        required {
            /// The new title.
            title: "title" => String,
        }
        optional {
            /// Who chose the title.
            source: "source" => TitleSource,
            /// The session to rename. The CLI refuses the request if its process runs another session by now.
            session_id: "session_id" => String,
            /// Also gives this title to the group of tabs in the browser.
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
    /// Sets the session's colour. A session without a terminal has no colour.
    pub struct SetColor {
        required {
            /// The colour's name.
            color: "color" => String,
        }
    }
}

crate::outbound::control::request! {
    /// Has a small model write a title for the session.
    pub struct GenerateSessionTitle {
        required {
            /// What the session is about.
            description: "description" => String,
        }
        optional {
            /// Also gives the session this title.
            persist: "persist" => bool,
        }
    }
}

/// The title that the model wrote.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GenerateSessionTitleReply {
    /// The title; `None` if the model wrote none.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
}

crate::outbound::control::request! {
    /// Claims a process that was started ahead with `--await-claim`. A process can be claimed once.
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
            /// The permission mode.
            permission_mode: "permission_mode" => crate::shared::PermissionMode,
            /// The system prompt.
            system_prompt: "system_prompt" => Vec<String>,
            /// Text to append to the system prompt.
            append_system_prompt: "append_system_prompt" => String,
            /// Subagents.
            agents: "agents" => BTreeMap<String, crate::shared::AgentDefinition>,
            /// The session's title.
            title: "title" => String,
            /// MCP servers of the driving program.
            sdk_mcp_servers: "sdk_mcp_servers" => Vec<String>,
            /// Whether the reply has the reply to `initialize`, too.
            include_initialize: "include_initialize" => bool,
            /// Says that a person trusts the directory.
            workspace_trust: "workspace_trust" => crate::outbound::initialize::WorkspaceTrust,
        }
    }
}

/// The process is claimed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ClaimSessionReply {
    /// Always `ok`.
    pub status: String,
    /// The working directory, with links resolved.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cwd: Option<String>,
    /// The id of the session.
    pub session_id: String,
    /// How long the process waited to be claimed, in milliseconds.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub parked_ms: Option<f64>,
    /// Whether the MCP servers of the driving program are connected.
    pub sdk_mcp_settled: bool,
    /// The reply to `initialize`, if the request wanted it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub initialize: Option<Box<crate::outbound::initialize::InitializeReply>>,
    /// Whether the CLI stored that the directory is trusted.
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
    /// A name for a file with the conversation.
    pub default_filename: String,
}

crate::outbound::control::request! {
    /// Gives the plan of plan mode.
    pub struct GetPlan {}
}

/// The plan of plan mode.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetPlanReply {
    /// Whether the session has a plan.
    pub exists: bool,
    /// The plan, in Markdown.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub content: Option<String>,
    /// The file of the plan.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub path: Option<String>,
}

crate::outbound::control::request! {
    /// Opens the session to claude.ai, or closes it.
    pub struct RemoteControl {
        required {
            /// Whether claude.ai can use the session from now on.
            enabled: "enabled" => bool,
        }
        optional {
            /// The title of the session on claude.ai.
            name: "name" => String,
            /// The session on claude.ai to continue.
            reattach_session_id: "reattach_session_id" => String,
            /// Keeps the session on claude.ai when the process ends.
            keep_session_on_exit: "keep_session_on_exit" => bool,
            /// The secret of the session on claude.ai.
            work_secret: "work_secret" => String,
        }
    }
}

/// Where claude.ai has the session. Empty when the session was closed to claude.ai.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RemoteControlReply {
    /// The address of the session on claude.ai.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub session_url: Option<String>,
    /// The page on which a device can be connected.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub connect_url: Option<String>,
    /// The environment on claude.ai.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub environment_id: Option<String>,
    /// The number of this connection to claude.ai.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub bridge_epoch: Option<u64>,
    /// The id of the session on claude.ai.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub bridge_session_id: Option<String>,
}

crate::outbound::control::request! {
    /// Reports the CLI's version.
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
    /// The oldest SDK of the desktop application that works with this CLI.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub oldest_desktop_sdk: Option<String>,
}
