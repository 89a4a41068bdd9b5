//! The log alone.

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger::testing::Simulated;
use outrigger_host::log::{NewEvent, SqliteLog, Write};
use outrigger_host::{Delivery, HostError, HostPolicy, NewSession, SessionHost, SessionState, Source};

async fn session(dir: &std::path::Path) -> (SessionHost, SessionId) {
    let log = SqliteLog::open(dir.join("host.db")).unwrap();
    let cli = Simulated::agent(|agent| agent);
    let host = SessionHost::open(HostPolicy::new(cli.options(), [dir]), log)
        .await
        .unwrap();
    let id = host.create(NewSession::new(dir), "ada").await.unwrap().id;
    (host, id)
}

fn event(text: &str) -> NewEvent {
    NewEvent::new(Source::Worker, "assistant", RawJson::from_text(text).unwrap())
}

#[tokio::test]
async fn payloads_are_kept_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let (host, id) = session(dir.path()).await;
    let texts = [
        r#"{"a":"x\u0000y"}"#,
        r#"{"a":"\ud800"}"#,
        r#"{ "b" : 1.0e0, "a":1,"a" : 2 }"#,
        r#"{"n":123456789012345678901234567890}"#,
    ];
    let steps = texts.iter().map(|text| Write::Append(event(text))).collect();
    host.event_log().write(&id, steps).await.unwrap();
    let page = host.events(&id, 1, 10).await.unwrap();
    let kept: Vec<&str> = page.events.iter().map(|event| event.payload.get()).collect();
    assert_eq!(kept, texts);
}

