//! What a person waits for, in a line.

use std::time::{Duration, Instant};

use outrigger::Event;
use outrigger::protocol::Message;
use outrigger::protocol::inbound::SystemMessage;
use outrigger::protocol::inbound::system::{ApiRetry, StatusKind};

use super::shown_call;

/// What takes less than this is not worth a line.
const SHORT: Duration = Duration::from_secs(1);

/// What goes on at the moment.
#[derive(Debug, Default)]
pub(crate) struct Board {
    phase: Option<(Phase, Instant)>,
    retry: Option<(String, Instant)>,
    compacting: Option<Instant>,
    tools: Vec<Tool>,
    /// MCP servers that are not there yet.
    servers: Vec<String>,
    /// How many tasks run in the background.
    background: usize,
}

#[derive(Debug)]
struct Tool {
    id: String,
    shown: String,
    since: Instant,
}

/// What is waited for when no tool runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The CLI to be ready.
    Starting,
    /// The first word of an answer.
    Waiting,
    /// The end of the thinking.
    Thinking,
    /// The next piece of text that can be shown.
    Writing,
    /// A tool call that is being written.
    Calling,
    /// Work in the background, after the turn.
    Background(String),
}

impl Board {
    /// Something begins.
    pub(crate) fn begin(&mut self, phase: Phase) {
        self.begin_at(phase, Instant::now());
    }

    fn begin_at(&mut self, phase: Phase, now: Instant) {
        self.retry = None;
        match &mut self.phase {
            Some((current, _)) if *current == phase => {}
            current => *current = Some((phase, now)),
        }
    }

    /// Nothing is waited for any more.
    pub(crate) fn end(&mut self) {
        self.phase = None;
        self.retry = None;
        self.compacting = None;
        self.tools.clear();
    }

    /// An event of the turn.
    pub(crate) fn see(&mut self, event: &Event) {
        self.see_at(event, Instant::now());
    }

    fn see_at(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Text(_) => self.begin_at(Phase::Writing, now),
            Event::Thinking(_) => self.begin_at(Phase::Thinking, now),
            Event::ToolInput { .. } => self.begin_at(Phase::Calling, now),
            Event::ToolUse(call) => {
                self.begin_at(Phase::Waiting, now);
                self.tools.push(Tool {
                    id: call.id.clone(),
                    shown: shown_call(call),
                    since: now,
                });
            }
            Event::ToolResult(result) => {
                self.tools.retain(|tool| tool.id != result.tool_use_id);
                self.phase = Some((Phase::Waiting, now));
            }
            Event::Message(message, _) => {
                if let Message::System(system) = &**message {
                    self.system(system, now);
                }
            }
            _ => {}
        }
    }

    fn system(&mut self, message: &SystemMessage, now: Instant) {
        match message {
            SystemMessage::Init(init) => {
                let pending = init
                    .mcp_servers
                    .iter()
                    .filter(|server| server.status == "pending");
                self.servers = pending.map(|server| server.name.clone()).collect();
            }
            SystemMessage::ApiRetry(retry) => {
                let delay = Duration::try_from_secs_f64(retry.retry_delay_ms / 1000.0).unwrap_or_default();
                self.retry = Some((shown_retry(retry), now + delay));
            }
            SystemMessage::Status(status) => {
                let compacts = status.status == Some(StatusKind::Compacting);
                self.compacting = compacts.then(|| self.compacting.unwrap_or(now));
            }
            SystemMessage::CompactBoundary(_) => self.compacting = None,
            SystemMessage::BackgroundTasksChanged(changed) => self.background = changed.tasks.len(),
            _ => {}
        }
    }

    /// The line for this moment; none while nothing takes long.
    pub(crate) fn line(&self, now: Instant) -> Option<String> {
        let (mut line, since) = self.current(now)?;
        let took = now.saturating_duration_since(since);
        // That something failed is worth one at once.
        if took < SHORT && self.retry.is_none() {
            return None;
        }
        line.push_str(&format!(" ({} s)", took.as_secs()));
        if self.background > 0 && !matches!(self.phase, Some((Phase::Background(_), _))) {
            line.push_str(&format!("; {} in the background", self.background));
        }
        Some(line)
    }

    fn current(&self, now: Instant) -> Option<(String, Instant)> {
        if let Some(since) = self.compacting {
            return Some(("making the conversation shorter".to_owned(), since));
        }
        if let Some(tool) = self.tools.first() {
            let more = match self.tools.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            return Some((format!("{}{more}", tool.shown), tool.since));
        }
        let (phase, since) = self.phase.as_ref()?;
        if let Some((retry, until)) = &self.retry {
            let left = until.saturating_duration_since(now).as_secs_f64().ceil();
            let when = if left > 0.0 {
                format!("again in {left} s")
            } else {
                "trying again".to_owned()
            };
            return Some((format!("{retry}; {when}"), *since));
        }
        let mut text = match phase {
            Phase::Starting => "starting the CLI".to_owned(),
            Phase::Waiting => "waiting for the model".to_owned(),
            Phase::Thinking => "thinking".to_owned(),
            Phase::Writing => "writing".to_owned(),
            Phase::Calling => "writing a tool call".to_owned(),
            Phase::Background(what) => format!("waiting for {what}"),
        };
        if *phase == Phase::Waiting && !self.servers.is_empty() {
            text.push_str(&format!(", MCP servers start: {}", self.servers.join(", ")));
        }
        Some((text, *since))
    }
}

