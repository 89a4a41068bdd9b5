//! The last frames of a session, for all readers.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outrigger_protocol::Frame;
use tokio::sync::watch;
use uuid::Uuid;

use super::{TailLimits, message_id};
use crate::event_reader::is_told;
use crate::observer::Observer;
use crate::outcome::Outcome;

/// The entries in memory.
#[derive(Debug, Clone)]
pub(super) enum LogEntry {
    Frame(Frame),
    Outcome(Outcome),
}

impl LogEntry {
    fn bytes(&self) -> usize {
        match self {
            Self::Frame(frame) => frame.bytes().len(),
            Self::Outcome(outcome) => outcome.frame().map_or(0, |frame| frame.bytes().len()),
        }
    }

    fn message(&self) -> Option<Uuid> {
        match self {
            Self::Frame(frame) => message_id(frame),
            Self::Outcome(_) => None,
        }
    }
}

/// What a reader gets.
#[derive(Debug)]
pub(super) enum LogRead {
    Entry(LogEntry),
    /// The entry and others behind it are not there any more: their number.
    Gone(u64),
    /// There are no more.
    Ended,
}

#[derive(Debug)]
pub(super) struct TailLog {
    /// The log that numbers belong to.
    pub(super) id: Uuid,
    limits: TailLimits,
    entries: Mutex<LogEntries>,
    /// Changes with each entry.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct LogEntries {
    entries: VecDeque<LogEntry>,
    /// The number of the first entry.
    oldest: u64,
    bytes: usize,
    /// The last message that is not there any more.
    gone: Option<Uuid>,
    ended: bool,
}

impl LogEntries {
    fn next(&self) -> u64 {
        self.oldest + self.entries.len() as u64
    }

    fn at(&self, number: u64) -> Option<LogRead> {
        if number < self.oldest {
            return Some(LogRead::Gone(self.oldest - number));
        }
        let place = usize::try_from(number - self.oldest).ok()?;
        match self.entries.get(place) {
            Some(entry) => Some(LogRead::Entry(entry.clone())),
            None => self.ended.then_some(LogRead::Ended),
        }
    }
}

impl TailLog {
    /// `gone` is the last message that readers have already had.
    pub(super) fn new(limits: TailLimits, gone: Option<Uuid>) -> Self {
        let entries = LogEntries {
            gone,
            ..LogEntries::default()
        };
        Self {
            id: Uuid::new_v4(),
            limits,
            entries: Mutex::new(entries),
            changed: watch::Sender::new(()),
        }
    }

    fn entries(&self) -> MutexGuard<'_, LogEntries> {
        // Nothing panics while the lock is held, and the entries are valid after every line.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next entry that comes.
    pub(super) fn next(&self) -> u64 {
        self.entries().next()
    }

    /// The number of the first entry that is there, and the last message before it.
    pub(super) fn beginning(&self) -> (u64, Option<Uuid>) {
        let log = self.entries();
        (log.oldest, log.gone)
    }

    /// The number of the first entry that is there, the last message before it, and the messages that are there.
    pub(super) fn seam(&self) -> (u64, Option<Uuid>, HashSet<Uuid>) {
        let log = self.entries();
        let messages = log.entries.iter().filter_map(LogEntry::message);
        (log.oldest, log.gone, messages.collect())
    }

    /// The number of a message that is there.
    pub(super) fn place_of(&self, message: Uuid) -> Option<u64> {
        let log = self.entries();
        let place = log
            .entries
            .iter()
            .rposition(|entry| entry.message() == Some(message))?;
        Some(log.oldest + place as u64)
    }

    /// Whether a message is there, or may have been since `from` was the number of the first entry.
    pub(super) fn came_since(&self, from: u64, message: Uuid) -> bool {
        self.place_of(message).is_some() || self.beginning().0 != from
    }

    /// The entry with this number, if it is there.
    pub(super) fn read(&self, number: u64) -> LogRead {
        self.entries().at(number).unwrap_or(LogRead::Ended)
    }

    /// The entry with this number, once it is there. Cancel safe.
    pub(super) async fn read_or_wait(&self, number: u64) -> LogRead {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(read) = self.entries().at(number) {
                return read;
            }
            // The sender lives as long as the log.
            let _ = changed.changed().await;
        }
    }

    fn push(&self, entry: LogEntry) {
        let mut log = self.entries();
        // Prompts that were merged end together.
        if let (Some(LogEntry::Outcome(last)), LogEntry::Outcome(outcome)) = (log.entries.back(), &entry)
            && last.is_same(outcome)
        {
            return;
        }
        log.bytes += entry.bytes();
        log.entries.push_back(entry);
        while log.entries.len() > 1
            && (log.entries.len() > self.limits.frames || log.bytes > self.limits.bytes)
            && let Some(oldest) = log.entries.pop_front()
        {
            log.bytes -= oldest.bytes();
            log.gone = oldest.message().or(log.gone);
            log.oldest += 1;
        }
        drop(log);
        self.changed.send_replace(());
    }
}

impl Observer for TailLog {
    fn prompt(&self, frame: &Frame) {
        self.frame(frame);
    }

    fn frame(&self, frame: &Frame) {
        if is_told(frame) {
            self.push(LogEntry::Frame(frame.clone()));
        }
    }

    fn turn_ended(&self, outcome: &Outcome) {
        self.push(LogEntry::Outcome(outcome.clone()));
    }

    fn session_ended(&self) {
        self.entries().ended = true;
        self.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u64) -> LogEntry {
        let uuid = Uuid::from_u128(number.into());
        LogEntry::Frame(Frame::from_line(format!(r#"{{"type":"assistant","uuid":"{uuid}"}}"#)).remove(0))
    }

    #[test]
    fn it_keeps_no_more_than_its_limits_and_knows_what_is_gone() {
        let one = frame(0).bytes();
        for limits in [
            TailLimits::new(3, usize::MAX),
            TailLimits::new(usize::MAX, 3 * one + 1),
        ] {
            let log = TailLog::new(limits, None);
            (0..10).for_each(|number| log.push(frame(number)));
            assert_eq!(log.beginning(), (7, Some(Uuid::from_u128(6))));
            assert_eq!((log.next(), log.seam().2.len()), (10, 3));
            assert_eq!(
                (log.place_of(Uuid::from_u128(8)), log.place_of(Uuid::from_u128(6))),
                (Some(8), None)
            );
            assert!(matches!(log.read(2), LogRead::Gone(5)));
            assert!(matches!(log.read(7), LogRead::Entry(_)));
        }
        // One that is too large is there alone.
        let log = TailLog::new(TailLimits::new(10, 1), None);
        (0..2).for_each(|number| log.push(frame(number)));
        assert_eq!(log.beginning().0, 1);
        assert!(matches!(log.read(1), LogRead::Entry(_)));
    }
}
