//! The links of a transcript without its texts: some 150 bytes a record, however long the record is.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZero;
use std::path::Path;

use crate::error::{Error, Result};
use crate::record::{
    Damage, DamageReason, Fields, Lines, Position, elements, fields, is_truthy, last, text_of,
};

/// How many damaged lines are reported in detail.
const MOST_DAMAGE: usize = 1000;

/// The id of a record, an answer, a call or an agent, as a number: a UUID's own, or a hash of any other text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id(NonZero<u128>);

/// Makes ids of texts.
#[derive(Debug, Default)]
pub(super) struct Ids(RandomState, RandomState);

impl Ids {
    pub(super) fn of(&self, text: &str) -> Id {
        let of_text = uuid(text).unwrap_or_else(|| {
            let (high, low) = (self.0.hash_one(text), self.1.hash_one(text));
            u128::from(high) << 64 | u128::from(low)
        });
        Id(NonZero::new(of_text).unwrap_or(NonZero::<u128>::MAX))
    }
}

/// The number that a UUID is, if it is written as they mostly are; other writings are other ids.
fn uuid(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match (at, byte) {
            (8 | 13 | 18 | 23, b'-') => {}
            (8 | 13 | 18 | 23, _) => return None,
            (_, b'0'..=b'9') => number = number << 4 | u128::from(byte - b'0'),
            (_, b'a'..=b'f') => number = number << 4 | u128::from(byte - b'a' + 10),
            _ => return None,
        }
    }
    Some(number)
}

/// The role of a record in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordRole {
    User,
    Assistant,
    System,
    /// A prompt that had queued up, and was put into a turn that ran.
    Queued,
    /// What else is attached.
    Attachment,
    Progress,
}

/// A record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) id: Id,
    pub(super) parent: Option<Id>,
    /// The API's message that it is part of.
    pub(super) message: Option<Id>,
    /// The agent that wrote it.
    pub(super) agent: Option<Id>,
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) kind: RecordRole,
    pub(super) is_sidechain: bool,
    pub(super) is_of_team: bool,
    /// Whether the message is marked as not meant to be shown.
    pub(super) is_meta: bool,
    /// Whether the message is not shown.
    pub(super) is_hidden: bool,
}

/// The part of the conversation that a compaction kept, to be inserted behind another record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeptByCompaction {
    Segment { head: Id, anchor: Id, tail: Id },
    Messages { anchor: Id, ids: Vec<Id> },
}

/// A transcript's records and what links them.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) ids: Ids,
    /// In the order in which their ids came first; of several with one id there is the last.
    pub(super) nodes: Vec<Node>,
    pub(super) by_id: HashMap<Id, u32>,
    /// The kept parts of compactions, by their record.
    pub(super) kept: BTreeMap<u32, KeptByCompaction>,
    /// The calls that answers make, and those that results are of.
    pub(super) calls: HashMap<u32, Box<[Id]>>,
    /// The record with the call of a result.
    pub(super) sources: HashMap<u32, Id>,
    /// The prompt that a queued one is a copy of.
    pub(super) copies: HashMap<u32, Id>,
    pub(super) damage: Vec<Damage>,
    pub(super) damaged: u64,
}

impl Index {
    /// Goes over a whole transcript.
    pub(super) fn read(file: &File, path: &Path) -> Result<Self> {
        let mut index = Self::default();
        let mut lines = Lines::new(file);
        loop {
            let cap = lines.cap_of();
            let Some(line) = lines.next().map_err(Error::io("read", path))? else {
                return Ok(index);
            };
            if line.is_blank() {
                continue;
            }
            let reason = if line.is_cut() {
                Err(DamageReason::Oversized(cap))
            } else {
                index.take(line.position, line.bytes)
            };
            if let Err(mut reason) = reason {
                if !line.is_ended && matches!(reason, DamageReason::NotJson(_)) {
                    reason = DamageReason::Torn;
                }
                index.damaged += 1;
                if index.damage.len() < MOST_DAMAGE {
                    let damage = Damage::of(line.position, line.bytes, line.length, reason);
                    index.damage.push(damage);
                }
            }
        }
    }

