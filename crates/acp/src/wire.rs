//! Encodes events for a protocol version.

#[macro_use]
mod shared;
pub(crate) mod truncate;
pub(crate) mod v1;
pub(crate) mod v2;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use outrigger::protocol::RawJson;
use serde_json::{Map, Value, json};

use crate::event::{CallChange, Event, Notice, State, Status};
use crate::outcome::End;
use crate::reduce::BackgroundCall;

/// A `session/update` of either version.
pub(crate) enum Update {
    V1(Box<acp::SessionUpdate>),
    V2(Box<draft::SessionUpdate>),
}

/// The call in a permission request.
pub(crate) enum PermissionCall {
    V1(Box<acp::ToolCallUpdate>),
    V2 {
        /// The title of the question.
        title: String,
        call: Box<draft::ToolCallUpdate>,
    },
}

/// Encodes the events of one session.
#[derive(Debug)]
pub(crate) enum Encoder {
    V1(v1::V1Encoder),
    V2(v2::V2Encoder),
}

impl Encoder {
    /// For an editor of version 1 with these capabilities.
    pub(crate) fn v1(capabilities: &acp::ClientCapabilities) -> Self {
        Self::V1(v1::V1Encoder::new(v1::UpdateCapabilities::of(capabilities)))
    }

    /// For an editor of version 2 with these capabilities.
    pub(crate) fn v2(capabilities: &acp::ClientCapabilities) -> Self {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let subagents = v1::UpdateCapabilities::of(capabilities).subagent_text;
        Self::V2(v2::V2Encoder::new(name, subagents))
    }

    /// The updates for an event, in order; mostly one.
    pub(crate) fn encode(&mut self, event: Event) -> Vec<Update> {
        match self {
            Self::V1(encoder) => encoder.encode(event).into_iter().map(of_v1).collect(),
            Self::V2(encoder) => encoder.encode(event).into_iter().map(of_v2).collect(),
        }
    }

    /// The call in a permission request.
    pub(crate) fn shown(&mut self, change: CallChange) -> PermissionCall {
        match self {
            Self::V1(encoder) => PermissionCall::V1(Box::new(encoder.shown(change))),
            Self::V2(encoder) => PermissionCall::V2 {
                title: change.title.clone().unwrap_or_else(|| change.tool.to_string()),
                call: Box::new(encoder.shown(change)),
            },
        }
    }

    /// The current mode. In version 2, modes are only a config option.
    pub(crate) fn mode(&self, mode: &str) -> Option<Update> {
        match self {
            Self::V1(_) => {
                let mode = acp::CurrentModeUpdate::new(mode.to_owned());
                Some(of_v1(acp::SessionUpdate::CurrentModeUpdate(mode)))
            }
            Self::V2(_) => None,
        }
    }

    pub(crate) fn options(&self, options: Vec<acp::SessionConfigOption>) -> Update {
        match self {
            Self::V1(_) => of_v1(acp::SessionUpdate::ConfigOptionUpdate(
                acp::ConfigOptionUpdate::new(options),
            )),
            Self::V2(_) => of_v2(v2::options(&options)),
        }
    }

    /// The state of the session, which version 1 does not have; see [`v2::state`].
    pub(crate) fn state(
        &self,
        doing: State,
        end: Option<End>,
        background: Vec<BackgroundCall>,
    ) -> Option<Update> {
        match self {
            Self::V1(_) => None,
            Self::V2(_) => Some(of_v2(v2::state(doing, end, background))),
        }
    }

    /// A prompt became part of the conversation, with this id. Version 1 does not report that.
    pub(crate) fn prompted(&self, id: &str, said: Vec<draft::ContentBlock>) -> Option<Update> {
        match self {
            Self::V1(_) => None,
            Self::V2(_) => Some(of_v2(v2::prompted(id, said))),
        }
    }
}

fn of_v2(update: draft::SessionUpdate) -> Update {
    Update::V2(Box::new(update))
}

fn of_v1(update: acp::SessionUpdate) -> Update {
    Update::V1(Box::new(update))
}

/// `_meta` with `claudeCode`.
fn ours(value: Value) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert("claudeCode".to_owned(), value);
    meta
}

/// `_meta` of a call.
fn about(tool: &str, parent: Option<&str>, elapsed: Option<f64>) -> Map<String, Value> {
    let mut about = Map::new();
    about.insert("toolName".to_owned(), Value::from(tool));
    if let Some(parent) = parent {
        about.insert("parentToolUseId".to_owned(), Value::from(parent));
    }
    if let Some(elapsed) = elapsed {
        about.insert("elapsedTimeSeconds".to_owned(), Value::from(elapsed));
    }
    ours(Value::Object(about))
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::InProgress => "in_progress",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
    }
}

/// The CLI's message behind a notice.
fn notice_data(notice: &Notice) -> Option<Value> {
    let data = notice.data.as_ref().and_then(|data| data.to_value().ok());
    data.map(truncate::frame)
}

/// The input or output of a call, with long strings cut.
fn raw(json: &RawJson) -> Option<Value> {
    json.to_value().ok().map(truncate::value)
}

/// `_meta` of a subagent's message: the call that started the subagent.
fn parent_meta(parent: Option<&str>) -> Option<Map<String, Value>> {
    parent.map(|parent| ours(json!({"parentToolUseId": parent})))
}
