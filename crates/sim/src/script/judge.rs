//! Finds flaws in the recorded lines.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Script;
use super::assertion::{Assert, Permitted};
use super::expect::{Expect, ToolCalled};
use super::rule::Times;
use crate::flaw::Flaw;
use crate::matcher::Match;
use crate::running::Line;

/// The text of a tool's result: a string, or the texts among blocks.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        other => other.to_string(),
    }
}

/// The last answer to a request of ours that fits: its `request`, and the answer's `response`. What the CLI does not read is no answer: a
/// second reply, and one to a request that it has taken back.
fn answered(lines: &[Line], fits: impl Fn(&Value) -> bool) -> Option<(&Value, &Value)> {
    let mut open: HashMap<Option<&str>, &Value> = HashMap::new();
    let mut last = None;
    for line in lines {
        let (json, response) = (&line.json, &line.json["response"]);
        let id = json["request_id"].as_str();
        match (line.from_client, json["type"].as_str()) {
            (false, Some("control_request")) => {
                open.insert(id, &json["request"]);
            }
            (false, Some("control_cancel_request")) => {
                open.remove(&id);
            }
            (true, Some("control_response")) => {
                let request = open.remove(&response["request_id"].as_str());
                let request = request.filter(|request| fits(request));
                last = request.map(|request| (request, response)).or(last);
            }
            _ => {}
        }
    }
    last
}

/// What a reply to a permission request decides, as the CLI reads it.
pub(crate) fn permitted(reply: &Value) -> Permitted {
    match reply["behavior"].as_str() {
        Some("allow") if reply.get("updatedInput").is_none_or(Value::is_object) => Permitted::Allowed,
        Some("deny") if reply["message"].is_string() => Permitted::Denied,
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
fn fits(what: &str, pattern: &Value, value: &Value) -> Result<(), String> {
    let flaw = Match::partial(pattern.clone()).flaw(value);
    flaw.map_or(Ok(()), |flaw| {
        Err(format!("{what} does not fit {pattern}: {flaw}"))
    })
}

/// The frames of this type that the client wrote, or that were written to it.
fn frames<'a>(lines: &'a [Line], by_client: bool, kind: &str) -> impl DoubleEndedIterator<Item = &'a Value> {
    let lines = lines.iter().filter(move |line| line.from_client == by_client);
    lines
        .map(|line| &line.json)
        .filter(move |frame| frame["type"] == kind)
}

/// What an assertion does not like about the last tool result: its text, and whether it was a failure.
pub(crate) fn result(assert: &Assert, last: Option<(&str, bool)>) -> Result<(), String> {
    if assert.result.is_none() && assert.is_error.is_none() {
        return Ok(());
    }
    let (text, failed) = last.ok_or("expected the result of a tool, but there is none")?;
    let wanted = match (&assert.result, assert.is_error) {
        (Some(wanted), _) if !wanted.fits(text) => wanted.to_string(),
        (_, Some(true)) if !failed => "a failure".to_owned(),
        (_, Some(false)) if failed => "no failure".to_owned(),
        _ => return Ok(()),
    };
    Err(format!(
        "expected the tool's result to be {wanted}, but it is {text:?}"
    ))
}

/// What an assertion does not like about the frames, if anything. What the model read is not among them: see [`result`].
pub(crate) fn check(assert: &Assert, lines: &[Line]) -> Option<String> {
    judge(assert, lines).err()
}

fn judge(assert: &Assert, lines: &[Line]) -> Result<(), String> {
    let permission = || answered(lines, |request| request["subtype"] == "can_use_tool");
    if let Some(wanted) = assert.permission {
        let wanted_word = word(wanted);
        let missing = format!("expected a question about a tool to be {wanted_word}, but none was answered");
        let (request, response) = permission().ok_or(missing)?;
        let (tool, payload) = (&request["tool_name"], &response["response"]);
        let got = match response["subtype"] == "success" {
            true => permitted(payload),
            false => Permitted::Failed,
        };
        let (got, said) = match got {
            got if got == wanted => (None, payload),
            Permitted::Failed => (Some("was not decided".to_owned()), response),
            got => (Some(format!("was {}", word(got))), payload),
        };
        if let Some(got) = got {
            return Err(format!(
                "expected {tool} to be {wanted_word}, but it {got}: {said}"
            ));
        }
    }
    if let Some(pattern) = &assert.updated_input {
        let missing = "expected an updated input, but no question about a tool was answered";
        let (_, response) = permission().ok_or(missing)?;
        fits(
            "the updated input",
            pattern,
            &response["response"]["updatedInput"],
        )?;
    }
    if let Some(wanted) = &assert.message {
        let missing = "expected a denial, but no question about a tool was answered";
        let (_, response) = permission().ok_or(missing)?;
        let message = response["response"]["message"].as_str().unwrap_or_default();
        if !wanted.fits(message) {
            return Err(format!(
                "expected the denial to say {wanted}, but it says {message:?}"
            ));
        }
    }
    let patterns = [
        (
            &assert.hook,
            "the hook's answer",
            Some("hook_callback"),
            "/response",
        ),
        (
            &assert.mcp,
            "the MCP server's answer",
            Some("mcp_message"),
            "/response/mcp_response",
        ),
        (&assert.answer, "the client's answer", None, "/response"),
    ];
    for (pattern, what, subtype, payload) in patterns {
        let Some(pattern) = pattern else { continue };
        let is_it = |request: &Value| subtype.is_none_or(|subtype| request["subtype"] == subtype);
        let found = answered(lines, is_it);
        let (_, response) = found.ok_or_else(|| format!("expected {what}, but there is none"))?;
        if response["subtype"] != "success" {
            return Err(format!(
                "expected {what}, but it is an error: {}",
                response["error"]
            ));
        }
        fits(what, pattern, response.pointer(payload).unwrap_or(&Value::Null))?;
    }
    counts(
        &assert.requests,
        assert.prompts,
        &[Played { lines, ended: false }],
    )?;
    let Some(pattern) = &assert.received else {
        return Ok(());
    };
    let wanted = Match::partial(pattern.clone());
    let mut received = lines.iter().filter(|line| line.from_client);
    match received.any(|line| wanted.flaw(&line.json).is_none()) {
        true => Ok(()),
        false => Err(format!("no line of the client fits {pattern}")),
    }
}

