//! How well the types here fit what was really said: the judge behind `outrigger protocol check`.
//!
//! Pure: hand it the frames of a conversation in their order, it hands back what it thinks of each, and a report. A frame that
//! the CLI wrote is fully typed when
//! * it decodes, and nothing in it is of an unknown kind or a misfit ([`drift`](crate::drift)),
//! * each of its fields, at any depth, is there and equal when the typed value is written again,
//! * its bytes give the same JSON again (the lossless law).
//!
//! The payload of a control response is judged by the request that it answers, so both directions are needed to judge those.

mod compare;
mod recording;
mod report;

pub use recording::{Recorded, recorded};
pub use report::{KindReport, Report};

use std::collections::{HashMap, VecDeque};
use std::fmt;

use serde::Serialize;

use crate::drift::{self, Drift, DriftKind};
use crate::frame::Frame;
use crate::inbound::{ControlResult, InboundRequest, Message, SystemMessage};
use crate::json::RawJson;

/// Who wrote a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The CLI, on its stdout.
    Out,
    /// The client, on the CLI's stdin.
    In,
    /// Not known: taken for the CLI's if it is of a kind that the CLI writes, else for the client's.
    Unknown,
}

/// What was made of one frame.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Verdict {
    /// Who wrote it; never unknown.
    pub direction: Direction,
    /// Its `type`; empty if it has none.
    pub kind: String,
    /// Its `subtype`, if it has one.
    pub subtype: Option<String>,
    /// Of a control response: the subtype of the request that it answers, if that was seen.
    pub answers: Option<String>,
    /// What was found in it; nothing, or only unlisted values, for a frame that is fully typed and lossless.
    pub findings: Vec<Finding>,
}

/// One thing that was found in a frame.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Finding {
    /// It is no frame, or a known kind in a shape that its type does not take; the reason.
    Undecodable(String),
    /// Something in it, told apart by a tag, that no type here is for.
    Unknown(String),
    /// A field that its type does not have, as a dotted path.
    Unmodelled(String),
    /// Written again, something is different.
    Altered(String),
    /// A value of an open set that the set does not list. It is kept, its field is typed, so this is worth telling and no flaw.
    Unlisted(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecodable(reason) => write!(f, "does not decode: {reason}"),
            Self::Unknown(what) | Self::Unlisted(what) => f.write_str(what),
            Self::Unmodelled(path) => write!(f, "field without a type: {path}"),
            Self::Altered(what) => write!(f, "changed by the round trip: {what}"),
        }
    }
}

impl Verdict {
    /// Whether the frame is fully typed and lossless.
    pub fn is_clean(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| matches!(finding, Finding::Unlisted(_)))
    }

    /// Whether this counts as a failure: what the CLI wrote has to be clean, what a client wrote only lossless, because clients
    /// may write what they like.
    pub fn is_failure(&self) -> bool {
        match self.direction {
            Direction::Out => !self.is_clean(),
            Direction::In | Direction::Unknown => self
                .findings
                .iter()
                .any(|finding| matches!(finding, Finding::Altered(_))),
        }
    }
}

/// Judges the frames of conversations.
///
/// One checker may see several conversations one after the other; call [`conversation`](Self::conversation) between them,
/// because request ids repeat.
#[derive(Debug, Default)]
pub struct Checker {
    report: Report,
    /// Subtypes of the requests seen, by the side that asked and the id. An id may be used again, hence the queue.
    asked: HashMap<(Direction, String), VecDeque<String>>,
}

impl Checker {
    /// Makes one that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the open requests: another conversation begins.
    pub fn conversation(&mut self) {
        self.asked.clear();
    }

    /// What was found so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Judges one line, without its line ending. Gives one verdict for each frame on it.
    pub fn line(&mut self, direction: Direction, line: &[u8]) -> Vec<Verdict> {
        let frames = Frame::from_line(line);
        let whole = frames.len() == 1 && frames[0].bytes() != line.trim_ascii_end();
        let mut verdicts: Vec<Verdict> = frames.iter().map(|frame| self.frame(direction, frame)).collect();
        if let (true, [verdict]) = (whole && frames[0].flaw().is_none(), verdicts.as_mut_slice()) {
            verdict
                .findings
                .push(Finding::Altered("the frame is not the whole line".to_owned()));
        }
        for verdict in &verdicts {
            self.report.count(verdict);
        }
        verdicts
    }

    /// Counts a line that was recorded as text and not as a frame. Such lines of a client were written to provoke the CLI: they
    /// are listed and not judged.
    pub fn raw_text(&mut self, direction: Direction, text: &str) -> Vec<Verdict> {
        match direction {
            Direction::In => {
                self.report.raw_lines += 1;
                Vec::new()
            }
            Direction::Out | Direction::Unknown => self.line(direction, text.as_bytes()),
        }
    }

