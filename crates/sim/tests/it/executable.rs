//! The simulated CLI as a program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const FLAGS: [&str; 5] = [
    "--output-format=stream-json",
    "--verbose",
    "--input-format=stream-json",
    "--permission-prompt-tool",
    "stdio",
];

/// Runs it in an empty place with these flags and this on stdin, logging to a file there.
fn run(arguments: &[&str], stdin: &str) -> (Output, Vec<Value>) {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log.jsonl");
    let mut child = Command::new(env!("CARGO_BIN_EXE_outrigger-sim"))
        .args(arguments)
        .current_dir(place.path())
        .env_clear()
        .env("HOME", place.path())
        .env("OUTRIGGER_SIM_LOG", &log)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A process that refuses to start does not read.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let lines = std::fs::read_to_string(&log).unwrap();
    let entries = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    (output, entries.collect())
}

#[test]
fn the_log_has_what_went_through_and_how_it_ended() {
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "%say hi"}});
    let (output, log) = run(&FLAGS, &format!("{prompt}\n"));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(log[0]["msg"]["argv"].as_array().unwrap().len(), 1 + FLAGS.len());
    let of = |direction: &str| -> Vec<&Value> {
        let entries = log.iter().filter(|entry| entry["dir"] == direction);
        entries.map(|entry| &entry["msg"]).collect()
    };
    assert_eq!(of("in"), [&prompt]);
    let written: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(of("out"), written.iter().collect::<Vec<_>>());
    assert_eq!(of("out").last().unwrap()["result"], "hi");
    assert_eq!(*of("meta")[1], json!({"exit_code": 0, "exit_signal": null}));
}

#[test]
fn the_log_has_why_it_did_not_start() {
    let (output, log) = run(&["--no-such-flag"], "");
    assert_eq!(output.status.code(), Some(1));
    let said = "error: unknown option '--no-such-flag'";
    assert_eq!(String::from_utf8_lossy(&output.stderr).trim_end(), said);
    assert_eq!(
        (&log[1]["dir"], &log[1]["msg"]["raw"]),
        (&json!("err"), &json!(said))
    );
    assert_eq!(log[2]["msg"]["exit_code"], 1);
}

#[test]
fn a_log_that_cannot_be_written_is_a_refusal() {
    let place = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_outrigger-sim"))
        .args(FLAGS)
        .env_clear()
        .env("OUTRIGGER_SIM_LOG", place.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("OUTRIGGER_SIM_LOG: cannot write "));
}
