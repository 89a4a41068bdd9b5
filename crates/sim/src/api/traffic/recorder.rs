//! Writes traffic to a file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::http::HeaderMap;
use outrigger_protocol::RawJson;
use serde_json::Value;

use super::asked::Asked;
use super::recording::{Answer, Ended, Exchange, Header, StreamEvent};
use super::redact::Redaction;
use crate::api::ndjson::Appender;
use crate::api::request::{ApiRequest, Route};

/// Writes the exchanges with an upstream API to a file, without secrets and without the CLI's own prompts.
///
/// Each exchange is written when it has ended, as one line, so that a crash loses at most those that are in progress.
///
/// Only requests for messages, token counts, models and greetings are written; others may be about the
/// account. No request headers are kept, and only those response headers that the CLI uses.
#[derive(Debug, Clone)]
pub struct Recorder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: Appender,
    redaction: Redaction,
    started: Instant,
    count: AtomicU64,
    names: Mutex<Names>,
}

/// What sessions and subagents are called in the file, and where sessions take place.
#[derive(Debug, Default)]
struct Names {
    sessions: HashMap<String, String>,
    agents: HashMap<String, String>,
    places: HashMap<String, String>,
}

/// Response headers that are kept: those that steer the CLI. The others are about the account, or about the way.
const KEPT_HEADERS: &[&str] = &["content-type", "retry-after", "retry-after-ms", "x-should-retry"];
const KEPT_PREFIX: &str = "anthropic-ratelimit-";

/// The longest body that is kept. A longer one is recorded as cut there.
const LONGEST_ANSWER: usize = 64 << 20;

impl Recorder {
    /// Writes to this file, which must not exist yet.
    ///
    /// # Errors
    /// When it exists, or cannot be written.
    pub fn create(path: impl AsRef<Path>, redaction: Redaction) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Self::start(file, redaction))
    }

    /// Writes to this file, replacing its contents.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace(path: impl AsRef<Path>, redaction: Redaction) -> io::Result<Self> {
        Ok(Self::start(File::create(path)?, redaction))
    }

    fn start(file: File, redaction: Redaction) -> Self {
        let file = Appender::new(file);
        file.write(&Header::current());
        Self(Arc::new(Inner {
            file,
            redaction,
            started: Instant::now(),
            count: AtomicU64::new(0),
            names: Mutex::default(),
        }))
    }

    /// Why exchanges are missing in the file, if any are.
    pub fn failed(&self) -> Option<String> {
        self.0.file.failed()
    }

    /// Begins an exchange; `None` if it is not recorded.
    pub(in crate::api) fn begin(&self, request: &ApiRequest, headers: &HeaderMap) -> Option<Tape> {
        if request.route() == Route::Other {
            return None;
        }
        let mut redaction = self.0.redaction.clone();
        for name in ["x-api-key", "authorization", "proxy-authorization", "cookie"] {
            for value in headers.get_all(name) {
                let value = value.to_str().unwrap_or_default();
                let bare = value.strip_prefix("Bearer ").unwrap_or(value);
                // Words like `dummy` are no secret, and would be found everywhere.
                if bare.len() >= 12 {
                    redaction = redaction.secret(bare);
                }
            }
        }
        let (session, agent, directory) = self.0.names(request);
        if let Some(directory) = directory {
            redaction = redaction.working_directory(&directory);
        }
        Some(Tape {
            exchange: Some(Exchange {
                number: self.0.count.fetch_add(1, Ordering::Relaxed) + 1,
                at_ms: millis(self.0.started),
                method: request.method.clone(),
                path: request.path.split('?').next().unwrap_or_default().to_owned(),
                session,
                agent,
                asked: Asked::of(request, &redaction),
                answer: None,
                ended: Ended::ClientGone,
            }),
            recorder: self.clone(),
            redaction,
            began: Instant::now(),
            streamed: false,
            bytes: Vec::new(),
            taken: 0,
        })
    }
}

impl Inner {
    /// The names of its session and subagent, and the directory where the session takes place.
    fn names(&self, request: &ApiRequest) -> (Option<String>, Option<String>, Option<String>) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let named = |known: &mut HashMap<String, String>, id: Option<&str>, letter: char| {
            let next = known.len() + 1;
            id.map(|id| {
                known
                    .entry(id.to_owned())
                    .or_insert_with(|| format!("{letter}{next}"))
                    .clone()
            })
        };
        let session = named(&mut names.sessions, request.session_id(), 's');
        let agent = named(&mut names.agents, request.agent_id(), 'a');
        let of = session.clone().unwrap_or_default();
        if let Some(directory) = request.working_directory() {
            names.places.insert(of.clone(), directory);
        }
        let directory = names.places.get(&of).cloned();
        (session, agent, directory)
    }
}

