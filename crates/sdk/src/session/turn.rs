//! One prompt's turn.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use outrigger_protocol::Frame;
use outrigger_sessions::MessageId;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use uuid::Uuid;

use super::{Interrupted, Session};
use crate::answer::Answer;
use crate::conn::Settled;
use crate::conn::attachments::Mirroring;
use crate::conn::lane::{LaneItem, LaneOut};
use crate::error::{Error, Kind, Result};
use crate::event::{Event, Lag, Reducer};
use crate::outcome::Outcome;
use crate::prompt::PromptWarning;

/// The turn of one prompt: its events, and its own outcome.
///
/// The events and the outcome are this prompt's, matched by its id: results of background work, of other prompts, or left
/// over from an interrupted turn never get here. A prompt that the CLI merged with others, or folded into a running turn,
/// shares their events and their outcome ([`Outcome::prompts`]).
///
/// Dropping it lets the turn run on unwatched; [`cancel`](Self::cancel) ends it. It keeps the session alive.
#[derive(Debug)]
#[must_use = "the turn runs on unwatched when this is dropped"]
pub struct Turn {
    session: Session,
    id: Uuid,
    lane: LaneOut,
    reducer: Reducer,
    settled: watch::Receiver<Settled>,
    warnings: Vec<PromptWarning>,
    /// Set once the error that ended the stream was handed out.
    failed: bool,
}

impl Turn {
    pub(crate) fn new(
        session: Session,
        id: Uuid,
        lane: LaneOut,
        settled: watch::Receiver<Settled>,
        warnings: Vec<PromptWarning>,
    ) -> Self {
        Self {
            session,
            id,
            lane,
            reducer: Reducer::default(),
            settled,
            warnings,
            failed: false,
        }
    }

    /// The id that the prompt was stamped with: the `uuid` of its line, and `command_uuid` and `user_message_uuid` in what
    /// the CLI says about it. Also what [`rewind_files`](Session::rewind_files) takes.
    pub fn id(&self) -> MessageId {
        self.id.into()
    }

    /// What may not be meant about the prompt, such as a text that begins like a slash command. Known at once, and logged.
    pub fn warnings(&self) -> &[PromptWarning] {
        &self.warnings
    }

    /// The next event; `None` when the turn has ended, for [`outcome`](Self::outcome) to tell how.
    ///
    /// An error is the session's end and comes at most once, as the last element.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was not returned is returned by the next call.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The next frame of the turn as it came, for those who want no reduction, or how many were left out at this point
    /// ([`SlowReader`](crate::SlowReader)); `None` when the turn has ended. Takes frames from the same queue as
    /// [`next`](Self::next); use one or the other.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was not returned is returned by the next call.
    pub async fn next_frame(&mut self) -> Option<Result<Frame, Lag>> {
        loop {
            match std::future::poll_fn(|cx| self.lane.poll_next(cx)).await? {
                LaneItem::Frame(frame) => return Some(Ok(frame)),
                LaneItem::Lag(lag) => return Some(Err(lag)),
                // Only ambient lanes carry outcomes.
                LaneItem::Outcome(_) => {}
            }
        }
    }

    /// Waits for the end of the turn and tells how it ended. Events that were not taken are let go.
    ///
    /// A turn that failed has an outcome, too, and no error; [`answer`](Self::answer) makes it one.
    ///
    /// The end of a turn is not always the end of the run: agents that it left in the background report later, in ambient
    /// turns. See [`Session::wait_run_end`].
    ///
    /// May be called again. Has no deadline of its own, since a turn may take hours; but a model that does not
    /// answer ends it: see [`Options::first_token_deadline`](crate::Options::first_token_deadline).
    ///
    /// # Cancel safety
    /// The outcome stays; another call returns it. Events that were not taken are let go from the first poll on.
    ///
    /// # Errors
    /// When the session ended before the turn did, or the turn stalled ([`Error::stalled`]).
    pub async fn outcome(&mut self) -> Result<Outcome> {
        self.lane.abandon();
        self.watch().outcome().await
    }

    /// Waits for the end of the turn and gives its answer, or the error that tells why there is none. Events that were not taken are
    /// let go.
    ///
    /// ```no_run
    /// # async fn example(session: outrigger::Session) -> outrigger::Result<()> {
    /// let answer = session.prompt("Why does the build fail?").await?.answer().await?;
    /// println!("{answer} (${:.4})", answer.cost());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Waits as [`outcome`](Self::outcome) does, and may be called again.
    ///
    /// # Cancel safety
    /// As [`outcome`](Self::outcome).
    ///
    /// # Errors
    /// As [`outcome`](Self::outcome), and when the turn failed or has no answer ([`Outcome::answer`]): the error carries the
    /// outcome ([`Error::outcome`]) and the cause ([`Error::cause`]).
    pub async fn answer(&mut self) -> Result<Answer> {
        self.outcome().await?.answer()
    }

