//! The tool calls and MCP messages in a frame, which have types of their own.

use std::collections::{HashMap, VecDeque};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{FrameFinding, compare, finding, mcp};
use crate::RawJson;
use crate::drift;
use crate::frame::Frame;
use crate::shared::{MessageContent, Usage};
use crate::tools::{AgentOutput, ToolInput, ToolOutput};

/// How many calls of a conversation are remembered; results of older ones are not judged.
const CALLS_KEPT: usize = 65_536;

/// The tool calls of a conversation so far: their results name the call, and not the tool.
#[derive(Debug, Default)]
pub(super) struct Calls {
    tools: HashMap<String, String>,
    order: VecDeque<String>,
    /// The client's other names of tools, see `toolAliases` of `initialize`.
    aliases: HashMap<String, String>,
}

impl Calls {
    /// Reads a frame that the client wrote.
    pub(super) fn learn(&mut self, frame: &Frame) {
        if (frame.kind(), frame.subtype()) != ("control_request", Some("initialize")) {
            return;
        }
        let raw = RawJson::from_text(&*frame.text());
        if let Ok(Anything {
            request: Some(request),
            ..
        }) = raw.and_then(|raw| raw.read())
        {
            self.aliases = request.aliases.unwrap_or_default();
        }
    }

    /// Judges the calls in a frame that the CLI wrote.
    pub(super) fn judge(&mut self, frame: &Frame) -> Vec<FrameFinding> {
        let raw = RawJson::from_text(&*frame.text());
        let read = raw.and_then(|raw| raw.read::<Anything>());
        // What the frame's own type does not take is a finding already.
        let Ok(anything) = read else {
            return Vec::new();
        };
        match frame.kind() {
            "assistant" => self.assistant(anything.message),
            "user" => self.user(anything.message, anything.tool_use_result),
            "control_request" => anything.request.map(requested).unwrap_or_default(),
            "result" => {
                let denials = anything.permission_denials.unwrap_or_default().into_iter();
                let refused = denials.flat_map(|denial| {
                    let place = "permission_denials[].tool_input";
                    input(place, &denial.tool_name, &denial.tool_input, Author::Model)
                });
                let deferred = anything.deferred_tool_use.into_iter().flat_map(|call| {
                    let place = "deferred_tool_use.input";
                    input(place, &call.name, &call.input, Author::Cli)
                });
                refused.chain(deferred).collect()
            }
            _ => Vec::new(),
        }
    }

    fn assistant(&mut self, message: Option<Content>) -> Vec<FrameFinding> {
        let blocks = message.map(|message| message.content).unwrap_or_default();
        let calls = blocks
            .into_iter()
            .filter_map(|block| block.read::<CheckedCall>().ok());
        let mut findings = Vec::new();
        for call in calls.filter(|call| call.kind == "tool_use") {
            findings.extend(input(
                "message.content[].input",
                &call.name,
                &call.input,
                Author::Model,
            ));
            self.remember(call.id, call.name);
        }
        findings
    }

    fn user(&self, message: Option<Content>, result: Option<RawJson>) -> Vec<FrameFinding> {
        let blocks = message.map(|message| message.content).unwrap_or_default();
        let results: Vec<CallResult> = blocks.iter().filter_map(|block| block.read().ok()).collect();
        // One result has one structure; of several results nobody knows whose it is.
        let ([of], Some(result)) = (results.as_slice(), result) else {
            return Vec::new();
        };
        let Some(tool) = self.tools.get(&of.tool_use_id) else {
            return Vec::new();
        };
        let tool = self.aliases.get(tool).unwrap_or(tool);
        output("tool_use_result", tool, &result)
    }

    fn remember(&mut self, id: String, tool: String) {
        if self.order.len() == CALLS_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.tools.remove(&oldest);
        }
        if self.tools.insert(id.clone(), tool).is_none() {
            self.order.push_back(id);
        }
    }
}

/// The calls in a control request.
fn requested(request: Request) -> Vec<FrameFinding> {
    if request.subtype == "can_use_tool"
        && let (Some(tool), Some(given)) = (&request.tool_name, &request.input)
    {
        return input("request.input", tool, given, Author::Cli);
    }
    if let (true, Some(message)) = (request.subtype == "mcp_message", &request.message) {
        return mcp::message("request.message", message);
    }
    let hook = match request.input {
        Some(input) if request.subtype == "hook_callback" => input.read::<Hook>(),
        _ => return Vec::new(),
    };
    let Ok(hook) = hook else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if let Some(tool) = &hook.tool_name {
        if let Some(given) = &hook.tool_input {
            findings.extend(input("request.input.tool_input", tool, given, Author::Cli));
        }
        if let Some(given) = &hook.tool_response {
            findings.extend(output("request.input.tool_response", tool, given));
        }
    }
    for call in hook.tool_calls.unwrap_or_default() {
        let place = "request.input.tool_calls[].tool_input";
        findings.extend(input(place, &call.tool_name, &call.tool_input, Author::Cli));
        if let Some(given) = &call.tool_response {
            // In a batch, the response is what the model reads.
            let place = "request.input.tool_calls[].tool_response";
            findings.extend(judged::<MessageContent>(place, given));
        }
    }
    findings
}

