//! What happens when nobody reads standard output, and what is said of errors that repeat their cause.

use std::process::{Command, Stdio};

use crate::kept::{ONE, Place};
use crate::rig::Rig;
use crate::tool::outrigger;

/// Runs a command whose standard output is closed.
fn closed(command: &mut Command) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_closed_pipe_has_one_status_and_no_words() {
    let place = Place::new();
    let file = place.session(&place.project, ONE, "count the files", Some("counting"));
    let agents = file.with_extension("").join("subagents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("agent-7.jsonl"), "{}\n").unwrap();
    let recording = place.project.join("recording.jsonl");
    std::fs::write(&recording, "{\"type\":\"keep_alive\"}\n").unwrap();
    let recording = recording.to_str().unwrap();
    let store = ["--store", "dir:store"];
    place.done(&[&["push", ONE], &store[..]].concat());
    for args in [
        &["settings", "show", "--json"][..],
        &["settings", "show", "--json", "--heeded"],
        &["settings", "show"],
        &["settings", "keys"],
        &["doctor", "--json"],
        &["doctor"],
        &["protocol", "check", "--json", recording],
        &["protocol", "check", recording],
        &["mock-api", "--schema"],
        &["explain", "Bash"],
        &["sessions", "list"],
        &["sessions", "list", "--json"],
        &["sessions", "show", ONE],
        &["sessions", "show", ONE, "--json"],
        &["sessions", "show", ONE, "--markdown"],
        &["sessions", "search", "count"],
        &["sessions", "search", "count", "--json"],
        &["sessions", "export", ONE, "-"],
        &["sessions", "repair", ONE],
        &["sessions", "agents", ONE],
        &["sessions", "agents", ONE, "--json"],
        &["completions", "bash"],
        &["man"],
        &["config", "path"],
        &["--help"],
        &["--version"],
        &["sessions", "status", ONE, "--json", store[0], store[1]],
        &["sessions", "fork", ONE, "--json"],
        &["serve", "--root", ".", "--check"],
        &[
            "serve",
            "--root",
            ".",
            "--data",
            "host",
            "--listen",
            "127.0.0.1:0",
        ],
    ] {
        let mut command = outrigger(args);
        command
            .env("CLAUDE_CONFIG_DIR", &place.config)
            .current_dir(&place.project);
        let (code, said) = closed(&mut command);
        assert_eq!(code, Some(141), "{args:?}: {said}");
        assert!(!said.contains("ipe"), "{args:?}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_full_disk_does_not_take_is_no_success() {
    for args in [
        &["--help"][..],
        &["--version"],
        &["help", "run"],
        &["completions", "bash"],
        &["settings", "keys"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = outrigger(args).stdout(full).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("No space left"), "{args:?}: {said}");
    }
}

#[test]
fn a_closed_standard_error_changes_no_status() {
    let place = Place::new();
    for (args, code) in [(&["run", ""][..], 2), (&["sessions", "list"], 1)] {
        let mut command = outrigger(args);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command
            .env("CLAUDE_CONFIG_DIR", &place.config)
            .current_dir(&place.project)
            .stdin(Stdio::null())
            .stderr(writer);
        assert_eq!(command.output().unwrap().status.code(), Some(code), "{args:?}");
    }
}

#[test]
fn a_cause_that_an_error_repeats_is_told_once() {
    let place = Place::new();
    place.session(&place.project, ONE, "count the files", None);
    std::fs::write(place.project.join("there"), "").unwrap();
    for args in [
        &["export", ONE, "there"][..],
        &["import", "nowhere"],
        &["show", ONE, "--agent", "7"],
    ] {
        let output = place.command(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.matches("os error").count() <= 1, "{args:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn so_do_runs_and_conversations() {
    let rig = Rig::start().await;
    for arguments in [
        &["--no-ask", "--quiet", "%say Hello."][..],
        &["--no-ask", "--quiet", "--json", "%say Hello."],
        &["--no-ask", "--quiet", "--output", "json", "%say Hello."],
        &["--no-ask", "--quiet", "--output", "text", "%say Hello."],
    ] {
        let mut command = rig.std_command("run", arguments);
        command.stdin(Stdio::null());
        let ended = tokio::task::spawn_blocking(move || closed(&mut command))
            .await
            .unwrap();
        assert_eq!(ended, (Some(141), String::new()), "{arguments:?}");
        rig.nothing_left().await;
    }
    // A turn that does not end is no reason to go on.
    let mut child = rig.spawn("run", &["--no-ask", "--quiet", "--json", "%hang\n%say never"]);
    drop((child.stdin.take(), child.stdout.take()));
    let ran = rig.finish(child).await;
    assert_eq!((ran.code, &*ran.stderr), (Some(141), ""), "{ran:?}");
    let mut child = rig.spawn("chat", &["--no-ask", "--quiet"]);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stdin, b"%say Hello.\n")
        .await
        .unwrap();
    let ran = rig.finish(child).await;
    assert_eq!((ran.code, &*ran.stderr), (Some(141), ""), "{ran:?}");
}
