//! How a command ends: the exit status, and the failure behind it. `words.rs` prints failures.

use std::io;

use outrigger::{Cause, Outcome, Phase, Verdict};

/// What the exit status of every command means.
pub(crate) const TABLE: &str = "\
Exit status:
  0    success
  1    the turn or the command failed, or nothing was found
  2    wrong usage, options that contradict each other, or a wrong configuration file
  3    the CLI was not found or could not be started, or did not get ready in time
  4    the API failed or refused, or did not answer in time; a host is away or fails
  5    a limit was reached: turns, budget, size of the conversation or the answer, time for background agents
  6    refused: a hook or the CLI did not let the prompt run, the model refused to answer, or a host does not allow it
  7    the session ended before the turn did
  8    there is no account: neither a key nor a login
  124  the time of --timeout was over
  130  interrupted (Ctrl-C)
  141  standard output was closed
  143  terminated (SIGTERM, or the terminal went away)";

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
            Some(Phase::Turn | Phase::Run) => return Self::TimedOut,
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
        } else if error.is_spawn() || error.cause().is_some_and(|cause| cause.is_start()) {
            // Some arguments the CLI refuses only when the session has begun.
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
    pub(crate) status: Status,
    pub(crate) error: anyhow::Error,
}

impl Failure {
    /// A failure with a status of its own.
    pub(crate) fn new(status: Status, error: impl Into<anyhow::Error>) -> Self {
        Self {
            status,
            error: error.into(),
        }
    }

    /// A session did not start. A CLI that ended before it was ready is one that could not be started.
    pub(crate) fn of_start(error: outrigger::Error) -> Self {
        let status = match Status::of_error(&error) {
            Status::Ended => Status::NotStarted,
            status => status,
        };
        Self::new(status, error)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_have_the_table_of_the_help() {
        let pages = [
            include_str!("../../../docs/command-line.md"),
            include_str!("../README.md"),
        ];
        for page in pages {
            let mut rows = String::from("Exit status:");
            for line in page.lines() {
                let mut cells = line.split('|').map(str::trim).skip(1);
                if let (Some(status), Some(meaning)) = (cells.next(), cells.next())
                    && status.parse::<u8>().is_ok()
                {
                    rows += &format!("\n  {status:<5}{}", meaning.replace('`', ""));
                }
            }
            assert_eq!(rows, TABLE);
        }
    }
}
