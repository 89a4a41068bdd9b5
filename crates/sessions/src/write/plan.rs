//! Decides what happens to each record of a session in its fork.

use std::borrow::Cow;
use std::collections::HashMap;

use outrigger_protocol::RawJson;
use uuid::Uuid;

use super::fork::{ForkOptions, title_of_fork};
use super::lineage::Lineage;
use crate::clock::now;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::read::prompt;
use crate::record::object::{Object, elements, quoted};
use crate::record::{Record, RecordKind};

/// What belongs to the process or team that the session was in, or to its turns, and to nobody in the fork.
const CLEARED: [&str; 10] = [
    "teamName",
    "agentName",
    "sessionKind",
    "slug",
    "sourceToolAssistantUUID",
    "summarizedTurnPromptUuids",
    "droppedPromptUuids",
    "sentAsUuid",
    "rowsAheadOfPutBack",
    "turnAttributionKey",
];

/// The CLI's code for missing records about the origin of data.
const LOST: u8 = 12;

/// How much of the users' records is kept to make a title of.
const HEAD: usize = 64 * 1024;

/// The two passes over a transcript: all records are [surveyed](Self::survey), it is [decided](Self::decide), and then they are
/// [rewritten](Self::rewrite) in the same order.
#[derive(Debug)]
pub(crate) struct Plan {
    source: SessionId,
    target: SessionId,
    now: String,
    /// The records that are linked into the main conversation, in their order.
    linked: Vec<Linked>,
    /// Where in `linked` a uuid is, the last one if there are several.
    places: HashMap<Box<str>, usize>,
    title: Title,
    last_words: Carried,
    /// How many of the linked records are kept.
    kept: usize,
    /// The boundary whose kept messages are not copied.
    bare_boundary: Option<usize>,
    /// How many linked records were rewritten.
    at: usize,
}

/// A record of the main conversation.
#[derive(Debug)]
struct Linked {
    uuid: Box<str>,
    parent: Option<Box<str>>,
    new_uuid: Box<str>,
    kind: PlannedKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlannedKind {
    Plain,
    /// A record of which only the link is followed.
    Progress,
    Boundary,
    Summary,
}

#[derive(Debug, Default)]
struct Title {
    given: Option<String>,
    custom: Option<String>,
    made: Option<String>,
    /// The first user records.
    head: Vec<u8>,
}

/// What else goes along.
#[derive(Debug, Default)]
struct Carried {
    suppression: bool,
    replacements: Vec<String>,
    latch: Option<String>,
    tools: Option<String>,
    data_flow: Vec<String>,
    /// Whether a record of data flow is the session's own.
    has_data_flow: bool,
    lineage: Lineage,
    relocated: Option<String>,
}

impl Plan {
    pub(crate) fn new(source: SessionId, target: SessionId) -> Self {
        Self {
            source,
            target,
            now: now(),
            linked: Vec::new(),
            places: HashMap::new(),
            title: Title::default(),
            last_words: Carried::default(),
            kept: 0,
            bare_boundary: None,
            at: 0,
        }
    }

    /// Takes note of a record.
    pub(crate) fn survey(&mut self, record: &Record) {
        if record.kind().is_linked() && record.uuid().is_some() {
            self.last_words.lineage.copied(record);
        }
        if let Some(uuid) = linked_uuid(record) {
            let envelope = record.envelope();
            let kind = match (record.kind(), envelope.subtype.as_deref()) {
                (RecordKind::Progress, _) => PlannedKind::Progress,
                (RecordKind::System, Some("compact_boundary")) => PlannedKind::Boundary,
                _ if envelope.is_compact_summary => PlannedKind::Summary,
                _ => PlannedKind::Plain,
            };
            self.places.insert(uuid.into(), self.linked.len());
            self.linked.push(Linked {
                uuid: uuid.into(),
                parent: envelope.parent_uuid.as_deref().map(Into::into),
                new_uuid: Uuid::new_v4().to_string().into(),
                kind,
            });
            if *record.kind() == RecordKind::User && self.title.head.len() < HEAD {
                self.title.head.extend_from_slice(record.bytes());
                self.title.head.push(b'\n');
            }
            return;
        }
        if record.kind().is_linked() {
            return;
        }
        let text = record.text();
        let Some(object) = Object::parse(&text) else {
            return;
        };
        let said = |key| object.string(key).filter(|title| !title.is_empty());
        let is_own = said("sessionId").is_some_and(|id| id == self.source.as_str());
        match record.kind().as_str() {
            "custom-title" => self.title.custom = said("customTitle"),
            "ai-title" => self.title.made = said("aiTitle"),
            "history-suppression" => self.last_words.suppression = true,
            "content-replacement" => {
                let replacements = object.get("replacements").map(elements).unwrap_or_default();
                let carried = &mut self.last_words.replacements;
                carried.extend(replacements.into_iter().map(Cow::into_owned));
            }
            "atis-latch" => self.last_words.latch = Some(text.into_owned()),
            "tools-used" => self.last_words.tools = Some(text.into_owned()),
            "relocated" => self.last_words.relocated = Some(text.into_owned()),
            // Records about a subagent's data belong to the subagent.
            "data-flow-records" | "data-flow-incomplete"
                if object.get("agentId").is_none() && said("sessionId").is_some() =>
            {
                self.last_words.has_data_flow |= is_own;
                self.last_words.data_flow.push(text.into_owned());
            }
            "derived-from" if is_own => self.last_words.lineage.note_derived_from(&object),
            _ => {}
        }
    }

