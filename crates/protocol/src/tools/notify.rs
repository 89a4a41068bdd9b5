//! `Monitor`, `PushNotification`, `ReadNotifications`: events and notices.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/notify.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `Monitor`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MonitorInput {
    /// What is watched.
    pub description: String,
    /// How long to watch, in milliseconds; the CLI takes 300000 if absent and 1800000 at most.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub timeout_ms: Option<u64>,
    /// A command each of whose lines is an event.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub command: Option<String>,
    /// A WebSocket each of whose messages is an event.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ws: Option<MonitorSocket>,
}

impl MonitorInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(description: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            timeout_ms: None,
            command: None,
            ws: None,
        }
    }
}

/// A WebSocket to watch.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct MonitorSocket {
    /// The socket's address.
    pub url: String,
    /// Subprotocols to ask for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub protocols: Option<Vec<String>>,
}

impl MonitorSocket {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            protocols: None,
        }
    }
}

/// Output of `Monitor`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct MonitorOutput {
    /// The id of the task.
    pub task_id: String,
    /// How long the monitor watches, in milliseconds; 0 for until it is stopped.
    pub timeout_ms: u64,
    /// Whether the monitor watches until it is stopped.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub persistent: Option<bool>,
    /// Whether the command ran in the sandbox only because the permission for it depended on that.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub kept_in_sandbox_by_check: Option<bool>,
}

/// Input of `PushNotification`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PushNotificationInput {
    /// The notice.
    pub message: String,
    /// Always `proactive` when present.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub status: Option<String>,
}

impl PushNotificationInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            status: None,
        }
    }
}

/// Output of `PushNotification`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct PushNotificationOutput {
    /// The notice.
    pub message: String,
    /// Whether the notification was sent to the user's phone.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub push_sent: Option<bool>,
    /// Whether the notification was shown on this machine.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub local_sent: Option<bool>,
    /// Why the notification was not sent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub disabled_reason: Option<PushDisabled>,
    /// When, in RFC 3339.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub sent_at: Option<String>,
}

crate::open_enum! {
    /// Why a notice was not sent.
    pub enum PushDisabled {
        /// The user has turned notices off.
        ConfigOff = "config_off",
        /// The user is there.
        UserPresent = "user_present",
        /// There is no way to send the notification.
        NoTransport = "no_transport",
    }
}

/// Input of `ReadNotifications`: nothing.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReadNotificationsInput {}

/// Output of `ReadNotifications`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReadNotificationsOutput {
    /// The notices.
    pub notifications: Vec<QueuedNotification>,
    /// How many are still waiting.
    pub remaining: u64,
    /// When the notifications were read, in RFC 3339.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub read_at: Option<String>,
}

/// A notice that waited for the session.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct QueuedNotification {
    /// The id of the notification, the same each time the notification is delivered.
    pub notification_id: String,
    /// Where the notification comes from, such as `github_webhook`.
    pub origin: String,
    /// When the notification was queued, in RFC 3339.
    pub queued_at: String,
    /// The text of the notification.
    pub content: String,
    /// When the notification arrived here, in RFC 3339.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub arrived_at: Option<String>,
}
