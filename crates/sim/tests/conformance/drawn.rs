//! Scenarios that are drawn at random, and what is done with one in which the two CLIs part.

mod grammar;

use std::collections::HashMap;

use outrigger_sim::conform::Spoken;
use proptest::strategy::{Strategy as _, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::scenario::{Reply, Scenario};

use grammar::drawn;

/// A scenario that was drawn: data, so that it can be printed, kept in a file and played again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Drawn {
    /// What the processes are started with.
    flags: Vec<String>,
    /// The events for which the client has a hook.
    hooks: Vec<String>,
    /// How hooks answer; which one does is decided by what is asked.
    hook_answers: Vec<HookAnswer>,
    /// How permission requests are answered; which one is taken is decided by what is asked.
    permissions: Vec<Permission>,
    acts: Vec<Act>,
}

/// How a hook answers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum HookAnswer {
    Nothing,
    /// A decision about the call, before it; nothing elsewhere.
    Allow,
    Deny,
    Ask,
    ChangeInput,
    Context,
    Block,
    Stop,
    SystemMessage,
    Fail,
}

/// How a permission request is answered.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Permission {
    Allow,
    GiveBack,
    ChangeInput,
    TakeSuggestions,
    AddRule,
    AcceptEdits,
    Deny,
    Interrupt,
    Fail,
}

/// What the client does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Act {
    /// Sends a prompt that makes the model do this, and reads to the result.
    Turn(Vec<String>),
    /// As `Turn`, with a uuid.
    Named(Vec<String>),
    /// Sends a control request and waits for the reply.
    Control(Value),
    /// Interrupts a turn at a moment that does not depend on time.
    Interrupt(Moment),
    /// Ends the process and starts another one with these flags.
    Process(Vec<String>),
}

impl Act {
    /// Whether a response of the model has several calls.
    fn calls_beside(&self) -> bool {
        match self {
            Self::Turn(lines) | Self::Named(lines) => lines.iter().any(|line| line.starts_with("%+tool")),
            _ => false,
        }
    }
}

/// When a turn is interrupted.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Moment {
    /// Before the first byte of the answer.
    BeforeTheAnswer,
    /// While the client is asked for permission and does not reply.
    Question,
    /// While a command runs.
    Command,
    /// While calls run beside each other, and one waits for them.
    Calls,
}

/// What is in the project and beside it.
const FILES: &[(&str, &str)] = &[
    ("x.txt", "one\ntwo\nthree\n"),
    ("src/lib.rs", "fn a() {}\nfn b() {}\n"),
    ("empty.txt", ""),
    ("a b.txt", "space\n"),
    (".env", "SECRET=1\n"),
    ("crlf.txt", "one\r\ntwo\r\n"),
    ("../outside.txt", "out\n"),
    ("../extra/e.txt", "e\n"),
    ("../home/h.txt", "home\n"),
    ("../elsewhere/f.txt", "far\n"),
];

impl Drawn {
    /// The scenario to play, under this name.
    pub(crate) fn scenario(&self, name: &str) -> Scenario {
        let hooks = || -> Value {
            let hooks = self.hooks.iter();
            let hooks = hooks.map(|event| (event.clone(), json!([{"hookCallbackIds": [event]}])));
            Value::Object(hooks.collect())
        };
        let fields = || json!({"hooks": hooks(), "sdkMcpServers": ["calc"]});
        let mut scenario = Scenario::with_initialize(name, fields())
            .link("out.txt", "../outside.txt")
            .link("outdir", "../extra");
        for (path, content) in FILES {
            scenario = scenario.file(path, content);
        }
        scenario = self.answering(scenario);
        let mut number = 0;
        for act in &self.acts {
            number += 1;
            scenario = match act {
                Act::Turn(lines) => scenario.turn(&lines.join("\n")),
                Act::Named(lines) => scenario
                    .prompt_with(number, &lines.join("\n"), json!({}))
                    .until("result"),
                Act::Control(request) => scenario.control(request.clone()),
                Act::Interrupt(moment) => interrupt(scenario, *moment, number),
                Act::Process(flags) => {
                    let next = scenario.then_process_with(fields());
                    let next = flags.iter().fold(next, |next, flag| next.argument(flag));
                    self.answering(next)
                }
            };
        }
        scenario
    }

