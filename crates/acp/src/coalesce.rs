//! Fewer and larger updates: pieces of one message, or of one terminal, that come within a moment go out as one.

use std::time::{Duration, Instant};

use crate::event::{Chunk, Content, Event, TerminalEvent};

/// How far apart updates of one text are. A screen shows one in 16 ms.
const APART: Duration = Duration::from_millis(12);

/// More text is not held back.
const MOST: usize = 4096;

/// Holds the last piece back for a moment, if one like it went out a moment ago. The first of each goes out at once.
#[derive(Debug, Default)]
pub(crate) struct Coalescer {
    held: Option<Event>,
    /// When the last piece went out.
    last: Option<Instant>,
}

impl Coalescer {
    /// Takes the next event; gives what is to go out now, in order.
    pub(crate) fn push(&mut self, event: Event, now: Instant) -> Vec<Event> {
        let mut out = Vec::new();
        let event = match self.held.take() {
            Some(mut held) => match join(&mut held, event) {
                None => held,
                Some(event) => {
                    out.push(held);
                    self.last = None;
                    event
                }
            },
            None => event,
        };
        let Some(size) = size(&event) else {
            self.last = None;
            out.push(event);
            return out;
        };
        let is_close = self
            .last
            .is_some_and(|last| now.saturating_duration_since(last) < APART);
        if is_close && size < MOST {
            self.held = Some(event);
        } else {
            self.last = Some(now);
            out.push(event);
        }
        out
    }

    /// When [`tick`](Self::tick) is to be called.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.held.as_ref().and(self.last).map(|last| last + APART)
    }

    /// Lets go what was held back long enough.
    pub(crate) fn tick(&mut self, now: Instant) -> Option<Event> {
        if self.due().is_none_or(|due| due > now) {
            return None;
        }
        self.last = Some(now);
        self.held.take()
    }

    /// Lets go whatever is held back: something else is to be said behind it.
    pub(crate) fn flush(&mut self) -> Option<Event> {
        self.last = None;
        self.held.take()
    }
}

/// How much there is to show, of events that may be held back.
fn size(event: &Event) -> Option<usize> {
    match event {
        Event::Text(chunk) | Event::Thought(chunk) => match &chunk.content {
            Content::Text(text) => Some(text.len()),
            _ => None,
        },
        Event::Terminal(change) => match &change.what {
            TerminalEvent::Output { bytes, is_live: true } => Some(bytes.len()),
            _ => None,
        },
        _ => None,
    }
}

/// Puts `next` behind `held`, if it goes on with it; gives it back if it does not.
fn join(held: &mut Event, next: Event) -> Option<Event> {
    match (held, next) {
        (Event::Text(held), Event::Text(next)) => append(held, next).map(Event::Text),
        (Event::Thought(held), Event::Thought(next)) => append(held, next).map(Event::Thought),
        (Event::Terminal(held), Event::Terminal(next)) if held.id == next.id => {
            match (&mut held.what, &next.what) {
                (
                    TerminalEvent::Output {
                        bytes: held,
                        is_live: true,
                    },
                    TerminalEvent::Output { bytes, is_live: true },
                ) => {
                    held.extend_from_slice(bytes);
                    None
                }
                _ => Some(Event::Terminal(next)),
            }
        }
        (_, next) => Some(next),
    }
}

fn append(held: &mut Chunk, next: Chunk) -> Option<Chunk> {
    let is_same = held.message_id == next.message_id && held.parent == next.parent;
    match (&mut held.content, &next.content) {
        (Content::Text(held), Content::Text(text)) if is_same => {
            held.push_str(text);
            None
        }
        _ => Some(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(message: &str, text: &str) -> Event {
        Event::Text(Chunk {
            message_id: Some(message.into()),
            parent: None,
            content: Content::Text(text.to_owned()),
        })
    }

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn the_first_piece_goes_out_at_once_and_the_next_together() {
        let (mut held, start) = (Coalescer::default(), Instant::now());
        assert_eq!(held.push(piece("m", "a"), start), [piece("m", "a")]);
        assert_eq!(held.push(piece("m", "b"), start + ms(1)), []);
        assert_eq!(held.push(piece("m", "c"), start + ms(2)), []);
        assert_eq!(held.due(), Some(start + ms(12)));
        assert_eq!(held.tick(start + ms(11)), None);
        assert_eq!(held.tick(start + ms(12)), Some(piece("m", "bc")));
        assert_eq!(held.due(), None);
        assert_eq!(held.push(piece("m", "d"), start + ms(30)), [piece("m", "d")]);
    }

    #[test]
    fn nothing_overtakes_what_is_held() {
        let (mut held, start) = (Coalescer::default(), Instant::now());
        held.push(piece("m", "a"), start);
        held.push(piece("m", "b"), start);
        let plan = Event::Plan(Vec::new());
        assert_eq!(held.push(plan.clone(), start), [piece("m", "b"), plan]);
        held.push(piece("m", "a"), start);
        held.push(piece("m", "b"), start);
        assert_eq!(
            held.push(piece("n", "c"), start),
            [piece("m", "b"), piece("n", "c")]
        );
        held.push(piece("n", "d"), start);
        assert_eq!(held.flush(), Some(piece("n", "d")));
        assert_eq!(held.flush(), None);
    }

    #[test]
    fn much_is_not_held_back() {
        let (mut held, start) = (Coalescer::default(), Instant::now());
        let much = "x".repeat(MOST);
        held.push(piece("m", "a"), start);
        assert_eq!(held.push(piece("m", "b"), start), []);
        assert_eq!(
            held.push(piece("m", &much), start),
            [piece("m", &format!("b{much}"))]
        );
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_and_the_order_stays(
            pieces in proptest::collection::vec((0u8..3, 0u8..4, "[a-z]{1,3}", 0u64..20), 0..60)
        ) {
            let (mut held, mut now) = (Coalescer::default(), Instant::now());
            let (mut before, mut after) = (Vec::new(), Vec::new());
            for (message, kind, text, wait) in pieces {
                now += ms(wait);
                let Event::Text(chunk) = piece(&message.to_string(), &text) else { unreachable!() };
                let event = match kind {
                    0 => Event::Thought(chunk),
                    1 => Event::Title(text),
                    _ => Event::Text(chunk),
                };
                before.push(event.clone());
                after.extend(held.tick(now));
                after.extend(held.push(event, now));
            }
            after.extend(held.flush());
            proptest::prop_assert_eq!(merged(before), merged(after));
        }
    }

    fn merged(events: Vec<Event>) -> Vec<Event> {
        let mut merged: Vec<Event> = Vec::new();
        for event in events {
            let rest = match merged.last_mut() {
                Some(last) => join(last, event),
                None => Some(event),
            };
            merged.extend(rest);
        }
        merged
    }
}
