//! From the CLI's `transcript_mirror` frames to the store.
//!
//! The router offers frames and never waits; a task of its own decodes them, puts them together and appends. Whoever waits for a
//! turn's outcome waits until that task has come so far.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_protocol::{Frame, Message, RawJson};
use outrigger_sessions::store::{SessionKey, SessionStore};
use serde_json::json;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::call::{Failure, call};
use super::{Keeping, StoreFlush};
use crate::conn::Conn;
use crate::lease::Ownership;
use crate::outcome::Fields;

/// What may wait before it is appended without a turn having ended.
const MAX_ENTRIES: usize = 500;
const MAX_BYTES: usize = 1 << 20;

/// How long an append may take. It is not tried again then, since it may still happen.
const APPEND: Duration = Duration::from_secs(60);

/// The pauses before an append that failed is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];

/// How long the end of a session waits for the store to take the rest.
const FINISH: Duration = Duration::from_secs(90);

/// What a session's connection keeps of it.
pub(crate) struct Mirror {
    store: Arc<dyn SessionStore>,
    flush: StoreFlush,
    places: Places,
    /// Under which what is appended is appended, if the store has leases and the session is claimed.
    ownership: Option<Arc<Ownership>>,
    /// The most bytes that may wait.
    room: usize,
    state: Mutex<State>,
    /// Woken when there is something to do.
    wake: Notify,
    /// Woken when it has to stop whatever it does.
    stop: Notify,
    done: watch::Sender<Done>,
}

impl std::fmt::Debug for Mirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mirror")
    }
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Frame>,
    /// Bytes that wait, here or in the portion that is being appended.
    bytes: usize,
    /// How many frames came.
    offered: u64,
    /// Up to which of them is to be appended without waiting for more.
    wanted: u64,
    /// Frames for which there was no room, and the file of the first.
    left_out: Option<(String, u64)>,
    closed: bool,
    entries: u64,
    errors: u64,
}

/// How far the task has come.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    up_to: u64,
    over: bool,
}

/// Counts for [`Stats`](crate::Stats).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) entries: u64,
    pub(crate) errors: u64,
    pub(crate) waiting_bytes: usize,
}

