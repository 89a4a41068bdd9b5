//! Events in the words of a protocol version.

mod cap;
pub(crate) mod v1;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the router that serves the second version comes next")
)]
pub(crate) mod v2;

use serde_json::{Map, Value};

use crate::event::Status;

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
