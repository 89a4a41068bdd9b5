//! Which sessions there are.

use std::collections::HashSet;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

use super::info::{self, Around, SessionInfo};
use super::lite::{self, Room};
use crate::clock;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::place::{Sessions, composed, is_same_when_cut, project_dir_name, real_path, worktrees};

/// How many sessions are read at once, at most.
const MOST_THREADS: usize = 8;

/// Which sessions to list. The default is all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// Only sessions of the project at this directory.
    pub dir: Option<PathBuf>,
    /// How many at most; 0 is all.
    pub limit: usize,
    /// How many of the newest to skip.
    pub offset: usize,
    /// With a `dir` in a git repository: those of the repository's other worktrees too. True unless it is set.
    pub include_worktrees: bool,
    /// Whether to list sessions of programs (through an SDK or `claude -p`) and daemons. True by default.
    pub include_programmatic: bool,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            dir: None,
            limit: 0,
            offset: 0,
            include_worktrees: true,
            include_programmatic: true,
        }
    }
}

impl ListOptions {
    /// All sessions of all projects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lists only sessions of the project at this directory.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Lists so many at most; 0 is all.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Skips so many of the newest.
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// Whether sessions of the repository's other worktrees are listed too.
    pub fn include_worktrees(mut self, include: bool) -> Self {
        self.include_worktrees = include;
        self
    }

    /// Whether sessions that programs and daemons ran are listed too.
    pub fn include_programmatic(mut self, include: bool) -> Self {
        self.include_programmatic = include;
        self
    }
}

/// A directory of sessions to list.
pub(crate) struct ListedDir {
    dir: PathBuf,
    project: Option<String>,
    /// Whether only sessions count that were recorded in the project.
    is_shared: bool,
}

/// A transcript to list.
pub(crate) struct Candidate {
    pub(crate) id: SessionId,
    pub(crate) path: PathBuf,
    place: usize,
    has_more: bool,
    /// Milliseconds since 1970.
    pub(crate) modified: i64,
    /// How long the transcript is; both are known of those that are in order.
    pub(crate) size: u64,
}

impl Sessions {
    /// Lists sessions, the most recently written first. Only the ends of each transcript are read, by up to eight
    /// threads.
    ///
    /// The list has no transcripts of subagents, none with nothing to show, and none whose conversation continues in another
    /// session. A session in several projects is listed once, with its newest copy. One that cannot be read is skipped.
    ///
    /// # Errors
    /// When the directory of all projects exists and cannot be read.
    pub fn list(&self, options: &ListOptions) -> Result<Vec<SessionInfo>> {
        let (places, candidates) = self.candidates(options)?;
        if options.limit == 0 {
            let mut infos = read_all(&places, &candidates, options);
            infos.sort_unstable_by(|a, b| {
                (b.last_modified, &b.session_id).cmp(&(a.last_modified, &a.session_id))
            });
            let mut seen = HashSet::new();
            infos.retain(|info| seen.insert(info.session_id.clone()));
            infos.drain(..options.offset.min(infos.len()));
            return Ok(infos);
        }
        Ok(self.page(&places, candidates, options))
    }

    /// The transcripts that there are to list, in no order; when they were written to is not known yet.
    fn candidates(&self, options: &ListOptions) -> Result<(Vec<ListedDir>, Vec<Candidate>)> {
        let places = match &options.dir {
            Some(dir) => self.places_of(&real_path(dir), options.include_worktrees),
            None => self.all_places()?,
        };
        let mut candidates = Vec::new();
        for (nth, place) in places.iter().enumerate() {
            gather(nth, &place.dir, &mut candidates);
        }
        Ok((places, candidates))
    }

    /// The transcripts that there are to list, the one that was written to last first.
    #[cfg(feature = "search")]
    pub(crate) fn newest_first(&self, options: &ListOptions) -> Result<(Vec<ListedDir>, Vec<Candidate>)> {
        let (places, mut candidates) = self.candidates(options)?;
        sort(&mut candidates);
        Ok((places, candidates))
    }

    /// Reads no more transcripts than a page needs, beginning with the newest.
    fn page(
        &self,
        places: &[ListedDir],
        mut candidates: Vec<Candidate>,
        options: &ListOptions,
    ) -> Vec<SessionInfo> {
        sort(&mut candidates);
        let wanted = options.offset.saturating_add(options.limit);
        let mut seen = HashSet::new();
        let mut infos: Vec<SessionInfo> = Vec::new();
        let mut rest = &candidates[..];
        while infos.len() < wanted && !rest.is_empty() {
            let (chunk, behind) = rest.split_at((wanted - infos.len()).max(16).min(rest.len()));
            rest = behind;
            let mut read = read_all(places, chunk, options);
            read.sort_unstable_by(|a, b| {
                (b.last_modified, &b.session_id).cmp(&(a.last_modified, &a.session_id))
            });
            infos.extend(
                read.into_iter()
                    .filter(|info| seen.insert(info.session_id.clone())),
            );
        }
        infos.truncate(wanted);
        infos.drain(..options.offset.min(infos.len()));
        infos
    }

