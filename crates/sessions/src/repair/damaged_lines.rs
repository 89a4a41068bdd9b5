//! Lines: finds records, and saves records from lines that are none.

use std::borrow::Cow;

use outrigger_protocol::repair::lone_surrogates;
use serde_json::value::RawValue;

use super::{Finding, Problem};
use crate::error::Result;
use crate::progress::Meter;
use crate::record::object::Object;
use crate::record::{Damage, DamageReason, Envelope, Position, RecordKind};

/// A line of the repaired transcript. Unchanged lines are borrowed from the old one.
#[derive(Debug, Clone)]
pub(super) struct Row<'s> {
    /// The line that the row comes from.
    pub(super) position: Position,
    /// Without the line break.
    pub(super) text: Cow<'s, [u8]>,
    /// The type of the record and its parent; `None` for a blank line.
    pub(super) links: Option<Links>,
}

/// What mending needs of a record: little, since there are many.
#[derive(Debug, Clone)]
pub(super) struct Links {
    pub(super) kind: RecordKind,
    pub(super) uuid: Option<Box<str>>,
    parent: Option<Box<str>>,
    agent: Option<Box<str>>,
    is_sidechain: bool,
}

impl From<Envelope> for Links {
    fn from(envelope: Envelope) -> Self {
        let short = |text: Option<String>| text.map(String::into_boxed_str);
        Self {
            kind: envelope.kind,
            uuid: short(envelope.uuid),
            parent: short(envelope.parent_uuid),
            agent: short(envelope.agent_id),
            is_sidechain: envelope.is_sidechain,
        }
    }
}

impl<'s> Row<'s> {
    pub(super) fn of(position: Position, text: Cow<'s, [u8]>) -> Option<Self> {
        let envelope = envelope(&text)?;
        Some(Self {
            position,
            text,
            links: Some(envelope.into()),
        })
    }

    /// The record's id, if it is linked into a conversation.
    pub(super) fn uuid(&self) -> Option<&str> {
        let links = self.links.as_ref().filter(|it| it.kind.is_linked())?;
        links.uuid.as_deref()
    }

    pub(super) fn parent(&self) -> Option<&str> {
        self.links.as_ref()?.parent.as_deref()
    }

    /// Whether the row is part of the main conversation.
    pub(super) fn is_main(&self) -> bool {
        self.uuid().is_some() && self.links.as_ref().is_some_and(|it| !it.is_sidechain)
    }

    /// Whether both belong to one conversation: the main one, or that of one subagent.
    pub(super) fn is_beside(&self, other: &Row<'_>) -> bool {
        fn lane<'r>(row: &'r Row<'_>) -> Option<(bool, Option<&'r str>)> {
            let links = row.links.as_ref()?;
            let agent = links.agent.as_deref().filter(|_| links.is_sidechain);
            Some((links.is_sidechain, agent))
        }
        lane(self) == lane(other)
    }

    /// Links the row to another record, or to none.
    pub(super) fn link(&mut self, parent: Option<&str>) {
        self.change(|object| match parent {
            Some(parent) => object.set_string("parentUuid", parent),
            None => object.set("parentUuid", "null"),
        });
    }

    /// Changes fields; the others stay as they are written.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Object<'_>)) {
        let Ok(text) = std::str::from_utf8(&self.text) else {
            return;
        };
        let Some(mut object) = Object::parse(text) else {
            return;
        };
        change(&mut object);
        let changed = object.to_text();
        self.links = Envelope::read(&changed).ok().map(Links::from);
        self.text = changed.into_bytes().into();
    }
}

/// The envelope of a line, if it is a record.
fn envelope(text: &[u8]) -> Option<Envelope> {
    // Readers may pass over NULs, but the CLI does not do so everywhere.
    let text = Some(text).filter(|text| memchr::memchr(0, text).is_none())?;
    Envelope::read(std::str::from_utf8(text).ok()?).ok()
}

