//! What a session of a host says, on the screen.

use std::collections::HashSet;
use std::io;

use outrigger::protocol::{Frame, RawJson, walk};
use outrigger::{AmbientEvent, EventReader, Outcome};
use outrigger_host_client::{Envelope, EventSource};
use uuid::Uuid;

use crate::screen::{Phase, Screen};

/// The conversation of a session: durable events and pieces go in, and are shown.
pub(super) struct Conversation {
    pub(super) screen: Screen,
    reader: EventReader,
    /// Prompts that were typed here, and are on the screen.
    own: HashSet<String>,
    verbose: bool,
}

impl Conversation {
    pub(super) fn new(screen: Screen, verbose: bool) -> Self {
        Self {
            screen,
            reader: EventReader::new(),
            own: HashSet::new(),
            verbose,
        }
    }

    /// A prompt that stands on the screen, since somebody typed it there.
    pub(super) fn typed(&mut self, prompt: Uuid) {
        self.own.insert(prompt.to_string());
    }

    /// Shows a durable event.
    ///
    /// # Errors
    /// When stdout can't be written to.
    pub(super) fn event(&mut self, event: &Envelope) -> io::Result<()> {
        match event.source {
            EventSource::Worker => self.frame(&event.payload),
            EventSource::Client => self.client(event),
            _ => self.host(event),
        }
    }

    /// Shows a piece that is not kept.
    ///
    /// # Errors
    /// When stdout can't be written to.
    pub(super) fn piece(&mut self, frame: &RawJson) -> io::Result<()> {
        self.frame(frame)
    }

    /// Pieces were lost with a connection.
    ///
    /// # Errors
    /// When stdout can't be written to.
    pub(super) fn lost_pieces(&mut self) -> io::Result<()> {
        let events = self.reader.lost_pieces();
        self.events(events)?;
        self.screen.end_line()
    }

    fn frame(&mut self, payload: &RawJson) -> io::Result<()> {
        for frame in Frame::from_line(payload.get()) {
            let events = self.reader.push(&frame);
            self.events(events)?;
        }
        Ok(())
    }

    fn events(&mut self, events: Vec<AmbientEvent>) -> io::Result<()> {
        events.iter().try_for_each(|event| match event {
            AmbientEvent::Event(event) => self.screen.event(event),
            AmbientEvent::TurnEnded(outcome) => self.turn_ended(outcome),
            _ => Ok(()),
        })
    }

    fn turn_ended(&mut self, outcome: &Outcome) -> io::Result<()> {
        if !self.screen.said_any() && outcome.is_success() {
            self.screen.say(outcome.result_text())?;
        }
        self.screen.begin_turn();
        self.screen.end_line()?;
        self.screen.rests();
        let verdict = outcome.verdict();
        if !verdict.is_success() {
            let why = match (verdict.cause(), outcome.error_text()) {
                (Some(_), Some(why)) => format!(": {why}"),
                _ => String::new(),
            };
            self.screen.note(&format!("the turn is over, {verdict}{why}"))?;
        } else if self.verbose {
            self.screen.note(&format!("${:.4}", outcome.cost()))?;
        }
        Ok(())
    }

    fn client(&mut self, event: &Envelope) -> io::Result<()> {
        match event.kind().as_str() {
            "user" if self.own.remove(&event.event_id) => Ok(()),
            "user" => {
                let who = event
                    .actor
                    .as_ref()
                    .map_or_else(String::new, |actor| format!("({actor}) "));
                self.screen
                    .note(&format!("> {who}{}", prompt_text(&event.payload)))
            }
            "approval_decided" => self.host(event),
            kind if self.verbose => self.screen.note(&format!("a client sent {kind}")),
            _ => Ok(()),
        }
    }

    fn host(&mut self, event: &Envelope) -> io::Result<()> {
        let text = |key: &str| walk::string_at(event.payload.get(), key).unwrap_or_default();
        let kind = event.kind();
        match kind.as_str() {
            "session_state_changed" => match text("state").as_str() {
                "starting" => self.screen.waits(Phase::Starting),
                "running" => self.screen.waits(Phase::Waiting),
                "interrupted" => {
                    self.screen.rests();
                    self.screen
                        .note("the turn was cut off; the next prompt goes on")?;
                }
                "ended" => self
                    .screen
                    .note("the session is archived: it takes no prompts any more")?,
                _ => self.screen.rests(),
            },
            "start_failed" | "resume_failed" => {
                self.screen.rests();
                self.screen.note(&format!(
                    "the CLI does not start: {}; the next prompt tries again",
                    text("error")
                ))?;
            }
            "prompt_failed" => self
                .screen
                .note(&format!("the prompt failed: {}", text("error")))?,
            "approval_decided" => {
                let by = event
                    .actor
                    .as_ref()
                    .map_or_else(String::new, |actor| format!(" by {actor}"));
                self.screen.note(&format!("{}{by}", text("state")))?;
            }
            "decision_not_applied" => {
                self.screen.note(&format!(
                    "a decision came too late for the CLI: {}",
                    text("error")
                ))?;
            }
            "frames_lost" => self.screen.note("the host lost frames of the CLI")?,
            "delivery_update" if text("status") == "interrupted" => {
                self.screen
                    .note("a prompt was cut off, and is not sent again, since tools may have run")?;
            }
            "delivery_update" if text("status") == "not_begun" => {
                self.screen
                    .note("a prompt was not begun, since the session is archived")?;
            }
            "session_created" | "delivery_update" | "approval_opened" | "approval_superseded" => {}
            _ if self.verbose => self.screen.note(&format!("host: {kind}"))?,
            _ => {}
        }
        Ok(())
    }
}

/// The text of a prompt, with marks for what is no text.
fn prompt_text(payload: &RawJson) -> String {
    let value = payload.to_value().unwrap_or_default();
    match &value["message"]["content"] {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(blocks) => {
            let blocks = blocks.iter().map(|block| match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => format!("[{}]", block["type"].as_str().unwrap_or("?")),
            });
            blocks.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
