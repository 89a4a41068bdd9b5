//! `outrigger cassette show`: what is in a cassette, to be read.

use std::io::{self, Write as _};
use std::path::PathBuf;

use outrigger::testing::recorded_events;
use outrigger_sim::cassette::{Cassette, Event, Said, What};

use super::read;
use crate::event_lines::write_event;
use crate::exit::{CommandResult, Status};
use crate::plain::plain;

/// Show what is in a cassette, an event a line.
#[derive(Debug, clap::Args)]
pub(super) struct ShowCassette {
    /// The cassette.
    file: PathBuf,
    /// Show frames whole.
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Write what happened in the session as JSON lines: the events that a session makes of the frames, as `outrigger run --json=events`
    /// writes them, each with the line of the cassette (`line`) and its time in seconds (`t`).
    #[arg(long, value_enum, value_name = "LINES", require_equals = true)]
    json: Option<CassetteLines>,
}

/// `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CassetteLines {
    /// The events, and how each turn ended.
    Events,
}

/// How much of a frame is shown, in characters.
const SHOWN: usize = 120;

impl ShowCassette {
    pub(super) fn run(self) -> CommandResult {
        let cassette = read(&self.file)?;
        let mut out = io::BufWriter::new(io::stdout().lock());
        if self.json == Some(CassetteLines::Events) {
            for recorded in recorded_events(&cassette) {
                let place = [
                    ("line", recorded.line.to_string()),
                    ("t", format!("{:.4}", recorded.at.as_secs_f64())),
                ];
                write_event(&mut out, &place, &recorded.event.into())?;
            }
            out.flush()?;
            return Ok(Status::Success);
        }
        for line in header(&cassette) {
            writeln!(out, "{}", plain(&line))?;
        }
        for (number, event) in cassette.events.iter().enumerate() {
            let text = self.text(event);
            writeln!(
                out,
                "{:>5} {:>9.3} {}",
                number + 2,
                event.at.as_secs_f64(),
                plain(&text)
            )?;
        }
        if let Some(torn) = &cassette.torn {
            let bytes = torn.len();
            writeln!(
                out,
                "the last line was not written to its end ({bytes} bytes of it): the recorder was killed"
            )?;
        }
        out.flush()?;
        Ok(Status::Success)
    }

    fn text(&self, event: &Event) -> String {
        let said =
            |arrow: &str, said: &Said| format!("{arrow} {:<32} {}", said.kind(), self.cut(said.text()));
        match &event.what {
            What::In(line) => said(">", line),
            What::Out(line, _) => said("<", line),
            What::Err(text) => format!("! {}", self.cut(text)),
            What::StdinClosed => "> (the end of the input)".to_owned(),
            What::StdoutClosed => "< (the end of the output)".to_owned(),
            What::Signal(name) => format!("> ({name})"),
            What::Exit { code: Some(code), .. } => format!("< (exit code {code})"),
            What::Exit {
                signal: Some(signal), ..
            } => format!("< (signal {signal})"),
            What::Note(note) => format!("# {}", self.cut(note.get())),
            _ => "< (the end)".to_owned(),
        }
    }

    fn cut(&self, text: &str) -> String {
        let line = text.replace('\n', "\\n");
        match line.char_indices().nth(SHOWN) {
            Some((end, _)) if !self.full => format!("{}… ({} bytes)", &line[..end], text.len()),
            _ => line,
        }
    }
}

fn header(cassette: &Cassette) -> Vec<String> {
    let header = &cassette.header;
    let version = cassette.cli_version();
    let mut lines = vec![
        format!("cassette  version {} of the format", header.version),
        format!("recorder  {}", header.recorder),
        format!("CLI       {}", version.as_deref().unwrap_or("of unknown version")),
        format!("platform  {}", header.platform),
        format!("argv      {}", header.argv.join(" ")),
    ];
    lines.extend(
        header
            .env
            .iter()
            .map(|(name, value)| format!("env       {name}={value}")),
    );
    lines
}
