//! `outrigger record`, `outrigger replay`, `outrigger cassette`: a session of the real CLI, recorded and played to the same client.

use std::fs;
use std::path::{Path, PathBuf};

use outrigger::{Event, EventLine};

use crate::rig::Rig;
use crate::tool::{outrigger, ran};

/// An executable that stands where a client expects the CLI.
fn stand_in(directory: &Path, name: &str, command: &str) -> PathBuf {
    let path = directory.join(name);
    let outrigger = env!("CARGO_BIN_EXE_outrigger");
    outrigger_needs::script(&path, format!("#!/bin/sh\nexec {outrigger} {command} \"$@\"\n")).unwrap();
    path
}

const PROMPT: &str = "%say Looking.\n%+tool Bash {\"command\":\"pwd\"}\n%say Done.";

#[tokio::test]
async fn a_session_of_the_real_cli_is_recorded_and_plays_without_it() {
    let rig = Rig::start().await;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("session.ndjson");
    let shown = file.display();
    let recording = stand_in(
        place.path(),
        "recording",
        &format!("record -o {shown} -- {}", rig.cli().display()),
    );
    let args = ["--allow", "Bash(pwd)", PROMPT];
    let run = async |cli: &Path, args: &[&str]| {
        let cli = cli.to_str().unwrap();
        let args: Vec<&str> = ["--cli", cli].iter().chain(args).copied().collect();
        rig.run_with(&args).await
    };
    let recorded = run(&recording, &args).await;
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    assert_eq!(recorded.stdout, "Looking.\nDone.\n", "{recorded:?}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(rig.sandbox.home().to_str().unwrap()), "{text}");
    assert!(text.contains("\"stdout\":\"{{cwd}}\""), "{text}");

    let replaying = stand_in(place.path(), "replaying", &format!("replay {shown}"));
    let asked = rig.api.request_count();
    let replayed = run(&replaying, &args).await;
    assert_eq!(
        (replayed.code, &replayed.stdout),
        (Some(0), &recorded.stdout),
        "{replayed:?}"
    );
    assert_eq!(rig.api.request_count(), asked, "the model was asked nothing");

    let other = run(&replaying, &["--allow", "Bash(pwd)", "%say Something else."]).await;
    assert_ne!(other.code, Some(0), "{other:?}");
    let told = &other.stderr;
    // The end of what was said on stderr is shown.
    assert!(
        told.contains("exit code 97") && told.contains("EXPECTED user"),
        "{told}"
    );
    assert!(told.contains("\"%say Something else.\" came"), "{told}");

    let file = file.to_str().unwrap();
    let (checked, code) = ran(&mut outrigger(&["cassette", "check", file]));
    assert_eq!(
        (code, checked.ends_with(" events, clean\n")),
        (0, true),
        "{checked}"
    );
    let (listed, code) = ran(&mut outrigger(&["cassette", "show", file]));
    assert_eq!(code, 0);
    assert!(
        listed.contains("CLI       2.1.") && listed.contains("< result/success"),
        "{listed}"
    );
    assert!(
        listed.contains("> control_request/initialize") && listed.contains("< (exit code 0)"),
        "{listed}"
    );

    let (events, code) = ran(&mut outrigger(&["cassette", "show", "--json=events", file]));
    assert_eq!(code, 0);
    let told: Vec<(u64, f64, EventLine)> = events
        .lines()
        .map(|line| {
            let place: serde_json::Value = serde_json::from_str(line).unwrap();
            let place = (place["line"].as_u64().unwrap(), place["t"].as_f64().unwrap());
            (place.0, place.1, serde_json::from_str(line).unwrap())
        })
        .collect();
    assert!(
        told.iter()
            .map(|(line, at, _)| (*line, *at))
            .is_sorted_by(|a, b| a <= b),
        "{events}"
    );
    let said = told.iter().filter_map(|(_, _, line)| match line {
        EventLine::Event(Event::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(said.collect::<String>(), "Looking.Done.");
    let outcomes = told
        .iter()
        .filter(|(_, _, line)| matches!(line, EventLine::TurnEnded(outcome) if outcome.is_success()));
    assert_eq!(outcomes.count(), 1, "{events}");

    // What is cut and renamed plays as well.
    let small = place.path().join("small.ndjson");
    let small = small.to_str().unwrap();
    let trim = [
        "cassette",
        "trim",
        "--turns",
        "1",
        "--no-stream-events",
        "-o",
        small,
        file,
    ];
    assert_eq!(ran(&mut outrigger(&trim)).1, 0);
    assert_eq!(ran(&mut outrigger(&["cassette", "edit-ids", small])).1, 0);
    let edited = fs::read_to_string(small).unwrap();
    assert!(
        edited.len() < text.len() && edited.contains("00000000-0000-4000-8000-000000000001"),
        "{edited}"
    );
    let again = run(
        &stand_in(place.path(), "again", &format!("replay {small}")),
        &args,
    )
    .await;
    assert_eq!(
        (again.code, &again.stdout),
        (Some(0), &recorded.stdout),
        "{again:?}"
    );

    let (version, code) = ran(&mut outrigger(&["replay", file, "--version"]));
    assert_eq!(code, 0);
    assert!(
        version.starts_with("2.1.") && version.ends_with(" (Claude Code)\n"),
        "{version}"
    );
}

#[test]
fn what_is_wrong_with_a_cassette_is_named_with_its_line() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("bad.ndjson");
    let header = r#"{"t":0,"dir":"meta","msg":{"cassette":2}}"#;
    let leak = r#"{"t":0.1,"dir":"out","msg":{"type":"keep_alive","key":"sk-ant-api03-0123456789"}}"#;
    fs::write(&file, format!("{header}\n{leak}\n{{\"t\":0.2,\"dir\":")).unwrap();
    let name = file.to_str().unwrap();
    let (text, code) = ran(&mut outrigger(&["cassette", "check", name]));
    assert_eq!(code, 1);
    for wanted in [
        ":2: not redacted: ",
        ":2: keep_alive: field without a type: key",
        "the recorder was killed",
        "not clean",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let (text, code) = ran(&mut outrigger(&["cassette", "show", name]));
    assert_eq!(code, 0);
    assert!(text.contains("was not written to its end"), "{text}");
    fs::write(&file, "{}\n").unwrap();
    assert_eq!(ran(&mut outrigger(&["cassette", "show", name])).1, 2);
    assert_eq!(ran(&mut outrigger(&["cassette", "check", name])).1, 2);
    let pattern = ["cassette", "check", "--redact-pattern", "(", name];
    assert_eq!(ran(&mut outrigger(&pattern)).1, 2);
}

#[test]
fn the_end_of_a_cli_is_the_end_of_its_recording() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("it.ndjson");
    let name = file.to_str().unwrap();
    let script = "echo '{\"type\":\"keep_alive\"}'; echo oops >&2; exit 7";
    let (stdout, code) = ran(&mut outrigger(&["record", "-o", name, "--", "sh", "-c", script]));
    assert_eq!((stdout.as_str(), code), ("{\"type\":\"keep_alive\"}\n", 7));
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("{\"raw\":\"oops\"}") && text.contains("\"exit_code\":7"),
        "{text}"
    );
    let (stdout, code) = ran(&mut outrigger(&[
        "replay", "--ignore", "/argv", name, "--any", "--flag=x",
    ]));
    assert_eq!((stdout.as_str(), code), ("{\"type\":\"keep_alive\"}\n", 7));
    let (_, code) = ran(&mut outrigger(&["record", "-o", name, "--", "/no/such/cli"]));
    assert_eq!(code, 3);
}

#[tokio::test]
async fn a_prompt_can_be_recorded_without_a_client() {
    let rig = Rig::start().await;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("session.ndjson");
    let shown = file.display().to_string();
    let second = "%say And again.";
    let said = [
        "--no-ask",
        "--allow",
        "Bash(pwd)",
        "-o",
        &shown,
        "--prompt",
        PROMPT,
        "--prompt",
        second,
    ];
    let recorded = rig.finish(rig.spawn("record", &said)).await;
    assert_eq!(
        (recorded.code, recorded.stdout.as_str()),
        (Some(0), "Looking.\nDone.\nAnd again.\n"),
        "{recorded:?}"
    );
    let (checked, code) = ran(&mut outrigger(&["cassette", "check", &shown]));
    assert_eq!(code, 0, "{checked}");

    // What `run` says first is what was recorded first; that it says no more is a difference at the end.
    let trimmed = place.path().join("one.ndjson").display().to_string();
    let trim = ["cassette", "trim", "--turns", "1", "-o", &trimmed, &shown];
    assert_eq!(ran(&mut outrigger(&trim)).1, 0);
    let replaying = stand_in(place.path(), "replaying", &format!("replay {trimmed}"));
    let cli = replaying.to_str().unwrap();
    let replayed = rig
        .run_with(&["--cli", cli, "--allow", "Bash(pwd)", PROMPT])
        .await;
    assert_eq!(
        (replayed.code, replayed.stdout.as_str()),
        (Some(0), "Looking.\nDone.\n"),
        "{replayed:?}"
    );
    // Another model is another command line.
    let other = rig.run_with(&["--cli", cli, "--model", "opus", PROMPT]).await;
    assert_ne!(other.code, Some(0), "{other:?}");
    assert!(other.stderr.contains("/argv/--model"), "{}", other.stderr);

    // The options are those of a client that is this command itself.
    let both = ["record", "-o", &shown, "--model", "opus", "--", "true"];
    assert_eq!(ran(&mut outrigger(&both)).1, 2);
}

/// Signals reach the CLI and not the recorder, which writes down how it ended.
#[test]
fn signals_go_to_the_cli_and_the_cassette_is_complete() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    use rustix::process::{Pid, Signal, kill_process};

    // One that handles what it gets, in its own time, and one that dies of it.
    let handles =
        r#"trap 'echo "{\"type\":\"bye\"}"; exit 7' TERM INT HUP; echo ready; while :; do sleep 0.05; done"#;
    let dies = "echo ready; exec sleep 60";
    for (script, signal, name, code) in [
        (handles, Signal::TERM, "SIGTERM", 7),
        (handles, Signal::INT, "SIGINT", 7),
        (handles, Signal::HUP, "SIGHUP", 7),
        (dies, Signal::TERM, "SIGTERM", 128 + 15),
        (dies, Signal::INT, "SIGINT", 128 + 2),
    ] {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("it.ndjson");
        let mut recorder = outrigger(&["record", "-o", file.to_str().unwrap(), "--", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(recorder.stdout.take().unwrap()).lines();
        assert_eq!(stdout.next().unwrap().unwrap(), "ready");
        kill_process(Pid::from_child(&recorder), signal).unwrap();
        let rest: Vec<String> = stdout.map(Result::unwrap).collect();
        let status = recorder.wait().unwrap();
        assert_eq!(status.code(), Some(code), "{name}: {status}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("{{\"signal\":\"{name}\"}}")), "{text}");
        let (exit_code, exit_signal) = if code == 7 {
            assert_eq!(rest, ["{\"type\":\"bye\"}"]);
            assert!(text.contains("\"msg\":{\"type\":\"bye\"}"), "{text}");
            ("7".to_owned(), "null".to_owned())
        } else {
            ("null".to_owned(), (code - 128).to_string())
        };
        let end = format!("{{\"exit_code\":{exit_code},\"exit_signal\":{exit_signal}}}}}\n");
        assert!(text.ends_with(&end), "{text}");
    }
}

#[test]
fn a_recorder_that_is_killed_leaves_what_was_said() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::Stdio;

    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("it.ndjson");
    // It ends when nobody writes to it any more.
    let script = "echo '{\"type\":\"keep_alive\"}'; exec cat";
    let mut command = outrigger(&["record", "-o", file.to_str().unwrap(), "--", "sh", "-c", script]);
    let mut recorder = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(recorder.stdout.take().unwrap()).lines();
    assert_eq!(stdout.next().unwrap().unwrap(), "{\"type\":\"keep_alive\"}");
    let mut stdin = recorder.stdin.take().unwrap();
    stdin.write_all(b"{\"said\":1}\n").unwrap();
    assert_eq!(stdout.next().unwrap().unwrap(), "{\"said\":1}");
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    for (line, (direction, said)) in
        lines[1..]
            .iter()
            .zip([("out", "keep_alive"), ("in", "said"), ("out", "said")])
    {
        assert!(
            line.contains(&format!("\"dir\":\"{direction}\"")) && line.contains(said),
            "{line}"
        );
    }
    let (checked, code) = ran(&mut outrigger(&["cassette", "check", file.to_str().unwrap()]));
    assert_eq!(code, 1);
    assert!(checked.contains("the end of the CLI is missing"), "{checked}");
}

/// What a command wrote on stderr, and its exit status.
fn failed(command: &mut std::process::Command) -> (String, i32) {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    println!("{}\n{stderr}", String::from_utf8_lossy(&output.stdout));
    (stderr, output.status.code().unwrap())
}

/// The names in a directory, in their order.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_cassette_is_only_replaced_by_a_recording() {
    let rig = Rig::start().await;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("keep.ndjson");
    let name = file.to_str().unwrap();
    fs::write(&file, "old\n").unwrap();
    let is_as_it_was = |told: &str| {
        assert_eq!(fs::read_to_string(&file).unwrap(), "old\n", "{told}");
        assert_eq!(names(place.path()), ["keep.ndjson"], "{told}");
    };
    // Not started at all, and ended without a word.
    let (told, code) = failed(&mut outrigger(&["record", "-o", name, "--", "/no/such/cli"]));
    assert_eq!(code, 3, "{told}");
    is_as_it_was(&told);
    let silent = "echo unknown option >&2; exit 1";
    let (told, code) = failed(&mut outrigger(&["record", "-o", name, "--", "sh", "-c", silent]));
    assert_eq!(code, 1, "{told}");
    assert!(
        told.contains("nothing on stdout") && told.contains("as it was"),
        "{told}"
    );
    is_as_it_was(&told);
    // A session that does not begin: there is no login.
    let prompt = ["--no-ask", "--auth", "login", "-o", name, "--prompt", "hi"];
    let ran = rig.ran_without_account("record", &prompt).await;
    assert_eq!(ran.code, Some(8), "{ran:?}");
    is_as_it_was(&ran.stderr);
    let prompt = ["record", "-o", name, "--cli", "/no/such/cli", "--prompt", "hi"];
    let (told, code) = failed(&mut outrigger(&prompt));
    assert_eq!(code, 3, "{told}");
    is_as_it_was(&told);
    // What was recorded is put there, also of a CLI that fails.
    let (_, code) = failed(&mut outrigger(&[
        "record",
        "-o",
        name,
        "--",
        "sh",
        "-c",
        "echo '{}'; exit 5",
    ]));
    assert_eq!(code, 5);
    assert!(fs::read_to_string(&file).unwrap().contains("\"exit_code\":5"));
    assert_eq!(names(place.path()), ["keep.ndjson"]);
    // Where there is no cassette, the end of a silent CLI is worth one, and no CLI at all is not.
    let new = place.path().join("below/new.ndjson");
    let new = new.to_str().unwrap();
    let (_, code) = failed(&mut outrigger(&["record", "-o", new, "--", "/no/such/cli"]));
    assert_eq!((code, Path::new(new).exists()), (3, false));
    let (_, code) = failed(&mut outrigger(&["record", "-o", new, "--", "sh", "-c", silent]));
    assert_eq!(code, 1);
    assert!(fs::read_to_string(new).unwrap().contains("unknown option"));
}

#[test]
fn a_cassette_without_a_name_gets_one_that_is_free() {
    let place = tempfile::tempdir().unwrap();
    let record = |what: &str| {
        let script = format!("echo '\"{what}\"'");
        let mut command = outrigger(&["record", "--", "sh", "-c", &script]);
        let (told, code) = failed(command.current_dir(place.path()));
        assert_eq!(code, 0, "{told}");
        told
    };
    assert_eq!(record("first"), "");
    let told = record("second");
    assert!(told.contains("session.2.ndjson"), "{told}");
    record("third");
    for (name, what) in [
        ("session.ndjson", "first"),
        ("session.2.ndjson", "second"),
        ("session.3.ndjson", "third"),
    ] {
        let text = fs::read_to_string(place.path().join(name)).unwrap();
        assert!(text.contains(&format!("\"{what}\"")), "{name}: {text}");
    }
}

#[test]
fn what_is_no_file_is_not_replaced() {
    use std::os::unix::fs::FileTypeExt as _;

    let place = tempfile::tempdir().unwrap();
    let directory = place.path().to_str().unwrap();
    for rest in [&["--prompt", "hi"][..], &["--", "sh", "-c", "echo '{}'"]] {
        let args = [&["record", "-o", directory][..], rest].concat();
        let (told, code) = failed(&mut outrigger(&args));
        assert_eq!(code, 2, "{told}");
        assert!(
            told.contains("is a directory") && !told.contains("doctor"),
            "{told}"
        );
    }
    assert_eq!(names(place.path()), [""; 0]);
    // A pipe takes what is recorded, and a link leads to what is replaced.
    let pipe = place.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    let record = [
        "record",
        "-o",
        pipe.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        "echo '{}'",
    ];
    assert_eq!(failed(&mut outrigger(&record)).1, 0);
    assert!(reader.join().unwrap().contains("\"exit_code\":0"));
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    let (link, file) = (place.path().join("link"), place.path().join("file"));
    fs::write(&file, "old\n").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let record = [
        "record",
        "-o",
        link.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        "echo '{}'",
    ];
    assert_eq!(failed(&mut outrigger(&record)).1, 0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&file).unwrap().contains("\"exit_code\":0"));
}

