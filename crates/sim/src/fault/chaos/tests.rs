//! Fragile clients are found, and the one guilty fault is named.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::*;
use crate::fault::{At, Direction, Effect, Fault, Stage};
use crate::peer::Agent;

type Done = Result<(), Box<dyn std::error::Error>>;

/// Has one turn with a simulated CLI, and believes in everything: that each line is a frame, that the result comes.
async fn credulous(case: Case) -> Done {
    let wire = case.wire(Stage::Transport)?;
    let (io, _running) = Agent::builder().directives().spawn_in_memory();
    let mut stdin = wire.writer(Direction::Input, io.stdin);
    let mut lines = BufReader::new(wire.reader(Direction::Output, io.stdout)).lines();
    let prompt = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"%say hi\"}}\n";
    stdin.write_all(prompt.as_bytes()).await?;
    loop {
        let line = lines.next_line().await?.ok_or("the end without a result")?;
        let frame: Value = serde_json::from_str(&line).expect("a line is a frame");
        if frame["type"] == "result" {
            return Ok(());
        }
    }
}

#[test]
fn a_client_that_takes_every_line_for_a_frame_is_found() {
    let failure = chaos(Profile::harmless()).run(credulous).unwrap_err();
    assert!(
        matches!(&failure.cause, Cause::Panic(message) if message.contains("a line is a frame")),
        "{failure}"
    );
    // The one guilty fault, at one frame.
    assert_eq!(
        failure.schedule.faults,
        [Fault::new(
            Effect::Noise {
                text: "[SandboxDebug] not a frame".into()
            },
            At {
                nth: failure.schedule.faults[0].at.nth,
                ..failure.schedule.faults[0].at.clone()
            }
        )],
        "{failure}"
    );
    assert_eq!(failure.strikes.len(), 1, "{failure}");
    let text = failure.to_string();
    let seed = failure.schedule.seed;
    assert!(
        text.contains(&format!("chaos, seed {seed}: it panicked: a line is a frame")),
        "{text}"
    );
    assert!(
        text.contains(&format!("OUTRIGGER_CHAOS_SEED={seed} cargo test")),
        "{text}"
    );
    assert!(
        text.contains("a_client_that_takes_every_line_for_a_frame_is_found"),
        "{text}"
    );
    // What is printed can be pasted back.
    let begin = text.find("{\"seed\"").unwrap();
    let end = text[begin..].find("]}").unwrap() + begin + 2;
    assert_eq!(text[begin..end].parse::<Schedule>().unwrap(), failure.schedule);
}

#[test]
fn a_client_that_waits_for_ever_is_found() {
    let lost = Profile::harmful().output_only();
    let lost = [
        "corrupt",
        "truncate",
        "glue",
        "end",
        "exit",
        "signal",
        "set_value",
        "stall",
    ]
    .into_iter()
    .fold(lost, Profile::without);
    let failure = chaos(lost).seeds(500).run(credulous).unwrap_err();
    assert!(matches!(failure.cause, Cause::Hang(_)), "{failure}");
    let [fault] = failure.schedule.faults.as_slice() else {
        panic!("{failure}");
    };
    assert_eq!(fault.effect, Effect::Drop {});
    assert_eq!(failure.strikes[0].kind, "result/success", "{failure}");
}

#[test]
fn errors_are_failures_and_several_faults_are_left_if_it_takes_several() {
    // Breaks only when a frame was dropped and another came twice.
    let failure = chaos(Profile::everything().at_most(12))
        .seeds(1000)
        .run(|case| async move {
            let wire = case.wire(Stage::Transport)?;
            let lines = "{\"type\":\"x\"}\n".repeat(20);
            let mut stdout = wire.reader(Direction::Output, lines.as_bytes());
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).await?;
            let struck = case.strikes();
            let both = ["drop", "duplicate"]
                .iter()
                .all(|name| struck.iter().any(|strike| strike.effect == *name));
            if both { Err("both at once".into()) } else { Ok(()) }
        })
        .unwrap_err();
    assert_eq!(failure.cause, Cause::Error("both at once".into()));
    let mut names: Vec<_> = failure
        .schedule
        .faults
        .iter()
        .map(|fault| fault.effect.name())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["drop", "duplicate"], "{failure}");
    assert!(failure.faults_before >= 2);
    assert!(
        failure
            .schedule
            .faults
            .iter()
            .all(|fault| fault.at.probability.is_none()),
        "{failure}"
    );
}

#[test]
fn one_that_turns_in_circles_is_found() {
    let failure = chaos(Profile::harmless().at_most(1))
        .seeds(1)
        .patience(Duration::from_millis(20))
        .run(|_| async {
            loop {
                tokio::task::yield_now().await;
                if std::env::var_os("OUTRIGGER_NEVER_SET").is_some() {
                    return Ok(());
                }
            }
        });
    // With a deadline on a clock that never goes on, nothing else could tell.
    assert!(matches!(failure.unwrap_err().cause, Cause::Busy(_)));
}

#[test]
fn one_that_survives_is_told_to_have_been_struck() {
    let careful = Profile::harmless().without("noise");
    let summary = chaos(careful).seeds(60).run(credulous).unwrap();
    assert_eq!(summary.runs, 60);
    assert!(summary.strikes > 30, "{summary:?}");
}
