//! The paths of transcripts, and their keys in a store.

use std::path::{Path, PathBuf};

use outrigger_sessions::store::SessionKey;

/// Where the CLI's transcripts are, to know them by their names.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    projects: Vec<PathBuf>,
    /// Whether the transcripts are on another machine, where nobody knows.
    far: bool,
}

impl Places {
    /// Below this config directory.
    pub(crate) fn below(config: &Path, far: bool) -> Self {
        let mut projects = vec![config.join("projects")];
        // The CLI may name it without links, or in another normal form.
        let composed = outrigger_sessions::Sessions::at(config).projects_dir();
        projects.push(composed);
        projects.extend(config.canonicalize().ok().map(|config| config.join("projects")));
        projects.dedup();
        Self { projects, far }
    }

    pub(super) fn key(&self, file: &str) -> Option<SessionKey> {
        let mut keys = self
            .projects
            .iter()
            .map(|projects| SessionKey::of_file(Path::new(file), projects));
        let near = keys.find_map(|key| key);
        near.or_else(|| self.far.then(|| SessionKey::of_far_file(file)).flatten())
    }
}

impl std::fmt::Display for Places {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.projects.first() {
            Some(projects) => projects.display().fmt(f),
            None => Ok(()),
        }
    }
}