    /// What holds in each process.
    fn answering(&self, scenario: Scenario) -> Scenario {
        let scenario = self
            .flags
            .iter()
            .fold(scenario, |scenario, flag| scenario.argument(flag))
            .variable("IS_SANDBOX", "1")
            .variable("CLAUDE_CODE_MAX_RETRIES", "2");
        let hooks = self.hook_answers.clone();
        let mut permissions = self.permissions.clone();
        if self.acts.iter().any(Act::calls_beside) {
            // How much of such a response has come when an answer ends the turn is a matter of milliseconds.
            let ends = |permission: &&mut Permission| matches!(permission, Permission::Interrupt);
            for permission in permissions.iter_mut().filter(ends) {
                *permission = Permission::Deny;
            }
        }
        scenario
            .answer("mcp_message", server)
            .answer("hook_callback", move |request| {
                let input = &request["input"];
                let event = input["hook_event_name"].as_str().unwrap_or_default();
                if mentions(&input["prompt"]) || mentions(&input["tool_input"]) {
                    return Some(Reply::Payload(json!({})));
                }
                chosen(
                    &hooks,
                    &[
                        &input["tool_name"],
                        &input["tool_input"],
                        &input["hook_event_name"],
                    ],
                )
                .map(|answer| answer.reply(event, &input["tool_input"], input["stop_hook_active"] == true))
            })
            .answer("can_use_tool", move |request| {
                if mentions(&request["input"]) {
                    let runs = ["Bash", LOOK].iter().any(|tool| request["tool_name"] == *tool);
                    return runs.then(|| Permission::Allow.reply(request));
                }
                chosen(&permissions, &[&request["tool_name"], &request["input"]])
                    .map(|permission| permission.reply(request))
            })
    }
}

/// The tool of the server that changes nothing.
const LOOK: &str = "mcp__calc__look";

/// The server, with a tool beside which others run.
fn server(request: &Value) -> Option<Reply> {
    let message = &request["message"];
    if message["method"] == "tools/call" && message["params"]["name"] == "look" {
        let result = json!({"content": [{"type": "text", "text": "seen"}]});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let open = mentions(&message["params"]);
        return (!open).then(|| Reply::Payload(json!({"mcp_response": answer})));
    }
    let mut reply = super::scenarios::calc(request)?;
    if let Reply::Payload(payload) = &mut reply
        && let Some(tools) = payload
            .pointer_mut("/mcp_response/result/tools")
            .and_then(Value::as_array_mut)
    {
        tools.push(json!({
            "name": "look", "description": "Looks", "inputSchema": {"type": "object", "properties": {}},
            "annotations": {"readOnlyHint": true},
        }));
    }
    Some(reply)
}

/// What is in the input of a call that has to come to where it is interrupted, and in its prompt.
const TO_BE_INTERRUPTED: &str = "never";

fn interrupt(scenario: Scenario, moment: Moment, number: u32) -> Scenario {
    let asking =
        |scenario: Scenario| scenario.control(json!({"subtype": "set_permission_mode", "mode": "default"}));
    let begun = match moment {
        Moment::BeforeTheAnswer => scenario.prompt("%delay 60000\n%say never").until("system/init"),
        Moment::Question => {
            let option = |label| json!({"label": label, "description": "or not"});
            let question = json!({"question": "Ever or never?", "header": "When", "options": [option("Ever"), option("Never")]});
            asking(scenario)
                .prompt(&format!(
                    "%tool AskUserQuestion {}\n%say never",
                    json!({"questions": [question]})
                ))
                .until("control_request/can_use_tool")
        }
        Moment::Command => {
            let runs = format!("never{number}.txt");
            let command = format!("tail -f x.txt > {runs}");
            asking(scenario)
                .prompt(&format!("%tool Bash {}\n%say never", json!({"command": command})))
                .until_file(&runs)
        }
        Moment::Calls => {
            let written = json!({"file_path": "never.txt", "content": ""});
            let look = |text: &str| format!("{LOOK} {}", json!({"text": text}));
            asking(scenario)
                .prompt(&format!(
                    "%tool {}\n%+tool {}\n%+tool Write {written}\n%say never",
                    look("never"),
                    look("never again")
                ))
                .until("control_request/mcp_message/tools/call")
                .until("control_request/mcp_message/tools/call")
        }
    };
    begun.control(json!({"subtype": "interrupt"})).until("result")
}

