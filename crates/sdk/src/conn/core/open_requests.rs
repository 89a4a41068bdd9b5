//! The open CLI requests: each is answered once, and never after it was withdrawn.

use std::collections::{HashMap, VecDeque};
use std::fmt;

use outrigger_protocol::Frame;
use outrigger_protocol::shared::RequestId;

/// How many CLI requests may be open at once; more are rejected.
pub(crate) const MAX_CLI_REQUESTS: usize = 4096;

/// How many replies and open requests there may be, if the CLI does not read replies; with more, the process is killed.
const MAX_UNREAD: usize = 2 * MAX_CLI_REQUESTS;

/// How many answered requests are remembered, in case the CLI lists one as open.
const MAX_ANSWERED: usize = 1024;

/// The number of a CLI request, in order of arrival. Ids are not unique: the CLI can reuse an id as soon as it reads the reply,
/// before the writer reports the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Serial(u64);

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[derive(Debug)]
pub(crate) struct OpenRequests {
    open: HashMap<Serial, OpenRequest>,
    /// The last request of each id, while it is open.
    latest: HashMap<String, Serial>,
    next: u64,
    /// The ids that were answered last.
    answered: VecDeque<String>,
    /// The bytes of all open requests.
    bytes: usize,
    /// The limit of `bytes`.
    room: usize,
    /// How many of the open requests have no decision.
    undecided: usize,
}

#[derive(Debug)]
struct OpenRequest {
    id: RequestId,
    /// Whether the reply to the request waits to be written.
    is_answered: bool,
    bytes: usize,
    /// The request; `None` if it is rejected because there is no room.
    frame: Option<Frame>,
}

/// What to do with a new request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The driver has to answer the request.
    New(Serial),
    /// The driver has to reject the request: there is no room.
    TooMany(Serial),
    /// The driver has to ignore the request: it is open already, without a reply.
    Duplicate,
    /// End the process: the CLI does not read its replies.
    Flood,
}

impl OpenRequests {
    pub(super) fn new(room: usize) -> Self {
        Self {
            open: HashMap::new(),
            latest: HashMap::new(),
            next: 0,
            answered: VecDeque::new(),
            bytes: 0,
            room,
            undecided: 0,
        }
    }

    pub(super) fn arrive(&mut self, id: &RequestId, frame: &Frame) -> Arrival {
        if self.undecided_of(id.as_str()).is_some() {
            return Arrival::Duplicate;
        }
        if self.open.len() >= MAX_UNREAD {
            return Arrival::Flood;
        }
        let bytes = frame.bytes().len();
        let no_room = !self.open.is_empty() && self.bytes.saturating_add(bytes) > self.room;
        let is_taken = self.open.len() < MAX_CLI_REQUESTS && !no_room;
        let serial = Serial(self.next);
        self.next += 1;
        self.bytes += bytes;
        self.undecided += 1;
        self.latest.insert(id.as_str().to_owned(), serial);
        let open = OpenRequest {
            id: id.clone(),
            is_answered: false,
            bytes,
            frame: is_taken.then(|| frame.clone()),
        };
        self.open.insert(serial, open);
        match is_taken {
            true => Arrival::New(serial),
            false => Arrival::TooMany(serial),
        }
    }

    fn undecided_of(&self, id: &str) -> Option<(Serial, &OpenRequest)> {
        let serial = *self.latest.get(id)?;
        let open = self.open.get(&serial).filter(|open| !open.is_answered)?;
        Some((serial, open))
    }

