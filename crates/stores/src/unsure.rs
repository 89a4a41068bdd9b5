//! Appends of which it is not known whether they were done: sent again by the program, they are done once.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use outrigger_protocol::RawJson;
#[cfg(any(feature = "directory", feature = "sqlite"))]
use outrigger_sessions::store::BoxFuture;
#[cfg(any(feature = "bucket", feature = "postgres", feature = "redis"))]
use outrigger_sessions::store::StoreError;
use outrigger_sessions::store::{Result, SessionKey};

/// How many are remembered. A program that sends none of them again must not fill the memory.
const MAX_UNSURE: usize = 1024;

/// The last append to each transcript, where the program got no answer. `T` is how to find out whether it was done.
pub(crate) struct UnsureAppends<T> {
    all: Mutex<VecDeque<UnsureAppend<T>>>,
}

struct UnsureAppend<T> {
    key: SessionKey,
    entries: Vec<RawJson>,
    trace: T,
}

/// An append under way. Dropped before it has [ended](Self::end), it is an unsure one.
pub(crate) struct AppendUnderWay<'a, T> {
    unsure: &'a UnsureAppends<T>,
    key: &'a SessionKey,
    entries: &'a [RawJson],
    trace: Option<T>,
}

impl<T> Default for UnsureAppends<T> {
    fn default() -> Self {
        Self {
            all: Mutex::default(),
        }
    }
}

impl<T> fmt::Debug for UnsureAppends<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsureAppends").finish_non_exhaustive()
    }
}

impl<T> UnsureAppends<T> {
    /// The trace of the last append to this transcript, if it is unsure and had these entries. The caller begins it anew.
    pub(crate) fn take(&self, key: &SessionKey, entries: &[RawJson]) -> Option<T> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|one| one.key == *key)?;
        all.remove(at)
            .filter(|one| one.entries == entries)
            .map(|one| one.trace)
    }

    pub(crate) fn begin<'a>(
        &'a self,
        key: &'a SessionKey,
        entries: &'a [RawJson],
        trace: T,
    ) -> AppendUnderWay<'a, T> {
        AppendUnderWay {
            unsure: self,
            key,
            entries,
            trace: Some(trace),
        }
    }
}

impl<T> AppendUnderWay<'_, T> {
    /// It has come to this. A failure that may pass says nothing about what was stored.
    #[cfg(any(feature = "bucket", feature = "postgres", feature = "redis"))]
    pub(crate) fn end(mut self, done: &Result<()>) {
        if !done.as_ref().is_err_and(StoreError::may_pass) {
            self.trace = None;
        }
    }
}

impl<T> Drop for AppendUnderWay<'_, T> {
    fn drop(&mut self) {
        let Some(trace) = self.trace.take() else { return };
        let mut all = self.unsure.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.key != *self.key);
        if all.len() >= MAX_UNSURE {
            all.pop_front();
        }
        all.push_back(UnsureAppend {
            key: self.key.clone(),
            entries: self.entries.to_vec(),
            trace,
        });
    }
}

/// An append that goes on when nobody waits for it any more.
#[cfg(any(feature = "directory", feature = "sqlite"))]
pub(crate) type RunningAppend = BoxFuture<'static, Result<()>>;

#[cfg(any(feature = "directory", feature = "sqlite"))]
impl UnsureAppends<RunningAppend> {
    /// Waits for an append. If the same one runs already, and whoever waited for it went away, that one is waited for.
    pub(crate) async fn run(
        &self,
        key: &SessionKey,
        entries: &[RawJson],
        start: impl FnOnce() -> BoxFuture<'static, Result<()>>,
    ) -> Result<()> {
        if let Some(running) = self.take(key, entries)
            && self.finish(key, entries, running).await.is_ok()
        {
            return Ok(());
        }
        self.finish(key, entries, start()).await
    }

    /// Waits for the unsure appends to a transcript that is about to be deleted, and to all of its session's if it is the main one, and
    /// forgets them: one that is sent again after that is to be done again.
    pub(crate) async fn forget(&self, key: &SessionKey) {
        while let Some(UnsureAppend { key, entries, trace }) = self.next_of(key) {
            // What became of it is deleted.
            drop(self.finish(&key, &entries, trace).await);
        }
    }

    fn next_of(&self, key: &SessionKey) -> Option<UnsureAppend<RunningAppend>> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all
            .iter()
            .position(|one| one.key == *key || one.key.main() == *key)?;
        all.remove(at)
    }

    async fn finish(&self, key: &SessionKey, entries: &[RawJson], running: RunningAppend) -> Result<()> {
        let mut under_way = self.begin(key, entries, running);
        let done = std::future::poll_fn(|cx| match &mut under_way.trace {
            Some(running) => running.as_mut().poll(cx),
            None => std::task::Poll::Ready(Ok(())),
        })
        .await;
        under_way.trace = None;
        done
    }
}
