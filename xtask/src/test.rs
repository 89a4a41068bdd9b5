//! Runs the tests, off every network but the loopback.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::{fetch, isolation, servers};

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    run_with(arguments, &[])
}

/// Like [`run`], with paths that the tests are told by variables.
pub(crate) fn run_with(arguments: Vec<OsString>, paths: &[(&str, &PathBuf)]) -> Result<ExitCode> {
    // What needs a network comes first.
    fetch::run()?;
    if cfg!(target_os = "linux")
        && !chooses_packages(&arguments)
        && let Err(error) = servers::run()
    {
        eprintln!("warning: the tests of the stores will miss a server: {error:#}");
    }

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.arg("test");
    match isolation::probe() {
        Ok(()) => {
            let runner = std::env::current_exe().context("cannot tell where this program is")?;
            command.arg("--config").arg(runner_setting(&runner)?);
        }
        Err(reason) => eprintln!("warning: the tests run without isolation from the network: {reason}"),
    }
    if !chooses_packages(&arguments) {
        command.arg("--workspace");
        if cfg!(windows) {
            // There a program that runs cannot be replaced, and this one would be built again.
            command.args(["--exclude", "xtask"]);
        }
    }
    command.args(&arguments).envs(paths.iter().copied());
    let status = command.status().context("cannot run cargo")?;
    Ok(match status.code() {
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        None => ExitCode::FAILURE,
    })
}

/// The setting by which cargo has test programs and doctests run by this program.
fn runner_setting(runner: &std::path::Path) -> Result<String> {
    let runner = runner
        .to_str()
        .with_context(|| format!("{} is not UTF-8", runner.display()))?;
    // A literal string of TOML has no escapes, and so no quotes in it.
    anyhow::ensure!(!runner.contains('\''), "{runner} has a quote in it");
    Ok(format!("target.'cfg(all())'.runner = ['{runner}', 'isolated']"))
}

fn chooses_packages(arguments: &[OsString]) -> bool {
    let own = arguments.iter().take_while(|argument| *argument != "--");
    let chooses = |argument: &OsStr| {
        let argument = argument.to_string_lossy();
        ["-p", "--package", "--workspace", "--all", "--manifest-path"]
            .iter()
            .any(|option| argument == *option || argument.starts_with(&format!("{option}=")))
            || (argument.starts_with("-p") && !argument.starts_with("--"))
    };
    own.map(OsString::as_os_str).any(chooses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_packages_is_respected() {
        let choice =
            |line: &str| chooses_packages(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        for line in ["-p outrigger", "-poutrigger", "--package=x --lib", "--workspace"] {
            assert!(choice(line), "{line}");
        }
        for line in ["", "name", "--release name -- -p", "--profile dev"] {
            assert!(!choice(line), "{line}");
        }
    }

    #[test]
    fn the_runner_may_have_spaces_but_no_quotes() {
        let setting = runner_setting(std::path::Path::new("/a b/xtask")).unwrap();
        assert_eq!(setting, "target.'cfg(all())'.runner = ['/a b/xtask', 'isolated']");
        assert!(runner_setting(std::path::Path::new("/a'b")).is_err());
    }
}