    /// Whether the request is open, or was answered recently.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.latest.contains_key(id) || self.answered.iter().any(|answered| answered == id)
    }

    /// The requests without a decision.
    pub(super) fn undecided(&self) -> impl Iterator<Item = (Serial, &RequestId, &Frame)> {
        let undecided = self.open.iter().filter(|(_, open)| !open.is_answered);
        undecided.filter_map(|(serial, open)| Some((*serial, &open.id, open.frame.as_ref()?)))
    }

    /// An undecided request.
    pub(super) fn request(&self, id: &str) -> Option<(Serial, &RequestId, &Frame)> {
        let (serial, open) = self.undecided_of(id)?;
        Some((serial, &open.id, open.frame.as_ref()?))
    }

    /// Claims the right to answer: true once, and never after it was withdrawn.
    pub(super) fn claim(&mut self, serial: Serial) -> bool {
        let Some(open) = self.open.get_mut(&serial).filter(|open| !open.is_answered) else {
            return false;
        };
        open.is_answered = true;
        self.undecided -= 1;
        if self.answered.len() == MAX_ANSWERED {
            self.answered.pop_front();
        }
        self.answered.push_back(open.id.as_str().to_owned());
        true
    }

    /// The reply was passed to the writer.
    pub(super) fn written(&mut self, serial: Serial) {
        if self.open.get(&serial).is_some_and(|open| open.is_answered) {
            self.close(serial);
        }
    }

    /// Another program replies to the request. Returns whether it was open.
    pub(super) fn leave(&mut self, serial: Serial) -> bool {
        let is_undecided = self.open.get(&serial).is_some_and(|open| !open.is_answered);
        if is_undecided {
            self.undecided -= 1;
            self.close(serial);
        }
        is_undecided
    }

    /// The CLI withdraws a request. If its reply is on its way, it stays until that is written.
    pub(super) fn withdraw(&mut self, id: &str) -> Option<Serial> {
        let (serial, _) = self.undecided_of(id)?;
        self.leave(serial).then_some(serial)
    }

    fn close(&mut self, serial: Serial) {
        if let Some(open) = self.open.remove(&serial) {
            self.bytes -= open.bytes;
            if self.latest.get(open.id.as_str()) == Some(&serial) {
                self.latest.remove(open.id.as_str());
            }
        }
    }

    /// Withdraws all.
    pub(super) fn end(&mut self) -> impl Iterator<Item = Serial> {
        (self.bytes, self.undecided) = (0, 0);
        self.latest.clear();
        self.open.drain().map(|(serial, _)| serial)
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether a request waits for a decision.
    pub(super) fn is_deciding(&self) -> bool {
        self.undecided > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(requests: &mut OpenRequests, id: &str, bytes: usize) -> Arrival {
        let frame = Frame::from_line(format!("[\"{}\"]", "x".repeat(bytes.saturating_sub(4)))).remove(0);
        assert!(bytes < 4 || frame.bytes().len() == bytes);
        requests.arrive(&id.into(), &frame)
    }

    fn new(requests: &mut OpenRequests) -> Serial {
        match arrive(requests, "a", 10) {
            Arrival::New(serial) => serial,
            other => panic!("{other:?}"),
        }
    }

    /// The CLI reads a reply before the writer reports the write.
    #[test]
    fn an_id_that_comes_again_behind_its_answer_is_a_question_of_its_own() {
        let mut requests = OpenRequests::new(1000);
        let first = new(&mut requests);
        assert!(requests.claim(first));
        let second = new(&mut requests);
        assert_eq!(arrive(&mut requests, "a", 10), Arrival::Duplicate);
        assert!(requests.is_deciding());
        requests.written(first);
        assert!(requests.request("a").is_some_and(|(serial, ..)| serial == second));
        assert!(requests.claim(second) && !requests.claim(first));
        // Another, which is withdrawn before the second answer is written.
        let third = new(&mut requests);
        assert_eq!(requests.withdraw("a"), Some(third));
        assert_eq!((requests.is_deciding(), requests.len()), (false, 1));
        requests.written(second);
        assert!(requests.is_empty() && requests.latest.is_empty());
        assert_eq!(requests.bytes, 0);
    }

    #[test]
    fn an_id_that_comes_on_and_on_is_a_flood_too() {
        let mut requests = OpenRequests::new(1000);
        for _ in 0..MAX_UNREAD {
            let (Arrival::New(serial) | Arrival::TooMany(serial)) = arrive(&mut requests, "a", 2) else {
                panic!("it was answered before");
            };
            assert!(requests.claim(serial));
        }
        assert_eq!(arrive(&mut requests, "a", 2), Arrival::Flood);
    }

    #[test]
    fn each_is_answered_once_and_counts_until_that_is_written() {
        let mut requests = OpenRequests::new(1000);
        let first = new(&mut requests);
        assert_eq!(arrive(&mut requests, "a", 10), Arrival::Duplicate);
        assert!(requests.is_deciding());
        assert!(requests.claim(first) && !requests.claim(first));
        assert!(!requests.is_deciding());
        assert_eq!(requests.withdraw("a"), None);
        assert_eq!(requests.len(), 1);
        requests.written(first);
        assert_eq!((requests.len(), requests.bytes), (0, 0));
        assert!(requests.knows("a"));
        let again = new(&mut requests);
        assert_eq!(requests.withdraw("a"), Some(again));
        assert!(!requests.claim(again));
        assert_eq!(requests.bytes, 0);
    }

    #[test]
    fn there_is_a_bound_in_bytes_and_one_in_number_and_an_end() {
        let mut requests = OpenRequests::new(100_000);
        let huge = arrive(&mut requests, "huge", 500_000);
        assert!(matches!(huge, Arrival::New(_)), "one request is always accepted");
        assert!(matches!(arrive(&mut requests, "small", 2), Arrival::TooMany(_)));
        assert_eq!(requests.end().count(), 2);
        for number in 0..MAX_UNREAD {
            let arrival = arrive(&mut requests, &number.to_string(), 2);
            let is_taken = matches!(arrival, Arrival::New(_));
            assert_eq!(is_taken, number < MAX_CLI_REQUESTS, "{arrival:?}");
        }
        assert_eq!(arrive(&mut requests, "more", 2), Arrival::Flood);
    }
}