    fn frame(&mut self, direction: Direction, frame: &Frame) -> Verdict {
        let direction = self.writer(direction, frame);
        let mut verdict = Verdict {
            direction,
            kind: frame.kind().to_owned(),
            subtype: frame.subtype().map(str::to_owned),
            answers: None,
            findings: Vec::new(),
        };
        if let Some(flaw) = frame.flaw() {
            verdict.findings.push(Finding::Undecodable(flaw.to_string()));
            return verdict;
        }
        // The CLI answers requests without an id, too.
        let id = frame.request_id().unwrap_or_default();
        match frame.kind() {
            "control_request" => {
                let open = self.asked.entry((direction, id.to_owned())).or_default();
                open.push_back(frame.subtype().unwrap_or_default().to_owned());
            }
            "control_response" => verdict.answers = self.answered(direction, id),
            _ => {}
        }
        let findings = match direction {
            Direction::Out => outbound_of_cli(frame, verdict.answers.as_deref()),
            Direction::In | Direction::Unknown => inbound_of_cli(frame, verdict.answers.as_deref()),
        };
        verdict.findings = findings;
        verdict.findings.extend(lossless(frame));
        verdict.findings.sort();
        verdict.findings.dedup();
        verdict
    }

    /// The subtype of the request with that id, which the other side asked; or, of an echo, the same side.
    fn answered(&mut self, direction: Direction, id: &str) -> Option<String> {
        let (own, other) = match direction {
            Direction::Out => (Direction::Out, Direction::In),
            Direction::In | Direction::Unknown => (Direction::In, Direction::Out),
        };
        for asker in [other, own] {
            if let Some(open) = self.asked.get_mut(&(asker, id.to_owned())) {
                // The last one stays, for the echo of its answer.
                return if open.len() > 1 {
                    open.pop_front()
                } else {
                    open.front().cloned()
                };
            }
        }
        None
    }

    fn writer(&self, direction: Direction, frame: &Frame) -> Direction {
        if direction != Direction::Unknown {
            return direction;
        }
        let subtype = frame.subtype().unwrap_or_default();
        let by_cli = match frame.kind() {
            "control_request" => InboundRequest::KNOWN.contains(&subtype),
            "control_response" => {
                let id = frame.request_id().unwrap_or_default().to_owned();
                !self.asked.contains_key(&(Direction::Out, id))
            }
            "system" => SystemMessage::KNOWN.contains(&subtype),
            kind => Message::KNOWN.contains(&kind) || frame.flaw().is_some(),
        };
        if by_cli { Direction::Out } else { Direction::In }
    }
}

/// Judges the types of a frame that the CLI wrote.
fn outbound_of_cli(frame: &Frame, answers: Option<&str>) -> Vec<Finding> {
    let (decoded, drifts) = drift::watch(|| frame.decode());
    let mut findings: Vec<Finding> = drifts.iter().map(told).collect();
    let message = match decoded {
        Ok(message) => message,
        Err(misfit) => {
            findings.push(Finding::Undecodable(misfit.reason));
            return findings;
        }
    };
    match message.to_body() {
        Ok(body) => findings.extend(compare::compare(&frame.text(), body.get(), &["type"])),
        Err(error) => findings.push(Finding::Altered(error.to_string())),
    }
    if let Message::ControlResponse(response) = &message
        && let ControlResult::Success(success) = &response.response
        && let Some(payload) = &success.response
    {
        findings.extend(reply(answers, payload));
    }
    findings
}

/// Judges the types of a frame that a client wrote.
fn inbound_of_cli(_frame: &Frame, _answers: Option<&str>) -> Vec<Finding> {
    Vec::new()
}

/// Judges what a control response gives back.
fn reply(_answers: Option<&str>, _payload: &RawJson) -> Vec<Finding> {
    Vec::new()
}

/// The lossless law: the frame's bytes are JSON, and read and written again they give the same JSON.
fn lossless(frame: &Frame) -> Vec<Finding> {
    let text = frame.text();
    let again = RawJson::from_text(&*text).and_then(|raw| RawJson::encode(&raw));
    match again {
        Ok(again) => compare::compare(&text, again.get(), &[])
            .into_iter()
            .map(|finding| match finding {
                Finding::Unmodelled(path) => Finding::Altered(format!("{path} is lost")),
                other => other,
            })
            .collect(),
        Err(error) => vec![Finding::Altered(format!("the frame is no JSON value: {error}"))],
    }
}

fn told(drift: &Drift) -> Finding {
    match &drift.kind {
        DriftKind::Misfit(_) => Finding::Undecodable(drift.to_string()),
        DriftKind::UnknownTag => Finding::Unknown(drift.to_string()),
        DriftKind::UnknownValue => Finding::Unlisted(drift.to_string()),
    }
}

#[cfg(test)]
mod tests;
