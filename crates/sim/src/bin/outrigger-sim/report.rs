//! The report as JSON, for test suites of any language.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use outrigger_sim::peer::{Exit, Report};
use outrigger_sim::script::Flaw;
use serde_json::{Value, json};

/// The process, the lines, the exit, and the flaws.
pub(crate) fn to_json(report: &Report, script: Option<&Path>, started: SystemTime) -> Value {
    let arguments: Vec<_> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    // A clock before 1970 puts a process first among others, and does nothing else.
    let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "content": report.flaws.is_empty(),
        "flaws": flaws_json(&report.flaws),
        "script": script.map(|path| path.display().to_string()),
        "started_ms": started.as_secs_f64() * 1000.0,
        "arguments": arguments,
        "exit": exit_json(report.exit),
        "lines": lines_json(report),
    })
}

pub(crate) fn exit_json(exit: Option<Exit>) -> Value {
    let (code, signal) = match exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(number)) => (None, Some(number)),
        None => (None, None),
    };
    json!({"code": code, "signal": signal})
}

pub(crate) fn flaws_json(flaws: &[Flaw]) -> Vec<Value> {
    let flaws = flaws.iter();
    flaws
        .map(|flaw| json!({"place": flaw.place, "what": flaw.what}))
        .collect()
}

pub(crate) fn lines_json(report: &Report) -> Vec<Value> {
    let lines = report.lines.iter();
    lines
        .map(|line| {
            let from = if line.from_client { "client" } else { "cli" };
            json!({"at_ms": line.at.as_secs_f64() * 1000.0, "from": from, "kind": line.kind(), "frame": line.json})
        })
        .collect()
}
