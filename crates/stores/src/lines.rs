//! Entries as lines of text.

use outrigger_protocol::RawJson;

/// Adds an entry as a line. One that has line ends of its own, or is a string itself, is written as a JSON string.
pub(crate) fn write_line(text: &mut String, entry: &RawJson) {
    if entry.get().contains(['\n', '\r']) || entry.get().starts_with('"') {
        text.push_str(&serde_json::Value::from(entry.get()).to_string());
    } else {
        text.push_str(entry.get());
    }
    text.push('\n');
}

/// The entries of lines; a line that is no entry is an error in its place.
pub(crate) fn lines(content: &[u8]) -> impl Iterator<Item = Result<RawJson, ()>> {
    let lines = content
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines.map(|line| {
        let text = std::str::from_utf8(line).map_err(drop)?;
        let text = if text.starts_with('"') {
            serde_json::from_str(text).map_err(drop)?
        } else {
            text.to_owned()
        };
        RawJson::from_text(text).map_err(drop)
    })
}
