//! Merges updates: pieces of one message or terminal that come within a short time are sent as one, and of an estimate only the latest
//! is sent.

use std::time::{Duration, Instant};

use crate::event::{Chunk, Content, Event, TerminalEvent, Topic};

/// The time between updates of one text. A screen shows one in 16 ms.
const APART: Duration = Duration::from_millis(12);

/// Longer text is sent at once.
const MOST: usize = 4096;

/// The time between estimates. The CLI writes one for each piece of a thought.
const ESTIMATES: Duration = Duration::from_secs(1);

/// Holds a piece for a short time if a similar one was just sent. The first piece is sent at once.
#[derive(Debug, Default)]
pub(crate) struct Coalescer {
    held: Option<Event>,
    /// When the last piece was sent.
    last: Option<Instant>,
    /// The latest estimate that is not sent. It does not depend on the held piece, and may overtake it.
    estimate: Option<Event>,
    /// When the last estimate was sent.
    estimated: Option<Instant>,
}

impl Coalescer {
    /// Takes the next event, and returns the events to send now.
    pub(crate) fn push(&mut self, event: Event, now: Instant) -> Vec<Event> {
        if is_estimate(&event) {
            self.estimate = Some(event);
            return self.due_estimate(now).into_iter().collect();
        }
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

    /// When to call [`tick`](Self::tick).
    pub(crate) fn due(&self) -> Option<Instant> {
        let held = self.held_until();
        held.into_iter().chain(self.estimate_at()).min()
    }

    /// Returns the events that were held long enough.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<Event> {
        let mut out = Vec::new();
        if self.held_until().is_some_and(|due| due <= now) {
            self.last = Some(now);
            out.extend(self.held.take());
        }
        out.extend(self.due_estimate(now));
        out
    }

    /// Drops an unsent estimate: its message has ended.
    pub(crate) fn drop_estimate(&mut self) {
        self.estimate = None;
    }

    fn held_until(&self) -> Option<Instant> {
        self.held.as_ref().and(self.last).map(|last| last + APART)
    }

    /// When the latest estimate may be sent; `None` if at once.
    fn estimate_at(&self) -> Option<Instant> {
        self.estimate
            .as_ref()
            .and(self.estimated)
            .map(|last| last + ESTIMATES)
    }

    fn due_estimate(&mut self, now: Instant) -> Option<Event> {
        if self.estimate_at().is_some_and(|at| at > now) {
            return None;
        }
        let estimate = self.estimate.take()?;
        self.estimated = Some(now);
        Some(estimate)
    }

    /// Returns the held event, before something else is sent.
    pub(crate) fn flush(&mut self) -> Option<Event> {
        self.last = None;
        self.held.take()
    }
}

/// Whether the event is an estimate, which the next one replaces.
fn is_estimate(event: &Event) -> bool {
    matches!(event, Event::Extra(extra) if extra.topic == Topic::ThinkingTokens)
}

/// The size of an event that may be held; `None` for others.
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

/// Appends `next` to `held` if both belong together; returns it otherwise.
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
    use outrigger::protocol::RawJson;

    use super::*;
    use crate::event::Extra;

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

    fn estimate(tokens: u64) -> Event {
        Event::Extra(Box::new(Extra {
            topic: Topic::ThinkingTokens,
            call: None,
            data: RawJson::from(serde_json::json!({"estimated_tokens": tokens})),
        }))
    }

    /// The CLI reports the tokens of a thought before each of its pieces.
    #[test]
    fn estimates_go_out_once_a_second_and_do_not_part_what_is_said() {
        let (mut held, mut now) = (Coalescer::default(), Instant::now());
        let mut out = Vec::new();
        for number in 0..1000 {
            out.extend(held.push(estimate(number), now));
            out.extend(held.push(piece("m", "x"), now));
            now += ms(3);
            out.extend(held.tick(now));
        }
        let (estimates, pieces): (Vec<Event>, Vec<Event>) = out.iter().cloned().partition(is_estimate);
        assert_eq!(estimates, [estimate(0), estimate(333), estimate(667)]);
        assert_eq!(pieces.len(), 251);
        // The last estimate of a turn is not sent behind its end.
        held.push(estimate(1000), now);
        held.drop_estimate();
        held.flush();
        assert_eq!((held.due(), held.tick(now + ms(5000))), (None, Vec::new()));
    }

    #[test]
    fn the_first_piece_goes_out_at_once_and_the_next_together() {
        let (mut held, start) = (Coalescer::default(), Instant::now());
        assert_eq!(held.push(piece("m", "a"), start), [piece("m", "a")]);
        assert_eq!(held.push(piece("m", "b"), start + ms(1)), []);
        assert_eq!(held.push(piece("m", "c"), start + ms(2)), []);
        assert_eq!(held.due(), Some(start + ms(12)));
        assert_eq!(held.tick(start + ms(11)), []);
        assert_eq!(held.tick(start + ms(12)), [piece("m", "bc")]);
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
