//! Tries what is promised with a dozen versions of Claude Code, from the oldest that is supported to the newest.
//!
//! The versions are in `upstream/cli-matrix.json`. The steps are tests of the SDK (`crates/sdk/tests/it/real/matrix.rs`) and the demo;
//! each runs off every network but the loopback, where the Messages API is scripted.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::cargo;
use crate::packages::{install, isolated};

const VERSIONS: &str = include_str!("../../upstream/cli-matrix.json");

/// The steps: the demo, and the tests of `real::matrix`.
const STEPS: [&str; 10] = [
    "demo",
    "account",
    "allow",
    "deny",
    "changed_input",
    "hooks",
    "mcp",
    "resume",
    "rules",
    "streaming",
];

/// A step that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(180);

#[derive(Deserialize)]
struct Matrix {
    /// From this version on every cell has to pass.
    promised_from: String,
    versions: Vec<String>,
}

/// Runs all steps with the versions that are named, or with all of the list.
pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    ensure!(cfg!(unix), "`cli-matrix` runs only where there is a shell");
    let matrix: Matrix = serde_json::from_str(VERSIONS).context("upstream/cli-matrix.json")?;
    let mut chosen = Vec::new();
    for argument in &arguments {
        let version = argument.to_str().filter(|version| numbers(version).is_some());
        let version = version.with_context(|| format!("{} is no version", argument.display()))?;
        chosen.push(version.to_owned());
    }
    if chosen.is_empty() {
        chosen.clone_from(&matrix.versions);
    }
    let promised_from = numbers(&matrix.promised_from).context("`promised_from` is no version")?;
    let place = place()?;
    // What needs a network comes first.
    let mut clis = Vec::new();
    for version in chosen {
        let cli = fetch(&place.join(&version), &version)?;
        clis.push((version, cli));
    }
    let tests = build(
        &["test", "--package", "outrigger", "--test", "it", "--no-run"],
        "it",
    )?;
    let outrigger = build(
        &["build", "--package", "outrigger-cli", "--bin", "outrigger"],
        "outrigger",
    )?;

    let logs = place.join("logs");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    println!(
        "{:<10} {}",
        "version",
        STEPS.map(|step| format!("{step:<14}")).concat()
    );
    let mut broken = Vec::new();
    for (version, cli) in &clis {
        print!("{version:<10} ");
        for step in STEPS {
            let command = match step {
                "demo" => {
                    let mut command = isolated(&outrigger)?;
                    command.args(["demo", "--cli"]).arg(cli);
                    command
                }
                _ => {
                    let mut command = isolated(&tests)?;
                    let name = format!("real::matrix::{step}");
                    command
                        .args(["--ignored", "--exact", &name])
                        .env("OUTRIGGER_TEST_CLI", cli);
                    command
                }
            };
            let began = Instant::now();
            let log = logs.join(format!("{version}-{step}.log"));
            let passed = passes(command, &log)?;
            let cell = if passed { "ok" } else { "FAIL" };
            print!("{:<14}", format!("{cell} {:.1} s", began.elapsed().as_secs_f64()));
            // A table that grows as it is made.
            std::io::stdout().flush()?;
            if !passed && numbers(version).is_some_and(|version| version >= promised_from) {
                broken.push(format!("{version} {step}: {}", log.display()));
            }
        }
        println!();
    }
    println!("promised from {} on", matrix.promised_from);
    for cell in &broken {
        println!("broken: {cell}");
    }
    Ok(if broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn place() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("cli-matrix"))
}

/// Has a version below `place`, through npm; where its executable is.
fn fetch(place: &Path, version: &str) -> Result<PathBuf> {
    let (stamp, packages) = (place.join("installed"), place.join("node_modules/@anthropic-ai"));
    if !stamp.exists() {
        fs::create_dir_all(place).with_context(|| format!("cannot create {}", place.display()))?;
        fs::write(place.join("package.json"), "{\"private\": true}\n")?;
        install(
            Command::new("npm")
                .current_dir(place)
                .args([
                    "install",
                    "--ignore-scripts",
                    "--no-audit",
                    "--no-fund",
                    "--loglevel=error",
                ])
                .arg(format!("@anthropic-ai/claude-code@{version}")),
            "older versions of Claude Code come through npm",
        )?;
        fs::write(&stamp, version)?;
    }
    let entries = fs::read_dir(&packages).with_context(|| format!("cannot read {}", packages.display()))?;
    for entry in entries {
        let native = entry?.path().join("claude");
        if native.is_file() {
            return Ok(native);
        }
    }
    // Before there were native ones.
    let script = packages.join("claude-code").join("cli.js");
    if !script.is_file() {
        bail!("{version} has neither an executable for this machine nor a cli.js");
    }
    let script = script.to_str().filter(|script| !script.contains('\''));
    let script = script.context("the path of the target directory has a quote in it, or is no text")?;
    let start = place.join("claude");
    fs::write(&start, format!("#!/bin/sh\nexec node '{script}' \"$@\"\n"))?;
    #[cfg(unix)]
    fs::set_permissions(&start, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(start)
}

/// Builds something, and tells where the executable of this name is.
fn build(arguments: &[&str], name: &str) -> Result<PathBuf> {
    let mut built = cargo::executables(Path::new("."), arguments)?;
    built
        .remove(name)
        .with_context(|| format!("cargo built no {name}"))
}

/// Runs a step; whether it did what it should. What it says goes to the log.
fn passes(mut command: Command, log: &Path) -> Result<bool> {
    let file = fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            // A test that does not exist passes.
            let said = fs::read_to_string(log)?;
            return Ok(status.success() && !said.contains("running 0 tests"));
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The three numbers of a version.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let parts: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_of_versions_in_order() {
        let matrix: Matrix = serde_json::from_str(VERSIONS).unwrap();
        let versions: Vec<_> = matrix
            .versions
            .iter()
            .map(|version| numbers(version).unwrap())
            .collect();
        assert!(versions.is_sorted() && versions.len() >= 12);
        assert!(matrix.versions.contains(&matrix.promised_from));
    }
}
