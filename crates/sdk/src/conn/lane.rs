//! A queue of frames for one reader, within the memory that all readers of a session share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use outrigger_protocol::Frame;

use super::budget::{Budget, SlowReader};
use super::spill::Spill;
use crate::event::Lag;
use crate::outcome::Outcome;

/// An element of a lane.
#[derive(Debug)]
pub(crate) enum LaneItem {
    Frame(Frame),
    /// Frames were dropped here.
    Lag(Lag),
    /// An ambient turn ended.
    Outcome(Outcome),
}

/// How many outcomes of ambient turns wait for one reader; more are dropped like frames.
const MAX_OUTCOMES: usize = 1024;

#[derive(Debug, Default)]
struct LaneState {
    /// The next elements, in memory.
    queue: VecDeque<LaneItem>,
    /// The elements behind those in memory, on disk.
    spill: Option<Spill>,
    /// Bytes of the frames in `spill`, as taken from the budget.
    spilled: u64,
    outcomes: usize,
    closed: bool,
    abandoned: bool,
    waker: Option<Waker>,
}

/// The producing end. Pushing never waits for the reader.
#[derive(Debug)]
pub(crate) struct LaneIn {
    /// The frames since the last [`flush`](Self::flush).
    given: Vec<Frame>,
    is_dead: bool,
    state: Arc<Mutex<LaneState>>,
    budget: Arc<Budget>,
}

/// The consuming end.
#[derive(Debug)]
pub(crate) struct LaneOut {
    /// The elements that were taken from memory under one lock. They count as waiting.
    taken: VecDeque<LaneItem>,
    state: Arc<Mutex<LaneState>>,
    budget: Arc<Budget>,
}

pub(crate) fn lane(budget: &Arc<Budget>) -> (LaneIn, LaneOut) {
    let state = Arc::<Mutex<LaneState>>::default();
    let budget = Arc::clone(budget);
    (
        LaneIn {
            given: Vec::new(),
            is_dead: false,
            state: Arc::clone(&state),
            budget: Arc::clone(&budget),
        },
        LaneOut {
            taken: VecDeque::new(),
            state,
            budget,
        },
    )
}

/// The memory of a frame, in bytes: its line and its overhead.
fn held_by(frame: &Frame) -> usize {
    const ABOUT_IT: usize = 512;
    frame.bytes().len() + ABOUT_IT
}

fn lock(state: &Mutex<LaneState>) -> MutexGuard<'_, LaneState> {
    // Nothing panics while the lock is held, and the state is valid after every line.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LaneState {
    /// Adds all frames at once if there is room for all. Returns whether there was.
    fn push_all(&mut self, frames: &mut Vec<Frame>, budget: &Budget) -> bool {
        let size = frames.iter().map(held_by).sum();
        if self.spill.is_some() || !budget.take(size, true) {
            return false;
        }
        budget.waits(frames.len() as u64);
        self.queue.extend(frames.drain(..).map(LaneItem::Frame));
        true
    }

    fn push(&mut self, frame: &Frame, budget: &Budget) {
        let size = held_by(frame);
        // Frames after those on disk have to go there, too, or they would overtake them.
        if self.spill.is_none() && budget.take(size, frame.kind() == "stream_event") {
            self.queue.push_back(LaneItem::Frame(frame.clone()));
        } else if !self.spill(frame, budget) {
            self.leave_out(
                Lag {
                    frames: 1,
                    bytes: frame.bytes().len() as u64,
                },
                budget,
            );
            return;
        }
        budget.waits(1);
    }

    fn spill(&mut self, frame: &Frame, budget: &Budget) -> bool {
        let SlowReader::Spill { dir, .. } = &budget.overflow else {
            return false;
        };
        let size = Spill::size_of(frame);
        if !budget.take_disk(size) {
            return false;
        }
        let spill = self.spill.get_or_insert_with(Spill::new);
        if let Err(error) = spill.push(frame, dir.as_deref()) {
            tracing::warn!(%error, "frames for a slow reader can't be kept on disk");
            budget.give_disk(size);
            return false;
        }
        self.spilled += size;
        true
    }

    /// Adds a mark for dropped frames.
    fn leave_out(&mut self, lag: Lag, budget: &Budget) {
        budget.leave_out(lag);
        let last = match &mut self.spill {
            Some(spill) => spill.last_aside(),
            None => self.queue.back_mut(),
        };
        if let Some(LaneItem::Lag(last)) = last {
            last.frames += lag.frames;
            last.bytes += lag.bytes;
        } else {
            self.push_aside(LaneItem::Lag(lag));
        }
    }

    fn push_aside(&mut self, item: LaneItem) {
        match &mut self.spill {
            Some(spill) => spill.push_aside(item),
            None => self.queue.push_back(item),
        }
    }

    /// Reads the next frames back from disk, some hundred KiB at once.
    fn refill(&mut self, budget: &Budget) {
        let Some(spill) = &mut self.spill else { return };
        let before = spill.frames;
        let items = match spill.pop_batch() {
            Ok(items) => items,
            Err(error) => {
                tracing::warn!(%error, "frames for a slow reader can't be read back from disk");
                let missed = Lag {
                    frames: spill.frames,
                    bytes: self.spilled,
                };
                budget.leave_out(missed);
                budget.waits_no_more(before);
                // Elements in memory lose their position among the frames.
                self.queue.push_back(LaneItem::Lag(missed));
                self.queue.extend(spill.take_asides());
                self.let_disk_go(budget);
                return;
            }
        };
        budget.waits_no_more(before - spill.frames);
        let (left, is_empty) = (spill.bytes, spill.is_empty() || items.is_empty());
        budget.give_disk(self.spilled - left);
        self.spilled = left;
        for item in items {
            if let LaneItem::Frame(frame) = &item {
                let size = held_by(frame);
                budget.take_back(size);
                budget.waits(1);
            }
            self.queue.push_back(item);
        }
        if is_empty {
            self.let_disk_go(budget);
        }
    }

    fn let_disk_go(&mut self, budget: &Budget) {
        self.spill = None;
        budget.give_disk(std::mem::take(&mut self.spilled));
    }

    /// Moves all elements in memory into `taken`, which is empty.
    fn take(&mut self, taken: &mut VecDeque<LaneItem>, budget: &Budget) {
        if self.queue.is_empty() {
            self.refill(budget);
        }
        std::mem::swap(&mut self.queue, taken);
    }

    fn clear(&mut self, budget: &Budget) {
        let on_disk = self.spill.as_ref().map_or(0, |spill| spill.frames);
        budget.waits_no_more(on_disk);
        let_go(std::mem::take(&mut self.queue), budget);
        self.outcomes = 0;
        self.let_disk_go(budget);
    }
}

