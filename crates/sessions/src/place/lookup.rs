//! Finding a session's file by its id.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Sessions, real_path, worktrees};
use crate::error::{Error, NotFound, Result};
use crate::file;
use crate::id::{AgentId, SessionId};
use crate::record::Records;

/// A session's transcript: its path, and the paths beside it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionFile {
    /// The session.
    pub id: SessionId,
    /// The transcript.
    pub path: PathBuf,
    /// The project in which it was found, as a path: the given directory, or the worktree. `None` when all projects were searched.
    pub project: Option<String>,
    /// How long the transcript was, in bytes, when it was found.
    pub size: u64,
    /// When the transcript was last written to.
    pub modified: SystemTime,
}

impl SessionFile {
    /// Looks whether a file is there and has something in it.
    pub(crate) fn at(id: &SessionId, path: PathBuf, project: Option<&str>) -> Option<Self> {
        let metadata = fs::metadata(&path).ok().filter(Metadata::is_file)?;
        (metadata.len() > 0).then(|| Self {
            id: id.clone(),
            path,
            project: project.map(str::to_owned),
            size: metadata.len(),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        })
    }

    /// The config directory that it is in.
    pub fn config_dir(&self) -> &Path {
        self.path.ancestors().nth(3).unwrap_or(&self.path)
    }

    /// The directory of the project, in which the transcript lies.
    pub fn project_dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// The directory for the session's other files. It need not exist.
    pub fn beside(&self) -> PathBuf {
        self.path.with_extension("")
    }

    /// The directory of the subagents' transcripts. It need not exist.
    pub fn subagents_dir(&self) -> PathBuf {
        self.beside().join("subagents")
    }

    /// The path of a subagent's transcript, outside of workflows. It need not exist.
    pub fn subagent_path(&self, id: &AgentId) -> PathBuf {
        self.subagents_dir().join(format!("agent-{id}.jsonl"))
    }

    /// The file that marks the session as archived. It need not exist.
    pub fn archived_path(&self) -> PathBuf {
        self.beside().join("archived.json")
    }

    /// Opens the transcript to read its bytes. A FIFO, a device or a directory in its place is an error, and blocks nobody.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&self) -> Result<fs::File> {
        file::open(&self.path).map_err(Error::io("open", &self.path))
    }

    /// Reads the transcript record by record, from its beginning.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn records(&self) -> Result<Records<fs::File>> {
        Records::open(&self.path)
    }
}

impl Sessions {
    /// Finds a session in any project. If several projects have a file of it, the one that was written to last counts. Empty files
    /// are none.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no project has it.
    pub fn find(&self, id: &SessionId) -> Result<SessionFile> {
        let mut copies = self.find_all(id);
        if copies.is_empty() {
            return Err(NotFound {
                id: id.clone(),
                searched: vec![self.projects_dir()],
                elsewhere: Vec::new(),
            }
            .into());
        }
        Ok(copies.swap_remove(0))
    }

    /// Finds a session that was run in `dir`, or in another worktree of the repository that `dir` is in.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it is not there; the error names the other projects that have the session.
    pub fn find_in(&self, id: &SessionId, dir: impl AsRef<Path>) -> Result<SessionFile> {
        let real = real_path(dir.as_ref());
        let mut searched = Vec::new();
        let mut look = |project: &str| {
            let project_dir = self.find_project_dir(project)?;
            let found = SessionFile::at(id, project_dir.join(id.file_name()), Some(project));
            searched.push(project_dir);
            found
        };
        if let Some(found) = look(&real) {
            return Ok(found);
        }
        let others = worktrees(Path::new(&real))
            .into_iter()
            .filter(|other| *other != real);
        if let Some(found) = others.into_iter().find_map(|other| look(&other)) {
            return Ok(found);
        }
        if searched.is_empty() {
            searched.push(self.project_dir_of(&real));
        }
        Err(NotFound {
            id: id.clone(),
            searched,
            elsewhere: self.find_all(id).into_iter().map(|file| file.path).collect(),
        }
        .into())
    }

