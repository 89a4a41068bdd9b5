//! Cassettes: sessions of the CLI that are recorded once and can be replayed for ever.
//!
//! A cassette is one file of JSON lines. The first is a [`Header`]; each other line is an event:
//!
//! ```text
//! {"t":0.0000,"dir":"meta","msg":{"cassette":2,"recorder":"outrigger 0.1.0","argv":["claude",…],"env":{…},"cwd":"{{cwd}}","platform":"linux-x86_64"}}
//! {"t":0.0058,"dir":"in","msg":{"type":"control_request",…}}
//! {"t":0.4070,"dir":"out","msg":{"type":"control_response",…}}
//! {"t":0.5021,"dir":"err","msg":{"raw":"a line on stderr"}}
//! {"t":0.9000,"dir":"meta","msg":{"stdin":"closed"}}
//! {"t":0.9101,"dir":"meta","msg":{"stdout":"closed"}}
//! {"t":0.9104,"dir":"meta","msg":{"exit_code":0,"exit_signal":null}}
//! ```
//!
//! `t` are seconds since the beginning; `in` is a line of the client and `out` a line of the CLI. A frame is kept as it
//! was written, except for [redaction](RedactionRules), for the placeholders of [`Places`], and for white space around it. A line
//! that was no JSON, or blank, is `{"raw": "…"}`. A byte of invalid UTF-8 from the CLI is the character U+10FF00 plus its value, from
//! U+10FF80 to U+10FFFF. A last line of the CLI without a line end has `"end":false` beside its `msg`. Of the client's lines, blank
//! ones are not recorded and invalid UTF-8 becomes replacement characters: the CLI reads them so.
//!
//! The number in the header is the version of the format ([`VERSION`]); files of another version are refused.
//!
//! * [`Recorder`] records any reader and writer, line by line.
//! * [`Cassette`] is the contents of a file.
//! * [`CassetteReplay`] plays the CLI's side to a client, and reports where the client differs from the recorded one.
//! * [`normalised`] makes values the same in each run, for snapshots.

mod arguments;
mod divergence;
mod edit;
mod file;
mod lines;
mod matching;
mod normal;
mod places;
mod player;
mod recorder;
mod redact;
mod replay;
mod scan;
mod split;
mod strings;

pub use divergence::Divergence;
pub use file::{Cassette, CassetteError, Event, Header, LineEnd, Said, VERSION, What};
pub use matching::FrameDifference;
pub use normal::normalised;
pub use places::Places;
#[cfg(feature = "api-record")]
pub(crate) use places::{home_of_somebody, replace_placeholders};
pub use recorder::{About, RecordedReader, RecordedWriter, Recorder};
pub use redact::{RedactionError, RedactionRules, Redactor};
// In a module about an API that is recorded, the rules are those.
#[cfg(feature = "api")]
pub(crate) use redact::RedactionRules as Rules;
pub use replay::{CassetteReplay, Pace, Playing};

#[cfg(test)]
mod tests;
