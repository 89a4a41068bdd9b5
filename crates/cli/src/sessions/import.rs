//! `outrigger sessions import`.

use std::path::PathBuf;

use outrigger::sessions::Sessions;

use super::find::{here, may_be};
use super::made::{Made, MadeOutput};
use super::progress::observed;
use crate::exit::CommandResult;
use crate::plain::plain;

/// Make a session of a file that `export` wrote, or of a transcript; its id is written.
///
/// It keeps its id unless a session has that
/// here: then it gets a new one, and what is here stays as it is.
#[derive(Debug, clap::Args)]
pub(super) struct Import {
    /// The file.
    file: PathBuf,
    /// The directory to resume the session in; this one unless given.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    output: MadeOutput,
}

impl Import {
    pub(super) fn run(self) -> CommandResult {
        let sessions = Sessions::from_env()?;
        let dir = self.dir.unwrap_or_else(here);
        may_be(&dir)?;
        let imported = observed(self.output.is_json(), |observe| {
            sessions.import_observed(&self.file, dir, observe)
        })?;
        if let Some(was) = &imported.was
            && !self.output.is_json()
        {
            eprintln!(
                "outrigger: there is a session {} already, so the import has an id of its own",
                plain(was.as_str())
            );
        }
        let mut made = Made::new(&imported.file);
        made.was = imported.was;
        self.output.write(&made)
    }
}
