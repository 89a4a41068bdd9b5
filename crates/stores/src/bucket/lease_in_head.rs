//! Leases, which are in the head of a session, so that an append compares the lease and writes in one step.

use std::time::Duration;

use outrigger_sessions::store::{Result, SessionKey, StoreLease};

use super::bucket_inner::{Attempts, BucketInner, lock};
use super::head::BucketLease;

impl BucketInner {
    pub(super) async fn acquire(&self, key: &SessionKey, owner: &str, ttl: Duration) -> Result<StoreLease> {
        let now = self.now().await?;
        let session = self.session(key);
        let known = &mut *lock(key, &session).await?;
        let mut attempts = Attempts::new();
        loop {
            let found = known.found.insert(self.fetch(key).await?);
            let mut next = found.head.clone();
            let now = now.max(self.clock.now());
            if let Some(held) = &next.lease
                && !held.released
                && held.lease.expires_at > now
                && held.lease.owner != owner
            {
                let by = (held.lease.owner.clone(), held.lease.expires_at);
                return Err(crate::is_held(key, Some(by)));
            }
            let old = next.lease.take();
            let fence = old.as_ref().map_or(0, |held| held.lease.fence) + 1;
            let lease = StoreLease::new(key, owner, fence, now + crate::millis(ttl));
            next.lease = Some(BucketLease {
                lease: lease.clone(),
                released: false,
            });
            if self.replace(key, known, next).await? {
                // A former owner may have left parts. Failing to remove them now must not prevent the claim.
                if let (Some(found), Some(false)) = (&known.found, old.map(|held| held.released)) {
                    let _ = self.sweep(key, &found.head).await;
                }
                return Ok(lease);
            }
            attempts.again(key).await?;
        }
    }

    pub(super) async fn renew(&self, lease: &StoreLease, ttl: Duration) -> Result<StoreLease> {
        self.now().await?;
        let renewed = self.change(lease, |held, now| {
            held.lease.expires_at = now + crate::millis(ttl)
        });
        Ok(renewed.await?.lease)
    }

    pub(super) async fn release(&self, lease: &StoreLease) -> Result<()> {
        match self.change(lease, |held, _| held.released = true).await {
            Err(error) if !error.is_fenced() => Err(error),
            _ => Ok(()),
        }
    }

    /// Changes the lease if it is the session's newest.
    async fn change(
        &self,
        lease: &StoreLease,
        change: impl Fn(&mut BucketLease, u64) + Send,
    ) -> Result<BucketLease> {
        let key = &SessionKey::new(&lease.project_key, &lease.session_id);
        let session = self.session(key);
        let known = &mut *lock(key, &session).await?;
        let mut attempts = Attempts::new();
        loop {
            let mut next = known.found.insert(self.fetch(key).await?).head.clone();
            if !next.is_held_by(lease) {
                return Err(crate::is_over(lease));
            }
            let mut held = BucketLease {
                lease: lease.clone(),
                released: false,
            };
            change(&mut held, self.clock.now());
            next.lease = Some(held.clone());
            if self.replace(key, known, next).await? {
                return Ok(held);
            }
            attempts.again(key).await?;
        }
    }
}
