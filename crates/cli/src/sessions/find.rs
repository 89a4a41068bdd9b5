//! Which session is meant.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use outrigger::sessions::{Error, ListOptions, SessionFile, SessionId, Sessions};

use crate::agent::usage;
use crate::exit::{Failure, Status};
use crate::plain::plain;

/// The shortest beginning of an id that is taken for one.
const SHORTEST: usize = 4;

/// How many sessions an error names at most.
const MOST_NAMED: usize = 8;

/// How many files a completion looks at.
const MOST_SEEN: usize = 20_000;

/// How many sessions a completion offers.
const MOST_OFFERED: usize = 100;

/// How many characters of a title a completion shows.
const MOST_OF_TITLE: usize = 60;

/// Where to look for a session.
#[derive(Debug, clap::Args)]
pub(super) struct ProjectArgs {
    /// Look in the project at this directory alone, and in the other worktrees of its repository.
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
}

/// The session that a command is about. Of several copies, that of this directory's project counts, else the one that was written to
/// last.
#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// The session: its id, the beginning of it, or its title.
    #[arg(value_name = "SESSION")]
    session: String,
    #[command(flatten)]
    place: ProjectArgs,
}

impl Named {
    /// Finds the session.
    pub(super) fn find(&self) -> Result<(Sessions, SessionFile), Failure> {
        let sessions = Sessions::from_env()?;
        let file = self.place.find(&sessions, &self.session)?;
        Ok((sessions, file))
    }
}

impl ProjectArgs {
    /// Finds a session by its id, the beginning of it, or its title.
    pub(super) fn find(&self, sessions: &Sessions, name: &str) -> Result<SessionFile, Failure> {
        if let Ok(id) = SessionId::new(name) {
            return self.with_id(sessions, &id);
        }
        let mut meant = titled(sessions, name, &self.projects())?;
        if is_beginning(name) {
            let is_here = |id: &SessionId| match &self.dir {
                Some(dir) => sessions.find_in(id, dir).is_ok(),
                None => true,
            };
            meant.extend(beginning(sessions, name).into_iter().filter(is_here));
        }
        let mut ids = meant.iter();
        match (ids.next(), ids.next()) {
            (Some(id), None) => self.with_id(sessions, id),
            (None, _) => {
                let name = plain(name);
                let place = match &self.dir {
                    Some(dir) => format!("the project at {}", dir.display()),
                    None => sessions.projects_dir().display().to_string(),
                };
                let message = format!(
                    "no session in {place} has an id that begins with {name:?}, or that title; `outrigger sessions list --all` shows \
                     which there are"
                );
                Err(Failure::new(Status::Failed, anyhow::anyhow!(message)))
            }
            _ => Err(self.several(sessions, name, &meant)),
        }
    }

    /// Where titles are looked for, one place after the other.
    fn projects(&self) -> Vec<ListOptions> {
        match &self.dir {
            Some(dir) => vec![ListOptions::new().dir(dir)],
            None => vec![ListOptions::new().dir(here()), ListOptions::new()],
        }
    }

    /// Finds several, or none if one of them is not there. One that is named twice is found once.
    pub(super) fn find_each(
        &self,
        sessions: &Sessions,
        names: &[String],
    ) -> Result<Vec<SessionFile>, Failure> {
        let mut files: Vec<SessionFile> = Vec::new();
        for name in names {
            let file = self.find(sessions, name)?;
            if files.iter().all(|found| found.path != file.path) {
                files.push(file);
            }
        }
        Ok(files)
    }

    fn with_id(&self, sessions: &Sessions, id: &SessionId) -> Result<SessionFile, Failure> {
        if let Some(dir) = &self.dir {
            return Ok(sessions.find_in(id, dir)?);
        }
        match sessions.find_in(id, here()) {
            Err(Error::NotFound(_)) => match sessions.find(id) {
                Err(Error::NotFound(_)) => {
                    let place = sessions.projects_dir().display().to_string();
                    let message = format!(
                        "there is no session {id} in any project of {place}; `outrigger sessions list --all` shows which there are"
                    );
                    Err(Failure::new(Status::Failed, anyhow::anyhow!(message)))
                }
                found => Ok(found?),
            },
            found => Ok(found?),
        }
    }

