//! Repeats turns that failed for a cause that passes.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use outrigger_protocol::Message;
use tokio::time::{Instant, sleep_until};

use crate::answer::Answer;
use crate::deadline::after;
use crate::error::{Error, Result};
use crate::event::{BlockKind, Event};
use crate::outcome::Outcome;
use crate::prompt::Prompt;
use crate::session::{Session, Turn};

/// How turns are repeated that failed for a cause that passes ([`Error::is_transient`]); see [`Session::prompt_retrying`].
///
/// By default there are 4 tries within 30 minutes. The first wait is 5 seconds at most, each further one twice as long, up to 5
/// minutes; a random part of it is left out, so that many sessions do not come back at once. If the CLI reports when to try again
/// ([`Error::retry_after`]), the wait is as long at least. If that is later than the time in all allows, the turn is not repeated. The CLI
/// has retried its requests to the API by itself before a turn fails.
///
/// A turn is not repeated if a tool may have run in it, unless [`after_tools`](Self::after_tools) says so.
#[derive(Debug, Clone)]
pub struct Retry {
    tries: u32,
    first: Duration,
    longest: Duration,
    within: Duration,
    after_tools: AfterTools,
}

/// What happens after a try in which a tool may have run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AfterTools {
    /// The turn is not repeated.
    #[default]
    Stop,
    /// The next try sends this text in place of the prompt. It should say that the last turn broke off, and that its work counts.
    GoOn(String),
    /// The next try sends the prompt again. What the tools did, they may do twice.
    Repeat,
}

impl AfterTools {
    /// [`GoOn`](Self::GoOn) with a text of the SDK.
    pub fn go_on() -> Self {
        Self::GoOn(
            "Your last turn broke off because of a failure outside of this conversation. The tools that you called before have run; \
             their results are above, as far as they came. Check what is done already, do not do it again, and finish the task."
                .to_owned(),
        )
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            tries: 4,
            first: Duration::from_secs(5),
            longest: Duration::from_secs(300),
            within: Duration::from_secs(1800),
            after_tools: AfterTools::Stop,
        }
    }
}

impl Retry {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often the turn is tried in all, the first try included.
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// The longest first wait, and the longest wait.
    pub fn delays(mut self, first: Duration, longest: Duration) -> Self {
        (self.first, self.longest) = (first, longest);
        self
    }

    /// How long after the call of [`Session::prompt_retrying`] a try may begin at the latest.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = time;
        self
    }

    /// What happens after a try in which a tool may have run.
    pub fn after_tools(mut self, then: AfterTools) -> Self {
        self.after_tools = then;
        self
    }

    /// How long to wait after `failed` tries, the first of which began `spent` ago; `None` if no other try may follow. `retry_after` is
    /// what the failure reports ([`Error::retry_after`]). A random part of the wait differs each time.
    ///
    /// This is for programs that repeat turns by themselves. Whether a failure passes, and whether tools ran, is theirs to judge:
    /// [`Error::is_transient`], [`Event::may_run_tools`], [`after_tools`](Self::after_tools).
    pub fn next_wait(&self, failed: u32, spent: Duration, retry_after: Option<Duration>) -> Option<Duration> {
        if failed >= self.tries {
            return None;
        }
        // What hash maps draw is chance enough.
        let part = u32::try_from(RandomState::new().hash_one(()) % 1024).unwrap_or_default();
        let wait = self.wait(failed, retry_after, part);
        (spent.checked_add(wait)? <= self.within).then_some(wait)
    }

    /// What happens after a try in which a tool may have run.
    pub fn rule_after_tools(&self) -> &AfterTools {
        &self.after_tools
    }

    /// How long to wait after so many failed tries. `part` of 1024 says how much of the second half counts.
    fn wait(&self, failed: u32, retry_after: Option<Duration>, part: u32) -> Duration {
        let factor = 1_u32.checked_shl(failed.saturating_sub(1)).unwrap_or(u32::MAX);
        let whole = self.first.saturating_mul(factor).min(self.longest);
        let chosen = (whole / 2).saturating_add(whole / 2048 * part);
        match retry_after {
            // All that wait for one limit would come back at once.
            Some(at_least) => at_least.saturating_add(chosen.min(self.first)).max(chosen),
            None => chosen,
        }
    }
}