/// An API request that is tried again: what failed, and how often it was tried.
pub(super) fn shown_retry(retry: &ApiRetry) -> String {
    let what = match retry.error_status {
        Some(status) => format!("the API answered {status} ({})", retry.error.as_str()),
        None if retry.no_response.is_some() => "the API did not answer".to_owned(),
        None => format!("the API failed ({})", retry.error.as_str()),
    };
    format!("{what}, retry {} of {}", retry.attempt, retry.max_retries)
}

#[cfg(test)]
mod tests {
    use outrigger::protocol::Frame;

    use super::*;

    fn system(json: &str) -> SystemMessage {
        match Frame::from_line(json)[0].decode().unwrap() {
            Message::System(system) => *system,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wait_is_counted_once_it_is_long() {
        let (mut board, now) = (Board::default(), Instant::now());
        assert_eq!(board.line(now), None);
        board.begin_at(Phase::Waiting, now);
        assert_eq!(board.line(now + Duration::from_millis(400)), None);
        let line = |board: &Board, seconds| board.line(now + Duration::from_secs(seconds)).unwrap();
        assert_eq!(line(&board, 5), "waiting for the model (5 s)");
        board.see_at(&Event::Thinking("hm".into()), now + Duration::from_secs(5));
        board.see_at(&Event::Thinking("hm".into()), now + Duration::from_secs(7));
        assert_eq!(line(&board, 8), "thinking (3 s)");
        board.end();
        assert_eq!(board.line(now + Duration::from_secs(9)), None);
    }

    #[test]
    fn retries_say_what_failed_and_when_the_next_one_is() {
        let (mut board, now) = (Board::default(), Instant::now());
        board.begin_at(Phase::Waiting, now);
        let retry = r#"{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":2500.0,"error_status":529,"error":"overloaded","uuid":"u","session_id":"s"}"#;
        board.system(&system(retry), now);
        let line = |seconds| board.line(now + Duration::from_secs(seconds)).unwrap();
        assert_eq!(
            line(1),
            "the API answered 529 (overloaded), retry 2 of 10; again in 2 s (1 s)"
        );
        assert_eq!(
            line(4),
            "the API answered 529 (overloaded), retry 2 of 10; trying again (4 s)"
        );
    }

    #[test]
    fn compaction_comes_before_all_else_and_background_work_behind() {
        let (mut board, now) = (Board::default(), Instant::now());
        board.begin_at(Phase::Waiting, now);
        let status =
            r#"{"type":"system","subtype":"status","status":"compacting","uuid":"u","session_id":"s"}"#;
        board.system(&system(status), now);
        board.background = 2;
        assert_eq!(
            board.line(now + Duration::from_secs(3)).unwrap(),
            "making the conversation shorter (3 s); 2 in the background"
        );
    }
}
