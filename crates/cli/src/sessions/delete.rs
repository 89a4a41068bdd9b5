//! `outrigger sessions delete`.

use std::collections::BTreeSet;

use outrigger::sessions::{Error, SessionId, Sessions};

use super::confirm::Consent;
use super::find::{ProjectArgs, line};
use crate::exit::{CommandResult, Status};

/// Remove sessions, with all that belongs to them: subagents, results of tools, notes.
///
/// With --dir it is the copy in that project alone, else every copy in any project. A whole id also removes what is left of a session whose
/// transcript is gone.
#[derive(Debug, clap::Args)]
pub(super) struct Delete {
    /// The sessions.
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<String>,
    #[command(flatten)]
    place: ProjectArgs,
    #[command(flatten)]
    consent: Consent,
}

impl Delete {
    pub(super) fn run(self) -> CommandResult {
        let sessions = Sessions::from_env()?;
        let (left, named): (Vec<_>, Vec<_>) = self
            .sessions
            .iter()
            .cloned()
            .partition(|name| self.is_left(&sessions, name));
        let files = self.place.find_each(&sessions, &named)?;
        let left: BTreeSet<SessionId> = left.iter().filter_map(|id| SessionId::new(id).ok()).collect();
        let mut what = String::new();
        let with_files = files.iter().map(|file| (&file.id, Some(file)));
        for (id, file) in with_files.chain(left.iter().map(|id| (id, None))) {
            if let Some(busy) = sessions.driven_by(id)? {
                return Err(Error::Busy(Box::new(busy)).into());
            }
            let info = file.and_then(|file| file.info().ok().flatten());
            let summary = info.map(|info| line(&info.summary, 60)).unwrap_or_default();
            let note = if file.is_some() {
                ""
            } else {
                "(without a transcript)"
            };
            what.push_str(&format!("  {id}  {summary}{note}\n"));
        }
        let what = match files.len() + left.len() {
            1 => format!("{what}Delete this session for good"),
            count => format!("{what}Delete these {count} sessions for good"),
        };
        self.consent.to(&what)?;
        for file in files {
            if self.place.dir.is_some() {
                file.delete()?;
            } else {
                sessions.delete(&file.id)?;
            }
        }
        left.iter().try_for_each(|id| sessions.delete(id))?;
        Ok(Status::Success)
    }

    /// Whether a name is the whole id of a session of which only remains are there: its transcript is gone, or empty.
    fn is_left(&self, sessions: &Sessions, name: &str) -> bool {
        self.place.dir.is_none()
            && SessionId::new(name).is_ok_and(|id| {
                sessions.find(&id).is_err_and(|error| error.is_not_found())
                    && !sessions.remains(&id).is_empty()
            })
    }
}
