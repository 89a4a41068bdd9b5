//! The contents of a cassette: a header, and frames with their times.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_protocol::RawJson;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::{Value, json};

use super::lines::to_bytes;
use super::places::home_of_somebody;
use super::redact::Redactor;
use crate::running::{self, Exit, kind};

/// The version of the format: the only one that there is.
pub const VERSION: u32 = 2;

/// The facts of a recording that are known from its beginning: the first line of its file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Header {
    /// The version of the format.
    #[serde(rename = "cassette")]
    pub version: u32,
    /// What recorded the cassette, with its version.
    pub recorder: String,
    /// The CLI's version, if it was known before the CLI was started. [`Cassette::cli_version`] also searches the CLI's frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cli_version: Option<String>,
    /// The CLI's command line, redacted.
    pub argv: Vec<String>,
    /// What of the environment matters: variables that the CLI itself reads and that are no secrets, redacted.
    pub env: BTreeMap<String, String>,
    /// The working directory: a placeholder.
    pub cwd: String,
    /// The operating system and the processor.
    pub platform: String,
}

/// A line of JSON, or one that was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A frame as it was written, but redacted.
    Frame(RawJson),
    /// A line that was no JSON. Characters from U+10FF80 on stand for bytes that are no UTF-8.
    Text(String),
}

impl Said {
    /// Reads a line. White space around a frame goes.
    pub fn of(line: &str) -> Self {
        match RawJson::from_text(line.trim()) {
            Ok(frame) => Self::Frame(frame),
            Err(_) => Self::Text(line.to_owned()),
        }
    }

    /// The line, without its end.
    pub fn text(&self) -> &str {
        match self {
            Self::Frame(frame) => frame.get(),
            Self::Text(text) => text,
        }
    }

    /// The line as it was, without its end, apart from what was redacted.
    pub fn bytes(&self) -> Vec<u8> {
        to_bytes(self.text())
    }

    /// As a value: text as a JSON string. Null for what is nested too deeply.
    pub fn value(&self) -> Value {
        match self {
            Self::Frame(frame) => frame.to_value().unwrap_or_default(),
            Self::Text(text) => Value::String(text.clone()),
        }
    }

    /// `type`, or `type/subtype`; see [`FileLine::kind`](crate::peer::Line::kind).
    pub fn kind(&self) -> String {
        match self {
            Self::Frame(_) => kind(&self.value()),
            Self::Text(_) => "text".to_owned(),
        }
    }

    pub(super) fn map(&self, change: impl FnOnce(&str) -> Option<String>) -> Self {
        match change(self.text()) {
            None => self.clone(),
            Some(changed) => match self {
                Self::Frame(frame) => {
                    RawJson::from_text(changed).map_or_else(|_| Self::Frame(frame.clone()), Self::Frame)
                }
                Self::Text(_) => Self::Text(changed),
            },
        }
    }
}

/// One recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, since the recording began; kept to a tenth of a millisecond.
    pub at: Duration,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// The client wrote a line.
    In(Said),
    /// The CLI wrote a line. The last one may have come without its end.
    Out(Said, LineEnd),
    /// The CLI wrote a line to stderr.
    Err(String),
    /// The client closed the CLI's input.
    StdinClosed,
    /// The CLI closed its output, or was gone.
    StdoutClosed,
    /// The client sent a signal, of this name.
    Signal(String),
    /// The CLI ended: with an exit code, or by a signal of this number.
    Exit {
        /// The exit code.
        code: Option<i32>,
        /// The signal.
        signal: Option<i32>,
    },
    /// A remark that this version knows nothing about.
    Note(RawJson),
}

/// Whether a line had an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEnd {
    /// The line had its end.
    #[default]
    There,
    /// The line was the last one, without an end.
    Missing,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct FileLine {
    t: f64,
    dir: String,
    msg: RawJson,
    /// Only present for a line without an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<bool>,
}

/// A line that was no frame.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine {
    raw: String,
}

/// A recorded session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Cassette {
    /// The facts known from the beginning.
    pub header: Header,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// The beginning of a last line that was not written to its end: the recorder was killed.
    pub torn: Option<String>,
}

/// Why a file is no cassette.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// The file cannot be read.
    #[error("cannot read the cassette {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// The first line of the file is no header.
    #[error(
        "no cassette: the first line has no header ({0}); cassettes are written by `outrigger record` and begin with \
         {{\"t\":0,\"dir\":\"meta\",\"msg\":{{\"cassette\":{VERSION},…}}}}"
    )]
    NoHeader(String),
    /// The file has another version of the format than this program.
    #[error("the cassette is of version {0} of the format, and this program reads version {VERSION}")]
    Version(u32),
    /// A line of the cassette makes no sense.
    #[error("line {line} of the cassette is damaged: {why}")]
    Damaged {
        /// Which line, from 1.
        line: usize,
        /// The reason.
        why: String,
    },
}

