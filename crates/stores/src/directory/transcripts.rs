//! Transcripts as files.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{
    Result, SessionKey, StoreError, StoreErrorKind, StoreLease, SummaryEntry, fold_summary, uuid,
};
use serde::{Deserialize, Serialize};

use super::file_paths::{place, places};
use super::files::{create_dirs, entries, failed, private, read_json, sync_directory, sync_up, write_json};
use crate::lines::{lines, write_line};

/// How the file of a part ends.
pub(super) const PART: &str = ".jsonl";

#[derive(Debug)]
pub(super) struct DirectoryInner {
    pub(super) root: PathBuf,
    /// How long to wait for another process that has a session's lock.
    patience: Duration,
    /// The known state of transcripts that were appended to, so that they need not be read again.
    known: Mutex<HashMap<SessionKey, IndexedPrefix>>,
}

/// The uuids in the first bytes of a transcript.
#[derive(Debug, Default)]
struct IndexedPrefix {
    length: u64,
    /// The last of these bytes. If the file has others, another process has deleted the transcript and written a new one.
    end: Vec<u8>,
    uuids: HashSet<String>,
}

/// An append takes no time, but a stopped process may keep the lock for ever. Each waiting call blocks a thread.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is tried again, at most.
const PAUSE: Duration = Duration::from_millis(20);

/// How many bytes of the end are remembered. Another transcript hardly has the same ones in the same place.
const END: usize = 256;

/// The most transcripts of which the uuids are remembered; with more, the others are read again.
const MAX_KNOWN: usize = 64;

/// `summary.json`. One that was made of less than is there, since something ended in between, is not looked at.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Summary {
    /// How long the transcript was, in bytes.
    pub(super) length: u64,
    pub(super) data: RawJson,
}

/// The name of its file.
const SUMMARY: &str = "summary.json";

impl Summary {
    /// That of the session in this directory; none if it can't be read, since it can be made anew.
    pub(super) fn of(session: &Path) -> Option<Self> {
        let summary: Option<Self> = read_json(&session.join(SUMMARY)).ok().flatten();
        summary.filter(|summary| crate::summary_data(summary.data.get().as_bytes()).is_some())
    }
}

/// A session's directory, locked for as long as this lives.
pub(super) struct Locked {
    pub(super) directory: PathBuf,
    _lock: File,
}

