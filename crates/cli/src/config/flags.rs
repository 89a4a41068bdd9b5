//! The flags that a configuration file can set, and whether it sets them as they can be.

use std::any::TypeId;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Args as _, Command};

use super::COMMANDS;
use super::file::{File, Problem, Setting, Value};
use crate::agent::{AgentArgs, SessionArgs, is_secret};
use crate::typo::nearest;

/// What a file says by other means, or cannot say.
const NOT_HERE: &[&str] = &["config", "profile", "no-config", "help", "version"];

/// What stands for a secret.
const REDACTED: &str = "[redacted]";

/// The flag of a command that a key sets. A flag of the same name that means something else is none: `record --output` is a file, and
/// `run --output` a form.
pub(super) fn of<'c>(command: &'c Command, key: &str) -> Option<&'c Arg> {
    let is_own = ["run", "chat"].contains(&command.get_name());
    let mut flags = command.get_arguments().filter(|arg| arg.get_long() == Some(key));
    let flag = flags.next().filter(|_| !NOT_HERE.contains(&key))?;
    (is_own || is_common(command, key)).then_some(flag)
}

/// Whether all commands that start an agent have the flag.
fn is_common(command: &Command, key: &str) -> bool {
    let common = Command::new("common");
    let common = match command.get_name() {
        // Its sessions are new ones: its `--resume` is about the jobs.
        "batch" => SessionArgs::augment_args(common),
        _ => AgentArgs::augment_args(common),
    };
    common.get_arguments().any(|arg| arg.get_long() == Some(key))
}

/// Whether two flags of a command exclude each other.
pub(super) fn exclude(command: &Command, one: &str, other: &str) -> bool {
    let says = |one: &str, other: &str| {
        let arg = command.get_arguments().find(|arg| arg.get_id() == one);
        arg.is_some_and(|arg| {
            let conflicts = command.get_arg_conflicts_with(arg);
            conflicts.iter().any(|arg| arg.get_id() == other)
        })
    };
    says(one, other) || says(other, one)
}

/// The commands that a key is heeded by.
pub(super) fn heeded_by<'c>(command: &'c Command, key: &str) -> Vec<&'c Command> {
    let commands = COMMANDS.iter().filter_map(|name| command.find_subcommand(name));
    commands.filter(|command| of(command, key).is_some()).collect()
}

/// Adds to a file's problems what is wrong with what it sets, in all profiles.
pub(super) fn check(file: &mut File, command: &Command) {
    let mut problems: Vec<Problem> = file
        .all()
        .filter_map(|setting| problem(setting, command))
        .collect();
    for (_, part) in file.parts() {
        for (nth, setting) in part.iter().enumerate() {
            for other in &part[..nth] {
                let is_clash = heeded_by(command, &setting.key).iter().any(|command| {
                    let ids = (of(command, &setting.key), of(command, &other.key));
                    let (Some(one), Some(other)) = ids else {
                        return false;
                    };
                    exclude(command, one.get_id().as_str(), other.get_id().as_str())
                });
                if is_clash && ![&setting.value, &other.value].contains(&&Value::Switch(false)) {
                    let (key, line) = (&other.key, other.at.line);
                    let message = format!("`{}` and `{key}` of line {line} exclude each other", setting.key);
                    problems.push(Problem::new(setting.at, message));
                }
            }
        }
    }
    file.problems.append(&mut problems);
    file.problems.sort_by_key(|problem| problem.at);
}

/// What is wrong with a setting by itself.
fn problem(setting: &Setting, command: &Command) -> Option<Problem> {
    let key = &setting.key;
    let commands = heeded_by(command, key);
    let Some(arg) = commands.first().and_then(|command| of(command, key)) else {
        return Some(unknown(setting, command));
    };
    let wrong = |message: String| Some(Problem::new(setting.value_at, message));
    if let Err(wanted) = fits(arg, &setting.value) {
        return wrong(format!(
            "`{key}` has to be {wanted}, and is {}",
            setting.value.kind()
        ));
    }
    if let Some(Err(why)) = commands
        .first()
        .map(|command| understood(command, key, &setting.value))
    {
        return wrong(format!("`{key}`: {why}"));
    }
    if key != "env" {
        return None;
    }
    let words = setting.value.words();
    let name = words.iter().find_map(|word| secret(word))?;
    wrong(format!(
        "`env`: {name} looks like a secret, which has no place in this file; set it in the environment, and write `env = [\"{name}\"]` \
         to pass it on, or choose by `auth`"
    ))
}

