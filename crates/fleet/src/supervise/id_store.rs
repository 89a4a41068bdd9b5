//! Where the ids of supervised sessions are kept, and what the sessions have used.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

use outrigger::{SessionId, SessionUsage};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::budget::Amount;
use crate::lasting;

/// What is kept of a supervised session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SavedConversation {
    /// The conversation that goes on; none before the end of the first turn.
    #[serde(
        serialize_with = "write_id",
        deserialize_with = "read_id",
        skip_serializing_if = "Option::is_none"
    )]
    pub session_id: Option<SessionId>,
    /// What turns have used, as the CLI reported it: of all conversations, processes and programs under this name.
    pub usage: SessionUsage,
    /// What that is charged with: more than the usage if turns had no end. With [`Supervision::budget`](super::Supervision::budget) it has what is
    /// reserved while a turn runs.
    pub charged: Amount,
}

fn write_id<S: Serializer>(id: &Option<SessionId>, serializer: S) -> Result<S::Ok, S::Error> {
    id.as_ref().map(SessionId::as_str).serialize(serializer)
}

fn read_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SessionId>, D::Error> {
    let id = Option::<String>::deserialize(deserializer)?;
    id.as_deref()
        .map(SessionId::new)
        .transpose()
        .map_err(serde::de::Error::custom)
}

/// Keeps the id of each supervised session and what it has used, so that the next process of the program goes on with it.
///
/// The calls block, and are made where blocking is allowed.
pub trait IdStore: fmt::Debug + Send + Sync + 'static {
    /// What was saved last under this name.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn load(&self, name: &str) -> io::Result<Option<SavedConversation>>;

    /// Saves this under this name, in place of the last.
    ///
    /// # Errors
    /// When the store cannot be written to.
    fn save(&self, name: &str, kept: &SavedConversation) -> io::Result<()>;
}

/// Keeps each session in a JSON file of a directory. A file is synced before it takes the place of the old one: whoever reads it sees one
/// of the two, whoever writes at the same time.
#[derive(Debug, Clone)]
pub struct IdFiles(PathBuf);

impl IdFiles {
    /// In this directory, which is created when a session is saved.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// The file of a name; bytes that are no small letter, digit, `-` or `_` are written as `%` and two digits: on some systems capitals and
    /// small letters name the same file.
    fn path(&self, name: &str) -> PathBuf {
        let mut file = String::new();
        for byte in name.bytes() {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => file.push(char::from(byte)),
                other => file += &format!("%{other:02x}"),
            }
        }
        self.0.join(file + ".session")
    }
}

impl IdStore for IdFiles {
    fn load(&self, name: &str) -> io::Result<Option<SavedConversation>> {
        let path = self.path(name);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            let why = format!("{}: {error}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, why)
        })
    }

    fn save(&self, name: &str, kept: &SavedConversation) -> io::Result<()> {
        lasting::make_dir(&self.0, 0o777)?;
        lasting::replace(&self.path(name), &serde_json::to_vec(kept)?, 0o666)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn what_is_kept_is_found_under_its_name_alone() {
        let place = tempfile::tempdir().unwrap();
        let files = IdFiles::new(place.path().join("ids"));
        let mut kept = SavedConversation {
            session_id: Some(SessionId::new("00000000-0000-4000-8000-000000000001").unwrap()),
            ..SavedConversation::default()
        };
        (kept.usage.cost_usd, kept.charged.tokens) = (0.1 + 0.2, u64::MAX);
        assert_eq!(files.load("../a b").unwrap(), None);
        for kept in [&SavedConversation::default(), &kept] {
            files.save("../a b", kept).unwrap();
            assert_eq!(files.load("../a b").unwrap().as_ref(), Some(kept));
        }
        assert_eq!(files.load("a b").unwrap(), None);
        let file = |name| files.path(name).to_string_lossy().to_ascii_lowercase();
        assert_ne!(file("Ada"), file("ada"));
        assert_eq!(
            fs::read_dir(place.path()).unwrap().count(),
            1,
            "no file is outside of the directory"
        );
        for text in [r#"{"session_id":"../etc"}"#, "", "00000000"] {
            fs::write(files.path("x"), text).unwrap();
            assert_eq!(
                files.load("x").unwrap_err().kind(),
                io::ErrorKind::InvalidData,
                "{text}"
            );
        }
    }
}
