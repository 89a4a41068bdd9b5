//! `outrigger sessions move`.

use std::path::PathBuf;

use outrigger::sessions::Sessions;
use outrigger::sessions::relocate::RelocateOptions;

use super::confirm::Consent;
use super::find::{Named, may_be};
use super::made::{Made, MadeOutput};
use super::progress::observed;
use crate::exit::CommandResult;

/// Take a session to another directory, or to another config directory, so that it is resumed there; its id is written.
///
/// A move asks first, a copy does not.
#[derive(Debug, clap::Args)]
pub(super) struct Move {
    #[command(flatten)]
    named: Named,
    /// The directory to resume the session in; it need not exist here.
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// Into this config directory.
    #[arg(long, value_name = "DIR")]
    to_config: Option<PathBuf>,
    /// Leave the old session where it is. In the same config directory, the copy gets an id of its own.
    #[arg(long)]
    copy: bool,
    /// Leave the directories in the records as they are, and only add where the session is now.
    #[arg(long)]
    keep_records: bool,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    output: MadeOutput,
}

impl Move {
    pub(super) fn run(self) -> CommandResult {
        let (sessions, file) = self.named.find()?;
        let to = match &self.to_config {
            Some(dir) => Sessions::at(dir),
            None => sessions,
        };
        may_be(&self.to)?;
        if !self.copy {
            let config = match &self.to_config {
                Some(dir) => format!(" in the config directory {}", dir.display()),
                None => String::new(),
            };
            let (from, to) = (file.path.display(), self.to.display());
            self.consent
                .to(&format!("Move session {} from {from} to {to}{config}", file.id))?;
        }
        let options = RelocateOptions::new()
            .copy(self.copy)
            .keep_records(self.keep_records);
        let moved = observed(self.output.is_json(), |observe| {
            file.relocate_observed(&to, &self.to, &options, observe)
        })?;
        let mut made = Made::new(&moved);
        made.was = (moved.id != file.id).then_some(file.id);
        self.output.write(&made)
    }
}
