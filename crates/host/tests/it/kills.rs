//! A host that is killed by SIGKILL at random moments.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger::testing::Simulated;
use outrigger_host::log::SqliteLog;
use outrigger_host::{Delivered, HostPolicy, NewSession, SessionHost};
use serde_json::json;
use uuid::Uuid;

/// Names the directory of the host, in the process that is one.
const PLACE: &str = "OUTRIGGER_HOST_KILLS_PLACE";

/// The cursor from which that process emits events.
const CURSOR: &str = "OUTRIGGER_HOST_KILLS_CURSOR";

/// Lines of a process that is a host begin with this; libtest writes others.
const MARK: &str = "@@";

async fn host(place: &Path) -> SessionHost {
    // Sessions are stored where the next process finds them.
    let options = Simulated::agent(|agent| agent.directives())
        .options()
        .env("CLAUDE_CONFIG_DIR", place.join("claude").display().to_string());
    let mut policy = HostPolicy::new(options, [place]);
    policy.lease = false;
    let log = SqliteLog::open(place.join("host.db")).unwrap();
    SessionHost::open(policy, log).await.unwrap()
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
        let host = host(&place).await;
        let id = match host.sessions(None, 1).await.unwrap().first() {
            Some(session) => session.id.clone(),
            None => host.create(NewSession::new(&place), "test").await.unwrap().id,
        };
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

fn start(place: &Path, cursor: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::process", "--nocapture"])
        .env(PLACE, place)
        .env(CURSOR, cursor.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
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

/// `OUTRIGGER_HOST_KILLS` asks for another number of kills, `OUTRIGGER_SEED` for other moments.
#[test]
fn a_host_that_is_killed_loses_nothing_that_it_acknowledged() {
    let set = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    let (kills, seed) = (
        set("OUTRIGGER_HOST_KILLS").unwrap_or(25),
        set("OUTRIGGER_SEED").unwrap_or(1),
    );
    let mut random = fastrand::Rng::with_seed(seed);
    let place = tempfile::tempdir().unwrap();
    let mut seen = Seen::default();
    let mut sent: Vec<String> = Vec::new();
    for life in 0..=kills {
        let mut child = start(place.path(), seen.cursor());
        let (mut input, output) = (
            child.stdin.take().unwrap(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        if life < kills {
            sent.extend((0..random.usize(1..5)).map(|_| Uuid::new_v4().to_string()));
        }
        // What was not acknowledged is sent again; what was may be.
        for uuid in &sent {
            if !seen.accepted.contains_key(uuid) || random.u8(..4) == 0 {
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

    // What is on disk is what clients were told.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let host = host(place.path()).await;
        let id: SessionId = host.sessions(None, 1).await.unwrap()[0].id.clone();
        let (mut after, mut users) = (0, BTreeMap::<String, u64>::new());
        loop {
            let page = host.events(&id, after, 500).await.unwrap();
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
        host.shutdown().await;
    });
}
