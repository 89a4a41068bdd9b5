//! Runs the examples, with what a person would type, and looks at what they show.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end in a panic")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Longer than any takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where cargo puts them: beside the directory of the tests. `cargo test` builds them, unless it is told to build one test alone.
fn program(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().and_then(Path::parent).unwrap();
    let name = format!("{example}{}", std::env::consts::EXE_SUFFIX);
    let path = target.join("examples").join(name);
    assert!(
        path.exists(),
        "{} is not built: run `cargo build -p outrigger --examples`",
        path.display()
    );
    path
}

/// Runs one to its end, which must be a good one, and returns what it showed.
async fn run(example: &str, typed: &str) -> String {
    let mut command = Command::new(program(example));
    command.env_clear();
    for name in [
        "PATH",
        "SystemRoot",
        "HOME",
        "LOCALAPPDATA",
        "OUTRIGGER_CLAUDE_CACHE",
        "XDG_CACHE_HOME",
    ] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(typed.as_bytes()).await.unwrap();
    drop(stdin);
    let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = ended
        .unwrap_or_else(|_| panic!("{example} does not end"))
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.status.success(), "{example}: {stdout}{stderr}");
    stdout
}

/// Checks that these come one after the other.
fn in_order(shown: &str, expected: &[&str]) {
    let mut rest = shown;
    for words in expected {
        let Some((_, behind)) = rest.split_once(words) else {
            panic!("{words:?} is not where it should be in:\n{shown}");
        };
        rest = behind;
    }
}

#[tokio::test]
async fn approve() {
    let expected = [
        "Bash wants to run: {\"command\":\"touch hello.txt\"",
        "Allow it?",
        "Bash wants to run: {\"command\":\"rm hello.txt\"",
        "failed: the user refused this and says: keep it",
        "model: That was it.",
    ];
    in_order(&run("approve", "y\nkeep it\n").await, &expected);
    // Nobody answers.
    let shown = run("approve", "").await;
    assert_eq!(
        shown
            .matches("failed: the permission handler failed: unexpected end of file")
            .count(),
        2,
        "{shown}"
    );
}

#[tokio::test]
async fn policy_file() {
    let expected = [
        "touch notes.txt",
        "rm notes.txt",
        "failed: Permission to use Bash with command rm notes.txt has been denied",
        "mkdir notes",
        "[y/N]",
        "allowed by person: ",
        "model: Done.",
    ];
    in_order(&run("policy_file", "y\n").await, &expected);
}

#[tokio::test]
async fn guard() {
    let shown = run("guard", "").await;
    let expected = [
        "guard: looks at `echo hello > public.txt`",
        "guard: looks at `cat .env`",
        "the guard keeps .env to itself",
        "model: Done.",
    ];
    in_order(&shown, &expected);
    assert_eq!(shown.matches("failed:").count(), 1, "{shown}");
}

#[tokio::test]
async fn tool() {
    let expected = [
        "tool: mcp__shopping__add",
        "failed: the count must be at least 1",
        "model: On the list: 2 bread",
        "program: the list is [\"2 bread\"]",
    ];
    in_order(&run("tool", "").await, &expected);
}

#[tokio::test]
async fn question() {
    let expected = ["Which roof?", "2. Thatch (light)", "model: ", "Thatch"];
    in_order(&run("question", "2\n").await, &expected);
    in_order(&run("question", "a flat one\n").await, &["model: ", "a flat one"]);
    let shown = run("question", "7\n").await;
    in_order(
        &shown,
        &["failed: the question could not be answered", "there is no 6"],
    );
}

#[tokio::test]
async fn plan() {
    let shown = run("plan", "smaller steps\ne\n").await;
    let expected = [
        "1. Make a file.",
        "failed: the user wants a change: smaller steps",
        "The plan:",
        "tool: Bash",
        "model: Built.",
    ];
    in_order(&shown, &expected);
    assert_eq!(shown.matches("failed:").count(), 1, "{shown}");
}
