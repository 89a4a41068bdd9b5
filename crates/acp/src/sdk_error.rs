//! The SDK's errors for users of an editor: advice names the agent's environment and the editor's options, not Rust.

use agent_client_protocol::{Error, ErrorCode};
use outrigger::Cause;
use outrigger::advice::reworded;
use serde_json::{Map, Value, json};

use crate::meta;

/// An error of the SDK with its evidence: what failed, the known cause, and the advice.
pub(crate) fn of_sdk(error: &outrigger::Error) -> Error {
    let mut data = Map::new();
    let mut put = |key: &str, value: Value| {
        data.insert(key.to_owned(), value);
    };
    let cause = error.cause();
    if let Some(cause) = &cause {
        put("cause", json!(cause.to_string()));
    }
    let told = error.explained(setting);
    let is_missing = matches!(cause, Some(Cause::BinaryMissing));
    // The path came from this variable.
    let whole = |hint: String| match is_missing && !hint.contains(CLI) {
        true => format!("{hint}; the path is that of {CLI}"),
        false => hint,
    };
    let advice = error.hint().map(|hint| whole(reworded(hint, setting)));
    if let Some(advice) = advice {
        put("advice", json!(advice));
    }
    if let Some(exit) = error.exit() {
        put("exit", json!(exit.to_string()));
    }
    if let Some(stderr) = error.stderr_tail().filter(|tail| !tail.trim().is_empty()) {
        put("stderr", json!(stderr));
    }
    let code = match cause {
        Some(Cause::NotLoggedIn | Cause::InvalidKey) => ErrorCode::AUTH_REQUIRED,
        Some(Cause::UnknownSession) => ErrorCode::RESOURCE_NOT_FOUND,
        // Invalid options come from the environment, not from the request.
        _ if error.is_invalid() && error.as_options_error().is_none() => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    let mut message = told.message;
    for behind in &told.because {
        message.push_str(": ");
        message.push_str(behind);
    }
    if let Some(hint) = told.hint.map(whole) {
        message.push_str(&format!(" ({hint})"));
    }
    Error::new(code, message).data(Value::Object(data))
}

/// The place where an editor sets the path of the CLI.
const CLI: &str = "CLAUDE_CODE_EXECUTABLE in the agent's environment (the editor's settings have it)";

/// The name of an option for the user of an editor; `None` if they can't set it.
pub(crate) fn setting(name: &str) -> Option<String> {
    let known = match name {
        "assume_sandbox" => "IS_SANDBOX=1 in the agent's environment",
        "auth" => "the agent's environment",
        "cli_path" => CLI,
        "cwd" => "the session's directory",
        "fork_session" => "a fork",
        "resume" => "session/resume",
        name => {
            let name = match name {
                "environment" => "env".to_owned(),
                name => camel(name),
            };
            return meta::is_option(&name).then(|| format!("_meta.claudeCode.options.{name}"));
        }
    };
    Some(known.to_owned())
}

/// The name in camel case, as in TypeScript.
fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        camel.push_str(letters.as_str());
    }
    camel
}

#[cfg(test)]
mod tests {
    use outrigger::advice::NAMES;

    use super::*;

    const COMMANDS: &[&str] = &["claude", "outrigger doctor"];

    #[test]
    fn names_in_advice_are_what_an_editor_can_set() {
        // The agent never uses these options, or always sets them itself, so no error of its sessions names them.
        let known = NAMES.iter().filter(|name| setting(name).is_some());
        assert_eq!(known.collect::<Vec<_>>(), [&"env"]);
        assert_eq!(
            setting("max_budget_usd").as_deref(),
            Some("_meta.claudeCode.options.maxBudgetUsd")
        );
        for nothing in ["include_partial_messages", "session_id", "no_such_option"] {
            assert_eq!(setting(nothing), None);
        }
    }

    #[test]
    fn a_cli_that_is_missing_is_named_where_an_editor_sets_it() {
        let told = reworded(Cause::BinaryMissing.advice(), setting);
        assert!(told.contains(CLI), "{told}");
        assert!(!told.contains("cli_path"), "{told}");
    }

    #[test]
    fn advice_is_for_an_editor() {
        use Cause::{
            BinaryMissing, Budget, CwdMissing, MaxTurns, NotLoggedIn, RootBypass, SessionInUse, Unexplained,
        };
        for cause in [
            BinaryMissing,
            CwdMissing,
            NotLoggedIn,
            RootBypass,
            SessionInUse,
            MaxTurns,
            Budget,
            Unexplained,
        ] {
            let told = reworded(cause.advice(), setting);
            let mut quoted = told.split('`').skip(1).step_by(2);
            assert!(
                quoted.all(|quoted| COMMANDS.contains(&quoted)),
                "{cause:?}: {told}"
            );
        }
    }
}
