//! What a person sees while something takes its time: on standard error, and only if that is a terminal. And Ctrl-C, which stops it
//! where nothing is half done.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use outrigger::sessions::{Error, Progress};

use super::interrupt::Interrupt;
use crate::exit::{Failure, Status};

/// From this many bytes on there is something to wait for.
const LONG: u64 = 8 * 1024 * 1024;

/// How often what has no known end moves.
const EVERY: Duration = Duration::from_millis(120);

/// A bar for work that may be long, until it is dropped.
#[derive(Debug)]
pub(super) struct Bar {
    bar: ProgressBar,
    is_wanted: bool,
    interrupt: Option<Interrupt>,
}

impl Bar {
    /// A bar that is drawn once something says that it is long. What programs read gets none.
    pub(super) fn new(is_for_programs: bool) -> Self {
        let mut bar = Self::alone(is_for_programs);
        bar.interrupt = Some(Interrupt::heed());
        bar
    }

    /// One for work that leaves nothing half done wherever a signal ends it.
    pub(super) fn alone(is_for_programs: bool) -> Self {
        Self {
            bar: ProgressBar::hidden(),
            is_wanted: !is_for_programs && io::stderr().is_terminal(),
            interrupt: None,
        }
    }

    /// Something about so many bytes that does not tell how far it is.
    pub(super) fn of_work(bytes: u64, what: &'static str, is_for_programs: bool) -> ProgressBar {
        if is_for_programs || bytes < LONG || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new_spinner().with_message(what);
        bar.set_style(style("  {spinner} {msg} ({elapsed})"));
        bar.enable_steady_tick(EVERY);
        bar
    }

    /// Takes part in work that tells how far it is.
    pub(super) fn observe(&mut self, progress: Progress) -> ControlFlow<()> {
        if self.is_wanted && self.bar.is_hidden() && progress.total >= LONG {
            self.bar = ProgressBar::new(progress.total);
            self.bar
                .set_style(style("  [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec}"));
        }
        self.bar.set_position(progress.done);
        self.flow()
    }

    /// Takes part in work that has come to this one of so many messages.
    pub(super) fn message(&mut self, nth: usize, of: usize, bytes: u64) -> Result<(), Failure> {
        if self.is_wanted && self.bar.is_hidden() && bytes >= LONG {
            self.bar = ProgressBar::new(of as u64);
            self.bar.set_style(style("  [{bar:30}] {pos}/{len} messages"));
        }
        self.bar.set_position(nth as u64);
        match self.flow() {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(self.failure(Error::Stopped)),
        }
    }

    fn flow(&self) -> ControlFlow<()> {
        match self.signalled() {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    fn signalled(&self) -> Option<Status> {
        self.interrupt.as_ref().and_then(Interrupt::status)
    }

    /// The failure that an error of the work is: with the status of the signal, if one stopped it.
    pub(super) fn failure(&self, error: Error) -> Failure {
        match (&error, self.signalled()) {
            (Error::Stopped, status) => Failure::new(status.unwrap_or(Status::Interrupted), error),
            _ => error.into(),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Does work with a bar.
pub(super) fn observed<T>(
    is_for_programs: bool,
    work: impl FnOnce(&mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<T, Error>,
) -> Result<T, Failure> {
    let mut bar = Bar::new(is_for_programs);
    let done = work(&mut |progress| bar.observe(progress));
    done.map_err(|error| bar.failure(error))
}
