//! `outrigger sessions repair`.

use std::io::{self, Write as _};

use outrigger::sessions::repair::Repair as Repairing;
use serde_json::json;

use super::confirm::Consent;
use super::find::Named;
use super::made::{Made, MadeOutput};
use super::progress::observed;
use crate::exit::{CommandResult, Status};
use crate::plain::plain;

/// Find what crashes left in a transcript, and mend it.
///
/// That is calls of tools without results, torn lines, missing parents and the like. Nothing is changed without --in-place or --new.
#[derive(Debug, clap::Args)]
pub(super) struct Repair {
    #[command(flatten)]
    named: Named,
    /// Mend the transcript in its place, of which a backup stays beside it. Asks first.
    #[arg(long, conflicts_with = "new")]
    in_place: bool,
    /// Mend into a new session, whose id is written; the old one is not touched.
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    output: MadeOutput,
}

impl Repair {
    pub(super) fn run(self) -> CommandResult {
        let (_, file) = self.named.find()?;
        let is_json = self.output.is_json();
        let repair = observed(is_json, |observe| file.repair_observed(observe))?;
        if !self.in_place && !self.new {
            return self.show(&repair);
        }
        if !self.output.is_json() {
            for finding in repair.findings() {
                eprintln!("{}", plain(&finding.to_string()));
            }
        }
        if self.new {
            let new = observed(is_json, |observe| repair.into_new_observed(observe))?;
            return self.output.write(&Made::new(&new));
        }
        if repair.findings().is_empty() {
            // As it is, it is what mending would make of it.
            return self.output.write(&Made::new(&file));
        }
        self.consent
            .to(&format!("Mend {} in its place", file.path.display()))?;
        let mended = observed(is_json, |observe| repair.in_place_observed(observe))?;
        if !self.output.is_json() {
            eprintln!("as it was: {}", plain(&mended.backup.display().to_string()));
        }
        let mut made = Made::new(&mended.file);
        made.backup = Some(mended.backup);
        self.output.write(&made)
    }

    fn show(&self, repair: &Repairing) -> CommandResult {
        let mut stdout = io::stdout().lock();
        if self.output.is_json() {
            let findings = repair.findings().iter().map(|finding| {
                json!({
                    "line": finding.position.line,
                    "offset": finding.position.offset,
                    "problem": finding.problem.to_string(),
                    "mendable": finding.problem.is_mendable(),
                })
            });
            for finding in findings {
                writeln!(stdout, "{finding}")?;
            }
            return Ok(Status::Success);
        }
        for finding in repair.findings() {
            writeln!(stdout, "{}", plain(&finding.to_string()))?;
        }
        if repair.findings().is_empty() {
            writeln!(stdout, "nothing is wrong")?;
        } else if repair.changes_something() {
            eprintln!("--in-place mends it, with a backup; --new mends into a new session");
        }
        Ok(Status::Success)
    }
}
