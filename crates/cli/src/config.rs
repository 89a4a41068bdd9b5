//! The configuration file: values of flags for every run, and profiles of them. A flag of the command line outranks a variable of the
//! environment, which outranks the profile, which outranks the rest of the file.

mod check_config;
mod file;
mod flags;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde_json::json;

use crate::agent::usage;
use crate::exit::{CommandResult, Failure, Status};
use crate::text_file;
use file::{File, Problem, Setting};

/// The commands that a profile is for.
const COMMANDS: &[&str] = &["run", "chat", "batch", "explain", "record"];

/// The list that only grows: a prohibition is not lost because another flag adds one.
const GROWS: &str = "deny";

/// How much of a file is read for its profiles alone, in bytes.
const MOST_READ: u64 = 1024 * 1024;

/// Which configuration counts.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ConfigArgs {
    /// The configuration file, instead of `outrigger/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`.
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    config: Option<PathBuf>,
    /// The profile of the configuration file; else that which the file names, if any. An empty name is none.
    #[arg(
        long,
        value_name = "NAME",
        env = "OUTRIGGER_PROFILE",
        help_heading = "Configuration"
    )]
    profile: Option<String>,
    /// Reads no configuration file.
    #[arg(long, conflicts_with = "config", help_heading = "Configuration")]
    no_config: bool,
}

/// What `outrigger config` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigCommand {
    /// Write where the configuration file is, or would be.
    Path {
        #[command(flatten)]
        which: ConfigArgs,
    },
    Check(check_config::CheckConfig),
    /// Check the configuration file, and show which values hold for a profile, and where they stand.
    ///
    /// All profiles are checked, whichever is shown. Ends with 2 if anything is wrong.
    Show {
        #[command(flatten)]
        which: ConfigArgs,
        /// Write a line of JSON for each value.
        #[arg(long)]
        json: bool,
    },
}

/// Runs a subcommand. `command` is the whole command line, whose flags a file sets.
pub(crate) fn run(args: &Args, command: &Command) -> CommandResult {
    let mut stdout = io::stdout().lock();
    match &args.command {
        ConfigCommand::Check(check) => return check.run(&mut stdout, command),
        ConfigCommand::Path { which } => {
            let path = which.path().ok_or_else(|| usage(NOWHERE.to_owned()))?;
            writeln!(stdout, "{}", path.display())?;
        }
        ConfigCommand::Show { which, json } => {
            let Some(file) = which.file(command)? else {
                eprintln!("outrigger: there is no configuration file");
                return Ok(Status::Failed);
            };
            for setting in file.holding() {
                if *json {
                    let line = json!({
                        "key": setting.key, "value": setting.value.json(), "file": file.path.display().to_string(),
                        "line": setting.at.line, "column": setting.at.column, "profile": setting.profile,
                    });
                    writeln!(stdout, "{line}")?;
                } else {
                    let of = setting.profile.as_ref().map(|name| format!(" (profile {name})"));
                    let of = of.unwrap_or_default();
                    writeln!(
                        stdout,
                        "{} = {}   # line {}{of}",
                        setting.key, setting.value, setting.at.line
                    )?;
                }
            }
            if !json {
                eprintln!(
                    "outrigger: {}; profiles: {}",
                    file.path.display(),
                    file.profiles()
                );
            }
        }
    }
    Ok(Status::Success)
}

const NOWHERE: &str =
    "neither XDG_CONFIG_HOME nor HOME is set, so there is no place for a configuration file";

impl ConfigArgs {
    /// As the first look at the command line has them.
    fn of(matches: &ArgMatches) -> Self {
        Self {
            config: matches.get_one("config").cloned(),
            profile: matches.get_one("profile").cloned(),
            no_config: matches.get_flag("no_config"),
        }
    }

    fn path(&self) -> Option<PathBuf> {
        self.config.clone().or_else(usual)
    }

    /// Reads the file, which has to be right for this command; `None` if there is none, and none was asked for.
    fn file(&self, command: &Command) -> Result<Option<File>, Failure> {
        let wanted = self.profile.as_deref().filter(|name| !name.is_empty());
        let path = match self.path() {
            _ if self.no_config => return Ok(None),
            Some(path) => path,
            None if wanted.is_some() => return Err(usage(NOWHERE.to_owned())),
            None => return Ok(None),
        };
        let text = match text_file::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.config.is_none() => {
                return match wanted {
                    None => Ok(None),
                    Some(name) => Err(usage(format!(
                        "there is no profile {name:?}, since there is no file {}",
                        path.display()
                    ))),
                };
            }
            Err(error) => return Err(usage(format!("{}: {error}", path.display()))),
        };
        let mut file = File::read(path, &text);
        flags::check(&mut file, command);
        Problem::refuse(&file.path, &file.problems)?;
        Ok(Some(file.with_profile(self.profile.clone())?))
    }
}

