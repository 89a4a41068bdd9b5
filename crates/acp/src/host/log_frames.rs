//! From the log of a host to the frames that a CLI would have written. A state machine without I/O.
//!
//! What the CLI wrote is in the log byte for byte. What clients and the host wrote becomes frames where a CLI would say the same: the prompts of other
//! clients when their turn begins, and the ends of turns of which no result tells.

use std::collections::{BTreeSet, VecDeque};

use outrigger::protocol::Frame;
use outrigger_host_client::{Envelope, EventSource};
use serde::Deserialize;
use serde_json::{Value, json};

/// How many prompts of other clients are kept until their turn begins. Older ones are not shown.
const MOST_WAITING: usize = 256;

/// Turns the events of one session into frames, in their order.
#[derive(Debug)]
pub(super) struct LogFrames {
    session: String,
    /// The prompts that this client has sent and that have not ended.
    own: BTreeSet<String>,
    /// Prompts of other clients whose turn has not begun: the id, and the frame.
    waiting: VecDeque<(String, String)>,
    /// The prompt whose turn runs.
    running: Option<String>,
    /// Whether the turn that runs has its result.
    has_result: bool,
    /// Whether the turn goes on in another process, after a call that the process of before has left open.
    is_deferred: bool,
    /// The CLI's report that it is through with the prompt whose turn runs, until its result says whether the turn goes on.
    completed: Option<String>,
    /// Why the host gave up the turn.
    failure: Option<String>,
    /// Whether the CLI does not say itself which prompt it begins, so that this has to.
    tells_beginnings: bool,
    /// What the last result said of the costs, which only grow.
    cost: Value,
    models: Value,
}

/// What the host says of a session.
#[derive(Debug, Deserialize)]
struct HostStatus {
    r#type: String,
    event_id: Option<String>,
    status: Option<String>,
    error: Option<String>,
    action: Option<String>,
}

/// A prompt of a client.
#[derive(Debug, Deserialize)]
struct Prompt {
    r#type: String,
    message: Value,
}

impl LogFrames {
    pub(super) fn new(session: impl Into<String>) -> Self {
        Self {
            session: session.into(),
            own: BTreeSet::new(),
            waiting: VecDeque::new(),
            running: None,
            has_result: false,
            is_deferred: false,
            completed: None,
            failure: None,
            tells_beginnings: false,
            cost: json!(0),
            models: json!({}),
        }
    }

    /// This client is about to send a prompt.
    pub(super) fn sends(&mut self, prompt: &str) {
        self.own.insert(prompt.to_owned());
    }

    /// Whether the turn of this prompt runs.
    pub(super) fn is_running(&self, prompt: &str) -> bool {
        self.running.as_deref() == Some(prompt)
    }

    /// The CLI of the session does not say which prompt it begins.
    pub(super) fn tell_beginnings(&mut self) {
        self.tells_beginnings = true;
    }

    /// A prompt of this client comes to nothing, or nobody knows what becomes of it.
    pub(super) fn gives_up(&mut self, prompt: &str, why: &str) -> String {
        self.own.remove(prompt);
        self.ended(prompt, &uuid::Uuid::new_v4().to_string(), why)
    }

