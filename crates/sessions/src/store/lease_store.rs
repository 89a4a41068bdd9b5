//! Who may write to a session.

use std::time::Duration;

use outrigger_protocol::RawJson;
use serde::{Deserialize, Serialize};

use super::{BoxFuture, Result, SessionKey, StoreErrorKind};

/// The right to drive a session for a while. It ends when it runs out or another owner takes the session over; the store
/// decides this by `fence`, not by this copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoreLease {
    /// The session's project.
    pub project_key: String,
    /// The session.
    pub session_id: String,
    /// The owner: a text for people, such as host and process.
    pub owner: String,
    /// Grows with every acquisition of this session, and is never used twice.
    pub fence: u64,
    /// When the lease ends, in milliseconds since 1970 by the store's clock.
    pub expires_at: u64,
}

impl StoreLease {
    /// The lease of the session that `key` is, or is a part of. For stores.
    pub fn new(key: &SessionKey, owner: impl Into<String>, fence: u64, expires_at: u64) -> Self {
        Self {
            project_key: key.project_key.clone(),
            session_id: key.session_id.clone(),
            owner: owner.into(),
            fence,
            expires_at,
        }
    }

    /// Whether the lease is about the session that `key` is, or is a part of.
    pub fn covers(&self, key: &SessionKey) -> bool {
        self.project_key == key.project_key && self.session_id == key.session_id
    }
}

/// Leases with fencing numbers, kept with the sessions: any machine can take a session over, and the former owner
/// can't write any more, even if it only slept.
///
/// A lease runs out by the store's clock alone. A lease that ran out and that no other owner has acquired since can still be renewed,
/// and used for writes.
pub trait LeaseStore: Send + Sync {
    /// Takes a session, whether it exists yet or not, for `ttl`. Taken again by the same `owner` it is a new lease, and the old
    /// one is worth nothing.
    ///
    /// # Cancel safety
    /// Dropped, it may have been taken; it runs out by itself, unless the store gives it back, as those of `outrigger-stores` do.
    ///
    /// # Errors
    /// [`Held`](super::StoreErrorKind::Held) while another owner's lease runs.
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>>;

    /// Makes the lease last for `ttl` from now on.
    ///
    /// # Errors
    /// [`Fenced`](super::StoreErrorKind::Fenced) when another owner has taken the session over, or the lease was released.
    fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>>;

    /// Gives it back, so that others need not wait. One that is over already is no error.
    ///
    /// # Errors
    /// When the store fails.
    fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>>;

    /// Appends as [`SessionStore::append`](super::SessionStore::append) does, if the lease is the session's newest: compared and
    /// written in one step, so that nothing comes between.
    ///
    /// # Errors
    /// [`Fenced`](super::StoreErrorKind::Fenced) with nothing written if it is not; [`Invalid`](super::StoreErrorKind::Invalid)
    /// for a key of another session; else as `append`.
    fn append_fenced<'a>(
        &'a self,
        lease: &'a StoreLease,
        key: &'a SessionKey,
        entries: &'a [RawJson],
    ) -> BoxFuture<'a, Result<()>>;

    /// Acquires a session even while another owner's lease is valid, which ends that lease: that owner's appends and
    /// renewals fail.
    ///
    /// By default, the holder is fenced by a lease in its own name, which is released at once, and then the
    /// session is acquired. A third owner may come first between the two.
    ///
    /// # Cancel safety
    /// Dropped, the holder may have been fenced, and the session may have been acquired; that lease runs out by itself.
    ///
    /// # Errors
    /// [`Held`](super::StoreErrorKind::Held) when a third owner came first; when the store fails.
    fn take_over<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        Box::pin(async move {
            let held = match self.acquire(key, owner, ttl).await {
                Err(error) => error,
                acquired => return acquired,
            };
            let StoreErrorKind::Held { owner: holder, .. } = held.kind() else {
                return Err(held);
            };
            let in_its_name = self.acquire(key, holder, ttl).await?;
            self.release(&in_its_name).await?;
            self.acquire(key, owner, ttl).await
        })
    }

    /// The newest lease of a session, unless it was released; it may have run out. Also `None` if the store can't report it, which
    /// is the default. For messages to people only.
    ///
    /// # Errors
    /// When the store fails.
    fn holder<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<StoreLease>>> {
        let _ = key;
        Box::pin(std::future::ready(Ok(None)))
    }
}
