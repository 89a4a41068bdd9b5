//! The conversations of the CLI behind one session of the editor.
//!
//! The editor keeps one id for a session. The CLI gives a new id to a conversation that starts over (`/clear`, or a rewind to before the
//! first prompt). So the ids of such a session are stored in a small file below `outrigger/acp` in the config directory, which is
//! deleted with the session.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use outrigger::sessions::{SessionId, Sessions};
use serde::{Deserialize, Serialize};

use crate::private_dir;

/// How many conversations of a session are stored. The oldest are dropped first.
const MOST: usize = 64;

/// The later conversations of a session, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct LineageFile {
    #[serde(rename = "wentOnAs")]
    went_on_as: Vec<String>,
}

/// The current conversation of a session. A conversation without a transcript does not count: it has no messages.
pub(crate) fn conversation(sessions: &Sessions, id: &SessionId) -> SessionId {
    let later = later(sessions, id);
    let is_there = |later: &&SessionId| sessions.find(later).is_ok();
    later.iter().rev().find(is_there).unwrap_or(id).clone()
}

/// The later conversations of a session, oldest first.
pub(crate) fn later(sessions: &Sessions, id: &SessionId) -> Vec<SessionId> {
    let note = read(&file(sessions, id)).unwrap_or_default();
    let later = note.went_on_as.iter().filter_map(|id| SessionId::new(id).ok());
    later.collect()
}

/// Stores that a session continues as another conversation.
pub(crate) fn goes_on_as(sessions: &Sessions, id: &SessionId, conversation: &SessionId) -> io::Result<()> {
    let path = file(sessions, id);
    let mut note = read(&path).unwrap_or_default();
    note.went_on_as.retain(|later| later != conversation.as_str());
    note.went_on_as.push(conversation.to_string());
    if note.went_on_as.len() > MOST {
        note.went_on_as.drain(..note.went_on_as.len() - MOST);
    }
    let text = serde_json::to_vec(&note)?;
    private_dir::create(&directory(sessions))?;
    // By a rename, so that other processes never read half a file.
    let draft = path.with_extension(format!("{}.tmp", uuid::Uuid::new_v4()));
    let done = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, &path));
    if done.is_err() {
        // The file may not exist.
        let _ = std::fs::remove_file(&draft);
    }
    done
}

/// Deletes the file of a session.
pub(crate) fn forget(sessions: &Sessions, id: &SessionId) -> io::Result<()> {
    match std::fs::remove_file(file(sessions, id)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The sessions behind all conversations, for lists.
#[derive(Debug, Default)]
pub(crate) struct Lineages {
    /// The session that continues as a conversation.
    sessions: HashMap<String, String>,
    /// Former conversations, whose sessions continue as others.
    over: HashSet<String>,
}

impl Lineages {
    /// Reads all files.
    pub(crate) fn read(sessions: &Sessions) -> Self {
        let mut all = Self::default();
        let entries = std::fs::read_dir(directory(sessions))
            .into_iter()
            .flatten()
            .flatten();
        for entry in entries {
            let path = entry.path();
            let name = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default();
            let Some(id) = SessionId::new(name)
                .ok()
                .filter(|_| path.extension().is_some_and(|extension| extension == "json"))
            else {
                continue;
            };
            let now = conversation(sessions, &id);
            if now == id {
                continue;
            }
            let others = later(sessions, &id).into_iter().filter(|later| *later != now);
            all.over.extend(others.map(|other| other.to_string()));
            all.over.insert(id.to_string());
            all.sessions.insert(now.to_string(), id.to_string());
        }
        all
    }

    /// The session id under which a conversation is listed; `None` for a former conversation.
    pub(crate) fn listed_as(&self, conversation: &str) -> Option<String> {
        match self.sessions.get(conversation) {
            Some(session) => Some(session.clone()),
            None if self.over.contains(conversation) => None,
            None => Some(conversation.to_owned()),
        }
    }
}

fn directory(sessions: &Sessions) -> PathBuf {
    sessions.config_dir().join("outrigger").join("acp")
}

fn file(sessions: &Sessions, id: &SessionId) -> PathBuf {
    directory(sessions).join(format!("{id}.json"))
}

fn read(path: &Path) -> Option<LineageFile> {
    let text = std::fs::read(path).ok()?;
    match serde_json::from_slice(&text) {
        Ok(note) => Some(note),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "what a session went on as could not be read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> SessionId {
        SessionId::new(&format!("00000000-0000-4000-8000-{number:012}")).unwrap()
    }

    #[test]
    fn a_session_is_what_it_went_on_as_last_if_anything_was_said_there() {
        let home = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(home.path());
        let project = home.path().join("projects").join("-w");
        std::fs::create_dir_all(&project).unwrap();
        let said = |id: &SessionId| std::fs::write(project.join(id.file_name()), "{}\n").unwrap();
        said(&id(1));
        assert_eq!(conversation(&sessions, &id(1)), id(1));
        goes_on_as(&sessions, &id(1), &id(2)).unwrap();
        goes_on_as(&sessions, &id(1), &id(3)).unwrap();
        assert_eq!(
            conversation(&sessions, &id(1)),
            id(1),
            "nothing was said in either"
        );
        said(&id(2));
        assert_eq!(conversation(&sessions, &id(1)), id(2));
        said(&id(3));
        assert_eq!(conversation(&sessions, &id(1)), id(3));

        let all = Lineages::read(&sessions);
        let listed = |number| all.listed_as(id(number).as_str());
        assert_eq!((listed(1), listed(2)), (None, None));
        assert_eq!(listed(3), Some(id(1).to_string()));
        assert_eq!(listed(4), Some(id(4).to_string()));

        forget(&sessions, &id(1)).unwrap();
        forget(&sessions, &id(1)).unwrap();
        assert_eq!(conversation(&sessions, &id(1)), id(1));
    }

    #[test]
    fn the_oldest_are_forgotten_and_a_broken_note_is_none() {
        let home = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(home.path());
        for number in 0..=80 {
            goes_on_as(&sessions, &id(999), &id(number)).unwrap();
        }
        let all = later(&sessions, &id(999));
        assert_eq!((all.len(), all.last()), (MOST, Some(&id(80))));
        std::fs::write(file(&sessions, &id(999)), "{").unwrap();
        assert!(later(&sessions, &id(999)).is_empty());
    }
}