fn mentions(value: &Value) -> bool {
    value.to_string().contains(TO_BE_INTERRUPTED)
}

/// One of these, always the same one for the same question.
fn chosen<'a, T>(all: &'a [T], asked: &[&Value]) -> Option<&'a T> {
    // FNV-1a: the choice must not change with the version of a library.
    let text = asked.iter().map(|value| value.to_string()).collect::<String>();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    all.get((hash % (all.len().max(1) as u64)) as usize)
}

impl HookAnswer {
    fn reply(self, event: &str, input: &Value, again: bool) -> Reply {
        let before = event == "PreToolUse";
        let specific = |mut output: Value| {
            output["hookEventName"] = json!(event);
            Reply::Payload(json!({"hookSpecificOutput": output}))
        };
        let decision = |decision: &str| {
            specific(json!({"permissionDecision": decision, "permissionDecisionReason": "so"}))
        };
        match self {
            Self::Allow if before => decision("allow"),
            Self::Deny if before => decision("deny"),
            Self::Ask if before => decision("ask"),
            Self::ChangeInput if before => specific(json!({"updatedInput": changed(input)})),
            Self::Context
                if matches!(
                    event,
                    "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "UserPromptSubmit"
                ) =>
            {
                specific(json!({"additionalContext": "by the way"}))
            }
            Self::Block if !again => Reply::Payload(json!({"decision": "block", "reason": "not so"})),
            Self::Stop => Reply::Payload(json!({"continue": false, "stopReason": "enough"})),
            Self::SystemMessage => Reply::Payload(json!({"systemMessage": "take care"})),
            Self::Fail => Reply::Error("broken"),
            _ => Reply::Payload(json!({})),
        }
    }
}

/// Another input for the same tool.
fn changed(input: &Value) -> Value {
    let mut input = input.clone();
    for (field, value) in [
        ("command", "echo changed"),
        ("file_path", "changed.txt"),
        ("content", "changed\n"),
        ("description", "changed"),
    ] {
        if input[field].is_string() {
            input[field] = json!(value);
        }
    }
    input
}

