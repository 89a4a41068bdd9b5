//! A turn that is watched for the gate and for budgets.

use outrigger::{Answer, Event, Outcome, Result, Turn};

use crate::budget::{Exhausted, Reservation};
use crate::gate::Pass;

/// A turn with its [`Pass`], its [`Reservation`], or both.
///
/// The gate and the budget see the events as the program reads them. When the turn has ended, its place at the gate is free, and the
/// budget is charged. When this is dropped before, the turn runs on unwatched: its place is free, and the budget is charged with
/// all that is reserved.
#[derive(Debug)]
#[must_use = "the turn runs on unwatched when this is dropped"]
pub struct GuardedTurn {
    turn: Turn,
    /// Taken when the turn has ended.
    pass: Option<Pass>,
    reservation: Option<Reservation>,
    exhausted: Option<Exhausted>,
}

impl GuardedTurn {
    /// Wraps a turn.
    pub fn new(turn: Turn) -> Self {
        Self {
            turn,
            pass: None,
            reservation: None,
            exhausted: None,
        }
    }

    /// The pass that the turn has from the [`Gate`](crate::gate::Gate).
    pub fn pass(mut self, pass: Pass) -> Self {
        self.pass = Some(pass);
        self
    }

    /// What is reserved for the turn. If the turn exceeds a cap, it is interrupted.
    pub fn reservation(mut self, reservation: Reservation) -> Self {
        self.reservation = Some(reservation);
        self
    }

    /// The next event; see [`Turn::next`].
    ///
    /// When the event shows that a cap is exceeded, the turn is interrupted first, and [`exhausted`](Self::exhausted) says by which.
    ///
    /// # Errors
    /// Those of [`Turn::next`]; and of [`Turn::cancel`], when the interrupt fails.
    ///
    /// # Cancel safety
    /// No event is lost when the future is dropped, except the one whose interrupt is under way.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        let event = self.turn.next().await;
        match &event {
            Some(Ok(event)) => {
                if let Some(pass) = &self.pass {
                    pass.observe(event);
                }
                let exceeded = match &mut self.reservation {
                    Some(reservation) => reservation.observe(event).err(),
                    None => None,
                };
                if let Some(exceeded) = exceeded
                    && self.exhausted.is_none()
                {
                    self.exhausted = Some(exceeded);
                    if let Err(error) = self.turn.cancel().await {
                        return Some(Err(error));
                    }
                }
            }
            Some(Err(_)) => {}
            None => {
                if let Some(Ok(outcome)) = self.turn.watch().now() {
                    self.settle(&outcome);
                }
            }
        }
        event
    }

    /// The outcome; see [`Turn::outcome`]. Events that were not read are read first, and dropped.
    ///
    /// # Errors
    /// Those of [`Turn::outcome`] and of [`Turn::cancel`].
    ///
    /// # Cancel safety
    /// Call it again after the future was dropped; the turn goes on.
    pub async fn outcome(&mut self) -> Result<Outcome> {
        // An error that ends the events is the error of the outcome, too.
        while let Some(Ok(_)) = self.next().await {}
        let outcome = self.turn.outcome().await?;
        self.settle(&outcome);
        Ok(outcome)
    }

    /// The model's answer, or an error if the turn has none; see [`Turn::answer`].
    ///
    /// # Errors
    /// Those of [`Turn::answer`] and of [`Turn::cancel`].
    ///
    /// # Cancel safety
    /// Call it again after the future was dropped; the turn goes on.
    pub async fn answer(&mut self) -> Result<Answer> {
        self.outcome().await?.answer()
    }

    /// The cap that the turn exceeded, and was interrupted for.
    pub fn exhausted(&self) -> Option<&Exhausted> {
        self.exhausted.as_ref()
    }

    /// The turn.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    fn settle(&mut self, outcome: &Outcome) {
        if let Some(pass) = self.pass.take() {
            pass.finish(outcome);
        }
        if let Some(reservation) = self.reservation.take() {
            reservation.settle(outcome);
        }
    }
}
