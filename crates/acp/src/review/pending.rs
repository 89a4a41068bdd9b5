//! Edits that the editor is about to write: the file has its old text meanwhile. So the new text is kept beside, and a crash of this
//! program loses nothing: the next session that is opened finishes the edit.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::private_dir;

/// An edit that the editor is about to write.
#[derive(Debug)]
pub(super) struct Pending {
    note: PendingEdit,
    /// Locked, until this process drops it or dies.
    lock: File,
    kept: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct PendingEdit {
    path: PathBuf,
    /// `None` if the edit made the file.
    old: Option<String>,
    new: String,
}

/// The text of the file in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalText {
    New,
    Old,
    Other,
}

impl Pending {
    /// Keeps the new text beside, and puts the old one back.
    ///
    /// # Errors
    /// When either can't be written. The file has the new text then.
    pub(super) fn begin(place: &Path, path: &Path, old: Option<String>, new: String) -> io::Result<Self> {
        private_dir::create(place)?;
        let kept = place.join(format!("{}.json", uuid::Uuid::new_v4()));
        let lock = File::options().write(true).create_new(true).open(&kept)?;
        let note = PendingEdit {
            path: path.to_owned(),
            old,
            new,
        };
        let pending = Self { note, lock, kept };
        let begun = (|| {
            let mut file = &pending.lock;
            file.try_lock()?;
            file.write_all(&serde_json::to_vec(&pending.note)?)?;
            file.sync_all()?;
            pending.note.put_old()
        })();
        match begun {
            Ok(()) => Ok(pending),
            Err(error) => {
                pending.take_back()?;
                Err(error)
            }
        }
    }

    /// The old text could not be put back: the file, which may have a part of it, gets the new one.
    ///
    /// # Errors
    /// When the file can't be read or written. The new text stays beside.
    fn take_back(self) -> io::Result<()> {
        self.note.finish()?;
        fs::remove_file(&self.kept)
    }

    /// The editor has written the file, or not: then the new text is written, unless something else has changed the file.
    ///
    /// # Errors
    /// When the file can't be read or written. The new text stays beside.
    pub(super) fn end(self, is_written: bool) -> io::Result<FinalText> {
        let ending = match self.note.found()? {
            FinalText::Old if !is_written => {
                self.note.put_new()?;
                FinalText::New
            }
            found => found,
        };
        fs::remove_file(&self.kept)?;
        Ok(ending)
    }
}

impl PendingEdit {
    fn put_old(&self) -> io::Result<()> {
        match &self.old {
            Some(old) => fs::write(&self.path, old),
            None => fs::remove_file(&self.path),
        }
    }

    fn put_new(&self) -> io::Result<()> {
        fs::write(&self.path, &self.new)
    }

    /// The text that the file has. Editors may write other line ends.
    fn found(&self) -> io::Result<FinalText> {
        let found = text_of(&self.path, u64::MAX);
        let found = match found {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(FinalText::Other),
            Err(error) => return Err(error),
        };
        let lines = |text: &str| text.replace("\r\n", "\n");
        Ok(match &found {
            Some(found) if *found == self.new => FinalText::New,
            found if *found == self.old => FinalText::Old,
            Some(found) if lines(found) == lines(&self.new) => FinalText::New,
            _ => FinalText::Other,
        })
    }

    /// Writes the new text if the file has the old one, or a part of either since a write broke off. Returns whether it did.
    fn finish(&self) -> io::Result<bool> {
        let is_interrupted = match bytes_of(&self.path, u64::MAX)? {
            None => self.old.is_none(),
            Some(found) => {
                let (old, new) = (self.old.as_deref().unwrap_or_default(), self.new.as_bytes());
                found != new && (old.as_bytes().starts_with(&found) || new.starts_with(&found))
            }
        };
        if is_interrupted {
            self.put_new()?;
        }
        Ok(is_interrupted)
    }
}

/// Finishes the edits of processes that died. What was changed since stays as it is.
pub(super) fn recover(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let kept = entry.path();
        if let Err(error) = recover_one(&kept) {
            tracing::warn!(%error, path = %kept.display(), "an interrupted edit could not be finished");
        }
    }
}

fn recover_one(kept: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).open(kept)?;
    // Another process writes it, or has just made it.
    if file.try_lock().is_err() {
        return Ok(());
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    match serde_json::from_slice::<PendingEdit>(&text) {
        Ok(note) => {
            if note.finish()? {
                tracing::info!(path = %note.path.display(), "an edit that a crash interrupted is finished");
            }
        }
        // The file was not touched before the note was whole.
        Err(error) => tracing::debug!(%error, "an interrupted edit had not begun"),
    }
    fs::remove_file(kept)
}

