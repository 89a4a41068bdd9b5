//! The two ends of a transcript, and finding things in them without decoding what need not be.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::clock;
use crate::file;
use crate::record::{fields, last, text_of};

/// How much is read of each end of a transcript.
pub(crate) const END: usize = 64 * 1024;

/// Room for the ends of one transcript after the other.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Holds both ends. Its length is fixed, since allocating it for each transcript costs as much as reading.
    buffer: Vec<u8>,
}

/// The two ends of a transcript. They are the same when it is short.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lite<'r> {
    pub(crate) head: &'r [u8],
    pub(crate) tail: &'r [u8],
    pub(crate) size: u64,
    /// Milliseconds since 1970.
    pub(crate) modified: i64,
}

impl Room {
    /// Reads the ends of a transcript. `None` for an empty file.
    pub(crate) fn read(&mut self, path: &Path) -> io::Result<Option<Lite<'_>>> {
        let file = file::open(path)?;
        let metadata = file.metadata()?;
        let size = metadata.len();
        let modified = metadata.modified().map_or(0, clock::millis);
        self.buffer.resize(2 * END, 0);
        let (head, tail) = match usize::try_from(size) {
            Ok(whole) if whole <= 2 * END => {
                let read = fill(&file, &mut self.buffer[..whole], 0)?;
                (0..read.min(END), read.saturating_sub(END)..read)
            }
            _ => {
                let (head, tail) = self.buffer.split_at_mut(END);
                let (head, tail) = (fill(&file, head, 0)?, fill(&file, tail, size - END as u64)?);
                (0..head, END..END + tail)
            }
        };
        if head.is_empty() {
            return Ok(None);
        }
        Ok(Some(Lite {
            head: &self.buffer[head],
            tail: &self.buffer[tail],
            size,
            modified,
        }))
    }
}

/// Fills a buffer from `offset`, and returns the number of bytes.
fn fill(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    // Where the file ends is known, so that it need not be read once more to find that it does.
    while filled < into.len() {
        match read_at(file, &mut into[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads at a place of a file, whatever its cursor.
pub(crate) fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, into, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, into, offset);
}

impl Lite<'_> {
    /// Whether the ends are the whole file.
    pub(crate) fn is_whole(&self) -> bool {
        self.size <= END as u64
    }
}

/// A key to look for.
pub(crate) struct Key {
    tight: Finder<'static>,
    loose: Finder<'static>,
}

macro_rules! keys {
    ($($name:ident = $key:literal;)+) => { $(
        pub(crate) static $name: LazyLock<Key> = LazyLock::new(|| Key {
            tight: Finder::new(concat!("\"", $key, "\":\"")),
            loose: Finder::new(concat!("\"", $key, "\": \"")),
        });
    )+ };
}

keys! {
    CWD = "cwd";
    TIMESTAMP = "timestamp";
    GIT_BRANCH = "gitBranch";
    ENTRYPOINT = "entrypoint";
    SESSION_KIND = "sessionKind";
}

impl Key {
    /// The first string under this key, wherever in the text it is, even if its line is cut.
    pub(crate) fn first(&self, text: &[u8]) -> Option<String> {
        for finder in [&self.tight, &self.loose] {
            for found in finder.find_iter(text) {
                if let Some(said) = string_at(text, found + finder.needle().len() - 1) {
                    return Some(said);
                }
            }
        }
        None
    }

    /// The last string under this key, wherever in the text it is, even if its line is cut.
    pub(crate) fn last(&self, text: &[u8]) -> Option<String> {
        // The end of the text mostly has it.
        let near = memchr::memrchr_iter(b'\n', text).nth(8).unwrap_or(0);
        for from in [near, 0] {
            let text = &text[from..];
            let found = [&self.loose, &self.tight].into_iter().find_map(|finder| {
                let mut places = finder.find_iter(text).collect::<Vec<_>>().into_iter().rev();
                places.find_map(|found| string_at(text, found + finder.needle().len() - 1))
            });
            if found.is_some() || from == 0 {
                return found;
            }
        }
        None
    }
}

/// The string whose opening quote is at `at`. `None` if it does not end.
fn string_at(text: &[u8], at: usize) -> Option<String> {
    let mut end = at + 1;
    loop {
        end += memchr::memchr2(b'"', b'\\', text.get(end..)?)?;
        if text[end] == b'"' {
            break;
        }
        end += 2;
    }
    let quoted = String::from_utf8_lossy(&text[at..=end]);
    // A malformed string is shown rather than dropped, as the official SDKs do.
    Some(text_of(&quoted).unwrap_or_else(|| quoted[1..quoted.len() - 1].to_owned()))
}

/// The lines of a text from the first to the last one, even if those are cut; none is blank.
pub(crate) fn lines(text: &[u8]) -> LiteLines<'_> {
    LiteLines { rest: Some(text) }
}