impl Permission {
    fn reply(self, request: &Value) -> Reply {
        let allowed = |mut more: Value| {
            more["behavior"] = json!("allow");
            Reply::Payload(more)
        };
        let input = &request["input"];
        // A question is answered, whatever is drawn for it, unless it is refused.
        let answered = |mut input: Value| {
            for question in request["input"]["questions"].as_array().into_iter().flatten() {
                if let Some(text) = question["question"].as_str() {
                    input["answers"][text] = question["options"][0]["label"].clone();
                }
            }
            input
        };
        match self {
            Self::Allow => allowed(json!({})),
            Self::GiveBack => allowed(json!({"updatedInput": answered(input.clone())})),
            Self::ChangeInput => allowed(json!({"updatedInput": answered(changed(input))})),
            Self::TakeSuggestions => {
                allowed(json!({"updatedPermissions": request["permission_suggestions"]}))
            }
            Self::AddRule => allowed(json!({"updatedPermissions": [{
                "type": "addRules", "rules": [{"toolName": request["tool_name"]}], "behavior": "allow", "destination": "session",
            }]})),
            Self::AcceptEdits => allowed(json!({"updatedPermissions": [
                {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
            ]})),
            Self::Deny => Reply::Payload(json!({"behavior": "deny", "message": "no"})),
            Self::Interrupt => {
                Reply::Payload(json!({"behavior": "deny", "message": "no", "interrupt": true}))
            }
            Self::Fail => Reply::Error("out of order"),
        }
    }
}

/// The call of the main agent that a frame is about, if it is about one.
fn call_of(kind: &str, frame: &Value, outer: &HashMap<String, String>) -> Option<String> {
    let request = &frame["request"];
    let id = match kind {
        _ if frame["parent_tool_use_id"].is_string() => &frame["parent_tool_use_id"],
        "user/tool_result" => &frame["message"]["content"][0]["tool_use_id"],
        "control_request/mcp_message/tools/call" => {
            &request["message"]["params"]["_meta"]["claudecode/toolUseId"]
        }
        "system/task_updated" => &frame["task_id"],
        _ if kind.starts_with("control_request/") && request["input"]["agent_id"].is_string() => {
            &request["input"]["agent_id"]
        }
        _ if kind.starts_with("control_request/") => &request["tool_use_id"],
        _ => &frame["tool_use_id"],
    };
    let id = id.as_str()?;
    Some(outer.get(id).map_or(id, String::as_str).to_owned())
}

/// The calls of the main agent by what is within them: agents, and the calls of these.
fn outer_calls(process: &[(String, Value)]) -> HashMap<String, String> {
    let mut outer = HashMap::new();
    for (_, frame) in process {
        let within = match &frame["subtype"] {
            started if started == "task_started" => (&frame["task_id"], &frame["tool_use_id"]),
            _ => (
                &frame["message"]["content"][0]["id"],
                &frame["parent_tool_use_id"],
            ),
        };
        if let (Some(inner), Some(call)) = (within.0.as_str(), within.1.as_str()) {
            outer.insert(inner.to_owned(), call.to_owned());
        }
    }
    outer
}

/// The calls that have others in the same response, in their order.
fn in_company(process: &[(String, Value)]) -> Vec<String> {
    let calls = process.iter().filter(|(kind, _)| kind == "assistant/tool_use");
    let calls: Vec<(&Value, &Value)> = calls
        .map(|(_, frame)| (&frame["message"]["id"], &frame["message"]["content"][0]["id"]))
        .collect();
    let alone = |message: &Value| calls.iter().filter(|(other, _)| *other == message).count() == 1;
    let together = calls.iter().filter(|(message, _)| !alone(message));
    together
        .filter_map(|(_, id)| id.as_str().map(str::to_owned))
        .collect()
}

/// The frames whose order among each other does not depend on time: how the real CLI interleaves the answer of the API with the
/// calls that it starts meanwhile, what servers are asked, and what it says of the queue is a matter of milliseconds.
pub(crate) fn in_lanes(mut spoken: Spoken) -> Spoken {
    let lane = |kind: &str| match kind {
        _ if kind.starts_with("stream_event/") => 1,
        _ if kind.starts_with("control_request/mcp_message/") && !kind.ends_with("/call") => 2,
        _ if kind.starts_with("command_lifecycle") => 3,
        "control_response/nobody/success" | "control_response/nobody/error" => 4,
        _ if kind.starts_with("control_response/") => 5,
        // Before or behind the question whether the call may be made.
        "assistant/subagent/tool_use" => 7,
        _ => 0,
    };
    // A replayed prompt comes while the API is asked already.
    let replayed = |frame: &Value| frame["isReplay"] == true;
    // That a hook for the prompt has failed comes before or behind the beginning of the first turn.
    let of_the_prompt = |frame: &Value| {
        let content = frame["content"].as_str().unwrap_or_default();
        frame["tag"] == "hook_callback_failed" && content.starts_with("UserPromptSubmit")
    };
    let mut lanes = Vec::new();
    let mut next = 10;
    for process in spoken
        .frames
        .split_inclusive(|(kind, _)| kind.starts_with("exit/"))
    {
        // Calls run beside each other: which is faster is a matter of time.
        let (together, outer) = (in_company(process), outer_calls(process));
        let beside = |kind: &str, frame: &Value| match kind {
            "assistant/subagent/tool_use" => None,
            "system/informational" if !together.is_empty() => Some(0),
            _ => {
                let id = call_of(kind, frame, &outer)?;
                together
                    .iter()
                    .position(|call| *call == id)
                    .map(|number| 1 + number)
            }
        };
        lanes.extend(process.iter().map(|(kind, frame)| match () {
            () if replayed(frame) => 6,
            () if of_the_prompt(frame) => 8,
            () => beside(kind, frame).map_or_else(|| lane(kind), |number| next + number),
        }));
        next += 1 + together.len();
    }
    let mut frames: Vec<_> = lanes.into_iter().zip(spoken.frames.drain(..)).collect();
    frames.sort_by_key(|(lane, _)| *lane);
    spoken.frames.extend(frames.into_iter().map(|(_, frame)| frame));
    spoken
}

/// The scenario of this number, with all that it can be shrunk to.
pub(crate) fn tree(seed: u64, number: u64) -> impl ValueTree<Value = Drawn> {
    // A strategy without a filter rejects nothing.
    drawn()
        .new_tree(&mut runner(seed.wrapping_mul(1 << 20).wrapping_add(number)))
        .expect("a scenario")
}

/// Draws scenarios, the same ones for the same seed.
fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}
