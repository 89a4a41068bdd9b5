//! The store in a bucket, in memory and against a real server.

mod faulty;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use faulty::{Fault, Faulty};
use futures_util::TryStreamExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use outrigger_needs::needs;
use outrigger_protocol::RawJson;
use outrigger_sessions::store::{SessionKey, SessionStore, StoreErrorKind, conformance};
use outrigger_stores::{BucketStore, S3};

use crate::damaged;
use crate::owners::desk::StoreDesk;
use crate::owners::{self, processes};
use crate::resent;
use crate::servers::seaweedfs;

fn raw(text: &str) -> RawJson {
    RawJson::from_text(text).unwrap()
}

fn entry(uuid: &str) -> RawJson {
    raw(&format!(r#"{{"uuid":"{uuid}","customTitle":"{uuid}"}}"#))
}

fn key() -> SessionKey {
    SessionKey::new("p", "s")
}

async fn open(objects: &Arc<InMemory>) -> BucketStore {
    BucketStore::open(Arc::clone(objects) as Arc<dyn ObjectStore>, "")
        .await
        .unwrap()
}

async fn faulty(objects: &Arc<InMemory>, fault: Fault) -> (BucketStore, Arc<Faulty>) {
    let objects = Faulty::new(objects, fault);
    let store = BucketStore::open(Arc::clone(&objects) as Arc<dyn ObjectStore>, "").await;
    (store.unwrap(), objects)
}

/// The names of all objects that have this in them.
async fn names(objects: &InMemory, with: &str) -> Vec<Path> {
    let all: Vec<_> = objects.list(None).try_collect().await.unwrap();
    let names = all.into_iter().map(|meta| meta.location);
    names.filter(|name| name.as_ref().contains(with)).collect()
}

fn s3(server: &seaweedfs::Server) -> S3 {
    S3::new(seaweedfs::BUCKET)
        .endpoint(&server.url)
        .credentials(seaweedfs::KEY, seaweedfs::SECRET)
}

/// Opens it, as soon as the server is ready.
async fn open_s3(s3: &S3) -> BucketStore {
    for _ in 0..100 {
        if let Ok(store) = s3.open().await {
            return store;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    s3.open().await.unwrap()
}

async fn keeps_every_contract<M, F>(make: M)
where
    M: Fn() -> F,
    F: Future<Output = outrigger_sessions::store::Result<Arc<dyn SessionStore>>>,
{
    let checked = conformance::check(make).await;
    let report = checked.unwrap_or_else(|broken| panic!("{broken}"));
    assert!(report.skipped.is_empty(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_every_contract_in_memory() {
    keeps_every_contract(|| async {
        Ok(Arc::new(open(&Arc::new(InMemory::new())).await) as Arc<dyn SessionStore>)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_every_contract_on_a_server() {
    needs!(outrigger_needs::seaweedfs());
    let server = seaweedfs::start();
    let stores = AtomicUsize::new(0);
    keeps_every_contract(|| async {
        let prefix = format!("store-{}", stores.fetch_add(1, Ordering::Relaxed));
        Ok(Arc::new(open_s3(&s3(&server).prefix(prefix)).await) as Arc<dyn SessionStore>)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_that_are_killed_lose_and_double_nothing_in_memory() {
    let objects = Arc::new(InMemory::new());
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(Arc::new(open(&objects).await) as Arc<dyn SessionStore>);
    }
    owners::kill_at_random(stores, Duration::from_millis(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_that_are_killed_lose_and_double_nothing_on_a_server() {
    needs!(outrigger_needs::seaweedfs());
    let server = seaweedfs::start();
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(Arc::new(open_s3(&s3(&server)).await) as Arc<dyn SessionStore>);
    }
    owners::kill_at_random(stores, Duration::from_millis(100)).await;
}

#[tokio::test]
async fn an_object_store_that_keeps_no_conditions_is_refused() {
    for fault in [Fault::CreatesAlways, Fault::ReplacesAlways] {
        let objects = Arc::new(InMemory::new());
        let error = BucketStore::open(Faulty::new(&objects, fault), "")
            .await
            .unwrap_err();
        assert_eq!(*error.kind(), StoreErrorKind::Unsupported, "{fault:?}: {error}");
        assert!(
            names(&objects, "").await.is_empty(),
            "something stays of the trial"
        );
    }
    let error = BucketStore::open(Arc::new(InMemory::new()), "a//b")
        .await
        .unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::Invalid);
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_not_done_twice() {
    for fault in [Fault::AnswerLost, Fault::AnswerBroken] {
        let objects = Arc::new(InMemory::new());
        let (store, _) = faulty(&objects, fault).await;
        // Nothing tells these from each other.
        let entries = [raw(r#"{"n":1}"#)];
        for n in 1..=20 {
            store.append(&key(), &entries).await.unwrap();
            let stored = store.load(&key()).await.unwrap().unwrap();
            assert_eq!(stored.len(), n, "{fault:?}");
        }
        let leases = store.leases().unwrap();
        let lease = leases
            .acquire(&key(), "one", Duration::from_secs(60))
            .await
            .unwrap();
        leases.append_fenced(&lease, &key(), &entries).await.unwrap();
        assert_eq!(
            leases.renew(&lease, Duration::from_secs(60)).await.unwrap().fence,
            1
        );
        assert_eq!(store.load(&key()).await.unwrap().unwrap().len(), 21);
    }
}

/// What has no uuid is not doubled by a program that got no answer and sends it again, and is added again when it is meant.
#[tokio::test(start_paused = true)]
async fn an_append_that_is_sent_again_by_the_program_is_done_once() {
    for fault in [Fault::Away, Fault::DoneInSilence] {
        let (store, objects) = faulty(&Arc::new(InMemory::new()), fault).await;
        let leases = store.leases().unwrap();
        let lease = leases
            .acquire(&key(), "one", Duration::from_secs(600))
            .await
            .unwrap();
        for key in [key(), key().with_subpath("part")] {
            for round in 1..4 {
                let entries = [raw(r#"{"customTitle":"x"}"#)];
                objects.is_away.store(true, Ordering::Relaxed);
                let append = leases.append_fenced(&lease, &key, &entries);
                let appended = tokio::time::timeout(Duration::from_secs(1), append).await;
                assert_eq!(appended.is_err(), fault == Fault::DoneInSilence);
                assert!(!matches!(appended, Ok(Ok(()))), "{fault:?}");
                objects.is_away.store(false, Ordering::Relaxed);
                // The same store writes something else in between.
                leases.renew(&lease, Duration::from_secs(600)).await.unwrap();
                for more in 0..2 {
                    store.append(&key, &entries).await.unwrap();
                    let stored = store.load(&key).await.unwrap().unwrap();
                    assert_eq!(stored.len(), 2 * round - 1 + more, "{fault:?} {key}");
                }
            }
        }
    }
    resent::dropped_anywhere_and_sent_again(&open(&Arc::new(InMemory::new())).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up() {
    let (store, _) = faulty(&Arc::new(InMemory::new()), Fault::Silent).await;
    let begun = tokio::time::Instant::now();
    let error = store.append(&key(), &[entry("a")]).await.unwrap_err();
    assert!(
        error.may_pass() && error.chain().contains("no answer within 30 s"),
        "{}",
        error.chain()
    );
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_a_dead_owner_left_is_removed_by_the_next() {
    let objects = Arc::new(InMemory::new());
    let (silent, _) = faulty(&objects, Fault::Silent).await;
    let store = open(&objects).await;
    let leases = store.leases().unwrap();
    let lease = leases.acquire(&key(), "one", Duration::ZERO).await.unwrap();
    leases.append_fenced(&lease, &key(), &[entry("a")]).await.unwrap();
    // It dies between its part and the head, and so does the one after it.
    for entry in [entry("b"), entry("c")] {
        let (key, entries) = (key(), [entry]);
        let dying = silent.leases().unwrap().append_fenced(&lease, &key, &entries);
        let cut = tokio::time::timeout(Duration::from_millis(50), dying);
        assert!(cut.await.is_err());
    }
    assert_eq!(names(&objects, "/parts/").await.len(), 3);
    assert_eq!(store.load(&key()).await.unwrap().unwrap(), [entry("a")]);
    let next = leases.acquire(&key(), "two", Duration::ZERO).await.unwrap();
    assert_eq!(names(&objects, "/parts/").await.len(), 1);
    leases.append_fenced(&next, &key(), &[entry("b")]).await.unwrap();
    assert_eq!(
        store.load(&key()).await.unwrap().unwrap(),
        [entry("a"), entry("b")]
    );
}

#[tokio::test]
async fn many_appends_make_few_objects_and_every_one_is_read() {
    let objects = Arc::new(InMemory::new());
    let (writer, reader) = (open(&objects).await, open(&objects).await);
    let mut written = Vec::new();
    for n in 0..600 {
        let new = [entry(&format!("{n}")), raw(&format!(r#"{{"n":"\ud800 {n}"}}"#))];
        writer.append(&key(), &new).await.unwrap();
        written.extend(new);
        if n % 97 == 0 {
            assert_eq!(reader.load(&key()).await.unwrap().unwrap(), written);
        }
    }
    let parts = names(&objects, "/parts/").await.len();
    assert!(parts <= 28, "{parts} parts");
    assert_eq!(reader.load(&key()).await.unwrap().unwrap(), written);
    // Another process knows what is there, and adds only what is new.
    let again = [entry("17"), entry("600"), entry("17")];
    open(&objects).await.append(&key(), &again).await.unwrap();
    written.push(entry("600"));
    assert_eq!(writer.load(&key()).await.unwrap().unwrap(), written);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_a_beginning_of_what_is_written_meanwhile() {
    let objects = Arc::new(InMemory::new());
    let (writer, reader) = (open(&objects).await, open(&objects).await);
    let writing = tokio::spawn(async move {
        for n in 0..400 {
            writer.append(&key(), &[raw(&format!("{n}"))]).await.unwrap();
        }
    });
    let mut seen = 0;
    while !writing.is_finished() {
        let entries = reader.load(&key()).await.unwrap().unwrap_or_default();
        assert!(entries.len() >= seen, "{} after {seen}", entries.len());
        seen = entries.len();
        assert!(
            entries
                .iter()
                .enumerate()
                .all(|(n, entry)| entry.get() == n.to_string())
        );
    }
    writing.await.unwrap();
    assert_eq!(reader.load(&key()).await.unwrap().unwrap().len(), 400);
}

#[tokio::test]
async fn a_large_append_is_cut_into_parts_and_is_still_one() {
    let objects = Arc::new(InMemory::new());
    let store = open(&objects).await;
    let entries: Vec<_> = (0..40)
        .map(|n| raw(&format!(r#"{{"uuid":"{n}","x":"{}"}}"#, "y".repeat(1 << 20))))
        .collect();
    store.append(&key(), &entries).await.unwrap();
    assert_eq!(names(&objects, "/parts/").await.len(), 6);
    assert_eq!(store.load(&key()).await.unwrap().unwrap(), entries);
}

#[tokio::test]
async fn of_a_deleted_session_only_its_numbers_stay() {
    let objects = Arc::new(InMemory::new());
    let store = open(&objects).await;
    let part = key().with_subpath("subagents/agent-1");
    let fence = |store: BucketStore| async move {
        let lease = store
            .leases()
            .unwrap()
            .acquire(&key(), "one", Duration::ZERO)
            .await;
        lease.unwrap().fence
    };
    assert_eq!(fence(store.clone()).await, 1);
    for key in [&key(), &part] {
        store.append(key, &[entry("secret")]).await.unwrap();
    }
    store.delete(&part).await.unwrap();
    assert_eq!(names(&objects, "/parts/").await.len(), 1);
    store.delete(&key()).await.unwrap();
    let left = names(&objects, "").await;
    assert_eq!(left, [Path::from("projects/p/heads/s.json")]);
    let head = objects.get(&left[0]).await.unwrap().bytes().await.unwrap();
    assert!(!String::from_utf8_lossy(&head).contains("secret"));
    assert_eq!(fence(store).await, 2);
}

#[tokio::test]
async fn a_list_reads_what_has_changed_since_the_last() {
    let objects = Arc::new(InMemory::new());
    let (store, counted) = faulty(&objects, Fault::None).await;
    let writer = open(&objects).await;
    for n in 0..30 {
        let key = SessionKey::new("p", n.to_string());
        writer.append(&key, &[entry("a")]).await.unwrap();
    }
    let count = async || {
        let before = counted.gets.load(Ordering::Relaxed);
        assert_eq!(store.list_session_summaries("p").await.unwrap().len(), 30);
        counted.gets.load(Ordering::Relaxed) - before
    };
    assert_eq!(count().await, 30);
    assert_eq!(count().await, 0);
    writer
        .append(&SessionKey::new("p", "7"), &[entry("b")])
        .await
        .unwrap();
    assert_eq!(count().await, 1);
}

#[tokio::test]
async fn who_has_loaded_a_session_adds_to_it_without_reading_it_again() {
    let objects = Arc::new(InMemory::new());
    open(&objects).await.append(&key(), &[entry("a")]).await.unwrap();
    let (store, counted) = faulty(&objects, Fault::None).await;
    store.load(&key()).await.unwrap();
    let before = counted.gets.load(Ordering::Relaxed);
    store.append(&key(), &[entry("a"), entry("b")]).await.unwrap();
    // Its head alone; and from then on nothing.
    assert_eq!(counted.gets.load(Ordering::Relaxed) - before, 1);
    store.append(&key(), &[entry("c")]).await.unwrap();
    assert_eq!(counted.gets.load(Ordering::Relaxed) - before, 1);
    assert_eq!(
        store.load(&key()).await.unwrap().unwrap(),
        [entry("a"), entry("b"), entry("c")]
    );
}

#[tokio::test]
async fn what_another_process_has_done_meanwhile_is_not_overlooked() {
    let objects = Arc::new(InMemory::new());
    let (one, two) = (open(&objects).await, open(&objects).await);
    // Nothing of this is new, as far as the first knows; but it was deleted.
    one.append(&key(), &[entry("a")]).await.unwrap();
    two.delete(&key()).await.unwrap();
    one.append(&key(), &[entry("a")]).await.unwrap();
    assert_eq!(two.load(&key()).await.unwrap().unwrap(), [entry("a")]);
    // Nor is this; but the session has another owner.
    let acquire = async |store: &BucketStore, owner: &str| {
        let lease = store
            .leases()
            .unwrap()
            .acquire(&key(), owner, Duration::ZERO)
            .await;
        lease.unwrap()
    };
    let old = acquire(&one, "one").await;
    one.leases()
        .unwrap()
        .append_fenced(&old, &key(), &[entry("a")])
        .await
        .unwrap();
    let new = acquire(&two, "two").await;
    let late = one
        .leases()
        .unwrap()
        .append_fenced(&old, &key(), &[entry("a")])
        .await;
    assert!(late.unwrap_err().is_fenced());
    // A lease is worth the same in each process.
    one.leases()
        .unwrap()
        .append_fenced(&new, &key(), &[entry("b")])
        .await
        .unwrap();
    assert_eq!(two.load(&key()).await.unwrap().unwrap(), [entry("a"), entry("b")]);
}

#[tokio::test]
async fn what_is_not_as_it_was_written_is_an_error() {
    let objects = Arc::new(InMemory::new());
    let store = open(&objects).await;
    store.append(&key(), &[entry("a")]).await.unwrap();
    let part = names(&objects, "/parts/").await.remove(0);
    let text = objects.get(&part).await.unwrap().bytes().await.unwrap();
    let wrong = [
        text.slice(1..),
        text.iter().rev().copied().collect(),
        [&text[..], &text[..]].concat().into(),
        // As many entries, and as many bytes, but not both.
        "{}\n".into(),
        format!("{{}}\n{}\n", "1".repeat(text.len() - 4)).into(),
    ];
    for wrong in wrong {
        objects.put(&part, PutPayload::from(wrong)).await.unwrap();
        let error = open(&objects).await.load(&key()).await.unwrap_err();
        assert_eq!(*error.kind(), StoreErrorKind::Damaged, "{error}");
        assert!(error.to_string().contains(part.as_ref()), "{error}");
    }
    let head = names(&objects, "/heads/").await.remove(0);
    let other = SessionKey::new(key().project_key, "other");
    store.append(&other, &[entry("a")]).await.unwrap();
    for (wrong, kind) in [
        ("nothing", StoreErrorKind::Damaged),
        (r#"{"format":2}"#, StoreErrorKind::Invalid),
    ] {
        objects.put(&head, PutPayload::from(wrong)).await.unwrap();
        let store = open(&objects).await;
        let error = store.load(&key()).await.unwrap_err();
        assert_eq!(*error.kind(), kind, "{error}");
        assert!(error.to_string().contains(head.as_ref()), "{error}");
        // A damaged session is listed, so that it is found, and without a summary; the others are as they were.
        if kind == StoreErrorKind::Damaged {
            assert_eq!(store.list_sessions(&other.project_key).await.unwrap().len(), 2);
            let summaries = store.list_session_summaries(&other.project_key).await.unwrap();
            assert_eq!(summaries.len(), 1);
            assert_eq!(summaries[0].session_id, "other");
        }
    }
}

#[tokio::test]
async fn a_damaged_summary_fails_no_append_and_no_list() {
    let objects = Arc::new(InMemory::new());
    let is_json = |damaged: &&&[u8]| serde_json::from_slice::<serde_json::Value>(damaged).is_ok();
    let damages: Vec<&[u8]> = damaged::DAMAGED.iter().filter(is_json).copied().collect();
    assert_eq!(damages.len(), 3);
    damaged::a_summary_fails_nothing(
        &damages,
        async || Arc::new(open(&objects).await) as Arc<dyn SessionStore>,
        async |damaged| {
            let heads = names(&objects, "/heads/").await;
            let head = heads.iter().find(|head| head.as_ref().contains(damaged::SESSION));
            let head = head.unwrap();
            let text = objects.get(head).await.unwrap().bytes().await.unwrap();
            let mut text: serde_json::Value = serde_json::from_slice(&text).unwrap();
            text["summary"] = serde_json::from_slice(damaged).unwrap();
            objects
                .put(head, PutPayload::from(text.to_string()))
                .await
                .unwrap();
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_can_not_be_used_says_why() {
    needs!(outrigger_needs::seaweedfs());
    let server = seaweedfs::start();
    open_s3(&s3(&server)).await;
    let error = s3(&server)
        .credentials(seaweedfs::KEY, "wrong")
        .open()
        .await
        .unwrap_err();
    assert!(
        error.chain().contains("SignatureDoesNotMatch"),
        "{}",
        error.chain()
    );
    assert!(!format!("{:?}", s3(&server)).contains(seaweedfs::SECRET));
    // Nobody speaks TLS there.
    let error = s3(&server)
        .endpoint(server.url.replace("http:", "https:"))
        .open()
        .await
        .unwrap_err();
    assert!(error.may_pass(), "{}", error.chain());
}

fn desk(url: &str) -> StoreDesk {
    let s3 = S3::new(seaweedfs::BUCKET)
        .endpoint(url)
        .credentials(seaweedfs::KEY, seaweedfs::SECRET);
    StoreDesk::open(async move { s3.open().await })
}

#[test]
fn owner_process() {
    processes::be(desk);
}

#[test]
fn owners_whose_processes_are_killed_or_stopped_do_everything_once() {
    needs!(outrigger_needs::seaweedfs());
    let server = seaweedfs::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(open_s3(&s3(&server)));
    processes::trial(module_path!(), &server.url, desk);
}
