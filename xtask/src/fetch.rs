//! Has the pinned Claude Code in the cache.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use outrigger_claude::{Fetch, FetchFailure, Progress};

/// The executable, fetched if it is not there yet.
pub(crate) fn run() -> Result<PathBuf> {
    let fetch = Fetch::new()?;
    if let Some(path) = fetch.cached() {
        return Ok(path);
    }
    eprintln!("fetching {}", fetch.notice());
    let mut line = Line::default();
    let fetched = fetch.run(|progress| line.show(progress));
    line.end();
    fetched
        .map_err(|error| {
            let missing = matches!(*error.failure, FetchFailure::NpmMissing { .. });
            let error = anyhow::Error::new(error);
            if missing {
                error.context("the tests run the real Claude Code")
            } else {
                error
            }
        })
        .context("cannot fetch what the tests need")
}

/// One line on the terminal that says how far it is; silent elsewhere.
#[derive(Default)]
struct Line {
    shown: String,
}

impl Line {
    fn show(&mut self, progress: Progress) {
        let percent = |bytes: u64, total: u64| bytes * 100 / total.max(1);
        let text = match progress {
            Progress::Downloading {
                bytes,
                total: Some(total),
            } => format!("downloading {}%", percent(bytes, total)),
            Progress::Downloading { bytes, total: None } => format!("downloading {} MB", bytes / 1_000_000),
            Progress::Unpacking { bytes, total } => format!("unpacking {}%", percent(bytes, total)),
            Progress::Verifying => "verifying".to_owned(),
            Progress::Waiting => "another process is fetching it; waiting".to_owned(),
            _ => return,
        };
        if text != self.shown && std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K{text}");
            // A terminal that cannot be written to has nobody to tell.
            let _ = std::io::stderr().flush();
            self.shown = text;
        }
    }

    fn end(&self) {
        if !self.shown.is_empty() {
            eprintln!();
        }
    }
}
