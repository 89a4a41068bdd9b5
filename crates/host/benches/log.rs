//! What the log of a host costs beside a plain synced append, and its readers beside a plain broadcast.
//!
//! `cargo bench -p outrigger-host --bench log [-- EVENTS]` appends events of 1 KB, 2000 of each kind unless said otherwise, into a temporary
//! directory, and then fills a log up to 1 GiB. The *floor* is an append to a file with `fdatasync` behind it, for readers a
//! `tokio::sync::broadcast`; it is measured in the same run. CLIs are simulated ones in this process, so that the memory of a live session has
//! theirs in it. Memory is that of Linux (`VmRSS`); elsewhere it is 0.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]
#![expect(clippy::unwrap_used, reason = "its only input is what it has set up itself")]

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger::testing::Simulated;
use outrigger_host::log::{NewEvent, SqliteLog, Write};
use outrigger_host::{Delivered, Delivery, HostPolicy, NewSession, SessionHost, Source};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const SESSIONS: usize = 64;
const READERS: usize = 1000;
const AT_REST: usize = 10_000;

/// How many sessions have a process, of how many.
const LIVE: usize = 20;
const OF: usize = 1000;

/// The size of the log with which a host starts, in bytes, and how many events a session of it has.
const LARGE: u64 = 1 << 30;
const EVENTS: usize = 10_000;

