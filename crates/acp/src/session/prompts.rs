//! The prompts that wait for their answer: each gets one, and only one, whatever the CLI does.
//!
//! This is a plain state machine without I/O. A prompt waits here, is sent, and is answered; an attempt to send it has a number, so that
//! news of an attempt that was given up finds nobody. `A` is what a prompt is answered with, and is handed out once.

use std::collections::VecDeque;
use std::time::Duration;

use outrigger::Prompt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many prompts may be open.
pub(crate) const MOST: usize = 256;

/// How a prompt is given to the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It gets a turn of its own, behind those before it.
    Alone,
    /// It is folded into the turn that runs.
    Steer,
    /// It ends the turn that runs, and gets the next.
    Now,
}

/// Which attempt to send a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Attempt(u64);

#[derive(Debug)]
pub(crate) struct Prompts<A> {
    open: VecDeque<Open<A>>,
    attempts: u64,
    numbers: u64,
}

#[derive(Debug)]
struct Open<A> {
    number: u64,
    prompt: Prompt,
    how: How,
    answer: A,
    /// Whether something has to come before it can be sent.
    is_incomplete: bool,
    sent: Option<Sent>,
    /// Whether it is sent again, to another process than the one that ended before it said anything.
    again: bool,
    cancelled: Option<Instant>,
}

#[derive(Debug)]
struct Sent {
    attempt: Attempt,
    stop: CancellationToken,
    /// Whether the process has said anything since.
    heard: bool,
    /// Whether its turn runs.
    begun: bool,
    /// The message that it is in the conversation.
    message: Option<String>,
}

/// A prompt that is to be sent.
#[derive(Debug)]
pub(crate) struct ToSend {
    pub(crate) attempt: Attempt,
    pub(crate) prompt: Prompt,
    pub(crate) how: How,
    /// Fires when its turn is to be ended.
    pub(crate) stop: CancellationToken,
}

/// A prompt that is to be answered.
#[derive(Debug)]
pub(crate) struct Ended<A> {
    pub(crate) answer: A,
    /// Whether the client had cancelled it.
    pub(crate) cancelled: bool,
    /// The message of the conversation that it is, if it was sent.
    pub(crate) message: Option<String>,
}

impl<A> Default for Prompts<A> {
    fn default() -> Self {
        Self {
            open: VecDeque::new(),
            attempts: 0,
            numbers: 0,
        }
    }
}

impl<A> Prompts<A> {
    /// Takes a prompt in and returns its number.
    ///
    /// # Errors
    /// With what it is answered with, when too many are open.
    pub(crate) fn accept(&mut self, prompt: Prompt, how: How, answer: A) -> Result<u64, A> {
        if self.open.len() >= MOST {
            return Err(answer);
        }
        self.numbers += 1;
        self.open.push_back(Open {
            number: self.numbers,
            prompt,
            how,
            answer,
            is_incomplete: false,
            sent: None,
            again: false,
            cancelled: None,
        });
        Ok(self.numbers)
    }

    /// Something has to come before a prompt can be sent.
    pub(crate) fn hold(&mut self, number: u64) {
        if let Some(open) = self.open.iter_mut().find(|open| open.number == number) {
            open.is_incomplete = true;
        }
    }

    /// It has come, and changes the prompt to this one, if to any. The prompt may be gone by now.
    pub(crate) fn complete(&mut self, number: u64, prompt: Option<Prompt>) {
        if let Some(open) = self.open.iter_mut().find(|open| open.number == number) {
            open.is_incomplete = false;
            if let Some(prompt) = prompt {
                open.prompt = prompt;
            }
        }
    }

    /// Whether there are any.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether any was sent.
    pub(crate) fn is_running(&self) -> bool {
        self.open.iter().any(|open| open.sent.is_some())
    }