impl Cassette {
    /// Reads a file.
    ///
    /// # Errors
    /// When the file is no cassette, is of another version, or is damaged elsewhere than at its end. A last line that was cut off is no
    /// error but [`torn`](Self::torn).
    pub fn read(path: impl AsRef<Path>) -> Result<Self, CassetteError> {
        let path = path.as_ref();
        let text = std::fs::read(path).map_err(|error| CassetteError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    /// Reads the text of a file; see [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str) -> Result<Self, CassetteError> {
        let (whole, last) = match text.rsplit_once('\n') {
            Some((whole, last)) if !whole.trim().is_empty() => (whole, last),
            // A header without an end is one all the same, and what is none is not nothing.
            _ => (text, ""),
        };
        let mut lines = whole
            .split('\n')
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let header = match lines.next() {
            Some((_, first)) => header(first)?,
            None => return Err(CassetteError::NoHeader("the file is empty".to_owned())),
        };
        let mut events = Vec::new();
        for (number, line) in lines {
            let event = Event::parse(line);
            events.push(event.map_err(|why| CassetteError::Damaged {
                line: number + 1,
                why,
            })?);
        }
        let mut torn = None;
        if !last.trim().is_empty() {
            match Event::parse(last) {
                Ok(event) => events.push(event),
                Err(_) => torn = Some(last.to_owned()),
            }
        }
        Ok(Self { header, events, torn })
    }

    /// The whole file.
    pub fn to_text(&self) -> String {
        let mut text = self.header.line();
        for event in &self.events {
            text.push_str(&event.line());
        }
        text
    }

    /// Writes the file, replacing an existing one.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        std::fs::write(path, self.to_text())
    }

    /// The CLI's version: from the header, or from the CLI's frames.
    pub fn cli_version(&self) -> Option<String> {
        let said = || {
            self.out().find_map(|said| {
                let frame = said.value();
                let version = match frame["type"].as_str()? {
                    "system" => &frame["claude_code_version"],
                    _ => &frame["response"]["response"]["claude_code_version"],
                };
                version.as_str().map(str::to_owned)
            })
        };
        self.header.cli_version.clone().or_else(said)
    }

    /// The frames of the CLI.
    pub fn out(&self) -> impl Iterator<Item = &Said> {
        self.events.iter().filter_map(|event| match &event.what {
            What::Out(said, _) => Some(said),
            _ => None,
        })
    }

    /// The frames of the client.
    pub fn input(&self) -> impl Iterator<Item = &Said> {
        self.events.iter().filter_map(|event| match &event.what {
            What::In(said) => Some(said),
            _ => None,
        })
    }

    /// Secrets and home directories that should have been redacted, each with its line of the file.
    pub fn leaks(&self, redactor: &Redactor) -> Vec<(usize, String)> {
        let header = std::iter::once(self.header.line());
        let lines = header.chain(self.events.iter().map(Event::line));
        let mut leaks = Vec::new();
        for (number, line) in lines.enumerate() {
            let mut found = redactor.leaks_of_line(&line);
            found.extend(home_of_somebody(&line).map(|home| format!("a home directory: {home}")));
            leaks.extend(found.into_iter().map(|what| (number + 1, what)));
        }
        leaks
    }

    /// How the CLI ended; nothing if the recording ends before that.
    pub fn exit(&self) -> Option<(Option<i32>, Option<i32>)> {
        self.events.iter().rev().find_map(|event| match event.what {
            What::Exit { code, signal } => Some((code, signal)),
            _ => None,
        })
    }
}

/// What is wrong with a line, without the words of the parser.
fn flaw(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Eof => "its JSON ends too early".to_owned(),
        Category::Data => "a field of it is missing, or is something else".to_owned(),
        _ => format!("no JSON from column {} on", error.column()),
    }
}

fn header(line: &str) -> Result<Header, CassetteError> {
    let no = |error: serde_json::Error| CassetteError::NoHeader(flaw(&error));
    let line: FileLine = serde_json::from_str(line).map_err(no)?;
    #[derive(Deserialize)]
    struct Version {
        cassette: u32,
    }
    // The header of another version may have another shape, and only its version is sure.
    let version: Version = line.msg.decode().map_err(no)?;
    if version.cassette != VERSION {
        return Err(CassetteError::Version(version.cassette));
    }
    line.msg.decode().map_err(no)
}

