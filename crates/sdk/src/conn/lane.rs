//! A queue of frames with a bound in bytes, for one consumer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use outrigger_protocol::Frame;

use crate::outcome::Outcome;

/// Frames that a consumer did not get because it was too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Lag {
    /// How many frames were left out.
    pub frames: u64,
    /// How many bytes they had.
    pub bytes: u64,
}

impl std::fmt::Display for Lag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} frames of {} bytes were missed, since they were not read in time",
            self.frames, self.bytes
        )
    }
}

impl std::error::Error for Lag {}

/// What becomes of frames that do not fit into the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// Stream events are left out, since the finished messages repeat them; everything else is kept.
    LeaveOutPartials,
    /// The newest frames are left out.
    LeaveOutNewest,
}

/// One element of a lane.
#[derive(Debug)]
pub(crate) enum Item {
    Frame(Frame),
    /// Frames were left out here.
    Lag(Lag),
    /// A turn that belongs to nobody ended.
    Outcome(Outcome),
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Item>,
    bytes: usize,
    closed: bool,
    abandoned: bool,
    waker: Option<Waker>,
}

/// The producing end. Pushing never waits.
#[derive(Debug, Clone)]
pub(crate) struct LaneIn {
    state: Arc<Mutex<State>>,
    cap: usize,
    overflow: Overflow,
}

/// The consuming end.
#[derive(Debug)]
pub(crate) struct LaneOut {
    state: Arc<Mutex<State>>,
}

pub(crate) fn lane(cap: usize, overflow: Overflow) -> (LaneIn, LaneOut) {
    let state = Arc::new(Mutex::new(State {
        queue: VecDeque::new(),
        bytes: 0,
        closed: false,
        abandoned: false,
        waker: None,
    }));
    (
        LaneIn {
            state: Arc::clone(&state),
            cap,
            overflow,
        },
        LaneOut { state },
    )
}

/// What a frame holds in memory, in bytes: its line, and what is kept about it.
fn held_by(frame: &Frame) -> usize {
    const ABOUT_IT: usize = 512;
    frame.bytes().len() + ABOUT_IT
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing panics while the lock is held, and the state is valid after every line.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LaneIn {
    /// Adds a frame; `false` when nobody will ever take it.
    pub(crate) fn push(&self, frame: &Frame) -> bool {
        let mut state = lock(&self.state);
        if state.abandoned || state.closed {
            return false;
        }
        let size = held_by(frame);
        let over = state.bytes + size > self.cap;
        let spare = match self.overflow {
            Overflow::LeaveOutPartials => frame.kind() != "stream_event",
            Overflow::LeaveOutNewest => false,
        };
        if over && !spare {
            if let Some(Item::Lag(lag)) = state.queue.back_mut() {
                lag.frames += 1;
                lag.bytes += size as u64;
            } else {
                state.queue.push_back(Item::Lag(Lag {
                    frames: 1,
                    bytes: size as u64,
                }));
            }
        } else {
            state.bytes += size;
            state.queue.push_back(Item::Frame(frame.clone()));
        }
        if let Some(waker) = state.waker.take() {
            drop(state);
            waker.wake();
        }
        true
    }

    /// Adds the outcome of an ambient turn, which is small and comes once a turn.
    pub(crate) fn push_outcome(&self, outcome: &Outcome) {
        let mut state = lock(&self.state);
        if state.abandoned || state.closed {
            return;
        }
        state.queue.push_back(Item::Outcome(outcome.clone()));
        if let Some(waker) = state.waker.take() {
            drop(state);
            waker.wake();
        }
    }

    /// Says that nothing more will come.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        if let Some(waker) = state.waker.take() {
            drop(state);
            waker.wake();
        }
    }

    /// Bytes that wait to be taken.
    pub(crate) fn held(&self) -> usize {
        lock(&self.state).bytes
    }
}

impl LaneOut {
    /// The next element; `None` after the end.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut state = lock(&self.state);
        match state.queue.pop_front() {
            Some(item) => {
                if let Item::Frame(frame) = &item {
                    state.bytes -= held_by(frame);
                }
                Poll::Ready(Some(item))
            }
            None if state.closed => Poll::Ready(None),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Gives up the rest: what waits is let go, and what comes is not kept.
    pub(crate) fn abandon(&mut self) {
        let mut state = lock(&self.state);
        state.abandoned = true;
        state.queue = VecDeque::new();
        state.bytes = 0;
    }
}

impl Drop for LaneOut {
    fn drop(&mut self) {
        self.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Frame {
        Frame::from_line(text.as_bytes()).remove(0)
    }

    fn drain(out: &mut LaneOut) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut seen = Vec::new();
        while let Poll::Ready(Some(item)) = out.poll_next(&mut cx) {
            seen.push(match item {
                Item::Frame(frame) => frame.kind().to_owned(),
                Item::Lag(lag) => format!("lag {}", lag.frames),
                Item::Outcome(outcome) => outcome.verdict().to_string(),
            });
        }
        seen
    }

    #[test]
    fn a_full_lane_leaves_out_partials_and_says_so_in_place() {
        let (tx, mut rx) = lane(600, Overflow::LeaveOutPartials);
        for text in [
            r#"{"type":"user","a":"0123456789012345678901234567"}"#,
            r#"{"type":"stream_event"}"#,
            r#"{"type":"stream_event"}"#,
            r#"{"type":"result"}"#,
        ] {
            assert!(tx.push(&frame(text)));
        }
        tx.close();
        assert_eq!(drain(&mut rx), ["user", "lag 2", "result"]);
        assert_eq!(tx.held(), 0);
    }

    #[test]
    fn an_abandoned_lane_holds_nothing() {
        let (tx, mut rx) = lane(600, Overflow::LeaveOutNewest);
        assert!(tx.push(&frame(r#"{"type":"user"}"#)));
        rx.abandon();
        assert!(!tx.push(&frame(r#"{"type":"user"}"#)));
        assert_eq!(tx.held(), 0);
    }
}
