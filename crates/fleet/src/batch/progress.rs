//! How far a batch is.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::BatchStop;
use crate::budget::Amount;

/// How far a batch is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The number of jobs, if the stream of jobs says it.
    pub jobs: Option<u64>,
    /// Jobs that ended with an answer, those of earlier runs included.
    pub done: u64,
    /// Jobs that ended without one, those of earlier runs included.
    pub failed: u64,
    /// Of those, jobs whose results are from the journal.
    pub replayed: u64,
    /// Jobs that run, or wait for their next try.
    pub running: usize,
    /// Tries that failed and were, or will be, followed by another.
    pub retries: u64,
    /// What all tries have spent, those of earlier runs included.
    pub spent: Amount,
    /// How long this run has taken.
    pub elapsed: Duration,
}

impl Progress {
    /// How long the rest takes, if it goes on as in this run; `None` before the first job of this run has ended, or if the number of jobs
    /// is not known.
    pub fn estimate(&self) -> Option<Duration> {
        let ended = self.done + self.failed;
        let here = u32::try_from(ended.saturating_sub(self.replayed)).ok()?;
        let left = u32::try_from(self.jobs?.saturating_sub(ended)).ok()?;
        (here > 0).then(|| (self.elapsed / here).saturating_mul(left))
    }
}

/// How a batch ended. `Display` is one line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// How far the batch came.
    pub progress: Progress,
    /// Why the batch stopped before all jobs had ended.
    pub stopped: Option<BatchStop>,
    /// Jobs that had begun and did not end.
    pub unfinished: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = &self.progress;
        write!(f, "{} done, {} failed", progress.done, progress.failed)?;
        let ended = progress.done + progress.failed;
        if let Some(left) = progress
            .jobs
            .map(|jobs| jobs.saturating_sub(ended))
            .filter(|left| *left > 0)
        {
            write!(f, ", {left} left")?;
        }
        write!(
            f,
            "; {}, {:.1} s",
            progress.spent.usd,
            progress.elapsed.as_secs_f64()
        )?;
        match &self.stopped {
            Some(stop) => write!(f, "; stopped: {stop}"),
            None => Ok(()),
        }
    }
}

/// Watches a batch, and can stop it. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Monitor(Arc<Counts>);

impl Monitor {
    pub(super) fn new(counts: Arc<Counts>) -> Self {
        Self(counts)
    }

    /// How far the batch is.
    pub fn progress(&self) -> Progress {
        self.0.progress()
    }

    /// Waits until something has changed since the last call.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn changed(&mut self) {
        let mut changes = self.0.changes.subscribe();
        // The sender lives as long as this.
        drop(changes.changed().await);
    }

    /// Lets no further prompt begin. Jobs whose prompts run go on to their end; those that wait to begin, or for their next try, are left
    /// at once.
    pub fn stop(&self) {
        self.0.stop(BatchStop::Asked);
    }

    pub(super) fn summary(&self) -> Summary {
        let inner = self.0.lock();
        Summary {
            progress: self.0.progress_of(&inner),
            stopped: inner.stopped.clone(),
            unfinished: inner.unfinished,
        }
    }
}

/// What is counted.
#[derive(Debug)]
pub(super) struct Counts {
    began: Instant,
    inner: Mutex<ProgressInner>,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct ProgressInner {
    jobs: Option<u64>,
    done: u64,
    failed: u64,
    replayed: u64,
    running: usize,
    retries: u64,
    spent: Amount,
    unfinished: u64,
    stopped: Option<BatchStop>,
}

impl Counts {
    pub(super) fn new((least, most): (usize, Option<usize>)) -> Self {
        let jobs = most.filter(|most| *most == least);
        Self {
            began: Instant::now(),
            inner: Mutex::new(ProgressInner {
                jobs: jobs.and_then(|jobs| jobs.try_into().ok()),
                ..ProgressInner::default()
            }),
            changes: watch::Sender::new(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressInner> {
        // Nothing panics halfway through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> Progress {
        self.progress_of(&self.lock())
    }

    fn progress_of(&self, inner: &ProgressInner) -> Progress {
        Progress {
            jobs: inner.jobs,
            done: inner.done,
            failed: inner.failed,
            replayed: inner.replayed,
            running: inner.running,
            retries: inner.retries,
            spent: inner.spent,
            elapsed: self.began.elapsed(),
        }
    }

    fn change(&self, change: impl FnOnce(&mut ProgressInner)) {
        change(&mut self.lock());
        self.changes.send_replace(());
    }

    /// A job begins.
    pub(super) fn begin(&self) {
        self.change(|inner| inner.running += 1);
    }

    /// A job that began has ended.
    pub(super) fn end(&self, is_done: bool) {
        self.change(|inner| {
            inner.running -= 1;
            match is_done {
                true => inner.done += 1,
                false => inner.failed += 1,
            }
        });
    }

    /// A job that began is left to the next run.
    pub(super) fn leave(&self) {
        self.change(|inner| {
            inner.running -= 1;
            inner.unfinished += 1;
        });
    }

    /// The journal has the result of a job.
    pub(super) fn replay(&self, is_done: bool, spent: Amount) {
        self.change(|inner| {
            inner.replayed += 1;
            inner.spent += spent;
            match is_done {
                true => inner.done += 1,
                false => inner.failed += 1,
            }
        });
    }

    pub(super) fn spend(&self, amount: Amount) {
        self.change(|inner| inner.spent += amount);
    }

    pub(super) fn retry(&self) {
        self.change(|inner| inner.retries += 1);
    }

    /// No further job begins. The first reason counts.
    pub(super) fn stop(&self, why: BatchStop) {
        self.change(|inner| {
            inner.stopped.get_or_insert(why);
        });
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopped.is_some()
    }

    /// Waits until no further job begins.
    pub(super) async fn stopped(&self) {
        let mut changes = self.changes.subscribe();
        // The sender lives as long as this.
        drop(changes.wait_for(|()| self.is_stopped()).await);
    }
}
