//! The hits, in order, from threads that search a little ahead.

use std::collections::HashMap;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::meter::{Observer, SharedMeter};
use super::session::{SearchBuffers, SearchPlan};
use super::{Hit, Search};
use crate::error::{Error, Result};
use crate::place::Sessions;
use crate::read::ListOptions;
use crate::read::list::Candidate;

/// How many threads search, at most.
const MOST_THREADS: usize = 8;

/// How many hits of a session are held before they are read.
const HITS_AHEAD: usize = 64;

/// How many sessions are searched ahead of the reader.
const SESSIONS_AHEAD: usize = 64;

/// The hits of a search. An iterator; an item is an error when a transcript cannot be read, and the search continues with the next one.
///
/// Dropping it ends the search; the drop waits until each thread has finished its block or line.
#[derive(Debug)]
pub struct Hits {
    sessions: Option<Receiver<Receiver<Result<Hit>>>>,
    current: Option<Receiver<Result<Hit>>>,
    stop: Arc<AtomicBool>,
    /// Whether the observer stopped the search, which is reported once.
    is_stopped: Arc<AtomicBool>,
    unread: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

/// State shared by the threads.
struct SearchInner {
    plan: SearchPlan,
    /// The copies of each session, the newest first.
    jobs: Vec<Vec<Candidate>>,
    /// How many of the sessions are done.
    done: AtomicUsize,
    turn: Mutex<Turn>,
    heard: Option<ProgressObserver>,
}

/// The next session.
struct SessionToSearch<'s> {
    nth: usize,
    copies: &'s [Candidate],
    /// Where the session's hits go.
    hits: SyncSender<Result<Hit>>,
}

/// Tells the observer of the progress.
struct ProgressObserver {
    meter: SharedMeter,
    /// How much there is to read for each job.
    lengths: Vec<u64>,
    is_stopped: Arc<AtomicBool>,
}

/// Whose turn it is: a session is taken and announced in one step, so that the order is kept.
struct Turn {
    next: usize,
    announce: SyncSender<Receiver<Result<Hit>>>,
}

impl Hits {
    pub(super) fn of(sessions: &Sessions, search: &Search, observe: Option<Observer>) -> Result<Self> {
        let options = ListOptions {
            dir: search.dir.clone(),
            include_worktrees: search.include_worktrees,
            include_programmatic: search.include_programmatic,
            ..ListOptions::default()
        };
        let (places, candidates) = sessions.newest_first(&options)?;
        let plan = SearchPlan::new(search, options, places);
        let (announce, announced) = sync_channel(SESSIONS_AHEAD);
        let mut hits = Self {
            sessions: Some(announced),
            current: None,
            stop: plan.stop.clone(),
            is_stopped: Arc::default(),
            unread: plan.unread.clone(),
            threads: Vec::new(),
        };
        let jobs = by_session(candidates);
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = threads.min(MOST_THREADS).min(jobs.len());
        let heard = observe.map(|observe| {
            let lengths: Vec<u64> = jobs.iter().map(|copies| plan.length_of(copies)).collect();
            let meter = SharedMeter::new(lengths.iter().sum(), observe);
            let is_stopped = hits.is_stopped.clone();
            ProgressObserver {
                meter,
                lengths,
                is_stopped,
            }
        });
        if let Some(heard) = &heard {
            heard.heed(heard.meter.begin(), &plan.stop);
            if jobs.is_empty() {
                heard.meter.end();
            }
        }
        let shared = Arc::new(SearchInner {
            plan,
            jobs,
            done: AtomicUsize::new(0),
            turn: Mutex::new(Turn { next: 0, announce }),
            heard,
        });
        for nth in 0..threads {
            let shared = shared.clone();
            let begun = thread::Builder::new()
                .name("outrigger-search".to_owned())
                .spawn(move || shared.work());
            match begun {
                Ok(thread) => hits.threads.push(thread),
                Err(error) if nth == 0 => return Err(Error::io("search", sessions.projects_dir())(error)),
                // The threads that exist do all the work.
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
            match self.sessions.as_ref()?.recv() {
                Ok(next) => self.current = Some(next),
                Err(_) if self.is_stopped.swap(false, Ordering::Relaxed) => return Some(Err(Error::Stopped)),
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Hits {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that waits to deliver a hit sees that nobody reads it.
        self.current = None;
        self.sessions = None;
        for thread in self.threads.drain(..) {
            // One that panicked would be a bug here; the others are waited for all the same.
            let _ = thread.join();
        }
    }
}

impl SearchInner {
    fn work(&self) {
        let mut desk = SearchBuffers::new();
        while let Some(SessionToSearch { nth, copies, hits }) = self.take() {
            let heard = self.heard.as_ref();
            let mut left = heard
                .and_then(|heard| heard.lengths.get(nth))
                .copied()
                .unwrap_or(0);
            let mut count = |bytes: u64| {
                // Bytes that were appended meanwhile are not in the total.
                let bytes = bytes.min(left);
                left -= bytes;
                if let Some(heard) = heard {
                    heard.heed(heard.meter.add(bytes), &self.plan.stop);
                }
            };
            let mut tell = |hit| match hits.send(hit) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            };
            self.plan.run(&mut desk, copies, &mut count, &mut tell);
            if self.plan.stop.load(Ordering::Relaxed) {
                return;
            }
            count(u64::MAX);
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(heard) = heard.filter(|_| done == self.jobs.len()) {
                heard.meter.end();
            }
        }
    }

    fn take(&self) -> Option<SessionToSearch<'_>> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.plan.stop.load(Ordering::Relaxed) {
            return None;
        }
        let nth = turn.next;
        let copies = self.jobs.get(nth)?;
        turn.next += 1;
        let (hits, receiver) = sync_channel(HITS_AHEAD);
        turn.announce.send(receiver).ok()?;
        Some(SessionToSearch { nth, copies, hits })
    }
}

impl ProgressObserver {
    /// Stops the search if that is wished.
    fn heed(&self, wish: ControlFlow<()>, stop: &AtomicBool) {
        if wish.is_break() && !stop.swap(true, Ordering::Relaxed) {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
    }
}

/// Groups the copies of each session, in the order of the newest ones.
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