impl Mirror {
    pub(crate) fn new(
        keeping: &Keeping,
        places: Places,
        room: usize,
        ownership: Option<&Arc<Ownership>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(&keeping.store),
            flush: keeping.flush,
            places,
            ownership: ownership.filter(|own| own.is_in_store()).cloned(),
            room,
            state: Mutex::default(),
            wake: Notify::new(),
            stop: Notify::new(),
            done: watch::channel(Done::default()).0,
        })
    }

    /// Takes a frame. Never waits.
    pub(crate) fn offer(&self, frame: &Frame) {
        let mut state = self.state();
        state.offered += 1;
        let size = frame.bytes().len();
        if state.closed || (state.bytes > 0 && state.bytes + size > self.room) {
            let file = || Fields::of(frame).get::<String>("filePath").unwrap_or_default();
            state.left_out.get_or_insert_with(|| (file(), 0)).1 += 1;
        } else {
            state.bytes += size;
            state.waiting.push_back(frame.clone());
        }
        drop(state);
        self.wake.notify_one();
    }

    /// A turn has ended: what came so far is to be stored now.
    pub(crate) fn want(&self) {
        let mut state = self.state();
        state.wanted = state.offered;
        drop(state);
        self.wake.notify_one();
    }

    /// Whether all that was wanted is stored, or given up.
    pub(crate) fn is_flushed(&self) -> bool {
        let wanted = self.state().wanted;
        let done = *self.done.borrow();
        done.over || done.up_to >= wanted
    }

    /// Waits for that.
    pub(crate) async fn flushed(&self) {
        let wanted = self.state().wanted;
        let mut done = self.done.subscribe();
        // The sender lives as long as `self`.
        let _ = done.wait_for(|done| done.over || done.up_to >= wanted).await;
    }

    /// Nothing more comes: waits until the rest is stored or given up.
    pub(crate) async fn finish(&self) {
        self.state().closed = true;
        self.wake.notify_one();
        let mut done = self.done.subscribe();
        let over = async { done.wait_for(|done| done.over).await.map(drop) };
        if tokio::time::timeout(FINISH, over).await.is_err() {
            tracing::error!(after = ?FINISH, "the session store did not take the end of the session");
            self.state().errors += 1;
            self.stop.notify_one();
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let state = self.state();
        Counts {
            entries: state.entries,
            errors: state.errors,
            waiting_bytes: state.bytes,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task. Ends when nothing more comes, or when it is dropped with its runtime.
    pub(crate) async fn run(self: Arc<Self>, conn: Arc<Conn>) {
        let _over = Over(&self.done);
        tokio::select! {
            () = self.work(&conn) => {}
            () = self.stop.notified() => {}
        }
    }

    async fn work(&self, conn: &Arc<Conn>) {
        let mut portion = Portion::default();
        let mut taken = 0;
        loop {
            let (frame, left_out, wanted, closed) = {
                let mut state = self.state();
                let frame = state.waiting.pop_front();
                (frame, state.left_out.take(), state.wanted, state.closed)
            };
            if let Some((file, frames)) = left_out {
                // They have their numbers too, behind all that wait; what is wanted is waited for no longer than it takes.
                taken += frames;
                let what = format!(
                    "{frames} lines of the CLI were left out, since the session store does not keep up and more than {} bytes wait",
                    self.room
                );
                self.tell(
                    conn,
                    &self.key(&file).unwrap_or_else(|| SessionKey::new("", "")),
                    &what,
                );
            }
            let is_idle = frame.is_none();
            if let Some(frame) = frame {
                taken += 1;
                self.add(conn, &mut portion, &frame);
            }
            let is_full = match self.flush {
                StoreFlush::Batched => portion.entries > MAX_ENTRIES || portion.bytes > MAX_BYTES,
                StoreFlush::Eager => true,
            };
            let is_wanted = is_idle && (closed || wanted > self.done.borrow().up_to);
            if is_full || is_wanted {
                self.append(conn, std::mem::take(&mut portion)).await;
            }
            if is_idle && portion.files.is_empty() {
                self.done.send_modify(|done| done.up_to = taken);
            }
            if is_idle && closed {
                return;
            }
            if is_idle {
                self.wake.notified().await;
            }
        }
    }

    fn add(&self, conn: &Arc<Conn>, portion: &mut Portion, frame: &Frame) {
        let size = frame.bytes().len();
        portion.held += size;
        let mirrored = match frame.decode() {
            Ok(Message::TranscriptMirror(mirrored)) => mirrored,
            // The router offers nothing else, so it is one that does not fit its type.
            other => {
                let why = other.err().map(|misfit| misfit.to_string()).unwrap_or_default();
                let what = format!("a transcript_mirror of the CLI can't be read: {why}");
                return self.tell(conn, &SessionKey::new("", ""), &what);
            }
        };
        if mirrored.entries.is_empty() {
            return;
        }
        portion.bytes += size;
        portion.entries += mirrored.entries.len();
        match portion
            .files
            .iter_mut()
            .find(|(file, _)| *file == mirrored.file_path)
        {
            Some((_, entries)) => entries.extend(mirrored.entries),
            None => portion.files.push((mirrored.file_path, mirrored.entries)),
        }
    }

    async fn append(&self, conn: &Arc<Conn>, portion: Portion) {
        for (file, entries) in portion.files {
            let Some(key) = self.key(&file) else {
                let what = format!(
                    "{file} is not a transcript below {}: the CLI keeps its sessions elsewhere than was expected",
                    self.places
                );
                self.tell(conn, &SessionKey::new("", ""), &what);
                continue;
            };
            let count = entries.len() as u64;
            match self.append_to(&key, entries).await {
                Ok(()) => self.state().entries += count,
                Err(failure) => {
                    self.tell(conn, &key, &failure.text());
                    if let Some(own) = self.ownership.as_ref().filter(|_| failure.is_refusal()) {
                        own.refused(conn, &key).await;
                    }
                }
            }
        }
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(portion.held);
    }

    async fn append_to(&self, key: &SessionKey, entries: Vec<RawJson>) -> Result<(), Failure> {
        let entries = Arc::new(entries);
        let mut pauses = PAUSES.iter();
        loop {
            let entries = Arc::clone(&entries);
            let appended = match &self.ownership {
                Some(own) => own.append(APPEND, &self.store, key, entries).await,
                None => {
                    let (store, key) = (Arc::clone(&self.store), key.clone());
                    call(APPEND, async move { store.append(&key, &entries).await }).await
                }
            };
            match (appended, pauses.next()) {
                (Err(failure), Some(pause)) if failure.may_pass() => {
                    tracing::debug!(
                        error = failure.text(),
                        "the session store did not take an append; once more"
                    );
                    tokio::time::sleep(*pause).await;
                }
                (appended, _) => return appended,
            }
        }
    }

    fn key(&self, file: &str) -> Option<SessionKey> {
        self.places.key(file)
    }

    /// Tells the user that something is not in the store.
    fn tell(&self, conn: &Arc<Conn>, key: &SessionKey, error: &str) {
        tracing::error!(%key, error, "not in the session store");
        self.state().errors += 1;
        let line = json!({
            "type": "system", "subtype": "mirror_error", "error": error, "key": key,
            "uuid": Uuid::new_v4(), "session_id": key.session_id,
        });
        let mut router = conn.router();
        for frame in Frame::from_line(line.to_string()) {
            router.tell(&frame);
        }
        router.flush();
    }
}

/// What is put together for one append to each file.
#[derive(Debug, Default)]
struct Portion {
    files: Vec<(String, Vec<RawJson>)>,
    entries: usize,
    bytes: usize,
    /// Bytes of all frames in it, those without entries too.
    held: usize,
}

/// Says that the task has ended, however it did.
struct Over<'a>(&'a watch::Sender<Done>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|done| done.over = true);
    }
}

/// Where the CLI's transcripts are, to know them by their names.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    projects: Vec<PathBuf>,
    /// Whether they are on another machine, where nobody knows.
    far: bool,
}

impl Places {
    /// Below this config directory.
    pub(crate) fn below(config: &Path, far: bool) -> Self {
        let mut projects = vec![config.join("projects")];
        // The CLI may name it without links, or in another normal form.
        let composed = outrigger_sessions::Sessions::at(config).projects_dir();
        projects.push(composed);
        projects.extend(config.canonicalize().ok().map(|config| config.join("projects")));
        projects.dedup();
        Self { projects, far }
    }

    fn key(&self, file: &str) -> Option<SessionKey> {
        let mut keys = self
            .projects
            .iter()
            .map(|projects| SessionKey::of_file(Path::new(file), projects));
        let near = keys.find_map(|key| key);
        near.or_else(|| self.far.then(|| SessionKey::of_far_file(file)).flatten())
    }
}

impl std::fmt::Display for Places {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.projects.first() {
            Some(projects) => projects.display().fmt(f),
            None => Ok(()),
        }
    }
}
