//! How a session's process ended, with the evidence.

mod exit_cause;

use std::fmt;

pub(crate) use self::exit_cause::Evidence;
use crate::cause::Cause;
use crate::outcome::Outcome;
use crate::ownership::LeaseProblem;
use crate::peer::Exit;
use crate::phase::Phase;

/// How much of stderr an error shows; the whole tail is in [`End::stderr_tail`].
const SHOWN_LINES: usize = 5;
const SHOWN_BYTES: usize = 600;

/// How the session's process ended.
///
/// `Display` is one sentence: the exit, the cause or the reason, the text of the last failed result, and the last lines of stderr.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct End {
    /// The exit, if the SDK could observe it.
    pub exit: Option<Exit>,
    /// Why the session ended, by all the evidence. `None` only if no session observed the end.
    pub cause: Option<Cause>,
    /// The last lines of its stderr. Secrets of the launch, and text that looks like a key, are redacted.
    pub stderr_tail: String,
    /// The text of the last `result` if it was an error: an exit with code 1 only repeats it.
    pub last_error: Option<Outcome>,
    /// Why the SDK ended the process, if it did.
    pub reason: Option<String>,
    /// The phase that stalled, if the SDK ended the process for that.
    pub stalled: Option<Phase>,
    /// How the session's lease was lost, if it was ([`Options::lease`](crate::Options::lease)).
    pub lease: Option<LeaseProblem>,
    /// The kinds of the last frames of the CLI, the oldest first, at most 16 notes; without their contents.
    pub last_frames: Vec<FrameNote>,
    /// Whether a turn was running, or a prompt was waiting for one.
    pub mid_turn: bool,
}

/// Consecutive frames of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameNote {
    /// The `type` of the frames.
    pub kind: String,
    /// The `subtype` of the frames; empty if they have none.
    pub subtype: String,
    /// The number of frames.
    pub count: u64,
    /// How many bytes the frames have.
    pub bytes: u64,
}

impl fmt::Display for FrameNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.kind.is_empty() { "?" } else { &self.kind })?;
        if !self.subtype.is_empty() {
            write!(f, "/{}", self.subtype)?;
        }
        if self.count > 1 {
            write!(f, " ×{}", self.count)?;
        }
        write!(f, " ({} B)", self.bytes)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exit {
            Some(exit) => write!(f, "the CLI ended with {exit}")?,
            None => f.write_str("the session ended")?,
        }
        // What was done on purpose explains itself.
        let cause = match (&self.reason, &self.cause) {
            (Some(reason), _) => {
                write!(f, ": {reason}")?;
                None
            }
            (None, Some(Cause::Unexplained) | None) => None,
            (None, Some(cause)) => {
                write!(f, ": {cause}")?;
                Some(cause)
            }
        };
        if let Some(outcome) = &self.last_error {
            f.write_str("; its last result")?;
            // Not the same twice.
            if cause.is_none() || cause != outcome.verdict().cause() {
                write!(f, ": {}", outcome.verdict())?;
            }
            if let Some(said) = outcome.error_text() {
                write!(f, ": {said}")?;
            }
        }
        let stderr = last_lines(&self.stderr_tail);
        // The result of a session that could not start repeats what stderr says.
        let repeated = |outcome: &Outcome| outcome.errors().iter().any(|error| error.trim() == stderr);
        if !stderr.is_empty() && !self.last_error.as_ref().is_some_and(repeated) {
            let cut = if stderr.len() < self.stderr_tail.trim().len() {
                "… "
            } else {
                ""
            };
            write!(f, "; stderr: {cut}{stderr}")?;
        }
        Ok(())
    }
}

/// The last few lines, shortened.
fn last_lines(text: &str) -> &str {
    let text = text.trim();
    let from_lines = text
        .rmatch_indices('\n')
        .nth(SHOWN_LINES - 1)
        .map_or(0, |(at, _)| at + 1);
    let mut from = from_lines.max(text.len().saturating_sub(SHOWN_BYTES));
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_in_short() {
        let mut end = End {
            exit: Some(Exit::with_code(7)),
            cause: Some(Cause::Unexplained),
            stderr_tail: "it broke\n".to_owned(),
            ..End::default()
        };
        assert_eq!(
            end.to_string(),
            "the CLI ended with exit code 7; stderr: it broke"
        );
        end.cause = Some(Cause::Truncated);
        end.stderr_tail = (0..9).map(|n| format!("line {n}\n")).collect();
        assert_eq!(
            end.to_string(),
            "the CLI ended with exit code 7: it ended in the middle of a turn, without a result; \
             stderr: … line 4\nline 5\nline 6\nline 7\nline 8"
        );
        end.stderr_tail = "é".repeat(100_000);
        assert!(end.to_string().len() < 2 * SHOWN_BYTES);
        end.reason = Some("it was closed".to_owned());
        end.stderr_tail.clear();
        assert_eq!(end.to_string(), "the CLI ended with exit code 7: it was closed");
        assert_eq!(End::default().to_string(), "the session ended");
    }
}