/// Cuts a transcript into lines and saves what can be saved of each.
pub(super) fn read<'s>(
    bytes: &'s [u8],
    findings: &mut Vec<Finding>,
    meter: &mut Meter<'_>,
) -> Result<Vec<Row<'s>>> {
    let mut rows = Vec::new();
    let mut offset = 0;
    for (nth, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let position = Position {
            offset,
            line: nth as u64 + 1,
        };
        offset += line.len() as u64;
        meter.add(line.len() as u64)?;
        let text = line.strip_suffix(b"\n");
        let is_ended = text.is_some();
        let text = text.unwrap_or(line);
        if text.iter().all(u8::is_ascii_whitespace) {
            rows.push(Row {
                position,
                text: text.into(),
                links: None,
            });
            continue;
        }
        let mut find = |problem| findings.push(Finding { position, problem });
        if let Some(row) = Row::of(position, text.into()) {
            rows.push(clean(row, &mut find));
            continue;
        }
        let before = rows.len();
        let nuls = memchr::memchr_iter(0, text).count();
        let mut dropped = 0;
        for piece in text.split(|byte| *byte == 0).filter(|piece| !piece.is_empty()) {
            let lossy = String::from_utf8_lossy(piece);
            let (saved, lost) = save(position, &lossy);
            if !saved.is_empty() && matches!(lossy, std::borrow::Cow::Owned(_)) {
                find(Problem::InvalidUtf8);
            }
            dropped += lost;
            rows.extend(saved.into_iter().map(|row| clean(row, &mut find)));
        }
        let records = rows.len() - before;
        if records == 0 {
            let why = Envelope::read(&String::from_utf8_lossy(text));
            let reason = why.err().unwrap_or(DamageReason::NotAnObject);
            let is_torn = !is_ended && nuls == 0 && matches!(reason, DamageReason::NotJson(_));
            let reason = if is_torn { DamageReason::Torn } else { reason };
            let damage = Damage::of(position, text, text.len() as u64, reason);
            find(if is_torn {
                Problem::Torn(damage)
            } else {
                Problem::Damaged(damage)
            });
            continue;
        }
        if nuls > 0 {
            find(Problem::Nuls { count: nuls });
        }
        if records > 1 || dropped > 0 {
            find(Problem::Glued { records, dropped });
        }
    }
    Ok(rows)
}

/// Replaces halves of surrogate pairs.
fn clean<'s>(mut row: Row<'s>, find: &mut impl FnMut(Problem)) -> Row<'s> {
    let mended = std::str::from_utf8(&row.text).ok().and_then(lone_surrogates);
    if let Some(mended) = mended {
        find(Problem::LoneSurrogates);
        row.links = Envelope::read(&mended).ok().map(Links::from);
        row.text = mended.into_bytes().into();
    }
    row
}

/// How many places of a line are tried.
const MOST_TRIES: usize = 1000;

/// The records in a text that is not one, and how many bytes are none.
fn save(position: Position, text: &str) -> (Vec<Row<'static>>, usize) {
    if let Some(row) = Row::of(position, text.as_bytes().to_owned().into()) {
        return (vec![row], 0);
    }
    if let Some(rows) = whole_records(position, text) {
        return (rows, 0);
    }
    // A line that was torn, with one behind it whose writer did not look.
    let tries = text.match_indices("{\"").map(|(at, _)| at).filter(|at| *at > 0);
    for at in tries.take(MOST_TRIES) {
        if let Some(rows) = whole_records(position, &text[at..]) {
            return (rows, at);
        }
    }
    (Vec::new(), text.len())
}

/// The records that a text consists of, if it consists of nothing else. The end of a torn record can look like a record; only a whole
/// record has a type together with an id.
fn whole_records(position: Position, text: &str) -> Option<Vec<Row<'static>>> {
    let mut rows = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let text = value.ok()?.get().as_bytes();
        let envelope = envelope(text)?;
        let has_id = envelope.session_id.is_some() || envelope.uuid.is_some();
        if envelope.kind.as_str().is_empty() || !has_id {
            return None;
        }
        rows.push(Row {
            position,
            text: text.to_owned().into(),
            links: Some(envelope.into()),
        });
    }
    Some(rows).filter(|rows| !rows.is_empty())
}
