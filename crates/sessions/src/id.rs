//! The ids by which the CLI names its sessions, messages and subagents, as types.

use std::convert::Infallible;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

/// The CLI's own id of a session: a UUID, and the name of its file.
///
/// The id keeps its case: the CLI accepts both cases, and the file's name has one of them. So two ids that differ
/// only in case are not equal. The text is checked, so that neither an id of a program's own nor
/// a path can be used as a session's id. It becomes a `String` where an API takes an id or a title.
///
/// ```
/// use outrigger_sessions::SessionId;
///
/// let id: SessionId = "550e8400-e29b-41d4-a716-446655440000".parse()?;
/// assert!("my-session".parse::<SessionId>().is_err());
/// assert!("../secrets".parse::<SessionId>().is_err());
/// # assert_eq!(id.as_str().len(), 36);
/// # Ok::<(), outrigger_sessions::InvalidId>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SessionId(Box<str>);

/// The CLI's id of a subagent, which is in the name of its file (`agent-<id>.jsonl`).
///
/// Any text that is one component of a path and no more than 200 bytes long.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct AgentId(Box<str>);

/// The id of a message: the `uuid` of its frame, and of its record in the transcript. Not the API's id (`msg_…`).
///
/// The CLI's ids are UUIDs. Other texts are kept unchanged, and the CLI checks what a program sends.
///
/// ```
/// use outrigger_sessions::MessageId;
///
/// let id = MessageId::from("550e8400-e29b-41d4-a716-446655440000");
/// assert_eq!(id, "550e8400-e29b-41d4-a716-446655440000");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(Box<str>);

/// A text that is no id of the required kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {kind}: {needed}")]
pub struct InvalidId {
    text: String,
    kind: &'static str,
    needed: &'static str,
}

impl InvalidId {
    /// The text, cut after 200 characters.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn of(text: &str, kind: &'static str, needed: &'static str) -> Self {
        Self {
            text: text.chars().take(200).collect(),
            kind,
            needed,
        }
    }
}

impl SessionId {
    /// Takes text that is a UUID with its four hyphens, in any case.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        if Self::is_one(text.as_bytes()) {
            Ok(Self(text.into()))
        } else {
            let needed = "the CLI's ids are UUIDs such as 550e8400-e29b-41d4-a716-446655440000";
            Err(InvalidId::of(text, "session id", needed))
        }
    }

    /// Accepts any id of a session that a CLI reports: besides UUIDs any text that is one component of a
    /// path, so that it can't lead out of the directory of the sessions. `None` for other texts.
    pub fn from_wire(text: &str) -> Option<Self> {
        is_component(text).then(|| Self(text.into()))
    }

    /// A new id that no session has yet.
    pub fn random() -> Self {
        Uuid::new_v4().into()
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the session's file.
    pub fn file_name(&self) -> String {
        format!("{}.jsonl", self.0)
    }

    /// The session whose transcript has this name, if a transcript has it.
    pub fn of_file_name(name: &str) -> Option<Self> {
        Self::new(name.strip_suffix(".jsonl")?).ok()
    }

    fn is_one(text: &[u8]) -> bool {
        text.len() == 36
            && text.iter().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })
    }
}

impl AgentId {
    /// Takes text that is one component of a path.
    ///
    /// # Errors
    /// When it is empty, longer than 200 bytes, `.` or `..`, or has a separator, a control character or a colon in it.
    pub fn new(text: &str) -> Result<Self, InvalidId> {
        if !is_component(text) {
            let needed = "it has to be one component of a path, of 1 to 200 bytes";
            return Err(InvalidId::of(text, "agent id", needed));
        }
        Ok(Self(text.into()))
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The subagent whose transcript has this name, if a subagent's transcript has it.
    pub fn of_file_name(name: &str) -> Option<Self> {
        Self::new(name.strip_prefix("agent-")?.strip_suffix(".jsonl")?).ok()
    }
}

/// Whether text is one component of a path, of 1 to 200 bytes.
fn is_component(text: &str) -> bool {
    let is_bad = |c: char| matches!(c, '/' | '\\' | ':') || c.is_control();
    !(text.is_empty() || text.len() > 200 || text == "." || text == ".." || text.contains(is_bad))
}

impl From<Uuid> for SessionId {
    fn from(id: Uuid) -> Self {
        Self(id.to_string().into())
    }
}

impl MessageId {
    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Uuid> for MessageId {
    fn from(id: Uuid) -> Self {
        Self(id.to_string().into())
    }
}

impl From<&str> for MessageId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<&String> for MessageId {
    fn from(text: &String) -> Self {
        Self(text.as_str().into())
    }
}

impl From<String> for MessageId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl FromStr for MessageId {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.into()))
    }
}

