//! Events in the words of a protocol version.

mod cap;
pub(crate) mod v1;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the router that serves the second version comes next")
)]
pub(crate) mod v2;

use agent_client_protocol::v1::schema as acp;
use serde_json::{Map, Value};

use crate::event::{CallChange, Event, Status};
use crate::serve::client::{Client, Connection};

/// A `session/update`, in the words of the editor's version.
pub(crate) enum Update {
    V1(Box<acp::SessionUpdate>),
}

/// A call as it is shown beside the question whether it may run.
pub(crate) enum Shown {
    V1(Box<acp::ToolCallUpdate>),
}

/// Writes the events of one session for one editor.
#[derive(Debug)]
pub(crate) enum Encoder {
    V1(v1::Encoder),
}

impl Encoder {
    /// For an editor that speaks this version, and can this.
    pub(crate) fn new(client: &Client) -> Self {
        match client.connection() {
            Connection::V1(_) => Self::V1(v1::Encoder::new(v1::Client::of(client.capabilities()))),
        }
    }

    /// The updates that tell of this event, in order; mostly one.
    pub(crate) fn encode(&mut self, event: Event) -> Vec<Update> {
        match self {
            Self::V1(encoder) => encoder.encode(event).into_iter().map(of_v1).collect(),
        }
    }

    /// A call that the editor is to be asked about.
    pub(crate) fn shown(&mut self, change: CallChange) -> Shown {
        match self {
            Self::V1(encoder) => Shown::V1(Box::new(encoder.shown(change))),
        }
    }

    /// The session works in this mode now.
    pub(crate) fn mode(&self, mode: &str) -> Option<Update> {
        match self {
            Self::V1(_) => {
                let mode = acp::CurrentModeUpdate::new(mode.to_owned());
                Some(of_v1(acp::SessionUpdate::CurrentModeUpdate(mode)))
            }
        }
    }

    /// The config options are these now.
    pub(crate) fn options(&self, options: Vec<acp::SessionConfigOption>) -> Update {
        match self {
            Self::V1(_) => of_v1(acp::SessionUpdate::ConfigOptionUpdate(
                acp::ConfigOptionUpdate::new(options),
            )),
        }
    }
}

fn of_v1(update: acp::SessionUpdate) -> Update {
    Update::V1(Box::new(update))
}

/// `_meta` with what is ours.
fn ours(value: Value) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert("claudeCode".to_owned(), value);
    meta
}

/// What editors look for beside a call.
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
