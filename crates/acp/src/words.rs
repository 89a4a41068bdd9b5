//! The SDK's errors and advice in the words of an editor's user: the agent's environment, and what editors send.

use crate::given;

/// What an option is for the user of an editor; `None` if they can't set it.
pub(crate) fn setting(name: &str) -> Option<String> {
    let known = match name {
        "assume_sandbox" => "IS_SANDBOX=1 in the agent's environment",
        "auth" => "the agent's environment",
        "cli_path" => "CLAUDE_CODE_EXECUTABLE in the agent's environment",
        "cwd" => "the session's directory",
        "fork_session" => "a fork",
        "resume" => "session/resume",
        name => {
            let name = match name {
                "environment" => "env".to_owned(),
                name => camel(name),
            };
            return given::is_option(&name).then(|| format!("_meta.claudeCode.options.{name}"));
        }
    };
    Some(known.to_owned())
}

/// The name that TypeScript has for it.
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
    use outrigger::Cause;
    use outrigger::advice::{NAMES, reworded};

    use super::*;

    /// What the agent never uses or always sets by itself, so that no error of its sessions can name it.
    const UNUSED: &[&str] = &[
        "Auth::Inherit",
        "Auth::OAuthToken",
        "Delivery::Initialize",
        "Isolation::Hermetic",
        "Isolation::Interactive",
        "Isolation::Plain",
        "OnBusy::Fork",
        "OnBusy::TakeOver",
        "Skills::All",
        "ThinkingConfig::Disabled",
        "ThinkingConfig::Enabled",
        "initialize",
        "permissions",
        "sdk_mcp_server",
        "start",
        "ttl",
    ];

    const COMMANDS: &[&str] = &["claude", "outrigger doctor"];

    #[test]
    fn names_in_advice_are_what_an_editor_can_set() {
        for name in NAMES.iter().filter(|name| !UNUSED.contains(name)) {
            assert!(
                setting(name).is_some(),
                "`{name}` is nothing that an editor can set"
            );
        }
        assert_eq!(
            setting("max_budget_usd").as_deref(),
            Some("_meta.claudeCode.options.maxBudgetUsd")
        );
        for nothing in ["include_partial_messages", "session_id", "no_such_option"] {
            assert_eq!(setting(nothing), None);
        }
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
