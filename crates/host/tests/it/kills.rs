//! A host that is killed by SIGKILL at random moments.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger::sessions::lease::cli_runs_in;
use outrigger::testing::{RealCli, Simulated};
use outrigger_host::log::SqliteLog;
use outrigger_host::{Delivered, HostPolicy, NewSession, SessionHost};
use serde_json::json;
use uuid::Uuid;

/// Names the directory of the host, in the process that is one.
const PLACE: &str = "OUTRIGGER_HOST_KILLS_PLACE";

/// The cursor from which that process emits events.
const CURSOR: &str = "OUTRIGGER_HOST_KILLS_CURSOR";

/// Names the session.
const SESSION: &str = "OUTRIGGER_HOST_KILLS_SESSION";

/// Is set if the CLI is the real one.
const REAL: &str = "OUTRIGGER_HOST_KILLS_WITH_REAL_CLI";

/// After how many kills the next session begins. A session that gets longer and longer takes the CLI longer to resume.
const KILLS_OF_A_SESSION: u64 = 50;

/// How many of the newest prompts are sent again although they were acknowledged, now and then.
const RECENT: usize = 20;

/// Longer than a CLI takes to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lines of a process that is a host begin with this; libtest writes others.
const MARK: &str = "@@";

/// The host, and what has to live as long.
async fn host(place: &Path) -> (SessionHost, Option<RealCli>) {
    let real = match std::env::var_os(REAL) {
        Some(_) => Some(RealCli::directives().await.unwrap()),
        None => None,
    };
    let options = match &real {
        Some(real) => real.options(),
        None => Simulated::agent(|agent| agent.directives()).options(),
    };
    // Sessions are stored where the next process finds them.
    let options = options.env("CLAUDE_CONFIG_DIR", place.join("claude").display().to_string());
    let mut policy = HostPolicy::new(options, [place]);
    policy.lease = real.is_some();
    let log = SqliteLog::open(place.join("host.db")).unwrap();
    (SessionHost::open(policy, log).await.unwrap(), real)
}

/// Is the host that the test kills; nothing, if it is run as a test.
#[test]
fn process() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let after = std::env::var(CURSOR).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async move {
        let (host, _real) = host(&place).await;
        let mut new = NewSession::new(&place);
        new.id = Some(SessionId::new(&std::env::var(SESSION).unwrap()).unwrap());
        let id = host.create(new, "test").await.unwrap().id;
        let say = |text: String| {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{MARK}{text}").unwrap();
            out.flush().unwrap();
        };
        let mut events = host.subscribe(&id, after).await.unwrap();
        tokio::spawn(async move {
            loop {
                if let Delivered::Event(event) = events.next().await.unwrap() {
                    let payload = event.payload.to_value().unwrap();
                    let status = payload["status"].as_str().unwrap_or_default();
                    let about = payload["event_id"].as_str().or(payload["uuid"].as_str()).unwrap_or_default();
                    say(format!("event {} {} {about} {status}", event.seq, event.kind));
                }
            }
        });
        let (line, mut lines) = tokio::sync::mpsc::channel(64);
        std::thread::spawn(move || {
            for text in std::io::stdin().lock().lines().map_while(Result::ok) {
                if line.blocking_send(text).is_err() {
                    return;
                }
            }
        });
        while let Some(text) = lines.recv().await {
            let (uuid, prompt) = text.split_once(' ').unwrap();
            let frame: RawJson =
                json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": prompt.replace("\\n", "\n")}}).into();
            let accepted = host.send(&id, frame, "test").await.unwrap();
            say(format!("accepted {uuid} {}", accepted.seq));
        }
    });
}

fn start(place: &Path, session: &SessionId, cursor: u64, with_real_cli: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "kills::process", "--nocapture"])
        .env(PLACE, place)
        .env(SESSION, session.as_str())
        .env(CURSOR, cursor.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    if with_real_cli {
        command.env(REAL, "1");
    }
    command.spawn().unwrap()
}

/// What clients have seen, over all processes.
#[derive(Default)]
struct Seen {
    /// Events by number: kind, what they are about, status.
    events: BTreeMap<u64, String>,
    /// Prompts that were acknowledged, with their numbers.
    accepted: BTreeMap<String, u64>,
    /// Prompts of which it is known how they ended.
    ended: BTreeSet<String>,
}

impl Seen {
    fn cursor(&self) -> u64 {
        self.events.keys().next_back().copied().unwrap_or_default()
    }

    fn note(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["event", seq, kind, about, status] => {
                let seq: u64 = seq.parse().unwrap();
                assert_eq!(seq, self.cursor() + 1, "each event once and in order");
                self.events.insert(seq, format!("{kind} {about} {status}"));
                if kind == "delivery_update" && ["processed", "interrupted"].contains(&status) {
                    assert!(self.ended.insert(about.to_owned()), "{about} ended twice");
                }
            }
            ["accepted", uuid, seq] => {
                let seq = seq.parse().unwrap();
                let before = self.accepted.insert(uuid.to_owned(), seq);
                assert!(before.is_none_or(|before| before == seq), "one prompt, one event");
            }
            _ => panic!("{line}"),
        }
    }
}