#[test]
fn a_place_that_cannot_be_written_is_named_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "").unwrap();
    let file = place.path().join("file/it.ndjson");
    for rest in [&["--prompt", "hi"][..], &["--", "sh", "-c", "echo '{}'"]] {
        let args = [&["record", "-o", file.to_str().unwrap()][..], rest].concat();
        let (told, code) = failed(&mut outrigger(&args));
        assert_eq!(code, 1, "{told}");
        assert!(
            told.contains(&format!("cannot write {}", file.display())) && !told.contains("hint"),
            "{told}"
        );
    }
}

#[test]
fn a_file_without_a_line_end_is_not_empty() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("it.ndjson");
    let name = file.to_str().unwrap();
    for command in [&["cassette", "check"][..], &["cassette", "show"], &["replay"]] {
        fs::write(&file, "hello").unwrap();
        let output = outrigger(&[command, &[name]].concat()).output().unwrap();
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_ne!(output.status.code(), Some(0), "{told}");
        assert!(
            told.contains("the first line has no header") && !told.contains("is empty"),
            "{command:?}: {told}"
        );
    }
    let header = r#"{"t":0,"dir":"meta","msg":{"cassette":2}}"#;
    fs::write(&file, header).unwrap();
    let (text, code) = ran(&mut outrigger(&["cassette", "show", name]));
    assert_eq!(code, 0, "{text}");
}
