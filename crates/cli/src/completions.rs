//! `outrigger completions` and `outrigger man`: what a shell and `man` know of the command line.

mod candidates;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::{Context as _, anyhow};
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use clap_mangen::Man;

use crate::Cli;
use crate::command_line::{NAME, command};
use crate::exit::{CommandResult, Status};
use crate::words;

/// The variable by which a shell asks for completions. It has its own name as its value.
const ASKED: &str = "OUTRIGGER_COMPLETE";

/// The shell that asks.
static SHELL: OnceLock<OsString> = OnceLock::new();

/// Has zsh complete already when it first reads the script because it completes, as it does with a file of `$fpath`.
const AUTOLOADED: &str = "\
if [[ \"$funcstack[1]\" = _outrigger ]]; then
    _clap_dynamic_completer_outrigger \"$@\"
fi
";

/// What `outrigger completions` takes.
///
/// Writes what the shell is to read when it starts: `source <(outrigger completions bash)` in `.bashrc`, the same with `zsh` in `.zshrc`
/// behind `compinit`, `outrigger completions fish | source` in `config.fish`, `outrigger completions powershell | Out-String |
/// Invoke-Expression` in the profile of PowerShell. The shell then asks `outrigger` for each word, and so knows the sessions and
/// profiles that there are. What is kept in a file has to be written again by each new version.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

/// What `outrigger man` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Manual {
    /// Write a page for each command into this directory, such as `~/.local/share/man/man1`; made if it is missing. The page of
    /// `outrigger` itself goes to standard output unless given.
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Writes the script of a shell.
pub(crate) fn complete(args: &Completions) -> CommandResult {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell.to_string());
    let shell = shell.ok_or_else(|| anyhow!("there are no completions for {}", args.shell))?;
    let mut script = Vec::new();
    shell.write_registration(ASKED, NAME, NAME, &words::this_program(), &mut script)?;
    if args.shell == Shell::Zsh {
        script.extend_from_slice(AUTOLOADED.as_bytes());
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(&script)?;
    stdout.flush()?;
    Ok(Status::Success)
}

/// Completes a word, if it was a shell that started this program, which asks for that. Then nothing else is to be done.
///
/// Whatever goes wrong, nothing is said: it would stand in the line that somebody is typing.
pub(crate) fn answer() -> Option<ExitCode> {
    let shell = env::var_os(ASKED).filter(|shell| !shell.is_empty() && shell != "0")?;
    // The engine takes the variable away.
    SHELL.get_or_init(|| shell);
    // Nor what a panic says, such as one of the engine.
    std::panic::set_hook(Box::new(|_| {}));
    let here = env::current_dir().ok();
    let asked = CompleteEnv::with_factory(completed).var(ASKED);
    let status = match asked.try_complete(env::args_os(), here.as_deref()) {
        Ok(_) => Status::Success,
        Err(_) => Status::Failed,
    };
    Some(ExitCode::from(status as u8))
}

/// The command line as it is completed.
fn completed() -> Command {
    let mut command = Cli::command();
    // Adds `--help` and `--version`, which are flags like others.
    command.build();
    flags_last(with_candidates(command))
}

/// Adds what only the disk knows. It is added here, so that what has the flags does not need to know how they are completed.
fn with_candidates(command: Command) -> Command {
    let shows = command.get_name() == "show";
    let command = command.mut_args(|arg: Arg| match arg.get_id().as_str() {
        "agent" if shows => arg.add(candidates::subagents()),
        "model" | "fallback_model" => arg.add(candidates::models()),
        "profile" => arg.add(candidates::profiles()),
        "resume" => arg.add(candidates::resumable()),
        _ if names_a_session(&arg) => arg.add(candidates::sessions()),
        _ => arg,
    });
    command.mut_subcommands(with_candidates)
}

fn names_a_session(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().any(|name| name.as_str() == "SESSION")
}

/// Has flags offered only where one is begun, or nothing else can stand: they would keep a word from being completed that is the only
/// one of its kind.
fn flags_last(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let is_flag = !arg.is_positional();
        arg.hide(is_flag)
    });
    command.mut_subcommands(flags_last)
}

/// The value of a flag in the words that were typed already.
fn typed(flag: &str) -> Option<OsString> {
    value_of(&words(), flag)
}

/// The words that were typed already, and the one that is being typed.
fn words() -> Vec<OsString> {
    env::args_os().skip_while(|word| word != "--").collect()
}

/// Whether the shell that asks shows what is said of a word.
fn shows_help() -> bool {
    let shell = SHELL.get().and_then(|shell| shell.to_str());
    matches!(shell, Some("zsh" | "fish" | "powershell"))
}

fn value_of(words: &[OsString], flag: &str) -> Option<OsString> {
    let at = words.iter().position(|word| {
        let rest = word.to_str().and_then(|word| word.strip_prefix(flag));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    if let Some((_, value)) = words.get(at)?.to_str()?.split_once('=') {
        return Some(value.into());
    }
    // To bash a `=` is a word by itself.
    let mut values = words.get(at + 1..)?.iter();
    values.find(|word| *word != "=").cloned()
}

/// Writes the pages.
pub(crate) fn man(args: &Manual) -> CommandResult {
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        Man::new(command()).render(&mut page)?;
        let mut stdout = io::stdout().lock();
        stdout.write_all(&page)?;
        stdout.flush()?;
        return Ok(Status::Success);
    };
    let cannot = || format!("cannot write to {}", directory.display());
    fs::create_dir_all(directory).with_context(cannot)?;
    clap_mangen::generate_to(command(), directory).with_context(cannot)?;
    Ok(Status::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_flag_is_found_however_it_was_typed() {
        for (words, value) in [
            (&["x", "--dir", "a", "b"][..], Some("a")),
            (&["--dir=a", "b"], Some("a")),
            (&["--dir", "=", "a"], Some("a")),
            (&["--directory", "a"], None),
            (&["--dir"], None),
            (&["a"], None),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(value_of(&words, "--dir"), value.map(OsString::from), "{words:?}");
        }
    }
}
