//! A session that the editor knows, but whose CLI is still starting.

use std::collections::VecDeque;

use agent_client_protocol::Error;
use futures_util::future::BoxFuture;
use outrigger::Session;
use tokio::sync::mpsc;

use super::{CancelBell, ORDERS, Order, Stop};
use crate::error;

/// Starts the CLI, each time that it is called.
pub(crate) type Start = Box<dyn FnMut() -> BoxFuture<'static, Result<Session, Error>> + Send>;

/// Waits for the CLI. Returns it with the orders that came meanwhile; `None` if the session was closed before.
///
/// If the start fails, all waiting orders get the error, and the next order starts the CLI again.
pub(crate) async fn arrival(
    mut start: Start,
    orders: &mut mpsc::Receiver<Order>,
    cancel: &CancelBell,
    stop: &Stop,
) -> Option<(Session, VecDeque<Order>)> {
    let mut waiting = VecDeque::new();
    loop {
        let mut starting = start();
        let failed = loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return gone(waiting, None),
                rung = cancel.rung() => if rung.all { cancelled(&mut waiting) },
                order = orders.recv() => match order {
                    // A process that was started ends when it is dropped.
                    None => return gone(waiting, None),
                    Some(Order::Close(done)) => {
                        drop(starting);
                        return gone(waiting, Some(done));
                    }
                    Some(Order::Cancel) => cancelled(&mut waiting),
                    // No subagent works yet.
                    Some(Order::CancelAgent(_)) => {}
                    Some(order) if waiting.len() == ORDERS => order.refuse(error::internal(format!(
                        "the session is still starting, and {ORDERS} requests wait already; wait for some of them to be answered"
                    ))),
                    Some(order) => waiting.push_back(order),
                },
                session = &mut starting => match session {
                    Ok(session) => return Some((session, waiting)),
                    Err(error) => break error,
                },
            }
        };
        tracing::warn!(%failed, "the CLI of a session did not come");
        waiting.drain(..).for_each(|order| order.refuse(failed.clone()));
        // Now no order waits.
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                _ = cancel.rung() => {}
                order = orders.recv() => match order {
                    None => return None,
                    Some(Order::Close(done)) => return gone(waiting, Some(done)),
                    Some(Order::Cancel | Order::CancelAgent(_)) => {}
                    Some(order) => {
                        waiting.push_back(order);
                        break;
                    }
                },
            }
        }
    }
}

/// Cancels the waiting prompts. Other orders stay.
fn cancelled(waiting: &mut VecDeque<Order>) {
    for order in std::mem::take(waiting) {
        match order {
            Order::Prompt { answer, .. } => answer.cancel(),
            order => waiting.push_back(order),
        }
    }
}

fn gone(
    mut waiting: VecDeque<Order>,
    done: Option<tokio::sync::oneshot::Sender<()>>,
) -> Option<(Session, VecDeque<Order>)> {
    cancelled(&mut waiting);
    for order in waiting {
        order.refuse(error::internal("the session was closed"));
    }
    if let Some(done) = done {
        // The caller may have gone.
        let _ = done.send(());
    }
    None
}
