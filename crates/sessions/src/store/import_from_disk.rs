//! From the CLI's files into a store.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_protocol::RawJson;

use super::entry::EntryFields;
use super::{Result, SessionKey, SessionStore, StoreError, StoreErrorKind};
use crate::file;
use crate::record::Lines;

/// The type of the entry that stands for a subagent's `.meta.json`.
pub(super) const METADATA: &str = "agent_metadata";

/// The files to import, and the size of the batches.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Also the transcripts of subagents, with their `.meta.json`. True unless set.
    pub include_subagents: bool,
    /// The most entries of one append; 500 unless set, at least 1.
    pub batch_entries: usize,
    /// How many bytes of entries fill an append; 1 MiB unless set. An entry that is larger goes alone.
    pub batch_bytes: usize,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            include_subagents: true,
            batch_entries: 500,
            batch_bytes: 1 << 20,
        }
    }
}

impl ImportOptions {
    /// Sets [`include_subagents`](Self#structfield.include_subagents).
    #[must_use]
    pub fn include_subagents(mut self, include: bool) -> Self {
        self.include_subagents = include;
        self
    }

    /// Sets [`batch_entries`](Self#structfield.batch_entries).
    #[must_use]
    pub fn batch_entries(mut self, entries: usize) -> Self {
        self.batch_entries = entries;
        self
    }

    /// Sets [`batch_bytes`](Self#structfield.batch_bytes).
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }
}

/// The counts of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ImportCounts {
    /// Entries that were handed to the store, those that it had already among them.
    pub entries: u64,
    /// How many appends the import took.
    pub batches: u64,
    /// The subagents' transcripts among them.
    pub subpaths: Vec<String>,
    /// Lines and sidecars that are no JSON objects and were skipped: the file, and the line counted from 1.
    pub damaged: Vec<(PathBuf, u64)>,
}

/// Imports a session's transcript into a store, with its subagents'. `file` is the transcript,
/// `<config dir>/projects/<project>/<session>.jsonl`; the key comes from these names, so that the session can be resumed from
/// the store as if it had been mirrored as it ran.
///
/// A repeated import adds what is missing: entries with a `uuid` are stored once. Lines that are no JSON objects, such as one that
/// a crash cut short, are skipped and reported.
///
/// Reads the files on the calling task, up to a batch at a time; use [`Batches`] to read elsewhere.
///
/// # Cancel safety
/// Dropping the future leaves the entries appended so far in the store. Repeat the import.
///
/// # Errors
/// When the transcript does not exist, a file can't be read, or the store fails; entries appended before stay.
pub async fn import_to_store(
    file: &Path,
    store: &dyn SessionStore,
    options: ImportOptions,
) -> Result<ImportCounts> {
    let mut batches = Batches::of(file, options)?;
    for batch in batches.by_ref() {
        let (key, entries) = batch?;
        store.append(&key, &entries).await?;
    }
    Ok(batches.imported)
}

/// Cuts entries into appends, by the defaults of [`ImportOptions`]: up to 500 entries and 1 MiB, or one entry that
/// is larger.
pub fn portions(mut entries: &[RawJson]) -> impl Iterator<Item = &[RawJson]> {
    let ImportOptions {
        batch_entries,
        batch_bytes,
        ..
    } = ImportOptions::default();
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = entries.iter().take(batch_entries).take_while(|entry| {
            bytes += entry.get().len();
            bytes <= batch_bytes
        });
        let (now, later) = entries.split_at_checked(fits.count().max(1))?;
        entries = later;
        Some(now)
    })
}

/// The files of a session, cut into batches for a store. Each file is read on demand.
#[derive(Debug)]
pub struct Batches {
    options: ImportOptions,
    key: SessionKey,
    /// Where subpaths begin: the directory beside the transcript.
    beside: PathBuf,
    /// The files still to be read, the next one last.
    waiting: Vec<PathBuf>,
    open: Option<OpenTranscript>,
    metadata: Option<(SessionKey, RawJson)>,
    imported: ImportCounts,
}

#[derive(Debug)]
struct OpenTranscript {
    file: PathBuf,
    /// Lines are bounded: otherwise a transcript could fill the memory.
    lines: Lines<File>,
    key: SessionKey,
}

