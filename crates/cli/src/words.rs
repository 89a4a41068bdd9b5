//! Failures, errors and advice of the SDK in the words of this command: its flags.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{Args as _, Command};
use outrigger::PromptWarning;
use outrigger::advice::reworded;

use crate::agent::AgentArgs;
use crate::exit::{CommandResult, Status};
use crate::plain::plain;

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

/// Prints the failure, if the result is one, and makes the exit code.
pub(crate) fn report(result: CommandResult) -> ExitCode {
    let status = match result {
        Ok(status) => {
            if status == Status::TimedOut {
                eprintln!("outrigger: the run took longer than --timeout allows, and was ended");
            }
            status
        }
        Err(failure) => {
            // Nobody reads the output any more.
            if failure.status != Status::BrokenPipe {
                eprint!("{}", describe(&failure.error));
            }
            failure.status
        }
    };
    ExitCode::from(status as u8)
}

/// The error, what it came from, and what to do about it, in the words of the command line; nothing in it commands the terminal.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let (mut said, mut hint) = (Vec::new(), None);
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<outrigger::Error>() {
            let told = error.explained(flag);
            said.push(told.message);
            said.extend(told.because);
            hint = told.hint;
            break;
        }
        said.push(cause.to_string());
    }
    // Some errors say what they come from by themselves.
    let mut parts: Vec<String> = Vec::new();
    for text in said {
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
    }
    let mut text = String::new();
    for (number, part) in parts.iter().enumerate() {
        let label = if number == 0 { "outrigger:" } else { "  because:" };
        let _ = writeln!(text, "{label} {part}");
    }
    if let Some(hint) = hint {
        let _ = writeln!(text, "  hint: {hint}");
    }
    // Errors have words of others: of the model, the API, a server, a file.
    plain(&text)
}

fn argument(flag: &str) -> Option<&'static clap::Arg> {
    COMMAND
        .get_arguments()
        .find(|argument| argument.get_long() == Some(flag))
}

/// How a shell starts this program: by its name if that is how it was started now, else by its path.
pub(crate) fn this_program() -> String {
    let called = PathBuf::from(std::env::args_os().next().unwrap_or_else(|| "outrigger".into()));
    let is_path = called.components().count() > 1;
    let path = match std::env::current_dir() {
        Ok(here) if is_path => here.join(called),
        _ => called,
    };
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use outrigger::advice::NAMES;
    use outrigger::options::Isolation;
    use outrigger::protocol::shared::PermissionMode;
    use outrigger::{Agent, Cause, Error, Options};

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

    fn failure_of(options: Options) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let error: Error = runtime.block_on(options.start()).expect_err("it does not start");
        describe(&error.into())
    }

    #[test]
    fn no_error_commands_the_terminal() {
        let error = anyhow::anyhow!("the turn failed: \x1b]52;c;aGk=\x07").context("no answer\x1b[2J");
        assert_eq!(
            describe(&error),
            "outrigger: no answer\\u{1b}[2J\n  because: the turn failed: \\u{1b}]52;c;aGk=\\u{7}\n"
        );
    }

    #[test]
    fn nothing_is_said_twice_and_all_in_flags() {
        let missing = failure_of(Agent::builder().cli_path("/no/such/claude"));
        assert_eq!(
            missing,
            "outrigger: the Claude Code CLI cannot be used\n  \
               because: cannot run /no/such/claude (the given path): no such file\n  \
               hint: install Claude Code there or correct the path\n"
        );
        let cwd = failure_of(Agent::builder().cwd("/no/such/directory").cli_path("/bin/sh"));
        assert_eq!(
            cwd,
            "outrigger: --cwd: /no/such/directory does not exist: create it, or name another\n"
        );
        let rule = failure_of(Agent::builder().allowed_tools(["Bash("]));
        assert!(
            rule.starts_with("outrigger: in --allow the rule `Bash(` lacks "),
            "{rule}"
        );
        let hermetic = Agent::builder()
            .isolation(Isolation::Hermetic)
            .auth(outrigger::options::Auth::Login);
        let hermetic = failure_of(hermetic);
        for flag in [
            "--auth login",
            "--isolation hermetic",
            "--hermetic-home",
            "--isolation plain",
        ] {
            assert!(hermetic.contains(flag), "{flag}: {hermetic}");
        }
        #[cfg(unix)]
        if rustix::process::geteuid().is_root() {
            let options = Agent::builder()
                .permission_mode(PermissionMode::BypassPermissions)
                .allow_dangerously_skip_permissions(true);
            let root = failure_of(options);
            assert!(
                root.contains("set --assume-sandbox") && !root.contains("hint"),
                "{root}"
            );
        }
    }
}
