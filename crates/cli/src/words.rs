//! The SDK's errors and advice in the words of this command: its flags.

use std::sync::LazyLock;

use clap::{Args as _, Command};
use outrigger::PromptWarning;
use outrigger::advice::reworded;

use crate::agent::AgentArgs;

/// Options whose flag has another name.
const FLAGS: &[(&str, &str)] = &[
    ("additional_directories", "--add-dir"),
    (
        "allow_dangerously_skip_permissions",
        "--permission-mode bypassPermissions",
    ),
    ("allowed_tools", "--allow"),
    ("cli_path", "--cli"),
    ("continue_conversation", "--continue"),
    ("disallowed_tools", "--deny"),
    ("environment", "--env"),
    ("mcp_config_files", "--mcp-config"),
    ("output_format", "--schema"),
    ("permissions", "--policy"),
    ("persist_session", "--no-session-persistence"),
    ("plugins", "--plugin-dir"),
];

/// The flags of `run` and `chat`.
static COMMAND: LazyLock<Command> = LazyLock::new(|| AgentArgs::augment_args(Command::new("outrigger")));

/// The flag for an option of the SDK, or for the value of one (`Auth::ApiKey`); `None` if there is none.
pub(crate) fn flag(name: &str) -> Option<String> {
    if let Some((_, flag)) = FLAGS.iter().find(|(option, _)| *option == name) {
        return Some((*flag).to_owned());
    }
    if let Some((option, value)) = name.split_once("::") {
        let option = option.to_lowercase();
        let argument = argument(&option)?;
        // `OAuthToken` is `oauth-token`.
        let value = value.to_lowercase();
        let values = argument.get_possible_values();
        let value = values
            .iter()
            .map(|known| known.get_name())
            .find(|known| known.replace('-', "") == value)?;
        return Some(format!("--{option} {value}"));
    }
    let flag = name.replace('_', "-");
    argument(&flag).map(|_| format!("--{flag}"))
}

/// Says what may not be meant about a prompt. `way_on` is how a command is run here.
pub(crate) fn warning(warning: &PromptWarning, way_on: &str) -> String {
    match warning {
        PromptWarning::CommandAsText { command } => {
            format!("warning: /{command} is a slash command, and was sent as text; {way_on}")
        }
        other => format!("warning: {}", reworded(&other.to_string(), flag)),
    }
}

fn argument(flag: &str) -> Option<&'static clap::Arg> {
    COMMAND
        .get_arguments()
        .find(|argument| argument.get_long() == Some(flag))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use outrigger::advice::NAMES;
    use outrigger::{Cause, Options};

    use super::*;

    /// What `run` and `chat` never use, so that no error of theirs can name it.
    const UNUSED: &[&str] = &[
        "Delivery::Initialize",
        "OnBusy::Fork",
        "OnBusy::TakeOver",
        "Skills::All",
        "ThinkingConfig::Disabled",
        "ThinkingConfig::Enabled",
        "initialize",
        "sdk_mcp_server",
        "start",
        "ttl",
    ];

    /// What advice names that is neither Rust nor a flag.
    const COMMANDS: &[&str] = &["claude", "outrigger doctor", "chmod +x"];

    /// Options that this command sets by itself, so that nobody can set them wrongly.
    const OWN: &[&str] = &["client_app", "include_hook_events", "include_partial_messages"];

    /// A sentence with all that is in backticks, as somebody at a terminal reads it.
    fn is_for_a_terminal(told: &str) -> bool {
        let quoted = told.split('`').skip(1).step_by(2);
        quoted.into_iter().all(|quoted| COMMANDS.contains(&quoted)) && !told.contains("::")
    }

    #[test]
    fn every_name_in_advice_has_a_flag() {
        for name in NAMES.iter().filter(|name| !UNUSED.contains(name)) {
            assert!(flag(name).is_some(), "`{name}` has no flag");
        }
    }

    #[test]
    fn every_option_that_flags_set_is_told_as_its_flag() {
        let code = include_str!("agent.rs");
        let sets = |option: &str| {
            code.contains(&format!("options.{option} ="))
                || code.contains(&format!("\n            .{option}("))
        };
        let set: Vec<_> = Options::NAMES.iter().filter(|option| sets(option)).collect();
        assert!(set.len() > 15, "{set:?}");
        for option in set.into_iter().filter(|option| !OWN.contains(option)) {
            assert!(flag(option).is_some(), "`{option}` has no flag");
        }
    }

    #[test]
    fn flags_that_are_told_exist() {
        let mut command = crate::Cli::command();
        command.build();
        let run = command.find_subcommand("run").expect("it is there");
        let told = Options::NAMES.iter().chain(NAMES).filter_map(|name| flag(name));
        for told in told {
            let long = told.split(' ').next().and_then(|flag| flag.strip_prefix("--"));
            assert!(
                run.get_arguments().any(|argument| argument.get_long() == long),
                "{told}"
            );
        }
        assert_eq!(flag("Auth::OAuthToken").as_deref(), Some("--auth oauth-token"));
        assert_eq!(
            flag("Isolation::Hermetic").as_deref(),
            Some("--isolation hermetic")
        );
        assert_eq!(flag("no_such_option"), None);
    }

    #[test]
    fn advice_of_every_cause_is_for_a_terminal() {
        // The advice about an answer of the API depends on its status.
        let answers = [403, 404, 429, 500].map(|status| Cause::Api { status: Some(status) });
        for cause in Cause::ALL.iter().chain(&answers) {
            let told = reworded(cause.advice(), flag);
            assert!(is_for_a_terminal(&told), "{cause:?}: {told}");
        }
        assert!(!is_for_a_terminal("raise `max_turns`") && !is_for_a_terminal("choose Auth::Login"));
    }
}
