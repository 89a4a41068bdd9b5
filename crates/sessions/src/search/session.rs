//! One session, searched.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::needle::{Needle, Sieve};
use super::scan::{ScannedLine, Scanner};
use super::texts::{SearchedRecord, Text};
use super::{Hit, Search};
use crate::clock;
use crate::error::{Error, Result};
use crate::file;
use crate::id::AgentId;
use crate::place::SessionFile;
use crate::read::list::{self, Candidate, ListedDir};
use crate::read::lite::Room;
use crate::read::{ListOptions, SessionInfo};
use crate::record::Position;

/// All that does not change from session to session.
pub(super) struct SearchPlan {
    search: Search,
    needle: Needle,
    sieve: Sieve,
    /// Sieves for the calls of a tool, and for those for a file.
    tool: Option<Sieve>,
    file: Option<Sieve>,
    /// Milliseconds since 1970.
    since: Option<i64>,
    until: Option<i64>,
    options: ListOptions,
    places: Vec<ListedDir>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) unread: Arc<AtomicU64>,
}

/// Room for one session after the other.
pub(super) struct SearchBuffers {
    room: Room,
    scanner: Scanner,
}

impl SearchBuffers {
    pub(super) fn new() -> Self {
        Self {
            room: Room::default(),
            scanner: Scanner::new(),
        }
    }
}

impl SearchPlan {
    pub(super) fn new(search: &Search, options: ListOptions, places: Vec<ListedDir>) -> Self {
        let needle = Needle::new(&search.text, !search.case_sensitive);
        let exactly = |text: &Option<String>| Some(Sieve::new(&Needle::new(text.as_deref()?, false)));
        Self {
            sieve: Sieve::new(&needle),
            needle,
            tool: exactly(&search.tool),
            file: exactly(&search.file),
            since: search.since.map(clock::millis),
            until: search.until.map(clock::millis),
            search: search.clone(),
            options,
            places,
            stop: Arc::default(),
            unread: Arc::default(),
        }
    }

    /// Reports the hits in the newest copy of a session that belongs on the list, until `tell` has enough, and counts the bytes that it reads
    /// for that.
    pub(super) fn run(
        &self,
        desk: &mut SearchBuffers,
        copies: &[Candidate],
        count: &mut dyn FnMut(u64),
        tell: &mut dyn FnMut(Result<Hit>) -> ControlFlow<()>,
    ) {
        let Some(newest) = copies.first() else {
            return;
        };
        // Its ends decide whether it belongs on the list; most sessions have no hit, so read them late.
        let mut info = None;
        let (candidate, is_known) = if copies.len() > 1 || self.asks_info() {
            let read = |copy| Some((copy, self.info(desk, copy)?));
            match copies.iter().find_map(read) {
                Some((copy, read)) => {
                    info = Some(read);
                    (copy, true)
                }
                None => return,
            }
        } else {
            (newest, false)
        };
        if self.since.is_some_and(|since| candidate.modified < since) {
            return;
        }
        if let Err(error) = self.search_copy(desk, candidate, info, is_known, count, tell) {
            let _ = tell(Err(error));
        }
    }

    /// How much is read of a session when all of it is.
    pub(super) fn length_of(&self, copies: &[Candidate]) -> u64 {
        let Some(newest) = copies.first() else { return 0 };
        let mut length = newest.size;
        if self.search.include_subagents
            && let Some(file) = SessionFile::at(&newest.id, newest.path.clone(), None)
        {
            let paths = file.subagent_paths().into_iter();
            length += paths
                .map(|(_, path)| fs::metadata(path).map_or(0, |file| file.len()))
                .sum::<u64>();
        }
        length
    }

    fn asks_info(&self) -> bool {
        self.search.tag.is_some() || self.search.archived.is_some()
    }

    /// The metadata of a session, if it matches the filters.
    fn info(&self, desk: &mut SearchBuffers, candidate: &Candidate) -> Option<Arc<SessionInfo>> {
        list::read(&mut desk.room, &self.places, candidate, &self.options).map(Arc::new)
    }