    /// Decides where the fork ends. New ids of the copied messages are known from here on.
    pub(crate) fn decide(&mut self, options: &ForkOptions) -> Result<()> {
        self.title.given = options.title.as_deref().map(str::trim).map(str::to_owned);
        self.kept = self.linked.len();
        if let Some(last) = &options.up_to_message_id {
            let Some(&last) = self.places.get(&**last) else {
                let why = format!("session {} has no message {last}", self.source);
                return Err(Error::invalid("the message to fork at", why));
            };
            self.kept = last + 1;
            self.cut_at_boundary();
        }
        if self.linked[..self.kept]
            .iter()
            .any(|linked| linked.kind != PlannedKind::Progress)
        {
            return Ok(());
        }
        let why = if self.linked.is_empty() {
            "it has no messages"
        } else {
            "no message is before where it is to end"
        };
        Err(Error::invalid("the session", format!("{}: {why}", self.source)))
    }

    /// A boundary is nothing without the summary that follows it: a fork that ends between them ends before both. One that ends with
    /// the summary has nothing behind it to keep.
    fn cut_at_boundary(&mut self) {
        while let Some(boundary) = self.linked[..self.kept]
            .iter()
            .rposition(|it| it.kind == PlannedKind::Boundary)
        {
            let behind = &self.linked[boundary + 1..];
            let next = behind
                .iter()
                .position(|it| it.kind == PlannedKind::Boundary)
                .unwrap_or(behind.len());
            let Some(summary) = behind[..next]
                .iter()
                .position(|it| it.kind == PlannedKind::Summary)
            else {
                return;
            };
            let summary = boundary + 1 + summary;
            if summary + 1 == self.kept {
                self.bare_boundary = Some(boundary);
            }
            if summary < self.kept {
                return;
            }
            self.kept = boundary;
        }
    }

    /// The first line of the fork, before its messages.
    pub(crate) fn first_line(&self) -> Option<String> {
        self.last_words.suppression.then(|| {
            let mut line = self.line("history-suppression");
            line.set_string("cause", "fork_inherit");
            line.set_string("ts", &self.now);
            line.to_text()
        })
    }

    /// The record in the fork; `None` if it is not copied.
    pub(crate) fn rewrite(&mut self, record: &Record) -> Option<String> {
        linked_uuid(record)?;
        let at = self.at;
        self.at += 1;
        let linked = self
            .linked
            .get(at)
            .filter(|it| at < self.kept && it.kind != PlannedKind::Progress)?;
        let text = record.text();
        let mut object = Object::parse(&text)?;
        object.set("parentUuid", self.new_parent(at));
        object.set_string("uuid", &linked.new_uuid);
        object.set_string("sessionId", self.target.as_str());
        object.set("isSidechain", "false");
        if let Some(logical) = record.envelope().logical_parent_uuid.as_deref() {
            object.set(
                "logicalParentUuid",
                self.new_id(logical).map_or("null".to_owned(), quoted),
            );
        }
        if let Some(metadata) = object.get("compactMetadata").map(str::to_owned) {
            object.set(
                "compactMetadata",
                self.metadata(&metadata, self.bare_boundary == Some(at)),
            );
        }
        for key in CLEARED {
            object.remove(key);
        }
        if *record.kind() == RecordKind::Assistant && object.get("requestSessionId").is_none() {
            object.set_string("requestSessionId", self.source.as_str());
        }
        let is_last = self.linked[at + 1..self.kept]
            .iter()
            .all(|it| it.kind == PlannedKind::Progress);
        if is_last {
            object.set_string("timestamp", &self.now);
        }
        let mut from = Object::new();
        from.set_string("sessionId", self.source.as_str());
        from.set_string("messageUuid", &linked.uuid);
        object.set("forkedFrom", from.to_text());
        Some(object.to_text())
    }

