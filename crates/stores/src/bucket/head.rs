//! The head of a session: the one object that lists its parts, replaced as a whole by a writer that has read its last version.

use std::collections::{BTreeMap, VecDeque};

use object_store::UpdateVersion;
use outrigger_protocol::RawJson;
use outrigger_sessions::store::{SessionKey, StoreError, StoreErrorKind, StoreLease};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How objects are laid out, as this version of the crate does it.
const FORMAT: u32 = 1;

/// How many of its last writers a head remembers, so that a writer whose reply was lost can find out whether its write succeeded.
const WRITERS: usize = 32;

/// How many appends to a transcript the head names.
const APPENDS: usize = 4;

/// How many parts of one tier become one of the next.
const FANOUT: usize = 8;

/// Parts do not grow beyond this by being merged, and larger appends are cut at it, between entries.
pub(super) const MAX_PART: u64 = 8 << 20;

/// The tier of parts that are not merged.
const TOP: u8 = u8::MAX;

/// The stored data of a session besides its parts. It outlives the session, since no number in it may be used again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionHead {
    format: u32,
    /// Grows with every write. A part that was written on top of a revision can only become part of the next one.
    pub(super) revision: u64,
    /// The last write of each of those that wrote last, the newest last.
    writers: Vec<Write>,
    pub(super) lease: Option<BucketLease>,
    /// By subpath; the session itself has an empty one.
    pub(super) transcripts: BTreeMap<String, Transcript>,
    /// `data` of the session's summary.
    pub(super) summary: Option<RawJson>,
}

/// A write of a head, which nothing else is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Write {
    by: String,
    number: u64,
    revision: u64,
}

/// The newest lease.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BucketLease {
    pub(super) lease: StoreLease,
    pub(super) released: bool,
}

/// A transcript as its parts, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Transcript {
    /// Distinguishes the session from a deleted one of the same name.
    pub(super) born: String,
    pub(super) mtime: u64,
    pub(super) parts: Vec<TranscriptPart>,
    /// The names of its last appends, the newest first: one that is sent again is not done twice.
    #[serde(default)]
    appends: VecDeque<String>,
}

/// An object with entries, one a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TranscriptPart {
    /// Its name: the revision that it was written on top of, and something unique.
    pub(super) id: String,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    tier: u8,
}

/// A head as read, with the version that a replacement needs.
#[derive(Debug, Clone)]
pub(super) struct VersionedHead {
    pub(super) head: SessionHead,
    /// `None` where there is none yet.
    pub(super) version: Option<UpdateVersion>,
}

/// Something that nothing else is called.
pub(super) fn unique() -> String {
    Uuid::new_v4().simple().to_string()
}

impl VersionedHead {
    /// Where no head is.
    pub(super) fn nothing() -> Self {
        Self {
            head: SessionHead {
                format: FORMAT,
                revision: 0,
                writers: Vec::new(),
                lease: None,
                transcripts: BTreeMap::new(),
                summary: None,
            },
            version: None,
        }
    }
}

impl SessionHead {
    pub(super) fn decode(bytes: &[u8], path: &object_store::path::Path) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let damaged = |error: serde_json::Error| {
            let what = format!("{path} in the bucket is no head of a session: {error}");
            StoreError::new(StoreErrorKind::Damaged, what)
        };
        let format: Format = serde_json::from_slice(bytes).map_err(damaged)?;
        if format.format != FORMAT {
            let what = format!(
                "{path} in the bucket has the format {}, and this version of outrigger-stores reads {FORMAT}: update it",
                format.format
            );
            return Err(StoreError::new(StoreErrorKind::Invalid, what));
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, StoreError> {
        serde_json::to_vec(self)
            .map_err(|error| StoreError::failed("a session's head can't be written", error))
    }

    /// Makes it the next revision, by the `number`th write of `by`.
    pub(super) fn advance(&mut self, by: &str, number: u64) -> Write {
        self.revision += 1;
        let write = Write {
            by: by.to_owned(),
            number,
            revision: self.revision,
        };
        self.writers.retain(|old| old.by != by);
        self.writers.push(write.clone());
        let old = self.writers.len().saturating_sub(WRITERS);
        self.writers.drain(..old);
        write
    }

    /// Whether the head has this write, of a writer who has made none since; `None` if so many others have
    /// written since that it is unknown.
    pub(super) fn has(&self, write: &Write) -> Option<bool> {
        match self.writers.iter().find(|last| last.by == write.by) {
            Some(last) => Some(last == write),
            None if self.writers.len() < WRITERS => Some(false),
            None => (self.writers.first()?.revision <= write.revision).then_some(false),
        }
    }

    /// Whether the lease is the newest and was not given back.
    pub(super) fn is_held_by(&self, lease: &StoreLease) -> bool {
        self.lease.as_ref().is_some_and(|held| {
            held.lease.fence == lease.fence && held.lease.owner == lease.owner && !held.released
        })
    }

    pub(super) fn transcript(&self, key: &SessionKey) -> Option<&Transcript> {
        self.transcripts.get(subpath(key))
    }

    /// The summary; `None` if it is damaged.
    pub(super) fn readable_summary(&self) -> Option<&RawJson> {
        let is_readable = |data: &&RawJson| crate::summary_data(data.get().as_bytes()).is_some();
        self.summary.as_ref().filter(is_readable)
    }

    /// Whether a part belongs to it, by its name.
    pub(super) fn refers_to(&self, id: &str) -> bool {
        let mut parts = self.transcripts.values().flat_map(|transcript| &transcript.parts);
        parts.any(|part| part.id == id)
    }

    /// Whether an object of that name is left over: it is no part, and can't become one any more.
    pub(super) fn is_over(&self, id: &str) -> bool {
        let base = id.split('-').next().and_then(|base| base.parse::<u64>().ok());
        base.is_some_and(|base| base < self.revision) && !self.refers_to(id)
    }
}

impl Transcript {
    pub(super) fn new() -> Self {
        Self {
            born: unique(),
            mtime: 0,
            parts: Vec::new(),
            appends: VecDeque::new(),
        }
    }

