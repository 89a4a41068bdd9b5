//! `outrigger logs`.

use std::io::{self, Write as _};
use std::time::Instant;

use outrigger::EventReader;
use outrigger::protocol::{Frame, RawJson};
use outrigger_host_client::{Envelope, EventSource, SessionStream, StreamItem};

use super::{GiveUpArgs, HostArgs, NAMES, failure, named};
use crate::event_lines::write_event;
use crate::exit::{CommandResult, Failure, Status};
use crate::paint::Paint;
use crate::plain::plain;
use crate::screen::note;
use crate::sessions::line;
use crate::signals::Signals;
use crate::time::minute;

/// How much of an event is shown, in characters.
const SHOWN: usize = 120;

/// Show the events of a session of a host, a line for each.
#[derive(Debug, clap::Args)]
#[command(after_help = NAMES)]
pub(crate) struct Logs {
    /// The session.
    session: String,
    /// Show only events after this number.
    #[arg(long, value_name = "SEQ", default_value_t = 0, conflicts_with = "last")]
    after: u64,
    /// Show only this many of the last events.
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<u64>,
    /// Goes on until Ctrl-C, which is exit status 130.
    #[arg(short, long)]
    follow: bool,
    /// Write JSON lines: the events of the log as the host wrote them, or with `--json=events` what happened in the session, as `outrigger run
    /// --json=events` writes it, each with the number of its event in the log (`sequence_num`).
    #[arg(long, value_enum, value_name = "LINES", num_args = 0..=1, require_equals = true, default_missing_value = "log")]
    json: Option<LogLines>,
    #[command(flatten)]
    give_up: GiveUpArgs,
    #[command(flatten)]
    host: HostArgs,
}

/// `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogLines {
    /// The events of the log, as the host wrote them.
    Log,
    /// The events that a session makes of the frames in the log, and how each turn ended.
    Events,
}

impl Logs {
    pub(crate) async fn run(self) -> CommandResult {
        let client = self.host.client()?;
        let session = named(&client, &self.session).await?;
        let after = match self.last {
            Some(last) => session.head_seq.saturating_sub(last),
            None => self.after,
        };
        let mut stream = client.stream(&session.id, after).map_err(failure)?;
        let mut signals = Signals::catch()?;
        let shown = self.show(&mut stream);
        tokio::select! {
            shown = shown => shown,
            signal = signals.next() => Ok(signal.status()),
        }
    }

    async fn show(&self, stream: &mut SessionStream) -> CommandResult {
        let paint = Paint::on(&io::stdout());
        let mut reader = EventReader::new();
        let mut patience = self.give_up.patience();
        loop {
            let item = stream.next().await.map_err(failure)?;
            match patience.take(item, Instant::now())? {
                StreamItem::Event(event) if self.json == Some(LogLines::Events) => {
                    write_events(&event, &mut reader)?;
                }
                StreamItem::Event(event) => self.event(&event, paint)?,
                StreamItem::Truncated { first_sequence_num } => {
                    told(&format!("events before {first_sequence_num} are no longer kept"))
                }
                StreamItem::Disconnected { error, retry_in } => {
                    told(&format!("{}; again in {:.1} s", error, retry_in.as_secs_f64()))
                }
                StreamItem::Synced { .. } if !self.follow => return Ok(Status::Success),
                _ => {}
            }
        }
    }

    fn event(&self, event: &Envelope, paint: Paint) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.json.is_some() {
            writeln!(out, "{}", event.raw.get())?;
        } else {
            let source = match &event.actor {
                Some(actor) => line(actor, 40),
                None => plain(event.source.as_str()),
            };
            let kind = line(&event.kind(), 60);
            writeln!(
                out,
                "{:>6} {} {:<8} {:<24} {}",
                event.sequence_num,
                paint.dim(plain(&minute(&event.created_at))),
                source,
                kind_painted(event, &kind, paint),
                line(&summary(&event.payload), SHOWN)
            )?;
        }
        Ok(out.flush()?)
    }
}

/// Writes what an event of the log brings.
fn write_events(event: &Envelope, reader: &mut EventReader) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let place = [("sequence_num", event.sequence_num.to_string())];
    let note_line = match event.conversation() {
        Some(frame) => {
            let frames = Frame::from_line(frame.get());
            frames.iter().flat_map(|frame| reader.push(frame)).collect()
        }
        None if event.ends_process() => reader.end(),
        None => Vec::new(),
    };
    for told in note_line {
        write_event(&mut out, &place, &told.into())?;
    }
    out.flush()
}

fn kind_painted(event: &Envelope, kind: &str, paint: Paint) -> String {
    let kind = format!("{kind:<24}");
    match event.source {
        EventSource::Client => paint.cyan(kind),
        EventSource::Host => paint.dim(kind),
        _ => kind,
    }
}

fn told(text: &str) {
    note(text, Paint::on(&io::stderr()));
}

/// What an event says, without what stands beside it.
fn summary(payload: &RawJson) -> String {
    let Ok(value) = payload.to_value() else {
        return payload.get().to_owned();
    };
    let Some(object) = value.as_object() else {
        return payload.get().to_owned();
    };
    if let Some(message) = object.get("message").and_then(|message| message.get("content")) {
        return match message.as_str() {
            Some(text) => text.to_owned(),
            None => message.to_string(),
        };
    }
    let rest: serde_json::Map<String, serde_json::Value> = object
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "type" | "uuid" | "session_id"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if rest.is_empty() {
        return String::new();
    }
    serde_json::Value::Object(rest).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_told_by_what_it_says() {
        for (payload, said) in [
            (
                r#"{"type":"user","message":{"role":"user","content":"Hi."}}"#,
                "Hi.",
            ),
            (
                r#"{"type":"session_state_changed","session_id":"s","state":"idle"}"#,
                r#"{"state":"idle"}"#,
            ),
            (r#"{"type":"x","uuid":"u"}"#, ""),
            ("7", "7"),
        ] {
            assert_eq!(summary(&RawJson::from_text(payload).unwrap()), said);
        }
    }
}