/// The recording of one exchange. Dropping it writes it, as one whose client went away unless it
/// ended before.
#[derive(Debug)]
pub(in crate::api) struct Tape {
    /// Taken when it is written.
    exchange: Option<Exchange>,
    recorder: Recorder,
    redaction: Redaction,
    /// When the request came, and then when the answer began.
    began: Instant,
    streamed: bool,
    /// What came and is no complete event yet; all of the body if it is no stream.
    bytes: Vec<u8>,
    taken: usize,
}

impl Tape {
    /// The head of the answer.
    pub(in crate::api) fn head(&mut self, status: u16, headers: &HeaderMap) {
        let kept = headers.iter().filter(|(name, _)| {
            KEPT_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(KEPT_PREFIX)
        });
        let headers = kept.map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), self.redaction.text(&value))
        });
        let answer = Answer {
            after_ms: millis(self.began),
            status,
            headers: headers.collect(),
            ..Answer::default()
        };
        self.streamed = answer
            .headers
            .get("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        if let Some(exchange) = &mut self.exchange {
            exchange.answer = Some(answer);
        }
        self.began = Instant::now();
    }

    /// A piece of the body.
    pub(in crate::api) fn feed(&mut self, bytes: &[u8]) {
        if self.taken > LONGEST_ANSWER {
            return;
        }
        self.taken += bytes.len();
        self.bytes.extend_from_slice(bytes);
        if !self.streamed {
            return;
        }
        while let Some((event, length)) = first_event(&self.bytes) {
            let event = read_event(&String::from_utf8_lossy(event), millis(self.began));
            self.push(event);
            self.bytes.drain(..length);
        }
    }

    /// Records how the exchange ended.
    pub(in crate::api) fn end(mut self, ended: Ended) {
        if let Some(exchange) = &mut self.exchange {
            exchange.ended = ended;
        }
    }

    /// Nothing of it is to be written.
    pub(in crate::api) fn discard(mut self) {
        self.exchange = None;
    }

    fn push(&mut self, event: StreamEvent) {
        if let Some(answer) = self
            .exchange
            .as_mut()
            .and_then(|exchange| exchange.answer.as_mut())
        {
            answer.events.push(event);
        }
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        let rest = std::mem::take(&mut self.bytes);
        if self.streamed && !rest.is_empty() {
            let raw = String::from_utf8_lossy(&rest).into_owned();
            let ms = millis(self.began);
            self.push(StreamEvent {
                ms,
                raw: Some(raw),
                ..StreamEvent::default()
            });
        }
        let Some(mut exchange) = self.exchange.take() else {
            return;
        };
        if self.taken > LONGEST_ANSWER && exchange.ended == Ended::Whole {
            exchange.ended = Ended::Cut;
        }
        if let Some(answer) = &mut exchange.answer {
            if !self.streamed && !rest.is_empty() {
                set_body(answer, &rest, &self.redaction);
            }
            clean(&mut answer.events, &self.redaction);
        }
        self.recorder.0.file.write(&exchange);
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The first event of a stream's bytes, and how long it is with the blank line behind it.
fn first_event(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let ends: [&[u8]; 2] = [b"\n\n", b"\r\n\r\n"];
    let ends = ends.into_iter().filter_map(|end| {
        let at = bytes.windows(end.len()).position(|window| window == end)?;
        Some((at, at + end.len()))
    });
    let (at, length) = ends.min()?;
    Some((&bytes[..at], length))
}

/// An event of a name and JSON data, or anything else as it is.
fn read_event(text: &str, ms: u64) -> StreamEvent {
    let raw = || StreamEvent {
        ms,
        raw: Some(format!("{text}\n\n")),
        ..StreamEvent::default()
    };
    let mut lines = text.lines();
    let name = lines.next().and_then(|line| line.strip_prefix("event: "));
    let data = lines.next().and_then(|line| line.strip_prefix("data: "));
    match (name, data.map(RawJson::from_text), lines.next()) {
        (Some(name), Some(Ok(data)), None) => StreamEvent {
            ms,
            event: Some(name.to_owned()),
            data: Some(data),
            raw: None,
        },
        _ => raw(),
    }
}

fn set_body(answer: &mut Answer, body: &[u8], redaction: &Redaction) {
    match serde_json::from_slice::<Value>(body) {
        Ok(mut value) => {
            redaction.value(&mut value);
            // The texts of errors name organizations and their people.
            if answer.status >= 400 {
                anonymize(&mut value);
            }
            answer.json = Some(RawJson::from(value));
        }
        Err(_) => answer.text = Some(redaction.text(&String::from_utf8_lossy(body))),
    }
}

fn anonymize(value: &mut Value) {
    static WHO: std::sync::LazyLock<Option<regex_lite::Regex>> = std::sync::LazyLock::new(|| {
        let id = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
        regex_lite::Regex::new(&format!(r"{id}|\borg_[A-Za-z0-9]+|[\w.+-]+@[\w-]+\.[\w.-]+")).ok()
    });
    if let Some(fields) = value.as_object_mut() {
        fields.remove("request_id");
    }
    if let Some(text) = value.pointer_mut("/error/message")
        && let Some(message) = text.as_str()
        && let Some(who) = &*WHO
    {
        *text = who.replace_all(message, "<account>").into_owned().into();
    }
}

/// Redacts the events. The text of a block is redacted as a whole.
fn clean(events: &mut [StreamEvent], redaction: &Redaction) {
    /// The fields of a delta that come in pieces.
    const PIECES: [&str; 3] = ["text", "thinking", "partial_json"];
    let mut values: Vec<Option<Value>> = events
        .iter()
        .map(|event| serde_json::from_str(event.data.as_ref()?.get()).ok())
        .collect();
    // The original pieces: a replacement in one piece would hide a secret that continues in the next.
    let mut blocks: HashMap<(u64, &str), Vec<(usize, String)>> = HashMap::new();
    for (place, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let index = value["index"].as_u64().unwrap_or_default();
        for field in PIECES {
            if let Some(piece) = value["delta"][field].as_str() {
                let block = blocks.entry((index, field)).or_default();
                block.push((place, piece.to_owned()));
            }
        }
    }
    for value in values.iter_mut().flatten() {
        redaction.value(value);
        if value["type"] == "error" {
            anonymize(value);
        }
    }
    for ((_, field), pieces) in blocks {
        let texts: Vec<&str> = pieces.iter().map(|(_, piece)| piece.as_str()).collect();
        for ((place, _), piece) in pieces.iter().zip(redaction.pieces(&texts)) {
            if let Some(value) = &mut values[*place] {
                value["delta"][field] = piece.into();
            }
        }
    }
    for (event, value) in events.iter_mut().zip(values) {
        if let Some(raw) = &mut event.raw {
            *raw = redaction.text(raw);
        }
        match (&event.data, value) {
            (Some(data), Some(value)) => {
                let same = serde_json::from_str::<Value>(data.get()).is_ok_and(|before| before == value);
                // Otherwise the data stays as it came, letter by letter.
                if !same {
                    event.data = Some(RawJson::from(value));
                }
            }
            // Data that no value can hold, such as lone surrogates.
            (Some(data), None) => {
                if let Ok(clean) = RawJson::from_text(redaction.text(data.get())) {
                    event.data = Some(clean);
                }
            }
            (None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_wherever_the_bytes_are_cut() {
        let text = "event: a\ndata: {\"x\":1}\n\nevent: b\r\ndata: {\"y\":2}\r\n\r\ndata: no\n\nrest";
        for size in 1..text.len() {
            let mut bytes = Vec::new();
            let mut events = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                bytes.extend_from_slice(piece);
                while let Some((event, length)) = first_event(&bytes) {
                    events.push(read_event(&String::from_utf8_lossy(event), 0));
                    bytes.drain(..length);
                }
            }
            assert_eq!(bytes, b"rest");
            let names: Vec<_> = events.iter().map(|event| event.event.as_deref()).collect();
            assert_eq!(names, [Some("a"), Some("b"), None], "{size}");
            assert_eq!(events[2].raw.as_deref(), Some("data: no\n\n"));
        }
    }

    #[test]
    fn secrets_that_a_stream_cuts_in_two_are_found() {
        let delta = |text: &str| StreamEvent {
            event: Some("content_block_delta".to_owned()),
            data: Some(RawJson::from(
                serde_json::json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
            )),
            ..StreamEvent::default()
        };
        let mut events = [
            delta("the key is sk-a"),
            delta("nt-api03-abcdefgh"),
            delta("ijkl, there"),
        ];
        let untouched = StreamEvent {
            data: Some(RawJson::from_text(r#"{"z" : 1}"#).unwrap()),
            ..StreamEvent::default()
        };
        let mut all = events.to_vec();
        all.push(untouched.clone());
        clean(&mut all, &Redaction::new());
        let texts: Vec<String> = all[..3]
            .iter()
            .map(|event| {
                event.data.as_ref().unwrap().to_value().unwrap()["delta"]["text"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(texts, ["the key is <redacted>", "", ", there"]);
        assert_eq!(all[3].data.as_ref().unwrap().get(), r#"{"z" : 1}"#);
        events[0] = delta("clean");
        clean(&mut events[..1], &Redaction::new());
        assert_eq!(events[0], delta("clean"));
    }
}
