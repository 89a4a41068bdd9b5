//! The requests of the CLI that are open: each is answered once, and never after it was withdrawn.

use std::collections::{HashMap, VecDeque};

use outrigger_protocol::Frame;
use outrigger_protocol::shared::RequestId;
use tokio::task::AbortHandle;

use super::Withdrawn;

/// How many requests of the CLI may be open at once; more are refused.
pub(crate) const MAX_ASKED: usize = 4096;

/// How many may wait, refused or answered, for the CLI to read what is written to it; with more it is ended.
const MAX_UNREAD: usize = 2 * MAX_ASKED;

/// How many answered requests are remembered, in case the CLI lists one among those that it still waits for.
const MAX_ANSWERED: usize = 1024;

#[derive(Debug)]
pub(crate) struct Asked {
    open: HashMap<String, Open>,
    /// The ids that were answered last.
    answered: VecDeque<String>,
    /// What the frames of all of them hold.
    bytes: usize,
    /// What they may hold.
    room: usize,
    /// How many of them nobody has decided yet.
    undecided: usize,
    /// How many earlier answers to ids that came again wait to be written.
    earlier: usize,
}

#[derive(Debug)]
struct Open {
    stage: Stage,
    bytes: usize,
    /// How many answers to earlier requests of this id wait to be written. The CLI may have read one, and ask again, before the one
    /// who wrote it has said so.
    earlier: usize,
    wire_id: RequestId,
    /// The request, if it was taken in.
    frame: Option<Frame>,
    /// Tells whoever works on the answer that nobody waits for it any more.
    withdrawn: Withdrawn,
}

#[derive(Debug)]
enum Stage {
    Arrived,
    /// A callback decides; how to stop that.
    Answering(AbortHandle),
    /// The callback has left it open, for somebody to answer later.
    Parked,
    /// The answer waits to be written.
    Answered,
}

impl Open {
    fn is_answered(&self) -> bool {
        matches!(self.stage, Stage::Answered)
    }

    /// Nobody waits for the answer: stops whoever works on it.
    fn give_up(self) {
        self.withdrawn.cancel();
        if let Stage::Answering(abort) = self.stage {
            abort.abort();
        }
    }
}

/// What becomes of a request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is to be answered.
    New,
    /// There is no room for more, so it is to be refused at once.
    TooMany,
    /// It is open already, and nobody has answered it yet.
    Duplicate,
    /// The CLI asks on and on and does not read the answers.
    Flood,
}

