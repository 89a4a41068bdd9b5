//! Asking before something is done that cannot be taken back.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use super::interrupt::Interrupt;
use crate::agent::usage;
use crate::exit::{Failure, Status};
use crate::plain::plain;

/// The longest answer that is read, in bytes.
const LONGEST: u64 = 1024;

/// For what asks first.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Consent {
    /// Do not ask. Without a terminal to ask at, nothing is done unless this is given.
    #[arg(short, long)]
    yes: bool,
}

impl Consent {
    /// Asks the person at the terminal, once, for everything that is about to be done.
    ///
    /// # Errors
    /// When the answer is not yes, or there is nobody to ask.
    pub(super) fn to(self, what: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let what = plain(what);
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(usage(format!(
                "{what}? There is no terminal to ask at, so nothing was done; --yes does it"
            )));
        }
        // Long work may have gone before, which has caught the signals.
        let _ends = Interrupt::end_at_once();
        let mut stderr = io::stderr().lock();
        write!(stderr, "{what}? [y/N] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().lock().take(LONGEST).read_line(&mut answer)?;
        if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
            return Ok(());
        }
        Err(Failure::new(Status::Failed, anyhow::anyhow!("nothing was done")))
    }
}
