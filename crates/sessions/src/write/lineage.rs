//! The ancestors of a session, from the records of its forks.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::Record;
use crate::record::object::Object;

/// The longest id that the CLI takes, in UTF-16 code units.
const LONGEST: usize = 256;

/// The CLI's names for the ways in which a session comes from another one.
const VIA: [&str; 12] = [
    "clear",
    "fork",
    "branch",
    "background",
    "cloud",
    "teleport",
    "teammate",
    "launch",
    "subprocess",
    "resume",
    "import",
    "compact",
];

/// The records of a transcript about its session's ancestors.
#[derive(Debug, Default)]
pub(super) struct Lineage {
    /// The session's own `derived-from` records; `None` if there are none.
    said: Option<Vec<Ancestor>>,
    /// The sessions whose messages it has copies of.
    copied: Vec<String>,
    /// Whether a part of its records cannot be read.
    is_lost: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Ancestor {
    #[serde(rename = "type")]
    kind: &'static str,
    /// None of an `unknown` session.
    id: Option<String>,
    via: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
}

impl Ancestor {
    fn fork_of(id: &str) -> Self {
        Self {
            kind: "claude_code_session",
            id: Some(id.to_owned()),
            via: "fork",
            started: None,
        }
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let id = || text("id").filter(|id| is_id(id)).map(str::to_owned);
        let (kind, id) = match text("type")? {
            "claude_code_session" => ("claude_code_session", Some(id()?)),
            "unknown" => match value.get("id")? {
                Value::Null => ("unknown", None),
                _ => ("unknown", Some(id()?)),
            },
            _ => return None,
        };
        let via = text("via")?;
        Some(Self {
            kind,
            id,
            via: VIA.into_iter().find(|known| *known == via)?,
            started: text("started").filter(|text| is_id(text)).map(str::to_owned),
        })
    }
}

/// Whether a text is an id as the CLI takes it.
fn is_id(text: &str) -> bool {
    (1..=LONGEST).contains(&text.encode_utf16().count())
        && text.bytes().all(|byte| byte >= 0x20 && byte != 0x7f)
}

impl Lineage {
    /// Takes note of a record of the conversation.
    pub(super) fn copied(&mut self, record: &Record) {
        #[derive(Deserialize)]
        struct From {
            #[serde(rename = "sessionId")]
            session_id: String,
        }
        if memchr::memmem::find(record.bytes(), b"\"forkedFrom\"").is_none() {
            return;
        }
        let text = record.text();
        let from = Object::parse(&text).and_then(|object| {
            let from: From = serde_json::from_str(object.get("forkedFrom")?).ok()?;
            Some(from.session_id)
        });
        if let Some(id) = from.filter(|id| is_id(id) && !self.copied.contains(id)) {
            self.copied.push(id);
        }
    }

    /// Takes note of a `derived-from` record of the session itself: the last one counts, and those before it where a part of it
    /// cannot be understood.
    pub(super) fn note_derived_from(&mut self, record: &Object<'_>) {
        let listed: Option<Vec<Value>> = record
            .get("sessions")
            .filter(|_| record.get("v") == Some("1"))
            .and_then(|sessions| serde_json::from_str(sessions).ok());
        let read: Vec<_> = listed.iter().flatten().map(Ancestor::read).collect();
        let is_lost = listed.is_none() || read.contains(&None);
        let before = self.said.take().filter(|_| is_lost);
        let all = before.into_iter().flatten().chain(read.into_iter().flatten());
        self.said = Some(unique(all));
        self.is_lost |= is_lost;
    }

    /// Whether a part of it was lost.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The ancestors of a fork of session `source`, as JSON. `None` if data flow is not recorded, and no earlier session recorded
    /// its ancestors.
    pub(super) fn of_fork(&self, source: &str, has_data_flow: bool) -> Option<String> {
        if self.said.is_none() && !has_data_flow {
            return None;
        }
        let mut all = self.said.clone().unwrap_or_default();
        for id in &self.copied {
            if !all.iter().any(|ancestor| ancestor.id.as_ref() == Some(id)) {
                all.push(Ancestor::fork_of(id));
            }
        }
        all.push(Ancestor::fork_of(source));
        // Texts and nulls can always be written.
        serde_json::to_string(&unique(all)).ok()
    }
}

fn unique(all: impl IntoIterator<Item = Ancestor>) -> Vec<Ancestor> {
    let mut unique = Vec::new();
    for ancestor in all {
        if !unique.contains(&ancestor) {
            unique.push(ancestor);
        }
    }
    unique
}