impl Header {
    pub(super) fn line(&self) -> String {
        line("meta", Duration::ZERO, &json!(self).to_string(), LineEnd::There)
    }
}

impl From<Exit> for What {
    fn from(exit: Exit) -> Self {
        let (code, signal) = match exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        Self::Exit { code, signal }
    }
}

impl Event {
    /// A line of a report, as an event.
    pub fn of(line: &running::Line) -> Self {
        let said = match &line.json {
            Value::String(text) => Said::Text(text.clone()),
            json => Said::Frame(RawJson::from(json.clone())),
        };
        Self {
            at: line.at,
            what: match line.from_client {
                true => What::In(said),
                false => What::Out(said, LineEnd::There),
            },
        }
    }

    /// The line of a report that it is; `None` if nobody wrote a line.
    pub(crate) fn said(&self) -> Option<running::Line> {
        let (from_client, said) = match &self.what {
            What::In(said) => (true, said),
            What::Out(said, _) => (false, said),
            _ => return None,
        };
        let mut line = running::Line::new(from_client, said.value());
        line.at = self.at;
        Some(line)
    }

    /// The line of a cassette, with its end.
    pub fn line(&self) -> String {
        let meta = |json: Value| ("meta", json.to_string(), LineEnd::There);
        let raw = |text: &str| json!({ "raw": text }).to_string();
        let said = |said: &Said| match said {
            // A frame that looks like the record of a non-frame line must not be read as one.
            Said::Frame(frame) if frame.decode::<RawLine>().is_ok() => raw(frame.get()),
            Said::Frame(frame) => frame.get().to_owned(),
            Said::Text(text) => raw(text),
        };
        let (dir, msg, end) = match &self.what {
            What::In(line) => ("in", said(line), LineEnd::There),
            What::Out(line, end) => ("out", said(line), *end),
            What::Err(text) => ("err", raw(text), LineEnd::There),
            What::StdinClosed => meta(json!({"stdin": "closed"})),
            What::StdoutClosed => meta(json!({"stdout": "closed"})),
            What::Signal(name) => meta(json!({ "signal": name })),
            What::Exit { code, signal } => meta(json!({"exit_code": code, "exit_signal": signal})),
            What::Note(note) => ("meta", note.get().to_owned(), LineEnd::There),
        };
        line(dir, self.at, &msg, end)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        // Text frames inside are raw JSON: what serde_json could not hold does not matter here.
        let line: FileLine = serde_json::from_str(text).map_err(|error| flaw(&error))?;
        let raw = || line.msg.decode::<RawLine>().map(|raw| raw.raw);
        let said = || match raw() {
            Ok(text) => Said::of(&text),
            Err(_) => Said::Frame(line.msg.clone()),
        };
        let what = match line.dir.as_str() {
            "in" => What::In(said()),
            "out" if line.end == Some(false) => What::Out(said(), LineEnd::Missing),
            "out" => What::Out(said(), LineEnd::There),
            "err" => What::Err(raw().map_err(|error| format!("stderr: {}", flaw(&error)))?),
            "meta" => meta(&line.msg),
            other => return Err(format!("unknown direction {other:?}")),
        };
        if !(line.t.is_finite() && (0.0..1e9).contains(&line.t)) {
            return Err(format!("no time: {}", line.t));
        }
        Ok(Self {
            at: Duration::from_secs_f64(line.t),
            what,
        })
    }
}

fn meta(msg: &RawJson) -> What {
    let value = msg.to_value().unwrap_or_default();
    let number = |key: &str| value[key].as_i64().and_then(|number| i32::try_from(number).ok());
    if value["stdin"] == "closed" {
        What::StdinClosed
    } else if value["stdout"] == "closed" {
        What::StdoutClosed
    } else if let Some(name) = value["signal"].as_str() {
        What::Signal(name.to_owned())
    } else if value.get("exit_code").is_some() || value.get("exit_signal").is_some() {
        What::Exit {
            code: number("exit_code"),
            signal: number("exit_signal"),
        }
    } else {
        What::Note(msg.clone())
    }
}

fn line(dir: &str, at: Duration, msg: &str, end: LineEnd) -> String {
    let mut text = String::with_capacity(msg.len() + 48);
    let tenths = at.as_micros() / 100;
    let _ = write!(
        text,
        "{{\"t\":{}.{:04},\"dir\":\"{dir}\",\"msg\":{msg}",
        tenths / 10_000,
        tenths % 10_000
    );
    text.push_str(match end {
        LineEnd::There => "}\n",
        LineEnd::Missing => ",\"end\":false}\n",
    });
    text
}
