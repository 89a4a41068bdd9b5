//! How a command ends: the exit status, and what is said about a failure.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use outrigger::{Cause, Outcome, Phase, Verdict};

use crate::words;

/// What the exit status of every command means.
pub(crate) const TABLE: &str = "\
Exit status:
  0    success
  1    the turn or the command failed, or nothing was found
  2    wrong usage, or options that contradict each other
  3    the CLI was not found or could not be started, or did not get ready in time
  4    the API failed or refused, or did not answer in time
  5    a limit was reached: turns, budget, size of the conversation or the answer, time for background agents
  6    refused: a hook or the CLI did not let the prompt run, or the model refused to answer
  7    the session ended before the turn did
  8    not logged in: the CLI has no account
  124  the time of --timeout was over
  130  interrupted (Ctrl-C)
  141  standard output was closed
  143  terminated (SIGTERM)";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Success = 0,
    Failed = 1,
    Usage = 2,
    NotStarted = 3,
    Api = 4,
    Limit = 5,
    Refused = 6,
    Ended = 7,
    NotLoggedIn = 8,
    /// As of the command `timeout`.
    TimedOut = 124,
    Interrupted = 130,
    BrokenPipe = 141,
    Terminated = 143,
}

impl Status {
    /// The status that tells how a turn ended.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome.verdict() {
            verdict if verdict.is_success() => Self::Success,
            Verdict::Interrupted | Verdict::Cancelled => Self::Interrupted,
            Verdict::NotRun | Verdict::StoppedByHook | Verdict::Dropped(_) => Self::Refused,
            Verdict::Failed(cause) => Self::of_cause(cause),
            _ => Self::Failed,
        }
    }

    fn of_cause(cause: &Cause) -> Self {
        match cause {
            Cause::MaxTurns | Cause::Budget | Cause::TooLong | Cause::MaxOutputTokens => Self::Limit,
            Cause::Refused => Self::Refused,
            Cause::NotLoggedIn => Self::NotLoggedIn,
            Cause::Api { .. }
            | Cause::RateLimit
            | Cause::Billing
            | Cause::ConnectionFailed
            | Cause::InvalidKey => Self::Api,
            cause if cause.is_start() => Self::NotStarted,
            _ => Self::Failed,
        }
    }

    /// The status that tells what went wrong.
    pub(crate) fn of_error(error: &outrigger::Error) -> Self {
        match error.stalled() {
            Some(Phase::Start | Phase::Initialize) => return Self::NotStarted,
            Some(_) => return Self::Api,
            None => {}
        }
        if let Some(outcome) = error.outcome() {
            return Self::of(outcome);
        }
        if let Some(options) = error.as_options_error() {
            return match options {
                outrigger::options::OptionsError::Cli(_) => Self::NotStarted,
                _ => Self::Usage,
            };
        }
        if error.is_invalid() {
            Self::Usage
        } else if error.as_no_account().is_some() {
            Self::NotLoggedIn
        } else if error.is_spawn() {
            Self::NotStarted
        } else if error.is_closed() {
            Self::Ended
        } else {
            Self::Failed
        }
    }
}

/// What a command returns: its status, or an error that also has one.
pub(crate) type CommandResult = Result<Status, Failure>;

/// An error with the exit status that tells of it. Any error becomes one by `?`.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    error: anyhow::Error,
}

impl Failure {
    /// A failure with a status of its own.
    pub(crate) fn new(status: Status, error: impl Into<anyhow::Error>) -> Self {
        Self {
            status,
            error: error.into(),
        }
    }

    /// Whether nobody reads standard output any more.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.status == Status::BrokenPipe
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let status = if is_broken_pipe(&error) {
            Status::BrokenPipe
        } else if let Some(error) = error.downcast_ref::<outrigger::Error>() {
            Status::of_error(error)
        } else {
            Status::Failed
        };
        Self { status, error }
    }
}

/// Whether standard output is what could not be written. A pipe that broke inside of the SDK or below sessions is another one.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    for cause in error.chain() {
        if cause.is::<outrigger::Error>() || cause.is::<outrigger::sessions::Error>() {
            return false;
        }
        let of_json = cause
            .downcast_ref::<serde_json::Error>()
            .and_then(serde_json::Error::io_error_kind);
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind).or(of_json);
        if kind == Some(io::ErrorKind::BrokenPipe) {
            return true;
        }
    }
    false
}

/// Says what went wrong, if anything, and makes the exit status.
pub(crate) fn report(result: CommandResult) -> ExitCode {
    let status = match result {
        Ok(status) => {
            if status == Status::TimedOut {
                eprintln!("outrigger: it took longer than --timeout allows, and was ended");
            }
            status
        }
        Err(failure) => {
            // Nobody reads any more, so there is nobody to tell.
            if failure.status != Status::BrokenPipe {
                eprint!("{}", describe(&failure.error));
            }
            failure.status
        }
    };
    ExitCode::from(status as u8)
}

/// The error, what it came from, and what to do about it, in the words of the command line.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let (mut said, mut hint) = (Vec::new(), None);
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<outrigger::Error>() {
            let told = error.told(words::flag);
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
    text
}

#[cfg(test)]
mod tests {
    use outrigger::options::{Isolation, Options};
    use outrigger::protocol::shared::PermissionMode;
    use outrigger::{Agent, Error};

    use super::*;

    fn told(options: Options) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let error: Error = runtime.block_on(options.start()).expect_err("it does not start");
        describe(&error.into())
    }

    #[test]
    fn nothing_is_said_twice_and_all_in_flags() {
        let missing = told(Agent::builder().cli_path("/no/such/claude"));
        assert_eq!(
            missing,
            "outrigger: the Claude Code CLI cannot be used\n  \
               because: cannot run /no/such/claude (the given path): no such file\n  \
               hint: install Claude Code there or correct the path\n"
        );
        let cwd = told(Agent::builder().cwd("/no/such/directory").cli_path("/bin/sh"));
        assert_eq!(
            cwd,
            "outrigger: --cwd: /no/such/directory does not exist: create it, or name another\n"
        );
        let rule = told(Agent::builder().allowed_tools(["Bash("]));
        assert!(
            rule.starts_with("outrigger: --allow is \"Bash(\", which "),
            "{rule}"
        );
        let hermetic = Agent::builder()
            .isolation(Isolation::Hermetic)
            .auth(outrigger::options::Auth::Login);
        let hermetic = told(hermetic);
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
            let root = told(options);
            assert!(
                root.contains("set --assume-sandbox") && !root.contains("hint"),
                "{root}"
            );
        }
    }
}