/// The names of the profiles in a file, the usual one unless it is named, for a shell: none if it cannot be read or is no TOML.
pub(crate) fn profiles(path: Option<PathBuf>) -> Vec<String> {
    let path = path.or_else(usual).filter(|path| path.is_file());
    let read = |path: PathBuf| {
        let mut text = String::new();
        let file = fs::File::open(&path)?;
        file.take(MOST_READ).read_to_string(&mut text)?;
        Ok::<_, io::Error>(File::read(path, &text))
    };
    match path.map(read) {
        Some(Ok(file)) => file.names().map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Where the file is unless one is named.
fn usual() -> Option<PathBuf> {
    Some(directory()?.join("config.toml"))
}

/// The directory of this program's files that a person writes.
pub(crate) fn directory() -> Option<PathBuf> {
    let set = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let config = set("XDG_CONFIG_HOME").or_else(|| {
        if cfg!(windows) {
            set("APPDATA")
        } else {
            set("HOME").map(|home| home.join(".config"))
        }
    });
    Some(config?.join("outrigger"))
}

/// The command with what the configuration says as the defaults of its flags, and the words that are to be read with it; `None` if it
/// says nothing of this command.
///
/// # Errors
/// When anything in the file is wrong, or it has no such profile.
pub(crate) fn applied(
    command: Command,
    matches: &ArgMatches,
    mut words: Vec<OsString>,
) -> Result<Option<(Command, Vec<OsString>)>, Failure> {
    let Some((name, own)) = matches.subcommand().filter(|(name, _)| COMMANDS.contains(name)) else {
        return Ok(None);
    };
    // Whose client is elsewhere takes none of these flags.
    if name == "record" && own.contains_id("command") {
        return Ok(None);
    }
    let config = ConfigArgs::of(own);
    // What it denies would not be denied.
    if config.no_config
        && config.profile.as_deref().is_some_and(|name| !name.is_empty())
        && own.value_source("profile") == Some(ValueSource::CommandLine)
    {
        return Err(usage(
            "--no-config reads no profile: leave out --no-config or --profile".to_owned(),
        ));
    }
    let Some(file) = config.file(&command)? else {
        return Ok(None);
    };
    let Some(target) = command.find_subcommand(name) else {
        return Ok(None);
    };
    let is_given = |id: &str| {
        let source = own.value_source(id);
        matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    };
    let mut taken: Vec<&Setting> = Vec::new();
    let mut denied = Vec::new();
    for setting in file.layers() {
        if setting.key == GROWS {
            denied.extend(
                setting
                    .value
                    .words()
                    .into_iter()
                    .map(|rule| format!("--{GROWS}={rule}")),
            );
            continue;
        }
        let Some(arg) = flags::of(target, &setting.key) else {
            continue;
        };
        let given = target
            .get_arguments()
            .filter(|other| is_given(other.get_id().as_str()));
        let mut given = given.map(|other| other.get_id().as_str());
        let stronger = taken
            .iter()
            .filter(|other| other.profile != setting.profile || other.key == setting.key);
        let mut stronger = stronger.filter_map(|other| flags::of(target, &other.key));
        let id = arg.get_id().as_str();
        let gives_way = given.any(|other| other == id || flags::exclude(target, id, other))
            || stronger.any(|other| other == arg || flags::exclude(target, id, other.get_id().as_str()));
        if !gives_way {
            taken.push(setting);
        }
    }
    let ids: Vec<_> = taken
        .iter()
        .filter_map(|setting| {
            Some((
                flags::of(target, &setting.key)?.get_id().clone(),
                setting.value.words(),
            ))
        })
        .collect();
    let command = command.mut_subcommand(name, |mut target| {
        for (id, values) in ids {
            target = target.mut_arg(id, |arg| arg.default_values(values));
        }
        target
    });
    // Behind the name of the command, before what was typed.
    let at = words
        .iter()
        .position(|word| word == name)
        .map_or(words.len(), |at| at + 1);
    words.splice(at..at, denied.into_iter().map(OsString::from));
    Ok(Some((command, words)))
}
