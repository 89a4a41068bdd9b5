//! The log on a disk that is full, cut off at any moment, and damaged.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger::testing::Simulated;
use outrigger_host::log::{NewEvent, SqliteLog, Write};
use outrigger_host::{AuditEntry, HostError, HostPolicy, LogEvent, NewSession, SessionHost, Source};
use rustix::process::{Pid, Resource, Rlimit, Signal};

/// Names the directory of the log, in a process that is one of these.
const PLACE: &str = "OUTRIGGER_HOST_PROOFS_PLACE";

fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

/// Runs a test of this file as a process of its own, through a shell that runs `before` first.
fn start(test: &str, place: &Path, before: &str) -> Child {
    Command::new("sh")
        .args(["-c", &format!("{before}; exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("proofs::{test}"), "--nocapture"])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

async fn host(place: &Path) -> (SessionHost, SessionId) {
    let log = SqliteLog::open(place.join("host.db")).unwrap();
    let cli = Simulated::agent(|agent| agent);
    let host = SessionHost::open(HostPolicy::new(cli.options(), [place]), log)
        .await
        .unwrap();
    let id = host.create(NewSession::new(place), "test").await.unwrap().id;
    (host, id)
}

fn event(number: u64) -> Write {
    let text = format!(r#"{{"number":{number},"text":"{}"}}"#, "x".repeat(1000));
    Write::Append(NewEvent::new(
        Source::Worker,
        "assistant",
        RawJson::from_text(text).unwrap(),
    ))
}

fn number(payload: &RawJson) -> u64 {
    payload.to_value().unwrap()["number"].as_u64().unwrap()
}

/// The process whose files may not grow beyond a limit.
#[tokio::test]
async fn full_disk_process() {
    let Some(place) = place() else { return };
    let (host, id) = host(&place).await;
    let log = host.event_log();
    let mut kept = Vec::new();
    let mut next = 0..;
    let mut append = async |kept: &mut Vec<u64>| {
        let number = next.next().unwrap();
        let written = log.write(&id, vec![event(number)]).await;
        if written.is_ok() {
            kept.push(number);
        }
        written
    };
    let error = loop {
        if let Err(error) = append(&mut kept).await {
            break error;
        }
    };
    assert!(matches!(error, HostError::Log(_)), "{error}");
    assert!(kept.len() > 100);
    // It stays full, and what was kept can be read.
    assert!(append(&mut kept).await.is_err());
    assert_eq!(host.session(&id).await.unwrap().head_seq, 1 + kept.len() as u64);
    let prompt = RawJson::from_text(r#"{"type":"user","message":{"role":"user","content":"x"}}"#).unwrap();
    let refused = host.send(&id, prompt, "ada").await;
    assert!(matches!(refused, Err(HostError::Log(_))), "{refused:?}");

    // Nothing else is acknowledged either, and nothing half is left: not of a copy either, which is shorter than the log.
    let most = rustix::process::getrlimit(Resource::Fsize).maximum;
    let limit = |current| {
        let limit = Rlimit {
            current,
            maximum: most,
        };
        rustix::process::setrlimit(Resource::Fsize, limit).unwrap();
    };
    limit(Some(64 << 10));
    let key = SessionId::random();
    let with_key = || {
        let mut new = NewSession::new(&place);
        new.key = Some(key.clone());
        new
    };
    let failed = host.create(with_key(), "ada").await;
    assert!(matches!(failed, Err(HostError::Log(_))), "{failed:?}");
    let entry = || AuditEntry::new(uuid::Uuid::nil(), "ada", "POST", "/v1/sessions", 201);
    let failed = log.audit(entry()).await;
    assert!(matches!(failed, Err(HostError::Log(_))), "{failed:?}");
    let failed = log
        .put_record("token", "a", Some(RawJson::from_text("1").unwrap()))
        .await;
    assert!(matches!(failed, Err(HostError::Log(_))), "{failed:?}");
    let (path, copy) = (place.join("host.db"), place.join("copy.db"));
    let failed = SqliteLog::backup_of(&path, &copy);
    assert!(
        matches!(&failed, Err(HostError::Log(error)) if error.contains("copy.db")),
        "{failed:?}"
    );
    assert!(!copy.exists(), "a part of a copy could be taken for one");
    // To look at it needs no room.
    let check = SqliteLog::check_of(&path).unwrap();
    assert_eq!(
        (check.events, check.problems),
        (1 + kept.len() as u64, Vec::new())
    );
    assert_eq!(log.audited(None, 10).await.unwrap().len(), 0);
    assert_eq!(log.records("token").await.unwrap().len(), 0);
    assert_eq!(host.sessions(None, 10).await.unwrap().len(), 1);

    // There is room again.
    limit(most);
    assert_eq!(host.create(with_key(), "ada").await.unwrap().id, key);
    log.audit(entry()).await.unwrap();
    SqliteLog::backup_of(&path, &copy).unwrap();
    let check = SqliteLog::check_of(&copy).unwrap();
    assert_eq!(
        (check.events, check.problems),
        (2 + kept.len() as u64, Vec::new())
    );
    for _ in 0..10 {
        append(&mut kept).await.unwrap();
    }
    let (mut found, mut after) = (Vec::new(), 1);
    loop {
        let page = log.events(&id, after, 500).await.unwrap();
        for event in &page.events {
            assert_eq!(event.seq, after + 1);
            after = event.seq;
            found.push(number(&event.payload));
        }
        if page.events.is_empty() {
            break;
        }
    }
    assert_eq!(found, kept, "what was acknowledged, and nothing else");
    std::fs::write(place.join("done"), "").unwrap();
}

#[test]
fn an_append_to_a_full_disk_is_not_acknowledged_and_the_log_goes_on_when_there_is_room() {
    let place = tempfile::tempdir().unwrap();
    // A signal for a file that gets too large would end the process.
    let mut child = start(
        "full_disk_process",
        place.path(),
        "trap '' XFSZ; ulimit -S -f 6000",
    );
    assert!(child.wait().unwrap().success());
    assert!(place.path().join("done").exists());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let check = runtime.block_on(log.check()).unwrap();
    assert_eq!(check.problems, Vec::<String>::new());
}

/// The process that appends, and tells what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_process() {
    let Some(place) = place() else { return };
    let (host, id) = host(&place).await;
    println!("@@session {id}");
    let log = host.event_log();
    for number in 0.. {
        // Transactions of several events, each of which is whole or not there.
        log.write(&id, vec![event(number), event(number)]).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "@@{number}").unwrap();
        out.flush().unwrap();
    }
}

/// `OUTRIGGER_HOST_COPIES` asks for another number of copies, `OUTRIGGER_SEED` for other moments.
#[test]
fn a_log_that_is_cut_off_at_any_moment_is_sound_and_has_what_was_acknowledged() {
    let set = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    let mut random = fastrand::Rng::with_seed(set("OUTRIGGER_SEED").unwrap_or(1));
    let place = tempfile::tempdir().unwrap();
    let mut child = start("busy_process", place.path(), ":");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = move || loop {
        let line = lines.next().unwrap().unwrap();
        if let Some((_, line)) = line.split_once("@@") {
            return line.to_owned();
        }
    };
    let id = SessionId::new(next().strip_prefix("session ").unwrap()).unwrap();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&acknowledged);
    let (enough, wanted) = std::sync::mpsc::channel::<()>();
    let reader = std::thread::spawn(move || {
        while wanted.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            told.store(next().parse().unwrap(), Ordering::Release);
        }
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for copy in 0..set("OUTRIGGER_HOST_COPIES").unwrap_or(15) {
        let until = acknowledged.load(Ordering::Acquire) + random.u64(1..60);
        while acknowledged.load(Ordering::Acquire) < until {
            std::thread::yield_now();
        }
        // Stopped in the middle of whatever it does, also of a checkpoint: the files are what a cut leaves.
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
        while !stat().rsplit(')').next().unwrap().trim_start().starts_with('T') {
            std::thread::yield_now();
        }
        let before = acknowledged.load(Ordering::Acquire);
        let copied = place.path().join(format!("copy{copy}.db"));
        let wal = place.path().join(format!("copy{copy}.db-wal"));
        std::fs::copy(place.path().join("host.db"), &copied).unwrap();
        std::fs::copy(place.path().join("host.db-wal"), &wal).unwrap();
        rustix::process::kill_process(pid, Signal::CONT).unwrap();
        // And a write that was torn behind it.
        let torn: Vec<u8> = (0..random.usize(0..5000)).map(|_| random.u8(..)).collect();
        std::fs::File::options()
            .append(true)
            .open(&wal)
            .unwrap()
            .write_all(&torn)
            .unwrap();

        runtime.block_on(async {
            let log = SqliteLog::open(&copied).unwrap();
            assert_eq!(log.check().await.unwrap().problems, Vec::<String>::new());
            let (mut after, mut numbers) = (1, Vec::new());
            loop {
                let page = log.events(&id, after, 1000).await.unwrap();
                numbers.extend(page.events.iter().map(|event| number(&event.payload)));
                after += page.events.len() as u64;
                if page.events.is_empty() {
                    break;
                }
            }
            let whole: Vec<u64> = (0..numbers.len() as u64 / 2)
                .flat_map(|number| [number, number])
                .collect();
            assert_eq!(numbers, whole, "transactions are whole and in order");
            assert!(
                numbers.last().copied().unwrap_or_default() >= before,
                "{before} was acknowledged"
            );
            // It goes on.
            log.write(&id, vec![event(0)]).await.unwrap();
        });
    }
    drop(enough);
    // The reader ends with the process at the latest.
    child.kill().unwrap();
    child.wait().unwrap();
    drop(reader.join());
}

/// The events of a session that can be read, up to the first error.
async fn readable(log: &SqliteLog, id: &SessionId) -> (Vec<Arc<LogEvent>>, Option<HostError>) {
    let mut events: Vec<Arc<LogEvent>> = Vec::new();
    loop {
        match log.events(id, events.len() as u64, 20).await {
            Err(error) => return (events, Some(error)),
            Ok(page) if page.events.is_empty() => return (events, None),
            Ok(page) => events.extend(page.events),
        }
    }
}

/// Sessions with events, in a log that was closed.
async fn filled(place: &Path) -> Vec<(SessionId, Vec<Arc<LogEvent>>)> {
    let (host, first) = host(place).await;
    let second = host.create(NewSession::new(place), "ada").await.unwrap().id;
    let log = host.event_log();
    let mut all = Vec::new();
    for id in [first, second] {
        for number in 0..60 {
            log.write(&id, vec![event(number)]).await.unwrap();
        }
        let events = log.events(&id, 0, 1000).await.unwrap().events;
        all.push((id, events));
    }
    host.shutdown().await;
    all
}

/// `OUTRIGGER_HOST_DAMAGES` asks for another number of damaged copies, `OUTRIGGER_SEED` for others.
#[tokio::test]
async fn a_damaged_log_says_so_and_never_tells_something_else() {
    let set = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    let mut random = fastrand::Rng::with_seed(set("OUTRIGGER_SEED").unwrap_or(1));
    let place = tempfile::tempdir().unwrap();
    let sessions = filled(place.path()).await;
    let whole = std::fs::read(place.path().join("host.db")).unwrap();
    let (mut told, mut harmless) = (0, 0);
    for number in 0..set("OUTRIGGER_HOST_DAMAGES").unwrap_or(60) {
        let mut bytes = whole.clone();
        let damage = match random.u8(..4) {
            0 => {
                bytes.truncate(random.usize(..bytes.len()));
                format!("cut at {}", bytes.len())
            }
            1 => {
                let page = random.usize(..bytes.len() / 4096) * 4096;
                bytes[page..page + 4096].fill(0);
                format!("nothing at {page}")
            }
            _ => {
                let at = random.usize(..bytes.len());
                bytes[at] ^= 1 << random.u8(..8);
                format!("a bit at {at}")
            }
        };
        let path = place.path().join(format!("damaged{number}.db"));
        std::fs::write(&path, bytes).unwrap();
        // Not once does any of it panic, or read what was not written.
        let checked = SqliteLog::check_of(&path);
        let is_told = match &checked {
            Err(error) => {
                assert!(
                    matches!(
                        error,
                        HostError::Damaged(_) | HostError::Log(_) | HostError::NewerLog { .. }
                    ),
                    "{damage}: {error}"
                );
                true
            }
            Ok(check) => !check.problems.is_empty(),
        };
        let mut is_whole = true;
        match SqliteLog::open(&path) {
            Err(error) => {
                assert!(!error.to_string().is_empty());
                is_whole = false;
            }
            Ok(log) => {
                for (id, events) in &sessions {
                    let (found, error) = readable(&log, id).await;
                    for (found, event) in found.iter().zip(events) {
                        assert_eq!(found.payload.get(), event.payload.get(), "{damage}");
                        assert_eq!(
                            (
                                found.seq,
                                found.event_id,
                                found.at,
                                &found.kind,
                                &found.actor,
                                found.source
                            ),
                            (
                                event.seq,
                                event.event_id,
                                event.at,
                                &event.kind,
                                &event.actor,
                                event.source
                            ),
                            "{damage}"
                        );
                    }
                    assert!(found.len() <= events.len(), "{damage}");
                    if let Some(error) = error {
                        assert!(
                            matches!(
                                error,
                                HostError::Damaged(_) | HostError::Log(_) | HostError::NoSession(_)
                            ),
                            "{damage}: {error}"
                        );
                    }
                    is_whole &= found.len() == events.len();
                }
            }
        }
        assert!(
            is_whole || is_told,
            "{damage}: events are missing, and the check says nothing"
        );
        told += u64::from(is_told);
        harmless += u64::from(is_whole);
        std::fs::remove_file(&path).unwrap();
    }
    assert!(told > 0, "{told} told, {harmless} harmless");
}

/// The checksum finds what SQLite does not.
#[tokio::test]
async fn a_letter_that_a_disk_changed_is_no_other_text() {
    let place = tempfile::tempdir().unwrap();
    let sessions = filled(place.path()).await;
    let path = place.path().join("host.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let text = br#"{"number":41,"#;
    let at = bytes
        .windows(text.len())
        .position(|window| window == text)
        .unwrap();
    bytes[at + 10] = b'2';
    std::fs::write(&path, bytes).unwrap();
    let check = SqliteLog::check_of(&path).unwrap();
    assert!(
        check.problems.len() == 1 && check.problems[0].contains("is not what was stored"),
        "{check:?}"
    );
    let log = SqliteLog::open(&path).unwrap();
    let mut errors = Vec::new();
    for (id, _) in &sessions {
        errors.extend(readable(&log, id).await.1);
    }
    assert!(matches!(&*errors, [HostError::Damaged(_)]), "{errors:?}");
    assert!(
        errors[0].to_string().contains("restore a backup"),
        "{}",
        errors[0]
    );
}

/// Behind a damaged place, SQLite takes its write-ahead log for cut off: what is there is a beginning, and a reader who has seen more is told.
#[tokio::test]
async fn a_damaged_write_ahead_log_leaves_a_beginning() {
    let mut random = fastrand::Rng::with_seed(1);
    let place = tempfile::tempdir().unwrap();
    let (host, id) = host(place.path()).await;
    for number in 0..60 {
        host.event_log().write(&id, vec![event(number)]).await.unwrap();
    }
    let events = host.event_log().events(&id, 0, 1000).await.unwrap().events;
    let file = std::fs::read(place.path().join("host.db")).unwrap();
    let ahead = std::fs::read(place.path().join("host.db-wal")).unwrap();
    let mut shorter = 0;
    for number in 0..30 {
        let mut bytes = ahead.clone();
        match random.bool() {
            true => bytes.truncate(random.usize(..bytes.len())),
            false => {
                let at = random.usize(..bytes.len());
                bytes[at] ^= 1 << random.u8(..8);
            }
        }
        let path = place.path().join(format!("damaged{number}.db"));
        std::fs::write(&path, &file).unwrap();
        std::fs::write(place.path().join(format!("damaged{number}.db-wal")), bytes).unwrap();
        let Ok(log) = SqliteLog::open(&path) else { continue };
        let check = log.check().await.unwrap();
        assert_eq!(check.problems, Vec::<String>::new());
        let found = match log.events(&id, 0, 1000).await {
            Ok(page) => page.events,
            Err(HostError::NoSession(_)) => Vec::new(),
            Err(error) => panic!("{error}"),
        };
        for (found, event) in found.iter().zip(&events) {
            assert_eq!((found.seq, found.payload.get()), (event.seq, event.payload.get()));
        }
        if found.len() < events.len() && !found.is_empty() {
            shorter += 1;
            let cli = Simulated::agent(|agent| agent);
            let host = SessionHost::open(HostPolicy::new(cli.options(), [place.path()]), log)
                .await
                .unwrap();
            let ahead = host.subscribe(&id, events.len() as u64).await;
            assert!(matches!(ahead, Err(HostError::Invalid(_))), "{ahead:?}");
            host.shutdown().await;
        }
    }
    assert!(shorter > 0);
    host.shutdown().await;
}
