//! The simulated CLI as a program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::io::{BufRead as _, BufReader, Write as _};
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

/// Whoever reads a directory of reports has to tell a process that still runs, or was killed, from none.
#[test]
fn a_directory_has_an_empty_report_while_the_process_runs() {
    let place = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_outrigger-sim"))
        .args(FLAGS)
        .arg("--report")
        .arg(place.path())
        .env_clear()
        .env("HOME", place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let report = place.path().join(format!("{}.json", child.id()));
    let mut stdin = child.stdin.take().unwrap();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "%say hi"}});
    writeln!(stdin, "{prompt}").unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    assert_eq!(std::fs::read(&report).unwrap(), b"");
    drop(stdin);
    std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    child.wait().unwrap();
    let text = std::fs::read_to_string(&report).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["content"], true);
    assert!(report["started_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(report["arguments"].as_array().unwrap().len(), FLAGS.len() + 2);
    let files = std::fs::read_dir(place.path()).unwrap();
    let names: Vec<_> = files.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !names.iter().any(|name| name.to_string_lossy().ends_with(".part")),
        "{names:?}"
    );
}

#[test]
fn a_script_is_played_and_judges() {
    let script = "prompts:\n  - prompt: hello\n    steps: [say: hi]\n";
    let (output, report) = run_script(script, &["hello"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(report["content"], true);
    assert_eq!(report["exit"], json!({"code": 0, "signal": null}));
    assert_eq!(report["arguments"][0], "--output-format");
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
    for way in [
        "`outrigger-sim play --sim script.yaml -- PROGRAM`",
        "`expect: {every_rule_used: false}`",
    ] {
        assert!(said.contains(way), "{said}");
    }
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

/// What a fault does to the process itself.
#[cfg(target_os = "linux")]
mod process {
    use std::collections::BTreeMap;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::ExitStatusExt as _;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    #[test]
    fn it_ends_with_the_code_or_by_the_signal_of_a_fault() {
        let script = |fault: &str| format!("prompts:\n  - steps:\n      - say: hi\n      - fault: {fault}\n");
        let (output, report) = run_script(&script("{fault: exit, code: 7, at: {phase: result}}"), &["go"]);
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!(report["exit"], json!({"code": 7, "signal": null}));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            said.contains("\"hi\"") && !said.contains("\"type\":\"result\""),
            "{said}"
        );
        for signal in [9, 15] {
            let fault = format!("{{fault: signal, signal: {signal}, at: {{kind: assistant}}}}");
            let (output, report) = run_script(&script(&fault), &["go"]);
            assert_eq!(output.status.signal(), Some(signal), "{output:?}");
            assert_eq!(report["exit"], json!({"code": null, "signal": signal}));
        }
        // The list of the whole script does the same as the step.
        let whole =
            "faults: [{fault: exit, code: 3, at: {kind: assistant}}]\nprompts:\n  - steps: [say: hi]\n";
        assert_eq!(run_script(whole, &["go"]).0.status.code(), Some(3));
    }

    /// A simulator that has begun to answer, and is kept by its stdin.
    struct Begun {
        place: tempfile::TempDir,
        child: std::process::Child,
        _stdin: std::process::ChildStdin,
        stdout: std::io::Lines<BufReader<std::process::ChildStdout>>,
    }

    impl Begun {
        /// Plays these steps to one prompt, up to the result.
        fn with(steps: &str) -> Self {
            let place = tempfile::tempdir().unwrap();
            let script = place.path().join("script.yaml");
            std::fs::write(&script, format!("prompts:\n  - steps: [{steps}]\n")).unwrap();
            let mut child = Command::new(env!("CARGO_BIN_EXE_outrigger-sim"))
                .args(FLAGS)
                .env_clear()
                .env("HOME", place.path())
                .env("OUTRIGGER_SIM_SCRIPT", &script)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
            stdin.write_all(format!("{prompt}\n").as_bytes()).unwrap();
            let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
            let result = stdout.find(|line| line.as_ref().unwrap().contains("\"type\":\"result\""));
            assert!(result.is_some(), "{:?}", child.wait());
            Self {
                place,
                child,
                _stdin: stdin,
                stdout,
            }
        }

        fn signal(&self, signal: Signal) {
            kill_process(Pid::from_child(&self.child), signal).unwrap();
        }

        /// What else lives in its home, with the session of each.
        fn others(&self) -> BTreeMap<i32, i32> {
            let mut all = living_in(self.place.path());
            all.remove(&i32::try_from(self.child.id()).unwrap());
            all
        }
    }

    impl Drop for Begun {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            for pid in self.others().keys() {
                let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
            }
        }
    }

    /// The living processes with this home, each with its session.
    fn living_in(home: &Path) -> BTreeMap<i32, i32> {
        let home = format!("HOME={}", home.display());
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let session = stat
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.split(' ').nth(3)?.parse().ok());
            if let Some(session) = session
                && environ
                    .split(|byte| *byte == 0)
                    .any(|line| line == home.as_bytes())
            {
                found.insert(pid, session);
            }
        }
        found
    }

    #[test]
    fn it_ignores_sigterm_once_a_fault_says_so() {
        let mut polite = Begun::with("say: hi");
        polite.signal(Signal::TERM);
        assert_eq!(polite.child.wait().unwrap().code(), Some(143));

        let mut stubborn = Begun::with("fault: {fault: ignore_term}, say: hi");
        for _ in 0..3 {
            stubborn.signal(Signal::TERM);
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(stubborn.child.try_wait().unwrap(), None, "SIGTERM ended it");
        stubborn.signal(Signal::KILL);
        assert_eq!(stubborn.child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn it_leaves_a_process_behind() {
        for (fault, own_session, survives) in [
            ("{fault: grandchild, at: {nth: 1}}", false, false),
            (
                "{fault: grandchild, survives: true, own_session: true, at: {nth: 1}}",
                true,
                true,
            ),
        ] {
            let mut begun = Begun::with(&format!("fault: {fault}, say: hi"));
            let others = begun.others();
            assert_eq!(others.len(), 1, "{fault}: {others:?}");
            let (&pid, &session) = others.iter().next().unwrap();
            assert_eq!(session == pid, own_session, "{fault}");
            begun.signal(Signal::KILL);
            begun.child.wait().unwrap();
            assert_eq!(begun.others().len(), 1, "{fault}: it died with its parent");
            // It does not hold the pipe: the end of what the simulator wrote is seen.
            assert!(begun.stdout.next().is_none());
            kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
            let deadline = Instant::now() + Duration::from_millis(if survives { 200 } else { 10_000 });
            while !begun.others().is_empty() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(begun.others().len(), usize::from(survives), "{fault}");
        }
    }

    #[test]
    fn what_it_leaves_behind_may_hold_its_pipes() {
        let mut begun = Begun::with("fault: {fault: grandchild, holds_pipes: true, at: {nth: 1}}, say: hi");
        let others = begun.others();
        begun.signal(Signal::KILL);
        begun.child.wait().unwrap();
        let stdout = begun.stdout.by_ref();
        let ended = std::thread::scope(|scope| {
            let reader = scope.spawn(|| stdout.next().is_none());
            std::thread::sleep(Duration::from_millis(100));
            let early = reader.is_finished();
            for pid in others.keys() {
                kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL).unwrap();
            }
            (early, reader.join().unwrap())
        });
        assert_eq!(
            ended,
            (false, true),
            "whether it ended while the pipe was held, and afterwards"
        );
    }
}

#[test]
fn a_script_that_cannot_be_used_is_told_before_anything_starts() {
    let (output, _) = run_script("prompts:\n  - stps: []\n", &["go"]);
    assert_eq!(output.status.code(), Some(98));
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "script.yaml:2:5: unknown field `stps`, did you mean `steps`? Known here: prompt, model, from, has_tool, tool_result, times, anytime, steps\n";
    assert_eq!(said, expected);
    let fault = "prompts:\n  - steps:\n      - fault: {fault: stall, mss: 3}\n";
    let (output, _) = run_script(fault, &["go"]);
    assert_eq!(output.status.code(), Some(98));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("script.yaml:3:"), "{said}");
    assert!(
        said.contains("unknown field `mss`, did you mean `ms`? Known here: "),
        "{said}"
    );
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

#[test]
fn times_repeat_on_a_virtual_clock() {
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("script.yaml");
    let text = "seed: 7\nclock: virtual\nprompts:\n  - steps: [{think: hm}, {say: slow}, {pace: {chunk: 1, every: 20m}}, {cost: 0.25}]\n";
    std::fs::write(&script, text).unwrap();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go on"}});
    let flags: Vec<&str> = FLAGS
        .into_iter()
        .chain(["--include-partial-messages", "--script", script.to_str().unwrap()])
        .collect();
    let told = || -> Vec<Value> {
        let (output, _) = run(&flags, &format!("{prompt}\n"));
        assert_eq!(output.status.code(), Some(0));
        let lines = output.stdout.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        let lines = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
        // What names the place or the process differs.
        lines.filter(|line| line["subtype"] != "init").collect()
    };
    let first = told();
    assert_eq!(first, told());
    let result = first.last().unwrap();
    // Six letters and a signature, of twenty minutes each, without waiting for any.
    assert!(
        result["duration_ms"].as_u64().unwrap() > 6 * 20 * 60_000,
        "{result}"
    );
    assert_eq!(result["total_cost_usd"], 0.25);
}
