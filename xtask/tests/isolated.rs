//! The network isolation, from outside.

#![cfg(unix)]

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn isolated(script: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["isolated", "sh", "-c", script])
        .output()
        .unwrap()
}

#[test]
fn exit_codes_and_signals_are_those_of_the_program() {
    assert_eq!(isolated("exit 7").status.code(), Some(7));
    assert_eq!(isolated("kill -TERM $$").status.signal(), Some(15));
    let output = isolated("echo out; echo err >&2");
    assert_eq!(output.stdout, b"out\n");
    assert!(output.stderr.ends_with(b"err\n"));
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["isolated", "/nonexistent/program"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot run /nonexistent/program"));
}

/// On a machine that refuses isolation, what is to be seen instead is that it says so.
#[test]
#[cfg(target_os = "linux")]
fn there_is_nothing_but_the_loopback_and_it_is_up() {
    let output = isolated("cat /proc/net/dev; echo; cat /proc/net/fib_trie; id -u");
    let (said, seen) = (
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout),
    );
    if said.contains("without isolation") {
        return;
    }
    assert_eq!(said, "");
    let devices: Vec<_> = seen
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .collect();
    // Some kernels add tunnel devices of their own to every namespace, which lead nowhere.
    assert!(
        devices.contains(&"lo") && !devices.iter().any(|device| device.starts_with("e")),
        "{seen}"
    );
    assert!(seen.contains("127.0.0.1"), "{seen}");
    let own = Command::new("id").arg("-u").output().unwrap().stdout;
    assert_eq!(
        seen.lines().last(),
        Some(String::from_utf8_lossy(&own).trim()),
        "one stays who one is"
    );
}
