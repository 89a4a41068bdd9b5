//! `outrigger demo`, from end to end.

use std::fs;
#[cfg(target_os = "linux")]
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Command;
#[cfg(target_os = "linux")]
use std::process::Stdio;

use tempfile::TempDir;

use crate::tool::{outrigger, ran};

/// Runs the demo with a temporary directory of its own and returns what it showed.
fn demo(command: &mut Command) -> String {
    let temp = TempDir::new().unwrap();
    let (text, code) = ran(command.env("TMPDIR", temp.path()));
    assert_eq!(code, 0, "{text}");
    for said in [
        "1 + 2 + ... + 10 = 55",
        "Bash rm sum.sh? the program says no",
        "✓ interrupted",
        "finished.txt is there",
        "ended with exit code 0",
        "5 steps, each did what it should",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains('\x1b'), "no colours in a pipe");
    let left: Vec<_> = fs::read_dir(temp.path()).unwrap().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    text
}

#[test]
fn with_the_real_cli() {
    let text = demo(&mut outrigger(&["demo"]));
    assert!(text.contains("Claude Code 2."), "{text}");
    assert!(text.contains("It ran: 1 + 2 + ... + 10 = 55"), "{text}");
    assert!(text.contains("requests, all at 127.0.0.1"), "{text}");
    assert!(!text.contains("SIMULATED"), "{text}");
}

#[test]
fn with_a_simulated_agent() {
    let text = demo(&mut outrigger(&["demo", "--simulated"]));
    assert!(text.contains("the agent is SIMULATED"), "{text}");
}

/// What is there need not be fetched.
#[cfg(unix)]
#[tokio::test]
async fn an_installed_cli_is_used_if_it_is_the_pinned_one() {
    let cli = outrigger_sim::claude::executable().await.expect("the pinned CLI");
    let (bin, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    std::os::unix::fs::symlink(cli, bin.path().join("claude")).unwrap();
    let mut command = outrigger(&["demo"]);
    command
        .env("PATH", format!("{}:/usr/bin:/bin", bin.path().display()))
        .env("HOME", home.path())
        .env("OUTRIGGER_CLAUDE_CACHE", home.path().join("cache"));
    let text = tokio::task::spawn_blocking(move || demo(&mut command))
        .await
        .unwrap();
    assert!(text.contains("is installed: "), "{text}");
    assert!(!text.contains("fetches") && !text.contains("SIMULATED"), "{text}");
}

#[cfg(unix)]
#[test]
fn without_npm_it_says_so_and_simulates() {
    let (bin, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    // The tools of the system but no npm.
    for tool in ["sh", "bash", "rm", "sleep"] {
        let found = ["/bin", "/usr/bin"].map(|directory| format!("{directory}/{tool}"));
        let found = found.iter().find(|path| fs::metadata(path).is_ok()).unwrap();
        std::os::unix::fs::symlink(found, bin.path().join(tool)).unwrap();
    }
    // Another version is not what the demo was tried with.
    let other = bin.path().join("claude");
    outrigger_needs::script(&other, "#!/bin/sh\necho '9.9.9 (Claude Code)'\n").unwrap();
    let mut command = outrigger(&["demo"]);
    command.env("PATH", bin.path()).env("HOME", home.path());
    command
        .env_remove("OUTRIGGER_CLAUDE_CACHE")
        .env_remove("XDG_CACHE_HOME");
    let text = demo(&mut command);
    let notice = text.find("Anthropic's program").expect("the terms come first");
    let instead = text.find("\"npm\" was not found").expect("the reason is told");
    assert!(notice < instead, "{text}");
    assert!(text.contains("SIMULATED agent"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_cli_that_is_none_is_refused() {
    let (text, code) = ran(&mut outrigger(&["demo", "--cli", "/no/such/claude"]));
    assert_eq!(code, 1, "{text}");
    let (text, code) = ran(&mut outrigger(&["demo", "--cli", "/bin/sh"]));
    assert_eq!(code, 1, "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_it_and_leaves_nothing_behind() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let temp = TempDir::new().unwrap();
        let mut command = outrigger(&["demo"]);
        let mut child = command
            .env("TMPDIR", temp.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("Tell me a long story") {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "it ended early");
        }
        let pid = child.id().to_string();
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{signal} {pid}")])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code));
        stdout.read_to_end(&mut Vec::new()).unwrap();
        let left: Vec<_> = fs::read_dir(temp.path()).unwrap().collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        let working_there = |process: &fs::DirEntry| {
            fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(temp.path()))
        };
        let alive: Vec<_> = fs::read_dir("/proc")
            .unwrap()
            .filter_map(Result::ok)
            .filter(working_there)
            .collect();
        assert!(alive.is_empty(), "{signal}: {alive:?}");
    }
}

/// A machine without a shell is told so by what the tool said.
#[cfg(unix)]
#[test]
fn a_step_that_fails_is_told_in_words() {
    let bin = TempDir::new().unwrap();
    let mut command = outrigger(&["demo", "--simulated"]);
    let output = command
        .env("PATH", bin.path())
        .env("SHELL", "/bin/sh")
        .output()
        .unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("a tool failed:") && !said.contains("(true,"),
        "{said}"
    );
}