    /// The lines for an event. Requests and their replies are none of them.
    pub(super) fn event(&mut self, event: &Envelope) -> Vec<String> {
        match event.source {
            EventSource::Worker => self.written(event),
            EventSource::Client => {
                self.sent(event);
                Vec::new()
            }
            EventSource::Host => event
                .payload
                .decode()
                .map(|status: HostStatus| self.on_status(&status, &event.event_id))
                .unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// The CLI wrote this frame.
    fn written(&mut self, event: &Envelope) -> Vec<String> {
        let text = event.payload.get();
        let Some(frame) = Frame::from_line(text).into_iter().next() else {
            return Vec::new();
        };
        if frame.kind().starts_with("control_") {
            return Vec::new();
        }
        let mut lines = Vec::new();
        match (frame.kind(), frame.subtype(), frame.state()) {
            ("result", ..) => {
                if let Ok(result) = serde_json::from_str(text) {
                    let result = self.result(&frame, result);
                    lines.extend(self.completed.take().filter(|_| result.is_some()));
                    lines.extend(result);
                    return lines;
                }
            }
            ("command_lifecycle", _, Some("completed"))
                if !self.has_result && frame.command_uuid() == self.running.as_deref() =>
            {
                self.completed = (!self.is_deferred).then(|| text.to_owned());
                return lines;
            }
            ("system", Some("session_state_changed"), Some("idle")) => {
                // The process has nothing to do, and the turn has: it goes on in another one.
                if self.is_deferred && !self.has_result {
                    return lines;
                }
                lines.extend(self.completed.take());
            }
            _ => {}
        }
        lines.push(text.to_owned());
        lines
    }

    /// The CLI reports the end of a turn.
    fn result(&mut self, frame: &Frame, mut result: Value) -> Option<String> {
        (self.cost, self.models) = (result["total_cost_usd"].clone(), result["modelUsage"].clone());
        let is_left_open = result["terminal_reason"] == "tool_deferred";
        if is_left_open && self.running.is_some() {
            // The process ends, the turn does not: it goes on when somebody has decided about its call.
            self.is_deferred = true;
            return None;
        }
        let is_human = frame.origin_kind().is_none_or(|kind| kind == "human");
        let mut names = frame.user_message_uuids().peekable();
        let is_own = match (&self.running, names.peek()) {
            (Some(running), Some(_)) => names.any(|name| name == running),
            _ => is_human,
        };
        self.has_result |= is_own;
        if let Some(running) = self.running.as_ref().filter(|_| is_own && self.is_deferred) {
            // The process that ends the turn has not got its prompt.
            result["user_message_uuids"] = json!([running]);
            return Some(result.to_string());
        }
        Some(frame.text().into_owned())
    }

    /// A client sent this.
    fn sent(&mut self, event: &Envelope) {
        let Ok(prompt) = event.payload.decode::<Prompt>() else {
            return;
        };
        if prompt.r#type != "user" || self.own.contains(&event.event_id) {
            return;
        }
        if self.waiting.len() == MOST_WAITING {
            self.waiting.pop_front();
        }
        let frame = json!({
            "type": "user", "message": prompt.message, "isReplay": true, "uuid": event.event_id, "session_id": self.session,
            "parent_tool_use_id": null,
        });
        self.waiting
            .push_back((event.event_id.clone(), frame.to_string()));
    }

    /// The host says this.
    fn on_status(&mut self, status: &HostStatus, event: &str) -> Vec<String> {
        match status.r#type.as_str() {
            "delivery_update" => match (&status.event_id, status.status.as_deref()) {
                (Some(prompt), Some("processing")) => self.begins(prompt, event),
                (Some(prompt), Some("processed")) => self.ends(prompt, event, None),
                (Some(prompt), Some("interrupted")) => {
                    let why = "the process of the session, or its host, ended in the middle of the turn; the session goes on with the next prompt";
                    self.ends(prompt, event, Some(why))
                }
                (Some(prompt), Some("not_begun")) => {
                    let why = "the session was archived before the prompt was begun";
                    self.ends(prompt, event, Some(why))
                }
                _ => Vec::new(),
            },
            "prompt_failed" => {
                self.failure.clone_from(&status.error);
                Vec::new()
            }
            "start_failed" | "resume_failed" | "workspace_failed" | "turn_not_admitted" => {
                let why = status.error.as_deref().unwrap_or("the host does not say why");
                self.not_begun(why, event)
            }
            "budget_exhausted" => {
                vec![self.notice("The budget of the host is exhausted; prompts wait", event)]
            }
            "memory_limit" if status.action.as_deref() == Some("killed") => {
                vec![self.notice(
                    "The process of the session had more memory than it may have, and was ended",
                    event,
                )]
            }
            "frames_lost" => vec![self.notice("The host lost a part of what the CLI said", event)],
            _ => Vec::new(),
        }
    }

    fn begins(&mut self, prompt: &str, event: &str) -> Vec<String> {
        (self.running, self.failure) = (Some(prompt.to_owned()), None);
        (self.has_result, self.is_deferred) = (false, false);
        let mut lines = Vec::from_iter(self.completed.take());
        if let Some(at) = self.waiting.iter().position(|(id, _)| id == prompt) {
            lines.extend(self.waiting.remove(at).map(|(_, line)| line));
        }
        if self.tells_beginnings {
            let frame = json!({
                "type": "command_lifecycle", "command_uuid": prompt, "state": "started", "uuid": event, "session_id": self.session,
            });
            lines.push(frame.to_string());
        }
        lines
    }

    fn ends(&mut self, prompt: &str, event: &str, why: Option<&str>) -> Vec<String> {
        self.own.remove(prompt);
        self.waiting.retain(|(id, _)| id != prompt);
        let failure = self.failure.take();
        let was_running = self.is_running(prompt);
        let mut lines = Vec::new();
        if was_running {
            self.running = None;
            lines.extend(self.completed.take());
        }
        // A result has said it already.
        match failure.as_deref().or(why) {
            Some(why) if !(was_running && self.has_result) => lines.push(self.ended(prompt, event, why)),
            _ => {}
        }
        lines
    }

    /// No process got the prompts that wait. The host keeps them for the next try.
    fn not_begun(&mut self, why: &str, event: &str) -> Vec<String> {
        let own = std::mem::take(&mut self.own);
        if own.is_empty() {
            let text = format!("The session could not begin its turn\n{why}");
            return vec![self.notice(&text, event)];
        }
        let why = format!("{why}; the host keeps the prompt, and tries again with the next one");
        let ended = own.iter().enumerate();
        ended
            .map(|(number, prompt)| self.ended(prompt, &format!("{event}-{number}"), &why))
            .collect()
    }

    /// The end of a turn, as a CLI says it.
    fn ended(&self, prompt: &str, uuid: &str, why: &str) -> String {
        json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "errors": [why], "duration_ms": 0,
            "duration_api_ms": 0, "num_turns": 0, "stop_reason": null, "total_cost_usd": self.cost, "usage": {"input_tokens": 0,
            "output_tokens": 0}, "modelUsage": self.models, "permission_denials": [], "uuid": uuid, "session_id": self.session,
            "user_message_uuids": [prompt],
        })
        .to_string()
    }

    /// Something that the user should know; the first line is its title.
    pub(super) fn notice(&self, text: &str, uuid: &str) -> String {
        self.informational(text, "warning", uuid)
    }

    pub(super) fn informational(&self, text: &str, level: &str, uuid: &str) -> String {
        json!({
            "type": "system", "subtype": "informational", "content": text, "level": level, "uuid": uuid, "session_id": self.session,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests;
