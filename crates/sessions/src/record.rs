//! Transcripts: one JSON object a line.
//!
//! [`Lines`] cuts a file into lines, [`Records`] reads them as [`Record`]s and reports those that are none as [`Damage`].

mod damage;
mod envelope;
mod fields;
mod lines;
pub(crate) mod object;
mod reader;

use std::borrow::Cow;
use std::fmt;

use outrigger_protocol::RawJson;
use serde::de::DeserializeOwned;

pub use damage::{Damage, DamageReason};
pub use envelope::{Envelope, RecordKind};
pub(crate) use fields::{Fields, elements, fields, is_truthy, last, text_of};
pub use lines::{Line, Lines};
pub use reader::{RecordLine, Records};

/// Where a line is in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Position {
    /// The offset of the line's first byte, from the beginning of the file.
    pub offset: u64,
    /// The number of the line, from 1, counted from where reading began.
    pub line: u64,
}

/// One line of a transcript that is a JSON object: what reading needs of it, decoded, and all of it as it is.
#[derive(Clone)]
pub struct Record {
    position: Position,
    bytes: Box<[u8]>,
    envelope: Box<Envelope>,
}

impl Record {
    /// Reads a line, without its line ending.
    ///
    /// # Errors
    /// When it is no JSON object.
    pub fn read(position: Position, bytes: impl Into<Box<[u8]>>) -> Result<Self, Damage> {
        let bytes = bytes.into();
        match Envelope::read(&String::from_utf8_lossy(&bytes)) {
            Ok(envelope) => Ok(Self {
                position,
                bytes,
                envelope: Box::new(envelope),
            }),
            Err(reason) => Err(Damage::of(position, &bytes, bytes.len() as u64, reason)),
        }
    }

    /// Where the record is.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The line byte for byte, without its `\n`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The line byte for byte, taken out.
    pub fn into_bytes(self) -> Box<[u8]> {
        self.bytes
    }

    /// The line as text, with U+FFFD for invalid UTF-8.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// What reading needs of it.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The type of the record.
    pub fn kind(&self) -> &RecordKind {
        &self.envelope.kind
    }

    /// The record's `uuid`.
    pub fn uuid(&self) -> Option<&str> {
        self.envelope.uuid.as_deref()
    }

    /// The value of a field as it is written; of the last one if several have the name.
    pub fn field(&self, name: &str) -> Option<RawJson> {
        let text = self.text();
        // The line was parsed before, so this can't fail.
        let fields = fields(&text).ok()?;
        RawJson::from_text(last(&fields, name)?).ok()
    }

    /// All fields in their order, each as its name and its value as it is written.
    pub fn fields(&self) -> Vec<(String, RawJson)> {
        let text = self.text();
        let fields = fields(&text).unwrap_or_default();
        let own = |(key, value): (Cow<'_, str>, Cow<'_, str>)| {
            let value = RawJson::from_text(value).ok()?;
            Some((key.into_owned(), value))
        };
        fields.into_iter().filter_map(own).collect()
    }

    /// Decodes the whole line into `T`. A lone surrogate is read as U+FFFD.
    ///
    /// # Errors
    /// When it is not of `T`'s shape.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        RawJson::from_text(self.text().trim_start_matches('\0'))?.decode()
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("kind", &self.kind().as_str())
            .field("uuid", &self.envelope.uuid)
            .field("position", &self.position)
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}