#[tokio::test]
async fn transactions_that_come_together_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (host, id) = session(dir.path()).await;
    let log = host.event_log();
    let mut writers = Vec::new();
    for number in 0..200 {
        let (log, id) = (host.event_log(), id.clone());
        writers.push(tokio::spawn(async move {
            let mut steps = vec![Write::Append(event(&format!(r#"{{"n":{number}}}"#)))];
            if number % 3 == 0 {
                // The last step is refused, and the first must not stay.
                steps.push(Write::Decide {
                    id: uuid::Uuid::new_v4(),
                    state: outrigger_host::ApprovalState::Allowed,
                    actor: None,
                    decision: None,
                    must_be_first: true,
                });
            }
            log.write(&id, steps).await.map(drop)
        }));
    }
    let mut refused = 0;
    for writer in writers {
        match writer.await.unwrap() {
            Ok(()) => {}
            Err(HostError::NoApproval(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(refused, 67);
    let page = log.events(&id, 0, 1000).await.unwrap();
    assert_eq!(page.events.len(), 1 + 133);
    assert_eq!(page.head_seq, 134);
}

/// What is true of each moment is true of what is counted.
#[tokio::test]
async fn what_there_is_is_counted_at_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let (host, id) = session(dir.path()).await;
    let log = host.event_log();
    let write = async {
        for _ in 0..300 {
            let prompt = NewEvent::new(Source::Client, "user", serde_json::json!({"type": "user"}).into());
            let done = Write::Mark(prompt.event_id, Delivery::Processed);
            let begin = vec![Write::Enter(SessionState::Running), Write::Accept(prompt)];
            log.write(&id, begin).await.unwrap();
            let end = vec![Write::Enter(SessionState::Idle), done];
            log.write(&id, end).await.unwrap();
        }
    };
    let count = async {
        loop {
            let counts = log.counts().await.unwrap();
            let running = counts.sessions.contains(&(SessionState::Running, 1));
            assert_eq!(u64::from(running), counts.waiting_prompts, "{counts:?}");
        }
    };
    tokio::select! {
        () = write => {}
        () = count => {}
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_read_keeps_no_other_from_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let (host, damaged) = session(dir.path()).await;
    let sound = host.create(NewSession::new(dir.path()), "ada").await.unwrap().id;
    let connection = rusqlite::Connection::open(dir.path().join("host.db")).unwrap();
    let changed = connection.execute(
        "UPDATE sessions SET state = 'confused' WHERE id = ?1",
        [damaged.as_str()],
    );
    assert_eq!(changed.unwrap(), 1);
    let read = host.session(&damaged).await;
    assert!(matches!(read, Err(HostError::Damaged(_))), "{read:?}");
    let mut writers = Vec::new();
    for id in [&damaged, &sound].into_iter().cycle().take(20) {
        let (log, id) = (host.event_log(), id.clone());
        writers.push(tokio::spawn(async move {
            log.write(&id, vec![Write::Append(event("{}"))]).await.map(drop)
        }));
    }
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(host.session(&sound).await.unwrap().head_seq, 11);
}

#[tokio::test]
async fn a_backup_is_a_sound_log_and_a_second_host_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.db");
    let log = SqliteLog::open(&path).unwrap();
    let second = SqliteLog::open(&path).unwrap_err();
    assert!(second.to_string().contains("another process"), "{second}");
    let cli = Simulated::agent(|agent| agent);
    let backup = dir.path().join("backup.db");
    log.backup(&backup).await.unwrap();
    let again = log.backup(&backup).await.unwrap_err();
    assert!(
        again
            .to_string()
            .ends_with("is there already, and a copy replaces no file"),
        "{again}"
    );
    let host = SessionHost::open(HostPolicy::new(cli.options(), [dir.path()]), log)
        .await
        .unwrap();
    host.create(NewSession::new(dir.path()), "ada").await.unwrap();
    #[cfg(unix)]
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}: only this user reads it", entry.file_name());
    }
    let copy = SqliteLog::open(&backup).unwrap();
    let check = copy.check().await.unwrap();
    assert_eq!((check.sessions, check.problems.len()), (0, 0));
}

/// As in a directory that is read-only.
#[tokio::test]
async fn a_log_whose_files_cannot_be_made_says_where_they_have_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.db");
    let copy = dir.path().join("copy.db");
    let log = SqliteLog::open(&path).unwrap();
    log.backup(&copy).await.unwrap();
    drop(log);
    for path in [&path, &copy] {
        for beside in ["-wal", "-shm"] {
            let mut name = path.clone().into_os_string();
            name.push(beside);
            drop(std::fs::remove_file(&name));
            std::fs::create_dir_all(&name).unwrap();
        }
    }
    let opened = SqliteLog::open(&copy).map(drop);
    for result in [opened, SqliteLog::check_of(&path).map(drop)] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(".db: ") && error.contains("read-only"), "{error}");
    }
}

/// As a host leaves it that was killed: its last transactions are beside the file.
#[tokio::test]
async fn a_look_at_a_log_leaves_it_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (host, id) = session(dir.path()).await;
    let log = host.event_log();
    log.write(&id, vec![Write::Append(event(r#"{"a":"the last word"}"#))])
        .await
        .unwrap();
    let left = tempfile::tempdir().unwrap();
    for name in ["host.db", "host.db-wal"] {
        std::fs::copy(dir.path().join(name), left.path().join(name)).unwrap();
    }
    let files =
        || ["host.db", "host.db-wal"].map(|name| std::fs::read(left.path().join(name)).unwrap_or_default());
    let before = files();
    let path = left.path().join("host.db");
    let check = SqliteLog::check_of(&path).unwrap();
    assert_eq!((check.sessions, check.events, check.problems.len()), (1, 2, 0));
    assert!(SqliteLog::audit_of(&path, 10).unwrap().is_empty());
    let copy = left.path().join("copy.db");
    SqliteLog::backup_of(&path, &copy).unwrap();
    assert_eq!(SqliteLog::check_of(&copy).unwrap().events, 2);
    assert!(files() == before, "a host that goes on finds what it left");
}

/// What is sent one by one would be read once for each that waits already.
#[tokio::test]
async fn what_waits_is_read_from_a_place_on() {
    let dir = tempfile::tempdir().unwrap();
    let (host, id) = session(dir.path()).await;
    let log = host.event_log();
    let prompt = |n: u32| {
        let frame = format!(r#"{{"type":"user","n":{n}}}"#);
        let event = NewEvent::new(Source::Client, "user", RawJson::from_text(frame).unwrap());
        Write::Accept(event)
    };
    let mut after = 0;
    for n in 1..4 {
        log.write(&id, vec![prompt(n)]).await.unwrap();
        let waiting = log.waiting(&id, after).await.unwrap();
        assert_eq!(waiting.received.len(), 1, "{n}");
        after = waiting.received[0].seq;
    }
    assert_eq!(log.waiting(&id, 0).await.unwrap().received.len(), 3);
}

#[tokio::test]
async fn the_tables_of_an_older_version_are_upgraded() {
    let dir = tempfile::tempdir().unwrap();
    let (host, id) = session(dir.path()).await;
    drop(host);
    let connection = rusqlite::Connection::open(dir.path().join("host.db")).unwrap();
    // As the first version left them.
    connection
        .execute_batch(
            "DROP TABLE audit; ALTER TABLE events DROP COLUMN sum; DROP INDEX approvals_deferred; ALTER TABLE approvals DROP COLUMN deferred;
             PRAGMA user_version = 1;
             INSERT INTO approvals (id, number, session_id, kind, state, epoch, request_id, input_hash, request, opened_at)
             SELECT '9f0c6f3e-6d0f-4c57-8f0a-1f3f4c1a2b3d', 1, id, 'tool', 'denied', 1, 'r', '', '{}', 0 FROM sessions;",
        )
        .unwrap();
    drop(connection);
    let log = SqliteLog::open(dir.path().join("host.db")).unwrap();
    let approvals = log.approvals(Some(&id), None, None, 10).await.unwrap();
    assert_eq!(approvals.len(), 1);
    assert!(!approvals[0].deferred);
    assert_eq!(log.check().await.unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_database_of_another_program_is_refused_and_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    for version in [0, 1] {
        let path = dir.path().join(format!("{version}.db"));
        let connection = rusqlite::Connection::open(&path).unwrap();
        let made = format!("CREATE TABLE notes (text TEXT); PRAGMA user_version = {version};");
        connection.execute_batch(&made).unwrap();
        let refused = SqliteLog::open(&path).unwrap_err();
        assert!(refused.to_string().contains("another program"), "{refused}");
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0));
        assert_eq!(tables, Ok(1));
    }
}

#[tokio::test]
async fn the_check_finds_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.db");
    let (host, id) = session(dir.path()).await;
    host.event_log()
        .write(&id, vec![Write::Append(event("{}")), Write::Append(event("{}"))])
        .await
        .unwrap();
    let backup = dir.path().join("other.db");
    std::fs::copy(&path, &backup).unwrap();
    std::fs::copy(dir.path().join("host.db-wal"), dir.path().join("other.db-wal")).unwrap();
    let copy = SqliteLog::open(&backup).unwrap();
    assert_eq!(copy.check().await.unwrap().problems, Vec::<String>::new());
    rusqlite::Connection::open(&backup)
        .unwrap()
        .execute("DELETE FROM events WHERE seq = 2", [])
        .unwrap();
    let problems = copy.check().await.unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("gaps"));
}

#[tokio::test]
async fn nothing_is_ordered_by_the_clock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.db");
    let (host, id) = session(dir.path()).await;
    let append = async |host: &SessionHost, text: &str| {
        host.event_log()
            .write(&id, vec![Write::Append(event(text))])
            .await
            .unwrap();
    };
    append(&host, r#"{"n":1}"#).await;
    host.shutdown().await;
    drop(host);
    // As if the clock had been a day ahead until now.
    let day = 24 * 60 * 60 * 1000;
    let connection = rusqlite::Connection::open(&path).unwrap();
    for column in [
        "events SET sum = NULL, at = at",
        "sessions SET created_at = created_at",
    ] {
        connection
            .execute(&format!("UPDATE {column} + {day}"), [])
            .unwrap();
    }
    drop(connection);

    let log = SqliteLog::open(&path).unwrap();
    assert_eq!(log.check().await.unwrap().problems, Vec::<String>::new());
    let cli = Simulated::agent(|agent| agent);
    let host = SessionHost::open(HostPolicy::new(cli.options(), [dir.path()]), log)
        .await
        .unwrap();
    let mut events = host.subscribe(&id, 0).await.unwrap();
    append(&host, r#"{"n":2}"#).await;
    let mut seen: Vec<(u64, u64)> = Vec::new();
    while seen.len() < 3 {
        if let outrigger_host::Delivered::Event(event) = events.next().await.unwrap() {
            seen.push((event.seq, event.at));
        }
    }
    assert_eq!(seen.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(seen[2].1 < seen[1].1, "the clock was set back");
    host.shutdown().await;
}
