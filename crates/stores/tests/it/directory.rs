//! The store of plain files.

use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{LeaseStore as _, SessionKey, SessionStore, conformance};
use outrigger_stores::DirectoryStore;

use crate::damaged;
use crate::owners::desk::StoreDesk;
use crate::owners::{self, processes};
use crate::resent;

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

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn what_it_makes_is_for_this_user_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open(place.path().join("a/sessions")).unwrap();
    let key = SessionKey::new("p", "s");
    store.append(&key, &entry("1")).await.unwrap();
    let part = key.with_subpath("subagents/agent-1");
    store.append(&part, &entry("2")).await.unwrap();
    store.acquire(&key, "me", Duration::from_secs(60)).await.unwrap();
    let (mut left, mut files) = (vec![place.path().join("a")], 0);
    while let Some(path) = left.pop() {
        let metadata = std::fs::metadata(&path).unwrap();
        let private = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.permissions().mode() & 0o777, private, "{path:?}");
        match std::fs::read_dir(&path) {
            Ok(entries) => left.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) => files += 1,
        }
    }
    assert_eq!(files, 5, "transcript, part, summary, lease and lock");
}

/// As names of files, capitals take three bytes each.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_many_capitals_is_kept_apart_and_listed() {
    let place = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open(place.path()).unwrap();
    let long = "MyCompanyProductLine".repeat(12);
    let (project, other) = (&long[..207], &long[..206]);
    let sessions = ["s".to_owned(), long.clone(), format!("{long}s")];
    for project in [project, other] {
        for session in &sessions {
            let key = SessionKey::new(project, session);
            for key in [
                key.clone(),
                key.with_subpath("a"),
                key.with_subpath(&long),
                key.with_subpath(format!("{long}/a")),
            ] {
                store.append(&key, &entry(&key.to_string())).await.unwrap();
            }
        }
    }
    let store = DirectoryStore::open(place.path()).unwrap();
    for project in [project, other] {
        let mut listed: Vec<_> = store
            .list_sessions(project)
            .await
            .unwrap()
            .into_iter()
            .map(|one| one.session_id)
            .collect();
        listed.sort();
        assert_eq!(
            listed,
            [sessions[1].as_str(), sessions[2].as_str(), sessions[0].as_str()]
        );
        assert_eq!(store.list_session_summaries(project).await.unwrap().len(), 3);
        for session in &sessions {
            let key = SessionKey::new(project, session);
            assert_eq!(store.load(&key).await.unwrap().unwrap(), entry(&key.to_string()));
            let mut parts = store.list_subkeys(&key).await.unwrap();
            parts.sort();
            assert_eq!(parts, [long.clone(), format!("{long}/a"), "a".to_owned()]);
            let part = key.with_subpath(&long);
            assert_eq!(
                store.load(&part).await.unwrap().unwrap(),
                entry(&part.to_string())
            );
            store.delete(&part).await.unwrap();
            assert_eq!(store.load(&part).await.unwrap(), None);
            assert_eq!(store.list_subkeys(&key).await.unwrap().len(), 2);
        }
    }
    let key = SessionKey::new(project, &long);
    let lease = store.acquire(&key, "me", Duration::from_secs(60)).await.unwrap();
    store.append_fenced(&lease, &key, &entry("x")).await.unwrap();
    store.delete(&key).await.unwrap();
    assert_eq!(store.load(&key).await.unwrap(), None);
    assert!(store.list_subkeys(&key).await.unwrap().is_empty());
    // What no path can have is refused for good.
    let endless = SessionKey::new("X".repeat(5000), "s");
    let error = store.append(&endless, &entry("a")).await.unwrap_err();
    assert!(!error.may_pass(), "{error}");
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

