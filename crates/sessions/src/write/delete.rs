//! Removing sessions.

use std::fs;
use std::path::PathBuf;

use crate::draft::{remove, remove_for_good, sync_dir_of};
use crate::error::{Error, NotFound, Result};
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions};
use crate::relocate::ELSEWHERE;

impl SessionFile {
    /// Removes the transcript and all that lies in the directory beside it: subagents, results of tools, notes. Backups that a
    /// repair left stay. No loss of power brings it back once this has returned. A CLI that drives the session meanwhile creates the
    /// transcript anew with its next record.
    ///
    /// The transcript goes last: if something cannot be removed, the session is still found, and can be deleted again.
    ///
    /// # Errors
    /// When the transcript is gone already ([`Error::NotFound`]), or something cannot be removed.
    pub fn delete(self) -> Result<()> {
        remove(&self.beside())?;
        match fs::remove_file(&self.path) {
            // Without the sync, a loss of power could bring the file back.
            Ok(()) => sync_dir_of(&self.path),
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
    /// Removes a session, so that it is gone: the undo history of files (which has copies of them), the list of tasks, and, in any
    /// project, what [`SessionFile::delete`] removes. The transcripts go last. What is left of a session whose transcript is gone or
    /// empty is removed, too.
    ///
    /// # Errors
    /// When nothing of it is there ([`Error::NotFound`]), or something cannot be removed: then this can be called again.
    pub fn delete(&self, id: &SessionId) -> Result<()> {
        let left = self.remains(id);
        if left.is_empty() {
            self.find(id)?;
        }
        left.iter().try_for_each(|path| remove_for_good(path))
    }

    /// What [`delete`](Self::delete) removes of a session, in that order. A session without a transcript may have some, too.
    pub fn remains(&self, id: &SessionId) -> Vec<PathBuf> {
        let dirs = self.project_dirs();
        let elsewhere = ELSEWHERE.map(|part| self.config_dir().join(part).join(id.as_str()));
        let beside = dirs.iter().map(|dir| dir.join(id.as_str()));
        let transcripts = dirs.iter().map(|dir| dir.join(id.file_name()));
        elsewhere
            .into_iter()
            .chain(beside)
            .chain(transcripts.filter(|path| !path.is_dir()))
            .filter(|path| fs::symlink_metadata(path).is_ok())
            .collect()
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
        synced.dedup();
        let mut dirs = vec![file.project_dir().to_owned(), copy.project_dir().to_owned()];
        dirs.extend(ELSEWHERE.map(|part| file.config_dir().join(part)));
        dirs.sort();
        assert_eq!(synced, dirs);
        assert!(!file.path.exists() && !file.beside().exists() && !copy.path.exists());
        assert!(other.path.exists(), "links are not followed");
        assert!(file.delete().unwrap_err().is_not_found());
        assert!(place.sessions.delete(&copy.id).unwrap_err().is_not_found());
    }

    #[test]
    fn what_is_left_of_a_session_can_be_deleted() {
        let place = TestConfigDir::new();
        let file = place.session(&["{}"]);
        let elsewhere = ELSEWHERE.map(|part| file.config_dir().join(part).join(file.id.as_str()));
        for left in elsewhere.into_iter().chain([file.beside()]) {
            fs::create_dir_all(&left).unwrap();
            fs::write(left.join("a"), "before").unwrap();
            let _ = fs::remove_file(&file.path);
            assert_eq!(place.sessions.remains(&file.id), std::slice::from_ref(&left));
            place.sessions.delete(&file.id).unwrap();
            assert!(!left.exists());
        }
        // A session that never began has an empty file.
        fs::write(&file.path, "").unwrap();
        place.sessions.delete(&file.id).unwrap();
        assert!(!file.path.exists());
        assert!(place.sessions.delete(&file.id).unwrap_err().is_not_found());
    }

    #[cfg(unix)]
    #[test]
    fn a_session_is_found_until_all_of_it_is_gone() {
        use std::os::unix::fs::PermissionsExt as _;

        // Nothing keeps root from removing files.
        let is_other = ["-c", "test \"$(id -u)\" -ne 0"];
        let mut command = std::process::Command::new("sh");
        outrigger_needs::needs!(outrigger_needs::allows(
            command.args(is_other),
            "a user who is not root"
        ));
        let allow = |path: &std::path::Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let place = TestConfigDir::new();
        let file = place.session(&["{}"]);
        let of_tasks = file.config_dir().join("tasks").join(file.id.as_str());
        for stuck in [file.subagents_dir(), of_tasks] {
            fs::create_dir_all(&stuck).unwrap();
            fs::write(stuck.join("a"), "before").unwrap();
            allow(&stuck, 0o500);
            place.sessions.delete(&file.id).unwrap_err();
            if stuck.starts_with(file.beside()) {
                place.sessions.find(&file.id).unwrap().delete().unwrap_err();
            }
            assert!(place.sessions.find(&file.id).is_ok());
            allow(&stuck, 0o700);
        }
        place.sessions.delete(&file.id).unwrap();
        assert!(!file.beside().exists() && !file.path.exists());
    }
}
