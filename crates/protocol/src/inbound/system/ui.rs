//! What plugins draw, for programs that have a screen.

use serde::{Deserialize, Serialize};

/// `ui_invalidate`: what plugins draw has to be drawn again.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiInvalidate {
    /// Always `ui.render`.
    pub event: String,
    /// True if prompts are looked at by plugins.
    pub prompts_screened: Option<bool>,
    /// What to draw; absent means everything.
    pub instances: Option<Vec<UiInstance>>,
    /// Components that no plugin draws any more.
    pub unhooked: Option<Vec<String>>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// Something that is drawn.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiInstance {
    /// The surface on which the instance is shown.
    pub surface: String,
    /// The component that is shown.
    pub component: String,
    /// The id of the instance.
    pub instance_id: String,
}

/// `ui_log`: a plugin logs.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiLog {
    /// The plugin.
    pub plugin: String,
    /// The text.
    pub text: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `ui_notify`: a plugin notifies the user.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiNotify {
    /// The plugin.
    pub plugin: String,
    /// The file of the notification.
    pub source: String,
    /// The title.
    pub title: String,
    /// The text.
    pub text: String,
    /// Tells notifications apart.
    pub key: Option<String>,
    /// How long to wait first, in milliseconds.
    pub delay_ms: Option<f64>,
    /// When to show the notification, in milliseconds since 1970.
    pub at: Option<f64>,
    /// Whether to keep the notification until the user is back.
    pub until_back: Option<bool>,
    /// Whether another plugin changed the notification.
    pub rewritten: bool,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `ui_notify_cancel`: a plugin takes a notification back.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiNotifyCancel {
    /// The plugin.
    pub plugin: String,
    /// The file of the notification.
    pub source: String,
    /// The notification; absent means all.
    pub key: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `ui_toast`: a plugin shows a short notice.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiToast {
    /// The plugin.
    pub plugin: String,
    /// The text.
    pub text: String,
    /// How long to show the toast, in milliseconds.
    pub timeout_ms: f64,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `ui_status`: a plugin's line of status.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiStatus {
    /// The plugin.
    pub plugin: String,
    /// The line; null for none.
    pub text: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `ui_placed`: where rows of plugins belong.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiPlaced {
    /// The rows.
    #[serde(default)]
    pub rows: Vec<UiRow>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A row that a plugin placed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiRow {
    /// The plugin.
    pub plugin: String,
    /// The row.
    pub id: String,
    /// The request that placed the row.
    pub request_id: String,
    /// The line that the row follows.
    pub after_uuid: Option<String>,
}

/// `ui_panes`: the panes of plugins.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiPanes {
    /// The panes.
    #[serde(default)]
    pub panes: Vec<UiPane>,
    /// The one that is shown.
    pub shown_id: Option<String>,
    /// The one that has the focus.
    pub focused_id: Option<String>,
    /// The one that asks for the focus.
    pub focus_requested_id: Option<String>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// A pane of a plugin.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiPane {
    /// The pane's id.
    pub id: String,
    /// The pane's title.
    pub title: String,
    /// The plugin.
    pub plugin: String,
    /// True if Escape closes the pane.
    pub close_on_escape: Option<bool>,
    /// True if notices wait until the pane is closed.
    pub hold_toasts: Option<bool>,
    /// The pane's background.
    pub background_color: Option<String>,
    /// The pane's height.
    pub rows: Option<u64>,
    /// The pane's width.
    pub columns: Option<u64>,
    /// `widget` if the pane is a widget.
    pub placement: Option<String>,
}

/// `ui_scroll`: a pane scrolls.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiScroll {
    /// The client concerned.
    pub client_id: String,
    /// `Pane` or `AbovePrompt`.
    pub component: String,
    /// The id of the instance.
    pub instance_id: String,
    /// To which row.
    pub offset: i64,
    /// Whether the pane stays at its end.
    pub follow_end: Option<bool>,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}

/// `ui_focus`: the focus moves.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UiFocus {
    /// The client concerned.
    pub client_id: String,
    /// `Pane` or `AbovePrompt`.
    pub component: String,
    /// The id of the instance.
    pub instance_id: String,
    /// The plugin.
    pub plugin: String,
    /// The element that gets the focus.
    pub key: String,
    /// The id of this frame.
    pub uuid: String,
    /// The session of this frame.
    pub session_id: String,
}
