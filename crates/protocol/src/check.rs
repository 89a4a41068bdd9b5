//! How well the types fit recorded frames: the judge behind `outrigger protocol check`.
//!
//! It does no I/O: it takes the frames of a conversation in order, and returns a verdict on each, and a report. A frame that
//! the CLI wrote is fully typed when
//! * it decodes, and nothing in it is of an unknown kind, a misfit, or a value that an open set does not list ([`drift`]),
//! * each of its fields, at any depth, is there and equal when the typed value is written again,
//! * its bytes give the same JSON again (the lossless law).
//!
//! The payload of a control response is judged by the request that it answers, so both directions are needed to judge those.

// The functions that read and write every type are `#[inline]`, so that only programs that judge compile them.

mod calls;
mod compare;
mod mcp;
mod recording;
mod report;

#[doc(hidden)]
pub use compare::compare;
pub use recording::{Recorded, recorded};
pub use report::{KindReport, Report};

use std::collections::{HashMap, VecDeque};
use std::fmt;

use serde::Serialize;

use crate::RawJson;
use crate::drift::{self, Drift, DriftKind};
use crate::frame::Frame;
use crate::framer::Framed;
use crate::inbound::{ControlResult, InboundRequest, Message};
use crate::outbound::{
    ControlAnswer, McpCallReply, OutboundLine, OutboundRequest, check_answer, check_reply,
};

/// Runs `encode` such that the types of this crate write each of their fields, unset ones as null, so that one can see which there
/// are.
pub fn with_every_field<R>(encode: impl FnOnce() -> R) -> R {
    crate::whole::write(encode)
}

/// Who wrote a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The CLI, on its stdout.
    Out,
    /// The client, on the CLI's stdin.
    In,
    /// Not known: taken for the client's if it is of a kind that only clients write, or answers what the CLI asked; else for the
    /// CLI's.
    Unknown,
}

/// What was made of one frame.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Verdict {
    /// Who wrote it; never unknown.
    pub direction: Direction,
    /// The frame's `type`; empty if it has none.
    pub kind: String,
    /// The frame's `subtype`, if it has one.
    pub subtype: Option<String>,
    /// Of a control response: the subtype of the request that it answers, if that was seen.
    pub answers: Option<String>,
    /// What was found in it; nothing for a frame that is fully typed and lossless.
    pub findings: Vec<FrameFinding>,
}

/// One thing that was found in a frame.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FrameFinding {
    /// It is no frame, or a known kind in a shape that its type does not take; the reason.
    Undecodable(String),
    /// Something in it, told apart by a tag, that no type here is for.
    Unknown(String),
    /// A field that its type does not have, as a dotted path.
    Unmodelled(String),
    /// The typed value, written again, has something different.
    Altered(String),
    /// The frame itself, read and written again, is different: the lossless law is broken.
    Lost(String),
    /// A value of an open set that the set does not list. It is kept, but has no name in its type.
    Unlisted(String),
}

impl fmt::Display for FrameFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecodable(reason) => write!(f, "does not decode: {reason}"),
            Self::Unknown(what) | Self::Unlisted(what) => f.write_str(what),
            Self::Unmodelled(path) => write!(f, "field without a type: {path}"),
            Self::Altered(what) => write!(f, "different when typed: {what}"),
            Self::Lost(what) => write!(f, "lost: {what}"),
        }
    }
}

