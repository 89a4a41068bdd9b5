//! The open prompts: each is answered exactly once, whatever the CLI does.
//!
//! A state machine without I/O. A prompt waits, is sent, and is answered. Each attempt to send it has a number, so that late events of
//! an abandoned attempt match no prompt. `A` is the reply, and is returned once.

use std::collections::VecDeque;
use std::time::Duration;

use outrigger::Prompt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many prompts may be open.
pub(crate) const MOST: usize = 256;

/// How a prompt is delivered to the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// In a turn of its own, behind the prompts before it.
    Alone,
    /// Inside the running turn.
    Steer,
    /// The prompt ends the running turn, and gets the next.
    Now,
}

/// The number of an attempt to send a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Attempt(u64);

#[derive(Debug)]
pub(crate) struct Prompts<A> {
    open: VecDeque<OpenPrompt<A>>,
    attempts: u64,
    numbers: u64,
}

#[derive(Debug)]
struct OpenPrompt<A> {
    number: u64,
    prompt: Prompt,
    how: How,
    answer: A,
    /// Whether the prompt waits for unsaved texts.
    is_incomplete: bool,
    sent: Option<SentPrompt>,
    /// Whether the prompt was already lost with a process that had not reacted to it.
    again: bool,
    cancelled: Option<Instant>,
}

#[derive(Debug)]
struct SentPrompt {
    attempt: Attempt,
    stop: CancellationToken,
    /// Whether the process has written a frame since.
    has_reaction: bool,
    /// Whether the turn that runs is the prompt's.
    begun: bool,
    /// Whether the user ended that turn by the answer to a question.
    stopped: bool,
    /// The uuid of the prompt's message.
    message: Option<String>,
}

/// A prompt to send now.
#[derive(Debug)]
pub(crate) struct ToSend {
    pub(crate) attempt: Attempt,
    pub(crate) prompt: Prompt,
    pub(crate) how: How,
    /// Fires when the turn should be cancelled.
    pub(crate) stop: CancellationToken,
}

