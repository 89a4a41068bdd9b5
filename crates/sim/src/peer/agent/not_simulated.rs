//! What is the CLI's private life, and not simulated: the list of it, and what is said where it is met.

use std::sync::LazyLock;

use serde::Deserialize;

/// `docs/testing.md` has the same.
static LIST: LazyLock<List> =
    LazyLock::new(|| serde_json::from_str(include_str!("not_simulated.json")).unwrap_or_default());

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Slash commands.
    commands: Vec<String>,
    /// Tools, unless a script says what comes out of them.
    tools: Vec<String>,
}

const INSTEAD: &str = "let the real CLI play this script (`outrigger mock-api`)";

/// What a turn ends with that begins with this slash command; none if it is no command of this list.
pub(super) fn command(name: &str) -> Option<String> {
    let listed = LIST.commands.iter().any(|command| command == name);
    listed.then(|| format!("/{name} is not simulated: {INSTEAD}"))
}

/// What a call of this tool ends with.
pub(super) fn tool(name: &str) -> String {
    if LIST.tools.iter().any(|tool| tool == name) {
        return format!("{name} is not simulated: give the call an outcome, or {INSTEAD}");
    }
    format!("No such tool available: {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/testing.md"));

    fn names(line: &str) -> Vec<&str> {
        let (_, rest) = PAGE.split_once(line).unwrap();
        let (list, _) = rest.split_once("\n\n").unwrap();
        let quoted = list.split('`').skip(1).step_by(2);
        quoted.map(|name| name.trim_start_matches('/')).collect()
    }

    #[test]
    fn the_page_has_the_same_list() {
        assert_eq!(names("* Slash commands: "), LIST.commands);
        assert_eq!(
            names("* Tools, unless a script gives the call an outcome: "),
            LIST.tools
        );
    }

    #[test]
    fn every_tool_is_simulated_or_listed() {
        let simulated = [
            "Task",
            "AskUserQuestion",
            "Bash",
            "Edit",
            "EnterPlanMode",
            "ExitPlanMode",
            "Read",
            "Write",
        ];
        for tool in super::super::payload::tools() {
            let listed = LIST.tools.contains(&tool);
            assert_ne!(listed, simulated.contains(&tool.as_str()), "{tool}");
        }
    }
}
