//! The calls of a response: they run beside each other, and beside the rest of the response, as far as they may.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use serde_json::Value;
use tokio::sync::Notify;

use super::background;
use super::brain::CallResult;
use super::caller::{Caller, Company, Halt, Made, ModelCall};
use super::context::Abort;
use crate::running::Exit;

/// The calls of one response, in their order.
///
/// A call begins once those before it have begun, and while others run only if it and they may run beside others.
pub(super) struct Hands {
    caller: Arc<Caller>,
    work: Mutex<CallsAtWork>,
    /// Notified when one of the calls is over.
    over: Notify,
}

#[derive(Default)]
struct CallsAtWork {
    slots: Vec<Slot>,
    outcomes: Outcomes,
}

struct Slot {
    id: String,
    company: Company,
    state: CallState,
}

type CallEnd = Result<Made, Halt>;

enum CallState {
    Waiting(Box<ModelCall>),
    Running(Pin<Box<dyn Future<Output = CallEnd> + Send>>),
    Ended(CallEnd),
    /// What came of it is being written.
    Telling,
    Over,
}

/// What came of the calls.
#[derive(Default)]
pub(super) struct Outcomes {
    /// In the order in which they came.
    pub(super) results: Vec<CallResult>,
    /// Of several calls that are deferred the last one.
    pub(super) deferred: Option<Value>,
    /// Why some calls have no result.
    pub(super) why: Option<Abort>,
    /// The calls that have no result.
    pub(super) stopped: Vec<Stopped>,
}

/// A call that was stopped.
pub(super) struct Stopped {
    number: usize,
    pub(super) id: String,
    /// What the model reads behind the rejection.
    pub(super) more: &'static str,
    /// Whether the answer to its permission request stopped the turn.
    pub(super) by_answer: bool,
}

impl Hands {
    pub(super) fn new(caller: Arc<Caller>) -> Self {
        Self {
            caller,
            work: Mutex::default(),
            over: Notify::new(),
        }
    }

    fn work(&self) -> MutexGuard<'_, CallsAtWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over a call, which is made [beside](Self::beside) what goes on.
    pub(super) fn take(&self, call: ModelCall) {
        let slot = Slot {
            id: call.id.clone(),
            company: self.caller.company(&call),
            state: CallState::Waiting(Box::new(call)),
        };
        self.work().slots.push(slot);
    }

    /// Whether there are no calls.
    pub(super) fn are_empty(&self) -> bool {
        self.work().slots.is_empty()
    }

    /// Whether a call has begun.
    pub(super) fn are_busy(&self) -> bool {
        let work = self.work();
        work.slots
            .iter()
            .any(|slot| !matches!(slot.state, CallState::Waiting(_)))
    }