/// A prompt to answer now.
#[derive(Debug)]
pub(crate) struct EndedPrompt<A> {
    pub(crate) answer: A,
    pub(crate) cancelled: bool,
    /// Whether the user ended its turn by the answer to a question.
    pub(crate) stopped: bool,
    /// The uuid of the prompt's message, if it was sent.
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
    /// Adds a prompt, and returns its number.
    ///
    /// # Errors
    /// Returns the reply when too many prompts are open.
    pub(crate) fn accept(&mut self, prompt: Prompt, how: How, answer: A) -> Result<u64, A> {
        if self.is_full() {
            return Err(answer);
        }
        self.numbers += 1;
        self.open.push_back(OpenPrompt {
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

    /// Whether no more prompts may be open.
    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= MOST
    }

    /// The prompt waits for [`complete`](Self::complete).
    pub(crate) fn hold(&mut self, number: u64) {
        if let Some(open) = self.open.iter_mut().find(|open| open.number == number) {
            open.is_incomplete = true;
        }
    }

    /// The prompt can be sent, with new content if there is any. It may be gone by now.
    pub(crate) fn complete(&mut self, number: u64, prompt: Option<Prompt>) {
        if let Some(open) = self.open.iter_mut().find(|open| open.number == number) {
            open.is_incomplete = false;
            if let Some(prompt) = prompt {
                open.prompt = prompt;
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.open.iter().any(|open| open.sent.is_some())
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.open.iter().any(|open| open.sent.is_none())
    }

    /// The next prompt to send, which counts as sent.
    pub(crate) fn send(&mut self) -> Option<ToSend> {
        let open = self.open.iter_mut().find(|open| open.sent.is_none())?;
        // Prompts keep their order.
        if open.is_incomplete {
            return None;
        }
        self.attempts += 1;
        let attempt = Attempt(self.attempts);
        let stop = CancellationToken::new();
        open.sent = Some(SentPrompt {
            attempt,
            stop: stop.clone(),
            has_reaction: false,
            begun: false,
            stopped: false,
            message: None,
        });
        Some(ToSend {
            attempt,
            prompt: open.prompt.clone(),
            how: open.how,
            stop,
        })
    }

    /// The last attempt.
    pub(crate) fn last_attempt(&self) -> Attempt {
        Attempt(self.attempts)
    }

    /// A prompt was sent with this uuid.
    pub(crate) fn sent_as(&mut self, attempt: Attempt, message: String) {
        let sent = self.open.iter_mut().filter_map(|open| open.sent.as_mut());
        for sent in sent.filter(|sent| sent.attempt == attempt) {
            sent.message = Some(message.clone());
        }
    }

    /// The turn of the prompt with this uuid began.
    pub(crate) fn begun(&mut self, id: &str) {
        let sent = self.open.iter_mut().filter_map(|open| open.sent.as_mut());
        for sent in sent.filter(|sent| sent.message.as_deref() == Some(id)) {
            sent.begun = true;
        }
    }

    /// The attempt whose turn runs, unless it is cancelled.
    pub(crate) fn running(&self) -> Option<Attempt> {
        let mut open = self.in_turn().filter(|open| open.cancelled.is_none());
        open.find_map(|open| Some(open.sent.as_ref()?.attempt))
    }

    /// The prompts of the turn that runs.
    fn in_turn(&self) -> impl Iterator<Item = &OpenPrompt<A>> {
        let begun = |open: &&OpenPrompt<A>| open.sent.as_ref().is_some_and(|sent| sent.begun);
        self.open.iter().filter(begun)
    }

    /// The replies of the prompts of the turn that runs.
    pub(crate) fn of_turn(&self) -> impl Iterator<Item = &A> {
        self.in_turn().map(|open| &open.answer)
    }

    /// Whether the turn that runs is cancelled, which cancelling one of its prompts does.
    pub(crate) fn is_turn_cancelled(&self) -> bool {
        self.in_turn().any(|open| open.cancelled.is_some())
    }

    /// The user ended the turn that runs by the answer to a question.
    pub(crate) fn turn_stopped(&mut self) {
        let sent = self.open.iter_mut().filter_map(|open| open.sent.as_mut());
        for sent in sent.filter(|sent| sent.begun) {
            sent.stopped = true;
        }
    }

    /// The turn that ran is over. The outcomes of its prompts come later.
    pub(crate) fn turn_over(&mut self) {
        for sent in self.open.iter_mut().filter_map(|open| open.sent.as_mut()) {
            sent.begun = false;
        }
    }

    /// The conversation ends with the running turn. Returns its attempt; all other prompts are taken back, and wait again.
    pub(crate) fn hold_others(&mut self) -> Option<Attempt> {
        let running = self.running()?;
        for open in self.open.iter_mut().filter(|open| open.cancelled.is_none()) {
            if let Some(sent) = open.sent.take_if(|sent| sent.attempt != running) {
                sent.stop.cancel();
            }
        }
        Some(running)
    }

    /// Abandons an attempt: its prompt waits again, before all others and with new content. Returns false if it was cancelled or
    /// answered by now.
    pub(crate) fn replace(&mut self, attempt: Attempt, prompt: Prompt) -> bool {
        let is_it = |open: &OpenPrompt<A>| open.sent.as_ref().is_some_and(|sent| sent.attempt == attempt);
        let position = self.open.iter().position(is_it);
        let Some(position) = position.filter(|at| self.open[*at].cancelled.is_none()) else {
            return false;
        };
        let Some(open) = self.open.remove(position) else {
            return false;
        };
        self.open.push_front(OpenPrompt {
            prompt,
            how: How::Alone,
            sent: None,
            again: false,
            ..open
        });
        true
    }

    /// The reply of the prompt with this uuid.
    pub(crate) fn answer_of(&mut self, id: &str) -> Option<&mut A> {
        let is_it = |open: &&mut OpenPrompt<A>| open.id() == Some(id);
        self.open.iter_mut().find(is_it).map(|open| &mut open.answer)
    }

    /// The uuid of the oldest sent prompt.
    pub(crate) fn oldest_sent(&self) -> Option<&str> {
        self.open.iter().find_map(OpenPrompt::id)
    }

    /// An attempt ended: returns its prompt to answer. `None` if the attempt was abandoned.
    pub(crate) fn end(&mut self, attempt: Attempt) -> Option<EndedPrompt<A>> {
        let is_it = |open: &OpenPrompt<A>| open.sent.as_ref().is_some_and(|sent| sent.attempt == attempt);
        let position = self.open.iter().position(is_it)?;
        self.open.remove(position).map(OpenPrompt::ended)
    }

    /// The client cancels a prompt: a waiting one is returned to be answered, the turn of a sent one is cancelled.
    pub(crate) fn cancel(&mut self, number: u64, now: Instant) -> Option<EndedPrompt<A>> {
        let position = self.open.iter().position(|open| open.number == number)?;
        let open = self.open.get_mut(position)?;
        open.cancelled.get_or_insert(now);
        match &open.sent {
            Some(sent) => {
                sent.stop.cancel();
                None
            }
            None => self.open.remove(position).map(OpenPrompt::ended),
        }
    }

    /// The client cancels all prompts.
    pub(crate) fn cancel_all(&mut self, now: Instant) -> Vec<EndedPrompt<A>> {
        let numbers: Vec<u64> = self.open.iter().map(|open| open.number).collect();
        // From the last one, so that no prompt takes the turn of a cancelled one.
        let ended = numbers
            .into_iter()
            .rev()
            .filter_map(|number| self.cancel(number, now));
        let mut ended: Vec<_> = ended.collect();
        ended.reverse();
        ended
    }

    /// Whether the prompt of this attempt is cancelled, and open.
    pub(crate) fn is_cancelled(&self, attempt: Attempt) -> bool {
        let mut cancelled = self.open.iter().filter(|open| open.cancelled.is_some());
        cancelled.any(|open| open.sent.as_ref().is_some_and(|sent| sent.attempt == attempt))
    }

    /// The latest time to answer the first cancelled prompt.
    pub(crate) fn floor(&self, patience: Duration) -> Option<Instant> {
        let cancelled = self.open.iter().filter_map(|open| open.cancelled).min()?;
        cancelled.checked_add(patience)
    }

    /// The cancelled prompts, to be answered now. Their attempts are abandoned.
    pub(crate) fn give_up_cancelled(&mut self) -> Vec<EndedPrompt<A>> {
        let (cancelled, others) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|open| open.cancelled.is_some());
        self.open = others;
        let cancelled: VecDeque<OpenPrompt<A>> = cancelled;
        cancelled.into_iter().map(OpenPrompt::ended).collect()
    }

    /// The process wrote a frame, so that it may have begun any sent prompt.
    pub(crate) fn process_reacted(&mut self) {
        for sent in self.open.iter_mut().filter_map(|open| open.sent.as_mut()) {
            sent.has_reaction = true;
        }
    }

    /// The process ended. Returns the prompts of its turn; the others wait for the next process. So does, once, a prompt to which the
    /// process had not reacted: it reports that it has accepted a prompt before it begins it.
    pub(crate) fn lose(&mut self) -> Vec<EndedPrompt<A>> {
        let mut lost = Vec::new();
        let mut kept = VecDeque::new();
        let mut active_found = false;
        for mut open in std::mem::take(&mut self.open) {
            let sent = open.sent.take();
            let is_active = sent.as_ref().is_some_and(|sent| {
                // Of the prompts with turns of their own, the SDK sends one at a time.
                let is_first = open.how == How::Alone && !std::mem::replace(&mut active_found, true);
                is_first || open.how != How::Alone || sent.begun
            });
            let has_no_reaction = sent.as_ref().is_some_and(|sent| !sent.has_reaction)
                && !std::mem::replace(&mut open.again, true);
            if (is_active && !has_no_reaction) || open.cancelled.is_some() {
                open.sent = sent;
                lost.push(open.ended());
            } else {
                kept.push_back(open);
            }
        }
        self.open = kept;
        lost
    }

    /// All prompts, at the end of the session.
    pub(crate) fn take_all(&mut self) -> Vec<EndedPrompt<A>> {
        std::mem::take(&mut self.open)
            .into_iter()
            .map(OpenPrompt::ended)
            .collect()
    }
}

impl<A> OpenPrompt<A> {
    fn id(&self) -> Option<&str> {
        self.sent.as_ref()?.message.as_deref()
    }

    fn ended(self) -> EndedPrompt<A> {
        EndedPrompt {
            answer: self.answer,
            cancelled: self.cancelled.is_some(),
            stopped: self.sent.as_ref().is_some_and(|sent| sent.stopped),
            message: self.sent.and_then(|sent| sent.message),
        }
    }
}

#[cfg(test)]
mod tests;
