//! Whole transcripts, read. What is expected is what the official SDKs and the CLI make of the same files.

mod conversations;
mod lists;
#[cfg(unix)]
mod odd;
mod reference;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{SessionId, Sessions};

pub(super) const DIR: &str = "/place/project";

/// A config directory.
pub(super) struct Home {
    place: TempDir,
    pub(super) sessions: Sessions,
    made: std::cell::Cell<u32>,
}

impl Home {
    pub(super) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        Self {
            sessions: Sessions::at(place.path()),
            place,
            made: std::cell::Cell::default(),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.place.path().to_owned()
    }

    pub(super) fn dir(&self) -> PathBuf {
        let dir = self.sessions.project_dir_of(DIR);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Makes a session of these lines.
    pub(super) fn put(&self, records: &[Value]) -> SessionId {
        self.made.set(self.made.get() + 1);
        let id = SessionId::new(&format!("00000000-0000-4000-8000-{:012}", self.made.get())).unwrap();
        self.write(&id, records);
        id
    }

    pub(super) fn write(&self, id: &SessionId, records: &[Value]) {
        fs::write(self.dir().join(id.file_name()), text(records)).unwrap();
    }
}

/// Lines; a string is one as it is.
pub(super) fn text(records: &[Value]) -> String {
    let line = |record: &Value| match record {
        Value::String(line) => line.clone() + "\n",
        record => record.to_string() + "\n",
    };
    records.iter().map(line).collect()
}

/// A record of a conversation with more fields, or others.
pub(super) fn record(kind: &str, uuid: &str, parent: Option<&str>, more: Value) -> Value {
    let content = match kind {
        "assistant" => json!([{"type": "text", "text": uuid}]),
        _ => json!(uuid),
    };
    let mut record = json!({
        "parentUuid": parent, "isSidechain": false, "type": kind, "message": {"role": kind, "content": content}, "uuid": uuid,
        "timestamp": format!("2026-01-01T00:00:0{}.000Z", uuid.len().min(9)), "sessionId": "s",
    });
    if let (Some(record), Value::Object(more)) = (record.as_object_mut(), more) {
        record.extend(more);
    }
    record
}
