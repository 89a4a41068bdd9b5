//! The ids by which the CLI names its sessions and subagents, as types.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// The CLI's own id of a session: a UUID, and the name of its file.
///
/// It is kept as it was written: the CLI accepts both cases, and a file is found by the case it was named with. Two that differ
/// in case only are therefore not equal. It is made from text that is checked, so that an id that a program made up for itself, or
/// a path, cannot get to where a session's id is meant.
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

/// A text that is no id of the kind that was asked for.
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

    /// A new one that nothing has yet.
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string().into())
    }

    /// As it was written.
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
        let is_bad = |c: char| matches!(c, '/' | '\\' | ':') || c.is_control();
        if text.is_empty() || text.len() > 200 || text == "." || text == ".." || text.contains(is_bad) {
            let needed = "it has to be one component of a path, of 1 to 200 bytes";
            return Err(InvalidId::of(text, "agent id", needed));
        }
        Ok(Self(text.into()))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The subagent whose transcript has this name, if a subagent's transcript has it.
    pub fn of_file_name(name: &str) -> Option<Self> {
        Self::new(name.strip_prefix("agent-")?.strip_suffix(".jsonl")?).ok()
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

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
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

text!(SessionId, AgentId);

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
