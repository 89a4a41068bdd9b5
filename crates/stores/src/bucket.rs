//! Sessions in a bucket of an object store: for any number of machines, without a database.

mod bucket_inner;
mod clock;
mod head;
mod lease_in_head;
mod object_paths;
mod objects;
#[cfg(feature = "s3")]
mod s3;
mod transcript;

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStore;
use outrigger_protocol::RawJson;
use outrigger_sessions::store::{
    BoxFuture, Capabilities, LeaseStore, Result, SessionKey, SessionStore, StoreLease, StoredSession,
    SummaryEntry,
};

use self::bucket_inner::{BucketInner, ListedSession};
use self::object_paths::{Root, session_of};
#[cfg(feature = "s3")]
pub use self::s3::S3;
use crate::acquisitions::Acquisitions;

/// How many heads a list reads at once.
const HEADS_AT_ONCE: usize = 16;

/// Keeps sessions as objects: in a bucket of Amazon S3 or of a server with the same API (feature `s3`), or in any other store of
/// [`object_store`] that supports conditional writes, such as Google Cloud Storage and Azure. Cheap to clone; any number of machines may
/// use the same bucket.
///
/// A session is a head and parts. Parts have entries, one a line, and are never changed. The head (`heads/<session>.json`) names
/// the parts in order, and has the summary and the lease. Every write replaces the head on the condition that it has not changed
/// since it was read, so a former owner can't write any more. An append is done when its head is written; parts of unfinished appends
/// are removed when the session is acquired next. Small parts are merged as more come, so that there are never many. The head stays
/// when a session is deleted, since its numbers may not be used again: a few hundred bytes.
///
/// The first append of a process to a transcript that it has not loaded reads the transcript, to know its entries. Lists cost a
/// request for each session that has changed since the last list, and one for each thousand of the others.
///
/// Each request has a deadline of 30 seconds, and one more for each MiB; a call whose writes are overtaken again and again gives up
/// after 60 seconds. Leases use this machine's clock, unless the server's differs by more than three seconds, which is checked every ten
/// minutes; then they use the server's.
#[derive(Debug, Clone)]
pub struct BucketStore {
    shared: Arc<BucketInner>,
    acquisitions: Acquisitions,
}

impl BucketStore {
    /// Uses an object store of the program's own, below `prefix`, which may be empty. Whether it keeps conditions is tried out first, with
    /// a few small objects below `prefix` that are removed again.
    ///
    /// # Cancel safety
    /// Dropped, a small object below `trials` may stay behind.
    ///
    /// # Errors
    /// [`Unsupported`](outrigger_sessions::store::StoreErrorKind::Unsupported) when it does not keep conditions (`LocalFileSystem` does
    /// not), [`Invalid`](outrigger_sessions::store::StoreErrorKind::Invalid) when `prefix` is no path, else when it can't be
    /// reached.
    pub async fn open(objects: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self> {
        let shared = BucketInner::new(objects, Root::new(prefix)?);
        shared.try_out().await?;
        Ok(Self {
            shared: Arc::new(shared),
            acquisitions: Acquisitions::default(),
        })
    }

    /// The sessions of a project.
    async fn list(&self, project: &str) -> Result<Vec<ListedSession>> {
        let shared = &self.shared;
        let heads = shared.objects.list(&shared.root.heads(project)).await?;
        let listed: Vec<BoxFuture<'_, Result<Option<ListedSession>>>> = heads
            .into_iter()
            .filter_map(|head| Some((SessionKey::new(project, session_of(&head.path)?), head)))
            .map(|(key, head)| -> BoxFuture<'_, _> { Box::pin(shared.listed(key, head)) })
            .collect();
        let mut listed = futures_util::stream::iter(listed).buffer_unordered(HEADS_AT_ONCE);
        let mut list = Vec::new();
        while let Some(session) = listed.try_next().await? {
            list.extend(session);
        }
        Ok(list)
    }
}

impl SessionStore for BucketStore {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if entries.is_empty() {
                return Ok(());
            }
            self.shared.append(key, entries, None).await
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        Box::pin(self.shared.load(key))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        Box::pin(async move {
            let list = self.list(project_key).await?.into_iter();
            Ok(list
                .map(|session| StoredSession::new(session.id, session.mtime))
                .collect())
        })
    }

    fn list_session_summaries<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SummaryEntry>>> {
        Box::pin(async move {
            let list = self.list(project_key).await?.into_iter();
            Ok(list
                .filter_map(|session| Some(SummaryEntry::new(session.id, session.mtime, session.summary?)))
                .collect())
        })
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.delete(key))
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(async move {
            let transcripts = self.shared.fetch(key).await?.head.transcripts;
            Ok(transcripts
                .into_keys()
                .filter(|subpath| !subpath.is_empty())
                .collect())
        })
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for BucketStore {
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        let (key, owner) = (key.main(), owner.to_owned());
        let (shared, of) = (Arc::clone(&self.shared), key.clone());
        let acquire = async move { shared.acquire(&of, &owner, ttl).await };
        Box::pin(self.acquisitions.run(self.clone(), key, acquire))
    }

    fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>> {
        Box::pin(self.shared.renew(lease, ttl))
    }

    fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.release(lease))
    }

    fn append_fenced<'a>(
        &'a self,
        lease: &'a StoreLease,
        key: &'a SessionKey,
        entries: &'a [RawJson],
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            crate::covered(lease, key)?;
            self.shared.append(key, entries, Some(lease)).await
        })
    }
}