fn payload() -> String {
    format!(r#"{{"type":"assistant","text":"{}"}}"#, "x".repeat(1000))
}

fn event() -> Write {
    let payload = RawJson::from_text(payload()).unwrap();
    Write::Append(NewEvent::new(Source::Worker, "assistant", payload))
}

fn per_second(events: usize, time: Duration) -> f64 {
    events as f64 / time.as_secs_f64()
}

fn quantile(times: &mut [Duration], part: f64) -> f64 {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6
}

fn plain_append(dir: &Path, events: usize) -> f64 {
    let mut file = std::fs::File::create(dir.join("plain")).unwrap();
    let line = payload() + "\n";
    let began = Instant::now();
    for _ in 0..events {
        file.write_all(line.as_bytes()).unwrap();
        file.sync_data().unwrap();
    }
    per_second(events, began.elapsed())
}

async fn append(host: &SessionHost, sessions: &[SessionId], events: usize) -> f64 {
    let mut writers = JoinSet::new();
    let began = Instant::now();
    for session in sessions {
        let (log, session) = (host.event_log(), session.clone());
        let count = events / sessions.len();
        writers.spawn(async move {
            for _ in 0..count {
                log.write(&session, vec![event()]).await.unwrap();
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    per_second(events / sessions.len() * sessions.len(), began.elapsed())
}

/// From the append of an event until a reader has it.
async fn latency(host: &SessionHost, session: &SessionId, events: usize) -> Vec<Duration> {
    let head = host.session(session).await.unwrap().head_seq;
    let mut reader = host.subscribe(session, head).await.unwrap();
    assert!(matches!(reader.next().await.unwrap(), Delivered::Synced { .. }));
    let log = host.event_log();
    let mut times = Vec::new();
    for _ in 0..events {
        let began = Instant::now();
        let (written, read) = tokio::join!(log.write(session, vec![event()]), reader.next());
        written.unwrap();
        assert!(matches!(read.unwrap(), Delivered::Event(_)));
        times.push(began.elapsed());
    }
    times
}

/// From a synced append of a file until a receiver of a broadcast has the text.
async fn plain_latency(dir: &Path, events: usize) -> Vec<Duration> {
    let mut file = std::fs::File::create(dir.join("plain")).unwrap();
    let sender = tokio::sync::broadcast::Sender::new(256);
    let mut receiver = sender.subscribe();
    let reader = async {
        let mut times = Vec::new();
        for _ in 0..events {
            let began: Instant = receiver.recv().await.unwrap();
            times.push(began.elapsed());
        }
        times
    };
    let line = payload() + "\n";
    let writer = tokio::task::spawn_blocking(move || {
        for _ in 0..events {
            let began = Instant::now();
            file.write_all(line.as_bytes()).unwrap();
            file.sync_data().unwrap();
            sender.send(began).unwrap();
        }
    });
    let times = reader.await;
    writer.await.unwrap();
    times
}

/// Until all readers have an event.
async fn fan_out(host: &SessionHost, session: &SessionId, rounds: usize) -> Vec<Duration> {
    let head = host.session(session).await.unwrap().head_seq;
    let barrier = Arc::new(Barrier::new(READERS + 1));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let mut reader = host.subscribe(session, head).await.unwrap();
        let barrier = Arc::clone(&barrier);
        readers.spawn(async move {
            assert!(matches!(reader.next().await.unwrap(), Delivered::Synced { .. }));
            barrier.wait().await;
            for _ in 0..rounds {
                assert!(matches!(reader.next().await.unwrap(), Delivered::Event(_)));
                barrier.wait().await;
            }
        });
    }
    barrier.wait().await;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        host.event_log().write(session, vec![event()]).await.unwrap();
        barrier.wait().await;
        times.push(began.elapsed());
    }
    times
}

async fn plain_fan_out(rounds: usize) -> Vec<Duration> {
    let sender = tokio::sync::broadcast::Sender::new(256);
    let barrier = Arc::new(Barrier::new(READERS + 1));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let mut receiver = sender.subscribe();
        let barrier = Arc::clone(&barrier);
        readers.spawn(async move {
            barrier.wait().await;
            for _ in 0..rounds {
                let _: Arc<str> = receiver.recv().await.unwrap();
                barrier.wait().await;
            }
        });
    }
    barrier.wait().await;
    let text: Arc<str> = payload().into();
    let mut times = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        sender.send(Arc::clone(&text)).unwrap();
        barrier.wait().await;
        times.push(began.elapsed());
    }
    times
}

async fn create(host: &SessionHost, dir: &Path, count: usize) -> Vec<SessionId> {
    let mut makers = JoinSet::new();
    for part in 0..SESSIONS {
        let (host, dir) = (host.clone(), dir.to_owned());
        makers.spawn(async move {
            let mut ids = Vec::new();
            for _ in (part..count).step_by(SESSIONS) {
                ids.push(host.create(NewSession::new(&dir), "bench").await.unwrap().id);
            }
            ids
        });
    }
    makers.join_all().await.concat()
}

/// The memory of this process, in bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

/// What sessions take, at rest and with a process that has done a turn.
async fn live(dir: &Path) {
    let before = memory();
    let log = SqliteLog::open(dir.join("live.db")).unwrap();
    let cli = Simulated::agent(|agent| agent.directives());
    let mut policy = HostPolicy::new(cli.options(), [dir]);
    policy.lease = false;
    policy.max_processes = LIVE;
    let host = SessionHost::open(policy, log).await.unwrap();
    let ids = create(&host, dir, OF).await;
    let at_rest = memory();
    let mut turns = JoinSet::new();
    for id in ids.into_iter().take(LIVE) {
        let host = host.clone();
        turns.spawn(async move {
            let mut events = host.subscribe(&id, 0).await.unwrap();
            let prompt =
                RawJson::from_text(r#"{"type":"user","message":{"role":"user","content":"%say hello"}}"#);
            host.send(&id, prompt.unwrap(), "bench").await.unwrap();
            loop {
                if let Delivered::Event(event) = events.next().await.unwrap()
                    && event.kind == "delivery_update"
                    && event.payload.get().contains("processed")
                {
                    return;
                }
            }
        });
    }
    turns.join_all().await;
    let with_live = memory();
    println!(
        "memory: {:.1} MiB with {OF} sessions at rest ({:.1} more than before), {:.1} MiB with {LIVE} of them live ({:.2} MiB for each)",
        mib(at_rest),
        mib(at_rest.saturating_sub(before)),
        mib(with_live),
        mib(with_live.saturating_sub(at_rest)) / LIVE as f64
    );
    host.shutdown().await;
}

/// From nothing to a host that answers, with a log of [`LARGE`].
async fn large(dir: &Path) {
    let path = dir.join("large.db");
    let cli = Simulated::agent(|agent| agent);
    let policy = || HostPolicy::new(cli.options(), [dir]);
    let size = || std::fs::metadata(&path).unwrap().len();
    let host = SessionHost::open(policy(), SqliteLog::open(&path).unwrap())
        .await
        .unwrap();
    let began = Instant::now();
    let mut events = 0;
    while size() < LARGE {
        let session = host.create(NewSession::new(dir), "bench").await.unwrap().id;
        for _ in 0..EVENTS / 500 {
            // Every tenth event is a prompt, which is kept a second time so that it is known when it is repeated.
            let steps = (0..500).map(|n| match n % 10 {
                0 => {
                    let text = format!(
                        r#"{{"type":"user","message":{{"role":"user","content":"{}"}}}}"#,
                        "x".repeat(500)
                    );
                    Write::Accept(NewEvent::new(
                        Source::Client,
                        "user",
                        RawJson::from_text(text).unwrap(),
                    ))
                }
                _ => event(),
            });
            let written = host.event_log().write(&session, steps.collect()).await.unwrap();
            let done = written
                .accepted
                .iter()
                .map(|prompt| Write::Mark(prompt.event_id, Delivery::Processed));
            host.event_log().write(&session, done.collect()).await.unwrap();
            events += 500;
        }
    }
    println!(
        "{events} events and {:.0} MiB written in {:.0} s",
        mib(size()),
        began.elapsed().as_secs_f64()
    );
    host.shutdown().await;
    drop(host);

    let began = Instant::now();
    std::io::copy(&mut std::fs::File::open(&path).unwrap(), &mut std::io::sink()).unwrap();
    let floor = began.elapsed();
    let began = Instant::now();
    let host = SessionHost::open(policy(), SqliteLog::open(&path).unwrap())
        .await
        .unwrap();
    let session = host.sessions(None, 1).await.unwrap().remove(0);
    let page = host.events(&session.id, session.head_seq - 1, 1).await.unwrap();
    assert_eq!(page.events.len(), 1);
    let start = began.elapsed();
    let began = Instant::now();
    host.counts().await.unwrap();
    let counts = began.elapsed();
    let began = Instant::now();
    let check = SqliteLog::check_of(&path).unwrap().problems.len();
    println!(
        "start with it: {:.1} ms (reading the file {:.0} ms), its metrics {:.1} ms, a check of all of it {:.1} s, {} problems",
        start.as_secs_f64() * 1e3,
        floor.as_secs_f64() * 1e3,
        counts.as_secs_f64() * 1e3,
        began.elapsed().as_secs_f64(),
        check
    );
    host.shutdown().await;
}

fn main() {
    // `cargo bench` adds a flag of its own.
    let events = std::env::args()
        .skip(1)
        .find_map(|one| one.parse().ok())
        .unwrap_or(2000);
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let log = SqliteLog::open(dir.path().join("host.db")).unwrap();
        let cli = Simulated::agent(|agent| agent);
        let host = SessionHost::open(HostPolicy::new(cli.options(), [dir.path()]), log)
            .await
            .unwrap();
        let sessions = create(&host, dir.path(), SESSIONS).await;

        let floor = plain_append(dir.path(), events);
        println!("synced appends a second, floor      {floor:10.0}");
        let one = append(&host, &sessions[..1], events).await;
        println!(
            "events a second, 1 session          {one:10.0}   x {:.2}",
            one / floor
        );
        let many = append(&host, &sessions, events).await;
        println!(
            "events a second, {SESSIONS} sessions        {many:10.0}   x {:.2}",
            many / floor
        );

        let mut floor = plain_latency(dir.path(), events).await;
        let mut times = latency(&host, &sessions[0], events).await;
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            let (floor, time) = (quantile(&mut floor, part), quantile(&mut times, part));
            println!(
                "append to reader, {name}: floor {floor:.0} us, host {time:.0} us, x {:.2}",
                time / floor
            );
        }
        let rounds = (events / 40).max(1);
        let mut floor = plain_fan_out(rounds).await;
        let mut times = fan_out(&host, &sessions[1], rounds).await;
        let (floor, time) = (quantile(&mut floor, 0.5), quantile(&mut times, 0.5));
        println!(
            "to {READERS} readers, p50: broadcast {floor:.0} us, host with its append {time:.0} us, x {:.2}",
            time / floor
        );

        let began = Instant::now();
        create(&host, dir.path(), AT_REST - SESSIONS).await;
        println!(
            "{AT_REST} sessions created in {:.1} s",
            began.elapsed().as_secs_f64()
        );
        let began = Instant::now();
        let (mut after, mut listed) = (None, 0);
        loop {
            let page = host.sessions(after.as_ref(), 1000).await.unwrap();
            listed += page.len();
            match page.last() {
                Some(last) => after = Some(last.id.clone()),
                None => break,
            }
        }
        assert_eq!(listed, AT_REST);
        println!(
            "{AT_REST} sessions listed in {:.0} ms",
            began.elapsed().as_secs_f64() * 1e3
        );
        host.shutdown().await;
        live(dir.path()).await;
        large(dir.path()).await;
    });
}
