//! The slash commands that a client should offer.

use std::collections::BTreeSet;

use outrigger::protocol::inbound::system::SlashCommand;

use super::step::Steps;
use crate::event::{Command, Event};

/// Commands that make sense only in the CLI's own terminal, or internally.
const HIDDEN: [&str; 17] = [
    "clear",
    "color",
    "config",
    "cost",
    "design-consent",
    "doctor",
    "exit",
    "focus",
    "heapdump",
    "keybindings-help",
    "login",
    "logout",
    "output-style:new",
    "release-notes",
    "reload-plugins",
    "todos",
    "workflow-launch-exec",
];

#[derive(Debug, Default)]
pub(super) struct Commands {
    reported: Option<Vec<Command>>,
}

impl Commands {
    pub(super) fn changed(&mut self, commands: &[SlashCommand], steps: &mut Steps) {
        let mut names = BTreeSet::new();
        let shown = commands.iter().filter(|command| {
            let is_internal = command.name.starts_with('_') || command.name.is_empty();
            let is_hidden = command.builtin == Some(true) && HIDDEN.contains(&command.name.as_str());
            !is_internal && !is_hidden && names.insert(command.name.as_str())
        });
        let shown: Vec<_> = shown
            .map(|command| Command {
                name: command.name.clone(),
                description: command.description.clone(),
                hint: Some(command.argument_hint.clone()).filter(|hint| !hint.trim().is_empty()),
            })
            .collect();
        if self.reported.as_ref() != Some(&shown) {
            self.reported = Some(shown.clone());
            steps.event(Event::Commands(shown));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_the_terminal_alone_is_not_offered() {
        let command = |name: &str| {
            let json =
                serde_json::json!({"name": name, "description": "", "argumentHint": "", "builtin": true});
            serde_json::from_value::<SlashCommand>(json).expect("a command")
        };
        let names = ["reload-skills", "__remote-workflow", "heapdump", "model", "model"];
        let mut steps = Steps::default();
        Commands::default().changed(&names.map(command), &mut steps);
        let [crate::reduce::ReducedStep::Event(Event::Commands(told))] = steps.0.as_slice() else {
            panic!("{:?}", steps.0);
        };
        let told: Vec<&str> = told.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(told, ["reload-skills", "model"]);
    }
}
