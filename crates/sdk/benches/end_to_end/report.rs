//! Runs the cases, each in a process of its own, and prints what they took.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use crate::sessions::{IDLE, Streamed, Taking};
use crate::{bare, feed, gauge, sessions};

/// The groups of cases that can be chosen.
const GROUPS: [&str; 5] = ["mix", "deltas", "round-trip", "memory", "idle"];

const CURRENT: &str = "current-thread";
const MULTI: &str = "multi-thread";

/// Runs one case and prints its numbers, `name value` a line.
pub(crate) fn one(case: &str, runtime: &str) {
    let mut builder = match runtime {
        CURRENT => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build().unwrap();
    match case {
        "mix/floor" | "deltas/floor" => {
            let (lines, cpu) = bare::split(case.trim_end_matches("/floor"));
            println!("ns {}", per(cpu, lines));
        }
        "mix/routed" => streamed(&runtime.block_on(sessions::stream("mix", Taking::Frames))),
        "mix/decoded" => streamed(&runtime.block_on(sessions::stream("mix", Taking::Events))),
        "deltas/routed" => streamed(&runtime.block_on(sessions::stream("deltas", Taking::Frames))),
        "deltas/decoded" => streamed(&runtime.block_on(sessions::stream("deltas", Taking::Events))),
        "memory/keeps-up" => streamed(&runtime.block_on(sessions::stream("gigabyte", Taking::Events))),
        "memory/late" => streamed(&runtime.block_on(sessions::stream("gigabyte", Taking::Late))),
        "round-trip/floor" => measured(&runtime.block_on(bare::echo())),
        "round-trip/sdk" => {
            let (said, cpu) = runtime.block_on(sessions::round_trips());
            measured(&said);
            println!("cpu {}", per(cpu, feed::QUESTIONS as u64));
        }
        "round-trip/tool" => {
            let (said, cpu) = runtime.block_on(sessions::tool_calls());
            measured(&said);
            println!("cpu {}", per(cpu, feed::QUESTIONS as u64));
        }
        "idle" => {
            let (bytes, tasks) = runtime.block_on(sessions::idle());
            println!("bytes {bytes}\ntasks {tasks}");
        }
        other => panic!("no such case: {other}"),
    }
}

fn per(time: Duration, times: u64) -> f64 {
    time.as_nanos() as f64 / times as f64
}

fn streamed(streamed: &Streamed) {
    let Streamed {
        frames,
        items,
        left_out,
        bytes,
        rss,
        cpu,
    } = streamed;
    println!(
        "ns {}\nframes {frames}\nitems {items}\nleft_out {left_out}\nbytes {bytes}",
        per(*cpu, *frames)
    );
    println!(
        "rss1 {}\nrss2 {}\nrss3 {}\npeak {}",
        rss[0],
        rss[1],
        rss[2],
        gauge::peak()
    );
}

fn measured(said: &str) {
    let (median, mean) = said.split_once(' ').unwrap();
    println!("median {median}\nmean {mean}");
}

type Numbers = BTreeMap<String, f64>;

/// Runs a case in a process of its own.
fn run(case: &str, runtime: &str) -> Numbers {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--case", case, runtime])
        .stderr(std::process::Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{case} on {runtime} failed");
    let text = String::from_utf8(output.stdout).unwrap();
    let number = |line: &str| {
        line.split_once(' ')
            .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
    };
    text.lines().filter_map(number).collect()
}

/// The least of each number over all runs. The cases take turns, so that what else the machine does hits them alike.
fn least(runs: usize, cases: &[(String, &'static str)]) -> Vec<Numbers> {
    let mut least = vec![Numbers::new(); cases.len()];
    for _ in 0..runs {
        for ((case, runtime), least) in cases.iter().zip(&mut least) {
            for (name, value) in run(case, runtime) {
                least
                    .entry(name)
                    .and_modify(|least| *least = value.min(*least))
                    .or_insert(value);
            }
        }
    }
    least
}

/// Runs what was asked for and prints it.
pub(crate) fn all(arguments: &[&str]) {
    let runs = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(5);
    let chosen: Vec<&str> = GROUPS
        .into_iter()
        .filter(|group| arguments.contains(group))
        .collect();
    let unknown = arguments
        .iter()
        .find(|argument| !GROUPS.contains(argument) && argument.parse::<usize>().is_err());
    if let Some(unknown) = unknown {
        println!("no such case: {unknown}; there are {}", GROUPS.join(", "));
        return;
    }
    let wants = |group: &str| chosen.is_empty() || chosen.contains(&group);
    println!("least of {runs} runs");
    for what in ["mix", "deltas"] {
        if wants(what) {
            throughput(what, runs);
        }
    }
    if wants("round-trip") {
        round_trip(runs);
    }
    if wants("memory") {
        memory();
    }
    if wants("idle") {
        for runtime in [CURRENT, MULTI] {
            let idle = run("idle", runtime);
            println!(
                "\n{IDLE} idle sessions, {runtime}: {:.1} KB and {} tasks each",
                idle["bytes"] / 1000.0,
                idle["tasks"]
            );
        }
    }
}

fn throughput(what: &str, runs: usize) {
    let mut cases = vec![(format!("{what}/floor"), CURRENT)];
    for runtime in [CURRENT, MULTI] {
        cases.extend(["routed", "decoded"].map(|how| (format!("{what}/{how}"), runtime)));
    }
    let numbers = least(runs, &cases);
    println!(
        "\n{what}: {} messages, {:.1} MB",
        numbers[1]["frames"],
        numbers[1]["bytes"] / 1e6
    );
    println!("{:<32}{:>16}{:>10}", "client's CPU", "us per message", "x floor");
    for ((case, runtime), measured) in cases.iter().zip(&numbers) {
        let runtime = if case.ends_with("floor") { "" } else { runtime };
        let ratio = measured["ns"] / numbers[0]["ns"];
        println!(
            "{:<32}{:>16.3}{ratio:>10.1}",
            format!("{case} {runtime}"),
            measured["ns"] / 1000.0
        );
    }
}

fn round_trip(runs: usize) {
    println!(
        "\nround trips: {} one after another, measured by the peer",
        feed::QUESTIONS
    );
    println!(
        "{:<32}{:>10}{:>10}{:>10}{:>16}",
        "", "median us", "mean us", "x floor", "client's CPU us"
    );
    for runtime in [CURRENT, MULTI] {
        let cases =
            ["round-trip/floor", "round-trip/sdk", "round-trip/tool"].map(|case| (case.to_owned(), runtime));
        let numbers = least(runs, &cases);
        for ((case, _), measured) in cases.iter().zip(&numbers) {
            let ratio = measured["median"] / numbers[0]["median"];
            let cpu = measured
                .get("cpu")
                .map(|ns| format!("{:.1}", ns / 1000.0))
                .unwrap_or_default();
            println!(
                "{:<32}{:>10.1}{:>10.1}{ratio:>10.2}{cpu:>16}",
                format!("{case} {runtime}"),
                measured["median"] / 1000.0,
                measured["mean"] / 1000.0
            );
        }
    }
}

fn memory() {
    println!("\nmemory while 1 GiB of the mix streams by, {CURRENT}; resident MB");
    println!(
        "{:<20}{:>12}{:>12}{:>8}{:>8}{:>12}",
        "the program reads", "20k taken", "100k taken", "end", "peak", "left out"
    );
    for (case, how) in [("memory/keeps-up", "at once"), ("memory/late", "after the end")] {
        let measured = run(case, CURRENT);
        let [a, b, c, peak] = ["rss1", "rss2", "rss3", "peak"].map(|name| measured[name] / 1024.0);
        println!(
            "{how:<20}{a:>12.1}{b:>12.1}{c:>8.1}{peak:>8.1}{:>12}",
            measured["left_out"]
        );
    }
}
