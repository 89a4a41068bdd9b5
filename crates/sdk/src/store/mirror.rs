//! From the CLI's `transcript_mirror` frames to the store.
//!
//! The driver offers frames and never waits; a task decodes them, makes batches and appends them. The task is a cursor: it retries
//! a batch until the store has accepted it, so that nothing is ever appended after a gap. Frames beyond the memory limit wait on
//! disk. A turn's outcome waits until the task has reached it, or the store counts as behind.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outrigger_protocol::inbound::TranscriptMirror;
use outrigger_protocol::{Frame, RawJson};
use outrigger_sessions::store::{SessionKey, SessionStore};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::backoff::Backoff;
use super::transcripts::Places;
use crate::conn::Conn;
use crate::conn::attachments::{Counts, Mirroring};
use crate::conn::budget::{Budget, SlowReader};
use crate::conn::lane::{LaneIn, LaneItem, LaneOut, lane};
use crate::event::Lag;
use crate::lease::Ownership;
use crate::peer::BoxFuture;
use crate::stats::StoreLag;
use crate::store_config::{Keeping, StoreFailure, StoreFlush, call};

/// How much may wait before it is appended in the middle of a turn.
const MAX_ENTRIES: usize = 500;
const MAX_BYTES: usize = 1 << 20;

/// How long an append may take before it counts as failed.
const APPEND: Duration = Duration::from_secs(60);

/// How long the task may take to stop, which takes no time unless its runtime is blocked.
const STOP: Duration = Duration::from_secs(1);

/// The handle of a session's connection.
pub(crate) struct Mirror {
    store: Arc<dyn SessionStore>,
    flush: StoreFlush,
    /// How long a turn's outcome is held back.
    patience: Duration,
    /// How long the end of the session is held back.
    grace: Duration,
    places: Places,
    /// The lease for appends, if there is one.
    ownership: Option<Arc<Ownership>>,
    /// Whether the store has everything; shared with the private directory, which is removed then.
    settled: Arc<AtomicBool>,
    /// The waiting frames.
    budget: Arc<Budget>,
    waiting: Mutex<Option<LaneOut>>,
    /// Messages from before the start, emitted with the first frame, when there are readers.
    notes: Mutex<Vec<(SessionKey, String)>>,
    state: Mutex<MirrorQueue>,
    /// Woken when there is something to do.
    wake: Notify,
    /// Woken when the mirror has to stop.
    stop: Notify,
    /// Woken when something begins to wait.
    late: Notify,
    done: watch::Sender<MirrorProgress>,
}

impl std::fmt::Debug for Mirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mirror")
    }
}

#[derive(Debug)]
struct MirrorQueue {
    lane: LaneIn,
    /// The number of frames so far.
    offered: u64,
    /// The number of frames to append without waiting for more.
    wanted: u64,
    closed: bool,
    /// Bytes of batches that are not accepted yet.
    held: usize,
    /// Since when requested frames wait.
    since: Option<(Instant, SystemTime)>,
    /// The error of the store.
    error: Option<String>,
    entries: u64,
    errors: u64,
    /// Whether some entries are lost for the store.
    lost: bool,
}

/// How far the task has come.
#[derive(Debug, Clone, Copy, Default)]
struct MirrorProgress {
    up_to: u64,
    /// Whether the store counts as behind.
    behind: bool,
    over: bool,
}

