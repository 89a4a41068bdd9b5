//! How long it takes from having a prompt to the first thing that comes of it, for each way to a session.
//!
//! `cargo bench -p outrigger --bench start [-- RUNS]` starts the real, pinned CLI against a scripted API on this machine, ten
//! times for each way unless said otherwise, the ways in turn. Run it inside of `cargo xtask isolated`, which leaves it no
//! network but the loopback. Printed are the median and the minimum in milliseconds.
//!
//! The clock starts when the program has both a prompt and a directory for it:
//!
//! * *floor*: the CLI by itself: a process is started, `initialize` and the prompt are written at once.
//! * *cold*: `Options::start`, then the prompt.
//! * *warm*: the session was started before (`Options::startup`): the prompt alone.
//! * *spare*: a process was parked before (`Options::prewarm`): `Spare::claim`, then the prompt.
//! * *pool*: a pool is full: `Pool::get`, then the prompt.
//!
//! *Frame* is the `system/init` that the turn begins with, *token* the first partial message of the model's answer.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "its only input is what it has set up itself"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use outrigger::options::{Auth, Secret};
use outrigger::{Agent, Claim, Options, Pool, PoolLimits, PoolOrigin, Session};
use outrigger_sim::api::{ApiRequest, MessagesApi};
use outrigger_sim::claude::{Launch, Sandbox, executable};

const PROMPT: &str = "%say hello";
const WAYS: [&str; 5] = ["floor", "cold", "warm", "spare", "pool"];

/// When the first frame and the first token came.
struct Seen {
    frame: Duration,
    token: Duration,
}

struct Place {
    api: MessagesApi,
    sandbox: Sandbox,
    cli: PathBuf,
}

impl Place {
    fn options(&self) -> Options {
        let mut options = Agent::builder()
            .auth(Auth::ApiKey(Secret::new(ApiRequest::DUMMY_KEY)))
            .cli_path(&self.cli)
            .cwd(self.sandbox.project())
            .include_partial_messages(true);
        for (name, value) in self.sandbox.env(&self.api.base_url()) {
            if name != "ANTHROPIC_API_KEY" {
                options = options.env(name, value);
            }
        }
        options
    }

    fn claim(&self) -> Claim {
        Claim::new(self.sandbox.project())
    }

    async fn run(&self, way: &str) -> Seen {
        match way {
            "floor" => self.floor().await,
            "cold" => {
                let since = Instant::now();
                let session = self.options().start().await.unwrap();
                prompted(session, since).await
            }
            "warm" => {
                let session = self.options().startup().await.unwrap();
                settle().await;
                prompted(session, Instant::now()).await
            }
            "spare" => {
                let spare = self.options().prewarm().await.unwrap();
                settle().await;
                let since = Instant::now();
                let session = spare.claim(self.claim()).await.unwrap();
                prompted(session, since).await
            }
            "pool" => {
                let pool = Pool::new(PoolLimits::default());
                let key = pool.keep(self.options(), 1).unwrap();
                while pool.stats().spares == 0 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                settle().await;
                let since = Instant::now();
                let pooled = pool.get(&key, self.claim()).await.unwrap();
                assert!(matches!(pooled.origin, PoolOrigin::Spare { .. }));
                let seen = prompted(pooled.session, since).await;
                pool.close().await;
                seen
            }
            other => panic!("no such way: {other}"),
        }
    }

    async fn floor(&self) -> Seen {
        let since = Instant::now();
        let mut claude = Launch::new(&self.cli, &self.sandbox, &self.api.base_url())
            .arg("--setting-sources=")
            .arg("--strict-mcp-config")
            .arg("--include-partial-messages")
            .spawn()
            .unwrap();
        let initialize = serde_json::json!({
            "type": "control_request", "request_id": "1", "request": {"subtype": "initialize"},
        });
        claude.send(&initialize).await.unwrap();
        claude.prompt(PROMPT).await.unwrap();
        claude
            .until("init", |seen| seen.frame.subtype() == Some("init"))
            .await
            .unwrap();
        let frame = since.elapsed();
        claude
            .until("a token", |seen| seen.frame.kind() == "stream_event")
            .await
            .unwrap();
        let token = since.elapsed();
        claude.result().await.unwrap();
        claude.finish().await.unwrap();
        Seen { frame, token }
    }
}

/// Lets the machine come to rest after a start.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}

async fn prompted(session: Session, since: Instant) -> Seen {
    let mut turn = session.prompt(PROMPT).await.unwrap();
    let (mut frame, mut token) = (None, None);
    while let Some(next) = turn.next_frame().await {
        let next = next.unwrap();
        if next.subtype() == Some("init") {
            frame.get_or_insert_with(|| since.elapsed());
        }
        if next.kind() == "stream_event" {
            token.get_or_insert_with(|| since.elapsed());
        }
    }
    drop(turn);
    session.close().await.unwrap();
    Seen {
        frame: frame.unwrap(),
        token: token.unwrap(),
    }
}

fn median_and_least(times: impl Iterator<Item = Duration>) -> String {
    let mut times: Vec<f64> = times.map(|time| time.as_secs_f64() * 1000.0).collect();
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    let median = if times.len() % 2 == 1 {
        times[middle]
    } else {
        f64::midpoint(times[middle - 1], times[middle])
    };
    format!("{median:8.0} {:6.0}", times[0])
}

#[tokio::main]
async fn main() {
    let runs = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok());
    let runs: usize = runs.unwrap_or(10).max(1);
    let place = Place {
        api: MessagesApi::builder().directives(true).start().await.unwrap(),
        sandbox: Sandbox::new().unwrap(),
        cli: executable().await.unwrap(),
    };
    // The first process of all reads everything from disk.
    place.run("floor").await;
    let mut seen: Vec<Vec<Seen>> = WAYS.iter().map(|_| Vec::new()).collect();
    for _ in 0..runs {
        for (way, seen) in WAYS.iter().zip(&mut seen) {
            seen.push(place.run(way).await);
        }
    }
    println!("ms, median and least of {runs}      frame           token");
    for (way, seen) in WAYS.iter().zip(&seen) {
        let frame = median_and_least(seen.iter().map(|seen| seen.frame));
        let token = median_and_least(seen.iter().map(|seen| seen.token));
        println!("{way:24} {frame} {token}");
    }
}