/// The text of a file; `None` if there is none.
///
/// # Errors
/// When it can't be read, is no regular file, is longer than this, or is no UTF-8.
pub(super) fn text_of(path: &Path, longest: u64) -> io::Result<Option<String>> {
    let text = bytes_of(path, longest)?.map(String::from_utf8).transpose();
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn bytes_of(path: &Path, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !about.is_file() || about.len() > longest {
        return Err(io::Error::other("it is no file, or too long"));
    }
    fs::read(path).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PendingCase {
        home: tempfile::TempDir,
        path: PathBuf,
    }

    impl PendingCase {
        /// A file that an edit has written.
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("a.txt");
            fs::write(&path, "new\n").unwrap();
            Self { home, path }
        }

        fn place(&self) -> PathBuf {
            self.home.path().join("edits")
        }

        fn begin(&self, old: Option<&str>) -> Pending {
            let old = old.map(str::to_owned);
            Pending::begin(&self.place(), &self.path, old, "new\n".to_owned()).unwrap()
        }

        fn text(&self) -> Option<String> {
            text_of(&self.path, u64::MAX).unwrap()
        }

        fn kept(&self) -> usize {
            fs::read_dir(self.place()).unwrap().count()
        }

        fn write(&self, text: Option<&str>) {
            match text {
                Some(text) => fs::write(&self.path, text).unwrap(),
                None if self.path.exists() => fs::remove_file(&self.path).unwrap(),
                None => {}
            }
        }
    }

    /// What is on disk when a review ends, whether the editor said that it wrote, and how it ends.
    #[test]
    fn what_the_editor_wrote_stays_and_what_it_did_not_write_is_written() {
        for old in [Some("old\n"), None] {
            for (found, is_written, text, ending) in [
                (Some("new\n"), true, Some("new\n"), FinalText::New),
                (Some("new\r\n"), true, Some("new\r\n"), FinalText::New),
                (old, true, old, FinalText::Old),
                (Some("mine\n"), true, Some("mine\n"), FinalText::Other),
                (old, false, Some("new\n"), FinalText::New),
                (Some("mine\n"), false, Some("mine\n"), FinalText::Other),
                (Some("new\n"), false, Some("new\n"), FinalText::New),
            ] {
                let case = PendingCase::new();
                let pending = case.begin(old);
                assert_eq!(case.text().as_deref(), old, "the old text is put back");
                case.write(found);
                assert_eq!(pending.end(is_written).unwrap(), ending, "{old:?} {found:?}");
                assert_eq!(case.text().as_deref(), text);
                assert_eq!(case.kept(), 0);
            }
        }
    }

    #[test]
    fn a_crash_loses_no_edit_and_overwrites_nothing_else() {
        for old in [Some("old\n"), None] {
            for (found, text) in [
                (old, "new\n"),
                // A write that broke off.
                (Some(""), "new\n"),
                (Some("ne"), "new\n"),
                (Some("new\n"), "new\n"),
                (Some("mine\n"), "mine\n"),
            ] {
                let case = PendingCase::new();
                let pending = case.begin(old);
                case.write(found);
                recover(&case.place());
                assert_eq!(case.text().as_deref(), found, "it is somebody's still");
                drop(pending);
                recover(&case.place());
                assert_eq!(case.text().as_deref(), Some(text), "{old:?} {found:?}");
                assert_eq!(case.kept(), 0);
            }
        }
    }

    #[test]
    fn an_old_text_that_can_not_be_put_back_costs_no_new_one() {
        for old in [Some("old\n"), None] {
            for (found, text) in [
                (old, "new\n"),
                (Some(""), "new\n"),
                (Some("new\n"), "new\n"),
                (Some("mine\n"), "mine\n"),
            ] {
                let case = PendingCase::new();
                let pending = case.begin(old);
                case.write(found);
                pending.take_back().unwrap();
                assert_eq!(case.text().as_deref(), Some(text), "{old:?} {found:?}");
                assert_eq!(case.kept(), 0);
            }
        }
    }

    #[test]
    fn a_write_that_broke_off_inside_of_a_character_is_finished() {
        let case = PendingCase::new();
        drop(case.begin(Some("\u{e9}\n")));
        fs::write(&case.path, b"\xc3").unwrap();
        recover(&case.place());
        assert_eq!(case.text().as_deref(), Some("new\n"));
        assert_eq!(case.kept(), 0);
    }

    #[test]
    fn what_can_not_be_kept_is_not_put_back() {
        let case = PendingCase::new();
        fs::write(case.place(), "no directory").unwrap();
        let begun = Pending::begin(&case.place(), &case.path, None, "new\n".to_owned());
        assert!(begun.is_err());
        assert_eq!(case.text().as_deref(), Some("new\n"));
        recover(&case.place());
    }
}
