//! `outrigger config check`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Command;
use serde_json::json;

use super::file::{File, Setting, Value};
use super::{COMMANDS, NOWHERE, flags, usual};
use crate::agent::usage;
use crate::exit::{CommandResult, Status};
use crate::plain::plain;
use crate::text_file;

/// Find all that is wrong with the configuration file, and show which flag each value becomes.
///
/// All profiles are checked. Each problem is written to standard error, with its line and column. Ends with 2 if there is any;
/// a missing file has none.
#[derive(Debug, clap::Args)]
pub(super) struct CheckConfig {
    /// The file, instead of `outrigger/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`.
    file: Option<PathBuf>,
    /// Write a line of JSON for each value and for each problem.
    #[arg(long)]
    json: bool,
}

impl CheckConfig {
    pub(super) fn run(&self, out: &mut dyn Write, command: &Command) -> CommandResult {
        let path = self.file.clone().or_else(usual);
        let path = path.ok_or_else(|| usage(NOWHERE.to_owned()))?;
        let shown = plain(&path.display().to_string());
        let text = match text_file::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.file.is_none() => {
                eprintln!("outrigger: there is no {shown}, so that none is read");
                return Ok(Status::Success);
            }
            Err(error) => return Err(usage(format!("{shown}: {error}"))),
        };
        let mut file = File::read(path, &text);
        flags::check(&mut file, command);

        let mut gap = "";
        for (profile, settings) in file.parts() {
            if let Some(name) = profile.filter(|_| !self.json) {
                writeln!(out, "{gap}[profiles.{}]", plain(name))?;
                gap = "\n";
            }
            for setting in settings {
                let setting = &flags::shown(setting);
                let heeded_by = heeded_by(command, setting);
                if heeded_by.is_empty() {
                    continue;
                }
                if self.json {
                    let line = json!({
                        "file": shown, "line": setting.at.line, "column": setting.at.column, "profile": profile,
                        "key": setting.key, "value": setting.value.json(), "flags": typed(setting), "commands": heeded_by,
                    });
                    writeln!(out, "{line}")?;
                } else {
                    writeln!(out, "{}", plain(&line(setting, &heeded_by)))?;
                    gap = "\n";
                }
            }
        }
        for problem in &file.problems {
            let (at, message) = (problem.at, plain(&problem.message));
            if self.json {
                let line = json!({
                    "file": shown, "line": at.line, "column": at.column, "problem": message, "suggestion": problem.meant,
                });
                writeln!(out, "{line}")?;
            } else {
                eprintln!("{shown}:{at}: {message}");
            }
        }
        let is_used = match file.chosen() {
            Some(name) => format!(", of which {name} is used unless another one is named"),
            None => String::new(),
        };
        eprintln!(
            "outrigger: {shown} is read; problems: {}; profiles: {}",
            file.problems.len(),
            plain(&(file.profiles() + &is_used))
        );
        Ok(match file.problems.as_slice() {
            [] => Status::Success,
            _ => Status::Usage,
        })
    }
}

/// The names of the commands that heed a setting.
fn heeded_by<'c>(command: &'c Command, setting: &Setting) -> Vec<&'c str> {
    let commands = flags::heeded_by(command, &setting.key);
    commands.into_iter().map(Command::get_name).collect()
}

/// What would have to be typed for the same; nothing for what is off.
fn typed(setting: &Setting) -> Vec<String> {
    let key = &setting.key;
    match &setting.value {
        Value::Switch(true) => vec![format!("--{key}")],
        Value::Switch(false) => Vec::new(),
        value => {
            let words = value.words();
            words.iter().map(|word| format!("--{key}={word}")).collect()
        }
    }
}

/// A setting as it stands in the file, with its place, what it becomes, and for which commands if that is not all.
fn line(setting: &Setting, heeded_by: &[&str]) -> String {
    let typed: Vec<String> = typed(setting).into_iter().map(quoted).collect();
    let flags = match typed.is_empty() {
        true => format!("no --{}", setting.key),
        false => typed.join(" "),
    };
    let only = match heeded_by.len() == COMMANDS.len() {
        true => String::new(),
        false => format!(" ({})", heeded_by.join(", ")),
    };
    format!(
        "{} = {}   # {}: {flags}{only}",
        setting.key, setting.value, setting.at
    )
}

/// A word as a shell would have to be given it.
fn quoted(word: String) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_=.,:/@%+".contains(char);
    match word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
