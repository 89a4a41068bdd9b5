//! Sessions in a directory of plain files: to be copied, mounted and looked at.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{
    BoxFuture, Capabilities, Lease, LeaseStore, Result, SessionKey, SessionStore, StoreError, StoreErrorKind,
    StoredSession, SummaryEntry, fold_summary, uuid,
};
use serde::{Deserialize, Serialize};

/// Keeps sessions in files: a directory for each project, in it one for each session, in that `main.jsonl`, the parts below
/// `parts`, and the summary. Names are the keys' own, with `%XX` for all but small letters, digits, `-` and `_`, so that they mean
/// the same on every system. A line is an entry; one that has line ends of its own is written as a JSON string.
///
/// An append that has returned is on disk (`fsync`), and is there whole or not at all: what a crash left of one is cut off by the
/// next. Several processes may use it, if the file system has locks.
///
/// Files are worked on where tokio lets blocking work run, so a tokio runtime is needed. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DirectoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    /// What is known of transcripts that were appended to, so that they need not be read again.
    known: Mutex<HashMap<SessionKey, Known>>,
}

/// The uuids in the first bytes of a transcript.
#[derive(Debug, Default)]
struct Known {
    length: u64,
    uuids: HashSet<String>,
}

/// The most transcripts of which the uuids are remembered; with more, the others are read again.
const MAX_KNOWN: usize = 64;

/// `summary.json`. One that was made of less than is there, since something ended in between, is not looked at.
#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    /// How long the transcript was, in bytes.
    length: u64,
    data: RawJson,
}

/// `lease.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Held {
    lease: Lease,
    released: bool,
}

impl DirectoryStore {
    /// Below this directory, which is made if it isn't there.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn open(root: impl AsRef<Path>) -> Result<Self> {
        let root = root.as_ref().to_owned();
        fs::create_dir_all(&root).map_err(|error| failed("make", &root, error))?;
        Ok(Self {
            shared: Arc::new(Shared {
                root,
                known: Mutex::default(),
            }),
        })
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.map_err(|error| StoreError::failed("the directory of sessions can't be worked on", error))?
    }
}

fn failed(action: &str, path: &Path, error: io::Error) -> StoreError {
    StoreError::failed(
        format!("the session store could not {action} {}", path.display()),
        error,
    )
}

/// A key's text as the name of a file on any system.
fn name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    // Nothing else is named like that.
    if name.is_empty() { "%".to_owned() } else { name }
}