/// Returns the room of elements that will not be read.
fn let_go(items: VecDeque<LaneItem>, budget: &Budget) {
    for item in items {
        if let LaneItem::Frame(frame) = item {
            budget.give(held_by(&frame));
            budget.waits_no_more(1);
        }
    }
}

fn wake(mut state: MutexGuard<'_, LaneState>) {
    if let Some(waker) = state.waker.take() {
        drop(state);
        waker.wake();
    }
}

impl LaneIn {
    /// Adds a frame that the reader gets with the next [`flush`](Self::flush), so that it wakes once for many; `false` if the
    /// reader is gone.
    pub(crate) fn give(&mut self, frame: Frame) -> bool {
        if !self.is_dead {
            self.given.push(frame);
        }
        !self.is_dead
    }

    /// Delivers the added frames.
    pub(crate) fn flush(&mut self) {
        if !self.given.is_empty() {
            self.with(|_, _| {});
        }
    }

    /// Adds a frame; `false` if the reader is gone.
    #[cfg(test)]
    pub(crate) fn push(&mut self, frame: &Frame) -> bool {
        self.give(frame.clone());
        self.flush();
        !self.is_dead
    }

    /// Adds the outcome of an ambient turn.
    pub(crate) fn push_outcome(&mut self, outcome: &Outcome) {
        self.with(|state, budget| {
            if state.outcomes < MAX_OUTCOMES {
                state.outcomes += 1;
                state.push_aside(LaneItem::Outcome(outcome.clone()));
            } else {
                state.leave_out(Lag { frames: 1, bytes: 0 }, budget);
            }
        });
    }

    /// Ends the lane.
    pub(crate) fn close(&mut self) {
        self.with(|state, _| state.closed = true);
        self.is_dead = true;
    }

    /// Delivers the added frames, then runs `f`, and wakes the reader.
    fn with(&mut self, then: impl FnOnce(&mut LaneState, &Budget)) {
        let mut state = lock(&self.state);
        if state.abandoned || state.closed {
            self.is_dead = true;
            self.given = Vec::new();
            return;
        }
        if !state.push_all(&mut self.given, &self.budget) {
            for frame in self.given.drain(..) {
                state.push(&frame, &self.budget);
            }
        }
        then(&mut state, &self.budget);
        wake(state);
    }
}

