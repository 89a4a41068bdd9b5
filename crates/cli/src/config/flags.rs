//! The flags that a configuration file can set, and whether it sets them as they can be.

use std::any::TypeId;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Args as _, Command};

use super::COMMANDS;
use super::file::{File, Setting, Value};
use crate::agent::{AgentArgs, is_secret, usage};
use crate::command_line::nearest;
use crate::exit::Failure;

/// What a file says by other means, or cannot say.
const NOT_HERE: &[&str] = &["config", "profile", "no-config", "help", "version"];

/// The flag of a command that a key sets. A flag of the same name that means something else is none: `record --output` is a file, and
/// `run --output` a form.
pub(super) fn of<'c>(command: &'c Command, key: &str) -> Option<&'c Arg> {
    let is_own = ["run", "chat"].contains(&command.get_name());
    let mut flags = command.get_arguments().filter(|arg| arg.get_long() == Some(key));
    let flag = flags.next().filter(|_| !NOT_HERE.contains(&key))?;
    (is_own || is_common(key)).then_some(flag)
}

/// Whether all commands that start an agent have the flag.
fn is_common(key: &str) -> bool {
    let common = AgentArgs::augment_args(Command::new("common"));
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

/// Checks all that a file says, in all profiles.
pub(super) fn check(file: &File, command: &Command) -> Result<(), Failure> {
    let commands: Vec<&Command> = COMMANDS
        .iter()
        .filter_map(|name| command.find_subcommand(name))
        .collect();
    let wrong = |setting: &Setting, message: String| {
        usage(format!("{}:{}: {message}", file.path.display(), setting.line))
    };
    for setting in file.all() {
        let key = &setting.key;
        let found = commands
            .iter()
            .find_map(|command| Some((*command, of(command, key)?)));
        let Some((command, arg)) = found else {
            let known = commands.iter().flat_map(|command| {
                let flags = command.get_arguments().filter_map(Arg::get_long);
                flags.filter(|flag| of(command, flag).is_some())
            });
            let near = match (NOT_HERE.contains(&key.as_str()), nearest(key, known)) {
                (true, _) => "; it can only be given on the command line".to_owned(),
                (false, Some(near)) => format!("; did you mean `{near}`?"),
                (false, None) => "; the keys are the flags of `outrigger run` and `chat`".to_owned(),
            };
            return Err(wrong(setting, format!("there is no key `{key}`{near}")));
        };
        let wanted = fits(arg, &setting.value);
        wanted.map_err(|wanted| {
            wrong(
                setting,
                format!("`{key}` has to be {wanted}, and is {}", setting.value.kind()),
            )
        })?;
        understood(command, key, &setting.value).map_err(|why| wrong(setting, format!("`{key}`: {why}")))?;
        if key == "env" {
            for (name, _) in setting
                .value
                .words()
                .iter()
                .filter_map(|word| word.split_once('='))
            {
                if is_secret(name) {
                    let message = format!(
                        "`env`: {name} looks like a secret, which has no place in this file; set it in the environment, and write \
                         `env = [\"{name}\"]` to pass it on, or choose by `auth`"
                    );
                    return Err(wrong(setting, message));
                }
            }
        }
    }
    for part in file.parts() {
        for (nth, setting) in part.iter().enumerate() {
            for other in &part[..nth] {
                let is_clash = commands.iter().any(|command| {
                    let ids = (of(command, &setting.key), of(command, &other.key));
                    let (Some(one), Some(other)) = ids else {
                        return false;
                    };
                    exclude(command, one.get_id().as_str(), other.get_id().as_str())
                });
                if is_clash && ![&setting.value, &other.value].contains(&&Value::Switch(false)) {
                    let (key, line) = (&other.key, other.line);
                    let message = format!("`{}` and `{key}` of line {line} exclude each other", setting.key);
                    return Err(wrong(setting, message));
                }
            }
        }
    }
    Ok(())
}

/// Whether a flag can have a value of this kind.
///
/// # Errors
/// With the kind that it has to be.
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