fn text_of(name: &str) -> Option<String> {
    if name == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// A session's directory, locked for as long as this lives.
struct Locked {
    directory: PathBuf,
    _lock: File,
}

impl Shared {
    fn session(&self, key: &SessionKey) -> PathBuf {
        self.root.join(name(&key.project_key)).join(name(&key.session_id))
    }

    fn file(&self, key: &SessionKey) -> PathBuf {
        let session = self.session(key);
        match &key.subpath {
            None => session.join("main.jsonl"),
            Some(subpath) => session.join("parts").join(format!("{}.jsonl", name(subpath))),
        }
    }

    /// Waits until nobody else writes to the session.
    fn lock(&self, key: &SessionKey) -> Result<Locked> {
        let directory = self.session(key);
        let parts = directory.join("parts");
        fs::create_dir_all(&parts).map_err(|error| failed("make", &parts, error))?;
        let path = directory.join("lock");
        let locked = || {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)?;
            file.lock()?;
            Ok(file)
        };
        let lock = locked().map_err(|error| failed("lock", &path, error))?;
        Ok(Locked {
            directory,
            _lock: lock,
        })
    }

    fn append(&self, key: &SessionKey, entries: &[RawJson], lease: Option<&Lease>) -> Result<()> {
        let locked = self.lock(key)?;
        if let Some(lease) = lease {
            locked.mine(lease)?;
        }
        if entries.is_empty() {
            return Ok(());
        }
        let path = self.file(key);
        let wrong = |error| failed("append to", &path, error);
        let is_new = !path.exists();
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(wrong)?;
        let mut known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key)
            .unwrap_or_default();
        let mut length = file.metadata().map_err(wrong)?.len();
        if known.length != length {
            if known.length > length {
                known = Known::default();
            }
            file.seek(SeekFrom::Start(known.length)).map_err(wrong)?;
            let mut rest = Vec::new();
            file.read_to_end(&mut rest).map_err(wrong)?;
            // What a crash cut short was never told to be stored.
            let whole = rest
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |end| end + 1);
            known
                .uuids
                .extend(lines(&rest[..whole]).filter_map(|line| uuid(&line.ok()?)));
            length = known.length + whole as u64;
        }
        let mut added = Vec::new();
        let mut written = String::new();
        for entry in entries {
            if uuid(entry).is_none_or(|uuid| known.uuids.insert(uuid)) {
                write_line(&mut written, entry);
                added.push(entry.clone());
            }
        }
        let write = |file: &mut File| {
            file.set_len(length)?;
            file.seek(SeekFrom::Start(length))?;
            file.write_all(written.as_bytes())?;
            file.sync_all()
        };
        if let Err(error) = write(&mut file) {
            // Nothing of it must seem to be stored. If even that fails, it is what a crash would have left.
            let _ = file.set_len(length);
            return Err(wrong(error));
        }
        if is_new {
            sync_directory(path.parent().unwrap_or(&self.root)).map_err(wrong)?;
        }
        known.length = length + written.len() as u64;
        if key.is_main() && !added.is_empty() {
            let before: Option<Summary> = locked.read_json("summary.json")?;
            let data = match before.filter(|before| before.length == length) {
                Some(before) => {
                    fold_summary(
                        Some(&SummaryEntry::new(&key.session_id, 0, before.data)),
                        key,
                        &added,
                    )
                    .data
                }
                None => fold_summary(None, key, &self.load(key)?.unwrap_or_default()).data,
            };
            let length = known.length;
            locked.write_json("summary.json", &Summary { length, data })?;
        }
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.insert(key.clone(), known);
        Ok(())
    }

    fn load(&self, key: &SessionKey) -> Result<Option<Vec<RawJson>>> {
        let path = self.file(key);
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path, error)),
        };
        let whole = content
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let entries: Vec<RawJson> = lines(&content[..whole]).collect::<Result<_, _>>().map_err(|()| {
            StoreError::new(
                StoreErrorKind::Damaged,
                format!("{} has a line that is no JSON", path.display()),
            )
        })?;
        Ok(Some(entries).filter(|entries| !entries.is_empty()))
    }

    fn list(&self, project: &str) -> Result<Vec<(String, u64, PathBuf)>> {
        let directory = self.root.join(name(project));
        let mut list = Vec::new();
        for place in entries(&directory)? {
            let id = place.file_name().and_then(|name| text_of(name.to_str()?));
            let meta = fs::metadata(place.join("main.jsonl"))
                .ok()
                .filter(|meta| meta.len() > 0);
            if let (Some(id), Some(meta)) = (id, meta) {
                let since = meta
                    .modified()
                    .ok()
                    .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                list.push((id, since.unwrap_or_default().as_millis() as u64, place));
            }
        }
        Ok(list)
    }

    fn delete(&self, key: &SessionKey) -> Result<()> {
        if !self.session(key).exists() {
            return Ok(());
        }
        let locked = self.lock(key)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = match &key.subpath {
            Some(_) => {
                known.remove(key);
                vec![self.file(key)]
            }
            None => {
                known.retain(|other, _| other.main() != *key);
                // The lease stays, since its number must not be used again.
                let parts = entries(&locked.directory.join("parts"))?;
                parts
                    .into_iter()
                    .chain(["summary.json", "main.jsonl"].map(|name| locked.directory.join(name)))
                    .collect()
            }
        };
        for path in gone {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed("remove", &path, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn acquire(&self, key: &SessionKey, owner: &str, ttl: Duration) -> Result<Lease> {
        let locked = self.lock(key)?;
        let now = crate::now_ms();
        let old: Option<Held> = locked.read_json("lease.json")?;
        if let Some(held) = &old
            && !held.released
            && held.lease.expires_at > now
            && held.lease.owner != owner
        {
            return Err(crate::is_held(
                key,
                Some((held.lease.owner.clone(), held.lease.expires_at)),
            ));
        }
        let fence = old.map_or(0, |held| held.lease.fence) + 1;
        let lease = Lease::new(key, owner, fence, now + ttl.as_millis() as u64);
        locked.hold(&lease, false)?;
        Ok(lease)
    }

    fn renew(&self, mut lease: Lease, ttl: Duration) -> Result<Lease> {
        let locked = self.lock(&SessionKey::new(&lease.project_key, &lease.session_id))?;
        locked.mine(&lease)?;
        lease.expires_at = crate::now_ms() + ttl.as_millis() as u64;
        locked.hold(&lease, false)?;
        Ok(lease)
    }

    fn release(&self, lease: &Lease) -> Result<()> {
        let locked = self.lock(&SessionKey::new(&lease.project_key, &lease.session_id))?;
        match locked.mine(lease) {
            Ok(()) => locked.hold(lease, true),
            Err(error) if error.is_fenced() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Locked {
    /// That the lease is the session's newest and was not given back.
    fn mine(&self, lease: &Lease) -> Result<()> {
        let held: Option<Held> = self.read_json("lease.json")?;
        let is_mine = |held: &Held| {
            held.lease.fence == lease.fence && held.lease.owner == lease.owner && !held.released
        };
        if held.as_ref().is_some_and(is_mine) {
            Ok(())
        } else {
            Err(crate::is_over(lease))
        }
    }

    fn hold(&self, lease: &Lease, released: bool) -> Result<()> {
        let lease = lease.clone();
        self.write_json("lease.json", &Held { lease, released })
    }

    fn read_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        read_json(&self.directory.join(name))
    }

    /// Replaces a file as a whole.
    fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<()> {
        let path = self.directory.join(name);
        let write = || {
            let draft = self.directory.join(format!("{name}.new"));
            let mut file = File::create(&draft)?;
            file.write_all(serde_json::to_string(value)?.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            sync_directory(&self.directory)
        };
        write().map_err(|error| failed("write", &path, error))
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| failed("read", path, error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path, error)),
    }
}

/// What is in a directory; nothing if it isn't there.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let listed = match fs::read_dir(directory) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("list", directory, error)),
    };
    let paths = listed.map(|entry| entry.map(|entry| entry.path()));
    paths
        .collect::<io::Result<_>>()
        .map_err(|error| failed("list", directory, error))
}

/// Has the names in a directory written to disk, where that is possible.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

fn write_line(text: &mut String, entry: &RawJson) {
    if entry.get().contains(['\n', '\r']) || entry.get().starts_with('"') {
        text.push_str(&serde_json::Value::from(entry.get()).to_string());
    } else {
        text.push_str(entry.get());
    }
    text.push('\n');
}

fn lines(content: &[u8]) -> impl Iterator<Item = Result<RawJson, ()>> {
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

impl SessionStore for DirectoryStore {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        if entries.is_empty() {
            return Box::pin(std::future::ready(Ok(())));
        }
        let (key, entries) = (key.clone(), entries.to_vec());
        Box::pin(self.work(move |shared| shared.append(&key, &entries, None)))
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        let key = key.clone();
        Box::pin(self.work(move |shared| shared.load(&key)))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        let project = project_key.to_owned();
        Box::pin(self.work(move |shared| {
            let list = shared.list(&project)?;
            Ok(list
                .into_iter()
                .map(|(id, mtime, _)| StoredSession::new(id, mtime))
                .collect())
        }))
    }

    fn list_session_summaries<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SummaryEntry>>> {
        let project = project_key.to_owned();
        Box::pin(self.work(move |shared| {
            let mut summaries = Vec::new();
            for (id, mtime, place) in shared.list(&project)? {
                let summary: Option<Summary> = read_json(&place.join("summary.json"))?;
                let length = fs::metadata(place.join("main.jsonl")).map_or(0, |meta| meta.len());
                let summary = summary.filter(|summary| summary.length == length);
                summaries.extend(summary.map(|summary| SummaryEntry::new(id, mtime, summary.data)));
            }
            Ok(summaries)
        }))
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<()>> {
        let key = key.clone();
        Box::pin(self.work(move |shared| shared.delete(&key)))
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        let key = key.clone();
        Box::pin(self.work(move |shared| {
            let parts = entries(&shared.session(&key).join("parts"))?;
            let part = |path: PathBuf| text_of(path.file_name()?.to_str()?.strip_suffix(".jsonl")?);
            Ok(parts.into_iter().filter_map(part).collect())
        }))
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for DirectoryStore {
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease>> {
        let (key, owner) = (key.main(), owner.to_owned());
        Box::pin(self.work(move |shared| shared.acquire(&key, &owner, ttl)))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, Result<Lease>> {
        let lease = lease.clone();
        Box::pin(self.work(move |shared| shared.renew(lease, ttl)))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<()>> {
        let lease = lease.clone();
        Box::pin(self.work(move |shared| shared.release(&lease)))
    }

    fn append_fenced<'a>(
        &'a self,
        lease: &'a Lease,
        key: &'a SessionKey,
        entries: &'a [RawJson],
    ) -> BoxFuture<'a, Result<()>> {
        let (lease, key, entries) = (lease.clone(), key.clone(), entries.to_vec());
        Box::pin(async move {
            crate::covered(&lease, &key)?;
            self.work(move |shared| shared.append(&key, &entries, Some(&lease)))
                .await
        })
    }
}
