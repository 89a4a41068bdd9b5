//! A store that two processes share: one file for each transcript, and one for each lease.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outrigger::protocol::RawJson;
use outrigger::sessions::store::{
    BoxFuture, LeaseStore, Result, SessionKey, SessionStore, StoreError, StoreErrorKind, StoreLease,
};
use serde::{Deserialize, Serialize};

pub(crate) struct FileStore(PathBuf);

#[derive(Serialize, Deserialize)]
struct Held {
    lease: StoreLease,
    released: bool,
}

impl FileStore {
    pub(crate) fn at(directory: &Path) -> Self {
        std::fs::create_dir_all(directory).unwrap();
        Self(directory.to_owned())
    }

    /// One at a time.
    fn lock(&self) -> File {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.0.join("lock"));
        let file = file.unwrap();
        file.lock().unwrap();
        file
    }

    fn transcript(&self, key: &SessionKey) -> PathBuf {
        self.0.join(key.to_string().replace('/', "_"))
    }

    fn held(&self, session: &str) -> Option<Held> {
        let text = std::fs::read(self.0.join(format!("{session}.lease"))).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    fn hold(&self, held: &Held) {
        let file = self.0.join(format!("{}.lease", held.lease.session_id));
        std::fs::write(file, serde_json::to_vec(held).unwrap()).unwrap();
    }

    fn mine(&self, lease: &StoreLease) -> Result<Held> {
        let held = self.held(&lease.session_id);
        held.filter(|held| held.lease.fence == lease.fence && !held.released)
            .ok_or_else(|| StoreError::fenced("the lease is over"))
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

impl SessionStore for FileStore {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.transcript(key));
        let mut file = file.unwrap();
        for entry in entries {
            writeln!(file, "{}", entry.get()).unwrap();
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        let text = std::fs::read_to_string(self.transcript(key)).ok();
        let entries = text.map(|text| {
            text.lines()
                .map(|line| RawJson::from_text(line).unwrap())
                .collect()
        });
        Box::pin(std::future::ready(Ok(entries)))
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for FileStore {
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        let _lock = self.lock();
        let old = self.held(&key.session_id);
        let taken = match &old {
            Some(held) if !held.released && held.lease.expires_at > now_ms() && held.lease.owner != owner => {
                let kind = StoreErrorKind::Held {
                    owner: held.lease.owner.clone(),
                    until: held.lease.expires_at,
                };
                Err(StoreError::new(kind, "leased"))
            }
            old => {
                let fence = old.as_ref().map_or(0, |held| held.lease.fence) + 1;
                let lease = StoreLease::new(key, owner, fence, now_ms() + ttl.as_millis() as u64);
                self.hold(&Held {
                    lease: lease.clone(),
                    released: false,
                });
                Ok(lease)
            }
        };
        Box::pin(std::future::ready(taken))
    }

    fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>> {
        let _lock = self.lock();
        let renewed = self.mine(lease).map(|mut held| {
            held.lease.expires_at = now_ms() + ttl.as_millis() as u64;
            self.hold(&held);
            held.lease
        });
        Box::pin(std::future::ready(renewed))
    }

    fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>> {
        let _lock = self.lock();
        if let Ok(mut held) = self.mine(lease) {
            held.released = true;
            self.hold(&held);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn append_fenced<'a>(
        &'a self,
        lease: &'a StoreLease,
        key: &'a SessionKey,
        entries: &'a [RawJson],
    ) -> BoxFuture<'a, Result<()>> {
        let _lock = self.lock();
        match self.mine(lease) {
            Ok(_) => self.append(key, entries),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
