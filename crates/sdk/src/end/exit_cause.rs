//! Why a process ended, by all that is known of its end.

use crate::cause::{Cause, WORDS, from_words};
use crate::outcome::Outcome;
use crate::peer::Exit;

/// What a program says when its JavaScript engine has no memory left, or gave up.
const LAST_WORDS: &[(&str, Cause)] = &[
    ("*JavaScript heap out of memory", Cause::OutOfHeap),
    ("*Bun ran out of memory", Cause::OutOfHeap),
    ("*Bun has run out of memory", Cause::OutOfHeap),
    ("RangeError: Out of memory", Cause::OutOfHeap),
    ("error: Out of memory", Cause::OutOfHeap),
    ("panic", Cause::Crashed { signal: None }),
    ("*Bun has crashed", Cause::Crashed { signal: None }),
    ("Segmentation fault", Cause::Crashed { signal: None }),
    ("Trace/breakpoint trap", Cause::Crashed { signal: None }),
];

/// What is known of an end.
#[derive(Debug, Default)]
pub(crate) struct Evidence<'a> {
    pub(crate) exit: Option<Exit>,
    pub(crate) stderr: &'a str,
    /// The last result, if it was an error.
    pub(crate) last_error: Option<&'a Outcome>,
    /// Whether this program ended it.
    pub(crate) by_us: bool,
    /// Whether this program ended the CLI by SIGKILL.
    pub(crate) killed_by_us: bool,
    /// Whether a turn ran or a prompt waited.
    pub(crate) mid_turn: bool,
    /// Whether the CLI wrote a frame.
    pub(crate) has_spoken: bool,
    /// Whether the system killed something for lack of memory where the process ran; `None` if that cannot be told.
    pub(crate) oom_killed: Option<bool>,
}

impl Cause {
    /// What the end of a process was caused by.
    pub(crate) fn of_end(evidence: &Evidence<'_>) -> Self {
        // A session that could not start says so most precisely, whoever ended the process then.
        if let Some(outcome) = evidence.last_error
            && outcome.is_failed_start()
        {
            return Self::of_failed(outcome);
        }
        let Some(exit) = evidence.exit else {
            return if evidence.by_us {
                Self::EndedByUs
            } else {
                Self::Unexplained
            };
        };
        // A shell in between reports a signal as 128 and its number, and so does the CLI itself of those that it catches.
        let caught = exit
            .code
            .filter(|code| (129..160).contains(code))
            .map(|code| code - 128);
        let signal = exit.signal.or(caught);
        if !exit.success()
            && let Some(cause) = from_words(LAST_WORDS, evidence.stderr)
        {
            return match cause {
                Self::Crashed { .. } => Self::Crashed { signal },
                other => other,
            };
        }
        match signal {
            Some(signal) if CRASHES.contains(&signal) => return Self::Crashed { signal: Some(signal) },
            Some(SIGKILL) if !evidence.killed_by_us => {
                return if evidence.oom_killed == Some(true) {
                    Self::OutOfMemory
                } else {
                    Self::Killed
                };
            }
            _ => {}
        }
        if evidence.by_us {
            return Self::EndedByUs;
        }
        match signal {
            Some(signal) => Self::Terminated { signal },
            None if exit.success() && evidence.mid_turn => Self::Truncated,
            None if exit.success() => Self::Unexplained,
            None => from_words(WORDS, evidence.stderr)
                .or_else(|| evidence.last_error.map(Self::of_failed))
                .unwrap_or(match exit.code {
                    // How a shell, `env`, `docker` and `ssh` say that what they were to start is not there, or cannot be started.
                    Some(126) if !evidence.has_spoken => Self::NotExecutable,
                    Some(127) if !evidence.has_spoken => Self::BinaryMissing,
                    _ => Self::Unexplained,
                }),
        }
    }

    /// What ended a turn that was no success.
    fn of_failed(outcome: &Outcome) -> Self {
        outcome
            .cause()
            .unwrap_or_else(|| Self::TurnFailed(outcome.verdict().name().to_owned()))
    }
}

const SIGKILL: i32 = 9;

/// Signals that a process brings upon itself. Their numbers differ between systems; these are meant by name.
#[cfg(unix)]
const CRASHES: &[i32] = &[
    rustix::process::Signal::ILL.as_raw(),
    rustix::process::Signal::TRAP.as_raw(),
    rustix::process::Signal::ABORT.as_raw(),
    rustix::process::Signal::BUS.as_raw(),
    rustix::process::Signal::FPE.as_raw(),
    rustix::process::Signal::SEGV.as_raw(),
    rustix::process::Signal::SYS.as_raw(),
];
#[cfg(not(unix))]
const CRASHES: &[i32] = &[4, 6, 8, 11];
