//! The CLI's requests to its client, and the replies.

use std::fmt;

use serde_json::Value;

use super::trace::{Trace, Violation};
use crate::peer::Match;
use crate::script::Permitted;
use crate::script::judge::permitted;

/// A control request of the CLI, and its reply.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CliRequest {
    /// The subtype: `can_use_tool`, `hook_callback`, `mcp_message` …
    pub subtype: String,
    /// The request.
    pub request: Value,
    /// The id of the request.
    pub id: String,
    /// The reply. The first one counts.
    pub answer: Answer,
    /// The line of the request, from 0.
    line: usize,
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// A reply with this value.
    Success(Value),
    /// An error.
    Error(String),
    /// The CLI withdrew the request before.
    Withdrawn,
    /// Nothing came.
    None,
}

impl Trace {
    /// The requests of the CLI, in order.
    pub fn asks(&self) -> Vec<CliRequest> {
        let mut asks: Vec<CliRequest> = Vec::new();
        for (n, line) in self.lines().iter().enumerate() {
            let json = &line.json;
            let mut settle = |id: &Value, answer: Answer| {
                let open = asks
                    .iter_mut()
                    .find(|ask| Some(ask.id.as_str()) == id.as_str() && ask.answer == Answer::None);
                if let Some(ask) = open {
                    ask.answer = answer;
                }
            };
            match (json["type"].as_str(), line.from_client) {
                (Some("control_request"), false) => asks.push(CliRequest {
                    subtype: json["request"]["subtype"].as_str().unwrap_or_default().to_owned(),
                    request: json["request"].clone(),
                    id: json["request_id"].as_str().unwrap_or_default().to_owned(),
                    answer: Answer::None,
                    line: n,
                }),
                (Some("control_cancel_request"), false) => settle(&json["request_id"], Answer::Withdrawn),
                (Some("control_response"), true) => {
                    let response = &json["response"];
                    let answer = match response["subtype"].as_str() {
                        Some("error") => {
                            Answer::Error(response["error"].as_str().unwrap_or_default().to_owned())
                        }
                        _ => Answer::Success(response["response"].clone()),
                    };
                    settle(&response["request_id"], answer);
                }
                _ => {}
            }
        }
        asks
    }

    /// Whether the CLI requested permission exactly for these tools, in this order, and got these replies.
    ///
    /// # Errors
    /// The first request that is another, had another reply, is missing, or was not expected.
    pub fn asked<Q>(&self, expected: Q) -> Result<(), Violation>
    where
        Q: IntoIterator,
        Q::Item: Into<Question>,
    {
        let asks: Vec<CliRequest> = self
            .asks()
            .into_iter()
            .filter(|ask| ask.subtype == "can_use_tool")
            .collect();
        let expected: Vec<Question> = expected.into_iter().map(Into::into).collect();
        let names: Vec<&str> = asks
            .iter()
            .map(|ask| ask.request["tool_name"].as_str().unwrap_or("?"))
            .collect();
        for (n, question) in expected.iter().enumerate() {
            let number = n + 1;
            let Some(ask) = asks.get(n) else {
                let what =
                    format!("question {number}: expected {question}, and there were no more than {names:?}");
                return Err(self.violation(what, self.lines().len()));
            };
            if let Some(flaw) = question.flaw(ask) {
                let what = format!("question {number}: expected {question}, and {flaw}");
                return Err(self.violation(what, ask.line));
            }
        }
        match asks.get(expected.len()) {
            None => Ok(()),
            Some(ask) => {
                let what = format!(
                    "permission was asked for {}, which was not expected; the questions were {names:?}",
                    ask.request["tool_name"]
                );
                Err(self.violation(what, ask.line))
            }
        }
    }
}

/// The expected permission request, and its reply.
#[derive(Debug, Clone)]
#[must_use]
pub struct Question {
    tool: String,
    input: Option<Value>,
    answer: Option<Wanted>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Wanted {
    Allowed,
    Denied,
    Withdrawn,
}

/// A question whether this tool may be used.
pub fn question(tool: impl Into<String>) -> Question {
    Question {
        tool: tool.into(),
        input: None,
        answer: None,
    }
}

impl Question {
    fn flaw(&self, ask: &CliRequest) -> Option<String> {
        let name = ask.request["tool_name"].as_str().unwrap_or("?");
        if name != self.tool {
            return Some(format!("it is about {name}"));
        }
        if let Some(input) = &self.input
            && let Some(flaw) = Match::partial(input.clone()).flaw(&ask.request["input"])
        {
            return Some(format!("its input is {}: {flaw}", ask.request["input"]));
        }
        let got = match &ask.answer {
            Answer::Success(answer) if permitted(answer) == Permitted::Allowed => Some(Wanted::Allowed),
            Answer::Success(_) | Answer::Error(_) => Some(Wanted::Denied),
            Answer::Withdrawn => Some(Wanted::Withdrawn),
            Answer::None => None,
        };
        match self.answer {
            Some(wanted) if got != Some(wanted) => Some(match &ask.answer {
                Answer::Success(answer) => format!("it was answered with {answer}"),
                Answer::Error(error) => format!("it was answered with the error {error:?}"),
                Answer::Withdrawn => "the CLI took it back".to_owned(),
                Answer::None => "it was not answered".to_owned(),
            }),
            _ => None,
        }
    }
}

setters! { Question:
    /// With at least this in its input.
    input(input: Value) = Some(input);

    /// And it was allowed.
    allowed() => answer = Some(Wanted::Allowed);

    /// The reply is a denial, or what the CLI treats as one: an error, or a reply that it does not understand.
    denied() => answer = Some(Wanted::Denied);

    /// And the CLI took it back.
    withdrawn() => answer = Some(Wanted::Withdrawn);
}

impl From<&str> for Question {
    fn from(tool: &str) -> Self {
        question(tool)
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        if let Some(input) = &self.input {
            write!(f, " with {input}")?;
        }
        match self.answer {
            Some(Wanted::Allowed) => f.write_str(", allowed"),
            Some(Wanted::Denied) => f.write_str(", denied"),
            Some(Wanted::Withdrawn) => f.write_str(", withdrawn"),
            None => Ok(()),
        }
    }
}