    /// Lets the calls and what they have started go on for a moment, without letting time pass.
    pub(super) async fn stir(&self) {
        let mut stirred = self.are_empty();
        poll_fn(|cx| {
            if std::mem::replace(&mut stirred, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Makes the calls while this goes on.
    pub(super) async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        let (mut work, mut calls) = (pin!(work), pin!(self.make()));
        poll_fn(|cx| {
            let done = work.as_mut().poll(cx);
            if done.is_pending() {
                let _ = calls.as_mut().poll(cx);
            }
            done
        })
        .await
    }

    /// What came of all calls, once they are over.
    pub(super) async fn finished(&self) -> Outcomes {
        loop {
            let abort = *self.caller.abort.borrow();
            {
                let mut work = self.work();
                let is_over = |slot: &Slot| match slot.state {
                    CallState::Over => true,
                    CallState::Waiting(_) => abort.is_some(),
                    _ => false,
                };
                if work.slots.iter().all(is_over) {
                    let slots = std::mem::take(&mut work.slots);
                    // Hooks are told in the order of the calls.
                    let place = |entry: &Value| slots.iter().position(|slot| entry["tool_use_id"] == slot.id);
                    self.caller.tally().batch.sort_by_key(place);
                    let mut outcomes = std::mem::take(&mut work.outcomes);
                    for (number, slot) in slots.into_iter().enumerate() {
                        if let CallState::Waiting(_) = slot.state {
                            outcomes.why = outcomes.why.or(abort);
                            outcomes.stop(number, slot.id, "", false);
                        }
                    }
                    // Each call gets a result, whatever has stopped it.
                    outcomes.stopped.sort_by_key(|stopped| stopped.number);
                    return outcomes;
                }
            }
            self.over.notified().await;
        }
    }

    async fn make(&self) {
        loop {
            let (number, ended) = poll_fn(|cx| self.poll(cx)).await;
            // The hooks of what waited for it are called before its result is written.
            self.caller.telling.send_replace(true);
            poll_fn(|cx| {
                self.begin(cx);
                Poll::Ready(())
            })
            .await;
            let halt = match ended {
                Ok(made) => {
                    self.caller.write(made.lines).await;
                    if *self.caller.ctx.terminating.borrow() {
                        self.caller.ctx.exit.send_replace(Some(Exit::Code(143)));
                        std::future::pending::<()>().await;
                    }
                    if let Some(slot) = self.work().slots.get(number) {
                        background::launched(&self.caller.ctx, &slot.id);
                    }
                    self.caller.send_stop().await;
                    self.work().outcomes.results.push(made.result);
                    None
                }
                Err(halt) => Some(halt),
            };
            {
                let mut work = self.work();
                let CallsAtWork { slots, outcomes } = &mut *work;
                if let Some(slot) = slots.get_mut(number) {
                    slot.state = CallState::Over;
                    let id = slot.id.clone();
                    match halt {
                        None => {}
                        // The others of the same answer are made.
                        Some(Halt::Deferred(call)) => outcomes.deferred = Some(call),
                        Some(Halt::Abort(why, more)) => {
                            outcomes.why = outcomes.why.or(Some(why));
                            outcomes.stop(number, id, more, false);
                        }
                        Some(Halt::Interrupts) => {
                            outcomes.why = outcomes.why.or(Some(Abort::Interrupt));
                            outcomes.stop(number, id, "", true);
                        }
                    }
                }
            }
            self.caller.telling.send_replace(false);
            self.over.notify_one();
        }
    }

    fn poll(&self, cx: &mut std::task::Context<'_>) -> Poll<(usize, CallEnd)> {
        self.begin(cx);
        for (number, slot) in self.work().slots.iter_mut().enumerate() {
            if let CallState::Running(call) = &mut slot.state
                && let Poll::Ready(ended) = call.as_mut().poll(cx)
            {
                slot.state = CallState::Ended(ended);
            }
            if let CallState::Ended(_) = slot.state
                && let CallState::Ended(ended) = std::mem::replace(&mut slot.state, CallState::Telling)
            {
                return Poll::Ready((number, ended));
            }
        }
        Poll::Pending
    }

    /// Begins what may begin.
    fn begin(&self, cx: &mut std::task::Context<'_>) {
        let mut work = self.work();
        let running = work
            .slots
            .iter()
            .filter(|slot| matches!(slot.state, CallState::Running(_)));
        let mut running: Vec<Company> = running.map(|slot| slot.company).collect();
        if self.caller.abort.borrow().is_some() {
            return;
        }
        let mut blocked = false;
        for slot in &mut work.slots {
            let CallState::Waiting(call) = &mut slot.state else {
                continue;
            };
            if slot.company != Company::Any {
                let alone = slot.company == Company::Nobody && !running.is_empty();
                blocked |= alone || running.contains(&Company::Nobody);
                if blocked {
                    continue;
                }
            }
            let mut call = Box::pin(self.caller.clone().call(*std::mem::take(call)));
            slot.state = match call.as_mut().poll(cx) {
                Poll::Ready(ended) => CallState::Ended(ended),
                Poll::Pending => {
                    running.push(slot.company);
                    CallState::Running(call)
                }
            };
        }
    }
}

impl Outcomes {
    fn stop(&mut self, number: usize, id: String, more: &'static str, by_answer: bool) {
        self.stopped.push(Stopped {
            number,
            id,
            more,
            by_answer,
        });
    }
}
