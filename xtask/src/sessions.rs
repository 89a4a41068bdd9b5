//! Has the official SDKs read the sessions that `outrigger-sessions` reads, and compares.
//!
//! What is compared is in `crates/sessions/tests/it/official`, and what the SDKs are asked in `clients/`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};

use crate::{packages, test};

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    ensure!(arguments.is_empty(), "`sessions-diff` takes no arguments");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let target = target_dir(&root)?;
    let place = |client: &str| -> Result<(PathBuf, PathBuf)> {
        let place = target.join("clients").join(client);
        fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
        Ok((root.join("clients").join(client), place))
    };
    let (source, python) = place("python")?;
    let interpreter = packages::install_python(&source, &python, &[])?;
    let (source, typescript) = place("typescript")?;
    packages::install_typescript(&source, &typescript)?;

    // Of the whole workspace, since cargo then builds what it has built for all tests; only `outrigger-sessions` has such tests.
    let chosen = [
        "--locked",
        "--test=it",
        "--",
        "official::",
        "--ignored",
        "--nocapture",
    ];
    let places = [
        ("OUTRIGGER_PYTHON", &interpreter),
        ("OUTRIGGER_TYPESCRIPT", &typescript),
    ];
    test::run_with(chosen.map(OsString::from).to_vec(), &places)
}

/// Where cargo builds: three directories above what it runs in `target/debug`.
fn target_dir(root: &Path) -> Result<PathBuf> {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(target) => Ok(root.join(target)),
        None => {
            let program = env::current_exe().context("cannot tell where this program is")?;
            let target = program
                .ancestors()
                .nth(2)
                .context("cargo's target directory has no parent")?;
            Ok(target.to_owned())
        }
    }
}
