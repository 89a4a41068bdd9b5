//! Files that conversations are recorded in.

use serde::Deserialize;

use super::Direction;
use crate::RawJson;
use crate::shape::keys;

/// One line of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recorded {
    /// A frame, and who wrote it.
    Frame(Direction, RawJson),
    /// A line that was no JSON, as text, and who wrote it.
    Text(Direction, String),
    /// Another conversation begins: the recorder tells the scenario or the command line.
    Start,
    /// Other remarks of the recorder, or what was said on stderr.
    Remark,
    /// No envelope: the line is itself what was said, by whom is not told.
    Plain,
}

/// Reads one line of a recording.
///
/// Recordings have one JSON object a line, `{"t": seconds, "dir": "in" | "out" | "err" | "meta", "msg": …}`; `msg` is the frame, or
/// `{"raw": "…"}` for a line that was no JSON. `meta` with a `scenario` or an `argv` begins a conversation. `in` is what the client wrote, `out` what the CLI wrote on stdout. Any other line is
/// [`Recorded::Plain`]: plain NDJSON.
pub fn recorded(line: &[u8]) -> Recorded {
    #[derive(Deserialize)]
    struct Envelope {
        dir: String,
        msg: RawJson,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Text {
        raw: String,
    }
    // Recorders write UTF-8. Other bytes have to be reported, so they are not mended here.
    let Ok(text) = std::str::from_utf8(line) else {
        return Recorded::Plain;
    };
    let envelope = RawJson::from_text(text.trim()).and_then(|raw| raw.read::<Envelope>());
    let Ok(Envelope { dir, msg }) = envelope else {
        return Recorded::Plain;
    };
    let direction = match dir.as_str() {
        "out" => Direction::Out,
        "in" => Direction::In,
        "meta" if keys(&msg).contains_key("argv") || keys(&msg).contains_key("scenario") => {
            return Recorded::Start;
        }
        _ => return Recorded::Remark,
    };
    match msg.read::<Text>() {
        Ok(Text { raw }) => Recorded::Text(direction, raw),
        Err(_) => Recorded::Frame(direction, msg),
    }
}
