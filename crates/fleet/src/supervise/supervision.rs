//! How a session is supervised: restarts, lost turns, rotation, a budget.

use std::sync::Arc;
use std::time::Duration;

use crate::budget::{Amount, Budget, Cap};
use crate::session_watch::SessionWatch;

/// How a session is supervised.
#[derive(Debug, Clone)]
pub struct Supervision {
    pub(super) restarts: usize,
    pub(super) within: Duration,
    pub(super) first: Duration,
    pub(super) longest: Duration,
    pub(super) after_loss: AfterLoss,
    pub(super) rotation: Option<Rotation>,
    pub(super) budget: Option<(Budget, Cap, Amount)>,
    pub(super) watch: Option<Arc<dyn SessionWatch>>,
}

/// What becomes of a turn whose process died. A prompt whose turn had not begun is sent again in any case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AfterLoss {
    /// The caller is told, by [`SuperviseError::Lost`](super::SuperviseError::Lost), and decides.
    #[default]
    Report,
    /// The prompt is sent again if no tool can have run; else the caller is told.
    Repeat,
    /// The prompt is sent again, whatever ran. What the tools did, they may do twice.
    RepeatAlways,
    /// This text is sent in the conversation that has the prompt. If no tool can have run, the prompt is sent again instead.
    GoOn(String),
}

impl AfterLoss {
    /// [`GoOn`](Self::GoOn) with a text of this crate.
    pub fn go_on() -> Self {
        Self::GoOn(
            "Your last turn broke off because its process ended. The tools that you called before may have run; their results are above, \
             as far as they came. Check what is done already, do not do it again, and finish the task."
                .to_owned(),
        )
    }
}

/// When a conversation has become too much, and what happens then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    pub(super) tokens: Option<u64>,
    pub(super) age: Option<Duration>,
    pub(super) how: How,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    Compact,
    HandOver(String),
}

impl Rotation {
    /// Compacts the conversation, as `/compact` does. It stays the same session.
    pub fn compact() -> Self {
        Self {
            tokens: None,
            age: None,
            how: How::Compact,
        }
    }

    /// Has the model summarize the conversation, and goes on in a new one, whose first prompt begins with the summary.
    pub fn hand_over() -> Self {
        let request = "This conversation ends here, and another one goes on with your summary alone. Write down what it needs: the task, \
                       what is decided and done, what is left, and names of files and commands.";
        Self::compact().asking(request)
    }

    /// [`hand_over`](Self::hand_over), with another request for the summary.
    pub fn asking(mut self, request: impl Into<String>) -> Self {
        self.how = How::HandOver(request.into());
        self
    }

    /// When the context has more tokens than this, by the CLI's own estimate. It is looked at before each turn.
    pub fn above_tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// When this process of the program has used the conversation for longer.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            restarts: 5,
            within: Duration::from_secs(600),
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            after_loss: AfterLoss::default(),
            rotation: None,
            budget: None,
            watch: None,
        }
    }
}

impl Supervision {
    /// The defaults: at most 5 deaths in 10 minutes, waits from 1 s to 1 min between them, lost turns are reported, no rotation.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often the process may die within a time. Once more, and the session is given up: see [`SuperviseError::GaveUp`](super::SuperviseError::GaveUp).
    pub fn restarts(mut self, restarts: usize, within: Duration) -> Self {
        (self.restarts, self.within) = (restarts, within);
        self
    }

    /// The wait before the first restart, and the longest. It doubles with each death within the time of [`restarts`](Self::restarts).
    pub fn delays(mut self, first: Duration, longest: Duration) -> Self {
        (self.first, self.longest) = (first, longest);
        self
    }

    /// What becomes of a turn whose process died.
    pub fn after_loss(mut self, then: AfterLoss) -> Self {
        self.after_loss = then;
        self
    }

    /// When a conversation has become too much.
    pub fn rotate(mut self, rotation: Rotation) -> Self {
        self.rotation = Some(rotation);
        self
    }

    /// What the session may spend over all its processes, and over all programs that use its [`IdStore`](super::IdStore): a budget of its name, below another one.
    /// Each turn reserves an amount of it, those of a rotation and those that are repeated too, and is interrupted at a cap
    /// ([`SuperviseError::Budget`](super::SuperviseError::Budget)).
    ///
    /// What earlier programs spent counts, unless the budget has it already by [`Budget::restore`]. A program that is killed in a turn is charged with
    /// what was reserved. A daily cap takes what earlier programs spent for spent today, unless it was restored.
    pub fn budget(mut self, above: &Budget, cap: Cap, reserve: Amount) -> Self {
        self.budget = Some((above.clone(), cap, reserve));
        self
    }

    /// Sees each process of the session: for telemetry.
    pub fn watch(mut self, watch: impl SessionWatch) -> Self {
        self.watch = Some(Arc::new(watch));
        self
    }

    pub(super) fn wait(&self, deaths: usize) -> Duration {
        let doublings = u32::try_from(deaths.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}
