//! Finds flaws in the recorded lines.

use std::collections::HashSet;

use serde_json::Value;

use super::Script;
use super::assertion::{Assert, Permitted};
use super::expect::ToolCalled;
use super::rule::Times;
use crate::flaw::Flaw;
use crate::peer::{Line, Match};

/// The text of a tool's result: a string, or the texts among blocks.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        other => other.to_string(),
    }
}

/// The last request of ours that fits and has an answer, with the answer's `response`.
fn answered(lines: &[Line], fits: impl Fn(&Value) -> bool) -> Option<(&Value, &Value)> {
    let responses = lines.iter().enumerate().rev();
    let responses = responses.filter(|(_, line)| line.from_client && line.json["type"] == "control_response");
    responses.into_iter().find_map(|(n, line)| {
        let response = &line.json["response"];
        let id = &response["request_id"];
        let mut requests = lines[..n].iter().rev().filter(|line| !line.from_client);
        let request =
            requests.find(|line| line.json["type"] == "control_request" && line.json["request_id"] == *id)?;
        let request = &request.json["request"];
        fits(request).then_some((request, response))
    })
}

fn permitted(response: &Value) -> Permitted {
    match response["response"]["behavior"].as_str() {
        _ if response["subtype"] != "success" => Permitted::Failed,
        Some("allow") => Permitted::Allowed,
        Some("deny") => Permitted::Denied,
        _ => Permitted::Failed,
    }
}

fn word(permitted: Permitted) -> &'static str {
    match permitted {
        Permitted::Allowed => "allowed",
        Permitted::Denied => "denied",
        Permitted::Failed => "failed",
    }
}

/// The parts of a pattern that a value lacks.
fn misses(what: &str, pattern: &Value, value: &Value) -> Option<String> {
    let flaw = Match::partial(pattern.clone()).flaw(value)?;
    Some(format!("{what} does not fit {pattern}: {flaw}"))
}

fn control_requests(lines: &[Line], subtype: &str) -> usize {
    let received = lines
        .iter()
        .filter(|line| line.from_client && line.json["type"] == "control_request");
    received
        .filter(|line| line.json["request"]["subtype"] == subtype)
        .count()
}

fn prompts(lines: &[Line]) -> usize {
    lines
        .iter()
        .filter(|line| line.from_client && line.json["type"] == "user")
        .count()
}

/// The last result of a tool that the model got to read.
fn last_result(lines: &[Line]) -> Option<&Value> {
    let sent = lines
        .iter()
        .rev()
        .filter(|line| !line.from_client && line.json["type"] == "user");
    sent.filter_map(|line| line.json["message"]["content"].as_array())
        .flat_map(|blocks| blocks.iter().rev())
        .find(|block| block["type"] == "tool_result")
}

/// What an assertion does not like, if anything.
pub(super) fn check(assert: &Assert, lines: &[Line]) -> Option<String> {
    let permission = || answered(lines, |request| request["subtype"] == "can_use_tool");
    if let Some(wanted) = assert.permission {
        let Some((request, response)) = permission() else {
            return Some(format!(
                "expected a question about a tool to be {}, but none was answered",
                word(wanted)
            ));
        };
        let got = permitted(response);
        if got != wanted {
            let (tool, payload) = (&request["tool_name"], &response["response"]);
            let said = if got == Permitted::Failed {
                response
            } else {
                payload
            };
            return Some(format!(
                "expected {tool} to be {}, but it {}: {said}",
                word(wanted),
                verb(got)
            ));
        }
    }
    if let Some(pattern) = &assert.updated_input {
        let Some((_, response)) = permission() else {
            return Some("expected an updated input, but no question about a tool was answered".to_owned());
        };
        let flaw = misses(
            "the updated input",
            pattern,
            &response["response"]["updatedInput"],
        );
        if flaw.is_some() {
            return flaw;
        }
    }
    if let Some(wanted) = &assert.message {
        let message =
            permission().map(|(_, response)| response["response"]["message"].as_str().unwrap_or_default());
        match message {
            None => return Some("expected a denial, but no question about a tool was answered".to_owned()),
            Some(message) if !wanted.fits(message) => {
                return Some(format!(
                    "expected the denial to say {wanted}, but it says {message:?}"
                ));
            }
            Some(_) => {}
        }
    }
    let patterns: [(&Option<Value>, &str, Fits, Payload); 3] = [
        (
            &assert.hook,
            "the hook's answer",
            |request| request["subtype"] == "hook_callback",
            |response| &response["response"],
        ),
        (
            &assert.mcp,
            "the MCP server's answer",
            |request| request["subtype"] == "mcp_message",
            |response| &response["response"]["mcp_response"],
        ),
        (
            &assert.answer,
            "the client's answer",
            |_| true,
            |response| &response["response"],
        ),
    ];
    for (pattern, what, fits, payload) in patterns {
        let Some(pattern) = pattern else { continue };
        let flaw = match answered(lines, fits) {
            None => Some(format!("expected {what}, but there is none")),
            Some((_, response)) if response["subtype"] != "success" => Some(format!(
                "expected {what}, but it is an error: {}",
                response["error"]
            )),
            Some((_, response)) => misses(what, pattern, payload(response)),
        };
        if flaw.is_some() {
            return flaw;
        }
    }
    if assert.result.is_some() || assert.is_error.is_some() {
        let Some(block) = last_result(lines) else {
            return Some("expected the result of a tool, but there is none".to_owned());
        };
        let text = text_of(&block["content"]);
        if let Some(wanted) = assert.result.as_ref().filter(|wanted| !wanted.fits(&text)) {
            return Some(format!(
                "expected the tool's result to be {wanted}, but it is {text:?}"
            ));
        }
        let failed = block["is_error"] == true;
        if let Some(wanted) = assert.is_error.filter(|wanted| *wanted != failed) {
            let wanted = if wanted { "a failure" } else { "no failure" };
            return Some(format!(
                "expected the tool's result to be {wanted}, but it is {text:?}"
            ));
        }
    }
    if let Some(flaw) = counts(&assert.requests, assert.prompts, lines) {
        return Some(flaw);
    }
    let pattern = assert.received.as_ref()?;
    let wanted = Match::partial(pattern.clone());
    let mut received = lines.iter().filter(|line| line.from_client);
    let found = received.any(|line| wanted.flaw(&line.json).is_none());
    (!found).then(|| format!("no line of the client fits {pattern}"))
}

