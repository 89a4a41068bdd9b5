//! Owners of a session that die, sleep too long and come back, while others take it over.

pub(crate) mod desk;
pub(crate) mod processes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{SessionKey, SessionStore, StoreError};

use self::processes::Dice;

/// How many owners want the session, and how often each of them begins anew, at least and at most: a busy machine needs more lives.
const OWNERS: u64 = 6;
const LIVES: u64 = 12;
const MOST_LIVES: u64 = 50 * LIVES;

/// What an owner knows to be stored: the store said so. By the number of the lease under which it was written.
#[derive(Debug, Default)]
struct Acknowledged(BTreeMap<u64, Vec<String>>);

impl Acknowledged {
    fn entries(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    fn is_enough(&self) -> bool {
        self.entries() > 50 && self.0.len() > 10
    }
}

/// Has owners fight for one session through these stores, which are all the same one, and looks at what came of it: each
/// acknowledged entry is there once, and the entries of two leases never mix, so that no two owners drove it at once. `lease` is how long
/// one lasts: a few times as long as an append takes.
pub(crate) async fn kill_at_random(stores: Vec<Arc<dyn SessionStore>>, lease: Duration) {
    let key = SessionKey::new("p", "contested");
    let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));
    let fenced = Arc::new(Mutex::new(0));
    let mut owners = tokio::task::JoinSet::new();
    for owner in 0..OWNERS {
        let store = Arc::clone(&stores[owner as usize % stores.len()]);
        let (key, acknowledged, fenced) = (key.clone(), Arc::clone(&acknowledged), Arc::clone(&fenced));
        owners.spawn(async move {
            let mut dice = Dice(owner * 7919 + 17);
            for life in 0..MOST_LIVES {
                if life >= LIVES && acknowledged.lock().unwrap().is_enough() {
                    break;
                }
                let name = format!("{owner}-{life}");
                let living = own(
                    &*store,
                    &key,
                    name,
                    &acknowledged,
                    &fenced,
                    (dice.below(u64::MAX), lease),
                );
                // Some are killed in the middle of whatever they do.
                let lifetime = lease / 5 + lease * dice.below(12) as u32;
                let _ = tokio::time::timeout(lifetime, living).await;
            }
        });
    }
    while let Some(done) = owners.join_next().await {
        done.unwrap();
    }

    let stored = stores[0].load(&key).await.unwrap().unwrap_or_default();
    let stored: Vec<(u64, String)> = stored.iter().map(parts).collect();
    let acknowledged = acknowledged.lock().unwrap();
    let all: Vec<&String> = acknowledged.0.values().flatten().collect();
    assert!(
        acknowledged.is_enough(),
        "too little happened: {} entries under {} leases",
        acknowledged.entries(),
        acknowledged.0.len()
    );
    for uuid in &all {
        let times = stored.iter().filter(|(_, stored)| stored == *uuid).count();
        assert_eq!(times, 1, "{uuid} is stored {times} times");
    }
    let fences: Vec<u64> = stored.iter().map(|(fence, _)| *fence).collect();
    assert!(fences.is_sorted(), "owners wrote at the same time: {fences:?}");
    let fenced = *fenced.lock().unwrap();
    assert!(
        fenced > 0,
        "nobody was overtaken in {} leases, so nothing was tried",
        acknowledged.0.len()
    );
}

/// One life of an owner: takes the session when it can be had, writes, and now and then sleeps longer than its lease lasts, and
/// then goes on as if nothing had happened.
async fn own(
    store: &dyn SessionStore,
    key: &SessionKey,
    name: String,
    acknowledged: &Mutex<Acknowledged>,
    fenced: &Mutex<u64>,
    (seed, ttl): (u64, Duration),
) {
    let mut dice = Dice(seed | 1);
    let leases = store.leases().expect("it has leases");
    let lease = loop {
        match leases.acquire(key, &name, ttl).await {
            Ok(lease) => break lease,
            Err(error) => assert!(error.is_held(), "{}", error.chain()),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    for n in 0.. {
        let uuid = format!("{name}-{n}");
        let entry = format!(r#"{{"type":"x","fence":{},"uuid":"{uuid}"}}"#, lease.fence);
        let entry = [RawJson::from_text(entry).unwrap()];
        // Sent twice now and then, as after a lost answer.
        for _ in 0..1 + dice.below(2) {
            match leases.append_fenced(&lease, key, &entry).await {
                Ok(()) => {}
                Err(error) => return overtaken(&error, fenced),
            }
        }
        acknowledged
            .lock()
            .unwrap()
            .0
            .entry(lease.fence)
            .or_default()
            .push(uuid);
        match dice.below(8) {
            0 => tokio::time::sleep(ttl * 3).await,
            1 => match leases.renew(&lease, ttl).await {
                Ok(_) => {}
                Err(error) => return overtaken(&error, fenced),
            },
            2 if dice.below(4) == 0 => return leases.release(&lease).await.unwrap(),
            _ => {}
        }
    }
}

fn overtaken(error: &StoreError, fenced: &Mutex<u64>) {
    assert!(error.is_fenced(), "{}", error.chain());
    *fenced.lock().unwrap() += 1;
}

fn parts(entry: &RawJson) -> (u64, String) {
    let value = entry.to_value().unwrap();
    (
        value["fence"].as_u64().unwrap(),
        value["uuid"].as_str().unwrap().to_owned(),
    )
}