    pub(super) fn has_append(&self, name: &str) -> bool {
        self.appends.iter().any(|append| append == name)
    }

    pub(super) fn add_append(&mut self, name: &str) {
        self.appends.truncate(APPENDS - 1);
        self.appends.push_front(name.to_owned());
    }

    /// Which parts at the end go into a new one of so many bytes: from where on they do, and the new one's tier. With few parts in
    /// each tier there are few in all, and each entry is written once for each tier.
    pub(super) fn merged(&self, bytes: u64) -> (usize, u8) {
        let (mut from, mut tier, mut total) = (self.parts.len(), 0, bytes);
        while let Some(first) = from.checked_sub(FANOUT - 1) {
            let run = &self.parts[first..from];
            let sum: u64 = run.iter().map(|part| part.bytes).sum();
            if run.iter().any(|part| part.tier != tier) || total + sum > MAX_PART {
                break;
            }
            (from, tier, total) = (first, tier + 1, total + sum);
        }
        (from, tier)
    }
}

impl TranscriptPart {
    /// One that is written on top of this revision.
    pub(super) fn new(revision: u64, entries: u64, bytes: u64, tier: Option<u8>) -> Self {
        Self {
            id: format!("{revision:016}-{}", unique()),
            entries,
            bytes,
            tier: tier.unwrap_or(TOP),
        }
    }
}

/// A subpath as heads have it: no part has an empty one.
pub(super) fn subpath(key: &SessionKey) -> &str {
    key.subpath.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_parts_become_few() {
        let mut transcript = Transcript::new();
        let mut written = 0;
        let mut most = 0;
        for _ in 0..5000 {
            let (from, tier) = transcript.merged(1000);
            let gone = transcript.parts.split_off(from);
            let bytes = 1000 + gone.iter().map(|part| part.bytes).sum::<u64>();
            written += bytes;
            let entries = 1 + gone.iter().map(|part| part.entries).sum::<u64>();
            transcript
                .parts
                .push(TranscriptPart::new(0, entries, bytes, Some(tier)));
            most = most.max(transcript.parts.len());
        }
        assert_eq!(
            transcript.parts.iter().map(|part| part.entries).sum::<u64>(),
            5000
        );
        assert!(most <= 35, "{most} parts");
        assert!(written <= 5 * 5000 * 1000, "{written} bytes written");
    }

    #[test]
    fn large_parts_stay_as_they_are() {
        let mut transcript = Transcript::new();
        for _ in 0..20 {
            assert_eq!(transcript.merged(MAX_PART).0, transcript.parts.len());
            transcript
                .parts
                .push(TranscriptPart::new(0, 1, MAX_PART, Some(0)));
        }
    }

    #[test]
    fn a_part_is_left_over_once_it_can_not_be_told_of_any_more() {
        let mut head = VersionedHead::nothing().head;
        let part = TranscriptPart::new(0, 1, 1, Some(0));
        // Its writer may be about to tell of it.
        assert!(!head.is_over(&part.id));
        head.advance("me", 1);
        assert!(head.is_over(&part.id));
        let mut transcript = Transcript::new();
        transcript.parts.push(part.clone());
        head.transcripts.insert(String::new(), transcript);
        assert!(!head.is_over(&part.id));
        assert!(!head.is_over("something else"));
    }

    #[test]
    fn a_write_is_found_or_known_to_be_missing_or_too_long_ago() {
        let base = VersionedHead::nothing().head;
        let mut head = base.clone();
        let write = head.advance("me", 1);
        assert_eq!(head.has(&write), Some(true));
        // However often a few others write after it, or instead of it.
        let mut instead = base;
        for number in 0..1000 {
            head.advance("another", number);
            instead.advance("another", number);
        }
        assert_eq!(head.has(&write), Some(true));
        assert_eq!(instead.has(&write), Some(false));
        for other in 0..WRITERS {
            head.advance(&other.to_string(), 1);
            instead.advance(&other.to_string(), 1);
        }
        assert_eq!(head.has(&write), None);
        assert_eq!(instead.has(&write), None);
        // For a writer who began later it is known.
        let mut late = instead.clone();
        let mine = late.advance("me", 2);
        assert_eq!(late.has(&mine), Some(true));
        instead.advance("somebody", 1);
        assert_eq!(instead.has(&mine), Some(false));
    }
}
