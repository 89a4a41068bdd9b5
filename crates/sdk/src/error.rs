//! Errors, with their evidence.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outrigger_sessions::Error as FilesError;
use outrigger_sessions::store::{StoreError, StoreErrorKind};

use crate::cause::Cause;
use crate::end::End;
use crate::outcome::{Outcome, Verdict};
use crate::ownership::LeaseProblem;
use crate::peer::Exit;
use crate::phase::{Phase, Stall};

/// The result of most calls of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate. It is cheap to clone: when a session dies, all that waits gets the same error.
///
/// `Display` is the message with the most useful evidence; the methods have the rest, and [`hint`](Self::hint) what to do next.
/// `Debug`, as `main` prints it, has the message, its causes and the hint; `{:#?}` shows the internals.
#[derive(Clone)]
pub struct Error(Arc<Kind>);

#[derive(Debug)]
pub(crate) enum Kind {
    /// The problem of a higher module.
    Problem(Box<dyn ModuleProblem>),
    Invalid {
        what: String,
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    Spawn {
        program: PathBuf,
        cwd: PathBuf,
        source: io::Error,
    },
    Timeout {
        what: String,
        after: Duration,
    },
    Stalled {
        phase: Phase,
        after: Duration,
        outcome: Option<Outcome>,
    },
    Refusal(Refusal),
    Store {
        what: String,
        source: StoreError,
    },
    Files {
        what: String,
        source: FilesError,
    },
    Unsupported {
        feature: &'static str,
        capability: &'static str,
    },
    Misfit {
        what: String,
        source: Box<dyn StdError + Send + Sync>,
    },
    Ended(End),
    Closed,
    Busy {
        what: &'static str,
        limit: usize,
    },
    NotOpen {
        id: String,
    },
    TurnFailed(Outcome),
    Output {
        text: String,
        reason: String,
        outcome: Outcome,
    },
}

/// The problem of a higher module, which this module does not know. [`Error::problem`] finds it by its type.
pub(crate) trait ModuleProblem: StdError + Any + Send + Sync {
    /// Whether an argument of the program is wrong, and nothing was sent.
    fn is_invalid(&self) -> bool {
        false
    }

    /// Whether the message has names of options and no text from outside: then [`Error::explained`] may replace the names.
    fn names_options(&self) -> bool {
        false
    }

    /// See [`Error::cause`].
    fn known_cause(&self) -> Option<Cause> {
        None
    }

    /// See [`Error::hint`].
    fn hint(&self) -> Option<&'static str> {
        self.known_cause().map(|cause| cause.advice())
    }
}

impl ModuleProblem for LeaseProblem {
    fn names_options(&self) -> bool {
        true
    }

    fn known_cause(&self) -> Option<Cause> {
        Some(Cause::SessionInUse)
    }

    fn hint(&self) -> Option<&'static str> {
        Some(self.advice())
    }
}

/// The CLI's error reply to a control request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The subtype of the request.
    pub request: String,
    /// The CLI's message.
    pub message: String,
    /// The CLI's machine-readable code, such as `unsupported_request` or `invalid_mode`.
    pub code: Option<String>,
}

impl Error {
    pub(crate) fn new(kind: Kind) -> Self {
        Self(Arc::new(kind))
    }

    pub(crate) fn of(problem: impl ModuleProblem) -> Self {
        Self::new(Kind::Problem(Box::new(problem)))
    }