fn counts(
    requests: &std::collections::BTreeMap<String, usize>,
    prompts: Option<usize>,
    played: &[Played<'_>],
) -> Result<(), String> {
    let count = |kind: &str, subtype: Option<&str>| {
        let received = played.iter().flat_map(|played| frames(played.lines, true, kind));
        received
            .filter(|frame| subtype.is_none_or(|subtype| frame["request"]["subtype"] == subtype))
            .count()
    };
    for (subtype, wanted) in requests {
        let got = count("control_request", Some(subtype));
        if got != *wanted {
            return Err(format!(
                "expected {wanted} control requests `{subtype}`, but {got} came"
            ));
        }
    }
    let got = count("user", None);
    match prompts.filter(|wanted| *wanted != got) {
        Some(wanted) => Err(format!("expected {wanted} prompts, but {got} came")),
        None => Ok(()),
    }
}

/// What is wrong with the numbers of control requests and of prompts, of all processes together.
#[cfg(feature = "players")]
pub(crate) fn numbers<'a>(script: &Script, processes: impl Iterator<Item = &'a [Line]>) -> Option<Flaw> {
    let played: Vec<_> = processes.map(|lines| Played { lines, ended: false }).collect();
    let what = counts(&script.expect.requests, script.expect.prompts, &played).err()?;
    Some(Flaw::new(format!("{}: expect", script.name()), what))
}

/// The frames of a process and its client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Played<'a> {
    pub(crate) lines: &'a [Line],
    /// Whether the process came to its end.
    pub(crate) ended: bool,
}

/// What is missing in the end, of what all processes together should have done.
pub(crate) fn end(script: &Script, used: &[u32], due: Vec<String>, played: &[Played<'_>]) -> Vec<Flaw> {
    let expect = &script.expect;
    let general = script.name();
    let mut flaws = unused(script, expect, used);
    flaws.extend(unreached(expect, due));
    let calls = calls_of(played);
    for (n, called) in expect.tools.iter().enumerate() {
        let place = script.place(called.at, &format!("expect.tools[{n}]"));
        flaws.extend(missed(&called.value, &calls).map(|what| Flaw::new(place, what)));
    }
    let results = played
        .iter()
        .flat_map(|played| blocks(played.lines, "user", "tool_result"));
    let results: Vec<String> = results.map(|block| text_of(&block["content"])).collect();
    let missed = missed_results(expect, &results).into_iter();
    flaws.extend(missed.map(|what| Flaw::new(format!("{general}: expect.tool_results"), what)));
    if let Err(what) = counts(&expect.requests, expect.prompts, played) {
        flaws.push(Flaw::new(format!("{general}: expect"), what));
    }
    if expect.no_unanswered_request {
        // Whoever killed a process needs not answer it.
        for request in played
            .iter()
            .filter(|played| played.ended)
            .flat_map(|played| unanswered(played.lines))
        {
            flaws.push(Flaw::new(general, format!("the client did not answer {request}")));
        }
    }
    flaws
}

/// Assertions that are still due in the end.
pub(crate) fn unreached(expect: &Expect, due: Vec<String>) -> impl Iterator<Item = Flaw> {
    let due = due.into_iter().filter(|_| expect.every_rule_used);
    due.map(|place| Flaw::new(place, "this assertion was not reached, so that it was not judged"))
}

/// Rules that were not used as often as they must be.
pub(crate) fn unused(script: &Script, expect: &Expect, used: &[u32]) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    for (n, rule) in script
        .prompts
        .iter()
        .enumerate()
        .filter(|_| expect.every_rule_used)
    {
        let least = rule.value.times.least();
        if used[n] < least {
            let place = script.place(rule.at, &format!("prompts[{n}]"));
            let what = match rule.value.times {
                Times::Exactly(1) => "this rule was never used".to_owned(),
                _ => format!("this rule was used {} times, not {least}", used[n]),
            };
            flaws.push(Flaw::new(place, what));
        }
    }
    flaws
}

