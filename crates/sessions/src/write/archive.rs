//! Putting sessions out of sight without removing anything.

use crate::clock::now;
use crate::draft::{create_dir, replace};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions};
use crate::record::object::Object;

impl Sessions {
    /// Archives a session: lists show it as archived until its next prompt.
    ///
    /// This writes `archived.json` into the directory beside the transcript, for every copy of the session in any project. The
    /// transcript stays as it is.
    ///
    /// # Errors
    /// When no project has the session, or a file cannot be written.
    pub fn archive(&self, id: &SessionId) -> Result<()> {
        self.set_archived(id, true)
    }

    /// Takes a session out of the archive, as [`archive`](Self::archive) puts it there. One that is not archived stays so.
    ///
    /// # Errors
    /// As [`archive`](Self::archive).
    pub fn unarchive(&self, id: &SessionId) -> Result<()> {
        self.set_archived(id, false)
    }

    fn set_archived(&self, id: &SessionId, archived: bool) -> Result<()> {
        // If no project has it, this is the error.
        self.find(id)?;
        for file in self.find_all(id) {
            file.set_archived(archived)?;
        }
        Ok(())
    }
}

impl SessionFile {
    fn set_archived(&self, archived: bool) -> Result<()> {
        let path = self.archived_path();
        let mut note = Object::new();
        note.set("archived", if archived { "true" } else { "false" });
        note.set_string("at", &now());
        note.set_string("by", "sdk");
        create_dir(&self.beside())?;
        match replace(&path, note.to_text().as_bytes()) {
            // Another process removed the session with its directory.
            Err(Error::Io { .. }) if !self.path.exists() => Ok(()),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::testing::TestConfigDir;
    use std::fs;

    #[test]
    fn every_copy_is_archived_and_nothing_else_changes() {
        let place = TestConfigDir::new();
        let file = place.session(&["{}"]);
        let copy = place.copy(&file, "/other");
        place.sessions.archive(&file.id).unwrap();
        for (archived, change) in [
            (true, Sessions::unarchive as fn(&_, &_) -> _),
            (false, Sessions::archive),
        ] {
            for file in [&file, &copy] {
                let note = fs::read(file.archived_path()).unwrap();
                let note: serde_json::Value = serde_json::from_slice(&note).unwrap();
                assert_eq!(
                    (&note["archived"], &note["by"]),
                    (&archived.into(), &"sdk".into())
                );
                assert!(note["at"].as_str().unwrap().ends_with('Z'));
                assert_eq!(fs::read(&file.path).unwrap(), b"{}\n");
            }
            change(&place.sessions, &file.id).unwrap();
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(file.archived_path()), mode(file.beside())), (0o600, 0o700));
        }
        let error = place.sessions.archive(&SessionId::random()).unwrap_err();
        assert!(error.is_not_found(), "{error}");
    }
}
