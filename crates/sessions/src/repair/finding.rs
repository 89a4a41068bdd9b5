//! The problems of a transcript, and their places.

use std::fmt;

use crate::record::{Damage, Position};

/// A problem of a transcript. Its `Display` includes the repair.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The line that the finding is about.
    pub position: Position,
    /// The problem.
    pub problem: Problem,
}

/// A kind of problem.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// There is no record of a conversation. Nothing can be done about that.
    Empty,
    /// The last line has no end and is no record. It is removed.
    Torn(Damage),
    /// The line is no record, and has none in it. It is removed.
    Damaged(Damage),
    /// There are NUL bytes beside a record, or several. They are removed.
    Nuls {
        /// How many.
        count: usize,
    },
    /// Whole records stand behind each other on the line, perhaps after something that is none. Each gets a line of its own.
    Glued {
        /// How many records there are.
        records: usize,
        /// How many bytes belong to no record; they are removed.
        dropped: usize,
    },
    /// Some bytes of the line are invalid UTF-8. They become U+FFFD.
    InvalidUtf8,
    /// There are halves of surrogate pairs. They become U+FFFD.
    LoneSurrogates,
    /// The record has the uuid of an earlier one. It replaces the earlier one, as readers use the last one.
    DuplicateUuid {
        /// The uuid of both records.
        uuid: String,
        /// The line of the earlier one.
        first: u64,
        /// Whether both records are the same byte for byte.
        is_same: bool,
    },
    /// The parent of the record does not exist. The record is linked to the one before it in the file.
    MissingParent {
        /// The record.
        uuid: String,
        /// The missing parent.
        parent: String,
        /// The record that this one is linked to instead; `None` if none is before it.
        linked_to: Option<String>,
    },
    /// The record is its own ancestor. It is linked to the one before it in the file.
    Cycle {
        /// The record.
        uuid: String,
        /// The record that this one is linked to instead; `None` if that would be a circle again.
        linked_to: Option<String>,
    },
    /// A tool call has no recorded result, which the model's API rejects. An error result is added.
    MissingResult {
        /// The call.
        tool_use_id: String,
        /// The tool.
        tool: String,
    },
    /// The result of a call that was not recorded. It is removed.
    OrphanResult {
        /// The call.
        tool_use_id: String,
    },
}

impl Problem {
    /// Whether mending does something about it.
    pub fn is_mendable(&self) -> bool {
        !matches!(self, Self::Empty)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, offset } = self.position;
        write!(f, "line {line} (byte {offset}): {}", self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let link = |linked_to: &Option<String>| match linked_to {
            Some(uuid) => format!("linked to {uuid}, which is before it in the file"),
            None => "made a first message".to_owned(),
        };
        match self {
            Self::Empty => f.write_str("no conversation is recorded; there is nothing to mend"),
            Self::Torn(damage) => write!(f, "an unfinished last line, removed: {:?}", damage.excerpt),
            Self::Damaged(damage) => write!(f, "{}, removed: {:?}", damage.reason, damage.excerpt),
            Self::Nuls { count } => write!(f, "{count} NUL bytes, removed"),
            Self::Glued { records, dropped } => {
                write!(
                    f,
                    "{records} records behind {dropped} bytes that are no record, or on one line; each gets a line"
                )
            }
            Self::InvalidUtf8 => f.write_str("invalid UTF-8, replaced"),
            Self::LoneSurrogates => f.write_str("halves of surrogate pairs, replaced"),
            Self::DuplicateUuid { uuid, first, is_same } => {
                let same = if *is_same {
                    "the same as"
                } else {
                    "takes the place of"
                };
                write!(f, "a second record {uuid}, {same} that of line {first}")
            }
            Self::MissingParent {
                uuid,
                parent,
                linked_to,
            } => {
                write!(
                    f,
                    "{uuid} follows {parent}, which is missing; {}",
                    link(linked_to)
                )
            }
            Self::Cycle { uuid, linked_to } => write!(f, "{uuid} follows itself; {}", link(linked_to)),
            Self::MissingResult { tool_use_id, tool } => {
                write!(
                    f,
                    "the call {tool_use_id} of {tool} has no result; an error result is added"
                )
            }
            Self::OrphanResult { tool_use_id } => {
                write!(f, "the result of {tool_use_id}, which has no call, removed")
            }
        }
    }
}