    fn several(&self, sessions: &Sessions, name: &str, meant: &BTreeSet<SessionId>) -> Failure {
        let mut message = format!("{} sessions could be meant by {:?}:", meant.len(), plain(name));
        for id in meant.iter().take(MOST_NAMED) {
            let info = sessions.info(id, self.dir.as_deref()).ok().flatten();
            let summary = info.map(|info| line(&info.summary, 60)).unwrap_or_default();
            message.push_str(&format!("\n  {id}  {summary}"));
        }
        if meant.len() > MOST_NAMED {
            message.push_str(&format!("\n  and {} more", meant.len() - MOST_NAMED));
        }
        Failure::new(Status::Usage, anyhow::anyhow!(message))
    }
}

/// The sessions with this title in the first of these places that has one.
fn titled(sessions: &Sessions, title: &str, places: &[ListOptions]) -> Result<BTreeSet<SessionId>, Failure> {
    for place in places {
        let infos = sessions.list(place)?.into_iter();
        let titled = infos.filter(|info| info.custom_title.as_deref() == Some(title));
        let ids: BTreeSet<_> = titled.map(|info| info.session_id).collect();
        if !ids.is_empty() {
            return Ok(ids);
        }
    }
    Ok(BTreeSet::new())
}

/// Whether a session can be in this directory. One that is not there can be made afterwards, and is told: it may be misspelt.
///
/// # Errors
/// When it is something else than a directory.
pub(super) fn may_be(dir: &Path) -> Result<(), Failure> {
    let shown = dir.display();
    if dir.is_dir() {
        return Ok(());
    }
    if dir.exists() {
        return Err(usage(format!(
            "{shown} is no directory, and a session is resumed in one"
        )));
    }
    let shown = plain(&shown.to_string());
    eprintln!("outrigger: {shown} is not there; the session is resumed in that directory, once it is made");
    Ok(())
}

/// The directory of this process.
pub(super) fn here() -> PathBuf {
    env::current_dir().unwrap_or_else(|_| Path::new(".").to_owned())
}

/// Text from a transcript in one line of so many characters at most, harmless to a terminal.
pub(crate) fn line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let mut shown = String::new();
    for (nth, c) in text.chars().enumerate() {
        if nth == most {
            shown.push('…');
            break;
        }
        shown.push(c);
    }
    plain(&shown)
}

fn is_beginning(name: &str) -> bool {
    let is_of_ids = |byte: u8| byte == b'-' || byte.is_ascii_hexdigit();
    (SHORTEST..36).contains(&name.len()) && name.bytes().all(is_of_ids)
}

/// The ids of the transcripts of all projects.
fn ids(sessions: &Sessions) -> impl Iterator<Item = SessionId> {
    let dirs = sessions.project_dirs().into_iter();
    let entries = dirs.filter_map(|dir| dir.read_dir().ok()).flatten().flatten();
    entries.filter_map(|entry| SessionId::of_file_name(entry.file_name().to_str()?))
}

/// Whether an id begins so, in any case.
fn begins(id: &SessionId, name: &str) -> bool {
    let head = id.as_str().get(..name.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(name))
}

/// A session that a shell is offered.
pub(crate) struct Offered {
    pub(crate) id: String,
    pub(crate) written: SystemTime,
    /// What `sessions list` shows of it.
    pub(crate) title: Option<String>,
}

/// The sessions whose ids begin so, those that were written to last first, for a shell: those of the project at `dir`, or here; if there
/// are none here, those of all projects. For titles both ends of their transcripts are read, else nothing is opened but directories.
pub(crate) fn offered(begin: &str, dir: Option<&Path>, with_titles: bool) -> Vec<Offered> {
    let Ok(sessions) = Sessions::from_env() else {
        return Vec::new();
    };
    let project = sessions.project_dir(dir.map_or_else(here, Path::to_owned));
    let mut found = written(&[project], begin);
    if found.is_empty() && dir.is_none() {
        found = written(&sessions.project_dirs(), begin);
    }
    let offered = found.into_iter().map(|(id, written)| {
        let info = with_titles
            .then(|| sessions.info(&id, dir).ok())
            .flatten()
            .flatten();
        Offered {
            id: id.as_str().to_owned(),
            written,
            title: info.map(|info| line(&info.summary, MOST_OF_TITLE)),
        }
    });
    offered.collect()
}

