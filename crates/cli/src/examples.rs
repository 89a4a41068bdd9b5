//! Examples for `--help`, by the command that they are of.

use clap::Command;

/// Commands, each with its examples as they are shown: what one is for, and what is typed.
const EXAMPLES: &str = include_str!("examples.txt");

/// The words behind `outrigger` that name each command, and its examples.
fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.trim_end().split("\n\n").filter_map(|part| {
        let (command, examples) = part.split_once('\n').unwrap_or((part, ""));
        Some((command.strip_prefix("outrigger")?.trim_start(), examples))
    })
}

/// Adds its examples to each command.
pub(crate) fn added(command: Command) -> Command {
    all().fold(command, |command, (path, examples)| {
        let path: Vec<&str> = path.split_whitespace().collect();
        at(command, &path, examples)
    })
}

fn at(command: Command, path: &[&str], examples: &str) -> Command {
    let Some((name, rest)) = path.split_first() else {
        return with(command, examples);
    };
    // A name that is none would make a new command; a test says so.
    command.mut_subcommand(name, |command| at(command, rest, examples))
}

fn with(command: Command, examples: &str) -> Command {
    if examples.is_empty() {
        return command;
    }
    let mut text = format!("Examples:\n{examples}");
    if let Some(after) = command.get_after_help() {
        text.push_str(&format!("\n\n{after}"));
    }
    command.after_long_help(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        for command in command.get_subcommands() {
            let path = format!("{path} {}", command.get_name());
            if command.has_subcommands() {
                leaves(command, &path, found);
            } else {
                found.push(path.trim_start().to_owned());
            }
        }
    }

    #[test]
    fn every_command_has_examples_and_every_example_has_a_command() {
        let mut commands = Vec::new();
        leaves(&Cli::command(), "", &mut commands);
        for command in &commands {
            assert!(all().any(|(path, _)| path == command), "{command} has none");
        }
        for (path, _) in all() {
            let mut at = &Cli::command();
            for name in path.split_whitespace() {
                at = at
                    .find_subcommand(name)
                    .unwrap_or_else(|| panic!("there is no {path}"));
            }
        }
    }

    /// Splits as a shell does what examples have: quotes of both kinds, without escapes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match quote {
                Some(open) if c == open => quote = None,
                None if c == '"' || c == '\'' => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                None if c.is_whitespace() => words.extend(word.take()),
                _ => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    #[test]
    fn every_example_is_understood() {
        for (_, examples) in all() {
            for typed in examples.lines().filter_map(|line| line.strip_prefix("    ")) {
                let (_, ours) = typed.split_once("outrigger").expect(typed);
                let ours = ours.split([')', '|', '>']).next().unwrap();
                // Rules have parentheses, too.
                let ours = match typed.split_once("outrigger run") {
                    Some((_, rest)) => format!(" run{rest}"),
                    None => ours.to_owned(),
                };
                let words = words(&format!("outrigger{ours}"));
                if let Err(error) = Cli::command().try_get_matches_from(&words) {
                    panic!("{typed}: {error}");
                }
            }
        }
    }
}
