//! The PostgreSQL store, against a real server.

mod between;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger_needs::needs;
use outrigger_protocol::RawJson;
use outrigger_sessions::store::{
    LeaseStore as _, Result, SessionKey, SessionStore, StoreErrorKind, conformance,
};
use outrigger_stores::PostgresStore;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_postgres::Client;

use self::between::{Between, Passage};
use crate::damaged;
use crate::owners::desk::StoreDesk;
use crate::owners::{self, processes};
use crate::resent;
use crate::servers::postgres::{self as servers, Server};

pub(crate) fn config(server: &Server, schema: &str) -> String {
    config_at(server.directory.path(), schema)
}

fn config_at(place: &Path, schema: &str) -> String {
    let place = place.display();
    format!("host={place} user=postgres dbname=postgres options='-c search_path={schema}'")
}

/// Connects, as soon as the server takes connections.
pub(crate) async fn connect(server: &Server, schema: &str) -> Result<PostgresStore> {
    let config = config(server, schema);
    for _ in 0..200 {
        match PostgresStore::connect(&config).await {
            Err(error) if error.chain().contains("starting up") || error.chain().contains("refused") => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            done => return done,
        }
    }
    PostgresStore::connect(&config).await
}

async fn client(server: &Server) -> Client {
    let config = format!(
        "host={} user=postgres dbname=postgres",
        server.directory.path().display()
    );
    for _ in 0..200 {
        if let Ok((client, connection)) = tokio_postgres::connect(&config, tokio_postgres::NoTls).await {
            tokio::spawn(connection);
            return client;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server takes no connections");
}

pub(crate) async fn sql(server: &Server, text: &str) {
    client(server).await.batch_execute(text).await.unwrap();
}

/// Waits until so many wait for what others have locked.
async fn wait_for_waiting(client: &Client, many: i64) {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    for _ in 0..1000 {
        if client.query_one(count, &[]).await.unwrap().get::<_, i64>(0) == many {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it takes too long until {many} wait");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_every_contract() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres();
    let stores = AtomicUsize::new(0);
    let make = || async {
        let schema = format!("s{}", stores.fetch_add(1, Ordering::Relaxed));
        sql(&server, &format!("CREATE SCHEMA {schema}")).await;
        Ok(Arc::new(connect(&server, &schema).await?) as Arc<dyn SessionStore>)
    };
    let report = conformance::check(make)
        .await
        .unwrap_or_else(|broken| panic!("{broken}"));
    assert!(report.skipped.is_empty(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_that_are_killed_lose_and_double_nothing() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres();
    sql(&server, "CREATE SCHEMA owners").await;
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(Arc::new(connect(&server, "owners").await.unwrap()) as Arc<dyn SessionStore>);
    }
    owners::kill_at_random(stores, Duration::from_millis(50)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_made_once_and_newer_ones_are_left_alone() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres();
    sql(&server, "CREATE SCHEMA tables").await;
    // All at once, as when many machines start a new version.
    let (one, two) = tokio::join!(connect(&server, "tables"), connect(&server, "tables"));
    assert_eq!(one.unwrap().migrate().await.unwrap(), 3);
    two.unwrap();
    sql(&server, "UPDATE tables.outrigger_schema SET version = 99").await;
    let error = connect(&server, "tables").await.unwrap_err();
    assert_eq!(*error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("99"), "{error}");
}

fn desk(config: &str) -> StoreDesk {
    StoreDesk::open(PostgresStore::connect(config))
}

#[test]
fn owner_process() {
    processes::be(desk);
}

#[test]
fn owners_whose_processes_are_killed_or_stopped_do_everything_once() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(sql(&server, "CREATE SCHEMA processes"));
    processes::trial(module_path!(), &config(&server, "processes"), desk);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_not_taken_over_in_the_midst_of_a_write() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres();
    sql(&server, "CREATE SCHEMA midst").await;
    let (one, two) = (
        connect(&server, "midst").await.unwrap(),
        connect(&server, "midst").await.unwrap(),
    );
    let key = SessionKey::new("p", "s");
    let entry = |text: &str| [RawJson::from_text(text).unwrap()];
    let lease = one.acquire(&key, "one", Duration::ZERO).await.unwrap();
    one.append_fenced(&lease, &key, &entry(r#"{"n":1}"#))
        .await
        .unwrap();

    // Somebody keeps the transcript locked, so the next write has looked at the lease and gets no further.
    let (locking, looking) = (client(&server).await, client(&server).await);
    let lock = "BEGIN; SELECT * FROM midst.outrigger_transcript FOR UPDATE";
    locking.batch_execute(lock).await.unwrap();
    let (its_key, its_lease, its_entry) = (key.clone(), lease.clone(), entry(r#"{"n":2}"#));
    let write = tokio::spawn(async move { one.append_fenced(&its_lease, &its_key, &its_entry).await });
    wait_for_waiting(&looking, 1).await;
    let its_key = key.clone();
    let take = tokio::spawn(async move {
        let lease = two.acquire(&its_key, "two", Duration::from_secs(60)).await;
        (lease, two.load(&its_key).await)
    });
    // Who takes it has to wait until it is written, or would begin without it.
    wait_for_waiting(&looking, 2).await;
    locking.batch_execute("ROLLBACK").await.unwrap();
    write.await.unwrap().unwrap();
    let (next, loaded) = take.await.unwrap();
    assert_eq!(next.unwrap().fence, lease.fence + 1);
    assert_eq!(loaded.unwrap().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_makes_no_session_older() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres();
    sql(&server, "CREATE SCHEMA clock").await;
    let store = connect(&server, "clock").await.unwrap();
    let key = SessionKey::new("p", "s");
    let entry = [RawJson::from_text("{}").unwrap()];
    store.append(&key, &entry).await.unwrap();
    // As if it had been written in the year 2100.
    sql(
        &server,
        "UPDATE clock.outrigger_transcript SET mtime = 4102444800000",
    )
    .await;
    store.append(&key, &entry).await.unwrap();
    assert_eq!(
        store.list_sessions("p").await.unwrap()[0].mtime,
        4_102_444_800_001
    );
}

/// What has no uuid is not doubled by a program that got no answer and sends it again, and is added again when it is meant.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_whose_commit_was_not_answered_is_done_once() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres();
    sql(&server, "CREATE SCHEMA lost").await;
    connect(&server, "lost").await.unwrap();
    let between = Between::new(&server);
    let config = config_at(between.directory.path(), "lost");
    let store = PostgresStore::connect(&config).await.unwrap();
    let title = |title: &str| [RawJson::from_text(format!(r#"{{"customTitle":"{title}"}}"#)).unwrap()];
    let session = SessionKey::new("p", "s");
    let lease = store.acquire(&session, "one", Duration::ZERO).await.unwrap();
    let loaded = async |key: &SessionKey| store.load(key).await.unwrap().unwrap_or_default();
    for key in [session.clone(), session.with_subpath("part")] {
        for is_fenced in [false, true] {
            let sent = title(&is_fenced.to_string());
            let append = async || match is_fenced {
                true => store.append_fenced(&lease, &key, &sent).await,
                false => store.append(&key, &sent).await,
            };
            let before = loaded(&key).await;
            between.set(Passage::CutAfterCommit);
            let error = append().await.unwrap_err();
            assert!(error.may_pass(), "{}", error.chain());
            assert!(between.is(Passage::Open), "{}", error.chain());
            for more in 1..3 {
                append().await.unwrap();
                let wanted = [before.clone(), vec![sent[0].clone(); more]].concat();
                assert_eq!(loaded(&key).await, wanted, "{key} {is_fenced}");
            }
        }
    }
    let summaries = store.list_session_summaries("p").await.unwrap();
    assert!(
        summaries[0].data.get().contains(r#""customTitle":"true""#),
        "{summaries:?}"
    );

    // Who was overtaken is told so, also of what was done before.
    let sent = title("late");
    between.set(Passage::CutAfterCommit);
    store.append_fenced(&lease, &session, &sent).await.unwrap_err();
    store.acquire(&session, "two", Duration::ZERO).await.unwrap();
    let error = store.append_fenced(&lease, &session, &sent).await.unwrap_err();
    assert!(error.is_fenced(), "{error}");
    assert_eq!(loaded(&session).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_was_dropped_and_is_sent_again_is_done_once() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres();
    sql(&server, "CREATE SCHEMA dropped").await;
    let store = connect(&server, "dropped").await.unwrap();
    resent::dropped_anywhere_and_sent_again(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_summary_fails_no_append_and_no_list() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres();
    sql(&server, "CREATE SCHEMA damaged").await;
    // The server takes nothing but text.
    let texts = damaged::DAMAGED.iter().filter(|damaged| damaged.is_ascii());
    damaged::a_summary_fails_nothing(
        &texts.copied().collect::<Vec<_>>(),
        async || Arc::new(connect(&server, "damaged").await.unwrap()) as Arc<dyn SessionStore>,
        async |damaged| {
            let set = "UPDATE damaged.outrigger_transcript SET summary = $1 WHERE session_id = $2";
            let text = std::str::from_utf8(damaged).unwrap();
            let client = client(&server).await;
            let set = client.execute(set, &[&text, &damaged::SESSION]).await;
            assert_eq!(set.unwrap(), 1);
        },
    )
    .await;
}

/// With the clock stopped nothing else happens, and the time passes at once.
#[tokio::test]
async fn a_server_that_says_nothing_any_more_is_not_waited_for_nor_used_again() {
    needs!(outrigger_needs::postgres());
    let server = servers::postgres();
    sql(&server, "CREATE SCHEMA silent").await;
    connect(&server, "silent").await.unwrap();
    let between = Between::new(&server);
    let config = config_at(between.directory.path(), "silent");
    let store = PostgresStore::connect(&config).await.unwrap();
    let key = SessionKey::new("p", "s");
    let entry = [RawJson::from_text(r#"{"n":1}"#).unwrap()];
    store.append(&key, &entry).await.unwrap();
    for (is_append, is_dropped) in [(false, false), (true, false), (false, true), (true, true)] {
        between.set(Passage::Silent);
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        let call = async {
            match is_append {
                true => store.append(&key, &entry).await,
                false => store.load(&key).await.map(drop),
            }
        };
        let limit = Duration::from_secs(if is_dropped { 10 } else { 60 });
        let called = tokio::time::timeout(limit, call).await;
        let waited = begun.elapsed();
        tokio::time::resume();
        between.set(Passage::Open);
        if is_dropped {
            assert!(called.is_err());
        } else {
            let error = called.unwrap().unwrap_err();
            assert!(error.may_pass(), "{}", error.chain());
            assert!(
                error.chain().contains("no answer within 30s"),
                "{}",
                error.chain()
            );
            assert!(waited < Duration::from_secs(31), "{waited:?}");
        }
        // Another connection is used.
        let loaded = tokio::time::timeout(Duration::from_secs(20), store.load(&key)).await;
        assert!(!loaded.unwrap().unwrap().unwrap().is_empty());
    }
}

/// An authority of this name, and a certificate of it for `localhost` with its key, as PEM.
fn certificates(name: &str) -> (String, String, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.distinguished_name.push(DnType::CommonName, name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let itself = authority.self_signed(&key).unwrap().pem();
    let authority = Issuer::new(authority, key);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let server = server.signed_by(&key, &authority).unwrap().pem();
    (itself, server, key.serialize_pem())
}

/// One that listens on this machine's loopback, with TLS or without, and the files of the authority that it has and of another one.
fn server_with_tls(port: u16, has_tls: bool) -> Server {
    servers::postgres_with(port, |place| {
        let (authority, certificate, key) = certificates("an authority");
        let write = |name: &str, text: String| {
            let file = place.join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            file.display().to_string()
        };
        write("ca.pem", authority);
        write("other.pem", certificates("another authority").0);
        let mut settings = vec!["listen_addresses=127.0.0.1".to_owned()];
        if has_tls {
            settings.push("ssl=on".to_owned());
            settings.push(format!("ssl_cert_file={}", write("server.pem", certificate)));
            settings.push(format!("ssl_key_file={}", write("server.key", key)));
        }
        settings
    })
}

/// Connects, as soon as the server takes connections; says whether TLS is used.
async fn uses_tls(server: &Server, port: u16, rest: &str) -> Result<bool> {
    let config = format!("port={port} user=postgres dbname=postgres application_name=tls {rest}");
    let connect = || PostgresStore::connect(&config);
    let mut connected = connect().await;
    for _ in 0..200 {
        match &connected {
            Err(error) if error.chain().contains("starting up") || error.chain().contains("refused") => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                connected = connect().await;
            }
            _ => break,
        }
    }
    // Its connection is kept as long as the store.
    let _store = connected?;
    let here = format!(
        "host={} port={port} user=postgres dbname=postgres",
        server.directory.path().display()
    );
    let (client, connection) = tokio_postgres::connect(&here, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let text = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE application_name = 'tls'";
    Ok(client.query_one(text, &[]).await.unwrap().get(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_has_to_prove_as_much_as_sslmode_asks_for() {
    needs!(outrigger_needs::postgres());
    let [port] = crate::servers::ports::free_ports();
    let server = server_with_tls(port, true);
    let place = server.directory.path().display();
    let (right, wrong) = (
        format!("sslrootcert={place}/ca.pem"),
        format!("sslrootcert={place}/other.pem"),
    );
    for (rest, wanted) in [
        ("host=localhost".to_owned(), true),
        ("host=localhost sslmode=disable".to_owned(), false),
        ("host=localhost sslmode=require".to_owned(), true),
        (format!("host=localhost sslmode=require {right}"), true),
        (format!("host=127.0.0.1 sslmode=verify-ca {right}"), true),
        (format!("host=localhost sslmode=verify-full {right}"), true),
        // A socket has no TLS, whatever is asked for.
        (format!("host={place} sslmode=verify-full"), false),
    ] {
        let uses_tls = uses_tls(&server, port, &rest).await;
        assert_eq!(uses_tls.map_err(|error| error.chain()), Ok(wanted), "{rest}");
    }
    for (rest, why) in [
        (format!("host=localhost sslmode=require {wrong}"), "UnknownIssuer"),
        // Named authorities are asked without an sslmode, too.
        (format!("host=localhost {wrong}"), "UnknownIssuer"),
        // The system's authorities have not signed it, and would have to name this server.
        ("host=localhost sslrootcert=system".to_owned(), "UnknownIssuer"),
        (
            "host=localhost sslrootcert=system sslmode=require".to_owned(),
            "say verify-full",
        ),
        (
            format!("host=localhost sslmode=verify-ca {wrong}"),
            "UnknownIssuer",
        ),
        (
            format!("host=localhost sslmode=verify-full {wrong}"),
            "UnknownIssuer",
        ),
        ("host=localhost sslmode=verify-full".to_owned(), "UnknownIssuer"),
        (
            format!("host=127.0.0.1 sslmode=verify-full {right}"),
            "not valid for name",
        ),
        (
            format!("host=localhost sslmode=verify-full sslrootcert={place}/none.pem"),
            "none.pem",
        ),
        (
            format!("host=localhost sslmode=verify-full sslrootcert={place}/server.key"),
            "no certificate",
        ),
    ] {
        let error = uses_tls(&server, port, &rest).await.unwrap_err().chain();
        assert!(error.contains(why), "{rest}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_used_only_where_that_is_allowed() {
    needs!(outrigger_needs::postgres());
    let [port] = crate::servers::ports::free_ports();
    let server = server_with_tls(port, false);
    assert!(!uses_tls(&server, port, "host=localhost").await.unwrap());
    let file = format!(
        "verify-ca sslrootcert={}/ca.pem",
        server.directory.path().display()
    );
    for mode in [
        "require",
        file.as_str(),
        "verify-full",
        "verify-full sslrootcert=system",
    ] {
        let error = uses_tls(&server, port, &format!("host=localhost sslmode={mode}")).await;
        let error = error.unwrap_err().chain();
        assert!(error.contains("does not support TLS"), "{error}");
    }
}
