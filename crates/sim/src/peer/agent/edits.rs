//! What `Edit` and `Write` make of a text: the ends of its lines, its quotes, and the patch that tells the change.

use serde_json::{Value, json};
use similar::{Algorithm, ChangeTag, TextDiff};

/// Lines around a change that a patch shows.
const AROUND: usize = 3;

/// What begins a file whose editor has marked it as Unicode.
pub(super) const MARK: char = '\u{feff}';

/// What begins a file of 16-bit units, the lower byte first.
const WIDE: &[u8] = &[0xFF, 0xFE];

/// The text of a file, and why it must not be changed, if that would make something else of the file.
pub(super) fn decoded(bytes: &[u8]) -> (String, Option<&'static str>) {
    if let Some(units) = bytes.strip_prefix(WIDE) {
        let units = units
            .chunks_exact(2)
            .map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        let chars = char::decode_utf16(units).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER));
        return (std::iter::once(MARK).chain(chars).collect(), None);
    }
    let text = String::from_utf8_lossy(bytes).into_owned();
    let flaw = if bytes.starts_with(&[0xFE, 0xFF]) {
        Some("is UTF-16 with the higher byte first")
    } else if bytes.iter().take(8 << 10).any(|byte| *byte == 0) {
        Some("has NUL bytes")
    } else {
        std::str::from_utf8(bytes).is_err().then_some("is no UTF-8")
    };
    (text, flaw)
}

/// The bytes of a text, in the encoding that the file has before.
pub(super) fn encoded(text: &str, before: &[u8]) -> Vec<u8> {
    if before.starts_with(WIDE) && text.starts_with(MARK) {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    } else {
        text.as_bytes().to_vec()
    }
}

