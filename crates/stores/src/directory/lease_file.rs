//! Who may write to a session, as a file in its directory.

use std::time::Duration;

use outrigger_sessions::store::{Result, SessionKey, StoreLease};
use serde::{Deserialize, Serialize};

use super::files::{failed, read_json, sync_up, write_json};
use super::transcripts::{DirectoryInner, Locked};

/// `lease.json`.
#[derive(Debug, Serialize, Deserialize)]
struct LeaseFile {
    lease: StoreLease,
    released: bool,
}

const FILE: &str = "lease.json";

impl DirectoryInner {
    pub(super) fn acquire(&self, key: &SessionKey, owner: &str, ttl: Duration) -> Result<StoreLease> {
        let locked = self.lock(key)?;
        let now = crate::now_ms();
        let old: Option<LeaseFile> = read_json(&locked.directory.join(FILE))?;
        if let Some(held) = &old
            && !held.released
            && held.lease.expires_at > now
            && held.lease.owner != owner
        {
            return Err(crate::is_held(
                key,
                Some((held.lease.owner.clone(), held.lease.expires_at)),
            ));
        }
        if old.is_none() {
            // The process that made the directory may have died before its name was on disk, and the number must not get lost with it.
            sync_up(&locked.directory, &self.root)
                .map_err(|error| failed("write", &locked.directory, error))?;
        }
        let fence = old.map_or(0, |held| held.lease.fence) + 1;
        let lease = StoreLease::new(key, owner, fence, now + crate::millis(ttl));
        locked.hold(&lease, false)?;
        Ok(lease)
    }

    pub(super) fn renew(&self, mut lease: StoreLease, ttl: Duration) -> Result<StoreLease> {
        let locked = self.lock(&SessionKey::new(&lease.project_key, &lease.session_id))?;
        locked.mine(&lease)?;
        lease.expires_at = crate::now_ms() + crate::millis(ttl);
        locked.hold(&lease, false)?;
        Ok(lease)
    }

    pub(super) fn holder(&self, key: &SessionKey) -> Result<Option<StoreLease>> {
        // The file is replaced as a whole, so it can be read while another process has the lock.
        let held: Option<LeaseFile> = read_json(&self.session(key).join(FILE))?;
        Ok(held.filter(|held| !held.released).map(|held| held.lease))
    }

    pub(super) fn release(&self, lease: &StoreLease) -> Result<()> {
        let locked = self.lock(&SessionKey::new(&lease.project_key, &lease.session_id))?;
        match locked.mine(lease) {
            Ok(()) => locked.hold(lease, true),
            Err(error) if error.is_fenced() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Locked {
    /// Checks that the lease is the session's newest and was not released.
    pub(super) fn mine(&self, lease: &StoreLease) -> Result<()> {
        let held: Option<LeaseFile> = read_json(&self.directory.join(FILE))?;
        let is_mine = |held: &LeaseFile| {
            held.lease.fence == lease.fence && held.lease.owner == lease.owner && !held.released
        };
        if held.as_ref().is_some_and(is_mine) {
            Ok(())
        } else {
            Err(crate::is_over(lease))
        }
    }

    fn hold(&self, lease: &StoreLease, released: bool) -> Result<()> {
        let lease = lease.clone();
        write_json(&self.directory.join(FILE), &LeaseFile { lease, released })
    }
}