impl Batches {
    /// The batches of the transcript `file` and what belongs to it.
    ///
    /// # Errors
    /// When `file` is no transcript by its name or can't be opened, or its directory can't be read.
    pub fn of(file: &Path, options: ImportOptions) -> Result<Self> {
        let key = key_of(file)?;
        let beside = file.with_extension("");
        let mut waiting = Vec::new();
        if options.include_subagents {
            let below = beside.join("subagents");
            transcripts(&below, &mut waiting).map_err(|error| unreadable(&below, error))?;
            waiting.reverse();
        }
        let open = OpenTranscript::of(file, key.clone())?;
        Ok(Self {
            options,
            key,
            beside,
            waiting,
            open: Some(open),
            metadata: None,
            imported: ImportCounts::default(),
        })
    }

    /// The counts so far.
    pub fn imported(&self) -> &ImportCounts {
        &self.imported
    }

    fn read(&mut self) -> Result<Option<(SessionKey, Vec<RawJson>)>> {
        loop {
            if let Some((key, metadata)) = self.metadata.take() {
                return Ok(Some((key, vec![metadata])));
            }
            let Some(open) = &mut self.open else {
                let Some(file) = self.waiting.pop() else {
                    return Ok(None);
                };
                self.open = Some(self.open_part(&file)?);
                continue;
            };
            let batch = open.batch(&self.options, &mut self.imported.damaged)?;
            let key = open.key.clone();
            if batch.is_empty() {
                let done = self.open.take();
                self.metadata = done.and_then(|open| self.metadata_of(&open));
                continue;
            }
            return Ok(Some((key, batch)));
        }
    }

    fn open_part(&mut self, file: &Path) -> Result<OpenTranscript> {
        let inside = file.strip_prefix(&self.beside).unwrap_or(file).with_extension("");
        let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
        let subpath = parts.join("/");
        self.imported.subpaths.push(subpath.clone());
        OpenTranscript::of(file, self.key.with_subpath(subpath))
    }

    /// The sidecar of a part as an entry, if there is one.
    fn metadata_of(&mut self, open: &OpenTranscript) -> Option<(SessionKey, RawJson)> {
        if open.key.is_main() {
            return None;
        }
        let file = open.file.with_extension("meta.json");
        let text = file::read_text(&file).ok()?;
        let entry = as_entry(&text);
        if entry.is_none() {
            self.imported.damaged.push((file, 1));
        }
        Some((open.key.clone(), entry?))
    }
}

impl Iterator for Batches {
    type Item = Result<(SessionKey, Vec<RawJson>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.read().transpose()?;
        match &batch {
            Ok((_, entries)) => {
                self.imported.batches += 1;
                self.imported.entries += entries.len() as u64;
            }
            Err(_) => {
                // Nothing after a gap.
                self.open = None;
                self.waiting.clear();
            }
        }
        Some(batch)
    }
}

impl OpenTranscript {
    fn of(file: &Path, key: SessionKey) -> Result<Self> {
        let opened = file::open(file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::new(
                StoreErrorKind::NotFound,
                format!("there is no transcript {}", file.display()),
            ),
            _ => unreadable(file, error),
        })?;
        Ok(Self {
            file: file.to_owned(),
            lines: Lines::new(opened),
            key,
        })
    }

    fn batch(&mut self, options: &ImportOptions, damaged: &mut Vec<(PathBuf, u64)>) -> Result<Vec<RawJson>> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < options.batch_entries.max(1) && bytes < options.batch_bytes.max(1) {
            let next = self.lines.next();
            let Some(line) = next.map_err(|error| unreadable(&self.file, error))? else {
                break;
            };
            if line.is_blank() {
                continue;
            }
            let text = line.bytes.trim_ascii();
            match entry_of(text).filter(|_| !line.is_cut()) {
                Some(entry) => {
                    bytes += text.len();
                    batch.push(entry);
                }
                None => damaged.push((self.file.clone(), line.position.line)),
            }
        }
        Ok(batch)
    }
}

/// The key that the names of a transcript make.
pub(super) fn key_of(file: &Path) -> Result<SessionKey> {
    let names = || {
        let project = file.parent()?.file_name()?.to_str()?;
        let session = file.file_name()?.to_str()?.strip_suffix(".jsonl")?;
        Some(SessionKey::new(project, session))
    };
    names().ok_or_else(|| {
        let what = format!(
            "{} is not named like a transcript: projects/<project>/<session>.jsonl",
            file.display()
        );
        StoreError::new(StoreErrorKind::Invalid, what)
    })
}