impl Asked {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            open: HashMap::new(),
            answered: VecDeque::new(),
            bytes: 0,
            room,
            undecided: 0,
            earlier: 0,
        }
    }

    pub(crate) fn arrive(&mut self, id: &str, wire_id: &RequestId, bytes: usize) -> Arrival {
        let again = self.open.get(id);
        if again.is_some_and(|open| !open.is_answered()) {
            return Arrival::Duplicate;
        }
        let earlier = again.map_or(0, |open| open.earlier + 1);
        if self.open.len() + self.earlier >= MAX_UNREAD {
            return Arrival::Flood;
        }
        let no_room = !self.open.is_empty() && self.bytes.saturating_add(bytes) > self.room;
        let arrival = if self.open.len() >= MAX_ASKED || no_room {
            Arrival::TooMany
        } else {
            Arrival::New
        };
        self.earlier += usize::from(earlier > 0);
        self.bytes += bytes;
        self.undecided += 1;
        let open = Open {
            stage: Stage::Arrived,
            // Those of the earlier ones count until the last of them is written.
            bytes: bytes + again.map_or(0, |open| open.bytes),
            earlier,
            wire_id: wire_id.clone(),
            frame: None,
            withdrawn: Withdrawn::default(),
        };
        self.open.insert(id.to_owned(), open);
        arrival
    }

    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    /// Whether it was answered not long ago.
    pub(crate) fn was_answered(&self, id: &str) -> bool {
        self.answered.iter().any(|answered| answered == id)
    }

    /// Keeps a request, to be told while it is not decided. Gives what fires when it is withdrawn.
    pub(crate) fn keep(&mut self, id: &str, frame: &Frame) -> Withdrawn {
        match self.open.get_mut(id) {
            Some(open) => {
                open.frame = Some(frame.clone());
                open.withdrawn.clone()
            }
            None => Withdrawn::default(),
        }
    }

    /// The undecided requests of these kinds, with their ids.
    pub(crate) fn requests<'a>(
        &'a self,
        subtypes: &'a [&str],
    ) -> impl Iterator<Item = (&'a RequestId, &'a Frame, &'a Withdrawn)> {
        let undecided = self
            .open
            .values()
            .filter(|open| !matches!(open.stage, Stage::Answered));
        undecided.filter_map(move |open| {
            let frame = open.frame.as_ref()?;
            let is_wanted = subtypes.contains(&frame.subtype().unwrap_or_default());
            is_wanted.then_some((&open.wire_id, frame, &open.withdrawn))
        })
    }

    /// An undecided request: its id as it came, and the request.
    pub(crate) fn request(&self, id: &str) -> Option<(RequestId, Frame)> {
        let open = self.open.get(id)?;
        if matches!(open.stage, Stage::Answered) {
            return None;
        }
        Some((open.wire_id.clone(), open.frame.clone()?))
    }

    /// The requests that nobody has decided yet.
    pub(crate) fn undecided(&self) -> Vec<Frame> {
        let undecided = self
            .open
            .values()
            .filter(|open| !matches!(open.stage, Stage::Answered));
        undecided.filter_map(|open| open.frame.clone()).collect()
    }

    /// Says how to stop the answering, once it has begun; `false` when the request was withdrawn or answered meanwhile.
    pub(crate) fn answering(&mut self, id: &str, abort: AbortHandle) -> bool {
        match self.open.get_mut(id) {
            Some(open) => {
                // The callback may have been quicker.
                if matches!(open.stage, Stage::Arrived) {
                    open.stage = Stage::Answering(abort);
                }
                true
            }
            None => false,
        }
    }

    /// The callback leaves the request open; it goes on counting as undecided.
    pub(crate) fn park(&mut self, id: &str) {
        if let Some(open) = self.open.get_mut(id)
            && matches!(open.stage, Stage::Arrived | Stage::Answering(_))
        {
            open.stage = Stage::Parked;
        }
    }

    /// The request is somebody else's to answer.
    pub(crate) fn leave(&mut self, id: &str) {
        if self.open.get(id).is_some_and(|open| !open.is_answered()) {
            self.undecided -= 1;
            drop(self.close(id));
        }
    }

    /// Takes a request that is not answered out. Should an earlier one of its id wait to be written, that one is what is open then.
    fn close(&mut self, id: &str) -> Option<Open> {
        let open = self.open.remove(id)?;
        if open.earlier == 0 {
            self.bytes -= open.bytes;
        } else {
            self.earlier -= 1;
            let before = Open {
                stage: Stage::Answered,
                bytes: open.bytes,
                earlier: open.earlier - 1,
                wire_id: open.wire_id.clone(),
                frame: None,
                withdrawn: Withdrawn::default(),
            };
            self.open.insert(id.to_owned(), before);
        }
        Some(open)
    }

    /// Claims the right to answer: true once, and never after it was withdrawn.
    pub(crate) fn claim(&mut self, id: &str) -> bool {
        match self.open.get_mut(id) {
            None
            | Some(Open {
                stage: Stage::Answered,
                ..
            }) => false,
            Some(open) => {
                open.stage = Stage::Answered;
                self.undecided -= 1;
                if self.answered.len() == MAX_ANSWERED {
                    self.answered.pop_front();
                }
                self.answered.push_back(id.to_owned());
                true
            }
        }
    }

    /// Claims the right to answer in a callback's place, and stops that.
    pub(crate) fn take_over(&mut self, id: &str) -> bool {
        let callback = match self.open.get(id) {
            Some(Open {
                stage: Stage::Answering(abort),
                withdrawn,
                ..
            }) => Some((abort.clone(), withdrawn.clone())),
            _ => None,
        };
        let claimed = self.claim(id);
        if let Some((abort, withdrawn)) = callback {
            withdrawn.cancel();
            abort.abort();
        }
        claimed
    }

    /// The answer was handed to the writer.
    pub(crate) fn written(&mut self, id: &str) {
        if let Some(open) = self.open.get_mut(id)
            && open.earlier > 0
        {
            open.earlier -= 1;
            self.earlier -= 1;
        } else if let Some(open) = self.open.remove(id) {
            self.bytes -= open.bytes;
        }
    }

    /// The CLI withdraws a request. One whose answer is on its way stays until that is written.
    pub(crate) fn withdraw(&mut self, id: &str) {
        if self.open.get(id).is_some_and(Open::is_answered) {
            return;
        }
        if let Some(open) = self.close(id) {
            self.undecided -= 1;
            open.give_up();
        }
    }

    /// Withdraws all.
    pub(crate) fn end(&mut self) {
        (self.bytes, self.undecided, self.earlier) = (0, 0, 0);
        for (_, open) in self.open.drain() {
            open.give_up();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the CLI waits for somebody here to decide.
    pub(crate) fn is_deciding(&self) -> bool {
        self.undecided > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CLI reads an answer before the one who wrote it has said so.
    #[test]
    fn an_id_that_comes_again_behind_its_answer_is_a_question_of_its_own() {
        let mut asked = Asked::new(1000);
        let arrive = |asked: &mut Asked| asked.arrive("a", &"a".into(), 10);
        assert_eq!(arrive(&mut asked), Arrival::New);
        assert!(asked.claim("a"));
        assert_eq!(arrive(&mut asked), Arrival::New);
        assert_eq!(arrive(&mut asked), Arrival::Duplicate);
        assert!(asked.is_deciding());
        // The first answer.
        asked.written("a");
        assert!(asked.is_open("a"));
        assert!(asked.claim("a"));
        // Another, which is withdrawn before the second answer is written.
        assert_eq!(arrive(&mut asked), Arrival::New);
        asked.withdraw("a");
        assert!(!asked.is_deciding());
        assert_eq!(asked.len(), 1);
        asked.written("a");
        assert!(asked.is_empty());
        assert_eq!((asked.bytes, asked.earlier), (0, 0));
    }

    #[test]
    fn an_id_that_comes_on_and_on_is_a_flood_too() {
        let mut asked = Asked::new(1000);
        for _ in 0..MAX_UNREAD {
            assert!(matches!(
                asked.arrive("a", &"a".into(), 0),
                Arrival::New | Arrival::TooMany
            ));
            assert!(asked.claim("a"));
        }
        assert_eq!(asked.arrive("a", &"a".into(), 0), Arrival::Flood);
    }

    #[test]
    fn each_is_answered_once_and_counts_until_that_is_written() {
        let mut asked = Asked::new(1000);
        let arrive = |asked: &mut Asked| asked.arrive("a", &"a".into(), 10);
        assert_eq!(arrive(&mut asked), Arrival::New);
        assert_eq!(arrive(&mut asked), Arrival::Duplicate);
        assert!(asked.is_deciding());
        assert!(asked.claim("a"));
        assert!(!asked.claim("a"));
        assert!(!asked.is_deciding());
        asked.withdraw("a");
        assert_eq!(asked.len(), 1);
        asked.written("a");
        assert!(asked.is_empty());
        assert_eq!(asked.bytes, 0);
        assert!(asked.was_answered("a"));
        assert_eq!(arrive(&mut asked), Arrival::New, "an id may come again");
        asked.withdraw("a");
        assert!(!asked.claim("a"));
        assert_eq!(asked.bytes, 0);
    }

    #[test]
    fn there_is_a_bound_in_bytes_and_one_in_number_and_an_end() {
        let mut asked = Asked::new(1000);
        assert_eq!(
            asked.arrive("huge", &"huge".into(), 5000),
            Arrival::New,
            "one may always be asked"
        );
        assert_eq!(asked.arrive("small", &"small".into(), 1), Arrival::TooMany);
        asked.end();
        for number in 0..MAX_UNREAD {
            let arrival = asked.arrive(&number.to_string(), &"x".into(), 0);
            let expected = if number < MAX_ASKED {
                Arrival::New
            } else {
                Arrival::TooMany
            };
            assert_eq!(arrival, expected);
        }
        assert_eq!(asked.arrive("more", &"more".into(), 0), Arrival::Flood);
    }
}
