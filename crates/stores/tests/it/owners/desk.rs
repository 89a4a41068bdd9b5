//! A store, as owners that are processes see it.

use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{LeaseStore, Result, SessionKey, SessionStore, StoreLease};
use tokio::runtime::Runtime;

use super::processes::{Desk, Record};

/// A session in a store.
pub(crate) struct StoreDesk {
    runtime: Runtime,
    store: Arc<dyn SessionStore>,
    key: SessionKey,
}

impl StoreDesk {
    /// In the store that this opens.
    pub(crate) fn open<S: SessionStore>(store: impl Future<Output = Result<S>>) -> Self {
        let runtime = Runtime::new().unwrap();
        let store = runtime.block_on(store);
        Self {
            store: Arc::new(store.unwrap_or_else(|error| panic!("{}", error.chain()))),
            runtime,
            key: SessionKey::new("p", "contested"),
        }
    }

    fn leases(&self) -> &dyn LeaseStore {
        self.store.leases().expect("it has leases")
    }
}

/// Whether it is as it should be, and not over.
fn holds<T>(done: Result<T>) -> bool {
    match done {
        Ok(_) => true,
        Err(error) if error.is_fenced() => false,
        Err(error) => panic!("{}", error.chain()),
    }
}

impl Desk for StoreDesk {
    type Lease = StoreLease;

    const LEASE: Duration = Duration::from_millis(60);

    fn take(&mut self, owner: &str) -> Option<(StoreLease, u64)> {
        let taking = self.leases().acquire(&self.key, owner, Self::LEASE);
        match self.runtime.block_on(taking) {
            Ok(lease) => {
                let fence = lease.fence;
                Some((lease, fence))
            }
            Err(error) if error.is_held() => None,
            Err(error) => panic!("{}", error.chain()),
        }
    }

    fn renew(&mut self, lease: &StoreLease) -> bool {
        holds(self.runtime.block_on(self.leases().renew(lease, Self::LEASE)))
    }

    fn add(&mut self, lease: &StoreLease, record: &Record) -> bool {
        let Record { fence, number, uuid } = record;
        let entry = format!(r#"{{"type":"x","fence":{fence},"number":{number},"uuid":"{uuid}"}}"#);
        let entry = [RawJson::from_text(entry).unwrap()];
        holds(
            self.runtime
                .block_on(self.leases().append_fenced(lease, &self.key, &entry)),
        )
    }

    fn records(&mut self) -> Vec<Record> {
        let entries = self.runtime.block_on(self.store.load(&self.key)).unwrap();
        let record = |entry: RawJson| {
            let value = entry.to_value().unwrap();
            Record {
                fence: value["fence"].as_u64().unwrap(),
                number: value["number"].as_u64().unwrap(),
                uuid: value["uuid"].as_str().unwrap().to_owned(),
            }
        };
        entries.unwrap_or_default().into_iter().map(record).collect()
    }
}