    /// Finds all copies of a session in all projects, the one that was written to last first. Empty files are none.
    pub fn find_all(&self, id: &SessionId) -> Vec<SessionFile> {
        let name = id.file_name();
        let mut found: Vec<SessionFile> = self
            .project_dirs()
            .into_iter()
            .filter_map(|dir| SessionFile::at(id, dir.join(&name), None))
            .collect();
        found.sort_by(|a, b| (b.modified, &a.path).cmp(&(a.modified, &b.path)));
        found
    }

    /// Finds a session: in `dir` if there is one, else in any project.
    pub(crate) fn locate(&self, id: &SessionId, dir: Option<&Path>) -> Result<SessionFile> {
        match dir {
            Some(dir) => self.find_in(id, dir),
            None => self.find(id),
        }
    }

    /// The directories of all projects, in the order of their names.
    pub fn project_dirs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.projects_dir()).into_iter().flatten().flatten();
        let mut dirs: Vec<PathBuf> = entries
            .filter(|entry| match entry.file_type() {
                Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
                Ok(kind) => kind.is_dir(),
                Err(_) => false,
            })
            .map(|entry| entry.path())
            .collect();
        dirs.sort();
        dirs
    }
}

impl Error {
    /// Whether the error is that there is no such session.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

    fn put(sessions: &Sessions, dir: &Path, text: &str) -> PathBuf {
        let path = sessions.project_dir(dir).join(format!("{ID}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn a_session_is_found_in_its_project_or_the_error_says_where_it_is() {
        let place = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(place.path().join("config"));
        let id = SessionId::new(ID).unwrap();
        let (here, there) = (place.path().join("here"), place.path().join("there"));
        let error = sessions.find(&id).unwrap_err();
        assert!(error.is_not_found() && error.to_string().contains(ID), "{error}");

        // An empty file is what is left of a session that never began.
        put(&sessions, &here, "");
        let path = put(&sessions, &there, "{}\n");
        assert_eq!(sessions.find(&id).unwrap().path, path);
        let found = sessions.find_in(&id, &there).unwrap();
        assert_eq!((found.path.as_path(), found.size), (path.as_path(), 3));
        assert_eq!(found.project.as_deref(), Some(&*real_path(&there)));
        let Error::NotFound(error) = sessions.find_in(&id, &here).unwrap_err() else {
            panic!("another error")
        };
        assert_eq!(error.searched, [sessions.project_dir(&here)]);
        assert_eq!(error.elsewhere, std::slice::from_ref(&path));
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn of_several_copies_the_newest_counts() {
        let place = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(place.path());
        let id = SessionId::new(ID).unwrap();
        let old = put(&sessions, Path::new("/b"), "{}\n");
        let new = put(&sessions, Path::new("/c"), "{}\n");
        let file = fs::File::options().append(true).open(&old).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(sessions.find(&id).unwrap().path, new);
        let all: Vec<PathBuf> = sessions.find_all(&id).into_iter().map(|file| file.path).collect();
        assert_eq!(all, [new, old]);
    }

    #[test]
    fn a_session_of_another_worktree_is_found() {
        outrigger_needs::needs!(outrigger_needs::program("git", "a package of the system has it"));
        let place = tempfile::tempdir().unwrap();
        let main = place.path().join("main");
        fs::create_dir(&main).unwrap();
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
            let status = Command::new("git")
                .args(identity)
                .args(arguments)
                .current_dir(&main)
                .output();
            assert!(status.unwrap().status.success(), "{arguments:?}");
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&["worktree", "add", "-q", "../other"]);
        let other = place.path().join("other");
        let sessions = Sessions::at(place.path().join("config"));
        let id = SessionId::new(ID).unwrap();
        let path = put(&sessions, &other, "{}\n");
        let found = sessions.find_in(&id, &main).unwrap();
        assert_eq!(found.path, path);
        assert_eq!(found.project.as_deref(), Some(&*real_path(&other)));
    }
}
