//! `outrigger cassette check`: whether a cassette is whole, typed, and without secrets.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use outrigger_protocol::check::{Checker, Direction};
use outrigger_sim::cassette::{
    Cassette, CassetteError, LineEnd, Places, RedactionRules, Redactor, Said, What,
};

use super::Redaction;
use crate::exit::{CommandResult, Status};
use crate::plain::plain;

/// Tell whether cassettes are whole, fully typed, and free of secrets.
///
/// It looks for a wrong format; for frames of the CLI that the types do not cover; for keys, tokens, addresses and home directories that
/// were not redacted. The exit status is 0 if nothing was found, 1 if something was, 2 if a file is no cassette.
#[derive(Debug, clap::Args)]
pub(super) struct CheckCassette {
    /// The cassettes.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    redaction: Redaction,
}

impl CheckCassette {
    pub(super) fn run(self) -> CommandResult {
        let rules = self.redaction.rules(RedactionRules::new())?;
        let redactor = Redactor::new(&Places::default(), rules);
        let mut out = io::stdout().lock();
        let mut status = Status::Success;
        for path in &self.files {
            let cassette = match Cassette::read(path) {
                Ok(cassette) => cassette,
                Err(error) => {
                    let text = plain(&error.to_string());
                    match error {
                        // The text has the path.
                        CassetteError::Unreadable { .. } => writeln!(out, "{text}")?,
                        _ => writeln!(out, "{}: {text}", shown(path))?,
                    }
                    status = Status::Usage;
                    continue;
                }
            };
            let problems = found(&cassette, &redactor);
            for text in &problems {
                writeln!(out, "{}:{}", shown(path), plain(text))?;
            }
            if !problems.is_empty() && status == Status::Success {
                status = Status::Failed;
            }
            let verdict = if problems.is_empty() { "clean" } else { "not clean" };
            writeln!(
                out,
                "{}: {} events, {verdict}",
                shown(path),
                cassette.events.len()
            )?;
        }
        out.flush()?;
        Ok(status)
    }
}

/// What is wrong, as the line of the file and a text.
fn found(cassette: &Cassette, redactor: &Redactor) -> Vec<String> {
    let mut found: Vec<String> = cassette
        .leaks(redactor)
        .into_iter()
        .map(|(line, what)| format!("{line}: not redacted: {what}"))
        .collect();
    let mut checker = Checker::new();
    for (number, event) in cassette.events.iter().enumerate() {
        let line = number + 2;
        let verdicts = match &event.what {
            What::In(Said::Frame(frame)) => checker.line(Direction::In, frame.get().as_bytes()),
            What::Out(Said::Frame(frame), _) => checker.line(Direction::Out, frame.get().as_bytes()),
            What::Out(Said::Text(text), _) if !text.trim().is_empty() => {
                checker.raw_text(Direction::Out, text)
            }
            _ => Vec::new(),
        };
        for verdict in verdicts.iter().filter(|verdict| verdict.is_failure()) {
            let kind = match &verdict.subtype {
                Some(subtype) => format!("{}/{subtype}", verdict.kind),
                None => verdict.kind.clone(),
            };
            let findings = verdict.findings.iter();
            found.extend(findings.map(|finding| format!("{line}: {kind}: {finding}")));
        }
        if matches!(event.what, What::Out(_, LineEnd::Missing)) {
            found.push(format!("{line}: the CLI's last line has no end"));
        }
    }
    let end = cassette.events.len() + 2;
    if cassette.torn.is_some() {
        found.push(format!(
            "{end}: the last line was not written to its end: the recorder was killed"
        ));
    } else if cassette.exit().is_none() {
        found.push(format!(
            "{end}: the end of the CLI is missing: the recorder was killed"
        ));
    }
    found
}

fn shown(path: &Path) -> String {
    plain(&path.to_string_lossy())
}
