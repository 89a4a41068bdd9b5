//! What other programs know of the command line: manual pages, the version.

use std::process::Command;

use tempfile::TempDir;

use crate::tool::{outrigger, ran};

#[test]
fn each_command_has_a_manual_page() {
    let directory = TempDir::new().unwrap();
    let pages = directory.path().join("man/man1");
    let (text, code) = ran(outrigger(&["man"]).arg(&pages));
    assert_eq!((text.as_str(), code), ("", 0));
    for name in [
        "outrigger",
        "outrigger-run",
        "outrigger-sessions-list",
        "outrigger-config-show",
    ] {
        let page = std::fs::read_to_string(pages.join(format!("{name}.1"))).expect(name);
        assert!(page.contains(".TH outrigger"), "{page}");
    }
    let page = std::fs::read_to_string(pages.join("outrigger-run.1")).unwrap();
    assert!(
        page.contains("timeout") && page.contains("Fix the failing test"),
        "{page}"
    );
    let (text, code) = ran(&mut outrigger(&["man"]));
    assert_eq!(code, 0);
    assert!(text.contains("Exit status") && text.contains("124"), "{text}");
}

#[test]
fn the_readme_names_each_command() {
    let (help, code) = ran(&mut outrigger(&["--help"]));
    assert_eq!(code, 0);
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let names: Vec<&str> = commands
        .lines()
        .map_while(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 20, "{help}");
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    for name in names {
        let is_named = readme.contains(&format!("`{name}`")) || readme.contains(&format!("`{name} "));
        assert!(is_named, "README.md does not name `{name}`");
    }
}

#[test]
fn the_version_has_its_commit_and_the_cli() {
    let (text, code) = ran(&mut outrigger(&["--version"]));
    assert_eq!(code, 0);
    let mut lines = text.lines();
    let own = lines.next().unwrap();
    assert!(
        own.starts_with(concat!("outrigger ", env!("CARGO_PKG_VERSION"))),
        "{text}"
    );
    let (_, newest) = outrigger_protocol::TESTED_CLI_VERSIONS;
    let tested = lines.next().unwrap();
    assert!(
        tested.starts_with("tested with Claude Code ") && tested.contains(newest),
        "{text}"
    );
    let built_from = option_env!("OUTRIGGER_COMMIT");
    match built_from {
        Some(commit) => assert!(own.ends_with(&format!(" ({commit})")), "{own}"),
        None => assert_eq!(own, concat!("outrigger ", env!("CARGO_PKG_VERSION"))),
    }
    // In a clone it is a commit of that, elsewhere there may be none.
    let package = env!("CARGO_MANIFEST_DIR");
    if std::path::Path::new(package).join("../../.git").exists()
        && std::env::var_os("OUTRIGGER_COMMIT").is_none()
    {
        let commit = built_from.expect("a clone has one");
        let known = Command::new("git")
            .args(["cat-file", "-e", commit])
            .current_dir(package)
            .status();
        assert!(known.expect("git runs").success(), "{commit}");
    }
    let (short, _) = ran(&mut outrigger(&["-V"]));
    assert_eq!(short.trim_end(), own);
}

#[test]
fn help_has_examples_and_mistakes_have_tips() {
    let (text, _) = ran(&mut outrigger(&["sessions", "list", "--help"]));
    assert!(
        text.contains("Examples:\n") && text.contains("outrigger sessions list --since 2d"),
        "{text}"
    );
    let (text, _) = ran(&mut outrigger(&["sessions", "--help"]));
    assert!(
        text.contains("Examples:\n") && text.contains("A session is named by its id"),
        "{text}"
    );
    let output = outrigger(&["rnu", "hello"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("a similar subcommand exists: 'run'"), "{said}");
}