/// A try that failed, and is followed by another.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FailedTry {
    /// Why the attempt failed. [`Error::outcome`] has the usage of the attempt.
    pub error: Error,
    /// How long the SDK waits before the next.
    pub wait: Duration,
    /// Whether a tool may have run.
    pub tools: bool,
}

/// What happens while a turn is tried.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RetryEvent {
    /// An event of the current try.
    Event(Event),
    /// The try has failed; the next begins after a wait. What it emitted does not count as an answer.
    Failed(FailedTry),
}

impl Session {
    /// Sends a prompt as [`prompt`](Self::prompt) does, and repeats its turn if it fails for a cause that passes.
    ///
    /// ```no_run
    /// # async fn example(session: outrigger::Session) -> outrigger::Result<()> {
    /// use outrigger::{AfterTools, Retry};
    ///
    /// let retry = Retry::new().tries(3).after_tools(AfterTools::go_on());
    /// let answer = session.prompt_retrying("Summarize the log", retry).await?.answer().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// As [`prompt`](Self::prompt).
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub async fn prompt_retrying(&self, prompt: impl Into<Prompt>, retry: Retry) -> Result<Retrying> {
        let prompt = prompt.into();
        // A command may run anything by itself.
        let tools = prompt.command_name().is_some();
        let turn = self.prompt(prompt.clone()).await?;
        Ok(Retrying {
            session: self.clone(),
            prompt: prompt.without_id(),
            began: Instant::now(),
            retry,
            stage: RetryStage::Turn(Box::new(turn)),
            tools,
            used_tools: tools,
            failed: Vec::new(),
        })
    }
}

/// A turn that is repeated if it fails for a cause that passes, from [`Session::prompt_retrying`].
///
/// Dropping it lets a turn run on that has begun, and begins no other.
#[derive(Debug)]
#[must_use = "no try follows when this is dropped"]
pub struct Retrying {
    session: Session,
    prompt: Prompt,
    retry: Retry,
    began: Instant,
    stage: RetryStage,
    /// A tool may have run in the current try.
    tools: bool,
    /// A tool may have run in any.
    used_tools: bool,
    failed: Vec<FailedTry>,
}

#[derive(Debug)]
enum RetryStage {
    Turn(Box<Turn>),
    /// The next try begins then.
    Waits(Instant),
    Over(Result<Outcome>),
}

impl Retrying {
    /// What happens next; `None` when the last try has ended, for [`outcome`](Self::outcome) to tell how.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was not returned is returned by the next call. No try begins while nobody waits for this.
    pub async fn next(&mut self) -> Option<RetryEvent> {
        loop {
            match &mut self.stage {
                RetryStage::Over(_) => return None,
                RetryStage::Waits(until) => {
                    sleep_until(*until).await;
                    let prompt = match &self.retry.after_tools {
                        AfterTools::GoOn(text) if self.used_tools => Prompt::text(text.clone()),
                        _ => self.prompt.clone(),
                    };
                    self.tools = prompt.command_name().is_some();
                    self.stage = match self.session.prompt(prompt).await {
                        Ok(turn) => RetryStage::Turn(Box::new(turn)),
                        Err(error) => RetryStage::Over(Err(error)),
                    };
                }
                RetryStage::Turn(turn) => {
                    if let Some(Ok(event)) = turn.next().await {
                        self.tools |= event.may_run_tools();
                        return Some(RetryEvent::Event(event));
                    }
                    let ended = turn.outcome().await;
                    self.used_tools |= self.tools;
                    if let Some(failed) = self.next_try(&ended) {
                        self.stage = RetryStage::Waits(after(failed.wait));
                        self.failed.push(failed.clone());
                        return Some(RetryEvent::Failed(failed));
                    }
                    self.stage = RetryStage::Over(ended);
                }
            }
        }
    }