impl Mirror {
    /// Holds up to `room` bytes in memory and the rest as `overflow` says, as far as that names a place on disk.
    pub(crate) fn new(
        keeping: &Keeping,
        places: Places,
        (room, overflow): (usize, &SlowReader),
        ownership: Option<&Arc<Ownership>>,
        settled: Arc<AtomicBool>,
        notes: Vec<(SessionKey, String)>,
    ) -> Arc<Self> {
        // Nothing of a conversation may be left out, whatever readers put up with.
        let overflow = match overflow {
            SlowReader::Spill { .. } => overflow.clone(),
            SlowReader::LeaveOut => SlowReader::spill(),
        };
        let budget = Arc::new(Budget::new(room, overflow));
        let (lane, waiting) = lane(&budget);
        Arc::new(Self {
            store: Arc::clone(&keeping.store),
            flush: keeping.flush,
            patience: keeping.patience,
            grace: keeping.grace,
            places,
            ownership: ownership.filter(|own| own.is_in_store()).cloned(),
            settled,
            budget,
            waiting: Mutex::new(Some(waiting)),
            notes: Mutex::new(notes),
            state: Mutex::new(MirrorQueue {
                lane,
                offered: 0,
                wanted: 0,
                closed: false,
                held: 0,
                since: None,
                error: None,
                entries: 0,
                errors: 0,
                lost: false,
            }),
            wake: Notify::new(),
            stop: Notify::new(),
            late: Notify::new(),
            done: watch::channel(MirrorProgress::default()).0,
        })
    }

