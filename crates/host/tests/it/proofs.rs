//! The log on a disk that is full, cut off at any moment, and with a clock that is set back.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger::testing::Simulated;
use outrigger_host::log::{Log as _, NewEvent, SqliteLog, Write};
use outrigger_host::{HostError, HostPolicy, NewSession, SessionHost, Source};
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

    // There is room again.
    let most = rustix::process::getrlimit(Resource::Fsize).maximum;
    let roomy = Rlimit {
        current: most,
        maximum: most,
    };
    rustix::process::setrlimit(Resource::Fsize, roomy).unwrap();
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