fn entry_of(line: &[u8]) -> Option<RawJson> {
    let text = std::str::from_utf8(line).ok()?;
    let entry = RawJson::from_text(text).ok()?;
    text.starts_with('{').then_some(entry)
}

/// A `.meta.json` as the entry that stands for it: the same fields, and a type.
fn as_entry(text: &str) -> Option<RawJson> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if !text.starts_with('{') || RawJson::from_text(text).is_err() {
        return None;
    }
    let mut entry = format!(r#"{{"type":"{METADATA}""#);
    for (key, value) in EntryFields::of(text)
        .into_pairs()
        .filter(|(key, _)| key != "type")
    {
        entry.push(',');
        entry.push_str(&serde_json::Value::from(key.as_ref()).to_string());
        entry.push(':');
        entry.push_str(value);
    }
    entry.push('}');
    RawJson::from_text(entry).ok()
}

/// Takes the entries that stand for a `.meta.json` out of a part's, and gives the text of that file: of the last of them, as
/// the CLI would have overwritten it.
pub fn split_metadata(entries: Vec<RawJson>) -> (Vec<RawJson>, Option<String>) {
    let mut metadata = None;
    let mut rest = entries;
    rest.retain(|entry| {
        let fields = EntryFields::of(entry.get());
        if fields.text("type").as_deref() != Some(METADATA) {
            return true;
        }
        let pairs = fields.into_pairs().filter(|(key, _)| key != "type");
        let pairs: Vec<_> = pairs
            .map(|(key, value)| format!("{}:{value}", serde_json::Value::from(key.as_ref())))
            .collect();
        metadata = Some(format!("{{{}}}", pairs.join(",")));
        false
    });
    (rest, metadata)
}