    fn state(&self) -> MutexGuard<'_, MirrorQueue> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn work(&self, conn: &Arc<Conn>, mut waiting: LaneOut) {
        let mut work = MirrorState::default();
        loop {
            let full = work.portion.is_full();
            let take = !(work.ended || full || self.is_eager() && work.is_due_at_once());
            tokio::select! {
                biased;
                item = std::future::poll_fn(|cx| waiting.poll_next(cx)), if take => self.take(conn, &mut work, item),
                () = self.wake.notified() => {}
                () = sleep_until(work.retry.unwrap_or_else(Instant::now)), if work.retry.is_some() => work.retry = None,
                // It is due: below.
                () = std::future::ready(()), if !take && work.retry.is_none() => {}
            }
            let (wanted, closed) = {
                let state = self.state();
                (state.wanted, state.closed)
            };
            if closed && !work.is_ending {
                // It may be back by now, and somebody waits.
                work.is_ending = true;
                work.retry = None;
            }
            let is_wanted = work.read >= wanted && wanted > self.done.borrow().up_to;
            let is_due = self.is_eager() || work.portion.is_full() || is_wanted || work.ended;
            if is_due && work.retry.is_none() && !work.portion.is_empty() {
                self.append(conn, &mut work).await;
            }
            if work.portion.is_empty() {
                self.caught_up(conn, &work);
                if work.ended {
                    return;
                }
            }
        }
    }

    fn is_eager(&self) -> bool {
        self.flush == StoreFlush::Eager
    }

    fn take(&self, conn: &Arc<Conn>, work: &mut MirrorState, item: Option<LaneItem>) {
        match item {
            None => work.ended = true,
            Some(LaneItem::Outcome(_)) => {}
            Some(LaneItem::Lag(Lag { frames, bytes })) => {
                work.read += frames;
                let what = format!(
                    "{frames} lines of the CLI ({bytes} bytes) found no room while the session store was away, neither in memory nor on \
                     disk"
                );
                self.tear(conn, work, &what);
            }
            Some(LaneItem::Frame(frame)) => {
                work.read += 1;
                let notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
                for (key, note) in notes {
                    self.report_missing(conn, &key, &note);
                }
                if !work.torn {
                    self.add(conn, work, &frame);
                }
            }
        }
    }

    /// A frame is missing, so nothing may be appended after it. The transcripts have it, and stay.
    fn tear(&self, conn: &Arc<Conn>, work: &mut MirrorState, what: &str) {
        work.torn = true;
        let what = format!(
            "{what}: nothing more is stored of this session until it goes on from this machine, or is brought by \
             `outrigger sessions push`"
        );
        let mut state = self.state();
        state.begin_to_wait();
        state.error = Some(what.clone());
        drop(state);
        self.late.notify_one();
        self.lose(conn, &SessionKey::new("", ""), &what);
    }

    fn add(&self, conn: &Arc<Conn>, work: &mut MirrorState, frame: &Frame) {
        let mirrored: TranscriptMirror = match frame.decode_as() {
            Ok(mirrored) => mirrored,
            // It does not fit its type, or was too long to be kept.
            Err(why) => {
                let what = format!(
                    "what may be a report of the CLI on its transcript (`transcript_mirror`) can't be read: {why}"
                );
                return self.tear(conn, work, &what);
            }
        };
        if mirrored.entries.is_empty() {
            return;
        }
        let Some(key) = self.places.key(&mirrored.file_path) else {
            let what = format!(
                "{} is not a transcript below {}: the CLI keeps its sessions elsewhere than was expected",
                mirrored.file_path, self.places
            );
            return self.lose(conn, &SessionKey::new("", ""), &what);
        };
        if work.given_up.contains(&key) || work.given_up.contains(&key.main()) {
            return;
        }
        let size = frame.bytes().len();
        work.portion.add(key, mirrored.entries, size);
        self.state().held += size;
    }

    /// Appends the batches. A failed batch stays; one that is rejected for good is dropped, and nothing more of its transcript is appended.
    async fn append(&self, conn: &Arc<Conn>, work: &mut MirrorState) {
        let is_new = self.state().begin_to_wait();
        if is_new {
            self.late.notify_one();
        }
        let mut failed = None;
        for mut part in std::mem::take(&mut work.portion.parts) {
            if work.given_up.contains(&part.key) {
                let mut state = self.state();
                state.held = state.held.saturating_sub(part.bytes);
                continue;
            }
            if work.portion.parts.iter().any(|before| before.key == part.key) {
                // What comes before it has failed.
                work.portion.parts.push(part);
                continue;
            }
            let Err(failure) = self.append_to(&part.key, Arc::clone(&part.entries)).await else {
                let mut state = self.state();
                state.entries += part.entries.len() as u64;
                state.held = state.held.saturating_sub(part.bytes);
                continue;
            };
            if failure.may_pass() {
                tracing::debug!(key = %part.key, error = failure.text(), "the session store did not take an append; it is tried again");
                failed = Some(failure.text());
                part.is_tried = true;
                work.portion.parts.push(part);
                continue;
            }
            self.lose(conn, &part.key, &failure.text());
            {
                let mut state = self.state();
                state.held = state.held.saturating_sub(part.bytes);
            }
            if !failure.is_refusal() {
                work.given_up.insert(part.key);
                continue;
            }
            work.given_up.insert(part.key.main());
            if let Some(own) = &self.ownership {
                own.refused(conn, &part.key).await;
            }
        }
        work.retry = match &failed {
            Some(_) => Instant::now().checked_add(work.backoff.pause(work.is_ending)),
            None => {
                work.backoff.reset();
                None
            }
        };
        if failed.is_some() {
            self.state().error = failed;
        }
    }

    async fn append_to(&self, key: &SessionKey, entries: Arc<Vec<RawJson>>) -> Result<(), StoreFailure> {
        match &self.ownership {
            Some(own) => own.append(APPEND, &self.store, key, entries).await,
            None => {
                let (store, key) = (Arc::clone(&self.store), key.clone());
                call(APPEND, async move { store.append(&key, &entries).await }).await
            }
        }
    }

    /// Nothing is in hand.
    fn caught_up(&self, conn: &Arc<Conn>, work: &MirrorState) {
        if work.torn {
            return;
        }
        let up_to = work.read;
        let mut state = self.state();
        let is_all = up_to >= state.wanted;
        if is_all {
            state.since = None;
            state.error = None;
        }
        if up_to >= state.offered && !state.lost {
            self.settled.store(true, Ordering::Release);
        }
        drop(state);
        let was_behind = self.done.borrow().behind;
        if self.done.borrow().up_to != up_to || (is_all && was_behind) {
            self.done.send_modify(|done| {
                done.up_to = up_to;
                done.behind &= !is_all;
            });
        }
        if is_all && was_behind {
            tracing::info!("the session store has caught up");
            self.say(
                conn,
                json!({"subtype": "mirror_lag", "behind": false, "bytes": 0}),
            );
        }
    }

    /// Reports that the store is behind, once a frame has waited too long.
    async fn watch(&self, conn: &Arc<Conn>) {
        loop {
            let since = self.state().since.filter(|_| !self.done.borrow().behind);
            let Some(until) = since.and_then(|(since, _)| since.checked_add(self.patience)) else {
                self.late.notified().await;
                continue;
            };
            tokio::select! {
                () = sleep_until(until) => {}
                () = self.late.notified() => continue,
            }
            if self.state().since.map(|(since, _)| since) == since.map(|(since, _)| since) {
                self.done.send_modify(|done| done.behind = true);
                let Some(lag) = self.counts().lag else { continue };
                tracing::warn!(
                    bytes = lag.bytes,
                    error = lag.error,
                    "the session store is behind"
                );
                let since = lag
                    .since
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
                    .as_millis();
                let since = u64::try_from(since).unwrap_or(u64::MAX);
                let mut said =
                    json!({"subtype": "mirror_lag", "behind": true, "bytes": lag.bytes, "since": since});
                if let Some(error) = lag.error {
                    said["error"] = Value::from(error);
                }
                self.say(conn, said);
            }
        }
    }

    /// Reports entries that will never arrive in the store.
    fn lose(&self, conn: &Arc<Conn>, key: &SessionKey, error: &str) {
        self.state().lost = true;
        self.report_missing(conn, key, error);
    }

    /// Reports entries that are not in the store.
    pub(crate) fn report_missing(&self, conn: &Arc<Conn>, key: &SessionKey, error: &str) {
        tracing::error!(%key, error, "not in the session store");
        self.state().errors += 1;
        let said =
            json!({"subtype": "mirror_error", "error": error, "key": key, "session_id": key.session_id});
        self.say(conn, said);
    }

    fn say(&self, conn: &Arc<Conn>, mut line: Value) {
        line["type"] = Value::from("system");
        line["uuid"] = Value::from(Uuid::new_v4().to_string());
        conn.emit_own(|session_id| {
            if line.get("session_id").is_none() {
                line["session_id"] = Value::from(session_id);
            }
            line.to_string()
        });
    }
}