    /// The problem of a higher module, if it is of this type.
    pub(crate) fn problem<P: ModuleProblem>(&self) -> Option<&P> {
        match &*self.0 {
            Kind::Problem(problem) => (&**problem as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// See [`ModuleProblem::names_options`].
    pub(crate) fn names_options(&self) -> bool {
        matches!(&*self.0, Kind::Problem(problem) if problem.names_options())
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::new(Kind::Invalid {
            what: what.into(),
            source: None,
        })
    }

    pub(crate) fn invalid_because(
        what: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::new(Kind::Invalid {
            what: what.into(),
            source: Some(source.into()),
        })
    }

    pub(crate) fn misfit(
        what: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::new(Kind::Misfit {
            what: what.into(),
            source: source.into(),
        })
    }

    pub(crate) fn timeout(what: impl Into<String>, after: Duration) -> Self {
        Self::new(Kind::Timeout {
            what: what.into(),
            after,
        })
    }

    /// The start stalled: no frame for too long.
    pub(crate) fn stalled_at_start(phase: Phase, after: Duration) -> Self {
        Self::new(Kind::Stalled {
            phase,
            after,
            outcome: None,
        })
    }

    /// A turn stalled and was interrupted: no frame for too long.
    pub(crate) fn stalled_in(stall: Stall, outcome: Outcome) -> Self {
        Self::new(Kind::Stalled {
            phase: stall.phase,
            after: stall.after,
            outcome: Some(outcome),
        })
    }

    pub(crate) fn turn_failed(outcome: Outcome) -> Self {
        Self::new(Kind::TurnFailed(outcome))
    }

    /// The kind, for [`ErrorReport`](crate::ErrorReport).
    #[cfg(feature = "serde")]
    pub(crate) fn kind_name(&self) -> &'static str {
        match &*self.0 {
            _ if self.is_invalid() => "invalid",
            _ if self.problem::<LeaseProblem>().is_some() => "lease",
            Kind::Problem(_) | Kind::Invalid { .. } => "other",
            Kind::Spawn { .. } => "spawn",
            Kind::Timeout { .. } => "timeout",
            Kind::Stalled { .. } => "stalled",
            Kind::Refusal(_) => "refusal",
            Kind::Store { .. } => "store",
            Kind::Files { .. } => "files",
            Kind::Unsupported { .. } => "unsupported",
            Kind::Misfit { .. } => "misfit",
            Kind::Ended(_) => "ended",
            Kind::Closed => "closed",
            Kind::Busy { .. } => "busy",
            Kind::NotOpen { .. } => "not_open",
            Kind::TurnFailed(_) => "turn_failed",
            Kind::Output { .. } => "output",
        }
    }

    /// Whether an argument or option of the program is wrong; nothing was sent.
    pub fn is_invalid(&self) -> bool {
        match &*self.0 {
            Kind::Invalid { .. } => true,
            Kind::Problem(problem) => problem.is_invalid(),
            _ => false,
        }
    }

    /// Whether the CLI could not be started.
    pub fn is_spawn(&self) -> bool {
        matches!(*self.0, Kind::Spawn { .. })
    }

    /// Whether a deadline passed.
    pub fn is_timeout(&self) -> bool {
        matches!(*self.0, Kind::Timeout { .. }) || self.stalled().is_some()
    }

    /// The phase that stalled, if the error is a stall.
    ///
    /// If the start stalled, the session has ended. If a turn stalled, the SDK interrupted the turn and the session goes on. If
    /// the CLI did not end the turn, the SDK ended its process: then the error also [`is_closed`](Self::is_closed), and a new
    /// process can resume the conversation.
    pub fn stalled(&self) -> Option<Phase> {
        match &*self.0 {
            Kind::Stalled { phase, .. } => Some(*phase),
            Kind::Ended(end) => end.stalled,
            _ => None,
        }
    }

    /// Whether the session is over: closed by the program, or its process ended.
    pub fn is_closed(&self) -> bool {
        matches!(*self.0, Kind::Closed | Kind::Ended(_))
    }

    /// Whether a limit was reached and nothing was sent; a later try may succeed.
    pub fn is_busy(&self) -> bool {
        matches!(*self.0, Kind::Busy { .. })
    }

    /// Whether the CLI request to answer is not open: it was answered before, the CLI withdrew it, or it never came.
    pub fn is_not_open(&self) -> bool {
        matches!(*self.0, Kind::NotOpen { .. })
    }

    /// Whether the CLI lacks a feature.
    pub fn is_unsupported(&self) -> bool {
        match &*self.0 {
            Kind::Unsupported { .. } => true,
            Kind::Refusal(refusal) => refusal.code.as_deref() == Some("unsupported_request"),
            _ => false,
        }
    }

    /// The CLI's error reply, if it rejected a request.
    pub fn as_refusal(&self) -> Option<&Refusal> {
        match &*self.0 {
            Kind::Refusal(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The error of the session store, if it failed while a session was resumed from it.
    pub fn as_store_error(&self) -> Option<&StoreError> {
        match &*self.0 {
            Kind::Store { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The error of the session's files, if the SDK could not take a lease or read a history because of it.
    pub fn as_files_error(&self) -> Option<&FilesError> {
        match &*self.0 {
            Kind::Files { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The lease problem, if another holder has the session; see [`Options::lease`](crate::Options::lease).
    pub fn as_lease_problem(&self) -> Option<&LeaseProblem> {
        match &*self.0 {
            Kind::Ended(end) => end.lease.as_ref(),
            _ => self.problem(),
        }
    }

    /// This error and its causes in one line.
    pub(crate) fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }

    /// How the process ended, if the error is about that.
    pub fn end(&self) -> Option<&End> {
        match &*self.0 {
            Kind::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// The exit of the process, if the error is about that.
    pub fn exit(&self) -> Option<Exit> {
        self.end()?.exit
    }

    /// The last lines of the process's stderr, if the error is about its end.
    pub fn stderr_tail(&self) -> Option<&str> {
        self.end().map(|end| end.stderr_tail.as_str())
    }

    /// The outcome of the turn that failed, or has no answer, or of the last failed turn before the process ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &*self.0 {
            Kind::TurnFailed(outcome) | Kind::Output { outcome, .. } => Some(outcome),
            Kind::Stalled { outcome, .. } => outcome.as_ref(),
            Kind::Ended(end) => end.last_error.as_ref(),
            _ => None,
        }
    }

    /// The outcome of a turn that stalled and was interrupted.
    pub(crate) fn outcome_of_stall(&self) -> Option<&Outcome> {
        match &*self.0 {
            Kind::Stalled { outcome, .. } => outcome.as_ref(),
            _ => None,
        }
    }

    /// The model's text, if it did not have the required shape.
    pub fn raw_output(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Output { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Why the process did not start or ended, or why the turn failed, as far as the evidence shows; `None` for other errors.
    pub fn cause(&self) -> Option<Cause> {
        match &*self.0 {
            Kind::Problem(problem) => problem.known_cause(),
            Kind::Spawn {
                program, cwd, source, ..
            } => Cause::of_spawn(program, cwd, source),
            Kind::Unsupported { .. } => Some(Cause::UnsupportedVersion),
            Kind::Ended(end) => end.cause.clone(),
            Kind::TurnFailed(outcome) => outcome.cause(),
            Kind::Stalled { phase, .. } if phase.is_in_all() => Some(Cause::DeadlinePassed),
            Kind::Output { outcome, .. } => Some(outcome.cause().unwrap_or(Cause::StructuredOutput)),
            _ => None,
        }
    }

    /// Whether the error is temporary, so that a later try may succeed: its [`cause`](Self::cause) [is
    /// transient](Cause::is_transient), a limit was reached ([`is_busy`](Self::is_busy)), or the model did not answer in time
    /// ([`stalled`](Self::stalled) in a turn).
    pub fn is_transient(&self) -> bool {
        let is_late = matches!(self.stalled(), Some(Phase::FirstToken | Phase::BetweenEvents));
        is_late || self.is_busy() || self.cause().is_some_and(|cause| cause.is_transient())
    }

    /// How long to wait before the next try, if the CLI reported it; see [`Outcome::retry_after`].
    pub fn retry_after(&self) -> Option<Duration> {
        match &*self.0 {
            Kind::TurnFailed(outcome) => outcome.retry_after(),
            Kind::Ended(end) => {
                let last = end.last_error.as_ref()?;
                // The process may have ended for something else since.
                (last.cause() == end.cause).then(|| last.retry_after())?
            }
            _ => None,
        }
    }

    /// What to do about the error, if that is known and not part of the message: the advice of the [`cause`](Self::cause), and of
    /// a few errors without one. It has the Rust names of options; [`explained`](Self::explained) replaces them.
    pub fn hint(&self) -> Option<&'static str> {
        if let Some(problem) = self.as_lease_problem() {
            return problem.hint();
        }
        match (&*self.0, self.cause()) {
            (Kind::Problem(problem), _) => problem.hint(),
            (_, Some(cause)) => Some(cause.advice()),
            (Kind::Spawn { .. }, None) => {
                Some("run `outrigger doctor` to see which CLI is found and why it does not start")
            }
            (Kind::Store { source, .. }, None) => Some(match source.kind() {
                StoreErrorKind::Failed => "see to the session store; trying again may help",
                StoreErrorKind::Damaged => {
                    "what is stored of the session can't be read: restore it, or import it anew from its files"
                }
                StoreErrorKind::NotFound => {
                    "sessions are filed under the working directory they ran in: look there, or import it from its files"
                }
                _ => "see what the session store says; it has to keep the contract of session stores",
            }),
            (Kind::Files { .. }, None) => {
                Some("look at the file that the error names, and at whether this user may read and write it")
            }
            (Kind::Busy { .. }, None) => Some("wait for what is open to be answered, then try again"),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Problem(problem) => problem.fmt(f),
            Kind::Invalid { what, .. } => write!(f, "invalid {what}"),
            Kind::Spawn { program, cwd, .. } => {
                write!(f, "could not start {} in {}", program.display(), cwd.display())
            }
            Kind::Timeout { what, after } => write!(f, "{what} took longer than {after:?}"),
            Kind::Stalled {
                phase,
                after,
                outcome,
            } => {
                write!(f, "{phase} took longer than {after:?}")?;
                match outcome {
                    Some(_) => f.write_str("; the turn was ended"),
                    None => Ok(()),
                }
            }
            Kind::Refusal(refusal) => {
                write!(f, "the CLI refused `{}`: {}", refusal.request, refusal.message)?;
                match &refusal.code {
                    Some(code) => write!(f, " [{code}]"),
                    None => Ok(()),
                }
            }
            Kind::Store { what, .. } => write!(f, "the session store failed: {what}"),
            Kind::Files { what, .. } => f.write_str(what),
            Kind::Unsupported { feature, capability } => {
                write!(
                    f,
                    "the CLI does not support {feature}: it lacks the capability `{capability}`"
                )
            }
            Kind::Misfit { what, .. } => write!(f, "unexpected shape of {what}"),
            Kind::Ended(end) => end.fmt(f),
            Kind::Closed => f.write_str("the session is closed"),
            Kind::Busy { what, limit } => write!(f, "too many {what}: the limit is {limit}"),
            Kind::NotOpen { id } => {
                write!(
                    f,
                    "no request `{id}` is open: it was answered or withdrawn, or never came"
                )
            }
            Kind::TurnFailed(outcome) => {
                let verdict = outcome.verdict();
                match verdict.cause() {
                    Some(Cause::TurnFailed(_)) => write!(f, "the turn {verdict}")?,
                    Some(cause) => write!(f, "the turn failed: {cause}")?,
                    None => write!(f, "the turn has no answer: {verdict}")?,
                }
                match outcome.error_text() {
                    // Of an interrupt the CLI has only notes for its own developers.
                    Some(said) if *verdict != Verdict::Interrupted => write!(f, ": {said}"),
                    _ => Ok(()),
                }
            }
            Kind::Output { reason, .. } => write!(f, "the output is not of the requested shape: {reason}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return fmt::Debug::fmt(&*self.0, f);
        }
        describe(f, self)?;
        match self.hint() {
            Some(hint) => write!(f, "\n\nHint: {hint}"),
            None => Ok(()),
        }
    }
}

/// An error and its causes for people, since `main` prints its error by `Debug`.
pub(crate) fn describe(f: &mut fmt::Formatter<'_>, error: &dyn StdError) -> fmt::Result {
    write!(f, "{error}")?;
    let mut said = error.to_string();
    let mut is_first = true;
    let mut source = error.source();
    while let Some(cause) = source {
        source = cause.source();
        let cause = cause.to_string();
        // Some say themselves what they come from.
        if said.contains(&cause) {
            continue;
        }
        let head = if is_first { "\n\nCaused by:" } else { "" };
        write!(f, "{head}\n    {cause}")?;
        (said, is_first) = (cause, false);
    }
    Ok(())
}

/// `Debug` for other errors that `main` may return.
macro_rules! debug_for_people {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::error::describe(f, self)
            }
        }
    };
}
pub(crate) use debug_for_people;

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &*self.0 {
            Kind::Spawn { source, .. } => Some(source),
            Kind::Store { source, .. } => Some(source),
            Kind::Files { source, .. } => Some(source),
            Kind::Problem(problem) => problem.source(),
            Kind::Invalid {
                source: Some(source), ..
            }
            | Kind::Misfit { source, .. } => Some(&**source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::{FindError, FoundBy, Unusable};
    use crate::options::OptionsError;
    use crate::outcome::{Around, Outcome};
    use crate::usage::TurnUsage;

    /// What `main` prints of its error.
    #[test]
    fn debug_is_for_people() {
        let missing = || {
            OptionsError::Cli(FindError::Unusable {
                path: "/opt/claude".into(),
                origin: FoundBy::Given,
                why: Unusable::Missing,
            })
        };
        let error = Error::of(missing());
        let shown = format!("{error:?}");
        assert!(
            shown.starts_with("the Claude Code CLI cannot be used\n\nCaused by:\n    cannot run /opt/claude"),
            "{shown}"
        );
        assert!(shown.contains("\n\nHint: install Claude Code"), "{shown}");
        assert!(format!("{error:#?}").starts_with("Problem("), "{error:#?}");
        // Those that carry it say the same.
        assert!(shown.starts_with(&format!("{:?}", missing())), "{:?}", missing());

        let line = r#"{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":529,"result":"API Error: 529 Overloaded"}"#;
        let frame = outrigger_protocol::Frame::from_line(line).remove(0);
        let outcome = Outcome::of_result(&frame, TurnUsage::default(), Vec::new(), &Around::default());
        assert_eq!(
            format!("{:?}", Error::turn_failed(outcome)),
            "the turn failed: the API answered 529: API Error: 529 Overloaded\n\n\
             Hint: the API is overloaded or failing; try again later"
        );
        // What is said already is not said again.
        let file = crate::permissions::PolicyFile {
            allow: vec!["Bash(".to_owned()],
            ..crate::permissions::PolicyFile::default()
        };
        let error = file.policy().unwrap_err();
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}