    fn all_places(&self) -> Result<Vec<ListedDir>> {
        let projects = self.projects_dir();
        match fs::read_dir(&projects) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("read", projects)(error)),
        }
        let place = |dir| ListedDir {
            dir,
            project: None,
            is_shared: false,
        };
        Ok(self.project_dirs().into_iter().map(place).collect())
    }

    /// The directories with sessions of the project at `real`, and of its worktrees.
    fn places_of(&self, real: &str, include_worktrees: bool) -> Vec<ListedDir> {
        let mut projects = vec![real.to_owned()];
        if include_worktrees {
            projects.extend(
                worktrees(Path::new(real))
                    .into_iter()
                    .filter(|other| other != real),
            );
        }
        let mut places: Vec<ListedDir> = Vec::new();
        for project in projects {
            for (dir, is_shared) in self.dirs_of(&project) {
                if !places.iter().any(|place| place.dir == dir) {
                    let project = Some(project.clone());
                    places.push(ListedDir {
                        dir,
                        project,
                        is_shared,
                    });
                }
            }
        }
        places
    }

    /// The directories that may have sessions of a project, and whether they may have others' too.
    fn dirs_of(&self, project: &str) -> Vec<(PathBuf, bool)> {
        let exact = self.project_dir_of(project);
        let mut dirs: Vec<(PathBuf, bool)> = Vec::new();
        if exact.is_dir() {
            dirs.push((exact.clone(), false));
        }
        let name = project_dir_name(project);
        let alike = self.project_dirs().into_iter();
        let alike = alike.filter(|dir| *dir != exact && is_same_when_cut(dir, &name));
        dirs.extend(alike.map(|dir| (dir, true)));
        dirs
    }
}

/// Looks when the transcripts were written to, and puts the newest first.
fn sort(candidates: &mut [Candidate]) {
    for candidate in &mut *candidates {
        let metadata = fs::metadata(&candidate.path).ok();
        candidate.size = metadata.as_ref().map_or(0, fs::Metadata::len);
        let modified = metadata.and_then(|metadata| metadata.modified().ok());
        candidate.modified = clock::millis(modified.unwrap_or(SystemTime::UNIX_EPOCH));
    }
    candidates.sort_unstable_by(|a, b| (b.modified, &b.id, &b.path).cmp(&(a.modified, &a.id, &a.path)));
}

/// Collects the transcripts of a directory.
fn gather(place: usize, dir: &Path, into: &mut Vec<Candidate>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let mut more = HashSet::new();
    let from = into.len();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            continue;
        };
        if let Some(id) = SessionId::of_file_name(name) {
            // A FIFO or a link is no transcript, as for the official SDK.
            if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            into.push(Candidate {
                path: entry.path(),
                id,
                place,
                has_more: false,
                modified: 0,
                size: 0,
            });
        } else if let Ok(id) = SessionId::new(name) {
            more.insert(id);
        }
    }
    if !more.is_empty() {
        for candidate in &mut into[from..] {
            candidate.has_more = more.contains(&candidate.id);
        }
    }
}

/// Reads transcripts, several at once.
fn read_all(places: &[ListedDir], candidates: &[Candidate], options: &ListOptions) -> Vec<SessionInfo> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(MOST_THREADS).min(candidates.len().div_ceil(8));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut room = Room::default();
        let mut infos = Vec::new();
        loop {
            let from = next.fetch_add(8, Ordering::Relaxed);
            let Some(chunk) = candidates.get(from..candidates.len().min(from + 8)) else {
                return infos;
            };
            if chunk.is_empty() {
                return infos;
            }
            infos.extend(
                chunk
                    .iter()
                    .filter_map(|candidate| read(&mut room, places, candidate, options)),
            );
        }
    };
    if threads <= 1 {
        return work();
    }
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut infos = work();
        for other in others {
            // A panic here would be a bug of ours; the results of the other threads are still right.
            infos.extend(other.join().unwrap_or_default());
        }
        infos
    })
}

/// The metadata of a session, if it belongs on the list.
pub(crate) fn read(
    room: &mut Room,
    places: &[ListedDir],
    candidate: &Candidate,
    options: &ListOptions,
) -> Option<SessionInfo> {
    let place = places.get(candidate.place)?;
    let around = Around {
        id: &candidate.id,
        dir: &place.dir,
        project: place.project.as_deref(),
        has_more: candidate.has_more,
    };
    let lite = room.read(&candidate.path).ok()??;
    if !options.include_programmatic && info::is_programmatic(lite.head) {
        return None;
    }
    if place.is_shared {
        let recorded = lite::CWD.first(lite.head)?;
        let project = around.project?;
        if composed(&recorded) != project {
            return None;
        }
    }
    let info = SessionInfo::of(around, lite)?;
    if let (Some(cwd), Some(project)) = (&info.cwd, around.project)
        && is_of_another(cwd, project, places)
    {
        return None;
    }
    match info::continued_in(lite.tail) {
        Some(other) if goes_on(&place.dir, &other) => None,
        _ => Some(info),
    }
}

/// Whether a session belongs to a directory that there is, and only has its name in common with the project: `/a/b` and `/a-b`.
fn is_of_another(cwd: &str, project: &str, places: &[ListedDir]) -> bool {
    let name = project_dir_name(project);
    let is_alike = |path: &str| composed(path) != project && project_dir_name(&composed(path)) == name;
    if !is_alike(cwd) {
        return false;
    }
    let mut listed = places.iter().filter_map(|place| place.project.as_deref());
    if listed.any(|listed| Path::new(cwd).starts_with(listed)) {
        return false;
    }
    Path::new(cwd).canonicalize().is_ok() && is_alike(&real_path(Path::new(cwd)))
}

/// Whether the session that should continue a conversation has any message.
fn goes_on(dir: &Path, other: &SessionId) -> bool {
    let mut room = Room::default();
    let lite = room.read(&dir.join(other.file_name()));
    lite.is_ok_and(|lite| lite.is_some_and(info::holds_messages))
}
