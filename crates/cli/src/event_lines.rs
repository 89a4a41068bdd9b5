//! Events as lines of JSON: of a run, of a session on a host, of a cassette.

use std::io::{self, Write};

use outrigger::EventLine;

/// Writes an event, an object a line. `place` are its first fields: where it is in what it was read from.
pub(crate) fn write_event(
    out: &mut impl Write,
    place: &[(&str, String)],
    line: &EventLine,
) -> io::Result<()> {
    let json = serde_json::to_string(line)?;
    // Raw JSON goes through unchanged, and so does not go through a map.
    let Some(fields) = json.strip_prefix('{') else {
        return Err(io::Error::other("an event that is no object"));
    };
    out.write_all(b"{")?;
    for (name, value) in place {
        write!(out, "\"{name}\":{value},")?;
    }
    out.write_all(fields.as_bytes())?;
    out.write_all(b"\n")
}
