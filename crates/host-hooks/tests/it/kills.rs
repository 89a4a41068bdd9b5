//! A host with webhooks and schedules that is killed by SIGKILL at random moments.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use outrigger::SessionId;
use outrigger::testing::Simulated;
use outrigger_host::log::SqliteLog;
use outrigger_host::{
    AddressRule, Delivered, HostPolicy, LogEvent, MissedRuns, NewSession, Schedule, SessionHost, WebhookEvent,
};
use outrigger_host_hooks::{Clock, HttpDeliver, NewSchedule, NewWebhook, Schedules, WebhookLimits, Webhooks};
use rustls::RootCertStore;
use serde_json::{Value, json};
use uuid::Uuid;

/// Names the directory of the host, in the process that is one.
const PLACE: &str = "OUTRIGGER_HOOKS_KILLS_PLACE";

/// The address of its webhook.
const ADDRESS: &str = "OUTRIGGER_HOOKS_KILLS_ADDRESS";

/// What its clock says at its start, in seconds since 1970.
const NOW: &str = "OUTRIGGER_HOOKS_KILLS_NOW";

/// 1 March 2026 at noon, in UTC.
const NOON: i64 = 1_772_366_400;

/// The sessions. Each has a schedule; one skips what was missed, the other one catches up.
const SESSIONS: [(&str, MissedRuns); 2] = [
    ("5e551011-0000-4000-8000-000000000001", MissedRuns::Skip),
    ("5e551011-0000-4000-8000-000000000002", MissedRuns::Latest),
];

/// Times of the schedules are so far apart, in seconds.
const HOUR: u64 = 3600;

/// For a test that would otherwise hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lines of a process that is a host begin with this; libtest writes others.
const MARK: &str = "@@";

fn session(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

/// A host with its webhooks and its schedules, and the clock of the schedules.
struct Running {
    host: SessionHost,
    clock: Arc<AtomicI64>,
    schedules: Schedules,
    tick: tokio::sync::watch::Sender<()>,
}

impl Running {
    async fn start(place: &Path, address: &str, now: i64) -> Self {
        let cli = Simulated::agent(|agent| agent.directives());
        let options = cli.options();
        let options = options.env("CLAUDE_CONFIG_DIR", place.join("claude").display().to_string());
        let mut policy = HostPolicy::new(options, [place]);
        policy.lease = false;
        let log = SqliteLog::open(place.join("host.db")).unwrap();
        let host = SessionHost::open(policy, log).await.unwrap();
        let rule = AddressRule::public().allow("127.0.0.0/8").unwrap();
        let mut limits = WebhookLimits::default();
        limits.first_pause = Duration::from_millis(5);
        limits.longest_pause = Duration::from_millis(20);
        let webhooks = Webhooks::new(&host, rule.clone(), limits);
        let clock = Arc::new(AtomicI64::new(now));
        let read = Arc::clone(&clock);
        let clock_of_test = Clock::new(move || Timestamp::from_second(read.load(Ordering::SeqCst)).unwrap());
        let schedules = Schedules::with_clock(&host, clock_of_test);
        for (id, missed) in SESSIONS {
            let mut new = NewSession::new(place);
            new.id = Some(session(id));
            host.create(new, "test").await.unwrap();
            let has_one = schedules
                .list()
                .await
                .unwrap()
                .iter()
                .any(|one| one.session_id.as_str() == id);
            if !has_one {
                let mut new = NewSchedule::new(session(id), "0 * * * *", "UTC", "%say tick");
                new.missed = missed;
                schedules.add(new, "test").await.unwrap();
            }
        }
        if webhooks.list().await.unwrap().is_empty() {
            let events = [WebhookEvent::TurnResult, WebhookEvent::SessionStateChanged];
            let new = NewWebhook::new(format!("http://{address}/"), events);
            webhooks.add(new, "test").await.unwrap();
        }
        let deliver = Arc::new(HttpDeliver::with_roots(rule, RootCertStore::empty()).unwrap());
        tokio::spawn(async move { webhooks.run(deliver).await });
        let (tick, mut ticked) = tokio::sync::watch::channel(());
        let runner = schedules.clone();
        tokio::spawn(async move {
            loop {
                // A runner looks at its clock when it begins.
                tokio::select! {
                    _ = runner.run() => {}
                    changed = ticked.changed() => if changed.is_err() { return },
                }
            }
        });
        Self {
            host,
            clock,
            schedules,
            tick,
        }
    }

    fn set(&self, now: i64) {
        self.clock.store(now, Ordering::SeqCst);
        self.tick.send_replace(());
    }
}

/// Is the host that the test kills; nothing, if it is run as a test.
#[test]
fn process() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let address = std::env::var(ADDRESS).unwrap();
    let now = std::env::var(NOW).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async move {
        let running = Running::start(&place, &address, now).await;
        let say = |text: String| {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{MARK}{text}").unwrap();
            out.flush().unwrap();
        };
        for (id, _) in SESSIONS {
            let head = running.host.session(&session(id)).await.unwrap().head_seq;
            let mut events = running.host.subscribe(&session(id), head).await.unwrap();
            tokio::spawn(async move {
                loop {
                    if let Delivered::Event(event) = events.next().await.unwrap() {
                        say(format!("{} {}", event.seq, event.kind));
                    }
                }
            });
        }
        say("started".to_owned());
        let (line, mut lines) = tokio::sync::mpsc::channel(64);
        std::thread::spawn(move || {
            for text in std::io::stdin().lock().lines().map_while(Result::ok) {
                if line.blocking_send(text).is_err() {
                    return;
                }
            }
        });
        while let Some(text) = lines.recv().await {
            match text.split_once(' ') {
                Some(("now", now)) => running.set(now.parse().unwrap()),
                Some((id, uuid)) => {
                    let frame = json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": "%say hi"}});
                    running.host.send(&session(id), frame.into(), "test").await.unwrap();
                }
                None => panic!("{text}"),
            }
            say("done".to_owned());
        }
    });
}

