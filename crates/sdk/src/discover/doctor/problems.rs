//! What of a report should be put right, and how.

use super::report::*;
use crate::env::KEYS;

pub(super) fn problems(report: &DoctorReport) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut say = |severity, found: String, advice: &str| {
        problems.push(Problem {
            severity,
            found,
            advice: advice.to_owned(),
        });
    };
    if report.candidates.is_empty() {
        let advice =
            "install Claude Code (https://code.claude.com/docs/en/setup), or name it in OUTRIGGER_CLAUDE";
        say(
            Severity::Error,
            "no installation of Claude Code was found".to_owned(),
            advice,
        );
    }
    for candidate in &report.candidates {
        let used = report
            .chosen
            .as_ref()
            .is_none_or(|chosen| *chosen == candidate.path);
        let severity = if used { Severity::Error } else { Severity::Warning };
        let place = format!("{} ({})", candidate.path.display(), candidate.origin);
        if let Some(why) = &candidate.unusable {
            say(severity, format!("{place}: {why}"), why.advice());
        }
        match &candidate.version {
            VersionCheck::TimedOut => {
                say(
                    severity,
                    format!("{place} did not answer to --version in time"),
                    "run it by hand; reinstall it if it hangs",
                );
            }
            VersionCheck::Failed(error) => {
                say(
                    severity,
                    format!("{place} cannot be started: {error}"),
                    "reinstall Claude Code for this system",
                );
            }
            VersionCheck::Odd(said) => {
                say(
                    severity,
                    format!("{place} answered to --version with {said:?}"),
                    "check that this is Claude Code",
                );
            }
            VersionCheck::Version(_) | VersionCheck::NotRun => {}
        }
    }
    match &report.home {
        None => say(
            Severity::Error,
            "there is no home directory: HOME is unset or not absolute".to_owned(),
            "set HOME, or use `Isolation::Hermetic`",
        ),
        Some(home) if !home.exists => {
            say(
                Severity::Error,
                format!("the home directory {} does not exist", home.path.display()),
                "create it or set HOME",
            );
        }
        Some(_) => {}
    }
    if let Some(config) = &report.config {
        if config.exists && !config.readable {
            say(
                Severity::Error,
                format!("{} cannot be read", config.path.display()),
                "check its owner and permissions",
            );
        } else if !config.writable {
            say(
                Severity::Warning,
                format!(
                    "{} cannot be written: no session will be kept, no login refreshed",
                    config.path.display()
                ),
                "check its owner and permissions, or set CLAUDE_CONFIG_DIR",
            );
        }
    }
    match &report.cwd {
        None => say(
            Severity::Error,
            "the working directory does not exist any more".to_owned(),
            "change to one that exists, or name one with `cwd`",
        ),
        Some(cwd) if !cwd.exists => {
            say(
                Severity::Error,
                format!("the working directory {} does not exist", cwd.path.display()),
                "create it",
            );
        }
        Some(_) => {}
    }
    if report.used.is_none() {
        let advice = if cfg!(target_os = "macos") {
            "set ANTHROPIC_API_KEY or run `claude` and log in; a login in the keychain is not looked for here"
        } else {
            "set ANTHROPIC_API_KEY, or run `claude` and log in"
        };
        let is_helper = |source: &AuthSource| matches!(source, AuthSource::ApiKeyHelper(_));
        let (found, advice) = if report.auth.iter().any(is_helper) {
            (
                "no account was found but an apiKeyHelper, which counts only where settings are loaded",
                "load the settings by `Isolation::Interactive`, or set ANTHROPIC_API_KEY",
            )
        } else {
            ("no account was found", advice)
        };
        say(Severity::Warning, found.to_owned(), advice);
    }
    let keys: Vec<&str> = KEYS
        .iter()
        .copied()
        .filter(|key| {
            report
                .auth
                .iter()
                .any(|source| *source == AuthSource::Variable((*key).to_owned()))
        })
        .collect();
    let login = report
        .auth
        .iter()
        .any(|source| matches!(source, AuthSource::Login(_)));
    if keys.len() > 1 || (login && !keys.is_empty()) {
        let others = if login { "a stored login" } else { "each other" };
        say(
            Severity::Warning,
            format!(
                "{} outranks {others} unless an account is chosen",
                keys.join(", ")
            ),
            "choose one account with `auth`",
        );
    }
    if report.root {
        say(
            Severity::Warning,
            "running as root: the CLI refuses bypassPermissions".to_owned(),
            "use another user, or `assume_sandbox` in a throw-away container",
        );
    }
    problems.sort_by_key(|problem| problem.severity);
    problems
}
