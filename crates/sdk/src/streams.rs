//! The streams of a session: all frames, and the events that belong to no prompt.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use outrigger_protocol::Frame;

use crate::conn::lane::{LaneItem, LaneOut};
use crate::event::{Event, Lag, Reducer};
use crate::outcome::Outcome;

/// Every frame of a session, from [`Session::frames`](crate::Session::frames). The stream ends with the session.
#[derive(Debug)]
pub struct Frames {
    lane: LaneOut,
}

impl Frames {
    pub(crate) fn new(lane: LaneOut) -> Self {
        Self { lane }
    }

    /// The next frame, or how many were dropped at this point.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was not returned is returned by the next call.
    pub async fn next(&mut self) -> Option<std::result::Result<Frame, Lag>> {
        std::future::poll_fn(|cx| self.poll_frame(cx)).await
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<std::result::Result<Frame, Lag>>> {
        loop {
            return Poll::Ready(match std::task::ready!(self.lane.poll_next(cx)) {
                None => None,
                Some(LaneItem::Frame(frame)) => Some(Ok(frame)),
                Some(LaneItem::Lag(lag)) => Some(Err(lag)),
                Some(LaneItem::Outcome(_)) => continue,
            });
        }
    }
}

impl Stream for Frames {
    type Item = std::result::Result<Frame, Lag>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_frame(cx)
    }
}

/// The events that belong to no prompt, from [`Session::ambient`](crate::Session::ambient). The stream ends with the session.
#[derive(Debug)]
pub struct Ambient {
    lane: LaneOut,
    reducer: Reducer,
    /// Emitted after the events of the turn.
    ended: Option<Outcome>,
}

/// An event that belongs to no prompt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AmbientEvent {
    /// An event of an ambient turn, or between turns.
    Event(Event),
    /// An ambient turn ended. [`Outcome::origin`] is what began it.
    TurnEnded(Outcome),
}

impl Ambient {
    pub(crate) fn new(lane: LaneOut) -> Self {
        Self {
            lane,
            reducer: Reducer::default(),
            ended: None,
        }
    }

    /// The next event.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was not returned is returned by the next call.
    pub async fn next(&mut self) -> Option<AmbientEvent> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The events that are left at the end: the stops of all that has begun.
    pub(crate) fn last(&mut self) -> Option<Event> {
        self.reducer.end();
        self.reducer.pop()
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<AmbientEvent>> {
        loop {
            if let Some(event) = self.reducer.pop() {
                return Poll::Ready(Some(AmbientEvent::Event(event)));
            }
            if let Some(outcome) = self.ended.take() {
                return Poll::Ready(Some(AmbientEvent::TurnEnded(outcome)));
            }
            match std::task::ready!(self.lane.poll_next(cx)) {
                None => return Poll::Ready(self.last().map(AmbientEvent::Event)),
                Some(LaneItem::Frame(frame)) => {
                    self.reducer.push(&frame);
                }
                Some(LaneItem::Lag(lag)) => self.reducer.lagged(lag),
                Some(LaneItem::Outcome(outcome)) => {
                    self.reducer.end_turn();
                    self.ended = Some(outcome);
                }
            }
        }
    }
}

impl Stream for Ambient {
    type Item = AmbientEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_event(cx)
    }
}
