//! What a person sees while something takes its time: on standard error, and only if that is a terminal.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// From this many bytes on there is something to wait for.
const LONG: u64 = 8 * 1024 * 1024;

/// How often what has no known end moves.
const EVERY: Duration = Duration::from_millis(120);

/// A bar, or nothing.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// For something that reads or writes so many bytes, and tells how far it is.
    pub(super) fn of_bytes(bytes: u64) -> Self {
        let style = "  [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec}";
        Self::shown(bytes, style, || ProgressBar::new(bytes))
    }

    /// For something about so many bytes that does not tell how far it is.
    pub(super) fn of_work(bytes: u64, what: &'static str) -> Self {
        let progress = Self::shown(bytes, "  {spinner} {msg} ({elapsed})", || {
            ProgressBar::new_spinner().with_message(what)
        });
        if !progress.0.is_hidden() {
            progress.0.enable_steady_tick(EVERY);
        }
        progress
    }

    fn shown(bytes: u64, style: &str, bar: impl FnOnce() -> ProgressBar) -> Self {
        if bytes < LONG || !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = bar();
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }

    /// A writer that moves the bar by what goes through it.
    pub(super) fn writer<W: Write>(&self, into: W) -> impl Write + use<W> {
        self.0.wrap_write(into)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