fn start(place: &Path, address: &str, now: i64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::process", "--nocapture"])
        .env(PLACE, place)
        .env(ADDRESS, address)
        .env(NOW, now.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// What the address of the webhook got, in the order in which it came: the session, and the number of the event.
type Got = Arc<Mutex<Vec<(String, u64)>>>;

/// Takes messages for as long as the test runs. Of some it says that it did not, and some it never answers.
fn receiver(seed: u64) -> (String, Got) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let got = Got::default();
    let kept = Arc::clone(&got);
    let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (kept, random) = (Arc::clone(&kept), Arc::clone(&random));
            std::thread::spawn(move || while take(&stream, &kept, &random).is_some() {});
        }
    });
    (address, got)
}

/// Takes one message. `None` when the connection is to end.
fn take(mut stream: &TcpStream, kept: &Got, random: &Mutex<fastrand::Rng>) -> Option<()> {
    let mut request = Vec::new();
    let (length, body) = loop {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&bytes[..read]);
        let text = std::str::from_utf8(&request).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .unwrap();
            let length: usize = length.parse().unwrap();
            if body.len() == length {
                break (length, body.to_owned());
            }
        }
    };
    assert_eq!(body.len(), length);
    let body: Value = serde_json::from_str(&body).unwrap();
    let id = body["data"]["session_id"].as_str().unwrap().to_owned();
    let seq = body["data"]["sequence_num"].as_u64().unwrap();
    let chance = random.lock().unwrap().u8(..10);
    if chance == 0 {
        stream
            .write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n")
            .ok()?;
        return Some(());
    }
    kept.lock().unwrap().push((id, seq));
    if chance == 1 {
        // It took the message, and the host is not told.
        return None;
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        .ok()
}

fn set(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// All events of a session.
async fn events(host: &SessionHost, id: &str) -> Vec<Arc<LogEvent>> {
    let mut all = Vec::new();
    loop {
        let page = host.events(&session(id), all.len() as u64, 1000).await.unwrap();
        if page.events.is_empty() {
            return all;
        }
        all.extend(page.events);
    }
}

/// Each time of a schedule up to its next one has sent its prompt once, or was told as missed once.
fn check_times(schedule: &Schedule, events: &[Arc<LogEvent>]) {
    let runs: Vec<Uuid> = events
        .iter()
        .filter(|event| event.kind == "user" && event.actor == Some(format!("schedule:{}", schedule.id)))
        .map(|event| event.event_id)
        .collect();
    let distinct: BTreeSet<&Uuid> = runs.iter().collect();
    assert_eq!(distinct.len(), runs.len(), "a prompt was sent twice");
    let mut missed = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind == "schedule_missed") {
        let told = event.payload.to_value().unwrap();
        let number = |name: &str| told[name].as_u64().unwrap();
        let (first, last) = (number("first"), number("last"));
        let times: Vec<u64> = (first..=last).step_by((HOUR * 1000) as usize).collect();
        assert_eq!(times.len() as u64, number("count"), "{told}");
        for time in times {
            let runs = told["runs"] == true && time == last;
            assert!(missed.insert(time, runs).is_none(), "{time} is told twice");
        }
    }
    let first = (NOON as u64 + HOUR) * 1000;
    let mut ran = 0;
    for time in (first..schedule.next_at.unwrap()).step_by((HOUR * 1000) as usize) {
        let has_run = distinct.contains(&schedule.prompt_id(time));
        let expected = missed.get(&time).copied().unwrap_or(true);
        assert_eq!(has_run, expected, "{time}: {missed:?}");
        ran += usize::from(has_run);
    }
    assert_eq!(ran, runs.len(), "a prompt was sent at no time of the schedule");
}

