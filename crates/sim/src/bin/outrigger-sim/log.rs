//! The log: the arguments of the simulator, and the lines of its pipes.

use std::fs::File;

use outrigger_sim::peer::{Exit, Refusal, Report};
use serde_json::{Value, json};

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
    entry(
        0.0,
        "meta",
        &json!({"argv": arguments, "cwd": cwd.to_string_lossy()}),
    )
}

/// What went through the pipes, and how it ended, as lines of the log.
pub(crate) fn went_through(report: &Report, signal: Option<i32>) -> String {
    let mut text = String::new();
    let mut end = 0.0;
    for line in &report.lines {
        end = line.at.as_secs_f64();
        text += &entry(end, if line.from_client { "in" } else { "out" }, &line.json);
    }
    let code = match report.exit {
        Some(Exit::Code(code)) => Some(code),
        _ => None,
    };
    text + &entry(end, "meta", &json!({"exit_code": code, "exit_signal": signal}))
}

pub(crate) fn entry(at: f64, direction: &str, message: &Value) -> String {
    format!("{}\n", json!({"t": at, "dir": direction, "msg": message}))
}
