//! Sessions whose stores go away and come back, at random: nothing is lost, and nothing is out of order.
//!
//! The CLI is a simulated one that keeps transcripts as the real one does; [`real`] has the real one.

mod real;
mod trial;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger_sessions::store::conformance::{Fault, FaultyStore};
use outrigger_sessions::store::{MemoryStore, SessionStore};
use outrigger_stores::{BucketStore, DirectoryStore, PostgresStore, RedisOptions, S3, SqliteStore};
use trial::{Outage, Rng, trial};

use crate::servers::{postgres, redis, seaweedfs};

/// An outage on command, of any kind.
struct Told(FaultyStore, &'static [Fault]);

impl Outage for Told {
    fn begin(&mut self, rng: &mut Rng) {
        self.0.away(Some(self.1[rng.below(self.1.len())]));
    }

    fn end(&mut self) {
        self.0.away(None);
    }
}

/// Those that cost no time that really passes.
const QUICK: &[Fault] = &[Fault::Before, Fault::After, Fault::Half];

async fn told(store: Arc<dyn SessionStore>, faults: &'static [Fault], seed: u64) {
    let faulty = FaultyStore::new(store);
    let mut outage = Told(faulty.clone(), faults);
    trial(Arc::new(faulty.clone()), &mut outage, seed).await;
    assert!(faulty.struck() > 0, "seed {seed}: there was no outage");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_in_every_way_loses_nothing() {
    for seed in 0..40 {
        told(Arc::new(MemoryStore::new()), &Fault::ALL, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_directory_loses_nothing() {
    for seed in 100..104 {
        let place = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(place.path().join("sessions")).unwrap();
        told(Arc::new(store), QUICK, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_loses_nothing() {
    for seed in 200..204 {
        let place = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(place.path().join("sessions.db")).unwrap();
        told(Arc::new(store), QUICK, seed).await;
    }
}

/// A server that is stopped and started.
struct Stopped<S, B: FnMut(&mut S), E: FnMut(&mut S)>(S, B, E);

impl<S: Send, B: FnMut(&mut S) + Send, E: FnMut(&mut S) + Send> Outage for Stopped<S, B, E> {
    fn begin(&mut self, _: &mut Rng) {
        (self.1)(&mut self.0);
    }

    fn end(&mut self) {
        (self.2)(&mut self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_that_is_stopped_and_started_loses_nothing() {
    outrigger_needs::needs!(outrigger_needs::postgres());
    let server = postgres::postgres();
    let config = format!(
        "host={} user=postgres dbname=postgres",
        server.directory.path().display()
    );
    let mut outage = Stopped(server, postgres::Server::stop, postgres::Server::start_again);
    for seed in 300..303 {
        let store = trial::again(|| PostgresStore::connect(&config)).await;
        trial(Arc::new(store), &mut outage, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_that_is_killed_and_started_loses_nothing() {
    outrigger_needs::needs!(outrigger_needs::redis());
    let server = redis::redis(&["--appendonly", "yes", "--appendfsync", "always"]);
    let url = server.redis_url();
    let mut outage = Stopped(server, redis::Server::stop, redis::Server::start_again);
    let stores = AtomicUsize::new(0);
    for seed in 400..403 {
        let prefix = format!("s{}", stores.fetch_add(1, Ordering::Relaxed));
        let store = RedisOptions::new().prefix(prefix).connect(&url).await.unwrap();
        trial(Arc::new(store), &mut outage, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_hangs_loses_nothing() {
    outrigger_needs::needs!(outrigger_needs::seaweedfs());
    let server = seaweedfs::start();
    let s3 = S3::new(seaweedfs::BUCKET)
        .endpoint(&server.url)
        .credentials(seaweedfs::KEY, seaweedfs::SECRET);
    let store: BucketStore = trial::again(|| s3.open()).await;
    let mut outage = Stopped(
        server,
        |server: &mut seaweedfs::Server| server.pause(),
        |server: &mut seaweedfs::Server| server.go_on(),
    );
    trial(Arc::new(store), &mut outage, 500).await;
    tokio::time::sleep(Duration::ZERO).await;
}
