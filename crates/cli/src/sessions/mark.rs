//! `outrigger sessions rename`, `tag`, `archive` and `unarchive`.

use outrigger::sessions::Sessions;

use super::find::{Named, ProjectArgs};
use crate::exit::{CommandResult, Status};

/// Give a session a title.
#[derive(Debug, clap::Args)]
pub(super) struct Rename {
    #[command(flatten)]
    named: Named,
    /// The title; space around it is taken off.
    title: String,
}

/// Give a session a tag, or take it off.
#[derive(Debug, clap::Args)]
pub(super) struct Tag {
    #[command(flatten)]
    named: Named,
    /// The tag.
    #[arg(required_unless_present = "none")]
    tag: Option<String>,
    /// Take the tag off.
    #[arg(long, conflicts_with = "tag")]
    none: bool,
}

/// Put sessions into the archive: lists say so until somebody goes on with them.
///
/// Every copy of a session is archived.
#[derive(Debug, clap::Args)]
pub(super) struct Archive {
    /// The sessions.
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<String>,
    #[command(flatten)]
    place: ProjectArgs,
}

/// Take sessions out of the archive.
#[derive(Debug, clap::Args)]
pub(super) struct Unarchive {
    /// The sessions.
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<String>,
    #[command(flatten)]
    place: ProjectArgs,
}

impl Rename {
    pub(super) fn run(self) -> CommandResult {
        let (_, file) = self.named.find()?;
        file.rename(&self.title)?;
        Ok(Status::Success)
    }
}

impl Tag {
    pub(super) fn run(self) -> CommandResult {
        let (_, file) = self.named.find()?;
        file.tag(self.tag.as_deref())?;
        Ok(Status::Success)
    }
}

impl Archive {
    pub(super) fn run(self) -> CommandResult {
        each(&self.sessions, &self.place, Sessions::archive)
    }
}

impl Unarchive {
    pub(super) fn run(self) -> CommandResult {
        each(&self.sessions, &self.place, Sessions::unarchive)
    }
}

/// Finds all sessions before anything is done to one.
fn each(
    names: &[String],
    place: &ProjectArgs,
    change: impl Fn(&Sessions, &outrigger::sessions::SessionId) -> outrigger::sessions::Result<()>,
) -> CommandResult {
    let sessions = Sessions::from_env()?;
    for file in place.find_each(&sessions, names)? {
        change(&sessions, &file.id)?;
    }
    Ok(Status::Success)
}
