//! Cassettes: sessions of the CLI that were recorded once and can be played back for ever.
//!
//! A cassette is one file of JSON lines. The first is a [`Header`]; each that follows is something that happened:
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
//! `t` are seconds since the beginning; `in` is what the client wrote and `out` what the CLI wrote. A frame stands there as it
//! was written, but for what was [redacted](Rules), for [`Places`], for which placeholders stand, and for white space around it. A line
//! that was no JSON, or blank, is `{"raw": "…"}`. A byte of the CLI that was no UTF-8 is the character U+10FF00 plus its value, from
//! U+10FF80 to U+10FFFF. A last line of the CLI without a line end has `"end":false` beside its `msg`. Of what the client writes, blank
//! lines are not recorded and bytes that are no UTF-8 are replacement characters: that is how a CLI reads them.
//!
//! | version | what is new in it |
//! |---|---|
//! | 1 | |
//! | 2 | blank lines and bytes that are no UTF-8; in version 1 the first are missing and the second are replacement characters |
//!
//! Files of all versions can be read, played and changed; what is changed keeps its version.
//!
//! * [`Recorder`] writes one from whatever reader and writer it is put around, line by line.
//! * [`Cassette`] is what is in a file.
//! * [`Replay`] plays the CLI's side of one to a client, and says where the client does something else than it did then.
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
mod record;
mod redact;
mod replay;
mod scan;
mod split;
mod strings;

pub use divergence::Divergence;
pub use file::{Cassette, CassetteError, Event, Header, LineEnd, Said, VERSION, What};
pub use matching::Difference;
pub use normal::normalised;
pub use places::Places;
#[cfg(feature = "api")]
pub(crate) use places::{is_above_homes, is_amid_path};
pub use record::{About, RecordedReader, RecordedWriter, Recorder};
pub use redact::{Redactor, RuleError, Rules};
pub use replay::{Pace, Playing, Replay};

/// Where in a text something stands that looks like a secret or names a person, for whatever else is written to files.
#[cfg(feature = "api")]
pub(crate) fn secrets(text: &str) -> Vec<std::ops::Range<usize>> {
    let hits = scan::secrets(text).into_iter();
    hits.map(|hit| hit.from..hit.to).collect()
}

#[cfg(test)]
mod tests;