/// `OUTRIGGER_HOOKS_KILLS` asks for another number of kills, `OUTRIGGER_SEED` for other moments.
#[test]
fn a_host_that_is_killed_tells_each_event_in_order_and_runs_no_time_twice() {
    let seed = set("OUTRIGGER_SEED").unwrap_or(1);
    let kills = set("OUTRIGGER_HOOKS_KILLS").unwrap_or(15);
    let mut random = fastrand::Rng::with_seed(seed);
    let place = tempfile::tempdir().unwrap();
    let (address, got) = receiver(seed);
    let mut now = NOON;
    for _ in 0..kills {
        let mut child = start(place.path(), &address, now);
        let mut input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Less than a pipe takes.
        let commands = random.u32(2..8);
        for _ in 0..commands {
            let written = match random.bool() {
                true => {
                    now += random.i64(1..3 * HOUR as i64);
                    // Often a time is on time.
                    if random.bool() {
                        now -= now % HOUR as i64;
                    }
                    writeln!(input, "now {now}")
                }
                false => writeln!(input, "{} {}", random.choice(SESSIONS).unwrap().0, Uuid::new_v4()),
            };
            written.unwrap();
        }
        // It is killed behind some line, or behind the last command.
        let mut left = random.u32(1..40);
        let mut done = 0;
        for line in lines.map_while(Result::ok) {
            let Some((_, line)) = line.split_once(MARK) else {
                continue;
            };
            done += u32::from(line == "done");
            left -= 1;
            if left == 0 || done == commands {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // And is down for a while.
        now += random.i64(0..2 * HOUR as i64);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let running = Running::start(place.path(), &address, now).await;
        // A time is due that wakes all that waits.
        now += HOUR as i64 - now % HOUR as i64;
        running.set(now);
        let quiet = async {
            loop {
                let mut is_quiet = true;
                let schedules = running.schedules.list().await.unwrap();
                is_quiet &= schedules
                    .iter()
                    .all(|one| one.next_at.unwrap() > now as u64 * 1000);
                for (id, _) in SESSIONS {
                    let events = events(&running.host, id).await;
                    let (left, state) = left(&events);
                    let wanted = wanted(&events);
                    is_quiet &= left.is_empty()
                        && state == "idle"
                        && got
                            .lock()
                            .unwrap()
                            .contains(&(id.to_owned(), *wanted.last().unwrap()));
                }
                if is_quiet {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(PATIENCE, quiet).await.is_err() {
            let schedules = running.schedules.list().await.unwrap();
            for (id, _) in SESSIONS {
                let events = events(&running.host, id).await;
                println!("{id}: {:?}, wanted {:?}", left(&events), wanted(&events));
            }
            panic!(
                "at {now} it is not quiet: {schedules:?}, {:?}",
                got.lock().unwrap()
            );
        }
        for (id, missed) in SESSIONS {
            let events = events(&running.host, id).await;
            let schedules = running.schedules.list().await.unwrap();
            let schedule = schedules
                .iter()
                .find(|one| one.session_id.as_str() == id)
                .unwrap();
            assert_eq!(schedule.missed, missed);
            check_times(schedule, &events);
            let wanted = wanted(&events);
            let came: Vec<u64> = got
                .lock()
                .unwrap()
                .iter()
                .filter(|(of, _)| of == id)
                .map(|(_, seq)| *seq)
                .collect();
            let mut at = 0;
            for seq in &came {
                // The next one, or once more the one that the host did not know to be taken.
                let is_next = wanted.get(at) == Some(seq);
                assert!(
                    is_next || at > 0 && wanted[at - 1] == *seq,
                    "{seq} of {came:?}, wanted {wanted:?}"
                );
                at += usize::from(is_next);
            }
            assert_eq!(at, wanted.len(), "each event came");
        }
        running.host.shutdown().await;
    });
}

/// The prompts that have no end, and the last state.
fn left(events: &[Arc<LogEvent>]) -> (BTreeSet<String>, String) {
    let prompts = events
        .iter()
        .filter(|event| event.kind == "user" && event.actor.is_some());
    let mut left: BTreeSet<String> = prompts.map(|event| event.event_id.to_string()).collect();
    let mut last = String::new();
    for event in events {
        let payload = event.payload.to_value().unwrap();
        match &*event.kind {
            "delivery_update"
                if ["processed", "interrupted"].contains(&payload["status"].as_str().unwrap()) =>
            {
                assert!(
                    left.remove(payload["event_id"].as_str().unwrap()),
                    "{payload} is told twice"
                );
            }
            "session_state_changed" => last = payload["state"].as_str().unwrap().to_owned(),
            _ => {}
        }
    }
    (left, last)
}

/// The numbers of the events that the webhook is to get.
fn wanted(events: &[Arc<LogEvent>]) -> Vec<u64> {
    let wanted = events.iter().filter(|event| {
        matches!(
            (event.source, &*event.kind),
            (outrigger_host::Source::Host, "session_state_changed")
                | (outrigger_host::Source::Worker, "result")
        )
    });
    wanted.map(|event| event.seq).collect()
}