/// The expected results of tools that are not among these.
pub(crate) fn missed_results(expect: &Expect, results: &[String]) -> Vec<String> {
    let missed = expect.tool_results.iter();
    let missed = missed.filter(|wanted| !results.iter().any(|text| wanted.fits(text)));
    missed
        .map(|wanted| {
            let mut told: Vec<String> = Vec::new();
            for text in results {
                let short: String = text.chars().take(80).collect();
                let short = format!("{short:?}");
                if !told.contains(&short) {
                    told.push(short);
                }
            }
            let more = if told.len() > TOLD { ", …" } else { "" };
            told.truncate(TOLD);
            match told.len() {
                0 => format!("no tool brought {wanted}; there were no results"),
                _ => format!(
                    "no tool brought {wanted}; the results were {}{more}",
                    told.join(", ")
                ),
            }
        })
        .collect()
}

/// How many results are shown one by one.
const TOLD: usize = 8;

/// A call of a tool.
#[derive(Debug)]
pub(crate) struct Called {
    id: String,
    pub(crate) tool: String,
    pub(crate) input: Value,
    /// Whether the call failed, if it has a result.
    pub(crate) failed: Option<bool>,
}

/// The blocks of one kind in messages of one kind.
fn blocks<'a>(lines: &'a [Line], message: &str, kind: &str) -> impl Iterator<Item = &'a Value> {
    frames(lines, false, message)
        .filter_map(|frame| frame["message"]["content"].as_array())
        .flatten()
        .filter(move |block| block["type"] == kind)
}

/// The calls in these messages, each once, with what became of them.
pub(crate) fn calls<'a>(messages: impl Iterator<Item = &'a Value>) -> Vec<Called> {
    let mut calls: Vec<Called> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let blocks = messages.filter_map(|message| message["content"].as_array());
    for block in blocks.flatten() {
        let text = |field: &str| block[field].as_str().unwrap_or_default();
        match block["type"].as_str() {
            Some("tool_use") if !known.contains_key(text("id")) => {
                known.insert(text("id"), calls.len());
                calls.push(Called {
                    id: text("id").to_owned(),
                    tool: text("name").to_owned(),
                    input: block["input"].clone(),
                    failed: None,
                });
            }
            Some("tool_result") => {
                if let Some(n) = known.get(text("tool_use_id")) {
                    calls[*n].failed = Some(block["is_error"] == true);
                }
            }
            _ => {}
        }
    }
    calls
}

/// The calls of all these processes. Each has ids of its own, but a call that one has left open may have its result in a later one that
/// goes on with the session.
fn calls_of(played: &[Played<'_>]) -> Vec<Called> {
    let mut all: Vec<(Option<&str>, Called)> = Vec::new();
    for Played { lines, .. } in played {
        let sent = || {
            lines
                .iter()
                .filter(|line| !line.from_client)
                .map(|line| &line.json)
        };
        let session = sent().find_map(|frame| frame["session_id"].as_str());
        let own = calls(sent().map(|frame| &frame["message"]));
        for block in blocks(lines, "user", "tool_result") {
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            if own.iter().any(|call| call.id == id) {
                continue;
            }
            let mut open = all
                .iter_mut()
                .filter(|(of, call)| *of == session && call.failed.is_none());
            if let Some((_, call)) = open.find(|(_, call)| call.id == id) {
                call.failed = Some(block["is_error"] == true);
            }
        }
        all.extend(own.into_iter().map(|call| (session, call)));
    }
    all.into_iter().map(|(_, call)| call).collect()
}

/// The difference between the expected and the actual calls of a tool.
pub(crate) fn missed(wanted: &ToolCalled, calls: &[Called]) -> Option<String> {
    let calls: Vec<&Called> = calls.iter().filter(|call| call.tool == wanted.tool).collect();
    let fits = |call: &&&Called| {
        let input = wanted.input.as_ref();
        input.is_none_or(|pattern| Match::partial(pattern.clone()).flaw(&call.input).is_none())
            && wanted.is_error.is_none_or(|wanted| call.failed == Some(wanted))
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
    let inputs: Vec<String> = calls.iter().map(|call| call.input.to_string()).collect();
    what.push_str(&match inputs.len() {
        0 => ", but it never was".to_owned(),
        _ => format!(", but {got} of its calls fit: {}", inputs.join(", ")),
    });
    Some(what)
}

/// The control requests of the agent that have neither been answered nor taken back.
fn unanswered(lines: &[Line]) -> Vec<String> {
    let answered = frames(lines, true, "control_response").map(|frame| &frame["response"]["request_id"]);
    let withdrawn = frames(lines, false, "control_cancel_request").map(|frame| &frame["request_id"]);
    let settled: HashSet<&str> = answered.chain(withdrawn).filter_map(Value::as_str).collect();
    let ours = frames(lines, false, "control_request");
    ours.filter(|frame| {
        frame["request_id"]
            .as_str()
            .is_none_or(|id| !settled.contains(id))
    })
    .map(|frame| {
        let request = &frame["request"];
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