fn set(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Kills hosts while they work on a session, and lets the last one end the work.
fn kill_in_session(
    place: &Path,
    session: &SessionId,
    kills: u64,
    random: &mut fastrand::Rng,
    with_real_cli: bool,
) -> Seen {
    let mut seen = Seen::default();
    let mut sent: Vec<String> = Vec::new();
    for life in 0..=kills {
        let mut child = start(place, session, seen.cursor(), with_real_cli);
        let (mut input, output) = (
            child.stdin.take().unwrap(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        if life < kills {
            sent.extend((0..random.usize(1..5)).map(|_| Uuid::new_v4().to_string()));
        }
        // What was not acknowledged is sent again; what was may be.
        for (at, uuid) in sent.iter().enumerate() {
            let is_recent = sent.len() - at <= RECENT;
            if !seen.accepted.contains_key(uuid) || is_recent && random.u8(..4) == 0 {
                writeln!(input, "{uuid} %delay 5\\n%say {uuid}").unwrap();
            }
        }
        // It is killed behind some line, or when all is done.
        let mut left = if life < kills { random.u64(1..40) } else { u64::MAX };
        let all: BTreeSet<String> = sent.iter().cloned().collect();
        for line in output.lines() {
            let line = line.unwrap();
            let Some((_, line)) = line.split_once(MARK) else {
                continue;
            };
            seen.note(line);
            left -= 1;
            let is_done = seen.ended == all && seen.accepted.len() == all.len();
            if left == 0 || is_done {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    seen
}

/// What is on disk is what clients were told.
async fn compare(host: &SessionHost, id: &SessionId, seen: &Seen) {
    let (mut after, mut users) = (0, BTreeMap::<String, u64>::new());
    let mut epochs = 0;
    loop {
        let page = host.events(id, after, 500).await.unwrap();
        for event in &page.events {
            assert_eq!(event.seq, after + 1, "the numbers have no gap");
            after = event.seq;
            let payload = event.payload.to_value().unwrap();
            if event.kind == "user" && event.actor.as_deref() == Some("test") {
                let uuid = payload["uuid"].as_str().unwrap().to_owned();
                assert!(
                    users.insert(uuid, event.seq).is_none(),
                    "a prompt is in the log once"
                );
            }
            if event.kind == "process_started" {
                assert!(event.epoch > epochs, "one process after the other");
                epochs = event.epoch;
            }
            if let Some(told) = seen.events.get(&event.seq) {
                assert!(
                    told.starts_with(&format!("{} ", event.kind)),
                    "{} is {told}",
                    event.seq
                );
            }
        }
        if page.events.is_empty() {
            break;
        }
    }
    assert!(after >= seen.cursor(), "nothing that a client saw is gone");
    assert_eq!(users, seen.accepted, "each acknowledged prompt, and no other");
}

fn kill(kills: u64, with_real_cli: bool) {
    let mut random = fastrand::Rng::with_seed(set("OUTRIGGER_SEED").unwrap_or(1));
    let place = tempfile::tempdir().unwrap();
    let mut sessions = Vec::new();
    let mut left = kills;
    while left > 0 {
        let now = left.min(KILLS_OF_A_SESSION);
        let session = SessionId::random();
        let seen = kill_in_session(place.path(), &session, now, &mut random, with_real_cli);
        sessions.push((session, seen));
        left -= now;
    }
    // A CLI whose host was killed ends by itself.
    let began = Instant::now();
    while cli_runs_in(place.path().join("claude")) {
        assert!(began.elapsed() < PATIENCE, "a CLI is left");
        std::thread::yield_now();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let log = SqliteLog::open(place.path().join("host.db")).unwrap();
        assert_eq!(log.check().await.unwrap().problems, Vec::<String>::new());
        let cli = Simulated::agent(|agent| agent);
        let host = SessionHost::open(HostPolicy::new(cli.options(), [place.path()]), log)
            .await
            .unwrap();
        for (session, seen) in &sessions {
            compare(&host, session, seen).await;
        }
        host.shutdown().await;
    });
}

/// `OUTRIGGER_HOST_KILLS` asks for another number of kills, `OUTRIGGER_SEED` for other moments.
#[test]
fn a_host_that_is_killed_loses_nothing_that_it_acknowledged() {
    kill(set("OUTRIGGER_HOST_KILLS").unwrap_or(25), false);
}

/// `OUTRIGGER_HOST_REAL_KILLS` asks for another number of kills.
#[test]
fn a_host_with_the_real_cli_that_is_killed_loses_nothing_that_it_acknowledged() {
    kill(set("OUTRIGGER_HOST_REAL_KILLS").unwrap_or(2), true);
}
