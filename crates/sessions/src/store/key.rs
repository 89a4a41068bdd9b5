//! The keys of a store.

use std::fmt;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

/// Names a transcript in a store: that of a session, or with a `subpath` a part of it such as a subagent's.
///
/// To a store all three are opaque texts that it keeps apart exactly as they are. Made by the SDK they are names of the CLI's
/// own directories and files. JSON names are the official SDK's (`projectKey`, `sessionId`, `subpath`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionKey {
    /// What groups sessions: the name of the CLI's directory for the project, unless the program has its own groups.
    pub project_key: String,
    /// The session.
    pub session_id: String,
    /// `None` is the session itself. `subagents/agent-1` is a subagent; never empty, `/` between its parts on all systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subpath: Option<String>,
}

impl SessionKey {
    /// The main transcript of a session.
    pub fn new(project_key: impl Into<String>, session_id: impl Into<String>) -> Self {
        Self {
            project_key: project_key.into(),
            session_id: session_id.into(),
            subpath: None,
        }
    }

    /// A part of the same session. An empty name is the session itself.
    #[must_use]
    pub fn with_subpath(&self, subpath: impl Into<String>) -> Self {
        let subpath = Some(subpath.into()).filter(|subpath| !subpath.is_empty());
        Self {
            subpath,
            ..self.clone()
        }
    }

    /// The session that this is, or is a part of.
    #[must_use]
    pub fn main(&self) -> Self {
        Self {
            subpath: None,
            ..self.clone()
        }
    }

    /// Whether this is a whole session, and no part of one.
    pub fn is_main(&self) -> bool {
        self.subpath.is_none()
    }

    /// The key of a transcript by its file, as `transcript_mirror` frames name it: `<project>/<session>.jsonl`, or
    /// `<project>/<session>/<subpath>.jsonl` with at least two parts in `subpath`, below `projects`. `None` for everything
    /// else: a file elsewhere, a name that is no UTF-8, a path with `..` in it.
    pub fn of_file(file: &Path, projects: &Path) -> Option<Self> {
        Self::of_parts(&parts(file.strip_prefix(projects).ok()?)?)
    }

    /// The same for a file of which only the end is known to be the CLI's, such as one on another machine: what follows the last
    /// directory `projects` that makes sense of it. The session has to be a UUID then.
    pub fn of_far_file(file: &str) -> Option<Self> {
        // In a path of Unix `\` is a part of a name.
        let is_unix = file.starts_with('/');
        let is_separator = |c| c == '/' || (c == '\\' && !is_unix);
        let parts: Vec<&str> = file.split(is_separator).filter(|part| !part.is_empty()).collect();
        let tails = parts
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, part)| **part == "projects");
        tails
            .filter_map(|(at, _)| Self::of_parts(&parts[at + 1..]))
            .find(|key| uuid::Uuid::try_parse(&key.session_id).is_ok())
    }

    fn of_parts(parts: &[&str]) -> Option<Self> {
        if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
            return None;
        }
        match parts {
            [project, file] => Some(Self::new(*project, file.strip_suffix(".jsonl")?)),
            [project, session, sub @ .., last] if !sub.is_empty() => {
                let last = last.strip_suffix(".jsonl").unwrap_or(last);
                let subpath = sub.iter().copied().chain([last]).collect::<Vec<_>>().join("/");
                Some(Self::new(*project, *session).with_subpath(subpath))
            }
            _ => None,
        }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.project_key, self.session_id)?;
        match &self.subpath {
            Some(subpath) => write!(f, "/{subpath}"),
            None => Ok(()),
        }
    }
}

fn parts(relative: &Path) -> Option<Vec<&str>> {
    relative
        .components()
        .map(|component| match component {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";

    #[test]
    fn files_below_the_projects_have_keys() {
        let of = |file: &str| SessionKey::of_file(Path::new(file), Path::new("/c/projects"));
        assert_eq!(of("/c/projects/-p/s.jsonl"), Some(SessionKey::new("-p", "s")));
        let sub = SessionKey::new("-p", "s").with_subpath("subagents/agent-1");
        assert_eq!(of("/c/projects/-p/s/subagents/agent-1.jsonl"), Some(sub.clone()));
        assert_eq!(sub.to_string(), "-p/s/subagents/agent-1");
        assert_eq!(
            of("/c/projects/-p/s/subagents/workflows/run/agent-2.jsonl"),
            Some(SessionKey::new("-p", "s").with_subpath("subagents/workflows/run/agent-2"))
        );
        for no in [
            "/c/projects/-p",
            "/c/projects/-p/s.txt",
            "/c/projects/-p/s/x.jsonl",
            "/elsewhere/-p/s.jsonl",
            "/c/projects/../x/s.jsonl",
            "-p/s.jsonl",
        ] {
            assert_eq!(of(no), None, "{no}");
        }
    }

    #[test]
    fn files_of_another_machine_have_keys_when_they_look_like_the_clis() {
        let main = SessionKey::new("-p", ID);
        for file in [
            format!("/home/u/.claude/projects/-p/{ID}.jsonl"),
            format!("C:\\Users\\u\\.claude\\projects\\-p\\{ID}.jsonl"),
            format!("/projects/x/.claude/projects/-p/{ID}.jsonl"),
        ] {
            assert_eq!(SessionKey::of_far_file(&file), Some(main.clone()), "{file}");
        }
        assert_eq!(
            SessionKey::of_far_file(&format!("/c/projects/-p/{ID}/subagents/agent-1.jsonl")),
            Some(main.with_subpath("subagents/agent-1"))
        );
        assert_eq!(
            SessionKey::of_far_file(&format!("/c/projects/-p/{ID}/subagents/agent-a\\b:c.jsonl")),
            Some(main.with_subpath("subagents/agent-a\\b:c"))
        );
        assert_eq!(SessionKey::of_far_file("/c/projects/-p/s.jsonl"), None);
        assert_eq!(SessionKey::of_far_file(&format!("/c/{ID}.jsonl")), None);
    }

    #[test]
    fn json_is_the_official_sdks() {
        let key = SessionKey::new("p", "s");
        assert_eq!(
            serde_json::to_string(&key).unwrap(),
            r#"{"projectKey":"p","sessionId":"s"}"#
        );
        assert_eq!(key.with_subpath("").subpath, None);
    }
}
