//! Runs sessions for very long; see the benchmark `soak` of the SDK, which measures, and [`acp`] for the agent of editors.

mod acp;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let output = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    if let Some((first, rest)) = arguments.split_first()
        && first == "acp"
    {
        return acp::run(rest, &root, &output);
    }
    let run = |arguments: &[&str]| {
        let mut command = cargo(&root);
        command.args(arguments);
        command
    };
    let built = run(&[
        "build",
        "--locked",
        "--release",
        "--package",
        "outrigger-sim",
        "--bin",
        "outrigger-sim",
    ])
    .status()
    .context("cannot run cargo")?;
    anyhow::ensure!(built.success(), "the simulated CLI could not be built");
    let name = format!("outrigger-sim{}", std::env::consts::EXE_SUFFIX);
    let status = run(&[
        "bench",
        "--locked",
        "--package",
        "outrigger",
        "--bench",
        "soak",
        "--",
    ])
    .args(arguments)
    .env("OUTRIGGER_SIM", output.join("release").join(name))
    .status()
    .context("cannot run cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn cargo(root: &Path) -> Command {
    let mut command = crate::cargo::cargo();
    command.current_dir(root);
    command
}
