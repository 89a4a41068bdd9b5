//! Installs the servers that tests start themselves and that systems have no packages of.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, Result};

use crate::clients::install_python;

/// Has SeaweedFS below cargo's target directory, where the tests of the stores look for it, and says where it is.
pub(crate) fn run() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let program = env::current_exe().context("cannot tell where this program is")?;
    let target = program
        .ancestors()
        .nth(2)
        .context("cargo's target directory has no parent")?;
    let place = target.join("servers");
    fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
    install_python(&root.join("crates/stores/tests/servers"), &place)?;
    Ok(place.join("venv").join("bin").join("weed"))
}
