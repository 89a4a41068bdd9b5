//! Runs the tests, off every network but the loopback: all of them, whichever fail, and says at the end which did.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, PipeReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context as _, Result};

use crate::cargo::{cargo, exit_code};
use crate::report::Report;
use crate::{isolation, set_up, sweep};

/// Written to the pipe when cargo has ended: whoever a test left behind may hold the pipe open.
const END: &[u8] = b"\0the end\0\n";

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    run_with(arguments, &[])
}

/// Like [`run`], with paths that the tests are told by variables.
pub(crate) fn run_with(mut arguments: Vec<OsString>, paths: &[(&str, &PathBuf)]) -> Result<ExitCode> {
    // What needs a network comes first. Another workspace has other needs.
    if !has(&arguments, &["--manifest-path"]) {
        set_up::run(wants_servers(&arguments))?;
    }
    let stops = has(&arguments, &["--fail-fast"]);
    let dashes = dashes(&arguments);
    let mut own = arguments.drain(..dashes).collect::<Vec<_>>();
    own.retain(|argument| argument != "--fail-fast");
    let is_told = !has(&own, &["--no-run", "--message-format", "--help", "-h"]);
    let is_coloured = is_told && io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();

    let mut command = cargo();
    command.arg("test");
    match isolation::probe() {
        Ok(()) => {
            let runner = std::env::current_exe().context("cannot tell where this program is")?;
            command.arg("--config").arg(runner_setting(&runner)?);
        }
        Err(reason) => eprintln!("warning: the tests run without isolation from the network: {reason}"),
    }
    if is_coloured {
        command.args(["--config", "term.color='always'"]);
        command.args(["--config", "term.progress={when='always', width=80}"]);
    }
    if !stops && !has(&own, &["--no-fail-fast", "--no-run"]) {
        command.arg("--no-fail-fast");
    }
    if !chooses_packages(&own) {
        command.arg("--workspace");
        if cfg!(windows) {
            // There a program that runs cannot be replaced, and this one would be built again.
            command.args(["--exclude", "xtask"]);
        }
    }
    command.args(&own).args(&arguments).envs(paths.iter().copied());
    if is_coloured {
        command
            .args(arguments.is_empty().then_some("--"))
            .arg("--color=always");
    }
    if !is_told {
        return Ok(exit_code(command.status().context("cannot run cargo")?));
    }

    let place = tempfile::tempdir().context("cannot make a temporary directory")?;
    let list = place.path().join("left-out");
    command.env(outrigger_needs::LIST, &list);
    let own: Vec<String> = own
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let mut report = Report::new(&own);
    let before = users_projects();
    let status = run_told(command, &mut report)?;
    report.left_out = outrigger_needs::read(&list).context("cannot read which tests were left out")?;
    println!("{report}");
    let written: Vec<_> = users_projects().difference(&before).cloned().collect();
    if !written.is_empty() {
        eprintln!("error: the tests stored sessions in the config directory of this user: {written:#?}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(exit_code(status))
}

/// The directories of stored sessions in this user's config directory, where they may be from tests: those of projects in this
/// checkout or in the directory for temporary files. The user's own work with the CLI may go on beside the tests.
fn users_projects() -> BTreeSet<PathBuf> {
    let name = |path: PathBuf| {
        let path = path.canonicalize().unwrap_or(path).to_string_lossy().into_owned();
        path.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
    };
    let root = std::env::current_dir().unwrap_or_default();
    let ours = [name(root.join("crates")), name(std::env::temp_dir())];
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let config = set("CLAUDE_CONFIG_DIR").or_else(|| Some(set("HOME")?.join(".claude")));
    let entries = config.and_then(|config| config.join("projects").read_dir().ok());
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    paths
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            ours.iter().any(|ours| name.starts_with(ours.as_str()))
        })
        .collect()
}

/// Runs cargo, shows what it and the tests write as they write it, and reads it along.
fn run_told(mut command: Command, report: &mut Report) -> Result<ExitStatus> {
    let (reader, mut writer) = io::pipe().context("cannot make a pipe")?;
    // Both in one, so that they come in their order.
    command.stdout(writer.try_clone()?).stderr(writer.try_clone()?);
    let sweeper = sweep::Sweeper::watch_over(&mut command)?;
    let mut child = command.spawn().context("cannot run cargo")?;
    drop(command);
    std::thread::scope(|scope| {
        let shown = scope.spawn(|| show(reader, report));
        let status = child.wait();
        sweeper.dismiss();
        writer.write_all(END)?;
        if let Ok(shown) = shown.join() {
            shown.context("cannot show what the tests write")?;
        }
        status.context("cannot wait for cargo")
    })
}

/// Shows what comes, and reads its lines, until the end.
fn show(reader: PipeReader, report: &mut Report) -> io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(());
        }
        // A line may take its time, and is shown as far as it is there: `test name ... `.
        let length = chunk
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(chunk.len(), |at| at + 1);
        let piece = &chunk[..length];
        let from = line.len();
        line.extend_from_slice(piece);
        reader.consume(length);
        if line.ends_with(END) {
            let rest = line.len() - END.len();
            io::stdout().write_all(line.get(from..rest).unwrap_or_default())?;
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(&line[from..])?;
        out.flush()?;
        if line.ends_with(b"\n") {
            report.line(&String::from_utf8_lossy(&line[..line.len() - 1]));
            line.clear();
        }
    }
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

/// Where the arguments for the test programs begin.
fn dashes(arguments: &[OsString]) -> usize {
    let dashes = arguments.iter().position(|argument| argument == "--");
    dashes.unwrap_or(arguments.len())
}

/// Whether one of these options is among cargo's arguments.
fn has(arguments: &[OsString], options: &[&str]) -> bool {
    let is_one = |argument: &OsStr| {
        let argument = argument.to_string_lossy();
        options.contains(&argument.split('=').next().unwrap_or_default())
    };
    arguments[..dashes(arguments)]
        .iter()
        .map(OsString::as_os_str)
        .any(is_one)
}

fn chooses_packages(arguments: &[OsString]) -> bool {
    let is_short = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        argument.starts_with("-p") && !argument.starts_with("--")
    };
    has(
        arguments,
        &["--package", "--workspace", "--all", "--manifest-path"],
    ) || arguments[..dashes(arguments)].iter().any(is_short)
}

/// Whether tests of the stores may be among those that are run.
fn wants_servers(arguments: &[OsString]) -> bool {
    let names_stores = |argument: &OsString| argument.to_string_lossy().contains("outrigger-stores");
    !chooses_packages(arguments)
        || has(arguments, &["--workspace", "--all"])
        || arguments.iter().any(names_stores)
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