macro_rules! text {
    ($($name:ident),+) => { $(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, text: &str) -> bool {
                *self.0 == *text
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                *self.0 == **text
            }
        }

        impl PartialEq<String> for $name {
            fn eq(&self, text: &String) -> bool {
                *self.0 == **text
            }
        }

        impl PartialEq<$name> for str {
            fn eq(&self, id: &$name) -> bool {
                *self == *id.0
            }
        }

        impl PartialEq<$name> for &str {
            fn eq(&self, id: &$name) -> bool {
                **self == *id.0
            }
        }

        impl PartialEq<$name> for String {
            fn eq(&self, id: &$name) -> bool {
                **self == *id.0
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.into()
            }
        }

        impl From<&$name> for String {
            fn from(id: &$name) -> Self {
                id.0.as_ref().to_owned()
            }
        }
    )+ };
}

text!(SessionId, MessageId, AgentId);

macro_rules! checked {
    ($($name:ident),+) => { $(
        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidId;

            fn try_from(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(&text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    )+ };
}

checked!(SessionId, AgentId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_a_plain_uuid_in_any_case() {
        let id = "550E8400-e29b-41d4-a716-446655440000";
        assert_eq!(id.parse::<SessionId>().unwrap().as_str(), id);
        assert_eq!(
            SessionId::of_file_name(&format!("{id}.jsonl"))
                .unwrap()
                .file_name(),
            format!("{id}.jsonl")
        );
        assert_ne!(SessionId::new(id), SessionId::new(&id.to_lowercase()));
        for text in [
            "",
            "550e8400e29b41d4a716446655440000",
            "{550e8400-e29b-41d4-a716-446655440000}",
            "550e8400-e29b-41d4-a716-44665544000g",
            "550e8400-e29b-41d4-a716-4466554400000",
            " 550e8400-e29b-41d4-a716-44665544000",
            "550e8400-e29b-41d4-a716_446655440000",
        ] {
            let error = SessionId::new(text).unwrap_err();
            assert!(error.to_string().contains("UUID"), "{error}");
            assert!(serde_json::from_value::<SessionId>(text.into()).is_err());
        }
        assert_ne!(SessionId::random(), SessionId::random());
    }

    /// What a CLI says passes, unless it could lead out of the directory of the sessions.
    #[test]
    fn an_id_from_the_wire_need_be_no_uuid() {
        for text in ["550e8400-e29b-41d4-a716-446655440000", "s-1", "session 7", "ä"] {
            let id = SessionId::from_wire(text).unwrap();
            assert_eq!(id, text);
            assert_eq!(String::from(&id), text);
        }
        for text in [
            "",
            ".",
            "..",
            "../secrets",
            "a/b",
            "a\\b",
            "C:x",
            "a\0",
            &"x".repeat(201),
        ] {
            assert_eq!(SessionId::from_wire(text), None, "{text:?}");
        }
        assert!(SessionId::new("s-1").is_err(), "what a program gives is checked");
    }

    #[test]
    fn a_message_id_is_kept_as_it_is() {
        for text in ["550e8400-e29b-41d4-a716-446655440000", "", "../x", "7"] {
            let id = MessageId::from(text);
            let json = serde_json::to_string(&id).unwrap();
            assert_eq!(json, serde_json::to_string(text).unwrap());
            assert_eq!(serde_json::from_str::<MessageId>(&json).unwrap(), id);
            assert_eq!(text.parse(), Ok(id));
        }
        let uuid = Uuid::new_v4();
        assert_eq!(MessageId::from(uuid), uuid.to_string());
    }

    #[test]
    fn an_agent_id_stays_in_its_directory() {
        for text in ["a1b2", "a-name_1.x", "ä"] {
            assert_eq!(
                AgentId::of_file_name(&format!("agent-{text}.jsonl"))
                    .unwrap()
                    .as_str(),
                text
            );
        }
        for text in ["", ".", "..", "a/b", "a\\b", "C:x", "a\0", &"x".repeat(201)] {
            assert!(AgentId::new(text).is_err(), "{text:?}");
        }
    }
}
