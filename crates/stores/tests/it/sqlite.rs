//! The SQLite store.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use outrigger_protocol::RawJson;
use outrigger_sessions::store::{LeaseStore as _, SessionKey, SessionStore, conformance};
use outrigger_stores::SqliteStore;

use crate::damaged;
use crate::owners::desk::StoreDesk;
use crate::owners::{self, processes};
use crate::resent;

fn open(directory: &Path) -> SqliteStore {
    SqliteStore::open(directory.join("sessions.db")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_every_contract() {
    let places = std::sync::Mutex::new(Vec::new());
    let make = || {
        let place = tempfile::tempdir().unwrap();
        let store = open(place.path());
        places.lock().unwrap().push(place);
        std::future::ready(Ok(Arc::new(store) as Arc<dyn SessionStore>))
    };
    let report = conformance::check(make).await.unwrap();
    assert!(report.skipped.is_empty(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_took_is_there_when_it_is_opened_again() {
    let place = tempfile::tempdir().unwrap();
    let key = SessionKey::new("p", "s");
    let entries = [RawJson::from_text(r#"{"uuid":"a"}"#).unwrap()];
    open(place.path()).append(&key, &entries).await.unwrap();
    #[cfg(unix)]
    for entry in std::fs::read_dir(place.path()).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}: only this user reads it", entry.file_name());
    }
    assert_eq!(SqliteStore::migrate(place.path().join("sessions.db")).unwrap(), 1);
    let again = open(place.path());
    assert_eq!(again.load(&key).await.unwrap().unwrap(), entries);
    // Two that have it open at once see each other's.
    let other = open(place.path());
    other
        .append(&key, &[RawJson::from_text(r#"{"uuid":"b"}"#).unwrap()])
        .await
        .unwrap();
    assert_eq!(again.load(&key).await.unwrap().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_makes_no_session_older() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    let key = SessionKey::new("p", "s");
    let entry = [RawJson::from_text("{}").unwrap()];
    store.append(&key, &entry).await.unwrap();
    // As if it had been written in the year 2100.
    let file = rusqlite::Connection::open(place.path().join("sessions.db")).unwrap();
    file.execute("UPDATE transcript SET mtime = 4102444800000", [])
        .unwrap();
    store.append(&key, &entry).await.unwrap();
    assert_eq!(
        store.list_sessions("p").await.unwrap()[0].mtime,
        4_102_444_800_001
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_fails_in_the_middle_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    let fails = "CREATE TRIGGER fails BEFORE INSERT ON entry WHEN NEW.uuid = 'b' BEGIN SELECT RAISE(ABORT, 'no b'); END";
    let file = rusqlite::Connection::open(place.path().join("sessions.db")).unwrap();
    file.execute_batch(fails).unwrap();
    let entry = |uuid: &str| RawJson::from_text(format!(r#"{{"uuid":"{uuid}"}}"#)).unwrap();
    let (key, other) = (SessionKey::new("p", "s"), SessionKey::new("p", "other"));
    let (entries, others) = ([entry("a"), entry("b")], [entry("a")]);
    // Others that are written together with it are not touched.
    let (failed, done) = tokio::join!(store.append(&key, &entries), store.append(&other, &others));
    assert!(failed.unwrap_err().chain().contains("no b"));
    done.unwrap();
    assert_eq!(store.load(&key).await.unwrap(), None);
    assert_eq!(store.load(&other).await.unwrap().unwrap(), others);
    assert_eq!(store.list_sessions("p").await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_was_dropped_and_is_sent_again_is_done_once() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    resent::dropped_anywhere_and_sent_again(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_was_dropped_and_deleted_is_done_again_when_it_is_sent_again() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    resent::deleted_and_sent_again(&store).await;
}

#[tokio::test]
async fn a_lease_whose_acquisition_was_dropped_is_given_back() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path());
    let key = SessionKey::new("project", "session");
    let ttl = std::time::Duration::from_secs(600);
    // Another process writes.
    let file = rusqlite::Connection::open(place.path().join("sessions.db")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    {
        let mut late = store.acquire(&key, "one", ttl);
        assert!(late.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
        assert!(late.as_mut().now_or_never().is_none());
    }
    file.execute_batch("COMMIT").unwrap();
    store.acquire(&key, "two", ttl).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_summary_fails_no_append_and_no_list() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("sessions.db");
    let sql = |text: &str, parameters: &[&dyn rusqlite::ToSql]| {
        let connection = rusqlite::Connection::open(&file).unwrap();
        assert_eq!(connection.execute(text, parameters).unwrap(), 1);
    };
    damaged::a_summary_fails_nothing(
        &damaged::DAMAGED,
        async || Arc::new(open(place.path())) as Arc<dyn SessionStore>,
        async |damaged| {
            let text = "UPDATE transcript SET summary = CAST(?1 AS TEXT) WHERE session_id = ?2";
            sql(text, &[&damaged, &damaged::SESSION]);
        },
    )
    .await;
    // Neither does a time that is none.
    sql(
        "UPDATE transcript SET mtime = -1 WHERE session_id = ?1",
        &[&damaged::SESSION],
    );
    let store = open(place.path());
    assert_eq!(store.list_sessions(damaged::PROJECT).await.unwrap().len(), 2);
    let key = SessionKey::new(damaged::PROJECT, damaged::SESSION);
    store
        .append(&key, &[RawJson::from_text("{}").unwrap()])
        .await
        .unwrap();
    assert_eq!(
        store
            .list_session_summaries(damaged::PROJECT)
            .await
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_database_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("x.db");
    std::fs::write(
        &file,
        "this is no database, and long enough to be seen as none".repeat(10),
    )
    .unwrap();
    let error = SqliteStore::open(&file).unwrap_err();
    assert!(error.to_string().contains("x.db"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_that_are_killed_lose_and_double_nothing() {
    let place = tempfile::tempdir().unwrap();
    let stores = (0..3)
        .map(|_| Arc::new(open(place.path())) as Arc<dyn SessionStore>)
        .collect();
    owners::kill_at_random(stores, std::time::Duration::from_millis(5)).await;
}

fn desk(file: &str) -> StoreDesk {
    StoreDesk::open(async { SqliteStore::open(file) })
}

#[test]
fn owner_process() {
    processes::be(desk);
}

#[test]
fn owners_whose_processes_are_killed_or_stopped_do_everything_once() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("sessions.db");
    processes::trial(module_path!(), file.to_str().unwrap(), desk);
}