    fn search_copy(
        &self,
        desk: &mut SearchBuffers,
        candidate: &Candidate,
        mut info: Option<Arc<SessionInfo>>,
        is_known: bool,
        count: &mut dyn FnMut(u64),
        tell: &mut dyn FnMut(Result<Hit>) -> ControlFlow<()>,
    ) -> Result<()> {
        if let Some(info) = &info {
            let is_other = |tag: &String| info.tag.as_ref() != Some(tag);
            let archived = info.archived.unwrap_or(false);
            if self.search.tag.as_ref().is_some_and(is_other)
                || self.search.archived.is_some_and(|wanted| wanted != archived)
            {
                return Ok(());
            }
        }
        let mut files = vec![(None, Arc::new(candidate.path.clone()))];
        if self.search.include_subagents
            && let Some(file) = SessionFile::at(&candidate.id, candidate.path.clone(), None)
        {
            let subagents = file.subagent_paths().into_iter();
            files.extend(subagents.map(|(agent, path)| (Some(agent), Arc::new(path))));
        }
        if !self.has_calls(desk, &files)? {
            return Ok(());
        }
        let mut left = match self.search.per_session {
            0 => usize::MAX,
            most => most,
        };
        let mut is_over = false;
        for (agent, path) in &files {
            let SearchBuffers { room, scanner } = desk;
            let mut each = |position: Position, said: SearchedRecord| {
                if !self.wants(&said) {
                    return ControlFlow::Continue(());
                }
                let SearchedRecord {
                    uuid,
                    timestamp,
                    texts,
                    ..
                } = said;
                for text in texts {
                    let Some(range) = self.find(&text) else {
                        continue;
                    };
                    if info.is_none() && !is_known {
                        info = list::read(room, &self.places, candidate, &self.options).map(Arc::new);
                    }
                    let Some(session) = info.clone() else {
                        is_over = true;
                        return ControlFlow::Break(());
                    };
                    let (snippet, range) = snippet(&text.text, range, self.search.context);
                    let told = tell(Ok(Hit {
                        session,
                        path: path.clone(),
                        agent: agent.clone(),
                        uuid: uuid.clone(),
                        position,
                        timestamp: timestamp.clone(),
                        part: text.part,
                        tool: text.tool,
                        snippet,
                        range,
                    }));
                    left -= 1;
                    if left == 0 || told.is_break() {
                        is_over = true;
                        return ControlFlow::Break(());
                    }
                }
                ControlFlow::Continue(())
            };
            self.scan(scanner, path, &self.sieve, Some(count), &mut each)?;
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Whether the session has the calls of the filter.
    fn has_calls(&self, desk: &mut SearchBuffers, files: &[(Option<AgentId>, Arc<PathBuf>)]) -> Result<bool> {
        let mut has = |sieve: &Sieve, fits: &dyn Fn(&super::texts::SearchedToolCall) -> bool| {
            let mut found = false;
            for (_, path) in files {
                let mut each = |_, said: SearchedRecord| {
                    found = said.calls.iter().any(fits);
                    if found {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                };
                self.scan(&mut desk.scanner, path, sieve, None, &mut each)?;
                if found {
                    return Ok(true);
                }
            }
            Ok::<_, Error>(false)
        };
        if let (Some(sieve), Some(tool)) = (&self.tool, &self.search.tool)
            && !has(sieve, &|call| call.tool == *tool)?
        {
            return Ok(false);
        }
        if let (Some(sieve), Some(file)) = (&self.file, &self.search.file)
            && !has(sieve, &|call| {
                call.file.as_deref().is_some_and(|path| is_file(path, file))
            })?
        {
            return Ok(false);
        }
        Ok(true)
    }

    /// Searches a file, and counts the bytes it reads and those it cannot read. A missing file is skipped: sessions are deleted at
    /// any time.
    fn scan(
        &self,
        scanner: &mut Scanner,
        path: &Path,
        sieve: &Sieve,
        mut count: Option<&mut dyn FnMut(u64)>,
        each: &mut dyn FnMut(Position, SearchedRecord) -> ControlFlow<()>,
    ) -> Result<()> {
        let file = match file::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file.map_err(Error::io("open", path))?,
        };
        let counts = count.is_some();
        let mut file = Counted {
            file,
            count: &mut |bytes| {
                if let Some(count) = &mut count {
                    count(bytes);
                }
            },
        };
        let unread = || {
            if counts {
                self.unread.fetch_add(1, Ordering::Relaxed);
            }
            ControlFlow::Continue(())
        };
        let line = |found: ScannedLine<'_>| match found {
            ScannedLine::Oversized => unread(),
            ScannedLine::Line(_, line) if line.iter().all(u8::is_ascii_whitespace) => {
                ControlFlow::Continue(())
            }
            ScannedLine::Line(position, line) => match SearchedRecord::read(line) {
                Some(said) => each(position, said),
                None => unread(),
            },
        };
        scanner
            .scan(&mut file, sieve, &self.stop, line)
            .map_err(Error::io("read", path))
    }

    /// Whether a message matches the filters.
    fn wants(&self, said: &SearchedRecord) -> bool {
        if said.is_meta && !self.search.include_meta {
            return false;
        }
        if self.search.branch.is_some() && self.search.branch != said.branch {
            return false;
        }
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        let time = said.timestamp.as_deref().and_then(clock::parse);
        time.is_some_and(|time| {
            self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time < until)
        })
    }

    fn find(&self, text: &Text) -> Option<Range<usize>> {
        if !self.search.parts.contains(&text.part) {
            return None;
        }
        self.needle.find(&text.text)
    }
}

/// A file that counts the bytes read.
struct Counted<'c> {
    file: File,
    count: &'c mut dyn FnMut(u64),
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        (self.count)(read as u64);
        Ok(read)
    }
}

/// Whether a path is the one of the filter, or ends in it.
fn is_file(path: &str, wanted: &str) -> bool {
    match path.strip_suffix(wanted) {
        Some(before) => before.is_empty() || before.ends_with(['/', '\\']) || wanted.starts_with(['/', '\\']),
        None => false,
    }
}

/// Cuts out the hit with so many characters before and after it.
pub(super) fn snippet(text: &str, range: Range<usize>, context: usize) -> (String, Range<usize>) {
    let before = text[..range.start].char_indices().rev().take(context).last();
    let start = before.map_or(range.start, |(at, _)| at);
    let after = text[range.end..].char_indices().nth(context);
    let end = after.map_or(text.len(), |(at, _)| range.end + at);
    (
        text[start..end].to_owned(),
        range.start - start..range.end - start,
    )
}
