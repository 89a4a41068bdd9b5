//! The file format of recorded traffic.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use outrigger_protocol::RawJson;
use serde::{Deserialize, Serialize};

use super::asked::Asked;

/// The format in the first line of a file.
const FORMAT: &str = "outrigger-api-traffic";
/// The version of the format that is written. All up to it can be read.
const VERSION: u64 = 1;

/// Recorded traffic: requests and replies.
///
/// A file is one JSON object a line: first the format with its version, then an [`Exchange`] each, in the order in which
/// they ended. A last line that was cut off by a crash is ignored.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Recording {
    /// The exchanges, in the order of their requests.
    pub exchanges: Vec<Arc<Exchange>>,
    /// Whether the last line of the file was cut off.
    pub cut_off: bool,
}

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    version: u64,
    #[serde(default)]
    recorded_by: String,
}

/// A request and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Exchange {
    /// Its number in the recording, from 1, in the order of the requests.
    pub number: u64,
    /// When the request came, in milliseconds since the recording began.
    pub at_ms: u64,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The session of the CLI: `s1`, `s2` and so on, by their first requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The subagent: `a1`, `a2` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The content of the request.
    #[serde(default)]
    pub asked: Asked,
    /// The reply; none if the connection ended before a reply began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// How it ended.
    #[serde(default)]
    pub ended: Ended,
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Answer {
    /// The time until the answer began, in milliseconds.
    pub after_ms: u64,
    /// The HTTP status.
    pub status: u16,
    /// The headers that the CLI uses.
    pub headers: BTreeMap<String, String>,
    /// The events of a streamed answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<StreamEvent>,
    /// The body of any other answer, if it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<RawJson>,
    /// The body of any other answer, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StreamEvent {
    /// When it came, in milliseconds since the answer began.
    pub ms: u64,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
    /// What came in its place, if it is no event of a name and JSON data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ended {
    /// The answer was complete.
    #[default]
    Whole,
    /// The connection to the API broke.
    Cut,
    /// The CLI hung up.
    ClientGone,
}

/// A file of recorded traffic cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The file has another format.
    #[error("{origin}: this is no recording of API traffic: {what}")]
    Foreign {
        /// The name of the file or stream.
        origin: String,
        /// The reason.
        what: String,
    },
    /// The file was written by a newer version of this program.
    #[error(
        "{origin}: version {version} of the format is newer than this program, which reads up to {VERSION}; update it"
    )]
    Newer {
        /// The name of the file or stream.
        origin: String,
        /// The version that it has.
        version: u64,
    },
    /// A line is no exchange.
    #[error("{origin}:{line}: this line is no exchange: {cause}")]
    Line {
        /// The name of the file or stream.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The reason.
        cause: serde_json::Error,
    },
}

#[cfg(feature = "api-record")]
impl Header {
    pub(super) fn current() -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            recorded_by: concat!("outrigger-sim ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

impl Recording {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is no such file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RecordingError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(|cause| RecordingError::Io {
            path: path.to_owned(),
            cause,
        })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads the text of a file; `origin` is what errors call it.
    ///
    /// # Errors
    /// When it is no such text.
    pub fn parse(text: &str, origin: &str) -> Result<Self, RecordingError> {
        let foreign = |what: String| RecordingError::Foreign {
            origin: origin.to_owned(),
            what,
        };
        let mut lines = text.split_inclusive('\n').enumerate();
        let (_, first) = lines.next().ok_or_else(|| foreign("it is empty".to_owned()))?;
        let header: Header = serde_json::from_str(first).map_err(|error| foreign(error.to_string()))?;
        if header.format != FORMAT {
            return Err(foreign(format!("its format is {:?}", header.format)));
        }
        if header.version > VERSION {
            return Err(RecordingError::Newer {
                origin: origin.to_owned(),
                version: header.version,
            });
        }
        let mut recording = Self::default();
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            match serde_json::from_str::<Exchange>(line) {
                Ok(exchange) => recording.exchanges.push(Arc::new(exchange)),
                // Only the last line has no end, and only if writing it was cut short.
                Err(_) if !line.ends_with('\n') => recording.cut_off = true,
                Err(cause) => {
                    return Err(RecordingError::Line {
                        origin: origin.to_owned(),
                        line: index + 1,
                        cause,
                    });
                }
            }
        }
        recording.exchanges.sort_by_key(|exchange| exchange.number);
        Ok(recording)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"format":"outrigger-api-traffic","version":1}"#;
    const FIRST: &str = r#"{"number":1,"at_ms":5,"method":"POST","path":"/v1/messages","session":"s1","asked":{"model":"m","stream":true,"prompt":{"text":"hi"},"from":"the future"},"answer":{"after_ms":3,"status":200,"headers":{},"events":[{"ms":0,"event":"ping","data":{"lone":"\ud83d"}},{"ms":1,"raw":": x"}]}}"#;

    #[test]
    fn files_of_version_1_stay_readable() {
        let text = format!("{HEADER}\n{FIRST}\n\n{{\"number\":2,\"at");
        let recording = Recording::parse(&text, "x").unwrap();
        assert!(recording.cut_off);
        let [exchange] = &recording.exchanges[..] else {
            panic!("{recording:?}")
        };
        assert_eq!(exchange.asked.prompt.as_ref().unwrap().text, "hi");
        let events = &exchange.answer.as_ref().unwrap().events;
        assert_eq!(events[0].data.as_ref().unwrap().get(), r#"{"lone":"\ud83d"}"#);
        assert_eq!(exchange.ended, Ended::Whole);
        let again = serde_json::to_string(&**exchange).unwrap();
        assert_eq!(serde_json::from_str::<Exchange>(&again).unwrap(), **exchange);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let told = |text: &str| Recording::parse(text, "f.ndjson").unwrap_err().to_string();
        assert!(told("").contains("it is empty"));
        assert!(told("{}\n").contains("f.ndjson: this is no recording"));
        assert!(told(r#"{"format":"x","version":1}"#).contains(r#"its format is "x""#));
        let newer = HEADER.replace(":1", ":2");
        assert!(told(&newer).contains("version 2"), "{}", told(&newer));
        let bad = format!("{HEADER}\n{FIRST}\n{{\"number\":\n{FIRST}\n");
        assert!(told(&bad).starts_with("f.ndjson:3: "), "{}", told(&bad));
    }
}
