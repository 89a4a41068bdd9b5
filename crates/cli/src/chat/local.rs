//! The commands that `outrigger chat` carries out itself, by control requests.

use std::fmt::Write as _;

use outrigger::protocol::shared::PermissionMode;
use outrigger::{Result, Session};

use crate::plain::plain;

/// What `/help` says before it lists the CLI's own commands.
const HELP: &str = "\
/model NAME   changes the model; without NAME back to the default
/mode NAME    changes the permission mode: default, acceptEdits, plan, dontAsk, auto
/tasks        what runs in the background
/cost         what the conversation cost so far
/quit         ends it
Commands of the CLI:";

/// A command to this program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LocalCommand {
    Model(Option<String>),
    Mode(String),
    Tasks,
    Cost,
    Help,
    Quit,
}

/// These commands, with what they do.
const COMMANDS: &[(&str, &str)] = &[
    ("model", "changes the model"),
    ("mode", "changes the permission mode"),
    ("tasks", "what runs in the background"),
    ("cost", "what the conversation cost so far"),
    ("help", "lists commands"),
    ("quit", "ends the conversation"),
];

/// All commands that can be typed, with what they do: ours, and the CLI's.
pub(super) fn completions(session: &Session) -> Vec<(String, String)> {
    let ours = COMMANDS
        .iter()
        .map(|(name, does)| ((*name).to_owned(), (*does).to_owned()));
    let described = &session.initialized().commands;
    let theirs = session.command_names().into_iter().map(|name| {
        let known = described.iter().find(|command| command.name == name);
        let does = known.map_or("", |command| {
            command.description.lines().next().unwrap_or_default()
        });
        (name, plain(does))
    });
    let mut all: Vec<(String, String)> = ours.collect();
    all.extend(theirs.filter(|(name, _)| !COMMANDS.iter().any(|(ours, _)| ours == name)));
    all.sort();
    all
}

/// What to say of a line that names a command which nobody has; `None` if it is for the agent.
pub(super) fn unknown(line: &str, theirs: &[String]) -> Option<String> {
    let name = line.strip_prefix('/')?.split_whitespace().next()?;
    let is_name = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | ':');
    if !name.chars().all(is_name) || theirs.iter().any(|known| known == name) {
        // A path is no command.
        return None;
    }
    let known = COMMANDS
        .iter()
        .map(|(name, _)| *name)
        .chain(theirs.iter().map(String::as_str));
    let near = known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    let tip = near.map_or_else(String::new, |(_, known)| format!(" Did you mean /{known}?"));
    Some(format!(
        "There is no command /{name}.{tip} /help lists commands; with a space before it, the line goes to the model as it is."
    ))
}

/// Whether a line is such a command.
pub(super) fn is_local(line: &str) -> bool {
    read(line).is_some()
}

/// The name of such a command in a line.
pub(super) fn name(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix('/')?.split_whitespace().next()?;
    is_local(line).then_some(name)
}

/// Reads a line; `None` if it is for the agent.
pub(super) fn read(line: &str) -> Option<LocalCommand> {
    let line = line.trim().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    Some(match name {
        "model" => LocalCommand::Model((!rest.is_empty()).then(|| rest.to_owned())),
        "mode" => LocalCommand::Mode(rest.to_owned()),
        "tasks" => LocalCommand::Tasks,
        "cost" => LocalCommand::Cost,
        "help" => LocalCommand::Help,
        "quit" | "exit" => LocalCommand::Quit,
        _ => return None,
    })
}

impl LocalCommand {
    /// Carries it out and returns what to say.
    ///
    /// # Errors
    /// When the CLI refuses, or the session has ended.
    pub(super) async fn run(self, session: &Session) -> Result<String> {
        Ok(match self {
            Self::Model(model) => {
                session.set_model(model.as_deref()).await?;
                format!("model: {}\n", model.as_deref().unwrap_or("the default"))
            }
            Self::Mode(name) => match PermissionMode::from_wire(&name) {
                Some(mode) => {
                    session.set_permission_mode(mode).await?;
                    format!("permission mode: {}\n", mode.as_str())
                }
                None => "the modes are default, acceptEdits, plan, dontAsk, auto and bypassPermissions\n"
                    .to_owned(),
            },
            Self::Tasks => tasks(session),
            Self::Cost => cost(session),
            Self::Help => {
                let names: Vec<String> = session
                    .command_names()
                    .iter()
                    .map(|name| format!("/{name}"))
                    .collect();
                format!("{HELP} {}\n", names.join(" "))
            }
            // The conversation ends where it is read.
            Self::Quit => String::new(),
        })
    }
}

fn tasks(session: &Session) -> String {
    let mut text = String::new();
    for task in session.tasks().running() {
        let kind = task.task_type.as_deref().unwrap_or("task");
        let _ = writeln!(text, "{} ({kind}): {}", task.id, task.description);
    }
    if text.is_empty() {
        text.push_str("nothing runs in the background\n");
    }
    text
}

fn cost(session: &Session) -> String {
    let usage = session.usage();
    let mut text = format!("${:.4}\n", usage.cost_usd);
    for (model, tokens) in &usage.by_model {
        let _ = writeln!(
            text,
            "{model}: ${:.4}, {} tokens in, {} out, {} read from the cache, {} written to it",
            tokens.cost_usd, tokens.input, tokens.output, tokens.cache_read, tokens.cache_creation
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_commands_are_kept_from_the_agent() {
        assert_eq!(read("/quit"), Some(LocalCommand::Quit));
        assert_eq!(
            read(" /model  opus "),
            Some(LocalCommand::Model(Some("opus".into())))
        );
        assert_eq!(read("/model"), Some(LocalCommand::Model(None)));
        assert_eq!(read("/mode plan"), Some(LocalCommand::Mode("plan".into())));
        assert_eq!(
            (
                read("/context"),
                read("/models"),
                read("cost"),
                read("/etc/tasks")
            ),
            (None, None, None, None)
        );
    }

    #[test]
    fn commands_that_nobody_has_are_told_with_a_tip() {
        let theirs = ["compact".to_owned(), "context".to_owned()];
        let tip = unknown("/compcat now", &theirs).unwrap();
        assert!(
            tip.starts_with("There is no command /compcat. Did you mean /compact?"),
            "{tip}"
        );
        assert!(
            unknown("/zzz", &theirs)
                .unwrap()
                .starts_with("There is no command /zzz. /help")
        );
        for line in [
            "/compact",
            "/etc/tasks is what?",
            " /zzz",
            "zzz",
            "/",
            "// a comment",
        ] {
            assert_eq!(unknown(line, &theirs), None, "{line}");
        }
    }
}