    pub(super) fn get(&self, id: Id) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    /// Takes in a line.
    pub(super) fn take(&mut self, position: Position, line: &[u8]) -> Result<(), DamageReason> {
        let text = String::from_utf8_lossy(line);
        let fields = fields(&text)?;
        let said = |name| last(&fields, name).and_then(text_of);
        let holds = |name| last(&fields, name).is_some_and(is_truthy);
        let kind = match said("type").as_deref() {
            Some("user") => RecordRole::User,
            Some("assistant") => RecordRole::Assistant,
            Some("system") => RecordRole::System,
            Some("attachment") => RecordRole::Attachment,
            Some("progress") => RecordRole::Progress,
            _ => return Ok(()),
        };
        // The framing reads no lines that are longer.
        let (Some(uuid), Ok(length)) = (said("uuid"), u32::try_from(line.len())) else {
            return Ok(());
        };
        let id = |text: String| (!text.is_empty()).then(|| self.ids.of(&text));
        let mut node = Node {
            id: self.ids.of(&uuid),
            parent: said("parentUuid").and_then(id),
            message: None,
            agent: said("agentId").and_then(id),
            offset: position.offset,
            length,
            kind,
            is_sidechain: holds("isSidechain"),
            is_of_team: holds("teamName"),
            is_meta: holds("isMeta"),
            is_hidden: holds("isMeta") && !last(&fields, "origin").is_some_and(is_from_others),
        };
        let (mut calls, mut kept, mut copy) = (Vec::new(), None, None);
        match kind {
            RecordRole::User | RecordRole::Assistant => {
                if let Some(message) = last(&fields, "message") {
                    (node.message, calls) = self.read_message(kind, message);
                }
            }
            RecordRole::System => kept = last(&fields, "compactMetadata").and_then(|it| self.read_kept(it)),
            RecordRole::Attachment => {
                let attachment = last(&fields, "attachment").map(crate::record::fields);
                if let Some(Ok(attachment)) = attachment
                    && is_queued(&attachment)
                {
                    node.kind = RecordRole::Queued;
                    let origin = last(&attachment, "origin").is_some_and(is_from_others);
                    node.is_hidden = last(&attachment, "isMeta").is_some_and(is_truthy) && !origin;
                    copy = last(&attachment, "source_uuid").and_then(text_of).and_then(id);
                }
            }
            RecordRole::Progress | RecordRole::Queued => {}
        }
        let source = said("sourceToolAssistantUUID")
            .and_then(id)
            .filter(|_| !calls.is_empty());
        let at = self.put(node);
        replace(&mut self.calls, at, (!calls.is_empty()).then(|| calls.into()));
        replace(&mut self.sources, at, source);
        replace(&mut self.copies, at, copy);
        match kept {
            Some(kept) => self.kept.insert(at, kept),
            None => self.kept.remove(&at),
        };
        Ok(())
    }

    fn put(&mut self, node: Node) -> u32 {
        let next = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let at = *self.by_id.entry(node.id).or_insert(next);
        if at == next {
            self.nodes.push(node);
        } else {
            self.nodes[at as usize] = node;
        }
        at
    }

    /// The API's message that a record is part of, and the calls in it.
    fn read_message(&self, kind: RecordRole, message: &str) -> (Option<Id>, Vec<Id>) {
        let Ok(message) = fields(message) else {
            return (None, Vec::new());
        };
        let (block_kind, block_key) = match kind {
            RecordRole::Assistant => ("tool_use", "id"),
            _ => ("tool_result", "tool_use_id"),
        };
        let id = last(&message, "id")
            .filter(|_| kind == RecordRole::Assistant)
            .and_then(text_of);
        let id = id.filter(|id| !id.is_empty()).map(|id| self.ids.of(&id));
        let mut calls = Vec::new();
        let content = last(&message, "content").filter(|content| content.contains(block_kind));
        for block in content.and_then(elements).unwrap_or_default() {
            let Ok(block) = fields(&block) else {
                continue;
            };
            let said = |name| last(&block, name).and_then(text_of);
            if said("type").as_deref() == Some(block_kind)
                && let Some(call) = said(block_key)
            {
                calls.push(self.ids.of(&call));
            }
        }
        (id, calls)
    }

    /// The part of the conversation that a compaction kept.
    fn read_kept(&self, metadata: &str) -> Option<KeptByCompaction> {
        let metadata = fields(metadata).ok()?;
        let id = |fields: &Fields<'_>, name| last(fields, name).and_then(text_of).map(|id| self.ids.of(&id));
        if let Some(messages) = last(&metadata, "preservedMessages")
            && let Ok(messages) = fields(messages)
        {
            let uuids = elements(last(&messages, "uuids")?)?;
            let ids = uuids.iter().map(|uuid| Some(self.ids.of(&text_of(uuid)?)));
            return Some(KeptByCompaction::Messages {
                anchor: id(&messages, "anchorUuid")?,
                ids: ids.collect::<Option<_>>()?,
            });
        }
        let segment = fields(last(&metadata, "preservedSegment")?).ok()?;
        Some(KeptByCompaction::Segment {
            head: id(&segment, "headUuid")?,
            anchor: id(&segment, "anchorUuid")?,
            tail: id(&segment, "tailUuid")?,
        })
    }
}

fn replace<T>(map: &mut HashMap<u32, T>, at: u32, value: Option<T>) {
    match value {
        Some(value) => map.insert(at, value),
        None => map.remove(&at),
    };
}

/// Whether an attachment is a prompt that had queued up.
pub(super) fn is_queued(attachment: &Fields<'_>) -> bool {
    let is_content = |prompt: &str| prompt.starts_with(['"', '[']);
    last(attachment, "type").and_then(text_of).as_deref() == Some("queued_command")
        && last(attachment, "prompt").is_some_and(is_content)
}

/// Whether an origin outside of this session wrote the record: then it is shown although it is marked as hidden.
fn is_from_others(origin: &str) -> bool {
    let kind = fields(origin)
        .ok()
        .and_then(|origin| last(&origin, "kind").and_then(text_of));
    kind.is_some_and(|kind| kind == "channel" || kind == "peer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_apart_as_texts_are() {
        let ids = Ids::default();
        let uuid = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(ids.of(uuid), ids.of(uuid));
        assert_eq!(ids.of(uuid).0.get(), 0x550e_8400_e29b_41d4_a716_4466_5544_0000);
        assert_ne!(ids.of(uuid), ids.of(&uuid.to_uppercase()));
        assert_ne!(ids.of("a"), ids.of("b"));
        assert_eq!(ids.of("a"), ids.of("a"));
    }
}
