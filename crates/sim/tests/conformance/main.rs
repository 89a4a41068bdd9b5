//! The simulated CLI against the real one: the same flags, the same lines on stdin, the same answers to what it asks.
//!
//! Each scenario of [`scenarios`] is played once by the pinned CLI, with the scripted Messages API behind it, and once by
//! `outrigger-sim`; the directives in the prompts mean the same to both. What is compared is which kinds of frames came in
//! which order, and which fields, of which types, the frames of each kind had. What differs is listed with a reason in
//! `differences.toml`. A difference that is not listed fails the test, and so does one that is listed and does not occur.
//!
//! `OUTRIGGER_CONFORMANCE=name,name` plays only these scenarios; whether everything listed occurs is then not checked. What was
//! said is kept in the directory `conformance` of cargo's temporary directory for tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod handover;
mod play;
mod scenario;
mod scenarios;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_sim::claude::executable;
use outrigger_sim::conform::{Difference, Listed, compare};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many scenarios are played at once: the real CLI is busy on one core while it starts.
const AT_ONCE: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_simulated_cli_does_as_the_real_one() {
    let chosen = std::env::var("OUTRIGGER_CONFORMANCE").ok();
    let wanted = |name: &str| {
        chosen
            .as_deref()
            .is_none_or(|chosen| chosen.split(',').any(|wanted| wanted == name))
    };
    let python = outrigger_needs::program(
        "python3",
        "scenarios with servers that are written in it are not played",
    );
    if let Err(missing) = &python {
        outrigger_needs::leave_out(missing);
    }
    let git = outrigger_needs::program("git", "a package of the system has it");
    if let Err(missing) = &git {
        outrigger_needs::leave_out(missing);
    }
    let real = executable().await.expect("the pinned CLI");
    let simulated = PathBuf::from(env!("CARGO_BIN_EXE_outrigger-sim"));
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut plays = JoinSet::new();
    for scenario in scenarios::all()
        .into_iter()
        .filter(|scenario| wanted(scenario.name))
        .filter(|scenario| python.is_ok() || !scenario.uses("python3"))
        .filter(|scenario| git.is_ok() || !scenario.uses("git"))
    {
        let (real, simulated, places) = (real.clone(), simulated.clone(), places.clone());
        plays.spawn(async move {
            let _place = places.acquire().await;
            let keep = |who: &str| {
                let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
                std::fs::create_dir_all(&directory).expect("a directory");
                directory.join(format!("{}.{who}.jsonl", scenario.name))
            };
            let expected = play::play(&scenario, &real, &keep("real")).await;
            let seen = play::play(&scenario, &simulated, &keep("simulated")).await;
            match (expected, seen) {
                (Ok(expected), Ok(seen)) => Ok(compare(scenario.name, &expected, &seen)),
                (Err(problem), _) => Err(format!("{}, the real CLI: {problem}", scenario.name)),
                (_, Err(problem)) => Err(format!("{}, the simulated CLI: {problem}", scenario.name)),
            }
        });
    }
    let (mut found, mut problems) = (Vec::<Difference>::new(), Vec::new());
    let mut played = 0;
    while let Some(result) = plays.join_next().await {
        played += 1;
        match result.expect("a scenario is played to its end") {
            Ok(differences) => found.extend(differences),
            Err(problem) => problems.push(problem),
        }
    }
    assert!(played > 0, "there is no such scenario: {chosen:?}");
    found.sort();
    let listed = Listed::read().expect("differences.toml is well-formed");
    for reason in listed.reasons() {
        assert!(reason.len() > 20, "a reason that gives none: {reason:?}");
    }
    let mut report = problems;
    report.extend(listed.unlisted(&found));
    if chosen.is_none() && python.is_ok() {
        report.extend(listed.stale(&found));
    }
    assert!(
        report.is_empty(),
        "{played} scenarios, {} complaints:\n{}",
        report.len(),
        report.join("\n")
    );
}