    /// Waits for the end of the turn and returns its structured output as a `T`; set [`output_as`](crate::Options::output_as) in
    /// the options. Events that were not read are dropped.
    ///
    /// Unlike [`Options::query_as`](crate::Options::query_as), this sends no further prompt if the output does not fit.
    ///
    /// # Cancel safety
    /// As [`outcome`](Self::outcome).
    ///
    /// # Errors
    /// As [`answer`](Self::answer), and when the output does not have the shape of `T` ([`Error::raw_output`] is the model's text).
    pub async fn answer_as<T: DeserializeOwned>(&mut self) -> Result<Answer<T>> {
        let outcome = self.outcome().await?;
        Answer::of_output(outcome.clone(), Vec::new())?.map_err(|unfit| unfit.into_error(outcome))
    }

    /// The rest of the turn as text, in one piece, and the outcome. The text is that of all further [`Event::Text`]s, with a blank
    /// line between blocks.
    ///
    /// # Cancel safety
    /// The text that was read so far is dropped with the future; [`answer`](Self::answer) has the last of it. Another call gets
    /// the rest and the outcome.
    ///
    /// # Errors
    /// When the session ended before the turn did.
    pub async fn text(&mut self) -> Result<(String, Outcome)> {
        let (mut text, mut is_over) = (String::new(), false);
        while let Some(event) = self.next().await {
            match event? {
                Event::Text(part) => {
                    if std::mem::take(&mut is_over) {
                        text.push_str("\n\n");
                    }
                    text.push_str(&part);
                }
                Event::ContentBlockStop { .. } => is_over = !text.is_empty(),
                _ => {}
            }
        }
        Ok((text, self.outcome().await?))
    }

    /// A handle that waits for the outcome without reading events. It can be cloned.
    pub fn watch(&self) -> OutcomeWatch {
        OutcomeWatch {
            settled: self.settled.clone(),
            mirror: self.session.conn().mirror.clone(),
        }
    }

    /// Ends the turn: takes the prompt back while it waits, interrupts the turn once it runs.
    ///
    /// Returns when the turn has ended. [`outcome`](Self::outcome) then says
    /// [`Cancelled`](crate::Verdict::Cancelled) or [`Interrupted`](crate::Verdict::Interrupted), or has the result if the turn ended
    /// first.
    ///
    /// # Cancel safety
    /// Dropped before anything was written, the turn runs on. Dropped later, the turn may end or run on, as with
    /// [`Session::interrupt`]; see its outcome.
    ///
    /// # Errors
    /// When the session ended before the turn did, or the CLI did not end the turn in time; see [`Session::interrupt`].
    pub async fn cancel(&self) -> Result<Option<Interrupted>> {
        let interrupted = self.session.conn().cancel_prompt(&self.id.to_string()).await?;
        match &*self.settled.borrow() {
            Some(Err(ended)) if ended.is_closed() => Err(ended.clone()),
            _ => Ok(interrupted),
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event>>> {
        loop {
            if let Some(event) = self.reducer.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            match self.lane.poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(LaneItem::Lag(lag))) => self.reducer.lagged(lag),
                // Only ambient lanes carry outcomes.
                Poll::Ready(Some(LaneItem::Outcome(_))) => {}
                Poll::Ready(Some(LaneItem::Frame(frame))) => {
                    let (misfit, drift) = outrigger_protocol::drift::watch(|| self.reducer.push(&frame));
                    // What is no frame was counted as it came.
                    let misfit = misfit && frame.flaw().is_none();
                    if misfit || !drift.is_empty() {
                        self.session.note_decoded(&drift, misfit);
                    }
                }
                Poll::Ready(None) => {
                    self.reducer.end();
                    if let Some(event) = self.reducer.pop() {
                        return Poll::Ready(Some(Ok(event)));
                    }
                    let error = match &*self.settled.borrow() {
                        Some(Err(error)) if !self.failed => Some(error.clone()),
                        _ => None,
                    };
                    self.failed |= error.is_some();
                    return Poll::Ready(error.map(Err));
                }
            }
        }
    }
}

impl Stream for Turn {
    type Item = Result<Event>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_event(cx)
    }
}

/// Waits for the outcome of a turn, without reading its events.
#[derive(Debug, Clone)]
pub struct OutcomeWatch {
    settled: watch::Receiver<Settled>,
    /// The entries that the store must have first.
    mirror: Option<Arc<dyn Mirroring>>,
}

impl OutcomeWatch {
    /// The outcome, if the turn has ended. With a session store, the store must have the turn as well, or be known to be behind.
    pub fn now(&self) -> Option<Result<Outcome>> {
        let is_told = || self.mirror.as_ref().is_none_or(|mirror| mirror.is_told());
        self.settled.borrow().clone().filter(|_| is_told())
    }

    /// Waits for the end of the turn.
    ///
    /// # Cancel safety
    /// The outcome stays; another call returns it.
    ///
    /// # Errors
    /// When the session ended before the turn did.
    pub async fn outcome(&self) -> Result<Outcome> {
        let mut settled = self.settled.clone();
        let settled = settled
            .wait_for(Option::is_some)
            .await
            .map(|settled| settled.clone());
        if let Some(mirror) = &self.mirror {
            mirror.finished().await;
        }
        // The sender goes only after it said how the turn ended.
        settled
            .ok()
            .flatten()
            .unwrap_or_else(|| Err(Error::new(Kind::Closed)))
    }
}
