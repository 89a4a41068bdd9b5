//! Transcripts, record by record.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Damage, DamageReason, Line, Lines, Record};
use crate::error::{Error, Result};
use crate::file;

/// Reads a transcript record by record, one line in memory at a time. Blank lines are skipped.
///
/// An iterator whose items fail only when the file cannot be read; a bad line is no failure, but a
/// [`Damage`](RecordLine::Damaged) among the records.
#[derive(Debug)]
pub struct Records<R> {
    lines: Lines<R>,
    path: PathBuf,
    failed: bool,
}

/// One line that is not blank.
#[derive(Debug, Clone)]
pub enum RecordLine {
    /// A record.
    Record(Record),
    /// A line that is none.
    Damaged(Damage),
}

impl RecordLine {
    /// The record, or the damage of the line.
    ///
    /// # Errors
    /// When the line is damaged.
    pub fn record(self) -> Result<Record, Damage> {
        match self {
            Self::Record(record) => Ok(record),
            Self::Damaged(damage) => Err(damage),
        }
    }

    /// Reads a line.
    pub(crate) fn of(line: Line<'_>, cap: usize) -> Self {
        if line.is_cut() {
            let reason = DamageReason::Oversized(cap);
            return Self::Damaged(Damage::of(line.position, line.bytes, line.length, reason));
        }
        match Record::read(line.position, line.bytes) {
            Ok(record) => Self::Record(record),
            Err(mut damage) => {
                if !line.is_ended && matches!(damage.reason, DamageReason::NotJson(_)) {
                    damage.reason = DamageReason::Torn;
                }
                Self::Damaged(damage)
            }
        }
    }
}

impl Records<File> {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let file = file::open(path).map_err(Error::io("open", path))?;
        Ok(Self::of(Lines::new(file), path))
    }
}

impl<R: Read> Records<R> {
    /// Reads `source` from where it stands.
    pub fn new(source: R) -> Self {
        Self::of(Lines::new(source), Path::new("the transcript"))
    }

    fn of(lines: Lines<R>, path: &Path) -> Self {
        Self {
            lines,
            path: path.to_owned(),
            failed: false,
        }
    }

    /// Sets how many bytes a line may have; [`Lines::DEFAULT_CAP`] unless it is called.
    pub fn cap(mut self, bytes: usize) -> Self {
        self.lines = self.lines.cap(bytes);
        self
    }
}

impl<R: Read> Iterator for Records<R> {
    type Item = Result<RecordLine>;

    fn next(&mut self) -> Option<Result<RecordLine>> {
        if self.failed {
            return None;
        }
        let cap = self.lines.cap_of();
        loop {
            match self.lines.next() {
                Ok(Some(line)) if line.is_blank() => {}
                Ok(line) => return line.map(|line| Ok(RecordLine::of(line, cap))),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(Error::io("read", self.path.clone())(error)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordKind;
    use proptest::prelude::*;
    use std::io;

    fn read(text: &[u8], cap: usize) -> Vec<Result<Record, Damage>> {
        let records = Records::new(text).cap(cap);
        records.map(|item| item.unwrap().record()).collect()
    }

    #[test]
    fn damage_is_reported_where_it_is_and_reading_goes_on() {
        let text = b"{\"type\":\"user\",\"uuid\":\"1\"}\n\n{\"type\":\"us{\"type\":\"user\"}\n{\"type\":\0\0\"user\"}\n[1]\n\
            {\"type\":\"new-thing\",\"x\":\"\xff\"}\r\n{\"type\":\"assist";
        let items = read(text, 1000);
        let reasons: Vec<Option<(u64, u64, &DamageReason)>> = items
            .iter()
            .map(|item| item.as_ref().err())
            .map(|damage| damage.map(|it| (it.position.offset, it.position.line, &it.reason)))
            .collect();
        let Some((28, 3, DamageReason::NotJson(_))) = reasons[1] else {
            panic!("{reasons:?}")
        };
        assert_eq!(reasons[0], None);
        assert_eq!(reasons[2], Some((55, 4, &DamageReason::Nuls)));
        assert_eq!(reasons[3], Some((73, 5, &DamageReason::NotAnObject)));
        let unknown = items[4].as_ref().unwrap();
        assert_eq!(unknown.kind(), &RecordKind::from("new-thing"));
        assert_eq!(unknown.bytes(), b"{\"type\":\"new-thing\",\"x\":\"\xff\"}\r");
        assert_eq!(unknown.field("x").unwrap().get(), "\"\u{fffd}\"");
        assert_eq!(unknown.fields().len(), 2);
        assert_eq!(reasons[5].unwrap().2, &DamageReason::Torn);
        let told = items[5].as_ref().unwrap_err().to_string();
        assert!(told.contains("line 7") && told.contains("assist"), "{told}");

        // A last line without its ending is a record when it is whole.
        assert!(read(b"{}", 10)[0].is_ok());
        let items = read(b"{\"a\":\"too long\"}\n{}\n", 10);
        let Err(damage) = &items[0] else {
            panic!("{items:?}")
        };
        assert_eq!(
            (&damage.reason, damage.length),
            (&DamageReason::Oversized(10), 16)
        );
        assert!(items[1].is_ok());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_once() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        let mut records = Records::new(Broken);
        assert!(
            records
                .next()
                .unwrap()
                .unwrap_err()
                .to_string()
                .contains("the disk is gone")
        );
        assert!(records.next().is_none());
        assert!(Records::open(Path::new("/nowhere/at/all")).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic_and_nothing_is_lost(text in proptest::collection::vec(prop_oneof![
            Just(b'\n'), Just(b'{'), Just(b'}'), Just(b'"'), Just(b':'), Just(b'\\'), Just(0), any::<u8>(),
        ], 0..300)) {
            let mut covered = 0;
            for item in read(&text, 100) {
                let (position, length) = match &item {
                    Ok(record) => (record.position(), record.bytes().len() as u64),
                    Err(damage) => (damage.position, damage.length),
                };
                let gap = &text[covered as usize..position.offset as usize];
                prop_assert!(gap.iter().all(u8::is_ascii_whitespace));
                covered = position.offset + length;
            }
            prop_assert!(text[covered as usize..].iter().all(u8::is_ascii_whitespace));
        }
    }
}