/// The name in `NAME=VALUE`, if the value looks like a secret by it.
fn secret(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    is_secret(name).then_some(name)
}

/// A setting as it may be shown: a secret that has no place in the file is not copied to a terminal or a log.
pub(super) fn shown(setting: &Setting) -> Setting {
    let redacted = |word: &String| match secret(word) {
        Some(name) => format!("{name}={REDACTED}"),
        None => word.clone(),
    };
    let value = match &setting.value {
        _ if setting.key != "env" => setting.value.clone(),
        Value::Text(word) => Value::Text(redacted(word)),
        Value::Texts(words) => Value::Texts(words.iter().map(redacted).collect()),
        other => other.clone(),
    };
    Setting {
        value,
        ..setting.clone()
    }
}

/// What to say of a key that no command has a flag for.
fn unknown(setting: &Setting, command: &Command) -> Problem {
    let key = &setting.key;
    let commands = COMMANDS.iter().filter_map(|name| command.find_subcommand(name));
    let known = commands.flat_map(|command| {
        let flags = command.get_arguments().filter_map(Arg::get_long);
        flags.filter(|flag| of(command, flag).is_some())
    });
    let is_elsewhere = NOT_HERE.contains(&key.as_str());
    let meant = nearest(key, known).filter(|_| !is_elsewhere);
    let way_on = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if is_elsewhere => "it can only be given on the command line".to_owned(),
        None => "the keys are the flags of `outrigger run` and `chat`".to_owned(),
    };
    Problem {
        meant: meant.map(str::to_owned),
        ..Problem::new(setting.at, format!("there is no key `{key}`; {way_on}"))
    }
}

/// Whether a flag can have a value of this kind.
///
/// # Errors
/// The kind that the value has to be of.
fn fits(arg: &Arg, value: &Value) -> Result<(), &'static str> {
    let is = |of: TypeId| arg.get_value_parser().type_id() == of;
    let is_number = is(TypeId::of::<u64>()) || is(TypeId::of::<f64>()) || is(TypeId::of::<usize>());
    match (arg.get_action(), value) {
        (ArgAction::SetTrue, Value::Switch(_)) => Ok(()),
        (ArgAction::SetTrue, _) => Err("true or false"),
        (ArgAction::Append, Value::Text(_) | Value::Texts(_)) => Ok(()),
        (ArgAction::Append, _) => Err("a list of strings"),
        (_, Value::Number(_)) if is_number || is(TypeId::of::<Duration>()) => Ok(()),
        (_, Value::Text(_)) if !is_number => Ok(()),
        _ if is_number => Err("a number"),
        _ => Err("a string"),
    }
}

/// Whether the flag takes the value, as clap says.
fn understood(command: &Command, key: &str, value: &Value) -> Result<(), String> {
    if matches!(value, Value::Switch(_)) {
        return Ok(());
    }
    let name = command.get_name().to_owned();
    let words = value.words().into_iter().map(|word| format!("--{key}={word}"));
    let Err(error) = command
        .clone()
        .try_get_matches_from(std::iter::once(name).chain(words))
    else {
        return Ok(());
    };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidValue => {
            let valid = text(ContextKind::ValidValue).unwrap_or_default();
            Err(format!("{value:?} is none of: {valid}"))
        }
        ErrorKind::ValueValidation => {
            use std::error::Error as _;
            let why = error.source().map(ToString::to_string);
            Err(format!("{value:?} cannot be taken: {}", why.unwrap_or_default()))
        }
        // Something else is missing, which is given elsewhere.
        _ => Ok(()),
    }
}