    /// Waits for the end of the last try, and returns how it ended. Events that were not read are dropped.
    ///
    /// # Cancel safety
    /// As [`next`](Self::next), except for the events that were dropped. The outcome stays; another call returns it.
    ///
    /// # Errors
    /// As [`Turn::outcome`].
    pub async fn outcome(&mut self) -> Result<Outcome> {
        loop {
            if let RetryStage::Over(ended) = &self.stage {
                return ended.clone();
            }
            drop(self.next().await);
        }
    }

    /// Waits for the end of the last try, and returns its answer. Events that were not read are dropped.
    ///
    /// # Cancel safety
    /// As [`outcome`](Self::outcome).
    ///
    /// # Errors
    /// As [`Turn::answer`].
    pub async fn answer(&mut self) -> Result<Answer> {
        self.outcome().await?.answer()
    }

    /// The tries that failed so far and were followed by another.
    pub fn failed(&self) -> &[FailedTry] {
        &self.failed
    }

    /// The turn of the current try; `None` between tries, and after the last.
    pub fn turn(&self) -> Option<&Turn> {
        match &self.stage {
            RetryStage::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    /// Whether another try follows.
    fn next_try(&self, ended: &Result<Outcome>) -> Option<FailedTry> {
        let error = match ended {
            Ok(outcome) if outcome.is_transient() => Error::turn_failed(outcome.clone()),
            Ok(_) => return None,
            Err(error) => error.clone(),
        };
        let failed = u32::try_from(self.failed.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        let may = error.is_transient() && !error.is_closed();
        if !may || (self.used_tools && self.retry.after_tools == AfterTools::Stop) {
            return None;
        }
        let wait = self
            .retry
            .next_wait(failed, self.began.elapsed(), error.retry_after())?;
        Some(FailedTry {
            error,
            wait,
            tools: self.tools,
        })
    }
}

impl Event {
    /// Whether the event shows that a tool may have run in the turn, or may hide that one has.
    pub fn may_run_tools(&self) -> bool {
        match self {
            Self::MessageStart { .. }
            | Self::MessageStop { .. }
            | Self::Text(_)
            | Self::Thinking(_)
            | Self::ApiError { .. } => false,
            Self::ContentBlockStart { kind, .. } | Self::ContentBlockStop { kind, .. } => !matches!(
                kind,
                BlockKind::Text | BlockKind::Thinking | BlockKind::RedactedThinking
            ),
            Self::Block(block) => block.tag() != "redacted_thinking",
            Self::Message(message, _) => !matches!(
                **message,
                Message::System(_) | Message::RateLimitEvent(_) | Message::User(_)
            ),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u32 = 1023;

    #[test]
    fn waits_grow_to_a_bound_and_respect_what_the_cli_says() {
        let retry = Retry::new().delays(Duration::from_secs(4), Duration::from_secs(30));
        let secs = |failed, part| retry.wait(failed, None, part).as_secs_f64();
        for (failed, whole) in [
            (1, 4.0),
            (2, 8.0),
            (3, 16.0),
            (4, 30.0),
            (5, 30.0),
            (40, 30.0),
            (u32::MAX, 30.0),
        ] {
            assert!((secs(failed, 0) - whole / 2.0).abs() < 0.01, "{failed}");
            assert!(
                secs(failed, MAX) <= whole && secs(failed, MAX) > whole * 0.99,
                "{failed}"
            );
        }
        let told = Duration::from_secs(3600);
        for part in [0, MAX] {
            let wait = retry.wait(1, Some(told), part);
            assert!(wait > told && wait <= told + Duration::from_secs(4), "{wait:?}");
        }
        // What is longer anyway counts.
        assert!(retry.wait(9, Some(Duration::ZERO), MAX) > Duration::from_secs(29));
        // Nothing overflows.
        let endless = Retry::new().delays(Duration::MAX, Duration::MAX);
        assert!(endless.wait(u32::MAX, Some(Duration::MAX), MAX) == Duration::MAX);
    }
}
