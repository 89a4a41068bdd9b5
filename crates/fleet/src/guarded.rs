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
    /// Whether the turn was interrupted for that. Not before the interrupt has succeeded, so that it is sent again.
    interrupted: bool,
    /// The event that waits for the interrupt.
    held: Option<Event>,
}

impl GuardedTurn {
    /// Wraps a turn.
    pub fn new(turn: Turn) -> Self {
        Self {
            turn,
            pass: None,
            reservation: None,
            exhausted: None,
            interrupted: false,
            held: None,
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
    /// No event is lost when the future is dropped. An interrupt that was under way is sent again by the next call.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        if self.held.is_none() {
            match self.turn.next().await {
                Some(Ok(event)) => {
                    self.observe(&event);
                    self.held = Some(event);
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    if let Some(Ok(outcome)) = self.turn.watch().now() {
                        self.settle(&outcome);
                    }
                    return None;
                }
            }
        }
        if self.exhausted.is_some() && !self.interrupted {
            // The error of a session that has ended comes last.
            if let Err(error) = self.turn.cancel().await
                && !error.is_closed()
            {
                return Some(Err(error));
            }
            self.interrupted = true;
        }
        self.held.take().map(Ok)
    }

    fn observe(&mut self, event: &Event) {
        if let Some(pass) = &self.pass {
            pass.observe(event);
        }
        if let Some(reservation) = &mut self.reservation
            && let Err(exhausted) = reservation.observe(event)
            && self.exhausted.is_none()
        {
            self.exhausted = Some(exhausted);
        }
    }

    /// The outcome; see [`Turn::outcome`]. Events that were not read are read first, and dropped.
    ///
    /// # Errors
    /// Those of [`Turn::outcome`] and of [`Turn::cancel`]. If a cap is [exceeded](Self::exhausted) then, the turn may still run and spend:
    /// [kill](outrigger::Session::kill) the session.
    ///
    /// # Cancel safety
    /// Call it again after the future was dropped; the turn goes on.
    pub async fn outcome(&mut self) -> Result<Outcome> {
        while let Some(event) = self.next().await {
            if let Err(error) = event {
                // A turn that cannot be interrupted must not be waited for as if it were.
                match self.exhausted.is_some() && !self.interrupted {
                    true => return Err(error),
                    false => break,
                }
            }
        }
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
