//! The frames of the processes of a run, one file each.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::cassette::{Event, What};
use crate::peer::{Exit, Report};

/// What is known of a process from its start: the first line of its file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) argv: Vec<String>,
    pub(super) cwd: String,
    pub(super) pid: i32,
    pub(super) began: f64,
}

/// A line of the file of a process that has begun at this time: an event, as in a [cassette](crate::cassette).
pub(super) fn entry(began: Duration, what: What) -> String {
    let at = now().saturating_sub(began);
    Event { at, what }.line()
}

/// Since 1970, for times that several processes compare.
pub(super) fn now() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

/// Creates the file of the next process, with a lock that lasts as long as a copy of the handle is open in any process.
pub(super) fn create(directory: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = 1;
    loop {
        let path = directory.join(format!("{number:04}.ndjson"));
        match File::options().append(true).create_new(true).open(&path) {
            Ok(file) => {
                file.lock_shared()?;
                return Ok((file, path));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// The files of a run, in the order in which the processes were started.
pub(super) fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let mut files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "ndjson"))
        .collect();
    // Longer numbers are later ones.
    files.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(files)
}

/// A process of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlayedProcess {
    /// The id of the process.
    pub id: i32,
    /// The command line of the process, without the program.
    pub arguments: Vec<String>,
    /// The working directory of the process.
    pub cwd: PathBuf,
    /// When the process began, since 1970.
    pub began: Duration,
    /// Whether the process has not ended yet.
    pub running: bool,
    /// What went through the process's pipes. How it ended is known only of the simulated CLI, and only if it was not killed.
    pub report: Report,
}

/// What says that stdout of the process has ended, and that all of it is in the file.
pub(super) fn closed(file: &Path) -> PathBuf {
    file.with_extension("closed")
}

/// Whether all that the process wrote is in this file.
pub(super) fn is_complete(file: &Path) -> bool {
    let unlocked = || {
        File::options()
            .append(true)
            .open(file)
            .is_ok_and(|file| file.try_lock().is_ok())
    };
    closed(file).exists() || unlocked()
}

/// Whether the process goes on. One that has ended, and whose parent has not asked how, does not.
fn is_running(file: &Path, id: i32) -> bool {
    !is_complete(file) && exists(id)
}

#[cfg(unix)]
fn exists(id: i32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};
    let id = Pid::from_raw(id);
    id.is_some_and(|id| !matches!(test_kill_process(id), Err(Errno::SRCH)))
}

/// There are no runs here.
#[cfg(not(unix))]
fn exists(_: i32) -> bool {
    false
}

/// Asks a process to end.
#[cfg(unix)]
pub(super) fn terminate(id: i32) {
    signal(id, rustix::process::Signal::TERM);
}

/// Kills a process.
#[cfg(unix)]
pub(super) fn kill(id: i32) {
    signal(id, rustix::process::Signal::KILL);
}

#[cfg(unix)]
fn signal(id: i32, signal: rustix::process::Signal) {
    use rustix::process::{Pid, kill_process};
    if let Some(id) = Pid::from_raw(id) {
        // One that has ended just now needs no signal.
        let _ = kill_process(id, signal);
    }
}

/// There are no runs here.
#[cfg(not(unix))]
pub(super) fn terminate(_: i32) {}

/// There are no runs here.
#[cfg(not(unix))]
pub(super) fn kill(_: i32) {}

/// Waits until nobody records in a file any more. Blocks.
pub(super) fn wait_for_end(path: &Path) -> io::Result<()> {
    File::options().append(true).open(path)?.lock()
}

/// The process whose frames are in a file, if it is still the one.
pub(super) fn process_id(path: &Path) -> Option<i32> {
    events(path).ok()?.iter().find_map(start).map(|start| start.pid)
}

fn events(path: &Path) -> io::Result<Vec<Event>> {
    let text = fs::read_to_string(path)?;
    // Whoever was killed while it wrote has left the beginning of a line.
    Ok(text.lines().filter_map(|line| Event::parse(line).ok()).collect())
}

fn start(event: &Event) -> Option<Start> {
    match &event.what {
        What::Note(note) => note.decode().ok(),
        _ => None,
    }
}

/// What is known of a process; none if it has not said yet which one it is.
pub(super) fn read(path: &Path) -> io::Result<Option<PlayedProcess>> {
    // Asked before the file is read, so that one that has ended has all of its frames.
    let complete = is_complete(path);
    let events = events(path)?;
    let Some(start) = events.iter().find_map(start) else {
        return Ok(None);
    };
    let exit = events.iter().find_map(|event| match event.what {
        What::Exit { code, signal } => code.map(Exit::Code).or(signal.map(Exit::Signal)),
        _ => None,
    });
    Ok(Some(PlayedProcess {
        id: start.pid,
        arguments: start.argv,
        cwd: start.cwd.into(),
        began: Duration::try_from_secs_f64(start.began).unwrap_or_default(),
        running: !complete && is_running(path, start.pid),
        report: Report::new(events.iter().filter_map(Event::said), exit),
    }))
}

/// Notes in the file of a process how it ended. One that was killed has no such note.
///
/// # Errors
/// When the file cannot be written.
pub fn note_end(file: impl AsRef<Path>, exit: Exit) -> io::Result<()> {
    let end = Event {
        at: Duration::ZERO,
        what: exit.into(),
    };
    let mut file = File::options().append(true).open(file)?;
    file.write_all(end.line().as_bytes())
}
