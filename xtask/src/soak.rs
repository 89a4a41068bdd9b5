//! Runs sessions for very long; see the benchmark `soak` of the SDK, which measures.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&cargo);
        command.current_dir(&root).args(arguments);
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
    let output = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
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
