//! Where a prompt, and so a turn, came from.

use serde::{Deserialize, Serialize};

use crate::open_enum;
use crate::wire_enum;

wire_enum! {
    /// Where a prompt, and so a turn, came from. In `user` and `result`; absent means the program that drives the
    /// CLI.
    pub enum Origin by "kind" {
        /// A person.
        "human" => Human(PlainOrigin),
        /// An MCP channel server.
        "channel" => Channel(ChannelOrigin),
        /// Another session.
        "peer" => Peer(PeerOrigin),
        /// Background work that ended.
        "task-notification" => TaskNotification(TaskNotificationOrigin),
        /// The coordinator of a team of agents.
        "coordinator" => Coordinator(PlainOrigin),
        /// The CLI does not know the origin.
        "unclassified" => Unclassified(PlainOrigin),
        /// An observer agent.
        "observer" => Observer(ObserverOrigin),
        /// The CLI itself, which went on.
        "auto-continuation" => AutoContinuation(PlainOrigin),
        /// What an observer saw.
        "observer-activity" => ObserverActivity(PlainOrigin),
        /// A voice call.
        "voice-call" => VoiceCall(VoiceCallOrigin),
    }
}

/// An origin that has no fields.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PlainOrigin {}

/// An MCP channel server.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ChannelOrigin {
    /// The server's name.
    pub server: String,
}

/// Another session.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PeerOrigin {
    /// The peer's address.
    pub from: String,
    /// `bypass` or `prompting`: whether the sender asks for permissions.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub from_mode: Option<String>,
    /// The peer's name.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub name: Option<String>,
    /// The session id of the peer.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub from_session: Option<String>,
    /// Where the sender got the message from.
    #[serde(
        rename = "inbound_origin",
        default,
        skip_serializing_if = "crate::whole::unset"
    )]
    pub inbound_origin: Option<String>,
    /// The task that sent the message.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub sender_task_id: Option<String>,
    /// The text of the message.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub body: Option<String>,
    /// The sender's process, if the system confirmed this.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub verified_peer_pid: Option<u64>,
    /// True for the report of a subagent.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub handback: Option<bool>,
    /// True if the report was flagged.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub flagged: Option<bool>,
    /// A remark on the report.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub handback_note: Option<String>,
    /// The whole report.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub handback_report_text: Option<String>,
    /// The call that sent the report.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub handback_tool_use_id: Option<String>,
    /// The messages, if several were merged.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub members: Option<Vec<PeerMember>>,
}

/// One of several merged messages.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PeerMember {
    /// The text of the message.
    pub body: String,
}

/// Background work that ended, or a trigger that fired.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskNotificationOrigin {
    /// What ended, if not a task of this session.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub subkind: Option<TaskNotificationKind>,
    /// Why a trigger fired.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub fire_reason: Option<String>,
    /// `session-task` for a task of this session.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub producer: Option<String>,
    /// The run of the task, as in the `task_*` frames.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub run_id: Option<String>,
    /// `mcp-task` for a task of an MCP server.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub task_kind: Option<String>,
}

open_enum! {
    /// What woke the session.
    pub enum TaskNotificationKind {
        /// A schedule.
        ScheduledTrigger = "scheduled-trigger",
        /// A message of another session.
        PeerSendMessage = "peer-send-message",
        /// A relay of a project.
        ProjectsRelay = "projects-relay",
        /// The session's inbox.
        SessionInbox = "session-inbox",
        /// Something outside.
        ExternalEvent = "external-event",
    }
}

/// An observer agent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ObserverOrigin {
    /// The observer's address.
    pub from: String,
    /// The task of the observer.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub sender_task_id: Option<String>,
}

/// A voice call.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct VoiceCallOrigin {
    /// The request.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub request_uuid: Option<String>,
    /// The message that this replies to.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub in_reply_to_uuid: Option<String>,
    /// When the words were said, as ISO 8601.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub said_at: Option<String>,
}
