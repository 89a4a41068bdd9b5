//! The simulated CLI against the real one: the same flags, the same lines on stdin, the same answers to what it asks.
//!
//! Each scenario of [`scenarios`] is played by `outrigger-sim` and by the pinned CLI, with the scripted Messages API behind it; the
//! directives in the prompts mean the same to both. What is compared is which kinds of frames came in which order, and which fields,
//! of which types, the frames of each kind had. What differs is listed with a reason in `differences.toml`. A difference that is not
//! listed fails the test, and so does one that is listed and does not occur.
//!
//! The pinned CLI takes two seconds of the processor for each scenario. `cargo xtask conformance` keeps what differed in `compared.jsonl`,
//! with a hash of what the simulator did. The test plays to the pinned CLI only one scenario in 48, those in which the simulator does
//! something else than it did then, and those that are new: see [`compared`].
//!
//! `OUTRIGGER_CONFORMANCE=name,name` plays only these scenarios, to both; whether everything listed occurs is then not checked. What was
//! said is kept in the directory `conformance` of cargo's temporary directory for tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod compared;
mod drawn;
mod handover;
mod play;
mod recorded;
mod scenario;
mod scenarios;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compared::{Compared, Found};
use outrigger_sim::claude::executable;
use outrigger_sim::conform::{Difference, Listed, compare};
use play::Played;
use proptest::strategy::ValueTree;
use scenario::Scenario;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many scenarios are played at once to the real CLI, which is busy on one core while it starts.
const AT_ONCE: usize = 3;

/// And to the simulator, which only waits.
const SIMULATED_AT_ONCE: usize = 8;

/// The CLIs, and how many of them may still be started.
struct Players {
    real: PathBuf,
    simulated: PathBuf,
    reals: Semaphore,
    simulators: Semaphore,
}

impl Players {
    async fn new() -> Self {
        Self {
            real: executable().await.expect("the pinned CLI"),
            simulated: PathBuf::from(env!("CARGO_BIN_EXE_outrigger-sim")),
            reals: Semaphore::new(AT_ONCE),
            simulators: Semaphore::new(SIMULATED_AT_ONCE),
        }
    }

    async fn real(&self, scenario: &Scenario) -> Result<Played, String> {
        let _place = self.reals.acquire().await;
        play::play(scenario, &self.real, &kept(scenario, "real")).await
    }

    async fn simulated(&self, scenario: &Scenario) -> Result<Played, String> {
        let _place = self.simulators.acquire().await;
        play::play(scenario, &self.simulated, &kept(scenario, "simulated")).await
    }
}

/// The file in which what is said in a scenario is kept.
fn kept(scenario: &Scenario, who: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    std::fs::create_dir_all(&directory).expect("a directory");
    directory.join(format!("{}.{who}.jsonl", scenario.name))
}

