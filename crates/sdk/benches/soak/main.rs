//! One session for very long: many turns, and many bytes. Does its memory stay flat?
//!
//! `cargo xtask soak [--turns N] [--bytes N[KiB|MiB|GiB]]` runs it three times: many turns with a peer in memory, many bytes with
//! the same, and many turns with the simulated CLI as a child process. It ends with an error when the memory of this process
//! grows by more than [`BOUND`] after the first tenth, or when tasks, open files or anything in the session pile up.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal that measures"
)]

mod peer;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use outrigger::options::{Auth, Secret};
use outrigger::{Agent, Options, Session};
use tokio::runtime::Handle;

/// How much the resident memory may grow from a tenth of the way to the end, in KiB. What a turn costs in the tables that are
/// bounded (the ids of 65,536 prompts, some 150 bytes each) and what the allocator keeps is below it; a kilobyte kept of each of
/// 10,000 turns is beyond it.
const BOUND: u64 = 9 * 1024;

struct Plan {
    turns: u64,
    bytes: u64,
}

fn main() -> ExitCode {
    let plan = match plan(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(wrong) => {
            eprintln!("soak: {wrong}");
            return ExitCode::from(2);
        }
    };
    // Some work for each step of the way, and no less than it takes to settle.
    let per_turn = (plan.bytes / 1000).max(64 * 1024);
    let runs = [
        Run {
            name: "many turns, a peer in memory",
            turns: plan.turns,
            turn_bytes: 0,
            child: false,
        },
        Run {
            name: "many bytes, a peer in memory",
            turns: plan.bytes.div_ceil(per_turn).max(100),
            turn_bytes: per_turn,
            child: false,
        },
        Run {
            name: "many turns, a child process",
            turns: plan.turns,
            turn_bytes: 0,
            child: true,
        },
        Run {
            name: "many bytes, a child process",
            turns: plan.bytes.div_ceil(per_turn).max(100),
            turn_bytes: per_turn,
            child: true,
        },
    ];
    let mut flat = true;
    for run in runs {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        flat &= runtime.block_on(run.go());
    }
    if flat {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn plan(mut arguments: impl Iterator<Item = String>) -> Result<Plan, String> {
    let mut plan = Plan {
        turns: 10_000,
        bytes: 1 << 30,
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_default();
        match argument.as_str() {
            "--turns" => plan.turns = amount(&value())?.max(100),
            "--bytes" => plan.bytes = amount(&value())?,
            // What cargo says to every benchmark.
            "--bench" => {}
            other => return Err(format!("{other} is no option; there are --turns and --bytes")),
        }
    }
    Ok(plan)
}

fn amount(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|char: char| !char.is_ascii_digit());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        unit => return Err(format!("{unit} is no unit; there are KiB, MiB and GiB")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text:?} is no amount"))?;
    Ok(number * factor)
}

struct Run {
    name: &'static str,
    turns: u64,
    /// What each turn says; little if 0.
    turn_bytes: u64,
    child: bool,
}

impl Run {
    async fn go(self) -> bool {
        println!("\n{}: {} turns", self.name, self.turns);
        println!("      %  seconds   RSS KiB  tasks  files  frames     MiB  open  held  unanswered");
        let options = Agent::builder()
            .auth(Auth::ApiKey(Secret::new("simulated")))
            .include_partial_messages(true);
        let options: Options = if self.child {
            let cli = std::env::var_os("OUTRIGGER_SIM").map(PathBuf::from);
            options.cli_path(cli.expect("OUTRIGGER_SIM names the simulated CLI; `cargo xtask soak` sets it"))
        } else {
            options.transport(peer::spawn(self.turn_bytes))
        };
        let session = options.start().await.unwrap();
        let begun = Instant::now();
        let mut samples = Vec::new();
        for turn in 0..self.turns {
            if turn % (self.turns / 10).max(1) == 0 {
                samples.push(Sample::take(&session, turn * 100 / self.turns, begun));
            }
            let prompt = match self.turn_bytes {
                0 => format!("%say answer {turn}"),
                bytes => format!("%big {bytes}"),
            };
            let (text, outcome) = session.prompt(prompt).await.unwrap().text().await.unwrap();
            assert!(outcome.is_success(), "{outcome:?}");
            assert!(
                text.len() as u64 >= self.turn_bytes && !text.is_empty(),
                "{} bytes",
                text.len()
            );
        }
        samples.push(Sample::take(&session, 100, begun));
        session.close().await.unwrap();
        self.judge(&samples)
    }

    fn judge(&self, samples: &[Sample]) -> bool {
        let (early, last) = (&samples[1], samples.last().unwrap());
        let grown = last.rss.saturating_sub(early.rss);
        let mut wrong = Vec::new();
        if grown > BOUND {
            wrong.push(format!(
                "memory grew by {grown} KiB after the first tenth; {BOUND} KiB are allowed"
            ));
        }
        if last.tasks > early.tasks || last.files > early.files {
            wrong.push("tasks or open files pile up".to_owned());
        }
        if samples.iter().any(|sample| sample.left != [0, 0, 0]) {
            wrong.push("something is left in the session between turns".to_owned());
        }
        match wrong.is_empty() {
            true => println!("flat: {grown} KiB more at the end than after the first tenth"),
            false => println!("NOT FLAT: {}", wrong.join("; ")),
        }
        wrong.is_empty()
    }
}

struct Sample {
    rss: u64,
    tasks: usize,
    files: usize,
    /// Open prompts, bytes held, unanswered requests.
    left: [usize; 3],
}

impl Sample {
    fn take(session: &Session, percent: u64, begun: Instant) -> Self {
        // The end of a turn is told a moment before everything about it is put away.
        std::thread::sleep(Duration::from_millis(20));
        let stats = session.stats();
        let sample = Self {
            rss: resident(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            files: std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            left: [
                stats.open_prompts,
                stats.held_bytes,
                stats.unanswered_by_cli + stats.unanswered_by_us,
            ],
        };
        println!(
            "  {percent:>4} %  {:>7.1}  {:>8}  {:>5}  {:>5}  {:>6}  {:>6}  {:>4}  {:>4}  {:>10}",
            begun.elapsed().as_secs_f64(),
            sample.rss,
            sample.tasks,
            sample.files,
            stats.frames,
            stats.bytes >> 20,
            sample.left[0],
            sample.left[1],
            sample.left[2],
        );
        sample
    }
}

/// Memory that is resident now, in KiB; 0 where that is not told.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or_default()
}