/// All transcripts below a directory, in the order of their names. One that isn't there has none.
fn transcripts(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let listed = match std::fs::read_dir(directory) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut places = Vec::new();
    for place in listed {
        let place = place?;
        places.push((place.path(), place.file_type()?));
    }
    places.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (path, kind) in places {
        if kind.is_dir() {
            transcripts(&path, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "jsonl") {
            found.push(path);
        }
    }
    Ok(())
}

fn unreadable(path: &Path, error: io::Error) -> StoreError {
    StoreError::failed(format!("{} can't be read", path.display()), error)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::conformance::tests::block_on;
    use super::super::{BoxFuture, MemoryStore};
    use super::*;

    const ID: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";

    #[test]
    fn a_line_beyond_the_bound_is_damage_and_no_memory() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(format!("{ID}.jsonl"));
        let long = format!("{{\"uuid\":\"b\",\"text\":\"{}\"}}", "x".repeat(200));
        std::fs::write(&file, format!("{{\"uuid\":\"a\"}}\n{long}\n{{\"uuid\":\"c\"}}\n")).unwrap();
        let mut open = OpenTranscript::of(&file, SessionKey::new("-p", ID)).unwrap();
        open.lines = open.lines.cap(100);
        let mut damaged = Vec::new();
        let read = open.batch(&ImportOptions::default(), &mut damaged).unwrap();
        let texts: Vec<_> = read.iter().map(|entry| entry.get()).collect();
        assert_eq!(texts, [r#"{"uuid":"a"}"#, r#"{"uuid":"c"}"#]);
        assert_eq!(damaged, [(file, 2)]);
    }

    #[test]
    fn appends_are_cut() {
        let entry = |size: usize| RawJson::from_text(format!("\"{}\"", "x".repeat(size))).unwrap();
        let cut = |entries: &[RawJson]| -> Vec<usize> { portions(entries).map(<[_]>::len).collect() };
        assert_eq!(cut(&vec![entry(1); 900]), [500, 400]);
        assert_eq!(cut(&vec![entry(400 << 10); 5]), [2, 2, 1]);
        assert_eq!(cut(&[entry(1), entry(3 << 20), entry(1)]), [1, 1, 1]);
        assert_eq!(cut(&[]), [0; 0]);
    }

    /// A transcript of `lines` with a subagent below it.
    fn session(lines: &str) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("projects/-p");
        let agents = project.join(ID).join("subagents/workflows/run");
        std::fs::create_dir_all(&agents).unwrap();
        let file = project.join(format!("{ID}.jsonl"));
        std::fs::write(&file, lines).unwrap();
        std::fs::write(agents.join("agent-1.jsonl"), "{\"uuid\":\"s\"}\n").unwrap();
        let meta = r#"{ "agentType": "x\ud800", "type": "theirs" }"#;
        std::fs::write(agents.join("agent-1.meta.json"), meta).unwrap();
        (root, file)
    }

    fn raw(text: &str) -> RawJson {
        RawJson::from_text(text).unwrap()
    }

    #[test]
    fn a_session_comes_with_its_parts_and_without_what_is_damaged() {
        let lines = "{\"uuid\":\"a\",\"t\":\"\\ud800\"}\r\n\n[1]\n{\"type\":\"x\"}\n\u{0}{}\n{\"cut\":";
        let (_root, file) = session(lines);
        let store = MemoryStore::new();
        let imported = block_on(import_to_store(&file, &store, ImportOptions::default())).unwrap();
        let key = SessionKey::new("-p", ID);
        let sub = key.with_subpath("subagents/workflows/run/agent-1");
        assert_eq!(
            store.entries(&key),
            [raw(r#"{"uuid":"a","t":"\ud800"}"#), raw(r#"{"type":"x"}"#)]
        );
        let metadata = raw(r#"{"type":"agent_metadata","agentType":"x\ud800"}"#);
        assert_eq!(store.entries(&sub), [raw(r#"{"uuid":"s"}"#), metadata]);
        assert_eq!(
            imported.damaged.iter().map(|(_, line)| *line).collect::<Vec<_>>(),
            [3, 5, 6]
        );
        assert_eq!((imported.entries, imported.batches), (4, 3));
        assert_eq!(imported.subpaths, ["subagents/workflows/run/agent-1"]);

        let (rest, metadata) = split_metadata(store.entries(&sub));
        assert_eq!(rest, [raw(r#"{"uuid":"s"}"#)]);
        assert_eq!(metadata.as_deref(), Some(r#"{"agentType":"x\ud800"}"#));

        // Once more, only what has no uuid is there twice.
        block_on(import_to_store(
            &file,
            &store,
            ImportOptions::default().include_subagents(false),
        ))
        .unwrap();
        assert_eq!(store.entries(&key).len(), 3);
        assert_eq!(store.entries(&sub).len(), 2);
    }

    /// Remembers how many entries and bytes each append had.
    struct Sizes(Mutex<Vec<(usize, usize)>>);

    impl SessionStore for Sizes {
        fn append<'a>(&'a self, _: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
            let bytes = entries.iter().map(|entry| entry.get().len()).sum();
            self.0.lock().unwrap().push((entries.len(), bytes));
            Box::pin(std::future::ready(Ok(())))
        }

        fn load<'a>(&'a self, _: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
            Box::pin(std::future::ready(Ok(None)))
        }
    }

    #[test]
    fn appends_are_bounded_by_entries_and_by_bytes() {
        let sizes = |lines: String, options: ImportOptions| {
            let (_root, file) = session(&lines);
            let store = Sizes(Mutex::default());
            block_on(import_to_store(&file, &store, options.include_subagents(false))).unwrap();
            store.0.into_inner().unwrap()
        };
        let counts: Vec<_> = sizes("{\"n\":1}\n".repeat(1201), ImportOptions::default())
            .iter()
            .map(|(count, _)| *count)
            .collect();
        assert_eq!(counts, [500, 500, 201]);
        let large = format!("{{\"t\":\"{}\"}}\n", "x".repeat(600 << 10));
        let counts: Vec<_> = sizes(large.repeat(5), ImportOptions::default())
            .iter()
            .map(|(count, _)| *count)
            .collect();
        assert_eq!(counts, [2, 2, 1]);
        assert_eq!(
            sizes("{}\n{}\n".to_owned(), ImportOptions::default().batch_entries(0)),
            [(1, 2), (1, 2)]
        );
    }

    #[test]
    fn what_is_not_there_or_no_transcript_is_an_error() {
        let (root, _file) = session("");
        for (file, kind) in [
            (
                root.path().join("projects/-p/none.jsonl"),
                StoreErrorKind::NotFound,
            ),
            (root.path().join("projects/-p/none.txt"), StoreErrorKind::Invalid),
        ] {
            assert_eq!(
                *Batches::of(&file, ImportOptions::default()).unwrap_err().kind(),
                kind
            );
        }
    }
}
