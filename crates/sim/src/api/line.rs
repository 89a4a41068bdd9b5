//! A request as a line of the log.

use serde::{Deserialize, Serialize};

use super::request::{AnsweredBy, ApiRequest, Outcome};
use super::traffic::{Asked, Redaction};

/// The log line of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogLine {
    /// Its place in the order of arrival, from 1. Lines are in the order in which answers ended.
    pub number: u64,
    /// When it came, in milliseconds since the server started.
    pub at_ms: u64,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The CLI's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The subagent that sent the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The how-manieth request for a message of its session and agent; 0 for other requests.
    pub turn: u64,
    /// The content of the request.
    pub asked: Asked,
    /// What decided the answer: `rule`, `queue`, `script NAME`, `directives`, `default`, `recording N`, `upstream`, `server`, or
    /// `nothing`.
    pub answered_by: String,
    /// Why nothing was for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<String>,
    /// How it ended: `answered`, `broken` by the script, `client_gone`, or `pending`.
    pub outcome: String,
    /// The HTTP status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

impl LogLine {
    /// The log line of this request, redacted.
    pub fn of(request: &ApiRequest, redaction: &Redaction) -> Self {
        let (outcome, status) = match request.outcome {
            Outcome::Pending => ("pending", None),
            Outcome::Answered(status) => ("answered", Some(status)),
            Outcome::Broken => ("broken", None),
            Outcome::ClientGone => ("client_gone", None),
        };
        Self {
            number: request.number,
            at_ms: u64::try_from(request.at.as_millis()).unwrap_or(u64::MAX),
            method: request.method.clone(),
            path: request.path.clone(),
            session: request.session_id().map(str::to_owned),
            agent: request.agent_id().map(str::to_owned),
            turn: request.turn,
            asked: Asked::of(request, redaction),
            answered_by: match &request.answered_by {
                AnsweredBy::Undecided => "undecided".to_owned(),
                AnsweredBy::Rule => "rule".to_owned(),
                AnsweredBy::Queue => "queue".to_owned(),
                AnsweredBy::Script(name) => format!("script {name}"),
                AnsweredBy::Directives => "directives".to_owned(),
                AnsweredBy::Default => "default".to_owned(),
                AnsweredBy::Recording(number) => format!("recording {number}"),
                AnsweredBy::Upstream => "upstream".to_owned(),
                AnsweredBy::Server => "server".to_owned(),
                AnsweredBy::Nothing(_) => "nothing".to_owned(),
            },
            unmatched: request.answered_by.unmatched().map(|why| redaction.text(why)),
            outcome: outcome.to_owned(),
            status,
        }
    }
}
