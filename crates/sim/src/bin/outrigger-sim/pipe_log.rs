//! The log: the arguments of the simulator, and the lines of its pipes, as in a cassette.

use std::fs::File;
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sim::cassette::{Event, What};
use outrigger_sim::peer::{Refusal, Report};
use serde_json::json;

/// The file that `OUTRIGGER_SIM_LOG` names.
pub(crate) fn open() -> Result<Option<File>, Refusal> {
    let Some(path) = std::env::var_os("OUTRIGGER_SIM_LOG").filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let opened = File::options().append(true).create(true).open(&path);
    opened.map(Some).map_err(|error| {
        Refusal::new(format!(
            "OUTRIGGER_SIM_LOG: cannot write {}: {error}",
            path.display()
        ))
    })
}

/// How this process was started, as a line of the log.
pub(crate) fn start() -> String {
    let arguments: Vec<_> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let cwd = std::env::current_dir().unwrap_or_default();
    let start = json!({"argv": arguments, "cwd": cwd.to_string_lossy()});
    entry(Duration::ZERO, What::Note(RawJson::from(start)))
}

/// What went through the pipes, and how it ended, as lines of the log.
pub(crate) fn went_through(report: &Report) -> String {
    let lines: String = report.lines.iter().map(|line| Event::of(line).line()).collect();
    let nobody_knows = What::Exit {
        code: None,
        signal: None,
    };
    let end = report.lines.last().map(|line| line.at).unwrap_or_default();
    lines + &entry(end, report.exit.map_or(nobody_knows, What::from))
}

pub(crate) fn entry(at: Duration, what: What) -> String {
    Event { at, what }.line()
}
