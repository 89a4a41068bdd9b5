//! What all clones of a store share, and how a session's head is read and replaced.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, PutMode};
use outrigger_protocol::RawJson;
use outrigger_sessions::store::{Result, SessionKey, StoreError, StoreErrorKind};
use tokio::time::Instant;

use super::clock::Clock;
use super::head::{SessionHead, Transcript, VersionedHead, unique};
use super::object_paths::{Root, part_of};
use super::objects::{ListedObject, Objects, Put};
use crate::unsure::UnsureAppends;

/// The most sessions of which heads and uuids are remembered; with more, the others are read again.
const MAX_KNOWN: usize = 64;

/// How many sessions a list remembers what it has read of.
const MAX_LISTED: usize = 4096;

/// How long a call tries again when others write to the same session.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct BucketInner {
    pub(super) objects: Objects,
    pub(super) root: Root,
    pub(super) clock: Clock,
    /// What this writer is called, and how many writes it has begun.
    name: String,
    writes: AtomicU64,
    sessions: Mutex<HashMap<SessionKey, Session>>,
    listed: Mutex<HashMap<Path, Listed>>,
    /// The names of appends.
    pub(super) unsure: UnsureAppends<String>,
}

/// A session as it is known here. Locked, nobody else in this process writes to it.
pub(super) type Session = Arc<tokio::sync::Mutex<BucketSession>>;

/// The known state of a session. Others may have written meanwhile, which the next write finds out.
#[derive(Debug, Default)]
pub(super) struct BucketSession {
    pub(super) found: Option<VersionedHead>,
    /// By subpath.
    pub(super) uuids: HashMap<String, Uuids>,
}

/// The uuids in the first entries of a transcript.
#[derive(Debug, Default)]
pub(super) struct Uuids {
    pub(super) born: String,
    pub(super) entries: u64,
    pub(super) all: HashSet<String>,
}

impl Uuids {
    /// None of these yet.
    pub(super) fn of(transcript: &Transcript) -> Self {
        Self {
            born: transcript.born.clone(),
            ..Self::default()
        }
    }
}

/// Waits until nobody else in this process writes to the session.
pub(super) async fn lock<'s>(
    key: &SessionKey,
    session: &'s Session,
) -> Result<tokio::sync::MutexGuard<'s, BucketSession>> {
    let locked = tokio::time::timeout(PATIENCE, session.lock()).await;
    locked.map_err(|_| {
        let why = format!("another call has worked on it for {} s", PATIENCE.as_secs());
        StoreError::failed(format!("{key} in the bucket can't be written to"), why)
    })
}

/// The list's entry for a session, as long as its head has this ETag.
#[derive(Debug, Clone)]
struct Listed {
    tag: String,
    session: Option<ListedSession>,
}

/// What a list has of a session.
#[derive(Debug, Clone)]
pub(super) struct ListedSession {
    pub(super) id: String,
    pub(super) mtime: u64,
    /// None of a damaged head, or where it is damaged itself.
    pub(super) summary: Option<RawJson>,
}

/// Counts how often a call has begun anew, and waits in between.
pub(super) struct Attempts {
    until: Instant,
    wait: Duration,
}

impl Attempts {
    pub(super) fn new() -> Self {
        Self {
            until: Instant::now() + PATIENCE,
            wait: Duration::from_millis(5),
        }
    }

    /// Waits a little, and longer each time.
    ///
    /// # Errors
    /// When it was tried for long enough.
    pub(super) async fn again(&mut self, key: &SessionKey) -> Result<()> {
        if Instant::now() >= self.until {
            let why = format!(
                "others have written to it all the time for {} s",
                PATIENCE.as_secs()
            );
            return Err(StoreError::failed(
                format!("{key} in the bucket is contested"),
                why,
            ));
        }
        // Writers that failed together should not retry together.
        let share = u32::from(uuid::Uuid::new_v4().as_bytes()[0]);
        tokio::time::sleep(self.wait * (128 + share) / 256).await;
        self.wait = (self.wait * 2).min(Duration::from_millis(500));
        Ok(())
    }
}

impl BucketInner {
    pub(super) fn new(objects: Arc<dyn ObjectStore>, root: Root) -> Self {
        Self {
            objects: Objects(objects),
            root,
            clock: Clock::default(),
            name: unique(),
            writes: AtomicU64::new(0),
            sessions: Mutex::default(),
            listed: Mutex::default(),
            unsure: UnsureAppends::default(),
        }
    }

    pub(super) fn session(&self, key: &SessionKey) -> Session {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if !sessions.contains_key(&key.main()) && sessions.len() >= MAX_KNOWN {
            // A writer that is working on a session holds a reference.
            sessions.retain(|_, session| Arc::strong_count(session) > 1);
        }
        Arc::clone(sessions.entry(key.main()).or_default())
    }

    /// The head as it is now.
    pub(super) async fn fetch(&self, key: &SessionKey) -> Result<VersionedHead> {
        let path = self.root.head(key);
        Ok(match self.objects.get(&path, 0).await? {
            Some((bytes, version)) => VersionedHead {
                head: SessionHead::decode(&bytes, &path)?,
                version: Some(version),
            },
            None => VersionedHead::nothing(),
        })
    }