impl IndexedPrefix {
    /// Whether the file is still in the known state.
    fn is_of(&self, file: &mut File) -> io::Result<bool> {
        let mut end = vec![0; self.end.len()];
        file.seek(SeekFrom::Start(self.length - end.len() as u64))?;
        match file.read_exact(&mut end) {
            Ok(()) => Ok(end == self.end),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Extends the known state to this length; these are the bytes before it.
    fn extend(&mut self, length: u64, added: &[u8]) {
        self.length = length;
        self.end.extend(&added[added.len().saturating_sub(END)..]);
        self.end.drain(..self.end.len().saturating_sub(END));
    }
}

/// How much of a transcript was appended as a whole. The last line may be cut short; and an append of several entries stands
/// between two empty lines, of which the second comes last.
fn whole(content: &[u8]) -> usize {
    let (mut at, mut begun) = (0, None);
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        if line == b"\n" {
            begun = begun.xor(Some(at));
        } else if !line.ends_with(b"\n") {
            break;
        }
        at += line.len();
    }
    begun.unwrap_or(at)
}

impl DirectoryInner {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            patience: PATIENCE,
            known: Mutex::default(),
        }
    }

    pub(super) fn session(&self, key: &SessionKey) -> PathBuf {
        self.root
            .join(place(&key.project_key, ""))
            .join(place(&key.session_id, ""))
    }

    pub(super) fn file(&self, key: &SessionKey) -> PathBuf {
        let session = self.session(key);
        match &key.subpath {
            None => session.join("main.jsonl"),
            Some(subpath) => session.join("parts").join(place(subpath, PART)),
        }
    }

    /// Waits until nobody else writes to the session, but not for ever.
    pub(super) fn lock(&self, key: &SessionKey) -> Result<Locked> {
        let directory = self.session(key);
        let parts = directory.join("parts");
        if !parts.is_dir() {
            create_dirs(&parts)
                .and_then(|()| sync_up(&directory, &self.root))
                .map_err(|error| failed("make", &parts, error))?;
        }
        let path = directory.join("lock");
        let locked = || {
            let file = private(OpenOptions::new().create(true).truncate(false)).open(&path)?;
            let until = Instant::now() + self.patience;
            let mut pause = Duration::from_micros(200);
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(file),
                    Err(TryLockError::Error(error)) => return Err(error),
                    Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                        return Err(io::Error::new(
                            io::ErrorKind::TimedOut,
                            format!("another process has had it for {:?}", self.patience),
                        ));
                    }
                    Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
                }
                pause = (pause * 2).min(PAUSE);
            }
        };
        let lock = locked().map_err(|error| failed("lock", &path, error))?;
        Ok(Locked {
            directory,
            _lock: lock,
        })
    }

    pub(super) fn append(
        &self,
        key: &SessionKey,
        entries: &[RawJson],
        lease: Option<&StoreLease>,
    ) -> Result<()> {
        let locked = self.lock(key)?;
        if let Some(lease) = lease {
            locked.mine(lease)?;
        }
        if entries.is_empty() {
            return Ok(());
        }
        let path = self.file(key);
        let wrong = |error| failed("append to", &path, error);
        // A part with a long name is in directories of its own.
        let inside = path.parent().unwrap_or(&self.root);
        create_dirs(inside).map_err(|error| failed("make", inside, error))?;
        let mut file = private(OpenOptions::new().create(true).truncate(false).read(true))
            .open(&path)
            .map_err(wrong)?;
        let mut known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key)
            .unwrap_or_default();
        let mut length = file.metadata().map_err(wrong)?.len();
        if !known.is_of(&mut file).map_err(wrong)? {
            known = IndexedPrefix::default();
        }
        if known.length != length {
            file.seek(SeekFrom::Start(known.length)).map_err(wrong)?;
            let mut rest = Vec::new();
            file.read_to_end(&mut rest).map_err(wrong)?;
            // An append that a crash cut short was never acknowledged.
            let whole = whole(&rest);
            known
                .uuids
                .extend(lines(&rest[..whole]).filter_map(|line| uuid(&line.ok()?)));
            length = known.length + whole as u64;
            known.extend(length, &rest[..whole]);
        }
        let mut added = Vec::new();
        let mut written = String::new();
        for entry in entries {
            if uuid(entry).is_none_or(|uuid| known.uuids.insert(uuid)) {
                write_line(&mut written, entry);
                added.push(entry.clone());
            }
        }
        if added.len() > 1 {
            written = format!("\n{written}\n");
        }
        let write = |file: &mut File| {
            file.set_len(length)?;
            file.seek(SeekFrom::Start(length))?;
            file.write_all(written.as_bytes())?;
            file.sync_all()?;
            match length {
                // The first append syncs the directory: the process that made the file may have died before it did.
                0 => sync_up(inside, &self.root),
                _ => Ok(()),
            }
        };
        if let Err(error) = write(&mut file) {
            // None of the entries may seem to be stored. If even this fails, the file looks as after a crash.
            let _ = file.set_len(length);
            return Err(wrong(error));
        }
        known.extend(length + written.len() as u64, written.as_bytes());
        if key.is_main() && !added.is_empty() {
            // The entries are stored, and sent again those without a uuid would be there twice. A summary that is not up to date is
            // of another length, so it is not looked at, and the next append makes it anew.
            let _ = self.update_summary(key, &locked, length, known.length, &added);
        }
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.insert(key.clone(), known);
        Ok(())
    }

    /// Makes the summary of a transcript to which these entries were added when it was `before` bytes long.
    fn update_summary(
        &self,
        key: &SessionKey,
        locked: &Locked,
        before: u64,
        length: u64,
        added: &[RawJson],
    ) -> Result<()> {
        let old = Summary::of(&locked.directory).filter(|old| old.length == before);
        let data = match old {
            Some(old) => {
                let old = SummaryEntry::new(&key.session_id, 0, old.data);
                fold_summary(Some(&old), key, added).data
            }
            None => fold_summary(None, key, &self.load(key)?.unwrap_or_default()).data,
        };
        write_json(&locked.directory.join(SUMMARY), &Summary { length, data })
    }

    pub(super) fn load(&self, key: &SessionKey) -> Result<Option<Vec<RawJson>>> {
        let path = self.file(key);
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path, error)),
        };
        let whole = whole(&content);
        let entries: Vec<RawJson> = lines(&content[..whole]).collect::<Result<_, _>>().map_err(|()| {
            StoreError::new(
                StoreErrorKind::Damaged,
                format!("{} has a line that is no JSON", path.display()),
            )
        })?;
        Ok(Some(entries).filter(|entries| !entries.is_empty()))
    }

    pub(super) fn list(&self, project: &str) -> Result<Vec<(String, u64, PathBuf)>> {
        let directory = self.root.join(place(project, ""));
        let mut list = Vec::new();
        for (id, place) in places(&directory, "")? {
            let meta = fs::metadata(place.join("main.jsonl"))
                .ok()
                .filter(|meta| meta.len() > 0);
            if let Some(meta) = meta {
                let since = meta
                    .modified()
                    .ok()
                    .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                list.push((id, since.unwrap_or_default().as_millis() as u64, place));
            }
        }
        Ok(list)
    }

    pub(super) fn delete(&self, key: &SessionKey) -> Result<()> {
        if !self.session(key).exists() {
            return Ok(());
        }
        let locked = self.lock(key)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (gone, from) = match &key.subpath {
            Some(_) => {
                known.remove(key);
                let file = self.file(key);
                let from = file.parent().map(Path::to_owned);
                (vec![file], from.into_iter().collect())
            }
            None => {
                known.retain(|other, _| other.main() != *key);
                // The lease stays, since its number must not be used again.
                let parts = locked.directory.join("parts");
                let mut gone = entries(&parts)?;
                gone.extend([SUMMARY, "main.jsonl"].map(|name| locked.directory.join(name)));
                (gone, vec![parts, locked.directory.clone()])
            }
        };
        for path in gone {
            // A directory has parts with long names.
            let removed = match path.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed("remove", &path, error));
                }
                _ => {}
            }
        }
        // Otherwise a power failure could bring the files back. This includes files that an earlier attempt has removed.
        for directory in from.iter().filter(|directory| directory.is_dir()) {
            sync_directory(directory).map_err(|error| failed("remove from", directory, error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::tests::SYNCED;
    use super::*;

    fn entry(uuid: &str) -> RawJson {
        RawJson::from_text(format!(r#"{{"uuid":"{uuid}"}}"#)).unwrap()
    }

    /// The file alone is not enough: its name has to be there, too, and that of each directory on the way to it.
    #[test]
    fn the_way_to_a_transcript_is_on_disk_before_an_append_returns() {
        let root = tempfile::tempdir().unwrap();
        let synced = || SYNCED.take();
        synced();
        let key = SessionKey::new("-p", "s");
        let shared = DirectoryInner::new(root.path().to_owned());
        shared.append(&key, &[entry("a")], None).unwrap();
        let session = shared.session(&key);
        let all = synced();
        for directory in [root.path(), session.parent().unwrap(), &session] {
            assert!(
                all.iter().any(|one| one == directory),
                "{}: {all:?}",
                directory.display()
            );
        }
        shared.append(&key, &[entry("b")], None).unwrap();
        assert!(synced().iter().all(|one| *one == session), "the summary alone");
        let part = key.with_subpath("x".repeat(600));
        shared.append(&part, &[entry("a")], None).unwrap();
        let all = synced();
        for directory in shared
            .file(&part)
            .ancestors()
            .skip(1)
            .take_while(|one| one.starts_with(root.path()))
        {
            assert!(
                all.iter().any(|one| one == directory),
                "{}: {all:?}",
                directory.display()
            );
        }

        // Another process made the file, and was killed.
        let other = SessionKey::new("-p", "t");
        drop(shared.lock(&other).unwrap());
        fs::write(shared.file(&other), "").unwrap();
        synced();
        shared.append(&other, &[entry("a")], None).unwrap();
        assert!(synced().contains(&shared.session(&other)));
    }

    #[test]
    fn what_is_deleted_is_gone_on_disk_before_the_call_returns() {
        let root = tempfile::tempdir().unwrap();
        let shared = DirectoryInner::new(root.path().to_owned());
        let key = SessionKey::new("-p", "s");
        let (short, long) = (key.with_subpath("x"), key.with_subpath("x".repeat(600)));
        for key in [&key, &short, &long] {
            shared.append(key, &[entry("a")], None).unwrap();
        }
        let parts = shared.session(&key).join("parts");
        for part in [&short, &long] {
            SYNCED.take();
            shared.delete(part).unwrap();
            assert_eq!(SYNCED.take(), [shared.file(part).parent().unwrap()]);
        }
        shared.append(&long, &[entry("a")], None).unwrap();
        // Twice, for the first may have failed when it had removed all.
        for _ in 0..2 {
            SYNCED.take();
            shared.delete(&key).unwrap();
            assert_eq!(SYNCED.take(), [parts.clone(), shared.session(&key)]);
        }
        assert!(shared.load(&key).unwrap().is_none() && shared.load(&long).unwrap().is_none());
        SYNCED.take();
        shared.delete(&long).unwrap();
        assert!(SYNCED.take().is_empty(), "its directory is gone");
    }

    /// Whoever made the directories may have ended before their names were on disk.
    #[test]
    fn the_way_to_a_lease_is_on_disk_before_it_is_given() {
        let root = tempfile::tempdir().unwrap();
        let shared = DirectoryInner::new(root.path().to_owned());
        let key = SessionKey::new("-p", "s");
        drop(shared.lock(&key).unwrap());
        SYNCED.take();
        let session = shared.session(&key);
        let lease = shared.acquire(&key, "a", PATIENCE).unwrap();
        let all = SYNCED.take();
        for directory in [root.path(), session.parent().unwrap(), &session] {
            assert!(
                all.iter().any(|one| one == directory),
                "{}: {all:?}",
                directory.display()
            );
        }
        shared.renew(lease, PATIENCE).unwrap();
        assert_eq!(SYNCED.take(), [session]);
    }

    #[test]
    fn a_lock_that_is_never_given_back_is_not_waited_for_without_end() {
        let root = tempfile::tempdir().unwrap();
        let mut shared = DirectoryInner::new(root.path().to_owned());
        shared.patience = Duration::from_millis(30);
        let key = SessionKey::new("-p", "s");
        let held = shared.lock(&key).unwrap();
        let error = shared.append(&key, &[entry("a")], None).unwrap_err();
        assert!(
            error.may_pass() && error.chain().contains("another process"),
            "{}",
            error.chain()
        );
        drop(held);
        shared.append(&key, &[entry("a")], None).unwrap();
    }
}
