//! The Redis store, against real servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger_needs::needs;
use outrigger_protocol::RawJson;
use outrigger_sessions::store::{SessionKey, SessionStore, StoreErrorKind, conformance};
use outrigger_stores::{RedisOptions, RedisStore};

use crate::damaged;
use crate::owners::desk::StoreDesk;
use crate::owners::{self, processes};
use crate::resent;
use crate::servers::redis::{self as servers, Server};

fn entry(uuid: &str) -> [RawJson; 1] {
    [RawJson::from_text(format!(r#"{{"uuid":"{uuid}","customTitle":"{uuid}"}}"#)).unwrap()]
}

fn cli(server: &Server, arguments: &[&str]) -> String {
    server.cli(arguments)
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_every_contract() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let url = server.redis_url();
    let stores = AtomicUsize::new(0);
    let make = || async {
        let prefix = format!("s{}", stores.fetch_add(1, Ordering::Relaxed));
        let store = RedisOptions::new().prefix(prefix).connect(&url).await?;
        Ok(Arc::new(store) as Arc<dyn SessionStore>)
    };
    let report = conformance::check(make)
        .await
        .unwrap_or_else(|broken| panic!("{broken}"));
    assert!(report.skipped.is_empty(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_every_contract_in_a_cluster() {
    needs!(outrigger_needs::redis());
    let nodes = servers::redis_cluster();
    let urls: Vec<String> = nodes.iter().map(Server::redis_url).collect();
    let stores = AtomicUsize::new(0);
    let make = || async {
        let prefix = format!("s{}", stores.fetch_add(1, Ordering::Relaxed));
        let store = RedisOptions::new().prefix(prefix).connect_cluster(&urls).await?;
        Ok(Arc::new(store) as Arc<dyn SessionStore>)
    };
    let report = conformance::check(make)
        .await
        .unwrap_or_else(|broken| panic!("{broken}"));
    assert!(report.skipped.is_empty(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_that_are_killed_lose_and_double_nothing() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let mut stores = Vec::new();
    for _ in 0..3 {
        let store = RedisStore::connect(&server.redis_url()).await.unwrap();
        stores.push(Arc::new(store) as Arc<dyn SessionStore>);
    }
    owners::kill_at_random(stores, Duration::from_millis(20)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_is_set_once_and_newer_ones_are_left_alone() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let url = server.redis_url();
    // All at once, as when many machines start a new version.
    let (one, two) = tokio::join!(RedisStore::connect(&url), RedisStore::connect(&url));
    assert_eq!(one.unwrap().migrate().await.unwrap(), 1);
    two.unwrap();
    assert_eq!(cli(&server, &["GET", "outrigger:version"]), "1");
    cli(&server, &["SET", "outrigger:version", "99"]);
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("99"), "{error}");
    cli(&server, &["SET", "outrigger:version", "x"]);
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::Damaged);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_took_is_there_after_the_server_was_killed() {
    needs!(outrigger_needs::redis());
    let mut server = servers::redis(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = RedisStore::connect(&server.redis_url()).await.unwrap();
    let key = SessionKey::new("p", "s");
    let leases = store.leases().unwrap();
    let lease = leases.acquire(&key, "one", Duration::ZERO).await.unwrap();
    leases.append_fenced(&lease, &key, &entry("a")).await.unwrap();
    server.kill_and_start_again();
    // The same store goes on, and the server knows none of its scripts any more.
    let loaded = loop {
        match store.load(&key).await {
            Ok(loaded) => break loaded,
            Err(error) => assert!(error.may_pass(), "{}", error.chain()),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(loaded.unwrap(), entry("a"));
    let next = leases.acquire(&key, "two", Duration::ZERO).await.unwrap();
    assert!(next.fence > lease.fence);
    let late = leases.append_fenced(&lease, &key, &entry("late")).await;
    assert!(late.unwrap_err().is_fenced());
    leases.append_fenced(&next, &key, &entry("b")).await.unwrap();
    assert_eq!(
        store.load(&key).await.unwrap().unwrap(),
        [entry("a"), entry("b")].concat()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_programs_see_each_others_writes_and_deletions() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let one = RedisStore::connect(&server.redis_url()).await.unwrap();
    let two = RedisStore::connect(&server.redis_url()).await.unwrap();
    let key = SessionKey::new("p", "s");
    let titles = async || {
        let summaries = one.list_session_summaries("p").await.unwrap();
        let titles = summaries.iter().map(|summary| summary.data.get().to_owned());
        titles.collect::<Vec<_>>().concat()
    };
    // What each of them remembers is wrong each time.
    one.append(&key, &entry("a")).await.unwrap();
    two.append(&key, &entry("b")).await.unwrap();
    one.append(&key, &entry("c")).await.unwrap();
    assert_eq!(two.load(&key).await.unwrap().unwrap().len(), 3);
    assert!(titles().await.contains(r#""customTitle":"c""#));
    two.delete(&key).await.unwrap();
    assert!(one.list_sessions("p").await.unwrap().is_empty());
    one.append(&key, &entry("a")).await.unwrap();
    assert_eq!(two.list_sessions("p").await.unwrap().len(), 1);
    two.append(&key, &entry("a")).await.unwrap();
    assert_eq!(one.load(&key).await.unwrap().unwrap(), entry("a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_a_project_is_mended() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let url = server.redis_url();
    let key = SessionKey::new("p", "s");
    RedisStore::connect(&url)
        .await
        .unwrap()
        .append(&key, &entry("a"))
        .await
        .unwrap();
    // As if a program had ended before it listed the session, and before it took another from the list.
    let born = cli(&server, &["HGET", "outrigger:{p/s}:info", "born"]);
    let listing = format!("{born}/s");
    assert_eq!(cli(&server, &["SREM", "outrigger:{p}:sessions", &listing]), "1");
    cli(
        &server,
        &["SADD", "outrigger:{p}:sessions", "0123/gone", "4567/s"],
    );
    let next = RedisStore::connect(&url).await.unwrap();
    assert!(next.list_sessions("p").await.unwrap().is_empty());
    assert_eq!(cli(&server, &["SCARD", "outrigger:{p}:sessions"]), "0");
    // The same entry sent once more is enough.
    next.append(&key, &entry("a")).await.unwrap();
    assert_eq!(next.list_sessions("p").await.unwrap().len(), 1);
    assert_eq!(cli(&server, &["SMEMBERS", "outrigger:{p}:sessions"]), listing);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_done_once_the_replicas_have_it() {
    needs!(outrigger_needs::redis());
    let server = servers::redis_with_port();
    let url = server.redis_url();
    let options = RedisOptions::new().replicas(1).patience(Duration::from_secs(2));
    // It has none, and the version can't be written safely.
    let error = options.connect(&url).await.unwrap_err();
    assert!(error.to_string().contains("only 0 of 1 replicas"), "{error}");
    let replica = servers::redis(&[]);
    servers::follow(&replica, &server);
    let store = options
        .patience(Duration::from_secs(30))
        .connect(&url)
        .await
        .unwrap();
    let key = SessionKey::new("p", "s");
    for n in 0..50 {
        store.append(&key, &entry(&n.to_string())).await.unwrap();
        let length = cli(&replica, &["LLEN", "outrigger:{p/s}:entries"]);
        assert_eq!(length, (n + 1).to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_to_a_cluster_is_done_once_the_nodes_replicas_have_it() {
    needs!(outrigger_needs::redis());
    let [node, replica] = servers::redis_cluster_with_replica();
    let options = RedisOptions::new().replicas(1).patience(Duration::from_secs(6));
    let store = options.connect_cluster([node.redis_url()]).await.unwrap();
    let key = SessionKey::new("p", "s");
    store.append(&key, &entry("a")).await.unwrap();
    assert_eq!(cli(&replica, &["DBSIZE"]), cli(&node, &["DBSIZE"]));
    replica.pause();
    let error = store.append(&key, &entry("b")).await.unwrap_err();
    replica.go_on();
    assert!(error.to_string().contains("only 0 of 1 replicas"), "{error}");
    // In doubt it is sent again, which is no harm.
    store.append(&key, &entry("b")).await.unwrap();
    assert_eq!(store.load(&key).await.unwrap().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_would_lose_sessions_is_refused() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let error = RedisStore::connect(&server.redis_url()).await.unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("allkeys-lru"), "{error}");
    cli(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let store = RedisStore::connect(&server.redis_url()).await.unwrap();
    // Full, it takes nothing, or all.
    cli(&server, &["CONFIG", "SET", "maxmemory", "1"]);
    let key = SessionKey::new("p", "s");
    let error = store.append(&key, &entry("a")).await.unwrap_err();
    assert!(error.may_pass(), "{}", error.chain());
    assert_eq!(store.load(&key).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_tls_has_to_prove_who_it_is() {
    needs!(outrigger_needs::redis_with_tls());
    let server = servers::redis_with_tls();
    let url = server.redis_url();
    assert!(url.starts_with("rediss://"), "{url}");
    let authorities = server.directory.path().join("authority.pem");
    let store = RedisOptions::new()
        .authorities(&authorities)
        .connect(&url)
        .await
        .unwrap();
    let key = SessionKey::new("p", "s");
    store.append(&key, &entry("a")).await.unwrap();
    assert_eq!(store.load(&key).await.unwrap().unwrap(), entry("a"));
    // Nobody else says that it is the right one.
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert!(error.chain().contains("certificate"), "{}", error.chain());
    // It is not what it was asked for by another name.
    let other = url.replace("localhost", "127.0.0.1");
    let error = RedisOptions::new()
        .authorities(&authorities)
        .connect(&other)
        .await
        .unwrap_err();
    assert!(error.chain().contains("certificate"), "{}", error.chain());
    let error = RedisOptions::new()
        .authorities("/nowhere.pem")
        .connect(&url)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("/nowhere.pem"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nodes_of_a_cluster_with_tls_have_to_prove_who_they_are() {
    needs!(outrigger_needs::redis_with_tls());
    let nodes = servers::redis_cluster_with_tls();
    let urls: Vec<String> = nodes.iter().map(Server::redis_url).collect();
    let authorities = nodes[0].directory.path().join("authority.pem");
    let options = RedisOptions::new().authorities(&authorities);
    let store = options.connect_cluster(&urls).await.unwrap();
    // On all of them.
    for session in 0..20 {
        let key = SessionKey::new("p", session.to_string());
        store.append(&key, &entry("a")).await.unwrap();
    }
    assert_eq!(store.list_sessions("p").await.unwrap().len(), 20);
    for node in &nodes {
        assert_ne!(cli(node, &["DBSIZE"]), "0");
    }
    let options = RedisOptions::new().patience(Duration::from_secs(3));
    options.connect_cluster(&urls).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_not_waited_for() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let options = RedisOptions::new().patience(Duration::from_millis(500));
    let store = options.connect(&server.redis_url()).await.unwrap();
    server.pause();
    let begun = std::time::Instant::now();
    let error = store.load(&SessionKey::new("p", "s")).await.unwrap_err();
    assert!(error.may_pass(), "{}", error.chain());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    server.go_on();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_an_error() {
    needs!(outrigger_needs::redis());
    let error = RedisStore::connect("redis+unix:///nowhere/redis.sock")
        .await
        .unwrap_err();
    assert!(error.may_pass(), "{}", error.chain());
    let error = RedisStore::connect("http://user:secret@host").await.unwrap_err();
    assert!(!error.chain().contains("secret"), "{}", error.chain());
    let server = servers::redis(&[]);
    let braces = RedisOptions::new()
        .prefix("{x}")
        .connect(&server.redis_url())
        .await;
    assert_eq!(*braces.unwrap_err().kind(), StoreErrorKind::Invalid);
}

fn desk(url: &str) -> StoreDesk {
    StoreDesk::open(RedisStore::connect(url))
}

#[test]
fn owner_process() {
    processes::be(desk);
}

#[test]
fn owners_whose_processes_are_killed_or_stopped_do_everything_once() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    processes::trial(module_path!(), &server.redis_url(), desk);
}

/// Runs one of the store's scripts by hand.
fn script(server: &Server, name: &str, keys: &[&str], arguments: &[&str]) -> String {
    let file = format!("{}/src/redis/{name}.lua", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).unwrap();
    let count = keys.len().to_string();
    cli(server, &[&["EVAL", &text, &count], keys, arguments].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_is_sent_again_by_the_client_is_done_once() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let store = RedisStore::connect(&server.redis_url()).await.unwrap();
    let key = SessionKey::new("p", "s");
    let name = "0123456789abcdef0123456789abcdef";
    for key in [key.clone(), key.with_subpath("part")] {
        let part = key.subpath.as_deref().unwrap_or_default();
        let of_part = if key.is_main() { "" } else { ":part" };
        let keys =
            ["lease", "info", "entries", "uuids"].map(|name| format!("outrigger:{{p/s}}:{name}{of_part}"));
        let [lease, info, entries, uuids] = keys.each_ref().map(String::as_str);
        let keys = [lease, info, entries, uuids, "outrigger:{p/s}:parts"];
        let append = ["", "", name, "", "{}", part, "", r#"{"n":1}"#];
        for _ in 0..2 {
            assert_eq!(script(&server, "append", &keys, &append), format!("ok\n{name}"));
        }
        // Also after a few of others.
        for _ in 0..3 {
            store
                .append(&key, &[RawJson::from_text("{}").unwrap()])
                .await
                .unwrap();
        }
        script(&server, "append", &keys, &append);
        assert_eq!(store.load(&key).await.unwrap().unwrap().len(), 4, "{key}");
    }
}

/// What has no uuid is not doubled by a program that got no answer and sends it again, and is added again when it is meant.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_is_sent_again_by_the_program_is_done_once() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let options = RedisOptions::new().patience(Duration::from_millis(500));
    let store = options.connect(&server.redis_url()).await.unwrap();
    let key = SessionKey::new("p", "s");
    let title = |title: &str| [RawJson::from_text(format!(r#"{{"customTitle":"{title}"}}"#)).unwrap()];
    // It is stored, and then the list cannot be written.
    cli(&server, &["SET", "outrigger:{p}:sessions", "in the way"]);
    let error = store.append(&key, &title("a")).await.unwrap_err();
    assert!(error.may_pass(), "{error}");
    cli(&server, &["DEL", "outrigger:{p}:sessions"]);
    store.append(&key, &title("a")).await.unwrap();
    assert_eq!(store.load(&key).await.unwrap().unwrap(), title("a"));
    assert_eq!(store.list_sessions("p").await.unwrap().len(), 1);

    // It is on its way, and the answer does not come; or whoever sends it does not wait for one.
    for key in [key.clone(), key.with_subpath("x")] {
        for is_dropped in [false, true] {
            store.append(&key, &title("b")).await.unwrap();
            let before = store.load(&key).await.unwrap().unwrap().len();
            server.pause();
            let wait = Duration::from_millis(if is_dropped { 100 } else { 10_000 });
            let sent = title("c");
            let appended = tokio::time::timeout(wait, store.append(&key, &sent)).await;
            assert_eq!(appended.is_err(), is_dropped);
            assert!(appended.is_err() || appended.unwrap().is_err());
            server.go_on();
            for more in 1..3 {
                store.append(&key, &title("c")).await.unwrap();
                let stored = store.load(&key).await.unwrap().unwrap();
                assert_eq!(stored.len(), before + more, "{key} {is_dropped}");
            }
        }
    }
    let summaries = store.list_session_summaries("p").await.unwrap();
    assert!(
        summaries[0].data.get().contains(r#""customTitle":"c""#),
        "{summaries:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_was_dropped_and_is_sent_again_is_done_once() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let store = RedisStore::connect(&server.redis_url()).await.unwrap();
    resent::dropped_anywhere_and_sent_again(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_comes_while_its_session_is_deleted_does_not_stay_alone() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let store = RedisStore::connect(&server.redis_url()).await.unwrap();
    let key = SessionKey::new("p", "s");
    for part in ["one", "two"] {
        store.append(&key.with_subpath(part), &entry("a")).await.unwrap();
    }
    let keys = [
        "info",
        "entries",
        "uuids",
        "parts",
        "info:one",
        "entries:one",
        "uuids:one",
    ];
    let keys = keys.map(|key| format!("outrigger:{{p/s}}:{key}"));
    let keys = keys.each_ref().map(String::as_str);
    // Somebody who saw only one of them, or another one.
    for seen in [&["one"][..], &["one", "three"]] {
        assert_eq!(script(&server, "delete", &keys, seen), "changed");
    }
    assert_eq!(store.list_subkeys(&key).await.unwrap().len(), 2);
    store.delete(&key).await.unwrap();
    // Nothing is left but the version.
    assert_eq!(cli(&server, &["KEYS", "*"]), "outrigger:version");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_written_anew_while_it_is_loaded_is_not_mixed() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let store = RedisStore::connect(&server.redis_url()).await.unwrap();
    let key = SessionKey::new("p", "s");
    // Of several pages.
    let generation = |n: u64| {
        let text = format!(r#"{{"n":{n},"text":"{}"}}"#, "y".repeat(400 << 10));
        vec![RawJson::from_text(text).unwrap(); 6]
    };
    let (other, its_key) = (
        RedisStore::connect(&server.redis_url()).await.unwrap(),
        key.clone(),
    );
    let writing = tokio::spawn(async move {
        for n in 0..30 {
            other.delete(&its_key).await.unwrap();
            other.append(&its_key, &generation(n)).await.unwrap();
        }
    });
    let mut whole = 0;
    while !writing.is_finished() {
        if let Some(entries) = store.load(&key).await.unwrap() {
            assert_eq!(entries.len(), 6);
            assert!(entries.iter().all(|entry| *entry == entries[0]), "two are mixed");
            whole += 1;
        }
    }
    writing.await.unwrap();
    assert!(whole > 0, "it was never there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_summary_fails_no_append_and_no_list() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let url = server.redis_url();
    let info = format!("outrigger:{{{}/{}}}:info", damaged::PROJECT, damaged::SESSION);
    damaged::a_summary_fails_nothing(
        &damaged::DAMAGED,
        async || Arc::new(RedisStore::connect(&url).await.unwrap()) as Arc<dyn SessionStore>,
        async |damaged| {
            let text: String = damaged.iter().map(|byte| format!("\\{byte:03}")).collect();
            let set = format!("return redis.call('HSET', KEYS[1], 'summary', '{text}')");
            cli(&server, &["EVAL", &set, "1", &info]);
        },
    )
    .await;
    // Neither does something else in its place, or a name that is none.
    cli(&server, &["SET", &info, "in the way"]);
    let index = format!("outrigger:{{{}}}:sessions", damaged::PROJECT);
    cli(
        &server,
        &[
            "EVAL",
            "return redis.call('SADD', KEYS[1], 'x/\\255')",
            "1",
            &index,
        ],
    );
    let store = RedisStore::connect(&url).await.unwrap();
    assert_eq!(store.list_sessions(damaged::PROJECT).await.unwrap().len(), 2);
    assert_eq!(
        store
            .list_session_summaries(damaged::PROJECT)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_makes_no_session_older() {
    needs!(outrigger_needs::redis());
    let server = servers::redis(&[]);
    let store = RedisStore::connect(&server.redis_url()).await.unwrap();
    let key = SessionKey::new("p", "s");
    store.append(&key, &entry("a")).await.unwrap();
    // As if it had been written in the year 2100.
    cli(
        &server,
        &["HSET", "outrigger:{p/s}:info", "mtime", "4102444800000"],
    );
    store.append(&key, &entry("b")).await.unwrap();
    assert_eq!(
        store.list_sessions("p").await.unwrap()[0].mtime,
        4_102_444_800_001
    );
}
