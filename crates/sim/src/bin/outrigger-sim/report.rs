//! The report as JSON, for test suites of any language.

use std::path::Path;

use outrigger_sim::peer::{Exit, Report};
use serde_json::{Value, json};

/// The lines, the exit, and the flaws.
pub(crate) fn to_json(report: &Report, script: Option<&Path>) -> Value {
    let (code, signal) = match report.exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(number)) => (None, Some(number)),
        None => (None, None),
    };
    let flaws: Vec<Value> = report
        .flaws
        .iter()
        .map(|flaw| json!({"place": flaw.place, "what": flaw.what}))
        .collect();
    let lines: Vec<Value> = report
        .lines
        .iter()
        .map(|line| {
            let from = if line.from_client { "client" } else { "cli" };
            json!({"at_ms": line.at.as_secs_f64() * 1000.0, "from": from, "kind": line.kind(), "frame": line.json})
        })
        .collect();
    json!({
        "content": flaws.is_empty(),
        "flaws": flaws,
        "script": script.map(|path| path.display().to_string()),
        "exit": {"code": code, "signal": signal},
        "lines": lines,
    })
}
