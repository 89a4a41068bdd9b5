//! The store of plain files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod owners;

use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{SessionKey, SessionStore, conformance};
use outrigger_stores::DirectoryStore;
use owners::desk::StoreDesk;
use owners::processes;

fn entry(uuid: &str) -> [RawJson; 1] {
    [RawJson::from_text(format!(r#"{{"uuid":"{uuid}","customTitle":"{uuid}"}}"#)).unwrap()]
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_every_contract() {
    let places = std::sync::Mutex::new(Vec::new());
    let make = || {
        let place = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open(place.path().join("sessions")).unwrap();
        places.lock().unwrap().push(place);
        std::future::ready(Ok(Arc::new(store) as Arc<dyn SessionStore>))
    };
    let report = conformance::check(make)
        .await
        .unwrap_or_else(|broken| panic!("{broken}"));
    assert!(report.skipped.is_empty(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_of_an_append_is_cut_off_by_the_next() {
    let place = tempfile::tempdir().unwrap();
    let key = SessionKey::new("p", "s");
    let store = DirectoryStore::open(place.path()).unwrap();
    store.append(&key, &entry("a")).await.unwrap();
    let file = place.path().join("p/s/main.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{whole}{{\"uuid\":\"b\",\"cus")).unwrap();
    for store in [store, DirectoryStore::open(place.path()).unwrap()] {
        assert_eq!(store.load(&key).await.unwrap().unwrap()[0], entry("a")[0]);
        // Its summary is of less than is there, and not told.
        store.append(&key, &entry("b")).await.unwrap();
        assert_eq!(
            store.load(&key).await.unwrap().unwrap(),
            [entry("a"), entry("b")].concat()
        );
        let summaries = store.list_session_summaries("p").await.unwrap();
        assert!(
            summaries[0].data.get().contains(r#""customTitle":"b""#),
            "{summaries:?}"
        );
    }
    // An append that was stored, whose summary was not: it is made anew.
    let more = format!(
        "{}{}\n",
        std::fs::read_to_string(&file).unwrap(),
        entry("c")[0].get()
    );
    std::fs::write(&file, more).unwrap();
    let store = DirectoryStore::open(place.path()).unwrap();
    assert!(store.list_session_summaries("p").await.unwrap().is_empty());
    store
        .append(&key, &[RawJson::from_text(r#"{"type":"x"}"#).unwrap()])
        .await
        .unwrap();
    let summaries = store.list_session_summaries("p").await.unwrap();
    assert!(
        summaries[0].data.get().contains(r#""customTitle":"c""#),
        "{summaries:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_that_are_killed_lose_and_double_nothing() {
    let place = tempfile::tempdir().unwrap();
    let open = || Arc::new(DirectoryStore::open(place.path()).unwrap()) as Arc<dyn SessionStore>;
    owners::kill_at_random(vec![open(), open(), open()], Duration::from_millis(20)).await;
}

fn desk(directory: &str) -> StoreDesk {
    StoreDesk::open(async { DirectoryStore::open(directory) })
}

#[test]
fn owner_process() {
    processes::be(desk);
}

#[test]
fn owners_whose_processes_are_killed_or_stopped_do_everything_once() {
    let place = tempfile::tempdir().unwrap();
    processes::trial(place.path().to_str().unwrap(), desk);
}
