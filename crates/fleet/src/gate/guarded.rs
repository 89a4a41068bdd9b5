//! A turn whose events the gate sees.

use outrigger::{Answer, Event, Outcome, Result, Turn};

use super::Pass;

/// A turn with its [`Pass`]. The place at the gate is free when the turn has ended, or when this is dropped.
#[derive(Debug)]
#[must_use = "the turn runs on unwatched when this is dropped"]
pub struct GuardedTurn {
    turn: Turn,
    /// Taken when the turn has ended.
    pass: Option<Pass>,
}

impl GuardedTurn {
    pub(super) fn new(pass: Pass, turn: Turn) -> Self {
        Self {
            turn,
            pass: Some(pass),
        }
    }

    /// The next event; see [`Turn::next`].
    ///
    /// # Errors
    /// Those of [`Turn::next`].
    ///
    /// # Cancel safety
    /// No event is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        let event = self.turn.next().await;
        match (&event, &self.pass) {
            (Some(Ok(event)), Some(pass)) => pass.observe(event),
            (Some(_), _) => {}
            (None, _) => self.settle(),
        }
        event
    }

    /// The outcome; see [`Turn::outcome`]. Events that were not read are read on the way, and dropped.
    ///
    /// # Errors
    /// Those of [`Turn::outcome`].
    ///
    /// # Cancel safety
    /// Call it again after the future was dropped; the turn goes on.
    pub async fn outcome(&mut self) -> Result<Outcome> {
        // An error that ends the events is the error of the outcome, too.
        while let Some(Ok(_)) = self.next().await {}
        let outcome = self.turn.outcome().await;
        if let Some(pass) = self.pass.take()
            && let Ok(outcome) = &outcome
        {
            pass.finish(outcome);
        }
        outcome
    }

    /// The model's answer, or an error if the turn has none; see [`Turn::answer`].
    ///
    /// # Errors
    /// Those of [`Turn::answer`].
    ///
    /// # Cancel safety
    /// Call it again after the future was dropped; the turn goes on.
    pub async fn answer(&mut self) -> Result<Answer> {
        self.outcome().await?;
        self.turn.answer().await
    }

    /// The turn.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    /// The events are over, so the outcome is known already.
    fn settle(&mut self) {
        if let Some(Ok(outcome)) = self.turn.watch().now()
            && let Some(pass) = self.pass.take()
        {
            pass.finish(&outcome);
        }
    }
}
