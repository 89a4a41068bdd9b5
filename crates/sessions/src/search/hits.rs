//! What is found, in order, by threads that go a little ahead.

use std::collections::HashMap;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::session::{Desk, Plan};
use super::{Hit, Search};
use crate::error::{Error, Result};
use crate::place::Sessions;
use crate::read::ListOptions;
use crate::read::list::Candidate;

/// How many threads search, at most.
const MOST_THREADS: usize = 8;

/// How many hits of a session are held until they are asked for.
const HITS_AHEAD: usize = 64;

/// How many sessions are searched before they are asked for.
const SESSIONS_AHEAD: usize = 64;

/// What a search finds. An iterator; an item is an error when a transcript cannot be read, and the search goes on with the next one.
///
/// Dropping it ends the search; that waits until each thread has come to the end of the block or line that it reads.
#[derive(Debug)]
pub struct Hits {
    sessions: Option<Receiver<Receiver<Result<Hit>>>>,
    current: Option<Receiver<Result<Hit>>>,
    stop: Arc<AtomicBool>,
    unread: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads share.
struct Shared {
    plan: Plan,
    /// The copies of each session, the newest first.
    jobs: Vec<Vec<Candidate>>,
    turn: Mutex<Turn>,
}

/// Whose turn it is: a session is taken and announced in one step, so that the order is kept.
struct Turn {
    next: usize,
    announce: SyncSender<Receiver<Result<Hit>>>,
}

impl Hits {
    pub(super) fn of(sessions: &Sessions, search: &Search) -> Result<Self> {
        let options = ListOptions {
            dir: search.dir.clone(),
            include_worktrees: search.include_worktrees,
            include_programmatic: search.include_programmatic,
            ..ListOptions::default()
        };
        let (places, candidates) = sessions.newest_first(&options)?;
        let plan = Plan::new(search, options, places);
        let (announce, announced) = sync_channel(SESSIONS_AHEAD);
        let mut hits = Self {
            sessions: Some(announced),
            current: None,
            stop: plan.stop.clone(),
            unread: plan.unread.clone(),
            threads: Vec::new(),
        };
        let jobs = by_session(candidates);
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = threads.min(MOST_THREADS).min(jobs.len());
        let turn = Mutex::new(Turn { next: 0, announce });
        let shared = Arc::new(Shared { plan, jobs, turn });
        for nth in 0..threads {
            let shared = shared.clone();
            let begun = thread::Builder::new()
                .name("outrigger-search".to_owned())
                .spawn(move || shared.work());
            match begun {
                Ok(thread) => hits.threads.push(thread),
                Err(error) if nth == 0 => return Err(Error::io("search", sessions.projects_dir())(error)),
                // Those that there are do it all.
                Err(_) => break,
            }
        }
        Ok(hits)
    }

    /// How many lines could not be read so far that may have the text in them: damaged ones, and those that are longer than
    /// [`Lines::DEFAULT_CAP`](crate::record::Lines::DEFAULT_CAP). The threads are ahead of the hits.
    pub fn unread_lines(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }
}

impl Iterator for Hits {
    type Item = Result<Hit>;

    fn next(&mut self) -> Option<Result<Hit>> {
        loop {
            if let Some(hit) = self.current.as_ref().and_then(|current| current.recv().ok()) {
                return Some(hit);
            }
            self.current = Some(self.sessions.as_ref()?.recv().ok()?);
        }
    }
}

impl Drop for Hits {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Whoever waits to hand something out is told by this that nobody takes it.
        self.current = None;
        self.sessions = None;
        for thread in self.threads.drain(..) {
            // One that panicked would be a bug here; the others are waited for all the same.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut desk = Desk::new();
        while let Some((copies, hits)) = self.take() {
            let mut tell = |hit| match hits.send(hit) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            };
            self.plan.run(&mut desk, copies, &mut tell);
        }
    }

    /// The next session, and where its hits go.
    fn take(&self) -> Option<(&[Candidate], SyncSender<Result<Hit>>)> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.plan.stop.load(Ordering::Relaxed) {
            return None;
        }
        let copies = self.jobs.get(turn.next)?;
        turn.next += 1;
        let (sender, receiver) = sync_channel(HITS_AHEAD);
        turn.announce.send(receiver).ok()?;
        Some((copies, sender))
    }
}

/// Brings the copies of each session together, in the order of the newest ones.
fn by_session(candidates: Vec<Candidate>) -> Vec<Vec<Candidate>> {
    let mut places = HashMap::new();
    let mut jobs: Vec<Vec<Candidate>> = Vec::new();
    for candidate in candidates {
        let place = *places.entry(candidate.id.clone()).or_insert(jobs.len());
        match jobs.get_mut(place) {
            Some(copies) => copies.push(candidate),
            None => jobs.push(vec![candidate]),
        }
    }
    jobs
}
