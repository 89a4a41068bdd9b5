//! The requests of the CLI that are open: each is answered once, and never after it was withdrawn.

use std::collections::HashMap;

use outrigger_protocol::Frame;
use tokio::task::AbortHandle;

/// How many requests of the CLI may be open at once; more are refused.
pub(crate) const MAX_ASKED: usize = 4096;

/// How many may wait, refused or answered, for the CLI to read what is written to it; with more it is ended.
const MAX_UNREAD: usize = 2 * MAX_ASKED;

#[derive(Debug)]
pub(crate) struct Asked {
    open: HashMap<String, Open>,
    /// What the frames of all of them hold.
    bytes: usize,
    /// What they may hold.
    room: usize,
    /// How many of them nobody has decided yet.
    undecided: usize,
}

#[derive(Debug)]
struct Open {
    stage: Stage,
    bytes: usize,
    /// The request, if it was taken in.
    frame: Option<Frame>,
}

#[derive(Debug)]
enum Stage {
    Arrived,
    /// Somebody decides; how to stop that.
    Answering(AbortHandle),
    /// The answer waits to be written.
    Answered,
}

/// What becomes of a request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is to be answered.
    New,
    /// There is no room for more, so it is to be refused at once.
    TooMany,
    /// It is open already.
    Duplicate,
    /// The CLI asks on and on and does not read the answers.
    Flood,
}

impl Asked {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            open: HashMap::new(),
            bytes: 0,
            room,
            undecided: 0,
        }
    }

    pub(crate) fn arrive(&mut self, id: &str, bytes: usize) -> Arrival {
        if self.open.contains_key(id) {
            return Arrival::Duplicate;
        }
        if self.open.len() >= MAX_UNREAD {
            return Arrival::Flood;
        }
        let no_room = !self.open.is_empty() && self.bytes.saturating_add(bytes) > self.room;
        let arrival = if self.open.len() >= MAX_ASKED || no_room {
            Arrival::TooMany
        } else {
            Arrival::New
        };
        self.bytes += bytes;
        self.undecided += 1;
        let stage = Stage::Arrived;
        let frame = None;
        self.open.insert(id.to_owned(), Open { stage, bytes, frame });
        arrival
    }

    /// Keeps a request, to be told if it is never decided.
    pub(crate) fn keep(&mut self, id: &str, frame: &Frame) {
        if let Some(open) = self.open.get_mut(id) {
            open.frame = Some(frame.clone());
        }
    }

    /// The requests that nobody has decided yet.
    pub(crate) fn undecided(&self) -> Vec<Frame> {
        let undecided = self
            .open
            .values()
            .filter(|open| !matches!(open.stage, Stage::Answered));
        undecided.filter_map(|open| open.frame.clone()).collect()
    }

    /// Says how to stop the answering, once it has begun; `false` when the request was withdrawn meanwhile.
    pub(crate) fn answering(&mut self, id: &str, abort: AbortHandle) -> bool {
        match self.open.get_mut(id) {
            Some(open) => {
                // The handler may have been quicker.
                if matches!(open.stage, Stage::Arrived) {
                    open.stage = Stage::Answering(abort);
                }
                true
            }
            None => false,
        }
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
                true
            }
        }
    }

    /// The answer was handed to the writer.
    pub(crate) fn written(&mut self, id: &str) {
        if let Some(open) = self.open.remove(id) {
            self.bytes -= open.bytes;
        }
    }

    /// The CLI withdraws a request. One whose answer is on its way stays until that is written.
    pub(crate) fn withdraw(&mut self, id: &str) {
        if let Some(Open {
            stage: Stage::Answered,
            ..
        }) = self.open.get(id)
        {
            return;
        }
        if let Some(open) = self.open.remove(id) {
            self.bytes -= open.bytes;
            self.undecided -= 1;
            if let Stage::Answering(abort) = open.stage {
                abort.abort();
            }
        }
    }

    /// Withdraws all.
    pub(crate) fn end(&mut self) {
        (self.bytes, self.undecided) = (0, 0);
        for (_, open) in self.open.drain() {
            if let Stage::Answering(abort) = open.stage {
                abort.abort();
            }
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

    #[test]
    fn each_is_answered_once_and_counts_until_that_is_written() {
        let mut asked = Asked::new(1000);
        assert_eq!(asked.arrive("a", 10), Arrival::New);
        assert_eq!(asked.arrive("a", 10), Arrival::Duplicate);
        assert!(asked.is_deciding());
        assert!(asked.claim("a"));
        assert!(!asked.claim("a"));
        assert!(!asked.is_deciding());
        asked.withdraw("a");
        assert_eq!(asked.len(), 1);
        asked.written("a");
        assert!(asked.is_empty());
        assert_eq!(asked.bytes, 0);
        assert_eq!(asked.arrive("a", 10), Arrival::New, "an id may come again");
        asked.withdraw("a");
        assert!(!asked.claim("a"));
        assert_eq!(asked.bytes, 0);
    }

    #[test]
    fn there_is_a_bound_in_bytes_and_one_in_number_and_an_end() {
        let mut asked = Asked::new(1000);
        assert_eq!(
            asked.arrive("huge", 5000),
            Arrival::New,
            "one may always be asked"
        );
        assert_eq!(asked.arrive("small", 1), Arrival::TooMany);
        asked.end();
        for number in 0..MAX_UNREAD {
            let arrival = asked.arrive(&number.to_string(), 0);
            let expected = if number < MAX_ASKED {
                Arrival::New
            } else {
                Arrival::TooMany
            };
            assert_eq!(arrival, expected);
        }
        assert_eq!(asked.arrive("more", 0), Arrival::Flood);
    }
}
