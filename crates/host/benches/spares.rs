//! How long the first prompt of a new session waits in a host, with spare processes and without.
//!
//! `cargo bench -p outrigger-host --bench spares [-- RUNS]` runs the real, pinned CLI against a scripted API on this machine, ten sessions of each kind unless
//! said otherwise, in turn. The clock starts when the host is given the first prompt of a session that is there. *Event* is the `system/init` with which its
//! turn begins, *token* the first piece of the model's answer; the *floor* is a session of the SDK that was started before (`Options::startup`), and has no
//! host and no log. Printed are medians and least values in milliseconds, and what they are of those without spares.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]
#![expect(clippy::unwrap_used, reason = "its only input is what it has set up itself")]

use std::time::{Duration, Instant};

use outrigger::Options;
use outrigger::protocol::RawJson;
use outrigger::testing::RealCli;
use outrigger_host::log::SqliteLog;
use outrigger_host::{Delivered, HostPolicy, NewSession, SessionHost};

const WAYS: [&str; 3] = ["without spares", "with a spare", "floor"];
const PROMPT: &str = "%say hello";

/// When the first event and the first piece of the answer came.
#[derive(Clone, Copy)]
struct Seen {
    event: Duration,
    token: Duration,
}

/// Lets the machine come to rest after a start.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}

async fn floor(options: Options) -> Seen {
    let session = options.startup().await.unwrap();
    settle().await;
    let since = Instant::now();
    let mut turn = session.prompt(PROMPT).await.unwrap();
    let (mut event, mut token) = (None, None);
    while let Some(frame) = turn.next_frame().await {
        let frame = frame.unwrap();
        if frame.subtype() == Some("init") {
            event.get_or_insert_with(|| since.elapsed());
        }
        if frame.kind() == "stream_event" {
            token.get_or_insert_with(|| since.elapsed());
        }
    }
    drop(turn);
    session.close().await.unwrap();
    Seen {
        event: event.unwrap(),
        token: token.unwrap(),
    }
}

async fn hosted(real: &RealCli, spares: usize) -> Seen {
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project();
    let options = real.options().include_partial_messages(true);
    let policy = HostPolicy::new(options, [project.clone()]).spares(spares);
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let host = SessionHost::open(policy, log).await.unwrap();
    while host.spares().ready < spares as u64 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    settle().await;
    let id = host.create(NewSession::new(project), "bench").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let text = format!(r#"{{"type":"user","message":{{"role":"user","content":"{PROMPT}"}}}}"#);
    let prompt = RawJson::from_text(text).unwrap();
    let since = Instant::now();
    host.send(&id, prompt, "bench").await.unwrap();
    let (mut event, mut token) = (None, None);
    while event.is_none() || token.is_none() {
        match events.next().await.unwrap() {
            Delivered::Event(found) if found.payload.get().contains(r#""subtype":"init""#) => {
                event.get_or_insert_with(|| since.elapsed());
            }
            Delivered::Ephemeral(frame) if frame.contains(r#""stream_event""#) => {
                token.get_or_insert_with(|| since.elapsed());
            }
            _ => {}
        }
    }
    assert_eq!(host.spares().claimed, spares as u64);
    host.shutdown().await;
    Seen {
        event: event.unwrap(),
        token: token.unwrap(),
    }
}

/// The median and the least, in milliseconds.
fn of(seen: &[Seen], value: impl Fn(&Seen) -> Duration) -> (f64, f64) {
    let mut times: Vec<f64> = seen.iter().map(|seen| value(seen).as_secs_f64() * 1e3).collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0])
}

fn main() {
    // `cargo bench` adds a flag of its own.
    let runs = std::env::args()
        .skip(1)
        .find_map(|one| one.parse().ok())
        .unwrap_or(10);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let real = RealCli::directives().await.unwrap();
        let mut seen = [const { Vec::new() }; 3];
        for _ in 0..runs {
            for (way, seen) in seen.iter_mut().enumerate() {
                let one = match way {
                    0 | 1 => hosted(&real, way).await,
                    _ => floor(real.options().include_partial_messages(true)).await,
                };
                seen.push(one);
            }
        }
        let base = [
            of(&seen[0], |seen| seen.event).0,
            of(&seen[0], |seen| seen.token).0,
        ];
        println!(
            "{:16}{:>16}{:>8}{:>6}{:>16}{:>8}{:>6}",
            "ms", "event, median", "least", "x", "token, median", "least", "x"
        );
        for (way, seen) in WAYS.iter().zip(&seen) {
            let (event, least) = of(seen, |seen| seen.event);
            let (token, least_token) = of(seen, |seen| seen.token);
            println!(
                "{way:16}{event:16.0}{least:8.0}{:6.2}{token:16.0}{least_token:8.0}{:6.2}",
                event / base[0],
                token / base[1]
            );
        }
    });
}
