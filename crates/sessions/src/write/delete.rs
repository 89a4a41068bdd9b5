//! Removing sessions.

use std::fs;

use crate::draft::{remove, sync_dir_of};
use crate::error::{Error, NotFound, Result};
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions};
use crate::relocate::ELSEWHERE;

impl SessionFile {
    /// Removes the transcript and all that lies in the directory beside it: subagents, results of tools, notes. Backups that a
    /// repair left stay. No loss of power brings it back once this has returned. A CLI that drives the session meanwhile creates the
    /// transcript anew with its next record.
    ///
    /// # Errors
    /// When the transcript is gone already ([`Error::NotFound`]), or something cannot be removed.
    pub fn delete(self) -> Result<()> {
        match fs::remove_file(&self.path) {
            // Else a loss of power could bring it back.
            Ok(()) => remove(&self.beside()).and(sync_dir_of(&self.path)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(NotFound {
                id: self.id,
                searched: vec![self.path],
                elsewhere: Vec::new(),
            }
            .into()),
            Err(error) => Err(Error::io("remove", &self.path)(error)),
        }
    }
}

impl Sessions {
    /// Removes a session: [`SessionFile::delete`] for every copy of it in any project, the undo history of files (which has copies of
    /// them) and the list of tasks, so that it is gone.
    ///
    /// # Errors
    /// When it is nowhere, or something cannot be removed.
    pub fn delete(&self, id: &SessionId) -> Result<()> {
        self.find(id)?;
        self.find_all(id).into_iter().try_for_each(SessionFile::delete)?;
        ELSEWHERE
            .iter()
            .try_for_each(|part| remove(&self.config_dir().join(part).join(id.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::SYNCED;
    use crate::write::testing::TestConfigDir;

    #[test]
    fn a_session_goes_with_what_lies_beside_it() {
        let place = TestConfigDir::new();
        let file = place.session(&["{}"]);
        let copy = place.copy(&file, "/other");
        let other = place.session(&["{}"]);
        fs::create_dir_all(file.subagents_dir()).unwrap();
        fs::write(file.subagents_dir().join("agent-1.jsonl"), "{}").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(other.project_dir(), file.beside().join("link")).unwrap();
        let elsewhere = |file: &SessionFile| {
            ELSEWHERE.map(|part| file.config_dir().join(part).join(file.id.as_str()).join("a"))
        };
        for path in [&file, &other].into_iter().flat_map(elsewhere) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "before").unwrap();
        }
        SYNCED.take();
        place.sessions.delete(&file.id).unwrap();
        assert!(
            elsewhere(&file)
                .iter()
                .all(|path| !path.parent().unwrap().exists())
        );
        assert!(elsewhere(&other).iter().all(|path| path.exists()));
        let mut synced = SYNCED.take();
        synced.sort();
        let mut projects = [file.project_dir().to_owned(), copy.project_dir().to_owned()];
        projects.sort();
        assert_eq!(synced, projects);
        assert!(!file.path.exists() && !file.beside().exists() && !copy.path.exists());
        assert!(other.path.exists(), "links are not followed");
        assert!(file.delete().unwrap_err().is_not_found());
        assert!(place.sessions.delete(&copy.id).unwrap_err().is_not_found());
    }
}