/// See [`lines`].
pub(crate) struct LiteLines<'t> {
    rest: Option<&'t [u8]>,
}

impl<'t> Iterator for LiteLines<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        loop {
            let rest = self.rest?;
            let line = match memchr::memchr(b'\n', rest) {
                Some(at) => {
                    self.rest = Some(&rest[at + 1..]);
                    &rest[..at]
                }
                None => {
                    self.rest = None;
                    rest
                }
            };
            if !line.is_empty() {
                return Some(line);
            }
        }
    }
}

impl<'t> DoubleEndedIterator for LiteLines<'t> {
    fn next_back(&mut self) -> Option<&'t [u8]> {
        loop {
            let rest = self.rest?;
            let line = match memchr::memrchr(b'\n', rest) {
                Some(at) => {
                    self.rest = Some(&rest[..at]);
                    &rest[at + 1..]
                }
                None => {
                    self.rest = None;
                    rest
                }
            };
            if !line.is_empty() {
                return Some(line);
            }
        }
    }
}

/// Whether a line is an object of this type that is not part of the conversation, such as a title.
pub(crate) fn is_note(line: &[u8], kind: &str) -> bool {
    if let Some(rest) = line.strip_prefix(b"{\"type\":\"") {
        return rest
            .strip_prefix(kind.as_bytes())
            .is_some_and(|rest| rest.starts_with(b"\""));
    }
    // The CLI writes the type of its notes first, and the parent of the others.
    !line.starts_with(b"{\"parentUuid\":")
        && may_be_object(line)
        && field(line, "type").is_some_and(|said| said == kind)
}

/// Whether a line begins as an object does. The first line of an end is mostly cut.
fn may_be_object(line: &[u8]) -> bool {
    let mut bytes = line.iter();
    // NULs before a record are passed over.
    bytes.find(|byte| !byte.is_ascii_whitespace() && **byte != 0) == Some(&b'{')
}

/// The string under a key of the object that a line is. `None` too if the line is none.
pub(crate) fn field(line: &[u8], key: &str) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let fields = fields(&text).ok()?;
    text_of(last(&fields, key)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_in_text_that_is_cut() {
        let text = br#"cut","cwd":"/a\"b","x":1}
{"cwd": "/loose"}
{"cwd":"/last"}
{"cwd":"/cu"#;
        assert_eq!(CWD.first(text).as_deref(), Some("/a\"b"));
        assert_eq!(
            CWD.last(b"{\"cwd\":\"/a\"}\n{\"cwd\":\"/b\"}\n{\"cwd\":\"/c")
                .as_deref(),
            Some("/b")
        );
        assert_eq!(GIT_BRANCH.first(text), None);
        let far = format!("{{\"cwd\":\"/far\"}}\n{}", "{}\n".repeat(50));
        assert_eq!(CWD.last(far.as_bytes()).as_deref(), Some("/far"));
        // Inside of a string the quotes are escaped.
        assert_eq!(CWD.first(br#"{"text":"\"cwd\":\"/no\""}"#), None);
    }

    #[test]
    fn a_note_is_known_by_its_type_wherever_that_stands() {
        assert!(is_note(br#"{"type":"tag","tag":"x"}"#, "tag"));
        assert!(is_note(br#"{"sessionId":"s","type":"tag","tag":"x"}"#, "tag"));
        assert!(!is_note(br#"{"type":"tags"}"#, "tag"));
        assert!(!is_note(br#"{"x":{"type":"tag"}}"#, "tag"));
        assert_eq!(
            field(b"{\"a\":{\"tag\":\"no\"},\"tag\":\"yes\"}", "tag").as_deref(),
            Some("yes")
        );
        assert_eq!(field(b"{\"tag\":\"cut", "tag"), None);
    }

    #[test]
    fn both_ends_are_read_of_a_long_file_and_one_of_a_short_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x");
        let mut room = Room::default();
        std::fs::write(&path, "").unwrap();
        assert!(room.read(&path).unwrap().is_none());
        let text: Vec<u8> = (0..3 * END).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &text).unwrap();
        let lite = room.read(&path).unwrap().unwrap();
        assert_eq!(
            (lite.head, lite.tail, lite.is_whole()),
            (&text[..END], &text[2 * END..], false)
        );
        std::fs::write(&path, &text[..END]).unwrap();
        let lite = room.read(&path).unwrap().unwrap();
        assert_eq!(
            (lite.head, lite.tail, lite.size),
            (&text[..END], &text[..END], END as u64)
        );
        assert!(room.read(&place.path().join("gone")).is_err());
    }
}