/// Who is responsible for an input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    /// The model, which may call tools that do not exist, with inputs that do not fit: no fault of the types.
    Model,
    /// The CLI, which has checked the input.
    Cli,
}

#[inline]
fn input(place: &str, tool: &str, given: &RawJson, author: Author) -> Vec<FrameFinding> {
    let (typed, drifts) = drift::watch(|| ToolInput::read(tool, given));
    let by_model = author == Author::Model;
    if by_model && matches!(typed, ToolInput::Unknown(_) | ToolInput::Misfit(_)) {
        return Vec::new();
    }
    let again = crate::whole::write(|| RawJson::encode(&typed));
    written_again(place, given, again, if by_model { &[] } else { &drifts })
}

#[inline]
fn output(place: &str, tool: &str, given: &RawJson) -> Vec<FrameFinding> {
    let (typed, drifts) = drift::watch(|| ToolOutput::read(tool, given));
    // A tool that does not exist has failed, with a text.
    if matches!(typed, ToolOutput::Unknown(_)) && given.get().starts_with('"') {
        return Vec::new();
    }
    let again = crate::whole::write(|| RawJson::encode(&typed));
    let mut findings = written_again(place, given, again, &drifts);
    // It is kept raw, since upstream declares parts of it as anything. What is recorded of it has a type.
    if let ToolOutput::Agent(output) = &typed
        && let AgentOutput::Completed(agent) = &**output
    {
        findings.extend(judged::<Usage>(&format!("{place}.usage"), &agent.usage));
    }
    findings
}

/// Judges a value by this type.
#[inline]
fn judged<T: DeserializeOwned + Serialize>(place: &str, given: &RawJson) -> Vec<FrameFinding> {
    let (typed, drifts) = drift::watch(|| given.read::<T>());
    let again = typed.and_then(|typed| crate::whole::write(|| RawJson::encode(&typed)));
    written_again(place, given, again, &drifts)
}

/// Compares a value with what its type wrote again.
pub(super) fn written_again(
    place: &str,
    given: &RawJson,
    again: Result<RawJson, serde_json::Error>,
    drifts: &[drift::Drift],
) -> Vec<FrameFinding> {
    let mut findings: Vec<FrameFinding> = drifts.iter().map(finding).collect();
    match again {
        Ok(again) => {
            let found = compare(given.get(), again.get(), &[]).into_iter();
            findings.extend(found.map(|finding| match finding {
                FrameFinding::Unmodelled(path) => FrameFinding::Unmodelled(format!("{place}.{path}")),
                FrameFinding::Altered(path) => FrameFinding::Altered(format!("{place}.{path}")),
                other => other,
            }));
        }
        Err(error) => findings.push(FrameFinding::Undecodable(format!("{place}: {error}"))),
    }
    findings
}

/// What any frame may have of calls.
#[derive(Deserialize)]
struct Anything {
    message: Option<Content>,
    tool_use_result: Option<RawJson>,
    request: Option<Request>,
    permission_denials: Option<Vec<Denial>>,
    deferred_tool_use: Option<Deferred>,
}

/// The content of a message; none if it is a text.
#[derive(Deserialize)]
struct Content {
    #[serde(default, deserialize_with = "blocks")]
    content: Vec<RawJson>,
}

fn blocks<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<RawJson>, D::Error> {
    let raw = RawJson::deserialize(deserializer)?;
    Ok(raw.read().unwrap_or_default())
}

#[derive(Deserialize)]
struct CheckedCall {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    name: String,
    input: RawJson,
}

#[derive(Deserialize)]
struct CallResult {
    tool_use_id: String,
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    subtype: String,
    tool_name: Option<String>,
    input: Option<RawJson>,
    message: Option<RawJson>,
    #[serde(rename = "toolAliases")]
    aliases: Option<HashMap<String, String>>,
}

#[derive(Deserialize)]
struct Hook {
    tool_name: Option<String>,
    tool_input: Option<RawJson>,
    tool_response: Option<RawJson>,
    tool_calls: Option<Vec<HookCall>>,
}

#[derive(Deserialize)]
struct HookCall {
    tool_name: String,
    tool_input: RawJson,
    tool_response: Option<RawJson>,
}

#[derive(Deserialize)]
struct Denial {
    tool_name: String,
    tool_input: RawJson,
}

#[derive(Deserialize)]
struct Deferred {
    name: String,
    input: RawJson,
}