type Fits = fn(&Value) -> bool;
type Payload = fn(&Value) -> &Value;

fn verb(got: Permitted) -> &'static str {
    match got {
        Permitted::Allowed => "was allowed",
        Permitted::Denied => "was denied",
        Permitted::Failed => "was not decided",
    }
}

fn counts(
    requests: &std::collections::BTreeMap<String, usize>,
    wanted: Option<usize>,
    lines: &[Line],
) -> Option<String> {
    for (subtype, wanted) in requests {
        let got = control_requests(lines, subtype);
        if got != *wanted {
            return Some(format!(
                "expected {wanted} control requests `{subtype}`, but {got} came"
            ));
        }
    }
    let (wanted, got) = (wanted?, prompts(lines));
    (got != wanted).then(|| format!("expected {wanted} prompts, but {got} came"))
}

/// What is missing in the end.
pub(super) fn end(script: &Script, used: &[u32], lines: &[Line]) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    let expect = &script.expect;
    let general = script.name();
    if expect.every_rule_used {
        for (n, rule) in script.prompts.iter().enumerate() {
            let place = script.place(rule.at, &format!("prompts[{n}]"));
            if used[n] < rule.value.times.least() {
                let wanted = match rule.value.times {
                    Times::Exactly(1) => "this rule was never used".to_owned(),
                    _ => format!(
                        "this rule was used {} times, not {}",
                        used[n],
                        rule.value.times.least()
                    ),
                };
                flaws.push(Flaw::new(place, wanted));
            }
        }
    }
    for (n, called) in expect.tools.iter().enumerate() {
        let place = script.place(called.at, &format!("expect.tools[{n}]"));
        flaws.extend(missed(&called.value, lines).map(|what| Flaw::new(place, what)));
    }
    if let Some(what) = counts(&expect.requests, expect.prompts, lines) {
        flaws.push(Flaw::new(format!("{general}: expect"), what));
    }
    if expect.no_unanswered_request {
        for request in unanswered(lines) {
            flaws.push(Flaw::new(general, format!("the client did not answer {request}")));
        }
    }
    flaws
}

/// The difference between the expected and the actual calls of a tool.
fn missed(wanted: &ToolCalled, lines: &[Line]) -> Option<String> {
    let sent = || lines.iter().filter(|line| !line.from_client);
    let blocks = |kind: &'static str| {
        let messages = sent().filter(move |line| line.json["type"] == kind);
        messages
            .filter_map(|line| line.json["message"]["content"].as_array())
            .flatten()
    };
    let calls: Vec<&Value> = blocks("assistant")
        .filter(|block| block["type"] == "tool_use" && block["name"] == wanted.tool.as_str())
        .collect();
    let fits = |call: &&&Value| {
        let input = wanted.input.as_ref();
        let input_fits =
            input.is_none_or(|pattern| Match::partial(pattern.clone()).flaw(&call["input"]).is_none());
        let error_fits = wanted.is_error.is_none_or(|wanted| {
            let mut results = blocks("user").filter(|block| block["type"] == "tool_result");
            results
                .any(|result| result["tool_use_id"] == call["id"] && (result["is_error"] == true) == wanted)
        });
        input_fits && error_fits
    };
    let got = calls.iter().filter(fits).count();
    let content = match wanted.times {
        Some(times) => got == times,
        None => got > 0,
    };
    if content {
        return None;
    }
    let times = wanted
        .times
        .map_or("at least once".to_owned(), |times| format!("{times} times"));
    let mut what = format!("expected {} to be called {times}", wanted.tool);
    if let Some(input) = &wanted.input {
        what.push_str(&format!(" with {input}"));
    }
    let inputs: Vec<String> = calls.iter().map(|call| call["input"].to_string()).collect();
    what.push_str(&match inputs.len() {
        0 => ", but it never was".to_owned(),
        _ => format!(", but {got} of its calls fit: {}", inputs.join(", ")),
    });
    Some(what)
}

/// The control requests of the agent that have neither been answered nor taken back.
fn unanswered(lines: &[Line]) -> Vec<String> {
    let mut settled = HashSet::new();
    for line in lines {
        if line.from_client && line.json["type"] == "control_response" {
            settled.extend(line.json["response"]["request_id"].as_str());
        } else if !line.from_client && line.json["type"] == "control_cancel_request" {
            settled.extend(line.json["request_id"].as_str());
        }
    }
    let ours = lines
        .iter()
        .filter(|line| !line.from_client && line.json["type"] == "control_request");
    ours.filter(|line| {
        line.json["request_id"]
            .as_str()
            .is_none_or(|id| !settled.contains(id))
    })
    .map(|line| {
        let request = &line.json["request"];
        let subtype = request["subtype"].as_str().unwrap_or("?");
        match request["tool_name"].as_str() {
            Some(tool) => format!("the request `{subtype}` about {tool}"),
            None => format!("the request `{subtype}`"),
        }
    })
    .collect()
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
