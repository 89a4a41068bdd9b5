//! The frames of the processes of a run, one file each.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::peer::{Exit, Line, Report};
use crate::running::read_json;

/// A line of such a file: when it was, which way it went, and the line or what is known of the process.
pub(super) fn entry(began: Duration, direction: &str, message: &Value) -> String {
    let at = now().saturating_sub(began).as_secs_f64();
    format!("{}\n", json!({"t": at, "dir": direction, "msg": message}))
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

/// Waits until nobody records in a file any more. Blocks.
pub(super) fn wait_for_end(path: &Path) -> io::Result<()> {
    File::options().append(true).open(path)?.lock()
}

/// The process whose frames are in a file, if it is still the one.
pub(super) fn process_id(path: &Path) -> Option<i32> {
    let text = fs::read_to_string(path).ok()?;
    let first: Value = serde_json::from_str(text.lines().next()?).ok()?;
    first["msg"]["pid"].as_i64().and_then(|id| i32::try_from(id).ok())
}

/// What went through the pipes of a process, and how it ended, as far as that is known.
pub(super) fn read(path: &Path) -> io::Result<Report> {
    let text = fs::read_to_string(path)?;
    let mut lines = Vec::new();
    let mut exit = None;
    // Whoever was killed while it wrote has left the beginning of a line.
    let entries = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for mut entry in entries {
        let message = entry["msg"].take();
        let from_client = match entry["dir"].as_str() {
            Some("in") => true,
            Some("out") => false,
            _ => {
                let number = |name: &str| message[name].as_i64().and_then(|n| i32::try_from(n).ok());
                exit = exit
                    .or(number("exit_code").map(Exit::Code))
                    .or(number("exit_signal").map(Exit::Signal));
                continue;
            }
        };
        let json = match message {
            Value::String(text) => read_json(&text),
            json => json,
        };
        let mut line = Line::new(from_client, json);
        line.at = Duration::try_from_secs_f64(entry["t"].as_f64().unwrap_or_default()).unwrap_or_default();
        lines.push(line);
    }
    Ok(Report::new(lines, exit))
}

/// Notes in the file of a process how it ended. One that was killed has no such note.
///
/// # Errors
/// When the file cannot be written.
pub fn note_end(file: impl AsRef<Path>, exit: Exit) -> io::Result<()> {
    let end = match exit {
        Exit::Code(code) => json!({"exit_code": code, "exit_signal": null}),
        Exit::Signal(number) => json!({"exit_code": null, "exit_signal": number}),
    };
    let line = format!("{}\n", json!({"t": 0.0, "dir": "meta", "msg": end}));
    let mut file = File::options().append(true).open(file)?;
    file.write_all(line.as_bytes())
}