    /// The last lines of the fork, behind its messages.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        let carried = &self.last_words;
        let mut lines = Vec::new();
        if !carried.replacements.is_empty() {
            let mut line = self.line("content-replacement");
            line.set("replacements", format!("[{}]", carried.replacements.join(",")));
            line.set_string("uuid", &Uuid::new_v4().to_string());
            line.set_string("timestamp", &self.now);
            lines.push(line.to_text());
        }
        // Only a session that records data flow itself records the origin of data.
        let has_data_flow = carried.has_data_flow || carried.lineage.is_lost();
        let flow = carried.data_flow.iter().filter(|_| has_data_flow);
        for text in carried
            .latch
            .iter()
            .chain(&carried.tools)
            .chain(flow)
            .chain(&carried.relocated)
        {
            if let Some(mut line) = Object::parse(text) {
                line.set_string("sessionId", self.target.as_str());
                lines.push(line.to_text());
            }
        }
        if carried.lineage.is_lost() {
            let mut line = self.line("data-flow-incomplete");
            line.set("v", "1");
            line.set("codes", format!("[{LOST}]"));
            lines.push(line.to_text());
        }
        if let Some(sessions) = carried.lineage.of_fork(self.source.as_str(), has_data_flow) {
            let mut line = self.line("derived-from");
            line.set("v", "1");
            line.set("sessions", sessions);
            lines.push(line.to_text());
        }

        let mut line = self.line("custom-title");
        line.set_string("customTitle", &self.title());
        line.set_string("uuid", &Uuid::new_v4().to_string());
        line.set_string("timestamp", &self.now);
        lines.push(line.to_text());
        lines
    }

    fn line(&self, kind: &str) -> Object<'static> {
        let mut line = Object::new();
        line.set_string("type", kind);
        line.set_string("sessionId", self.target.as_str());
        line
    }

    fn title(&self) -> String {
        let Title {
            given,
            custom,
            made,
            head,
        } = &self.title;
        let first = prompt::first(head);
        let words = first.text.or(first.other.map(str::to_owned));
        let own = custom.as_deref().or(made.as_deref()).or(words.as_deref());
        let given = given.as_deref().filter(|given| !given.is_empty());
        given.map_or_else(|| title_of_fork(own), str::to_owned)
    }

    /// The new id of a message that is kept.
    fn new_id(&self, uuid: &str) -> Option<&str> {
        let at = *self.places.get(uuid)?;
        let linked = self
            .linked
            .get(at)
            .filter(|it| at < self.kept && it.kind != PlannedKind::Progress)?;
        Some(&linked.new_uuid)
    }

    /// The parent of a message in the fork: that of the progress that it follows, if it follows any.
    fn new_parent(&self, at: usize) -> String {
        let mut parent = self.linked[at].parent.as_deref();
        for _ in 0..=self.linked.len() {
            let Some(uuid) = parent else { break };
            let Some(&place) = self.places.get(uuid) else {
                // The id was missing in the original, too.
                return quoted(uuid);
            };
            if self.linked[place].kind != PlannedKind::Progress {
                return self.new_id(uuid).map_or("null".to_owned(), quoted);
            }
            parent = self.linked[place].parent.as_deref();
        }
        "null".to_owned()
    }

    /// The boundary's metadata about the messages that it keeps, with their new ids or without them.
    fn metadata(&self, text: &str, is_bare: bool) -> String {
        let mut mapped = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(quote) = rest.find('"') {
            let (before, from) = rest.split_at(quote + 1);
            mapped.push_str(before);
            let known = from
                .get(..36)
                .filter(|_| from[36..].starts_with('"'))
                .and_then(|uuid| self.new_id(uuid));
            let skipped = if known.is_some() { 36 } else { 0 };
            mapped.push_str(known.unwrap_or_default());
            rest = &from[skipped..];
        }
        mapped.push_str(rest);
        if !is_bare || RawJson::from_text(mapped.as_str()).is_err() {
            return mapped;
        }
        let Some(mut object) = Object::parse(&mapped) else {
            return mapped;
        };
        object.remove("preservedSegment");
        object.remove("preservedMessages");
        object.to_text()
    }
}

/// The uuid of a record of the main conversation.
fn linked_uuid(record: &Record) -> Option<&str> {
    let envelope = record.envelope();
    let is_linked = record.kind().is_linked() && !envelope.is_sidechain;
    record.uuid().filter(|_| is_linked)
}
