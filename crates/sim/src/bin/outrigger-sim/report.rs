//! The report as JSON, for test suites of any language.

use std::path::Path;

use outrigger_sim::peer::{Exit, Report};
use outrigger_sim::script::Flaw;
use serde_json::{Value, json};

/// The lines, the exit, and the flaws.
pub(crate) fn to_json(report: &Report, script: Option<&Path>) -> Value {
    json!({
        "content": report.flaws.is_empty(),
        "flaws": flaws_json(&report.flaws),
        "script": script.map(|path| path.display().to_string()),
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
