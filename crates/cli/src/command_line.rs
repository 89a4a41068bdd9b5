//! From the words of the command line to what is asked for: with the profile of the configuration file, and tips for mistakes.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, FromArgMatches as _};

use crate::exit::{self, Status};
use crate::typo::nearest;
use crate::words;
use crate::{Cli, config, examples};

/// The name of the program.
pub(crate) const NAME: &str = "outrigger";

/// All that can be asked for.
pub(crate) fn command() -> Command {
    examples::added(Cli::command())
}

/// Reads the command line of this process.
///
/// # Errors
/// With the exit status, once it was said what is wrong, or what was asked for was shown (`--help`).
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let cli = read(words);
    cli.map_err(|stop| match stop {
        NoCommand::Told(error) => print_error(&error),
        NoCommand::Failed(failure) => words::report(Err(failure)),
    })
}

/// Why a command line leads to no command.
enum NoCommand {
    Told(clap::Error),
    Failed(exit::Failure),
}

impl From<clap::Error> for NoCommand {
    fn from(error: clap::Error) -> Self {
        Self::Told(error)
    }
}

impl From<exit::Failure> for NoCommand {
    fn from(failure: exit::Failure) -> Self {
        Self::Failed(failure)
    }
}

fn read(words: Vec<OsString>) -> Result<Cli, NoCommand> {
    let matches = command().try_get_matches_from(words.clone());
    let mut matches = matches.map_err(|error| with_tip(error, &command(), &words))?;
    // What the profile says is looked at only once all else is fine, so that help and tips need no file.
    if let Some((command, words)) = config::applied(command(), &matches, words)? {
        matches = command.try_get_matches_from(words)?;
    }
    Ok(Cli::from_arg_matches(&matches)?)
}

/// Says what is wrong, or what was asked for, and makes the exit status.
fn print_error(error: &clap::Error) -> ExitCode {
    let written = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        return ExitCode::from(Status::Usage as u8);
    }
    words::report(written.map(|()| Status::Success).map_err(Into::into))
}

/// Names the subcommand that was meant. clap compares by the letters that stand about the same place, of which a short word with two
/// letters swapped has too few, and a long word many.
fn with_tip(mut error: clap::Error, command: &Command, words: &[OsString]) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let mut at = command;
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if word == typed {
            break;
        }
        at = at.find_subcommand(word).unwrap_or(at);
    }
    let near = nearest(
        typed,
        at.get_subcommands()
            .filter(|known| !known.is_hide_set())
            .flat_map(|known| {
                let aliases = known.get_visible_aliases();
                std::iter::once(known.get_name()).chain(aliases)
            }),
    );
    if let Some(near) = near {
        let near = ContextValue::Strings(vec![near.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, near);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> String {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        match read(words) {
            Err(NoCommand::Told(error)) => error.to_string(),
            Err(NoCommand::Failed(_)) => panic!("nothing else is wrong"),
            Ok(_) => String::new(),
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn mistyped_subcommands_are_told_what_was_meant() {
        for (words, meant) in [
            (&["rnu", "x"][..], "'run'"),
            (&["runn"], "'run'"),
            (&["caht"], "'chat'"),
            (&["sesions"], "'sessions'"),
            (&["--bogus"], ""),
            (&["sessions", "lsit"], "'list'"),
            (&["sessions", "shwo", "x"], "'show'"),
            (&["cassette", "tirm"], "'trim'"),
            (&["zzz"], ""),
            (&["sessions", "q"], ""),
        ] {
            let words = [&[NAME], words].concat();
            let said = said(&words);
            assert!(said.contains("error:"), "{said}");
            let tip = said.contains("a similar subcommand exists");
            assert_eq!(tip, !meant.is_empty(), "{said}");
            assert!(said.contains(meant), "{said}");
        }
    }
}
