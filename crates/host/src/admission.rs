//! Whether a turn may begin: the budget and the gate that all sessions of a host share.

use std::sync::Arc;
use std::time::Duration;

use outrigger::SessionId;
use outrigger_fleet::budget::{Amount, Budget, Reservation};
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
    pub(crate) reservation: Option<Reservation>,
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

/// Waits until a turn may begin, for as long as it takes: a usage limit may last for hours, and a budget for a day. Ends when it is dropped.
pub(crate) async fn wait_for_turn(
    gate: Option<Gate>,
    budget: Option<TurnBudget>,
    log: Arc<SqliteLog>,
    session: SessionId,
    model: Option<String>,
) -> Result<Granted, String> {
    let mut granted = Granted::default();
    if let Some(TurnBudget { budget, reserve }) = budget {
        let mut is_told = false;
        granted.reservation = loop {
            match budget.reserve(reserve) {
                Ok(reservation) => break Some(reservation),
                Err(exhausted) if !is_told => {
                    is_told = true;
                    let payload = json!({"type": "budget_exhausted", "error": exhausted.to_string()});
                    let event = NewEvent::host("budget_exhausted", payload);
                    let told: Result<_, HostError> = log.write(&session, vec![Write::Append(event)]).await;
                    told.map_err(|error| error.to_string())?;
                }
                Err(_) => {}
            }
            tokio::time::sleep(ASK_AGAIN).await;
        };
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
