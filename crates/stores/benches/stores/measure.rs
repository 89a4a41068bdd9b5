//! Measures one store after the other.

#[path = "../../tests/it/servers/ports.rs"]
mod ports;
#[path = "../../tests/it/servers/postgres.rs"]
mod postgresql;
#[path = "../../tests/it/servers/redis.rs"]
mod redis;
#[path = "../../tests/it/servers/seaweedfs.rs"]
mod seaweedfs;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::memory::InMemory;
use outrigger_protocol::RawJson;
use outrigger_sessions::store::{Result, SessionKey, SessionStore};
use outrigger_stores::{BucketStore, DirectoryStore, PostgresStore, RedisStore, S3, SqliteStore};

/// How large an entry is, about: a message of a few sentences.
const ENTRY: usize = 1024;

/// How many sessions are appended to at once.
const SESSIONS: usize = 16;

/// How many rounds there are of each, of which the best counts.
const ROUNDS: usize = 3;

/// What came of a store; appends are a second, loads MB a second.
struct Measured {
    name: &'static str,
    alone: f64,
    together: f64,
    load: f64,
}

/// Runs all of it.
#[tokio::main]
pub(crate) async fn run() {
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().map_or(default, |it| {
            it.parse().unwrap_or_else(|_| panic!("{name} is no number"))
        })
    };
    let (appends, mib) = (
        number("OUTRIGGER_BENCH_APPENDS", 300),
        number("OUTRIGGER_BENCH_MIB", 32),
    );
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load {}", load.trim());
    let place = tempfile::tempdir().unwrap();
    let mut all = vec![plain(place.path(), appends, mib)];
    let directory = DirectoryStore::open(place.path().join("directory")).unwrap();
    all.push(measure("directory", directory, appends, mib).await);
    let sqlite = SqliteStore::open(place.path().join("sessions.db")).unwrap();
    all.push(measure("sqlite", sqlite, appends, mib).await);
    {
        let server = postgresql::postgres();
        let config = format!(
            "host={} user=postgres dbname=postgres",
            server.directory.path().display()
        );
        let store = ready(async || PostgresStore::connect(&config).await).await;
        all.push(measure("postgres", store, appends, mib).await);
    }
    {
        let server = redis::redis(&["--appendonly", "yes", "--appendfsync", "always"]);
        let url = server.redis_url();
        let store = ready(async || RedisStore::connect(&url).await).await;
        all.push(measure("redis, appendfsync always", store, appends, mib).await);
    }
    let memory = BucketStore::open(Arc::new(InMemory::new()), "").await.unwrap();
    all.push(measure("bucket in memory", memory, appends, mib).await);
    {
        let server = seaweedfs::start();
        let s3 = S3::new(seaweedfs::BUCKET)
            .endpoint(&server.url)
            .credentials(seaweedfs::KEY, seaweedfs::SECRET);
        let store = ready(async || s3.open().await).await;
        all.push(measure("bucket of SeaweedFS", store, appends, mib).await);
    }
    show(&all);
}

/// Connects, as soon as the server is ready.
async fn ready<S>(connect: impl AsyncFn() -> Result<S>) -> S {
    for _ in 0..200 {
        if let Ok(store) = connect().await {
            return store;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    connect()
        .await
        .unwrap_or_else(|error| panic!("{}", error.chain()))
}

/// A file that is appended to and synced, and read as a whole: what nothing that lasts can beat on this disk.
fn plain(place: &Path, appends: usize, mib: usize) -> Measured {
    let path = place.join("plain.jsonl");
    let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let mut append = |entries: &[RawJson]| {
        let text: String = entries.iter().flat_map(|entry| [entry.get(), "\n"]).collect();
        file.write_all(text.as_bytes()).unwrap();
        file.sync_data().unwrap();
    };
    let alone = best(|| {
        let begun = Instant::now();
        for n in 0..appends {
            append(&[entry("plain", n)]);
        }
        begun.elapsed()
    });
    for batch in batches(mib) {
        append(&batch);
    }
    let length = fs::metadata(&path).unwrap().len() as f64;
    let load = best(|| {
        let begun = Instant::now();
        assert!(!std::hint::black_box(fs::read(&path).unwrap()).is_empty());
        begun.elapsed()
    });
    Measured {
        name: "a file, fdatasync after each",
        alone: appends as f64 / alone.as_secs_f64(),
        together: f64::NAN,
        load: length / 1e6 / load.as_secs_f64(),
    }
}

async fn measure(name: &'static str, store: impl SessionStore, appends: usize, mib: usize) -> Measured {
    let store: Arc<dyn SessionStore> = Arc::new(store);
    let mut alone = Duration::MAX;
    let mut together = Duration::MAX;
    for round in 0..ROUNDS {
        let begun = Instant::now();
        one_after_the_other(&*store, format!("alone-{round}"), appends).await;
        alone = alone.min(begun.elapsed());
        let begun = Instant::now();
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let (store, id) = (Arc::clone(&store), format!("together-{round}-{session}"));
                tokio::spawn(async move { one_after_the_other(&*store, id, appends / 4).await })
            })
            .collect();
        for session in sessions {
            session.await.unwrap();
        }
        together = together.min(begun.elapsed());
    }
    let long = SessionKey::new("bench", "long");
    let mut bytes = 0;
    for batch in batches(mib) {
        bytes += batch.iter().map(|entry| entry.get().len() + 1).sum::<usize>();
        store.append(&long, &batch).await.unwrap();
    }
    let mut load = Duration::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        assert!(!store.load(&long).await.unwrap().unwrap().is_empty());
        load = load.min(begun.elapsed());
    }
    println!("{name} is measured");
    Measured {
        name,
        alone: appends as f64 / alone.as_secs_f64(),
        together: (appends / 4 * SESSIONS) as f64 / together.as_secs_f64(),
        load: bytes as f64 / 1e6 / load.as_secs_f64(),
    }
}

async fn one_after_the_other(store: &dyn SessionStore, id: String, appends: usize) {
    let key = SessionKey::new("bench", &id);
    for n in 0..appends {
        store
            .append(&key, &[entry(&id, n)])
            .await
            .unwrap_or_else(|error| panic!("{}", error.chain()));
    }
}

fn best(mut round: impl FnMut() -> Duration) -> Duration {
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}

fn entry(id: &str, n: usize) -> RawJson {
    let text = "x".repeat(ENTRY - 80);
    let entry =
        format!(r#"{{"type":"user","uuid":"{id}-{n}","message":{{"role":"user","content":"{text}"}}}}"#);
    RawJson::from_text(entry).unwrap()
}

/// A session of so many MiB, as an import brings it: a MiB at a time.
fn batches(mib: usize) -> impl Iterator<Item = Vec<RawJson>> {
    let of_each = (1 << 20) / ENTRY;
    (0..mib).map(move |batch| (0..of_each).map(|n| entry("long", batch * of_each + n)).collect())
}

fn show(all: &[Measured]) {
    println!(
        "\n| store | appends/s, one session | x directory | appends/s, {SESSIONS} sessions | x directory | load, MB/s | x directory |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let directory = &all[1];
    let cell = |value: f64, against: f64| {
        if value.is_nan() {
            return "| | ".to_owned();
        }
        format!("| {value:.0} | {:.2} ", value / against)
    };
    for one in all {
        println!(
            "| {} {}{}{}|",
            one.name,
            cell(one.alone, directory.alone),
            cell(one.together, directory.together),
            cell(one.load, directory.load)
        );
    }
}
