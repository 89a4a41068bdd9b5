//! Cargo, as the tasks call it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The cargo that runs this program, to be called as if from a shell: without what it told this program of its package. Build scripts
/// read that, `ring`'s among them, and a build that is told otherwise compiles all that depends on them anew.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let told = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name
            .to_str()
            .is_some_and(|name| told.iter().any(|told| name.starts_with(told)))
        {
            command.env_remove(name);
        }
    }
    command
}

/// What cargo writes to stdout, called in this directory; what it writes to stderr is shown.
pub(crate) fn output(directory: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = cargo()
        .current_dir(directory)
        .args(arguments)
        .arg("--locked")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo {} failed", arguments.join(" "));
    Ok(output.stdout)
}

/// Builds something; where each executable is, by the name of its target.
pub(crate) fn executables(directory: &Path, arguments: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    let arguments = [arguments, &["--message-format=json-render-diagnostics"]].concat();
    let messages = output(directory, &arguments)?;
    let messages = messages.split(|byte| *byte == b'\n');
    let executables = messages
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter_map(|message| {
            let name = message["target"]["name"].as_str()?.to_owned();
            Some((name, PathBuf::from(message["executable"].as_str()?)))
        });
    Ok(executables.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_told_of_this_package_is_taken_away() {
        let command = cargo();
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(std::env::var_os(name).is_some(), "cargo sets {name} for a test");
            assert!(
                command.get_envs().any(|known| known == (name.as_ref(), None)),
                "{name}"
            );
        }
    }
}