impl Mirroring for Mirror {
    /// Takes reports, and what may have been one. Never waits for the store; for the disk, where the memory is full.
    fn offer(&self, frame: &Frame) {
        let mut state = self.state();
        // Under the lock, as where it becomes true: else a frame could come between the two, and go with its directory.
        self.settled.store(false, Ordering::Release);
        state.offered += 1;
        state.lane.give(frame.clone());
        state.lane.flush();
    }

    fn want(&self) {
        let mut state = self.state();
        state.wanted = state.offered;
        if self.done.borrow().up_to < state.wanted {
            state.begin_to_wait();
        }
        drop(state);
        self.late.notify_one();
        self.wake.notify_one();
    }

    fn is_flushed(&self) -> bool {
        let wanted = self.state().wanted;
        let done = *self.done.borrow();
        done.over || done.up_to >= wanted
    }

    fn is_told(&self) -> bool {
        self.done.borrow().behind || self.is_flushed()
    }

    fn finished(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let wanted = self.state().wanted;
            let mut done = self.done.subscribe();
            // The sender lives as long as `self`.
            let _ = done
                .wait_for(|done| done.over || done.behind || done.up_to >= wanted)
                .await;
        })
    }

    fn finish<'a>(&'a self, conn: &'a Arc<Conn>, cut_off: bool) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            {
                let mut state = self.state();
                state.closed = true;
                if cut_off {
                    state.lost = true;
                    self.settled.store(false, Ordering::Release);
                }
                state.lane.close();
            }
            self.wake.notify_one();
            let mut done = self.done.subscribe();
            let over = async { done.wait_for(|done| done.over).await.map(drop) };
            if tokio::time::timeout(self.grace, over).await.is_ok() {
                return;
            }
            self.stop.notify_one();
            let counts = self.counts();
            // It drops what it waits for, so that nothing is appended any more when the lease is given back.
            let _ = tokio::time::timeout(STOP, done.wait_for(|done| done.over)).await;
            let why = counts.lag.and_then(|lag| lag.error).unwrap_or_default();
            let what = format!(
                "the session store did not take the last {} bytes within {:?} of the end ({why}): they stay in the transcripts, and are \
                 brought when the session goes on from this machine, or by `outrigger sessions push`",
                counts.waiting_bytes, self.grace
            );
            self.report_missing(conn, &SessionKey::new("", ""), &what);
        })
    }

    fn run(self: Arc<Self>, conn: Arc<Conn>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let _over = Over(&self.done);
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(waiting) = waiting else { return };
            tokio::select! {
                () = self.work(&conn, waiting) => {}
                () = self.watch(&conn) => {}
                () = self.stop.notified() => {}
            }
        })
    }

    fn counts(&self) -> Counts {
        let state = self.state();
        let waiting_bytes = self
            .budget
            .held()
            .saturating_add(usize::try_from(self.budget.spilled()).unwrap_or(usize::MAX))
            .saturating_add(state.held);
        let is_behind = self.done.borrow().behind;
        let lag = state.since.filter(|_| is_behind || state.error.is_some());
        Counts {
            entries: state.entries,
            errors: state.errors,
            waiting_bytes,
            lag: lag.map(|(_, since)| StoreLag {
                since,
                bytes: waiting_bytes,
                is_behind,
                error: state.error.clone(),
            }),
        }
    }
}

