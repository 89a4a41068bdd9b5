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

mod drawn;
mod handover;
mod play;
mod recorded;
mod scenario;
mod scenarios;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_sim::claude::executable;
use outrigger_sim::conform::{Difference, Listed, Spoken, compare};
use proptest::strategy::ValueTree;
use scenario::Scenario;
use serde_json::json;
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
    for scenario in all
        .into_iter()
        .filter(|scenario| wanted(&scenario.name))
        .filter(|scenario| python.is_ok() || !scenario.uses("python3"))
        .filter(|scenario| git.is_ok() || !scenario.uses("git"))
    {
        let (real, simulated, places) = (real.clone(), simulated.clone(), places.clone());
        plays.spawn(async move {
            let _place = places.acquire().await;
            both(&scenario, &real, &simulated).await
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

/// Plays a scenario to both, and gives the differences.
async fn both(scenario: &Scenario, real: &Path, simulated: &Path) -> Result<Vec<Difference>, String> {
    let name = &scenario.name;
    let keep = |who: &str| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
        std::fs::create_dir_all(&directory).expect("a directory");
        directory.join(format!("{name}.{who}.jsonl"))
    };
    let mut expected = play::play(scenario, real, &keep("real")).await;
    let mut seen = play::play(scenario, simulated, &keep("simulated")).await;
    if !scenario.lasts() {
        for spoken in [&mut expected, &mut seen].into_iter().flatten() {
            leave_out_slow_commands(spoken);
        }
    }
    match (expected, seen) {
        // All that are drawn have one name in the list of differences.
        (Ok(expected), Ok(seen)) => {
            if name.starts_with(DRAWN) {
                Ok(compare(DRAWN, &drawn::in_lanes(expected), &drawn::in_lanes(seen)))
            } else {
                Ok(compare(name, &expected, &seen))
            }
        }
        (Err(problem), Ok(_)) => Err(format!("{name}, the real CLI alone: {problem}")),
        (Err(problem), Err(_)) => Err(format!("{name}, both: {problem}")),
        (_, Err(problem)) => Err(format!("{name}, the simulated CLI alone: {problem}")),
    }
}

/// Takes out the frames about commands in the foreground that took two seconds. No command of the scenario waits for anything, so
/// it was the machine that took them: a program that is started for the first time is read from the disk.
fn leave_out_slow_commands(spoken: &mut Spoken) {
    let mut slow = BTreeSet::new();
    spoken.frames.retain(|(kind, frame)| {
        let task = frame["task_id"].as_str().unwrap_or_default();
        match kind.as_str() {
            "system/task_started"
                if frame["is_backgrounded"] == false && frame["task_type"] == "local_bash" =>
            {
                slow.insert(task.to_owned());
                false
            }
            "system/task_notification" => !slow.contains(task),
            "tool_progress" => frame["heartbeat"] != true || frame["tool_name"] != "Bash",
            _ => true,
        }
    });
}

#[test]
fn frames_about_a_slow_command_are_left_out_and_those_about_others_stay() {
    let frame = |kind: &str, frame| (kind.to_owned(), frame);
    let others = [
        frame(
            "system/task_started",
            json!({"task_id": "b", "is_backgrounded": true, "task_type": "local_bash"}),
        ),
        frame(
            "system/task_started",
            json!({"task_id": "c", "is_backgrounded": false, "task_type": "local_agent"}),
        ),
        frame("system/task_notification", json!({"task_id": "b"})),
        frame("tool_progress", json!({"tool_name": "Agent", "heartbeat": true})),
    ];
    let slow = [
        frame(
            "system/task_started",
            json!({"task_id": "a", "is_backgrounded": false, "task_type": "local_bash"}),
        ),
        frame("tool_progress", json!({"tool_name": "Bash", "heartbeat": true})),
        frame("system/task_notification", json!({"task_id": "a"})),
    ];
    let mut spoken = Spoken::new(slow.into_iter().chain(others.clone()));
    leave_out_slow_commands(&mut spoken);
    assert_eq!(spoken.frames, others);
    let lasts = |command: &str| Scenario::new("one").turn(command).lasts();
    assert!(lasts("sleep 5") && lasts("until [ -e go ]; do sleep 0.1; done"));
    assert!(!lasts("sleep 0") && !lasts("ls"));
}

/// What the names of all drawn scenarios begin with.
const DRAWN: &str = "drawn";

/// How many scenarios are drawn where nobody says how many.
const DRAWS: u64 = 40;

/// How many smaller scenarios are tried for each kind of difference.
const SMALLER: usize = 40;

/// `OUTRIGGER_DRAWN=SEED:COUNT` draws others and more of them, `OUTRIGGER_DRAWN=FILE` plays one that was printed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_simulated_cli_does_as_the_real_one_in_drawn_scenarios() {
    let chosen = std::env::var("OUTRIGGER_DRAWN").ok();
    if let Some(file) = chosen.as_deref().filter(|chosen| chosen.ends_with(".json")) {
        let text = std::fs::read_to_string(file).expect("a file with a scenario");
        let drawn: drawn::Drawn = serde_json::from_str(&text).expect("a scenario");
        let complaints = complaints(&drawn, "drawn_from_file").await;
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
        return;
    }
    let chosen = chosen
        .as_deref()
        .map(|chosen| chosen.split_once(':').expect("SEED:COUNT"));
    let (seed, count) = chosen.map_or((1, DRAWS), |(seed, count)| {
        (seed.parse().expect("a seed"), count.parse().expect("a count"))
    });
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut plays = JoinSet::new();
    for number in 0..count {
        let places = places.clone();
        let drawn = drawn::tree(seed, number).current();
        plays.spawn(async move {
            let _place = places.acquire().await;
            (
                number,
                complaints(&drawn, &format!("{DRAWN}_{seed}_{number}")).await,
            )
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
            let small = smaller(drawn::tree(seed, first), complaint).await;
            let text = serde_json::to_string(&small).expect("plain data");
            report += &format!("    {text}\n");
        }
    }
    assert!(report.is_empty(), "{count} scenarios, seed {seed}:\n{report}");
}

/// The smallest scenario that was found in which this still differs.
async fn smaller(mut tree: impl ValueTree<Value = drawn::Drawn>, complaint: &str) -> drawn::Drawn {
    let mut smallest = tree.current();
    for _ in 0..SMALLER {
        let differs = {
            let small = tree.current();
            let complaints = complaints(&small, "drawn_smaller").await;
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
async fn complaints(drawn: &drawn::Drawn, name: &str) -> Vec<String> {
    let real = executable().await.expect("the pinned CLI");
    let simulated = PathBuf::from(env!("CARGO_BIN_EXE_outrigger-sim"));
    let listed = Listed::read().expect("differences.toml is well-formed");
    match both(&drawn.scenario(name), &real, &simulated).await {
        Ok(found) => {
            let lines = listed.unlisted(&found).into_iter();
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
                    matches!(difference.what, outrigger_sim::conform::What::Frame(_))
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