/// Of so many scenarios one is played to both, whatever is kept of it.
const ONE_IN: usize = 48;

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
    let players = Arc::new(Players::new().await);
    let mut plays = JoinSet::new();
    let all = scenarios::all();
    let mut names = BTreeSet::new();
    for scenario in &all {
        // The files of a play have its name.
        assert!(
            names.insert(scenario.name.clone()),
            "two are called {}",
            scenario.name
        );
    }
    let into = std::env::var_os(compared::INTO);
    let plays_all = std::env::var_os(compared::ALL).is_some();
    let is_sample = into.is_none();
    let nothing = Arc::new(Compared::read(false));
    let before = Arc::new(Compared::read(chosen.is_none() && !plays_all));
    for (number, scenario) in all
        .into_iter()
        .filter(|scenario| wanted(&scenario.name))
        .filter(|scenario| python.is_ok() || !scenario.uses("python3"))
        .filter(|scenario| git.is_ok() || !scenario.uses("git"))
        .enumerate()
    {
        let players = players.clone();
        let before = if is_sample && number % ONE_IN == 0 {
            &nothing
        } else {
            &before
        };
        let before = before.clone();
        plays.spawn(async move { find(&players, &scenario, &before).await });
    }
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    let (mut played, mut to_both) = (0, 0);
    while let Some(result) = plays.join_next().await {
        played += 1;
        match result.expect("a scenario is played to its end") {
            Ok((found, by_both)) => {
                to_both += usize::from(by_both);
                all.push(found);
            }
            Err(problem) => problems.push(problem),
        }
    }
    println!("{played} scenarios, {to_both} of them played to both");
    all.sort_by(|one: &Found, other| one.scenario.cmp(&other.scenario));
    let mut found: Vec<Difference> = all.iter().flat_map(|found| found.differences.clone()).collect();
    assert!(played > 0, "there is no such scenario: {chosen:?}");
    found.sort();
    let listed = Listed::read().expect("differences.toml is well-formed");
    for reason in listed.reasons() {
        assert!(reason.len() > 20, "a reason that gives none: {reason:?}");
    }
    if let Some(file) = into {
        // What is not in the file counts as new: a file with a part of them would lose the others.
        assert_eq!(
            played,
            names.len(),
            "not all were played, so that nothing is kept"
        );
        // What fails is played again the next time.
        all.retain(|found| listed.unlisted(&found.differences).is_empty());
        compared::write(Path::new(&file), &all);
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

/// Plays a scenario to the simulator and, unless what was found before still holds, to the real CLI. Gives what is found, and whether
/// both were played.
async fn find(players: &Players, scenario: &Scenario, before: &Compared) -> Result<(Found, bool), String> {
    let name = &scenario.name;
    let seen = players.simulated(scenario).await;
    let hash = match &seen {
        Ok(seen) => before.hash(scenario, seen),
        Err(_) => String::new(),
    };
    if let Some(found) = before.same(name, &hash) {
        return Ok((found, false));
    }
    let expected = players.real(scenario).await;
    let differences = match (expected, seen) {
        // All that are drawn have one name in the list of differences.
        (Ok(expected), Ok(seen)) if name.starts_with(DRAWN) => compare(
            DRAWN,
            &drawn::in_lanes(expected.spoken),
            &drawn::in_lanes(seen.spoken),
        ),
        (Ok(expected), Ok(seen)) => compare(name, &expected.spoken, &seen.spoken),
        (Err(problem), Ok(_)) => return Err(format!("{name}, the real CLI alone: {problem}")),
        (Err(problem), Err(_)) => return Err(format!("{name}, both: {problem}")),
        (_, Err(problem)) => return Err(format!("{name}, the simulated CLI alone: {problem}")),
    };
    Ok((Found::new(scenario, hash, differences), true))
}

/// What the names of all drawn scenarios begin with.
const DRAWN: &str = "drawn";

/// How many scenarios are drawn where nobody says how many.
const DRAWS: u64 = 12;

/// How many smaller scenarios are tried for each kind of difference.
const SMALLER: usize = 40;

/// `OUTRIGGER_DRAWN=SEED:COUNT` draws others and more of them, `OUTRIGGER_DRAWN=FILE` plays one that was printed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_simulated_cli_does_as_the_real_one_in_drawn_scenarios() {
    let chosen = std::env::var("OUTRIGGER_DRAWN").ok();
    let players = Arc::new(Players::new().await);
    if let Some(file) = chosen.as_deref().filter(|chosen| chosen.ends_with(".json")) {
        let text = std::fs::read_to_string(file).expect("a file with a scenario");
        let drawn: drawn::Drawn = serde_json::from_str(&text).expect("a scenario");
        let complaints = complaints(&players, &drawn, "drawn_from_file").await;
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
        return;
    }
    let chosen = chosen
        .as_deref()
        .map(|chosen| chosen.split_once(':').expect("SEED:COUNT"));
    let (seed, count) = chosen.map_or((1, DRAWS), |(seed, count)| {
        (seed.parse().expect("a seed"), count.parse().expect("a count"))
    });
    let mut plays = JoinSet::new();
    for number in 0..count {
        let players = players.clone();
        let drawn = drawn::tree(seed, number).current();
        plays.spawn(async move {
            let name = format!("{DRAWN}_{seed}_{number}");
            (number, complaints(&players, &drawn, &name).await)
        });
    }
    // The scenarios in which each thing differed.
    let mut kinds = BTreeMap::<String, BTreeSet<u64>>::new();
    while let Some(result) = plays.join_next().await {
        let (number, complaints) = result.expect("a scenario is played to its end");
        for complaint in complaints {
            kinds.entry(complaint).or_default().insert(number);
        }
    }
    let mut report = String::new();
    let unshrunk = std::env::var("OUTRIGGER_DRAWN_SHRINKS").is_ok_and(|value| value == "0");
    let mut told = BTreeSet::new();
    for (complaint, numbers) in &kinds {
        report += &format!("{complaint}  {numbers:?}\n");
        let first = numbers.first().copied().unwrap_or_default();
        if !unshrunk && told.insert(first) {
            let small = smaller(&players, drawn::tree(seed, first), complaint).await;
            let text = serde_json::to_string(&small).expect("plain data");
            report += &format!("    {text}\n");
        }
    }
    assert!(report.is_empty(), "{count} scenarios, seed {seed}:\n{report}");
}

/// The smallest scenario that was found in which this still differs.
async fn smaller(
    players: &Players,
    mut tree: impl ValueTree<Value = drawn::Drawn>,
    complaint: &str,
) -> drawn::Drawn {
    let mut smallest = tree.current();
    for _ in 0..SMALLER {
        let differs = {
            let small = tree.current();
            let complaints = complaints(players, &small, "drawn_smaller").await;
            let differs = complaints.iter().any(|other| other == complaint);
            if differs {
                smallest = small;
            }
            differs
        };
        let goes_on = if differs {
            tree.simplify()
        } else {
            tree.complicate()
        };
        if !goes_on {
            break;
        }
    }
    smallest
}