    /// Replaces the head if it is still the one that was read, and returns whether it was. Either way `known` has the current
    /// head, or nothing if that is unknown.
    pub(super) async fn replace(
        &self,
        key: &SessionKey,
        known: &mut BucketSession,
        mut head: SessionHead,
    ) -> Result<bool> {
        let Some(found) = known.found.take() else {
            return Ok(false);
        };
        let write = head.advance(&self.name, self.writes.fetch_add(1, Ordering::Relaxed));
        let body = Bytes::from(head.encode()?);
        let mode = found.version.map_or(PutMode::Create, PutMode::Update);
        let error = match self.objects.put(&self.root.head(key), body, mode).await {
            Ok(Put::Stored(version)) => {
                known.found = Some(VersionedHead {
                    head,
                    version: Some(version),
                });
                return Ok(true);
            }
            Ok(Put::Refused(_)) => None,
            Err(error) => Some(error),
        };
        // An earlier try of the same request may have been carried out, and only its answer lost.
        let now = self
            .fetch(key)
            .await
            .map_err(|new| error.clone().unwrap_or(new))?;
        let is_done = now.head.has(&write);
        known.found = Some(now);
        match (is_done, error) {
            (Some(true), _) => Ok(true),
            (Some(false), None) => Ok(false),
            (_, Some(error)) => Err(error),
            (None, None) => {
                let what = format!("it can't be found out whether a write to {key} in the bucket was done");
                Err(StoreError::new(StoreErrorKind::Failed, what))
            }
        }
    }

    /// Removes leftovers from a session: parts that no head has named, or that none names any more.
    pub(super) async fn sweep(&self, key: &SessionKey, head: &SessionHead) -> Result<()> {
        let listed = self.objects.list(&self.root.parts(key)).await?;
        let left = listed.into_iter().map(|object| object.path);
        let left = left.filter(|path| part_of(path).is_some_and(|id| head.is_over(id)));
        self.objects.delete(left.collect()).await
    }

    /// Removes these parts of a session, which are over. What can't be removed is left for [`sweep`](Self::sweep).
    pub(super) async fn discard(&self, key: &SessionKey, ids: impl Iterator<Item = &str>) {
        let paths = ids.map(|id| self.root.part(key, id)).collect();
        let _ = self.objects.delete(paths).await;
    }

    /// Finds out whether the object store keeps conditions, without which two owners could write at once, and what time it has.
    pub(super) async fn try_out(&self) -> Result<()> {
        let path = self.root.trial(&unique());
        let tried = self.try_conditions(&path).await;
        let deleted = self.objects.delete(vec![path]).await;
        tried.and(deleted)
    }

    async fn try_conditions(&self, path: &Path) -> Result<()> {
        let put =
            |text: &'static str, mode| self.objects.put(path, Bytes::from_static(text.as_bytes()), mode);
        let lacks = |what: &str| {
            let what = format!("the object store can't keep sessions: {what}");
            Err(StoreError::new(StoreErrorKind::Unsupported, what))
        };
        let before = crate::now_ms();
        let Put::Stored(first) = put("first", PutMode::Create).await? else {
            return lacks("it does not create an object that is not there (If-None-Match: *)");
        };
        let after = crate::now_ms();
        self.clock
            .compare(before, self.objects.written_at(path).await?, after);
        if let Put::Stored(_) = put("again", PutMode::Create).await? {
            return lacks("it replaces an object that was only to be created (If-None-Match: *)");
        }
        if first.e_tag.is_none() && first.version.is_none() {
            return lacks("it gives its objects no versions (ETag)");
        }
        let Put::Stored(_) = put("second", PutMode::Update(first.clone())).await? else {
            return lacks("it does not replace an object by its version (If-Match)");
        };
        if let Put::Stored(_) = put("third", PutMode::Update(first)).await? {
            return lacks("it replaces an object that has changed meanwhile (If-Match)");
        }
        match self.objects.get(path, 0).await? {
            Some((bytes, _)) if &bytes[..] == b"second" => Ok(()),
            _ => lacks("it does not give back what was written last"),
        }
    }

    /// Compares the clocks again, if that is long ago.
    pub(super) async fn now(&self) -> Result<u64> {
        if self.clock.is_old() {
            let path = self.root.trial(&unique());
            let before = crate::now_ms();
            self.objects
                .put(&path, Bytes::from_static(b"now"), PutMode::Overwrite)
                .await?;
            let after = crate::now_ms();
            self.clock
                .compare(before, self.objects.written_at(&path).await?, after);
            // If the object cannot be deleted, a few bytes stay.
            let _ = self.objects.delete(vec![path]).await;
        }
        Ok(self.clock.now())
    }

    /// What a list has of the session with this head, or `None` if the session itself is not there.
    pub(super) async fn listed(&self, key: SessionKey, head: ListedObject) -> Result<Option<ListedSession>> {
        let known = self
            .listed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&head.path)
            .cloned();
        if let Some(known) = known
            && Some(&known.tag) == head.tag.as_ref()
        {
            return Ok(known.session);
        }
        let found = match self.fetch(&key).await {
            // The others are listed all the same, and whoever loads this one is told.
            Err(error) if *error.kind() == StoreErrorKind::Damaged => {
                return Ok(Some(ListedSession {
                    id: key.session_id,
                    mtime: head.mtime,
                    summary: None,
                }));
            }
            found => found?,
        };
        let session = found.head.transcript(&key).map(|transcript| ListedSession {
            id: key.session_id.clone(),
            mtime: transcript.mtime,
            summary: found.head.readable_summary().cloned(),
        });
        if let Some(tag) = found.version.and_then(|version| version.e_tag) {
            let mut all = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MAX_LISTED {
                all.clear();
            }
            let session = session.clone();
            all.insert(head.path, Listed { tag, session });
        }
        Ok(session)
    }
}
