//! A lease on disk, accessed with the rights of the CLI's user.

use outrigger_sessions::Error as FilesError;
use outrigger_sessions::lease::{self as disk, Owner};

use crate::options::RunAs;
use crate::options::handover::as_user;

/// A lease in the config directory of the CLI's user, who may plant links there: all access has that user's rights.
pub(super) struct OnDisk {
    /// The lease, held until this is dropped.
    lease: Option<disk::Lease>,
    user: Option<RunAs>,
}

impl OnDisk {
    pub(super) fn take(claim: disk::LeaseClaim<'_>, user: Option<RunAs>) -> Result<Self, FilesError> {
        let lease = Some(with_rights_of(user, || claim.take())?);
        Ok(Self { lease, user })
    }

    pub(super) fn fence(&self) -> u64 {
        self.lease.as_ref().map_or(0, |lease| lease.fence().0)
    }

    /// Whether the lease is still held.
    pub(super) fn check(&self) -> Result<(), FilesError> {
        match &self.lease {
            Some(lease) => with_rights_of(self.user, || lease.check()),
            None => Ok(()),
        }
    }

    pub(super) fn wanted_by(&self) -> Result<Option<Owner>, FilesError> {
        match &self.lease {
            Some(lease) => with_rights_of(self.user, || lease.wanted_by()),
            None => Ok(None),
        }
    }

    pub(super) fn release(mut self) -> Result<(), FilesError> {
        match self.lease.take() {
            Some(lease) => with_rights_of(self.user, || lease.release()),
            None => Ok(()),
        }
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            // If it fails, the lock is free all the same.
            let _ = as_user(self.user, || {
                drop(lease);
                Ok(())
            });
        }
    }
}

fn with_rights_of<T: Send>(
    user: Option<RunAs>,
    work: impl FnOnce() -> Result<T, FilesError> + Send,
) -> Result<T, FilesError> {
    let done = as_user(user, || Ok(work()));
    done.unwrap_or_else(|source| {
        Err(FilesError::Io {
            action: "act as the CLI's user in",
            path: "outrigger/leases".into(),
            source,
        })
    })
}
