//! Interrupts turns and takes prompts back.

use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::outbound::control::{CancelAsyncMessage, ControlRequest, Interrupt, InterruptReply};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::core::{Core, Input, SentPrompt};
use super::{Conn, Settled, WritePriority};
use crate::conn::encode_request;
use crate::error::{Error, Result};
use crate::outcome::Outcome;
use crate::spawn::spawn_on;

/// The effect of an interrupt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Interrupted {
    /// The CLI's receipt.
    pub receipt: InterruptReply,
    /// The outcomes of the prompts of the current turn, or of the prompt whose turn was about to begin. Empty if there was none.
    pub outcomes: Vec<Outcome>,
}

impl Conn {
    /// Interrupts the current turn and returns when it has ended.
    pub(crate) async fn interrupt(self: &Arc<Self>, request: Interrupt) -> Result<Interrupted> {
        let deadline = self.limits.interrupt_deadline;
        // The caller also means a prompt that was sent just before, so it goes first.
        let begun = self.send_ready(|| self.begin_interrupt(|_| true));
        let begun = tokio::time::timeout(deadline, begun)
            .await
            .map_err(|_| Error::timeout("writing the prompts before the interrupt", deadline))?
            .flatten();
        match begun {
            Some(begun) => self.end_turn(begun, request).await,
            None => Err(self.near_end().await),
        }
    }

    /// Holds prompts back and notes the interrupt of the current turn, if that is the one that is meant.
    fn begin_interrupt(self: &Arc<Self>, is_meant: impl FnOnce(&Core) -> bool) -> Option<BegunInterrupt<'_>> {
        self.with(|driver| {
            is_meant(driver.core()).then(|| {
                let now = Instant::now();
                // First, since what was not sent ends at once.
                let running = driver.interruptible();
                for input in [Input::Gate(true), Input::Interrupt] {
                    // After the end there is nothing to interrupt, and the request fails.
                    let _ = driver.step(input, now);
                }
                BegunInterrupt {
                    gate: PromptHold(self),
                    running,
                    number: driver.core().current_turn(),
                }
            })
        })
    }

    /// Sends the interrupt, and returns when the turn has ended.
    async fn end_turn(
        self: &Arc<Self>,
        begun: BegunInterrupt<'_>,
        request: Interrupt,
    ) -> Result<Interrupted> {
        let deadline = self.limits.interrupt_deadline;
        let BegunInterrupt {
            gate,
            running,
            number,
        } = begun;
        let asked = self.ask_about_prompts(&request, deadline).await;
        if asked.as_ref().is_err_and(|error| error.as_refusal().is_some()) {
            self.note(Input::InterruptRefused { turn: number });
        }
        let receipt = asked?;
        if number.is_none()
            && let Some((id, _)) = running.first()
        {
            // The CLI has the prompt but had not begun its turn; it may run it all the same. So the prompt is taken back, or
            // interrupted again once it runs.
            Box::pin(self.cancel_prompt(id)).await?;
        }
        let drained = self.wait_until(|core| {
            running.iter().all(|(_, settled)| settled.borrow().is_some())
                && (number.is_none() || core.current_turn() != number)
        });
        tokio::time::timeout(deadline, drained)
            .await
            .map_err(|_| Error::timeout("the end of the interrupted turn", deadline))?;
        drop(gate);
        let mut outcomes = Vec::new();
        for (_, settled) in &running {
            match settled.borrow().clone() {
                Some(Ok(outcome)) => outcomes.push(outcome),
                // The watchdog was faster; the turn has ended all the same.
                Some(Err(error)) if error.stalled().is_some() && !error.is_closed() => {
                    outcomes.extend(error.outcome().cloned());
                }
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
        Ok(Interrupted { receipt, outcomes })
    }

    /// Takes a prompt back, or interrupts its turn if it runs already.
    pub(crate) async fn cancel_prompt(self: &Arc<Self>, id: &str) -> Result<Option<Interrupted>> {
        self.note(Input::TakeBack { prompt: id });
        if self.core().place(id) == Some(SentPrompt::Queued) && self.ask_for_it_back(id).await? {
            return Ok(None);
        }
        // If the CLI did not give it back, its turn began meanwhile, and the CLI is about to report that, or has ended it already. The
        // CLI is asked once: a CLI that never reports the turn would be asked at each of its frames.
        let begun = async {
            loop {
                self.wait_until(|core| core.place(id) != Some(SentPrompt::Queued))
                    .await;
                // Once more, under the lock that holds prompts back: else the turn may have ended, and another one would be
                // interrupted.
                let begun = self.begin_interrupt(|core| core.place(id) == Some(SentPrompt::Running));
                if begun.is_some() || self.core().place(id).is_none() {
                    return begun;
                }
            }
        };
        let within = self.limits.interrupt_deadline;
        let begun = tokio::time::timeout(within, begun)
            .await
            .map_err(|_| Error::timeout("the beginning of the cancelled prompt's turn", within))?;
        match begun {
            Some(begun) => self.end_turn(begun, Interrupt::default()).await.map(Some),
            None => Ok(None),
        }
    }

    /// Asks the CLI to give a prompt back, and returns whether it does. That goes on when this future is dropped: of a CLI that does
    /// not report the life of prompts, only the reply tells that the prompt has ended.
    async fn ask_for_it_back(self: &Arc<Self>, id: &str) -> Result<bool> {
        let (conn, id) = (Arc::clone(self), id.to_owned());
        let (told, answer) = oneshot::channel();
        spawn_on(&self.runtime, async move {
            let request = CancelAsyncMessage::new(&*id);
            let deadline = conn.limits.control_deadline;
            let reply = conn.ask_about_prompts(&request, deadline).await;
            if reply.as_ref().is_ok_and(|reply| reply.cancelled) {
                conn.note(Input::TakenBack { prompt: &id });
            }
            // The caller may have dropped its future.
            let _ = told.send(reply.map(|reply| reply.cancelled));
        });
        // A runtime that was shut down has ended the session.
        answer.await.unwrap_or_else(|_| Err(self.end_error()))
    }

    /// Waits until this holds. It may depend on what [`Output::Changed`](super::core::Output::Changed) announces.
    async fn wait_until(&self, holds: impl Fn(&Core) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(&self.core()) {
                return;
            }
            changed.await;
        }
    }

    /// Sends a request that must not overtake the prompts that were accepted before it.
    async fn ask_about_prompts<R: ControlRequest>(
        self: &Arc<Self>,
        request: &R,
        deadline: Duration,
    ) -> Result<R::Reply> {
        let body = encode_request(R::SUBTYPE, request)?;
        let payload = self
            .request_in(WritePriority::BehindPrompts, R::SUBTYPE, body, Some(deadline))
            .await?;
        R::read_reply(Some(&payload))
            .map_err(|error| Error::misfit(format!("the answer to `{}`", R::SUBTYPE), error))
    }
}

/// An interrupt that is about to be sent.
struct BegunInterrupt<'a> {
    gate: PromptHold<'a>,
    /// The prompts that it ends.
    running: Vec<(String, watch::Receiver<Settled>)>,
    /// The turn that runs.
    number: Option<u64>,
}

/// Holds prompts back during an interrupt.
struct PromptHold<'a>(&'a Arc<Conn>);

impl Drop for PromptHold<'_> {
    fn drop(&mut self) {
        self.0.note(Input::Gate(false));
    }
}