/// Summaries save lists the reading of transcripts; what is in them is in those, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_cannot_be_read_or_written_fails_no_append_and_no_list() {
    let place = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open(place.path()).unwrap();
    let (key, other) = (SessionKey::new("p", "s"), SessionKey::new("p", "other"));
    store.append(&other, &entry("o")).await.unwrap();
    let title = |title: &str| [RawJson::from_text(format!(r#"{{"customTitle":"{title}"}}"#)).unwrap()];
    let listed = async || {
        let list = store.list_session_summaries("p").await.unwrap();
        list.into_iter().map(|one| one.session_id).collect::<Vec<_>>()
    };
    store.append(&key, &title("1")).await.unwrap();
    let summary = place.path().join("p/s/summary.json");

    // It cannot be read, and nothing can be put in its place.
    std::fs::remove_file(&summary).unwrap();
    std::fs::create_dir(&summary).unwrap();
    store.append(&key, &title("2")).await.unwrap();
    assert_eq!(listed().await, ["other"]);
    std::fs::remove_dir(&summary).unwrap();

    for damaged in [&b"{"[..], b"\xff"] {
        std::fs::write(&summary, damaged).unwrap();
        assert_eq!(listed().await, ["other"]);
        assert_eq!(store.list_sessions("p").await.unwrap().len(), 2);
    }
    store.append(&key, &title("3")).await.unwrap();
    let stored = store.load(&key).await.unwrap().unwrap();
    assert_eq!(stored, [title("1"), title("2"), title("3")].concat());
    let summaries = store.list_session_summaries("p").await.unwrap();
    let made = summaries.iter().find(|one| one.session_id == "s").unwrap();
    assert!(made.data.get().contains(r#""customTitle":"3""#), "{made:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_summary_fails_no_append_and_no_list() {
    let place = tempfile::tempdir().unwrap();
    let session = place.path().join(damaged::PROJECT).join(damaged::SESSION);
    damaged::a_summary_fails_nothing(
        &damaged::DAMAGED,
        async || Arc::new(DirectoryStore::open(place.path()).unwrap()) as Arc<dyn SessionStore>,
        async |damaged| {
            let length = std::fs::metadata(session.join("main.jsonl")).unwrap().len();
            let begin = format!(r#"{{"length":{length},"data":"#);
            let summary = [begin.as_bytes(), damaged, b"}"].concat();
            std::fs::write(session.join("summary.json"), summary).unwrap();
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_a_crash_cut_anywhere_is_there_whole_or_not_at_all() {
    let place = tempfile::tempdir().unwrap();
    let key = SessionKey::new("p", "s");
    let batches = [
        entry("a").to_vec(),
        [entry("b"), entry("c"), entry("d")].concat(),
        entry("e").to_vec(),
        [entry("f"), entry("g")].concat(),
    ];
    let file = place.path().join("p/s/main.jsonl");
    let store = DirectoryStore::open(place.path()).unwrap();
    let mut lengths = vec![0];
    for batch in &batches {
        store.append(&key, batch).await.unwrap();
        lengths.push(std::fs::metadata(&file).unwrap().len() as usize);
    }
    let content = std::fs::read(&file).unwrap();
    for cut in 0..=content.len() {
        std::fs::write(&file, &content[..cut]).unwrap();
        let store = DirectoryStore::open(place.path()).unwrap();
        let whole = lengths[1..].iter().filter(|length| **length <= cut).count();
        let mut wanted = batches[..whole].concat();
        assert_eq!(
            store.load(&key).await.unwrap().unwrap_or_default(),
            wanted,
            "cut after {cut} bytes"
        );
        // Sent again, since nobody was told that it is stored.
        let next = batches.get(whole).cloned().unwrap_or_else(|| entry("h").to_vec());
        store.append(&key, &next).await.unwrap();
        wanted.extend(next);
        assert_eq!(
            store.load(&key).await.unwrap().unwrap(),
            wanted,
            "cut after {cut} bytes"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_was_dropped_and_is_sent_again_is_done_once() {
    let place = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open(place.path()).unwrap();
    resent::dropped_anywhere_and_sent_again(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_was_dropped_and_deleted_is_done_again_when_it_is_sent_again() {
    let place = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open(place.path()).unwrap();
    resent::deleted_and_sent_again(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_program_wrote_anew_is_not_taken_for_what_was_there() {
    let place = tempfile::tempdir().unwrap();
    let key = SessionKey::new("p", "s");
    let one = DirectoryStore::open(place.path()).unwrap();
    let two = DirectoryStore::open(place.path()).unwrap();
    // Less than there was, as much, and more.
    for names in [&["x"][..], &["x", "y"], &["x", "y", "z"]] {
        two.delete(&key).await.unwrap();
        for name in ["a", "b"] {
            one.append(&key, &entry(name)).await.unwrap();
        }
        two.delete(&key).await.unwrap();
        let mut wanted = Vec::new();
        for name in names {
            two.append(&key, &entry(name)).await.unwrap();
            wanted.extend(entry(name));
        }
        one.append(&key, &entry("a")).await.unwrap();
        wanted.extend(entry("a"));
        assert_eq!(one.load(&key).await.unwrap().unwrap(), wanted);
    }
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
    processes::trial(module_path!(), place.path().to_str().unwrap(), desk);
}
