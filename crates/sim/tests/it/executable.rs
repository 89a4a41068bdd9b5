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

/// Runs it with a script of these lines, and gives what came of it and the report.
fn run_script(script: &str, prompts: &[&str]) -> (Output, Value) {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| place.path().join(name);
    std::fs::write(file("script.yaml"), script).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_outrigger-sim"))
        .args([
            "--output-format",
            "stream-json",
            "--script",
            "script.yaml",
            "--report=report.json",
        ])
        .args(["--input-format", "stream-json", "--verbose"])
        .current_dir(place.path())
        .env_clear()
        .env("HOME", place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for prompt in prompts {
        let line = json!({"type": "user", "message": {"role": "user", "content": prompt}});
        // A process that has ended does not read.
        let _ = stdin.write_all(format!("{line}\n").as_bytes());
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let report = std::fs::read_to_string(file("report.json")).unwrap_or_default();
    (output, serde_json::from_str(&report).unwrap_or_default())
}

#[test]
fn a_script_is_played_and_judges() {
    let script = "prompts:\n  - prompt: hello\n    steps: [say: hi]\n";
    let (output, report) = run_script(script, &["hello"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(report["content"], true);
    assert_eq!(report["exit"], json!({"code": 0, "signal": null}));
    let lines = report["lines"].as_array().unwrap();
    assert_eq!(
        (&lines[0]["from"], &lines[0]["kind"]),
        (&json!("client"), &json!("user"))
    );
    assert_eq!(lines.last().unwrap()["frame"]["result"], "hi");

    let (output, report) = run_script(script, &["good morning"]);
    assert_eq!(output.status.code(), Some(97));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("script.yaml:2:5: this rule was never used"),
        "{said}"
    );
    assert_eq!(report["content"], false);
    assert_eq!(report["flaws"][1]["place"], "script.yaml:2:5");
}

#[cfg(unix)]
#[test]
fn a_script_can_end_the_process_by_a_signal() {
    use std::os::unix::process::ExitStatusExt as _;
    let script = "prompts:\n  - steps: [say: hi, exit: {signal: 9}]\n";
    let (output, report) = run_script(script, &["go"]);
    assert_eq!(output.status.signal(), Some(9));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"hi\""));
    assert_eq!(report["exit"], json!({"code": null, "signal": 9}));
}

#[test]
fn a_script_that_cannot_be_used_is_told_before_anything_starts() {
    let (output, _) = run_script("prompts:\n  - stps: []\n", &["go"]);
    assert_eq!(output.status.code(), Some(98));
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "script.yaml:2:5: unknown field `stps`, did you mean `steps`? Known here: prompt, times, anytime, steps\n";
    assert_eq!(said, expected);
}

#[test]
fn it_explains_itself() {
    let ask = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_outrigger-sim"))
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let help = ask(&["--help"]);
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("--script FILE"));
    let schema: Value = serde_json::from_slice(&ask(&["--schema"]).stdout).unwrap();
    assert_eq!(schema, outrigger_sim::script::json_schema());
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/scripts/");
    let checked = ask(&["--check", &format!("{examples}hello.yaml")]);
    assert!(checked.status.success());
    let missing = ask(&["--check", &format!("{examples}missing.yaml")]);
    assert_eq!(missing.status.code(), Some(98));
    // What stands behind a flag of the CLI is its value.
    let value = ask(&["--system-prompt", "--schema"]);
    assert_eq!(value.status.code(), Some(1));
}

/// A gate opens when there is a file of its name, and tells by another that it is waited for.
#[test]
fn gates_are_files() {
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("script.yaml");
    std::fs::write(
        &script,
        "prompts:\n  - steps: [wait: {gate: door}, say: through]\n",
    )
    .unwrap();
    let start = |gates: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger-sim"));
        command
            .args(FLAGS)
            .env_clear()
            .env("HOME", place.path())
            .env("OUTRIGGER_SIM_SCRIPT", &script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if gates {
            command.env("OUTRIGGER_SIM_GATES", place.path());
        }
        command.spawn().unwrap()
    };
    let output = start(false).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(98));
    assert!(String::from_utf8_lossy(&output.stderr).contains("it waits for the gate `door`"));

    let mut child = start(true);
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    child
        .stdin
        .take()
        .unwrap()
        .write_all(format!("{prompt}\n").as_bytes())
        .unwrap();
    while !place.path().join("door.reached").exists() {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::fs::write(place.path().join("door"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"through\""));
}