/// A text as the tools see it, whose lines end with a newline alone.
pub(super) fn plain(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// The edited text with the ends of lines that most lines of the text before have.
pub(super) fn with_ends_of(before: &str, edited: &str) -> String {
    let crlf = before.matches("\r\n").count();
    let lf = before.matches('\n').count() - crlf;
    if crlf > lf {
        plain(edited).replace('\n', "\r\n")
    } else {
        edited.to_owned()
    }
}

fn straight(c: char) -> char {
    match c {
        '“' | '”' => '"',
        '‘' | '’' => '\'',
        c => c,
    }
}

/// The text that an `old_string` means: itself, or the first one that differs from it in the shape of quotes alone.
pub(super) fn meant(text: &str, old: &str) -> Option<String> {
    if text.contains(old) {
        return Some(old.to_owned());
    }
    let old: Vec<char> = old.chars().map(straight).collect();
    let chars: Vec<char> = text.chars().collect();
    let mut parts = chars.windows(old.len().max(1));
    let found = parts.find(|part| part.iter().map(|c| straight(*c)).eq(old.iter().copied()));
    found.map(|part| part.iter().collect())
}

/// A `new_string` with quotes of the shape that the text has.
fn shaped(new: &str, meant: &str) -> String {
    let (double, single) = (meant.contains(['“', '”']), meant.contains(['‘', '’']));
    let chars: Vec<char> = new.chars().collect();
    let shape = |(at, c): (usize, &char)| {
        let before = at.checked_sub(1).map(|before| chars[before]);
        let opens = before.is_none_or(|before| before.is_whitespace() || "([{—–".contains(before));
        match c {
            '"' if double && opens => '“',
            '"' if double => '”',
            '\'' if single && opens => '‘',
            '\'' if single => '’',
            c => *c,
        }
    };
    chars.iter().enumerate().map(shape).collect()
}

/// A text in which `meant` is replaced, once or each time. A line of which nothing is left goes as a whole.
pub(super) fn replaced(text: &str, old: &str, meant: &str, new: &str, all: bool) -> String {
    let new = if old == meant {
        new.to_owned()
    } else {
        shaped(new, meant)
    };
    let line = format!("{meant}\n");
    let meant = if new.is_empty() && !meant.ends_with('\n') && text.contains(&line) {
        &line
    } else {
        meant
    };
    if all {
        text.replace(meant, &new)
    } else {
        text.replacen(meant, &new, 1)
    }
}

/// What changed, with the lines around it.
pub(super) fn patch(before: &str, after: &str) -> Value {
    // A lone carriage return ends no line.
    let (before, after): (Vec<&str>, Vec<&str>) = (
        before.split_inclusive('\n').collect(),
        after.split_inclusive('\n').collect(),
    );
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .diff_slices(&before, &after);
    let hunk = |ops: &Vec<similar::DiffOp>| {
        let changes = ops.iter().flat_map(|op| diff.iter_changes(op));
        let mut lines = Vec::new();
        let (mut old, mut new) = (0, 0);
        for change in changes {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            old += usize::from(change.tag() != ChangeTag::Insert);
            new += usize::from(change.tag() != ChangeTag::Delete);
            let line = change.value();
            // Tabs at the beginning are shown as two spaces each.
            let text = line.trim_start_matches('\t');
            let tabs = "  ".repeat(line.len() - text.len());
            lines.push(format!("{sign}{tabs}{}", text.trim_end_matches('\n')));
            if !line.ends_with('\n') {
                lines.push("\\ No newline at end of file".to_owned());
            }
        }
        let begin = |start: Option<usize>| start.unwrap_or_default() + 1;
        json!({
            "oldStart": begin(ops.first().map(|op| op.old_range().start)), "oldLines": old,
            "newStart": begin(ops.first().map(|op| op.new_range().start)), "newLines": new, "lines": lines,
        })
    };
    diff.grouped_ops(AROUND).iter().map(hunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_their_encoding_or_are_not_changed() {
        let wide = b"\xFF\xFEo\0\r\0\n\0";
        assert_eq!(decoded(wide), ("\u{feff}o\r\n".to_owned(), None));
        assert_eq!(encoded("\u{feff}x", wide), b"\xFF\xFEx\0");
        assert_eq!(
            encoded("\u{feff}x", "\u{feff}".as_bytes()),
            "\u{feff}x".as_bytes()
        );
        for (bytes, shown) in [
            (&b"a\0b"[..], "a\0b"),
            (b"caf\xE9", "caf\u{fffd}"),
            (b"\xFE\xFF\0o", "\u{fffd}\u{fffd}\0o"),
        ] {
            let (text, flaw) = decoded(bytes);
            assert!(text == shown && flaw.is_some(), "{text:?}");
        }
        assert_eq!(decoded("é\n".as_bytes()).1, None);
        assert_eq!(patch("one\rtwo\r", "x\rtwo\r")[0]["lines"][0], "-one\rtwo\r");
    }

    #[test]
    fn patches() {
        assert_eq!(
            patch("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nx\nf\n"),
            json!([{
                "oldStart": 2, "oldLines": 5, "newStart": 2, "newLines": 5,
                "lines": [" b", " c", " d", "-e", "+x", " f"],
            }])
        );
        assert_eq!(
            patch("", "e"),
            json!([{"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 1,
                "lines": ["+e", "\\ No newline at end of file"]}])
        );
        assert_eq!(
            patch("\ta\n \tb\tc\n", "\tx\n \tb\tc\n"),
            json!([{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": ["-  a", "+  x", "  \tb\tc"]}])
        );
        assert_eq!(patch("a", "a"), json!([]));
    }

    #[test]
    fn changes_that_are_apart_are_hunks() {
        let text = |marks: &[u32]| -> String {
            let line = |n| format!("{n}{}\n", if marks.contains(&n) { " x" } else { "" });
            (1..=30).map(line).collect()
        };
        let starts = |patch: Value| -> Vec<u64> {
            let hunks = patch.as_array().cloned().unwrap_or_default();
            hunks
                .iter()
                .filter_map(|hunk| hunk["oldStart"].as_u64())
                .collect()
        };
        assert_eq!(starts(patch(&text(&[]), &text(&[5, 12]))), [2]);
        assert_eq!(starts(patch(&text(&[]), &text(&[5, 13]))), [2, 10]);
    }

    #[test]
    fn most_ends_of_lines_decide() {
        assert_eq!(with_ends_of("a\r\nb\r\nc\n", "x\ny\n"), "x\r\ny\r\n");
        assert_eq!(with_ends_of("a\r\nb\n", "x\ny\n"), "x\ny\n");
        assert_eq!(with_ends_of("a", "x\ny"), "x\ny");
    }

    #[test]
    fn quotes_of_another_shape_are_meant() {
        let edit = |text: &str, old: &str, new: &str| {
            let meant = meant(text, old)?;
            Some(replaced(text, old, &meant, new, false))
        };
        assert_eq!(edit("say “hi”", "\"hi\"", "\"ho\" 'k'").unwrap(), "say “ho” 'k'");
        assert_eq!(edit("it’s", "it's", "it's 'x'").unwrap(), "it’s ‘x’");
        assert_eq!(edit("say \"hi\"", "“hi”", "“ho”").unwrap(), "say “ho”");
        assert_eq!(edit("say “hi”", "\"no\"", ""), None);
    }

    #[test]
    fn a_line_of_which_nothing_is_left_goes() {
        assert_eq!(replaced("a\nb\nc\n", "b", "b", "", false), "a\nc\n");
        assert_eq!(replaced("a\na\nb\na", "a", "a", "", true), "b\na");
        assert_eq!(replaced("ab\n", "a", "a", "", false), "b\n");
    }
}
