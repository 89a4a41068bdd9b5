//! `outrigger doctor`.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::rig::Rig;
use crate::tool::{outrigger, ran};

/// A program that says it is Claude Code.
fn fake(directory: &Path) -> PathBuf {
    let path = directory.join("claude");
    outrigger_needs::script(&path, "#!/bin/sh\necho '9.8.7 (Claude Code)'\n").unwrap();
    path
}

/// The doctor with this home and nothing on the PATH but the system's own.
fn doctor(home: &Path, arguments: &[&str]) -> Command {
    let mut command = outrigger(&["doctor"]);
    command
        .args(arguments)
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin");
    command
}

#[test]
fn an_installation_on_the_path_is_found_and_run() {
    let (home, bin) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let claude = fake(bin.path());
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let mut command = doctor(home.path(), &["--json"]);
    command.env("PATH", &path).env("ANTHROPIC_API_KEY", "sk-secret");
    let (text, code) = ran(&mut command);
    assert_eq!(code, 0);
    assert_eq!(text.lines().count(), 1, "{text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["healthy"], true);
    assert_eq!(report["chosen"], claude.to_str().unwrap());
    assert_eq!(report["candidates"][0]["version"]["version"], "9.8.7");
    assert_eq!(report["candidates"][0]["origin"], "path");
    assert_eq!(report["auth"][0]["variable"], "ANTHROPIC_API_KEY");
    assert!(!text.contains("sk-secret"));
    let mut command = doctor(home.path(), &[]);
    let (text, code) = ran(command.env("PATH", &path));
    assert_eq!(code, 1, "it is no Claude Code, so that no session starts");
    assert!(text.contains("claude (this one is used)"), "{text}");
    assert!(text.contains("runs: version 9.8.7"), "{text}");
    assert!(
        text.contains("none found") && text.contains("A session cannot be started"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "no colours in a pipe");
}

#[test]
fn the_account_that_is_used_is_told_from_the_others() {
    let home = TempDir::new().unwrap();
    let claude = fake(home.path());
    fs::create_dir(home.path().join(".claude")).unwrap();
    fs::write(home.path().join(".claude/.credentials.json"), "{}").unwrap();
    fs::write(
        home.path().join(".claude/settings.json"),
        r#"{"apiKeyHelper": "true"}"#,
    )
    .unwrap();
    let told = |variables: &[(&str, &str)]| {
        let mut command = doctor(home.path(), &["--cli", claude.to_str().unwrap()]);
        ran(command.envs(variables.iter().copied())).0
    };
    let text = told(&[("ANTHROPIC_API_KEY", "sk-secret"), ("CLAUDE_CODE_TMPDIR", "/tmp")]);
    for part in [
        "ANTHROPIC_API_KEY in the environment: a key of the Claude API (this one is used)",
        ".credentials.json\n",
        "settings.json (used only where settings are loaded",
        "Agent::builder()",
        "outranks a stored login",
        "→ choose one account with --auth",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("inside of a Claude Code session"), "{text}");
    let text = told(&[("CLAUDECODE", "1"), ("CLAUDE_CODE_TMPDIR", "/tmp")]);
    assert!(text.contains(".credentials.json (this one is used)"), "{text}");
    assert!(
        text.contains("keeps back CLAUDECODE, CLAUDE_CODE_TMPDIR"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_started_is_a_problem_with_advice() {
    let home = TempDir::new().unwrap();
    let (text, code) = ran(&mut doctor(home.path(), &["--cli", "/no/such/claude"]));
    assert_eq!(code, 1);
    assert!(text.contains("cannot be used: no such file"), "{text}");
    assert!(
        text.contains("→ install Claude Code there or correct the path"),
        "{text}"
    );
    let claude = fake(home.path());
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o644)).unwrap();
    let (text, code) = ran(doctor(home.path(), &["--json"]).env("OUTRIGGER_CLAUDE", &claude));
    assert_eq!(code, 1);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["healthy"], false);
    assert_eq!(report["candidates"][0]["unusable"], "not_executable");
    assert_eq!(report["problems"][0]["severity"], "error");
}

/// `doctor` and `run` agree about whether a session can be started, wherever the account is.
#[tokio::test]
async fn without_an_account_the_cli_itself_is_asked() {
    let rig = Rig::start().await;
    let doctor = async |args: &[&str], settings: Option<&str>| {
        let mut command = rig.std_command("doctor", &[]);
        let cli = rig.cli().to_str().unwrap();
        let home = rig.sandbox.home();
        let mut alone = Command::new(command.get_program());
        alone.args(["doctor", "--cli", cli]).args(args).env_clear();
        for (name, value) in command.get_envs() {
            alone.env(name, value.unwrap());
        }
        command = alone;
        command
            .current_dir(rig.sandbox.project())
            .env_remove("ANTHROPIC_API_KEY")
            .env("HOME", &home)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        if let Some(headers) = settings {
            command.env("ANTHROPIC_CUSTOM_HEADERS", headers);
        }
        rig.finish(tokio::process::Command::from(command).spawn().unwrap())
            .await
    };
    let ran = rig.ran_without_account("run", &["--no-ask", "hi"]).await;
    assert_eq!(ran.code, Some(8), "{ran:?}");
    let asked = rig.api.request_count();
    let told = doctor(&[], None).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(
        told.stdout.contains("Problem") && told.stdout.contains("no account"),
        "{}",
        told.stdout
    );
    assert!(
        told.stdout.contains("A session cannot be started: 1 problem."),
        "{}",
        told.stdout
    );
    let told = doctor(&["--json"], None).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    let report: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(report["healthy"], false);
    assert_eq!(report["problems"][0]["severity"], "error", "{report}");
    // A login without anything in it.
    let login = rig.sandbox.home().join(".claude/.credentials.json");
    fs::create_dir_all(login.parent().unwrap()).unwrap();
    fs::write(&login, "{}").unwrap();
    let told = doctor(&[], None).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(
        told.stdout.contains("A session cannot be started: 1 problem."),
        "{}",
        told.stdout
    );
    fs::remove_file(&login).unwrap();
    // Credentials that only the CLI sees.
    let told = doctor(&[], Some("Authorization: Bearer none-such")).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(
        told.stdout.contains("A session can be started"),
        "{}",
        told.stdout
    );
    assert_eq!(rig.api.request_count(), asked, "no model was asked");
}
