//! The task that keeps a pool filled.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use super::process_memory::resident;
use super::{GUESS, PoolInner, PoolLimits, PoolState};
use crate::deadline::after;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::spare::Spare;

/// How often the spares' memory is measured.
const MEASURE: Duration = Duration::from_secs(30);

/// Ends when a spare does.
type SpareEnd = Pin<Box<dyn Future<Output = Error> + Send>>;

/// Keeps the pool filled for as long as there is one. `_ended` tells those who wait that this is over.
pub(super) async fn keep(pool: Weak<PoolInner>, wake: Arc<Notify>, _ended: watch::Sender<()>) {
    let mut starts: JoinSet<Result<Spare>> = JoinSet::new();
    let mut started_for: HashMap<Id, usize> = HashMap::new();
    loop {
        let Tended {
            start,
            mut ends,
            next,
        } = {
            let Some(shared) = pool.upgrade() else { return };
            let mut state = shared.state();
            if state.closed {
                return;
            }
            tend(&mut state, &shared.limits)
        };
        for (index, options) in start {
            let task = starts.spawn(Options::clone(&options).prewarm());
            started_for.insert(task.id(), index);
        }
        tokio::select! {
            () = wake.notified() => {}
            () = any(&mut ends) => {}
            () = sleep_until(next) => {}
            Some(done) = starts.join_next_with_id() => {
                let (id, outcome) = match done {
                    Ok((id, outcome)) => (id, outcome),
                    // The transport is the program's own.
                    Err(error) => (error.id(), Err(Error::invalid_because("transport: it panicked", error))),
                };
                let (Some(shared), Some(index)) = (pool.upgrade(), started_for.remove(&id)) else {
                    return;
                };
                settle(&mut shared.state(), &shared.limits, index, outcome);
            }
        }
    }
}

/// What is to be done next.
struct Tended {
    start: Vec<(usize, Arc<Options>)>,
    ends: Vec<SpareEnd>,
    next: Option<Instant>,
}

fn settle(state: &mut PoolState, limits: &PoolLimits, index: usize, outcome: Result<Spare>) {
    let closed = state.closed;
    let Some(shelf) = state.shelves.get_mut(index) else {
        return;
    };
    shelf.starting = false;
    match outcome {
        // Dropped, which ends it.
        Ok(_) if closed => {}
        Ok(spare) => shelf.spares.push_back(spare),
        Err(error) => {
            shelf.failed(error, limits);
            state.stats.failed += 1;
        }
    }
}

/// Lets go what is dead, old or too much, and finds what is missing. Dropping a spare ends it in the background.
fn tend(state: &mut PoolState, limits: &PoolLimits) -> Tended {
    let now = Instant::now();
    for shelf in &mut state.shelves {
        let stats = &mut state.stats;
        let mut died = None;
        shelf.spares.retain(|spare| {
            if !spare.is_alive() {
                stats.died += 1;
                died = Some(spare.end_error());
                false
            } else if spare.age() >= limits.max_age {
                stats.expired += 1;
                false
            } else {
                true
            }
        });
        // One that lives shows that it can be done.
        if shelf.spares.iter().any(|spare| spare.age() >= limits.max_backoff) {
            shelf.failures = 0;
        }
        if let Some(error) = died {
            shelf.failed(error, limits);
        }
    }
    evict(state, limits);

    let mut start = Vec::new();
    let each = state.largest.unwrap_or(GUESS);
    loop {
        let starting = state.shelves.iter().filter(|shelf| shelf.starting).count();
        let ready: usize = state.shelves.iter().map(|shelf| shelf.spares.len()).sum();
        let memory = state.stats.memory + each.saturating_mul(starting as u64 + 1);
        if starting + ready >= limits.spares || memory > limits.memory {
            break;
        }
        let may = |shelf: &&mut super::Shelf| {
            !shelf.starting
                && shelf.spares.len() < shelf.wanted
                && shelf.not_before.is_none_or(|at| at <= now)
        };
        let shelves = state.shelves.iter_mut().enumerate();
        let hungriest = shelves
            .filter(|(_, shelf)| may(shelf))
            .min_by_key(|(_, shelf)| shelf.spares.len());
        let Some((index, shelf)) = hungriest else { break };
        shelf.starting = true;
        start.push((index, Arc::clone(&shelf.base)));
    }

    let spares = || state.shelves.iter().flat_map(|shelf| &shelf.spares);
    let retries = state
        .shelves
        .iter()
        .filter(|shelf| !shelf.starting && shelf.spares.len() < shelf.wanted)
        .filter_map(|shelf| shelf.not_before.filter(|at| *at > now));
    let expiries = spares().map(|spare| after(limits.max_age.saturating_sub(spare.age())));
    let measure = spares().next().map(|_| now + MEASURE);
    Tended {
        start,
        ends: spares()
            .map(|spare| Box::pin(spare.wait_ended()) as SpareEnd)
            .collect(),
        next: retries.chain(expiries).chain(measure).min(),
    }
}

/// Measures the spares, and lets some go when they take too much, from where there are the most.
fn evict(state: &mut PoolState, limits: &PoolLimits) {
    loop {
        let mut memory = 0_u64;
        for spare in state.shelves.iter().flat_map(|shelf| &shelf.spares) {
            let measured = spare.pid().and_then(resident);
            state.largest = state.largest.max(measured);
            memory = memory.saturating_add(measured.unwrap_or(GUESS));
        }
        state.stats.memory = memory;
        let fullest = state.shelves.iter_mut().max_by_key(|shelf| shelf.spares.len());
        let Some(shelf) = fullest.filter(|_| memory > limits.memory) else {
            return;
        };
        if shelf.spares.pop_front().is_none() {
            return;
        }
        state.stats.evicted += 1;
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Waits until one of the spares ends.
async fn any(ends: &mut [SpareEnd]) {
    std::future::poll_fn(|cx| {
        if ends.iter_mut().any(|end| end.as_mut().poll(cx).is_ready()) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
