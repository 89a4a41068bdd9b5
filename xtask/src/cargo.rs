//! Cargo, as the tasks call it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Builds all programs and examples of the workspace. Cargo builds these for its tests, with the same features: behind the tests nothing
/// is left to build.
pub(crate) const PROGRAMS: &[&str] = &["build", "--workspace", "--bins", "--examples"];

/// Has cargo say on stdout what it built, as lines of JSON.
const MESSAGES: &str = "--message-format=json-render-diagnostics";

/// The variable that says where cargo is, for this program in its place.
const REPLACED: &str = "OUTRIGGER_XTASK_CARGO";

/// The cargo that runs this program, to be called as if from a shell: without what it told this program of its package. Build scripts
/// read that, `ring`'s among them, and a build that is told otherwise compiles all that depends on them anew.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(here());
    command.env("CARGO", here()).env_remove(REPLACED);
    for (name, _) in env::vars_os() {
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

fn here() -> OsString {
    let told = env::var_os(REPLACED).or_else(|| env::var_os("CARGO"));
    told.unwrap_or_else(|| "cargo".into())
}

/// The variables with which maturin calls this program in place of cargo: see [`in_its_place`].
pub(crate) fn replaced() -> Result<[(&'static str, OsString); 2]> {
    let this = env::current_exe().context("cannot tell where this program is")?;
    Ok([(REPLACED, here()), ("CARGO", this.into())])
}

/// Does what maturin wants of cargo, if this program was called in its place.
///
/// Maturin builds its package alone, where what the package uses has other features than in the workspace: all of it would be compiled a
/// second time. The programs of the workspace are built instead; maturin hears of the one that it wants, else it would take the last.
pub(crate) fn in_its_place() -> Option<Result<ExitCode>> {
    env::var_os(REPLACED)?;
    let given: Vec<_> = env::args_os().skip(1).collect();
    Some(if given.first().is_some_and(|first| first == "rustc") {
        programs_of_the_workspace(&given)
    } else {
        let status = cargo().args(given).status().context("cannot run cargo");
        status.map(exit_code)
    })
}

fn programs_of_the_workspace(given: &[OsString]) -> Result<ExitCode> {
    let behind = |flag: &str| given.iter().skip_while(|argument| *argument != flag).nth(1);
    let wanted = behind("--bin").context("maturin wants another thing than a program")?;
    let target = behind("--target-dir").context("maturin named no target directory")?;
    let mut command = cargo();
    command
        .args(PROGRAMS)
        .args(["--locked", MESSAGES, "--target-dir"])
        .arg(target)
        .stderr(Stdio::inherit());
    let output = command.output().context("cannot run cargo")?;
    for line in output.stdout.split_inclusive(|byte| *byte == b'\n') {
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        if message["executable"].is_null() || message["target"]["name"].as_str() == wanted.to_str() {
            io::stdout().write_all(line).context("cannot write to maturin")?;
        }
    }
    Ok(exit_code(output.status))
}

/// The exit code of this program that is like that of another one.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    match status.code() {
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        None => ExitCode::FAILURE,
    }
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
    let arguments = [arguments, &[MESSAGES]].concat();
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
            assert!(env::var_os(name).is_some(), "cargo sets {name} for a test");
            assert!(
                command.get_envs().any(|known| known == (name.as_ref(), None)),
                "{name}"
            );
        }
    }
}