/// What is not listed of the differences in a drawn scenario.
async fn complaints(players: &Players, drawn: &drawn::Drawn, name: &str) -> Vec<String> {
    let listed = Listed::read().expect("differences.toml is well-formed");
    match find(players, &drawn.scenario(name), &Compared::read(false)).await {
        Ok((found, _)) => {
            let lines = listed.unlisted(&found.differences).into_iter();
            lines.map(|line| line.replace("  [drawn]", "")).collect()
        }
        Err(problem) => vec![problem.replacen(name, "it does not end", 1)],
    }
}

/// Plays the recordings in the directory `OUTRIGGER_RECORDINGS` to the simulator, and says what differs and is not listed.
/// `OUTRIGGER_RECORDED=NAME,NAME` plays only these. With `OUTRIGGER_RECORDED_REAL=1` the pinned CLI stands in for the recorded one:
/// it hears the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs recordings of the real CLI in the directory OUTRIGGER_RECORDINGS"]
async fn the_simulated_cli_does_as_in_recordings() {
    let directory = std::env::var_os("OUTRIGGER_RECORDINGS").expect("a directory with recordings");
    let directory = PathBuf::from(directory);
    let chosen = std::env::var("OUTRIGGER_RECORDED").ok();
    let real = std::env::var("OUTRIGGER_RECORDED_REAL").is_ok_and(|value| value == "1");
    let simulated = PathBuf::from(env!("CARGO_BIN_EXE_outrigger-sim"));
    let keep = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorded");
    std::fs::create_dir_all(&keep).expect("a directory");
    let all = Arc::new(recorded::read_all(&directory));
    let places = Arc::new(Semaphore::new(if real { AT_ONCE } else { 4 * AT_ONCE }));
    let mut plays = JoinSet::new();
    for number in 0..all.len() {
        let name = all[number].name.clone();
        if chosen
            .as_deref()
            .is_some_and(|chosen| !chosen.split(',').any(|wanted| wanted == name))
        {
            continue;
        }
        let (all, places, simulated, keep) = (all.clone(), places.clone(), simulated.clone(), keep.clone());
        plays.spawn(async move {
            let _place = places.acquire().await;
            let recording = &all[number];
            let expected = if real {
                let cli = executable().await.expect("the pinned CLI");
                recorded::play(recording, &all, &cli, &keep.join(format!("{name}.real.jsonl"))).await
            } else {
                Ok(recording.spoken())
            };
            let seen = recorded::play(recording, &all, &simulated, &keep.join(format!("{name}.jsonl"))).await;
            let differences = match (expected, seen) {
                (Ok(expected), Ok(seen)) => Ok(compare(&name, &expected, &seen)),
                (Err(problem), _) | (_, Err(problem)) => Err(problem),
            };
            let said = std::fs::read_to_string(keep.join(format!("{name}.jsonl"))).unwrap_or_default();
            let is_loud = ["not simulated", "is simulated"]
                .iter()
                .any(|text| said.contains(text));
            (name, differences, is_loud)
        });
    }
    let reasons = recorded::Reasons::read();
    let listed = Listed::read().expect("differences.toml is well-formed");
    let (mut report, mut played, mut sequences, mut equal) = (BTreeMap::new(), 0, 0, 0);
    let mut explained = BTreeMap::<_, Vec<String>>::new();
    while let Some(result) = plays.join_next().await {
        played += 1;
        let (name, differences, is_loud) = result.expect("a recording is played to its end");
        let mut lines = match differences {
            Ok(mut found) => {
                found.retain(|difference| {
                    listed.reason(difference).is_none() && !recorded::is_newer(difference)
                });
                let frames = |difference: &&Difference| {
                    matches!(difference.what, outrigger_sim::conform::DifferenceKind::Frame(_))
                };
                sequences += usize::from(found.iter().find(frames).is_none());
                listed.unlisted(&found)
            }
            Err(problem) => vec![problem],
        };
        equal += usize::from(lines.is_empty());
        if let Some(reason) = reasons.of(&name) {
            lines = match reason.complaint(!lines.is_empty(), is_loud) {
                Some(complaint) => [vec![complaint.to_owned()], lines].concat(),
                None if lines.is_empty() => lines,
                None => {
                    explained.entry(reason.kind).or_default().push(name.clone());
                    Vec::new()
                }
            };
        }
        if !lines.is_empty() {
            report.insert(name, lines.join("\n    "));
        }
    }
    assert!(played > 0, "{} has no such recording", directory.display());
    let report: String = report
        .iter()
        .map(|(name, lines)| format!("{name}\n    {lines}\n"))
        .collect();
    let explained: String = explained
        .iter()
        .map(|(kind, names)| format!("{kind:?}: {}\n", names.join(", ")))
        .collect();
    let summary = format!(
        "{played} recordings, {sequences} equal in sequence, {equal} in all. Others differ, each for its reason in recordings.toml:\n\
         {explained}"
    );
    assert!(report.is_empty(), "{summary}{report}");
    println!("{summary}");
}
