//! `outrigger sessions delete`.

use outrigger::sessions::{Error, Sessions};

use super::confirm::Consent;
use super::find::{ProjectArgs, line};
use crate::exit::{CommandResult, Status};

/// Remove sessions, with all that belongs to them: subagents, results of tools, notes.
///
/// With --dir it is the copy in that project alone, else every copy in any project.
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
        let files = self.place.find_each(&sessions, &self.sessions)?;
        let mut what = String::new();
        for file in &files {
            if let Some(busy) = sessions.driven_by(&file.id)? {
                return Err(Error::Busy(Box::new(busy)).into());
            }
            let info = file.info().ok().flatten();
            let summary = info.map(|info| line(&info.summary, 60)).unwrap_or_default();
            what.push_str(&format!("  {}  {summary}\n", file.id));
        }
        let what = match files.len() {
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
        Ok(Status::Success)
    }
}
