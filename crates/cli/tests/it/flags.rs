//! What the flags of `outrigger run` are to the CLI: a program in its place writes down how it was started.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::tool::{outrigger, ran};

/// A place with a program that takes the CLI's place: it writes down its arguments and its first line of input, and does `then`.
pub(crate) struct Stub {
    root: TempDir,
}

impl Stub {
    pub(crate) fn new(then: &str) -> Self {
        let root = TempDir::new().unwrap();
        let path = root.path().join("claude");
        let at = root.path().display();
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && echo '2.1.330 (Claude Code)' && exit\nprintf '%s\\n' \"$@\" > {at}/argv\nhead -n 1 \
             > {at}/first\n{then}\n"
        );
        outrigger_needs::script(&path, script).unwrap();
        Self { root }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// `outrigger` with a home of its own, in this place.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = outrigger(args);
        command
            .env("HOME", self.root.path())
            .env("ANTHROPIC_API_KEY", "sk-none")
            .env("XDG_CONFIG_HOME", self.path("config"))
            .current_dir(self.root.path());
        command
    }

    /// The arguments of the CLI that `outrigger run` with these arguments starts.
    pub(crate) fn argv(&self, args: &[&str]) -> Vec<String> {
        let cli = self.path("claude");
        let common = ["run", "hello", "--no-ask", "--cli", cli.to_str().unwrap()];
        let mut command = self.command(&[&common, args].concat());
        self.started_by(&mut command)
    }

    pub(crate) fn started_by(&self, command: &mut Command) -> Vec<String> {
        let _ = fs::remove_file(self.path("argv"));
        let (_, code) = ran(command);
        assert!(
            [3, 7].contains(&code),
            "the program in its place ends at once: {code}"
        );
        let argv = fs::read_to_string(self.path("argv")).expect("it was started");
        argv.lines().map(str::to_owned).collect()
    }

    fn initialize(&self) -> Value {
        let first = fs::read_to_string(self.path("first")).unwrap();
        serde_json::from_str::<Value>(&first).unwrap()["request"].take()
    }
}

#[test]
fn each_flag_reaches_the_cli() {
    let stub = Stub::new("exit 1");
    fs::create_dir(stub.path("plugin")).unwrap();
    fs::create_dir(stub.path("other")).unwrap();
    fs::write(stub.path("settings.json"), "{\"cleanupPeriodDays\": 7}").unwrap();
    let id = "0f0f0f0f-0000-4000-8000-00000000000a";
    let plugin = fs::canonicalize(stub.path("plugin")).unwrap();
    let plugin = format!("--plugin-dir={}", plugin.display());
    let debug = stub.path("debug.log").display().to_string();
    let debug_flag = format!("--debug-file={debug}");
    for (args, flags) in [
        (&["--session-id", id][..], &[format!("--session-id={id}")][..]),
        (
            &["--fallback-model", "haiku,opus"],
            &["--fallback-model=haiku,opus".into()],
        ),
        (&["--betas", "one,two"], &["--betas=one,two".into()]),
        (&["--betas", "one", "--betas", "two"], &["--betas=one,two".into()]),
        (
            &["--no-session-persistence"],
            &["--no-session-persistence".into()],
        ),
        (&["--include-hook-events"], &["--include-hook-events".into()]),
        (&["--verbose"], &["--include-hook-events".into()]),
        (&["--debug-file", &debug], &[debug_flag]),
        (&["--worktree", "w"], &["--worktree=w".into()]),
        (&["--worktree"], &["--worktree".into()]),
        // From here, wherever the CLI is to work.
        (&["--plugin-dir", "plugin", "--cwd", "other"], &[plugin]),
        (
            &["--settings", "{\"cleanupPeriodDays\": 7}"],
            &["--settings={\"cleanupPeriodDays\":7,\"useAutoModeDuringPlan\":false}".into()],
        ),
        (
            &["--settings", "settings.json", "--cwd", "other"],
            &["--settings={\"cleanupPeriodDays\":7,\"useAutoModeDuringPlan\":false}".into()],
        ),
    ] {
        let argv = stub.argv(args);
        for flag in flags {
            assert!(argv.contains(flag), "{flag} of {args:?}: {argv:#?}");
        }
    }
    let without = stub.argv(&[]);
    let said = without.join(" ");
    for flag in [
        "--session-id",
        "--worktree",
        "--betas",
        "--no-session",
        "--include-hook",
        "--debug",
        "--plugin",
        "--fallback",
        "cleanupPeriodDays",
    ] {
        assert!(!said.contains(flag), "{flag}: {said}");
    }

    let agents =
        "{\"reviewer\": {\"description\": \"reviews\", \"prompt\": \"Review.\", \"model\": \"opus\"}}";
    fs::write(stub.path("agents.json"), agents).unwrap();
    for given in [agents, "agents.json"] {
        stub.argv(&["--agents", given]);
        let initialize = stub.initialize();
        assert_eq!(initialize["agents"]["reviewer"]["model"], "opus", "{initialize}");
    }
}

#[test]
fn values_that_are_wrong_are_told_with_their_place() {
    let stub = Stub::new("exit 1");
    fs::write(stub.path("agents.json"), "{\n\"a\": {\"prompt\": 7}}").unwrap();
    for (args, words) in [
        (&["--agents", "{\"a\": 7}"][..], "--agents: in `a`: invalid type"),
        (
            &["--agents", "agents.json"],
            "--agents: agents.json: in `a.prompt`: invalid type",
        ),
        (
            &["--agents", "missing.json"],
            "--agents: cannot read missing.json",
        ),
        (&["--settings", "[]"], "--settings:"),
        (
            &["--plugin-dir", "missing"],
            "--plugin-dir missing: it is no directory",
        ),
        (&["--session-id", "7"], "UUID"),
        (
            &["--worktree", "Fix it."],
            "--worktree is \"Fix it.\", which is no name",
        ),
        (&["--timeout", "soon"], "it is no duration"),
        (&["--timeout", "0s"], "longer than no time"),
    ] {
        let cli = stub.path("claude");
        let common = ["run", "hello", "--no-ask", "--cli", cli.to_str().unwrap()];
        let output = stub.command(&[&common, args].concat()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    assert!(!stub.path("argv").exists(), "nothing was started");
}

/// What hangs while it starts.
#[test]
fn a_run_that_does_not_start_ends_when_its_time_is_over() {
    let stub = Stub::new("exec sleep 600");
    let cli = stub.path("claude");
    let mut command = stub.command(&[
        "run",
        "hello",
        "--no-ask",
        "--timeout",
        "1s",
        "--cli",
        cli.to_str().unwrap(),
    ]);
    let began = Instant::now();
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(124), "{said}");
    assert!(said.contains("longer than --timeout allows"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(60));
}

/// As `/bin/false` does, or a program that is another one.
#[test]
fn a_cli_that_ends_at_once_could_not_be_started() {
    let stub = Stub::new("exit 1");
    let cli = stub.path("claude");
    let common = ["run", "hello", "--no-ask", "--cli", cli.to_str().unwrap()];
    let output = stub.command(&common).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("`outrigger doctor`"), "{said}");
}

#[test]
fn only_flags_of_telemetry_are_below_its_heading() {
    let (help, _) = crate::tool::ran(&mut crate::tool::outrigger(&["run", "--help"]));
    let (_, section) = help.split_once("\nTelemetry:\n").unwrap();
    let (section, _) = section.split_once(":\n").unwrap();
    let flags = section
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('-'));
    let flags: Vec<&str> = flags.collect();
    assert_eq!(flags, ["--otel", "--otel-content", "--otel-cli"], "{help}");
}