impl MirrorQueue {
    /// Something is to be taken now; whether nothing was before.
    fn begin_to_wait(&mut self) -> bool {
        let is_new = self.since.is_none();
        self.since
            .get_or_insert_with(|| (Instant::now(), SystemTime::now()));
        is_new
    }
}

/// The state of the task.
#[derive(Debug, Default)]
struct MirrorState {
    portion: Portion,
    /// How many frames were read.
    read: u64,
    /// Whether no more frames come.
    ended: bool,
    /// Whether the end of the session waits.
    is_ending: bool,
    /// Whether frames are missing, so that nothing may be appended any more.
    torn: bool,
    /// The time of the next retry.
    retry: Option<Instant>,
    backoff: Backoff,
    /// Transcripts that somebody else has, or that the store will never take; as many as the session has at most.
    given_up: HashSet<SessionKey>,
}

impl MirrorState {
    fn is_due_at_once(&self) -> bool {
        !self.portion.is_empty() && self.retry.is_none()
    }
}

/// What is put together for one append to each transcript, or two: one that has failed, and what came since.
#[derive(Debug, Default)]
struct Portion {
    parts: Vec<PortionPart>,
}

#[derive(Debug)]
struct PortionPart {
    key: SessionKey,
    entries: Arc<Vec<RawJson>>,
    bytes: usize,
    /// Whether it was sent. It may have been done, so it is sent again as it was: more would be another append.
    is_tried: bool,
}

impl Portion {
    fn add(&mut self, key: SessionKey, entries: Vec<RawJson>, bytes: usize) {
        let open = |part: &&mut PortionPart| part.key == key && !part.is_tried;
        match self.parts.iter_mut().find(open) {
            Some(part) => {
                part.bytes += bytes;
                Arc::make_mut(&mut part.entries).extend(entries);
            }
            None => self.parts.push(PortionPart {
                key,
                entries: Arc::new(entries),
                bytes,
                is_tried: false,
            }),
        }
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    fn is_full(&self) -> bool {
        let entries: usize = self.parts.iter().map(|part| part.entries.len()).sum();
        let bytes: usize = self.parts.iter().map(|part| part.bytes).sum();
        entries > MAX_ENTRIES || bytes > MAX_BYTES
    }
}

/// Reports the end of the task, also after a panic.
struct Over<'a>(&'a watch::Sender<MirrorProgress>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|done| done.over = true);
    }
}