    /// Whether any waits to be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        self.open.iter().any(|open| open.sent.is_none())
    }

    /// The next that waits, which counts as sent from now on.
    pub(crate) fn send(&mut self) -> Option<ToSend> {
        let open = self.open.iter_mut().find(|open| open.sent.is_none())?;
        // None overtakes another.
        if open.is_incomplete {
            return None;
        }
        self.attempts += 1;
        let attempt = Attempt(self.attempts);
        let stop = CancellationToken::new();
        open.sent = Some(Sent {
            attempt,
            stop: stop.clone(),
            heard: false,
            begun: false,
            message: None,
        });
        Some(ToSend {
            attempt,
            prompt: open.prompt.clone(),
            how: open.how,
            stop,
        })
    }

    /// A prompt was sent as this message.
    pub(crate) fn sent_as(&mut self, attempt: Attempt, message: String) {
        let sent = self.open.iter_mut().filter_map(|open| open.sent.as_mut());
        for sent in sent.filter(|sent| sent.attempt == attempt) {
            sent.message = Some(message.clone());
        }
    }

    /// The turn of the prompt that was sent under this id runs.
    pub(crate) fn begun(&mut self, id: &str) {
        let sent = self.open.iter_mut().filter_map(|open| open.sent.as_mut());
        for sent in sent.filter(|sent| sent.message.as_deref() == Some(id)) {
            sent.begun = true;
        }
    }

    /// The attempt whose turn runs, unless the client has cancelled it.
    pub(crate) fn running(&self) -> Option<Attempt> {
        let sent = |open: &Open<A>| open.sent.as_ref().map(|sent| (sent.begun, sent.attempt));
        let open = self.open.iter().filter(|open| open.cancelled.is_none());
        open.filter_map(sent).find(|(begun, _)| *begun).map(|sent| sent.1)
    }

    /// The conversation ends with the turn that runs, of which this returns the attempt: all others are taken back, and wait again.
    pub(crate) fn hold_others(&mut self) -> Option<Attempt> {
        let running = self.running()?;
        for open in self.open.iter_mut().filter(|open| open.cancelled.is_none()) {
            if let Some(sent) = open.sent.take_if(|sent| sent.attempt != running) {
                sent.stop.cancel();
            }
        }
        Some(running)
    }

    /// Gives an attempt up, and has its prompt wait again, before all others and with other words. Returns whether that is so: it may
    /// have been cancelled or answered by now.
    pub(crate) fn replace(&mut self, attempt: Attempt, prompt: Prompt) -> bool {
        let is_it = |open: &Open<A>| open.sent.as_ref().is_some_and(|sent| sent.attempt == attempt);
        let position = self.open.iter().position(is_it);
        let Some(position) = position.filter(|at| self.open[*at].cancelled.is_none()) else {
            return false;
        };
        let Some(open) = self.open.remove(position) else {
            return false;
        };
        self.open.push_front(Open {
            prompt,
            how: How::Alone,
            sent: None,
            again: false,
            ..open
        });
        true
    }

    /// What the prompt is answered with that was sent under this id.
    pub(crate) fn answer_of(&mut self, id: &str) -> Option<&mut A> {
        let is_it = |open: &&mut Open<A>| open.id() == Some(id);
        self.open.iter_mut().find(is_it).map(|open| &mut open.answer)
    }

    /// The id of the oldest that was sent.
    pub(crate) fn oldest_sent(&self) -> Option<&str> {
        self.open.iter().find_map(Open::id)
    }

    /// An attempt came to its end: the prompt is to be answered. `None` if that attempt was given up.
    pub(crate) fn end(&mut self, attempt: Attempt) -> Option<Ended<A>> {
        let is_it = |open: &Open<A>| open.sent.as_ref().is_some_and(|sent| sent.attempt == attempt);
        let position = self.open.iter().position(is_it)?;
        self.open.remove(position).map(Open::ended)
    }

    /// The client cancels one: if it waits it is to be answered at once, if it was sent its turn is ended.
    pub(crate) fn cancel(&mut self, number: u64, now: Instant) -> Option<Ended<A>> {
        let position = self.open.iter().position(|open| open.number == number)?;
        let open = self.open.get_mut(position)?;
        open.cancelled.get_or_insert(now);
        match &open.sent {
            Some(sent) => {
                sent.stop.cancel();
                None
            }
            None => self.open.remove(position).map(Open::ended),
        }
    }

    /// The client cancels all of them.
    pub(crate) fn cancel_all(&mut self, now: Instant) -> Vec<Ended<A>> {
        let numbers: Vec<u64> = self.open.iter().map(|open| open.number).collect();
        // From behind, so that none is sent in the place of one that was taken back.
        let ended = numbers
            .into_iter()
            .rev()
            .filter_map(|number| self.cancel(number, now));
        let mut ended: Vec<_> = ended.collect();
        ended.reverse();
        ended
    }

    /// When the first that was cancelled is to be answered at the latest.
    pub(crate) fn floor(&self, patience: Duration) -> Option<Instant> {
        let cancelled = self.open.iter().filter_map(|open| open.cancelled).min()?;
        cancelled.checked_add(patience)
    }

    /// Those that were cancelled, which are to be answered now. Their attempts are given up.
    pub(crate) fn give_up_cancelled(&mut self) -> Vec<Ended<A>> {
        let (cancelled, others) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|open| open.cancelled.is_some());
        self.open = others;
        let cancelled: VecDeque<Open<A>> = cancelled;
        cancelled.into_iter().map(Open::ended).collect()
    }

    /// The process said something, so that it may have begun with whatever was sent.
    pub(crate) fn heard(&mut self) {
        for sent in self.open.iter_mut().filter_map(|open| open.sent.as_mut()) {
            sent.heard = true;
        }
    }

    /// The process ended. Those that its turn was about are to be answered; the others wait again, for the next process. So does,
    /// once, one that the process never said anything about: it tells when it takes a prompt in, before it begins with it.
    pub(crate) fn lose(&mut self) -> Vec<Ended<A>> {
        let mut lost = Vec::new();
        let mut kept = VecDeque::new();
        let mut active_found = false;
        for mut open in std::mem::take(&mut self.open) {
            let sent = open.sent.take();
            // The SDK gives the CLI one at a time of those that have turns of their own.
            let is_active =
                sent.is_some() && (open.how != How::Alone || !std::mem::replace(&mut active_found, true));
            let is_unheard =
                sent.as_ref().is_some_and(|sent| !sent.heard) && !std::mem::replace(&mut open.again, true);
            if (is_active && !is_unheard) || open.cancelled.is_some() {
                open.sent = sent;
                lost.push(open.ended());
            } else {
                kept.push_back(open);
            }
        }
        self.open = kept;
        lost
    }

    /// All of them, at the end of the session.
    pub(crate) fn take_all(&mut self) -> Vec<Ended<A>> {
        std::mem::take(&mut self.open)
            .into_iter()
            .map(Open::ended)
            .collect()
    }
}

impl<A> Open<A> {
    fn id(&self) -> Option<&str> {
        self.sent.as_ref()?.message.as_deref()
    }

    fn ended(self) -> Ended<A> {
        Ended {
            answer: self.answer,
            cancelled: self.cancelled.is_some(),
            message: self.sent.and_then(|sent| sent.message),
        }
    }
}

#[cfg(test)]
mod tests;
