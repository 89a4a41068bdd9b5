//! A place with sessions, for the tests.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::id::SessionId;
use crate::place::{SessionFile, Sessions};

/// A config directory that is removed with it.
pub(crate) struct TestConfigDir {
    dir: TempDir,
    pub(crate) sessions: Sessions,
}

impl TestConfigDir {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(dir.path().join("config"));
        Self { dir, sessions }
    }

    /// The directory, which is removed when this is dropped.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A session of these lines.
    pub(crate) fn session(&self, lines: &[&str]) -> SessionFile {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.put(&SessionId::random(), "/project", text.as_bytes())
    }

    /// A session of these bytes.
    pub(crate) fn put(&self, id: &SessionId, project: &str, bytes: &[u8]) -> SessionFile {
        let dir = self.sessions.project_dir(Path::new(project));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(id.file_name()), bytes).unwrap();
        self.sessions.find_in(id, project).unwrap()
    }

    /// The same in another project.
    pub(crate) fn copy(&self, file: &SessionFile, project: &str) -> SessionFile {
        self.put(&file.id, project, &fs::read(&file.path).unwrap())
    }
}
