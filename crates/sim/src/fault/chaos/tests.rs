//! Fragile clients are found, and the one guilty fault is named.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::*;
use crate::cassette::Cassette;
use crate::fault::{At, Effect, Fault, FrameDirection, Stage};
use crate::peer::{Agent, Exit, Signal};
use crate::script::Script;

type Done = Result<(), Box<dyn std::error::Error>>;

/// Has one turn with a simulated CLI, and believes in everything: that each line is a frame, that the result comes.
async fn credulous(case: Case) -> Done {
    let wire = case.wire(Stage::Transport)?;
    let (io, _running) = Agent::builder().directives().spawn_in_memory();
    let mut stdin = wire.writer(FrameDirection::Input, io.stdin);
    let mut lines = BufReader::new(wire.reader(FrameDirection::Output, io.stdout)).lines();
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

/// A conversation of one prompt, as a cassette.
fn cassette() -> Cassette {
    let lines = [
        r#"{"t":0,"dir":"meta","msg":{"cassette":2}}"#,
        r#"{"t":0,"dir":"in","msg":{"type":"user","message":{"role":"user","content":"hi"}}}"#,
        r#"{"t":1,"dir":"out","msg":{"type":"system","subtype":"init"}}"#,
        r#"{"t":1,"dir":"out","msg":{"type":"assistant","message":{"role":"assistant","content":[]}}}"#,
        r#"{"t":2,"dir":"out","msg":{"type":"result","subtype":"success","result":"hello"}}"#,
        r#"{"t":3,"dir":"meta","msg":{"stdin":"closed"}}"#,
        r#"{"t":3,"dir":"meta","msg":{"exit_code":0,"exit_signal":null}}"#,
        "",
    ];
    Cassette::parse(&lines.join("\n")).unwrap()
}

/// Says what the cassette wants to hear, and reads to the end, with what is called when a line is no frame that it knows.
async fn listen(mut client: Client, odd: fn(&str)) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let prompt = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
    // One that is gone reads nothing; what it says shows that.
    let _ = client.stdin.write_all(prompt.as_bytes()).await;
    drop(client.stdin);
    let complaints = tokio::spawn(async move {
        let mut text = Vec::new();
        let _ = client.stderr.read_to_end(&mut text).await;
    });
    let mut bytes = Vec::new();
    let read = client.stdout.read_to_end(&mut bytes);
    // What stands still has to be ended.
    if tokio::time::timeout(Duration::from_secs(600), read)
        .await
        .is_err()
    {
        client.process.signal(Signal::Kill);
    }
    client.process.exit().await;
    complaints.await?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut kinds = Vec::new();
    for line in text.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(frame)
                if ["system", "assistant", "result"]
                    .iter()
                    .any(|kind| frame["type"] == *kind) =>
            {
                kinds.push(frame["type"].to_string());
            }
            _ => odd(line),
        }
    }
    Ok(kinds)
}

#[test]
fn a_client_of_a_cassette_survives_what_loses_nothing() {
    let profile = Profile::harmless().output_only();
    let summary = chaos(profile).over(cassette(), |client| async {
        let kinds = listen(client, |_| {}).await?;
        assert_eq!(kinds, ["\"system\"", "\"assistant\"", "\"result\""]);
        Ok(())
    });
    let summary = summary.unwrap();
    assert!(summary.runs == 100 && summary.strikes > 50, "{summary:?}");
}

#[test]
fn a_client_of_a_cassette_or_a_script_comes_to_an_end_whatever_happens() {
    let end = |client: Client| async {
        listen(client, |_| {}).await?;
        Ok(())
    };
    let summary = chaos(Profile::everything()).over(cassette(), end).unwrap();
    assert!(summary.strikes > 50, "{summary:?}");
    let script = Script::from_yaml("prompts:\n  - prompt: hi\n    steps: [say: hello]\n").unwrap();
    let summary = chaos(Profile::everything()).over(script, end).unwrap();
    assert!(summary.strikes > 50, "{summary:?}");
    let agent = || Agent::builder().spawn_in_memory();
    chaos(Profile::everything()).seeds(5).over(agent, end).unwrap();
}

#[test]
fn what_breaks_a_client_of_a_cassette_is_shrunk() {
    let failure = chaos(Profile::harmless()).over(cassette(), |client| async {
        listen(client, |line| panic!("what is this: {line}")).await?;
        Ok(())
    });
    let failure = failure.unwrap_err();
    assert_eq!(failure.schedule.faults.len(), 1, "{failure}");
    let name = failure.schedule.faults[0].effect.name();
    assert!(name == "noise" || name == "insert", "{failure}");
    assert_eq!(failure.strikes.len(), 1, "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_ends_a_peer_is_told_as_its_end() {
    let schedule = Schedule::new(1)
        .with(Effect::IgnoreTerm {}, At::anywhere().nth(1))
        .with(Effect::Exit { code: 7 }, At::kind("result"));
    let client = Client::new(&cassette(), &Case::from(schedule)).unwrap();
    let process = client.process.clone();
    let kinds = listen(client, |_| {}).await.unwrap();
    assert_eq!(kinds, ["\"system\"", "\"assistant\""]);
    assert_eq!(process.exit().await, Exit::Code(7), "{}", process.case().story());

    // One that ignores SIGTERM is ended by nothing but SIGKILL.
    let schedule = Schedule::new(1)
        .with(Effect::IgnoreTerm {}, At::anywhere().nth(1))
        .with(Effect::Stall { ms: None }, At::kind("assistant"));
    let mut client = Client::new(&cassette(), &Case::from(schedule)).unwrap();
    let prompt = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
    client.stdin.write_all(prompt.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(client.stdout).lines();
    assert!(lines.next_line().await.unwrap().unwrap().contains("init"));
    client.process.signal(Signal::Term);
    let soon = tokio::time::timeout(Duration::from_secs(5), client.process.exit());
    assert!(soon.await.is_err(), "it ignores SIGTERM");
    client.process.signal(Signal::Kill);
    assert_eq!(client.process.exit().await, Exit::Signal(9));
    assert_eq!(lines.next_line().await.unwrap(), None);
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
            let mut stdout = wire.reader(FrameDirection::Output, lines.as_bytes());
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
