//! Where the ids of supervised sessions are kept.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

use outrigger::SessionId;

/// Keeps the id of each supervised session, so that the next process of the program goes on with it.
///
/// The calls block, and are made where blocking is allowed.
pub trait IdStore: fmt::Debug + Send + Sync + 'static {
    /// The id that was saved last under this name.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn load(&self, name: &str) -> io::Result<Option<SessionId>>;

    /// Saves the id under this name, in place of the last.
    ///
    /// # Errors
    /// When the store cannot be written to.
    fn save(&self, name: &str, id: &SessionId) -> io::Result<()>;
}

/// Keeps each id in a file of a directory.
#[derive(Debug, Clone)]
pub struct IdFiles(PathBuf);

impl IdFiles {
    /// In this directory, which is created when an id is saved.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// The file of a name; bytes that are no letter, digit, `-` or `_` are written as `%` and two digits.
    fn path(&self, name: &str) -> PathBuf {
        let mut file = String::new();
        for byte in name.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => file.push(char::from(byte)),
                other => file += &format!("%{other:02x}"),
            }
        }
        self.0.join(file + ".session")
    }
}

impl IdStore for IdFiles {
    fn load(&self, name: &str) -> io::Result<Option<SessionId>> {
        let text = match fs::read_to_string(self.path(name)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let id = SessionId::new(text.trim());
        id.map(Some)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn save(&self, name: &str, id: &SessionId) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        let path = self.path(name);
        // Whoever reads it sees the old id or the new one.
        let draft = path.with_extension("new");
        fs::write(&draft, id.as_str())?;
        fs::File::open(&draft)?.sync_all()?;
        fs::rename(draft, path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn an_id_is_found_under_its_name_alone() {
        let place = tempfile::tempdir().unwrap();
        let files = IdFiles::new(place.path().join("ids"));
        let id = SessionId::new("00000000-0000-4000-8000-000000000001").unwrap();
        assert_eq!(files.load("../a b").unwrap(), None);
        files.save("../a b", &id).unwrap();
        assert_eq!(files.load("../a b").unwrap(), Some(id.clone()));
        assert_eq!(files.load("a b").unwrap(), None);
        assert_eq!(
            fs::read_dir(place.path()).unwrap().count(),
            1,
            "no file is outside of the directory"
        );
        fs::write(files.path("x"), "../etc").unwrap();
        assert_eq!(files.load("x").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