impl LaneOut {
    /// The next element; `None` after the end. It may read from disk.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<LaneItem>> {
        if self.taken.is_empty() {
            let mut state = lock(&self.state);
            state.take(&mut self.taken, &self.budget);
            // A lane without a reader gets nothing, not even its end.
            if self.taken.is_empty() && !state.closed && !state.abandoned {
                state.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        let item = self.taken.pop_front();
        match &item {
            Some(LaneItem::Frame(frame)) => {
                self.budget.give(held_by(frame));
                self.budget.waits_no_more(1);
            }
            Some(LaneItem::Outcome(_)) => lock(&self.state).outcomes -= 1,
            Some(LaneItem::Lag(_)) | None => {}
        }
        Poll::Ready(item)
    }

    /// Drops the rest: the waiting elements, and all that come.
    pub(crate) fn abandon(&mut self) {
        let mut state = lock(&self.state);
        state.abandoned = true;
        state.clear(&self.budget);
        drop(state);
        let_go(std::mem::take(&mut self.taken), &self.budget);
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

    fn numbered(number: usize) -> Frame {
        frame(&format!(r#"{{"type":"user","session_id":"{number}"}}"#))
    }

    fn drain(out: &mut LaneOut) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut seen = Vec::new();
        while let Poll::Ready(Some(item)) = out.poll_next(&mut cx) {
            seen.push(match item {
                LaneItem::Frame(frame) => frame.session_id().unwrap_or(frame.kind()).to_owned(),
                LaneItem::Lag(lag) => format!("lag {}", lag.frames),
                LaneItem::Outcome(outcome) => outcome.verdict().to_string(),
            });
        }
        seen
    }

    fn budget(cap: usize, overflow: SlowReader) -> Arc<Budget> {
        Arc::new(Budget::new(cap, overflow))
    }

    #[test]
    fn what_does_not_fit_goes_over_the_disk_and_keeps_its_order() {
        let budget = budget(2_000, SlowReader::spill());
        let (mut tx, mut rx) = lane(&budget);
        let mut seen = Vec::new();
        for number in 0..1_000 {
            assert!(tx.push(&numbered(number)));
            assert!(budget.held() <= 2_000);
            if number == 500 {
                // One frame is read: later ones must still go behind those on disk.
                let mut cx = Context::from_waker(Waker::noop());
                assert!(matches!(
                    rx.poll_next(&mut cx),
                    Poll::Ready(Some(LaneItem::Frame(_)))
                ));
                seen.push("0".to_owned());
            }
        }
        assert!(budget.spilled() > 900 * 24);
        assert_eq!(budget.waiting(), 999);
        tx.close();
        seen.extend(drain(&mut rx));
        assert_eq!(
            seen,
            (0..1_000).map(|number| number.to_string()).collect::<Vec<_>>()
        );
        assert_eq!((budget.held(), budget.spilled(), budget.waiting()), (0, 0, 0));
        assert_eq!(budget.left_out(), Lag::default());
    }

    #[test]
    fn a_full_disk_is_told_in_place() {
        let limit = 10 * Spill::size_of(&numbered(10));
        let budget = budget(0, SlowReader::Spill { dir: None, limit });
        let (mut tx, mut rx) = lane(&budget);
        for number in 10..25 {
            assert!(tx.push(&numbered(number)));
        }
        assert_eq!(budget.left_out().frames, 5);
        let mut expected: Vec<_> = (10..20).map(|number| number.to_string()).collect();
        expected.push("lag 5".to_owned());
        tx.close();
        assert_eq!(drain(&mut rx), expected);
        assert_eq!((budget.held(), budget.spilled()), (0, 0));
    }

    #[test]
    fn without_a_place_to_spill_it_is_told_in_place() {
        let dir = Some("/nonexistent/directory".into());
        let budget = budget(600, SlowReader::Spill { dir, limit: 1 << 20 });
        let (mut tx, mut rx) = lane(&budget);
        for number in 0..3 {
            assert!(tx.push(&numbered(number)));
        }
        assert_eq!(drain(&mut rx), ["0", "lag 2"]);
        assert_eq!((budget.held(), budget.spilled()), (0, 0));
        assert!(tx.push(&numbered(9)));
        assert_eq!(drain(&mut rx), ["9"]);
    }

    #[test]
    fn partials_are_left_out_first() {
        let budget = budget(2_000, SlowReader::LeaveOut);
        let (mut tx, mut rx) = lane(&budget);
        for text in [
            r#"{"type":"user"}"#,
            r#"{"type":"stream_event"}"#,
            r#"{"type":"stream_event"}"#,
            r#"{"type":"assistant"}"#,
            r#"{"type":"result"}"#,
            r#"{"type":"user"}"#,
        ] {
            assert!(tx.push(&frame(text)));
        }
        tx.close();
        assert_eq!(drain(&mut rx), ["user", "lag 2", "assistant", "result", "lag 1"]);
        assert_eq!(budget.held(), 0);
        assert_eq!(budget.left_out().frames, 3);
    }

    #[test]
    fn an_abandoned_lane_holds_nothing() {
        let budget = budget(600, SlowReader::spill());
        let (mut tx, mut rx) = lane(&budget);
        for number in 0..3 {
            assert!(tx.push(&numbered(number)));
        }
        assert!(budget.held() > 0 && budget.spilled() > 0);
        rx.abandon();
        assert!(!tx.push(&numbered(4)));
        assert_eq!((budget.held(), budget.spilled(), budget.waiting()), (0, 0, 0));
    }
}
