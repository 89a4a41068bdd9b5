//! A request as a line of the log.

use serde::{Deserialize, Serialize};

use super::request::{AnsweredBy, ApiRequest, RequestOutcome};
use crate::cassette::Redactor;

/// The log line of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogLine {
    /// The request's place in the order of arrival, from 1. Lines are in the order in which answers ended.
    pub number: u64,
    /// When the request came, in milliseconds since the server started.
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
    pub asked: RequestContent,
    /// What decided the answer: `rule`, `queue`, `script NAME`, `directives`, `default`, `upstream`, `server`, or
    /// `nothing`.
    pub answered_by: String,
    /// Why nothing was for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<String>,
    /// How the answer ended: `answered`, `broken` by the script, `client_gone`, or `pending`.
    pub outcome: String,
    /// The HTTP status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

impl LogLine {
    /// The log line of this request, redacted.
    pub fn of(request: &ApiRequest, redactor: &Redactor) -> Self {
        let (outcome, status) = match request.outcome {
            RequestOutcome::Pending => ("pending", None),
            RequestOutcome::Answered(status) => ("answered", Some(status)),
            RequestOutcome::Broken => ("broken", None),
            RequestOutcome::ClientGone => ("client_gone", None),
        };
        Self {
            number: request.number,
            at_ms: u64::try_from(request.at.as_millis()).unwrap_or(u64::MAX),
            method: request.method.clone(),
            path: request.path.clone(),
            session: request.session_id().map(str::to_owned),
            agent: request.agent_id().map(str::to_owned),
            turn: request.turn,
            asked: RequestContent::of(request, redactor),
            answered_by: match &request.answered_by {
                AnsweredBy::Undecided => "undecided".to_owned(),
                AnsweredBy::Rule => "rule".to_owned(),
                AnsweredBy::Queue => "queue".to_owned(),
                AnsweredBy::Script(name) => format!("script {name}"),
                AnsweredBy::Directives => "directives".to_owned(),
                AnsweredBy::Default => "default".to_owned(),
                AnsweredBy::Upstream => "upstream".to_owned(),
                AnsweredBy::Server => "server".to_owned(),
                AnsweredBy::Nothing(_) => "nothing".to_owned(),
            },
            unmatched: request.answered_by.unmatched().map(|why| clean(why, redactor)),
            outcome: outcome.to_owned(),
            status,
        }
    }
}

/// The longest text that is logged as it is, in characters.
const LONGEST: usize = 400;

/// The content of a request, in short: without the CLI's own prompts and tools.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RequestContent {
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether a subagent asks.
    pub subagent: bool,
    /// The user's last text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<KeptText>,
    /// The results of tools since the model's last answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_results: Vec<KeptResult>,
    /// How many messages the conversation has.
    pub messages: usize,
    /// How many tools the model may call.
    pub tools: usize,
}

/// A text, or the beginning of a long one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct KeptText {
    /// The text, at most its first 400 characters.
    pub text: String,
    /// For a longer one, how many characters it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chars: Option<usize>,
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct KeptResult {
    /// The text of it.
    #[serde(flatten)]
    pub kept: KeptText,
    /// Whether the call failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl RequestContent {
    fn of(request: &ApiRequest, redactor: &Redactor) -> Self {
        let results = request.new_tool_results().into_iter();
        Self {
            model: request.model().map(str::to_owned),
            stream: request.stream(),
            subagent: request.agent_id().is_some(),
            prompt: request.last_user_text().map(|text| KeptText::of(&text, redactor)),
            tool_results: results
                .map(|result| KeptResult {
                    kept: KeptText::of(&result.text, redactor),
                    is_error: result.is_error,
                })
                .collect(),
            messages: request.messages().len(),
            tools: request.tools().count(),
        }
    }
}

impl KeptText {
    fn of(text: &str, redactor: &Redactor) -> Self {
        // What the CLI adds to prompts and results is its own.
        let mut text = clean(text, redactor);
        while let Some((before, rest)) = text.split_once("<system-reminder>") {
            let behind = rest
                .split_once("</system-reminder>")
                .map_or("", |(_, behind)| behind);
            text = format!("{before}{behind}");
        }
        let text = text.trim();
        let chars = text.chars().count();
        Self {
            text: text.chars().take(LONGEST).collect(),
            chars: (chars > LONGEST).then_some(chars),
        }
    }
}

fn clean(text: &str, redactor: &Redactor) -> String {
    redactor.text(text).unwrap_or_else(|| text.to_owned())
}
