//! Which tools the model called.

use std::fmt;

use serde_json::Value;

use super::trace::{Trace, Violation};
use crate::peer::Match;

/// A call of a tool, as the model made it, and what came of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// The input of the call.
    pub input: Value,
    /// The id of the call.
    pub id: String,
    /// The call that started the subagent which made this one; `None` for the model of the session itself.
    pub parent: Option<String>,
    /// The content of the call's result; `None` if none came.
    pub result: Option<Value>,
    /// Whether the result is an error, as it also is for a denied call.
    pub is_error: bool,
    /// The line in which it was called, from 0.
    line: usize,
}

impl Trace {
    /// The calls of tools, in order, those of subagents among them.
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> = Vec::new();
        for (line, json) in self.of_cli() {
            let blocks = json["message"]["content"].as_array();
            for block in blocks.into_iter().flatten() {
                match (json["type"].as_str(), block["type"].as_str()) {
                    (Some("assistant"), Some("tool_use")) => {
                        let id = block["id"].as_str().unwrap_or_default().to_owned();
                        if calls.iter().any(|call| call.id == id) {
                            continue;
                        }
                        calls.push(ToolCall {
                            name: block["name"].as_str().unwrap_or_default().to_owned(),
                            input: block["input"].clone(),
                            id,
                            parent: json["parent_tool_use_id"].as_str().map(str::to_owned),
                            result: None,
                            is_error: false,
                            line,
                        });
                    }
                    (Some("user"), Some("tool_result")) => {
                        let id = block["tool_use_id"].as_str().unwrap_or_default();
                        if let Some(call) = calls.iter_mut().find(|call| call.id == id) {
                            call.result = Some(block["content"].clone());
                            call.is_error = block["is_error"].as_bool().unwrap_or(false);
                        }
                    }
                    _ => {}
                }
            }
        }
        calls
    }

    /// Whether the model called exactly these tools, in this order.
    ///
    /// # Errors
    /// The first call that is another, is missing, or was not expected.
    pub fn called<T>(&self, expected: T) -> Result<(), Violation>
    where
        T: IntoIterator,
        T::Item: Into<Tool>,
    {
        let calls = self.tool_calls();
        let expected: Vec<Tool> = expected.into_iter().map(Into::into).collect();
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        for (n, tool) in expected.iter().enumerate() {
            let number = n + 1;
            let Some(call) = calls.get(n) else {
                let what =
                    format!("tool call {number}: expected {tool}, and there were no more than {names:?}");
                return Err(self.violation(what, self.lines().len()));
            };
            if let Some(flaw) = tool.flaw(call) {
                let what = format!(
                    "tool call {number}: expected {tool}, and it is {}: {flaw}",
                    call.name
                );
                return Err(self.violation(what, call.line));
            }
        }
        match calls.get(expected.len()) {
            None => Ok(()),
            Some(call) => {
                let what = format!(
                    "{} was called, which was not expected; the calls were {names:?}",
                    call.name
                );
                Err(self.violation(what, call.line))
            }
        }
    }
}

/// The expected call of a tool.
#[derive(Debug, Clone)]
#[must_use]
pub struct Tool {
    name: String,
    input: Option<Value>,
    failed: Option<bool>,
    in_subagent: Option<bool>,
}

/// A call of this tool.
pub fn tool(name: impl Into<String>) -> Tool {
    Tool {
        name: name.into(),
        input: None,
        failed: None,
        in_subagent: None,
    }
}

impl Tool {
    fn flaw(&self, call: &ToolCall) -> Option<String> {
        if call.name != self.name {
            return Some("another tool".to_owned());
        }
        if let Some(input) = &self.input
            && let Some(flaw) = Match::partial(input.clone()).flaw(&call.input)
        {
            return Some(format!("its input is {}: {flaw}", call.input));
        }
        match (self.failed, &call.result) {
            (Some(_), None) => return Some("it has no result".to_owned()),
            (Some(failed), Some(result)) if failed != call.is_error => {
                let how = if call.is_error {
                    "it failed"
                } else {
                    "it succeeded"
                };
                return Some(format!("{how}: {result}"));
            }
            _ => {}
        }
        match self.in_subagent {
            Some(wanted) if wanted != call.parent.is_some() => Some(match &call.parent {
                Some(parent) => format!("the subagent of {parent} called it"),
                None => "no subagent called it".to_owned(),
            }),
            _ => None,
        }
    }
}

setters! { Tool:
    /// With at least this in its input.
    input(input: Value) = Some(input);

    /// And it ran: a result came, and it is no error.
    succeeded() => failed = Some(false);

    /// And it failed, or was not allowed.
    failed() = Some(true);

    /// And a subagent called it.
    in_subagent() = Some(true);

    /// And no subagent did.
    in_main() => in_subagent = Some(false);
}

impl From<&str> for Tool {
    fn from(name: &str) -> Self {
        tool(name)
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(input) = &self.input {
            write!(f, " with {input}")?;
        }
        match self.failed {
            Some(true) => f.write_str(", which fails")?,
            Some(false) => f.write_str(", which succeeds")?,
            None => {}
        }
        match self.in_subagent {
            Some(true) => f.write_str(", in a subagent"),
            Some(false) => f.write_str(", in no subagent"),
            None => Ok(()),
        }
    }
}
