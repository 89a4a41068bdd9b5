//! Where the objects of a session are.

use object_store::path::{Path, PathPart};
use outrigger_sessions::store::{Result, SessionKey, StoreError, StoreErrorKind};

use crate::names::{name, text_of};

/// Marks an escaped byte of a name, for bytes that object names should not have.
const ESCAPE: char = '=';

/// Below what all objects of a store are.
#[derive(Debug, Clone)]
pub(super) struct Root(Path);

impl Root {
    pub(super) fn new(prefix: &str) -> Result<Self> {
        let path = Path::parse(prefix).map_err(|error| {
            let what = format!("{prefix:?} is no prefix for the objects of a session store: {error}");
            StoreError::new(StoreErrorKind::Invalid, what)
        })?;
        Ok(Self(path))
    }

    /// An object for trying things out.
    pub(super) fn trial(&self, id: &str) -> Path {
        self.0.clone().join("trials").join(part(id))
    }

    fn project(&self, project: &str) -> Path {
        self.0.clone().join("projects").join(part(&name(project, ESCAPE)))
    }

    /// The heads of a project's sessions are below it.
    pub(super) fn heads(&self, project: &str) -> Path {
        self.project(project).join("heads")
    }

    pub(super) fn head(&self, key: &SessionKey) -> Path {
        self.heads(&key.project_key)
            .join(part(&format!("{}.json", name(&key.session_id, ESCAPE))))
    }

    /// The parts of all transcripts of a session are below it.
    pub(super) fn parts(&self, key: &SessionKey) -> Path {
        self.project(&key.project_key)
            .join("parts")
            .join(part(&name(&key.session_id, ESCAPE)))
    }

    pub(super) fn part(&self, key: &SessionKey, id: &str) -> Path {
        self.parts(key).join(part(&format!("{id}.jsonl")))
    }
}

/// Names are made here, and have nothing in them that is written in another way.
fn part(name: &str) -> PathPart<'_> {
    PathPart::from(name)
}

/// The session that a head is of.
pub(super) fn session_of(head: &Path) -> Option<String> {
    text_of(head.filename()?.strip_suffix(".json")?, ESCAPE)
}

/// The id of a part by its object.
pub(super) fn part_of(path: &Path) -> Option<&str> {
    path.filename()?.strip_suffix(".jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_found_by_their_heads() {
        let root = Root::new("a/b").unwrap();
        for id in ["", "s", "S", "a/b", "..", "%", "é"] {
            let key = SessionKey::new("Project/1", id);
            let head = root.head(&key);
            assert_eq!(session_of(&head).as_deref(), Some(id), "{head}");
            assert!(
                head.as_ref().starts_with("a/b/projects/=50roject=2f1/heads/"),
                "{head}"
            );
            assert!(!head.as_ref().contains('%'), "{head}");
        }
        let key = SessionKey::new("p", "s");
        assert_eq!(part_of(&root.part(&key, "1-x")), Some("1-x"));
        assert!(Root::new("a//b").is_err());
        assert_eq!(
            Root::new("").unwrap().head(&key).as_ref(),
            "projects/p/heads/s.json"
        );
    }
}