impl Verdict {
    /// Whether the frame is fully typed and lossless.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether this counts as a failure: what the CLI wrote has to be clean, what a client wrote only lossless, because clients
    /// may write what they like.
    pub fn is_failure(&self) -> bool {
        match self.direction {
            Direction::Out => !self.is_clean(),
            Direction::In | Direction::Unknown => self
                .findings
                .iter()
                .any(|finding| matches!(finding, FrameFinding::Lost(_))),
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
    /// The requests in `asked`, oldest first.
    order: VecDeque<(Direction, String)>,
    calls: calls::Calls,
}

/// How many requests of a conversation are remembered; of older ones the answers are judged without their payload.
const REQUESTS_KEPT: usize = 65_536;

impl Checker {
    /// Makes one that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the open requests: another conversation begins.
    pub fn conversation(&mut self) {
        self.asked.clear();
        self.order.clear();
        self.calls = calls::Calls::default();
    }

    /// What was found so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Judges one line, without its line ending. Gives one verdict for each frame on it.
    #[inline]
    pub fn line(&mut self, direction: Direction, line: &[u8]) -> Vec<Verdict> {
        self.framed(direction, Framed::Line(line.into()))
    }

    /// Judges what a [`LineFramer`](crate::framer::LineFramer) found: a line, or one that is too long to be read.
    #[inline]
    pub fn framed(&mut self, direction: Direction, framed: Framed) -> Vec<Verdict> {
        let frames = Frame::read(framed);
        let mut verdicts: Vec<Verdict> = frames.iter().map(|frame| self.frame(direction, frame)).collect();
        if let ([frame], [verdict]) = (frames.as_slice(), verdicts.as_mut_slice())
            && frame.flaw().is_none()
            && frame.bytes() != frame.line().trim_ascii_end()
        {
            let finding = FrameFinding::Lost("the frame is not the whole line".to_owned());
            verdict.findings.push(finding);
        }
        for verdict in &verdicts {
            self.report.count(verdict);
        }
        verdicts
    }

    /// Counts a line that was recorded as text and not as a frame. Such lines of a client were written to provoke the CLI: they
    /// are listed and not judged.
    #[inline]
    pub fn raw_text(&mut self, direction: Direction, text: &str) -> Vec<Verdict> {
        match direction {
            Direction::In => {
                self.report.raw_lines += 1;
                Vec::new()
            }
            Direction::Out | Direction::Unknown => self.line(direction, text.as_bytes()),
        }
    }

    #[inline]
    fn frame(&mut self, direction: Direction, frame: &Frame) -> Verdict {
        let direction = self.writer(direction, frame);
        let mut verdict = Verdict {
            direction,
            kind: frame.kind().to_owned(),
            subtype: frame.subtype().map(str::to_owned),
            answers: None,
            findings: Vec::new(),
        };
        if let Err(error) = std::str::from_utf8(frame.bytes()) {
            let at = error.valid_up_to();
            verdict
                .findings
                .push(FrameFinding::Lost(format!("not UTF-8 at byte {at}")));
        }
        if let Some(flaw) = frame.flaw() {
            verdict.findings.push(FrameFinding::Undecodable(flaw.to_string()));
            return verdict;
        }
        let (found, payload) = match direction {
            Direction::Out => written_by_cli(frame),
            Direction::In | Direction::Unknown => written_by_client(frame),
        };
        verdict.findings.extend(found);
        match direction {
            Direction::Out => verdict.findings.extend(self.calls.judge(frame)),
            Direction::In | Direction::Unknown => self.calls.learn(frame),
        }
        // The CLI answers requests without an id, too.
        let id = frame.request_id().unwrap_or_default();
        match frame.kind() {
            "control_request" => self.remember(direction, id, frame.subtype().unwrap_or_default()),
            "control_response" => {
                let asked = self.answered(direction, id);
                verdict.answers = asked.as_ref().map(|(_, subtype)| subtype.clone());
                if let (Some((asker, subtype)), Some(payload)) = (asked, payload) {
                    verdict.findings.extend(answer(asker, &subtype, &payload));
                }
            }
            _ => {}
        }
        verdict.findings.extend(lossless(frame));
        verdict.findings.sort();
        verdict.findings.dedup();
        verdict
    }

    fn remember(&mut self, direction: Direction, id: &str, subtype: &str) {
        if self.order.len() == REQUESTS_KEPT
            && let Some(oldest) = self.order.pop_front()
            && let Some(open) = self.asked.get_mut(&oldest)
        {
            open.pop_front();
            if open.is_empty() {
                self.asked.remove(&oldest);
            }
        }
        let key = (direction, id.to_owned());
        self.order.push_back(key.clone());
        self.asked.entry(key).or_default().push_back(subtype.to_owned());
    }

    /// Who asked the request with that id, and its subtype: the other side; or, for an echo, the same side.
    fn answered(&mut self, direction: Direction, id: &str) -> Option<(Direction, String)> {
        let (own, other) = match direction {
            Direction::Out => (Direction::Out, Direction::In),
            Direction::In | Direction::Unknown => (Direction::In, Direction::Out),
        };
        for asker in [other, own] {
            if let Some(open) = self.asked.get_mut(&(asker, id.to_owned())) {
                // The last one stays, for the echo of its answer.
                let subtype = if open.len() > 1 {
                    open.pop_front()
                } else {
                    open.front().cloned()
                };
                return subtype.map(|subtype| (asker, subtype));
            }
        }
        None
    }

    fn writer(&self, direction: Direction, frame: &Frame) -> Direction {
        if direction != Direction::Unknown {
            return direction;
        }
        let subtype = frame.subtype().unwrap_or_default();
        let by_client = match frame.kind() {
            "control_request" => {
                OutboundRequest::KNOWN.contains(&subtype) && !InboundRequest::KNOWN.contains(&subtype)
            }
            "control_response" => {
                let id = frame.request_id().unwrap_or_default().to_owned();
                self.asked.contains_key(&(Direction::Out, id))
            }
            kind => OutboundLine::KNOWN.contains(&kind) && !Message::KNOWN.contains(&kind),
        };
        if by_client { Direction::In } else { Direction::Out }
    }
}

/// Judges a frame that the CLI wrote by its type. What a control response gives back is handed on, because only its request
/// tells the type of that.
#[inline]
fn written_by_cli(frame: &Frame) -> (Vec<FrameFinding>, Option<RawJson>) {
    let (decoded, drifts) = drift::watch(|| frame.decode());
    let mut findings: Vec<FrameFinding> = drifts.iter().map(finding).collect();
    let message = match decoded {
        Ok(message) => message,
        Err(misfit) => {
            findings.push(FrameFinding::Undecodable(misfit.reason));
            return (findings, None);
        }
    };
    match message.to_body() {
        Ok(body) => findings.extend(compare(&frame.text(), body.get(), &["type"])),
        Err(error) => findings.push(FrameFinding::Altered(error.to_string())),
    }
    let payload = match message {
        Message::ControlResponse(response) => match response.response {
            ControlResult::Success(success) => success.response,
            _ => None,
        },
        _ => None,
    };
    (findings, payload)
}

/// The same for a frame that a client wrote.
#[inline]
fn written_by_client(frame: &Frame) -> (Vec<FrameFinding>, Option<RawJson>) {
    let text = frame.text();
    let read = || RawJson::from_text(&*text).and_then(|raw| raw.read::<OutboundLine>());
    let (decoded, drifts) = drift::watch(read);
    let mut findings: Vec<FrameFinding> = drifts.iter().map(finding).collect();
    let line = match decoded {
        Ok(line) => line,
        Err(error) => {
            findings.push(FrameFinding::Undecodable(error.to_string()));
            return (findings, None);
        }
    };
    match crate::whole::write(|| RawJson::encode(&line)) {
        Ok(again) => findings.extend(compare(&text, again.get(), &[])),
        Err(error) => findings.push(FrameFinding::Altered(error.to_string())),
    }
    let payload = match line {
        OutboundLine::ControlResponse(response) => match response.response {
            ControlAnswer::Success(success) => success.response,
            _ => None,
        },
        _ => None,
    };
    (findings, payload)
}

/// Judges what a control response gives back by the request that it answers.
#[inline]
fn answer(asker: Direction, subtype: &str, payload: &RawJson) -> Vec<FrameFinding> {
    const PLACE: &str = "response.response";
    if payload.is_null() {
        return Vec::new();
    }
    let (again, drifts) = drift::watch(|| match asker {
        Direction::Out => check_answer(subtype, payload),
        Direction::In | Direction::Unknown => check_reply(subtype, payload),
    });
    let mut findings: Vec<FrameFinding> = drifts.iter().map(finding).collect();
    match again {
        None => findings.push(FrameFinding::Unknown(format!(
            "no type for what `{subtype}` gives back"
        ))),
        Some(Err(error)) => findings.push(FrameFinding::Undecodable(format!("{PLACE}: {error}"))),
        Some(Ok(again)) => {
            findings.extend(calls::written_again(PLACE, payload, Ok(again), &[]));
            if subtype == "mcp_call"
                && let Ok(reply) = payload.read::<McpCallReply>()
            {
                findings.extend(mcp::content("response.response.content", &reply.content));
            }
        }
    }
    findings
}

/// The lossless law: the frame's bytes are JSON, and read and written again they give the same JSON.
fn lossless(frame: &Frame) -> Vec<FrameFinding> {
    let text = frame.text();
    let again = RawJson::from_text(&*text).and_then(|raw| RawJson::encode(&raw));
    match again {
        Ok(again) => compare(&text, again.get(), &[])
            .into_iter()
            .map(|finding| match finding {
                FrameFinding::Unmodelled(what) | FrameFinding::Altered(what) => FrameFinding::Lost(what),
                other => other,
            })
            .collect(),
        Err(error) => vec![FrameFinding::Lost(format!("the frame is no JSON value: {error}"))],
    }
}

fn finding(drift: &Drift) -> FrameFinding {
    match &drift.kind {
        DriftKind::Misfit(_) => FrameFinding::Undecodable(drift.to_string()),
        DriftKind::UnknownValue => FrameFinding::Unlisted(drift.to_string()),
        _ => FrameFinding::Unknown(drift.to_string()),
    }
}
