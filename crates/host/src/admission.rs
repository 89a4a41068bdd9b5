//! Whether a turn may begin: the budget and the gate that all sessions of a host share.

use std::sync::Arc;
use std::time::Duration;

use outrigger::SessionId;
use outrigger_fleet::budget::{Amount, Budget, Exhausted, Reservation};
use outrigger_fleet::gate::{Gate, Pass, Visitor};
use serde_json::json;
use tokio::sync::watch;

use crate::error::{HostError, Result};
use crate::log::{NewEvent, SqliteLog, Write};

/// How often a turn that an exhausted budget holds up asks again: a day may have ended, or other turns may have used less than they reserved.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// A budget, and what each turn reserves of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnBudget {
    /// The budget. Its caps hold for all sessions together.
    pub budget: Budget,
    /// What a turn reserves. A turn that exceeds a cap is interrupted.
    pub reserve: Amount,
}

impl TurnBudget {
    /// This budget, of which each turn reserves so much.
    pub fn new(budget: Budget, reserve: Amount) -> Self {
        Self { budget, reserve }
    }
}

/// What a turn has while it runs.
#[derive(Debug, Default)]
pub(crate) struct Granted {
    pub(crate) pass: Option<Pass>,
    pub(crate) reservation: UnusedReservation,
}

/// What is reserved for a turn that has not begun. Dropped, it is free again: a reservation by itself would be charged.
#[derive(Debug, Default)]
pub(crate) struct UnusedReservation(Option<Reservation>);

impl UnusedReservation {
    /// The turn begins.
    pub(crate) fn take(mut self) -> Option<Reservation> {
        self.0.take()
    }
}

impl Drop for UnusedReservation {
    fn drop(&mut self) {
        if let Some(reservation) = self.0.take() {
            reservation.release();
        }
    }
}

/// The turns that run, of all sessions of a host, and whether another one may begin.
#[derive(Debug, Default)]
pub(crate) struct Turns(watch::Sender<RunningTurns>);

#[derive(Debug, Default)]
struct RunningTurns {
    count: usize,
    is_draining: bool,
}

impl Turns {
    /// A turn that begins now; `None` if none may begin any more.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<RunningTurn> {
        let begins = self.0.send_if_modified(|running| {
            running.count += usize::from(!running.is_draining);
            !running.is_draining
        });
        begins.then(|| RunningTurn(Arc::clone(self)))
    }

    /// Work that goes on without a prompt: nobody asked whether it may.
    pub(crate) fn join(self: &Arc<Self>) -> RunningTurn {
        self.0.send_modify(|running| running.count += 1);
        RunningTurn(Arc::clone(self))
    }

    /// Lets no turn begin any more, and waits for the end of those that run.
    pub(crate) async fn drain(&self) {
        self.0.send_modify(|running| running.is_draining = true);
        // Its sender is this.
        drop(self.0.subscribe().wait_for(|running| running.count == 0).await);
    }
}

/// A turn that runs. Dropped, it has ended.
#[derive(Debug)]
pub(crate) struct RunningTurn(Arc<Turns>);

impl Drop for RunningTurn {
    fn drop(&mut self) {
        self.0.0.send_modify(|running| running.count -= 1);
    }
}

/// Turns that wait for the budget, in the order in which they asked. Whoever has the lock is next.
pub(crate) type BudgetQueue = Arc<tokio::sync::Mutex<()>>;

/// Reserves for a turn as soon as something is left and no turn that asked before waits. `tell` is called once if the turn has to wait because nothing is left.
async fn reserve_in_order(
    budget: &Budget,
    amount: Amount,
    queue: &BudgetQueue,
    tell: impl AsyncFnOnce(Exhausted) -> Result<(), String>,
) -> Result<UnusedReservation, String> {
    let mut next = queue.try_lock().ok();
    let mut tell = Some(tell);
    loop {
        match budget.reserve(amount) {
            Ok(reservation) if next.is_some() => return Ok(UnusedReservation(Some(reservation))),
            Ok(reservation) => reservation.release(),
            Err(exhausted) => {
                if let Some(tell) = tell.take() {
                    tell(exhausted).await?;
                }
            }
        }
        match next {
            Some(_) => tokio::time::sleep(ASK_AGAIN).await,
            None => next = Some(queue.lock().await),
        }
    }
}

/// Waits until a turn may begin, for as long as it takes: a usage limit may last for hours, and a budget for a day. Ends when it is dropped.
pub(crate) async fn wait_for_turn(
    gate: Option<Gate>,
    budget: Option<TurnBudget>,
    queue: BudgetQueue,
    log: Arc<SqliteLog>,
    session: SessionId,
    model: Option<String>,
) -> Result<Granted, String> {
    let mut granted = Granted::default();
    if let Some(TurnBudget { budget, reserve }) = budget {
        let tell = async |exhausted: Exhausted| {
            let payload = json!({"type": "budget_exhausted", "error": exhausted.to_string()});
            let event = NewEvent::host("budget_exhausted", payload);
            let told: Result<_, HostError> = log.write(&session, vec![Write::Append(event)]).await;
            told.map(drop).map_err(|error| error.to_string())
        };
        granted.reservation = reserve_in_order(&budget, reserve, &queue, tell).await?;
    }
    if let Some(gate) = gate {
        let mut visitor = Visitor::new(session.as_str());
        if let Some(model) = model {
            visitor = visitor.model(model);
        }
        granted.pass = Some(gate.enter(visitor).await.map_err(|error| error.to_string())?);
    }
    Ok(granted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::Mutex;

    use outrigger_fleet::budget::Cap;

    use super::*;

    fn tokens(tokens: u64) -> Amount {
        Amount {
            tokens,
            ..Amount::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn turns_get_what_is_left_of_the_budget_in_the_order_in_which_they_asked() {
        let budget = Budget::new("host", Cap::tokens(10));
        let queue = BudgetQueue::default();
        let running = budget.reserve(tokens(10)).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut turns = tokio::task::JoinSet::new();
        for turn in 0..5 {
            let (budget, queue, order) = (budget.clone(), queue.clone(), Arc::clone(&order));
            turns.spawn(async move {
                let told = Arc::clone(&order);
                let tell = async move |_| {
                    told.lock().unwrap().push(format!("{turn} waits"));
                    Ok(())
                };
                let reserved = reserve_in_order(&budget, tokens(10), &queue, tell).await.unwrap();
                order.lock().unwrap().push(format!("{turn} begins"));
                // The next one asks at another moment than those of before.
                tokio::time::sleep(Duration::from_millis(1700)).await;
                drop(reserved);
            });
            tokio::time::sleep(Duration::from_millis(900)).await;
        }
        running.release();
        while turns.join_next().await.is_some() {}
        let expected: Vec<_> = ["waits", "begins"]
            .iter()
            .flat_map(|what| (0..5).map(move |turn| format!("{turn} {what}")))
            .collect();
        assert_eq!(*order.lock().unwrap(), expected);
        assert_eq!(
            (budget.reserved(), budget.spent()),
            (Amount::default(), Amount::default()),
            "no turn has begun"
        );
    }
}