/// The subagents of the first session that these words name by its id, with what each was to do, for a shell.
pub(crate) fn offered_agents(words: &[String], dir: Option<PathBuf>) -> Vec<(String, Option<String>)> {
    let Ok(sessions) = Sessions::from_env() else {
        return Vec::new();
    };
    let place = ProjectArgs { dir };
    let file = words.iter().find_map(|word| {
        let looks_so = word.len() >= SHORTEST && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        looks_so.then(|| place.find(&sessions, word).ok()).flatten()
    });
    let agents = file.map(|file| file.subagents()).unwrap_or_default().into_iter();
    let agents = agents.map(|agent| {
        let task = agent.description.or(agent.agent_type);
        (
            agent.agent_id.as_str().to_owned(),
            task.map(|task| line(&task, MOST_OF_TITLE)),
        )
    });
    agents.take(MOST_OFFERED).collect()
}

/// The sessions in these directories whose ids begin so.
fn written(dirs: &[PathBuf], begin: &str) -> Vec<(SessionId, SystemTime)> {
    let entries = dirs.iter().filter_map(|dir| dir.read_dir().ok()).flatten();
    let found = entries.flatten().take(MOST_SEEN).filter_map(|entry| {
        let id = SessionId::of_file_name(entry.file_name().to_str()?)?;
        let metadata = begins(&id, begin).then(|| entry.metadata().ok())??;
        let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        (metadata.len() > 0).then_some((id, written))
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(_, written)| Reverse(*written));
    let mut told = BTreeSet::new();
    found.retain(|(id, _)| told.insert(id.clone()));
    found.truncate(MOST_OFFERED);
    found
}

/// The sessions of all projects whose ids begin so, in any case.
fn beginning(sessions: &Sessions, name: &str) -> BTreeSet<SessionId> {
    ids(sessions)
        .filter(|id| begins(id, name))
        // Empty files are what is left of sessions that never began.
        .filter(|id| sessions.find(id).is_ok())
        .collect()
}

/// How little of an id names its session.
pub(crate) struct Beginnings {
    /// Of all projects, since names are looked for in all.
    ids: BTreeSet<String>,
}

impl Beginnings {
    pub(super) fn of(sessions: &Sessions) -> Self {
        Self::among(ids(sessions).map(String::from))
    }

    /// Those among these ids.
    pub(crate) fn among(ids: impl IntoIterator<Item = String>) -> Self {
        let ids = ids.into_iter().map(|id| id.to_ascii_lowercase());
        Self { ids: ids.collect() }
    }

    /// The shortest beginning of an id that no other id has, and that is taken for one.
    pub(crate) fn shortest<'i>(&self, id: &'i str) -> &'i str {
        let own = id.to_ascii_lowercase();
        let common = |other: &String| own.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        // In their order, those that have most in common stand beside it.
        let before = self.ids.range(..own.clone()).next_back().map_or(0, common);
        let behind = self.ids.range(own.clone()..).find(|other| **other != own);
        let needed = before.max(behind.map_or(0, common)) + 1;
        id.get(..needed.max(SHORTEST)).unwrap_or(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_as_long_as_the_others_demand() {
        let ids = ["aaaa1111", "aaaa1122", "aaab", "ffff0000"].map(str::to_owned);
        let beginnings = Beginnings {
            ids: ids.into_iter().collect(),
        };
        for (id, shortest) in [
            ("aaaa1111", "aaaa111"),
            ("aaaa1122", "aaaa112"),
            ("aaab", "aaab"),
            ("FFFF0000", "FFFF"),
        ] {
            assert_eq!(beginnings.shortest(id), shortest);
        }
    }
}
