//! MCP servers that are processes, signals to the CLI, prompts that wait, and what a process that takes a session up keeps.

use serde_json::{Value, json};

use super::{LONG, TOUCH, WAIT, allow, nothing};
use crate::scenario::{Reply, Scenario};

/// A server over stdio, with tools that answer, fail, ask the user, and wait until they are told to stop.
const SERVER: &str = r#"import json, sys

TOOLS = [
    {"name": "echo", "description": "Echoes", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "fail", "description": "Fails", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "ask", "description": "Asks", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "wait", "description": "Waits", "inputSchema": {"type": "object", "properties": {}}},
]
PROMPTS = [{"name": "greet", "description": "Greets", "arguments": [{"name": "whom", "required": False}]}]
SCHEMA = {"type": "object", "properties": {"colour": {"type": "string", "description": "a colour"}}, "required": ["colour"]}


def say(message):
    print(json.dumps(dict(jsonrpc="2.0", **message)), flush=True)


def text(id, text, **more):
    say({"id": id, "result": dict(content=[{"type": "text", "text": text}], **more)})


asked = None
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": "lab", "version": "1.0.0"}
        version = message["params"]["protocolVersion"]
        capabilities = {"tools": {}}
        if "prompts" in sys.argv:
            capabilities["prompts"] = {}
        say({"id": id, "result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}})
    elif method == "prompts/list":
        say({"id": id, "result": {"prompts": PROMPTS}})
    elif method == "prompts/get":
        whom = message["params"].get("arguments", {}).get("whom", "nobody")
        said = {"role": "user", "content": {"type": "text", "text": "%say hello " + whom}}
        say({"id": id, "result": {"messages": [said]}})
    elif method == "tools/list":
        say({"id": id, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        name = message["params"]["name"]
        if name == "echo":
            text(id, "echo: " + message["params"]["arguments"].get("text", ""))
        elif name == "fail":
            text(id, "it failed", isError=True)
        elif name == "ask":
            asked = id
            params = {"message": "Which colour?", "requestedSchema": SCHEMA}
            say({"id": "question", "method": "elicitation/create", "params": params})
        elif name == "wait":
            open("runs", "w").close()
    elif method == "notifications/cancelled":
        open("cancelled", "w").close()
    elif method == "ping":
        say({"id": id, "result": {}})
    elif method is None and id == "question":
        text(asked, "answer: " + json.dumps(message.get("result", {}).get("action")))
    elif id is not None:
        say({"id": id, "error": {"code": -32601, "message": "Method not found"}})
"#;

const CONFIG: &str =
    r#"{"mcpServers": {"lab": {"type": "stdio", "command": "python3", "args": ["server.py"]}}}"#;

fn lab(scenario: Scenario) -> Scenario {
    scenario
        .file("server.py", SERVER)
        .flags("--strict-mcp-config --allowedTools mcp__lab")
        .flag("--mcp-config", CONFIG)
}

/// The server with a prompt.
fn prompting(scenario: Scenario) -> Scenario {
    let config = CONFIG.replace("\"server.py\"", "\"server.py\", \"prompts\"");
    scenario
        .file("server.py", SERVER)
        .flags("--strict-mcp-config")
        .flag("--mcp-config", &config)
}

fn blue(_: &Value) -> Option<Reply> {
    Some(Reply::Payload(
        json!({"action": "accept", "content": {"colour": "blue"}}),
    ))
}

fn decline(_: &Value) -> Option<Reply> {
    Some(Reply::Payload(json!({"action": "decline"})))
}

pub(super) fn servers() -> Vec<Scenario> {
    let ask = "%tool mcp__lab__ask {}\n%say done";
    let hooks = json!({"hooks": {
        "Elicitation": [{"hookCallbackIds": ["hook_before"]}],
        "ElicitationResult": [{"hookCallbackIds": ["hook_behind"]}],
    }});
    vec![
        lab(Scenario::new("server_process"))
            .turn("%tool mcp__lab__echo {\"text\": \"x\"}\n%tool mcp__lab__fail {}\n%say done")
            .control(json!({"subtype": "mcp_status"})),
        Scenario::with_initialize("server_in_initialize", serde_json::from_str(CONFIG).unwrap_or_default())
            .file("server.py", SERVER)
            .flags("--await-initialize --strict-mcp-config --allowedTools mcp__lab")
            .turn("%tool mcp__lab__echo {\"text\": \"x\"}\n%tool mcp__lab__fail {}\n%say done")
            .control(json!({"subtype": "mcp_status"})),
        lab(Scenario::new("server_asks")).answer("elicitation", blue).turn(ask),
        lab(Scenario::new("server_asks_in_vain")).answer("elicitation", decline).turn(ask),
        lab(Scenario::new("server_asks_and_the_host_fails"))
            .answer("elicitation", |_| Some(Reply::Error("out of order")))
            .turn(ask),
        lab(Scenario::with_initialize("occasions_of_an_elicitation", hooks.clone()))
            .answer("hook_callback", nothing)
            .answer("elicitation", blue)
            .turn(ask),
        lab(Scenario::with_initialize("hook_answers_an_elicitation", hooks))
            .answer("hook_callback", |request| {
                Some(Reply::Payload(if request["input"]["hook_event_name"] == "Elicitation" {
                    json!({"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {"colour": "red"}}})
                } else {
                    json!({})
                }))
            })
            .answer("elicitation", blue)
            .turn(ask),
        lab(Scenario::new("interrupted_server"))
            .prompt("%tool mcp__lab__wait {}\n%say never")
            .until_file("runs")
            .control(json!({"subtype": "interrupt"}))
            .until("result")
            .until_file("cancelled")
            .turn("%say again"),
        prompting(Scenario::new("server_with_prompts"))
            .turn("%say one")
            .turn("/mcp__lab__greet you")
            .turn("/mcp__lab__greet")
            .turn("/mcp__lab__none")
            .control(json!({"subtype": "mcp_toggle", "serverName": "lab", "enabled": false}))
            .until("system/commands_changed")
            .turn("%say two"),
        prompting(Scenario::with_initialize("hooks_of_a_served_prompt", json!({"hooks": {
            "UserPromptSubmit": [{"hookCallbackIds": ["hook_submit"]}],
            "UserPromptExpansion": [{"hookCallbackIds": ["hook_expand"]}],
        }})))
            .answer("hook_callback", nothing)
            .turn("/mcp__lab__greet you"),
        Scenario::new("server_that_is_not_there")
            .flags("--strict-mcp-config")
            .flag("--mcp-config", r#"{"mcpServers": {"lab": {"type": "stdio", "command": "no-such-program", "args": []}}}"#)
            .turn("%say hello")
            .control(json!({"subtype": "mcp_status"})),
    ]
}

pub(super) fn signals() -> Vec<Scenario> {
    let streaming = |name| {
        Scenario::new(name)
            .flags("--include-partial-messages")
            .prompt(LONG)
            .until("stream_event/content_block_delta")
    };
    let asked = |name| {
        Scenario::new(name)
            .prompt(&format!("{TOUCH}\n%say never"))
            .until("control_request/can_use_tool")
    };
    let running = |name| {
        Scenario::new(name)
            .answer("can_use_tool", allow)
            .flags("--allowedTools Bash")
            .prompt(&format!("{WAIT}\n%say never"))
            .until_file("runs")
    };
    vec![
        Scenario::new("terminated_idle").turn("%say hello").signal("TERM"),
        streaming("terminated_stream").signal("TERM"),
        asked("terminated_question").signal("TERM"),
        running("terminated_command").signal("TERM"),
        Scenario::new("interrupted_idle_by_signal")
            .turn("%say hello")
            .signal("INT"),
        streaming("interrupted_stream_by_signal").signal("INT"),
        asked("interrupted_question_by_signal").signal("INT"),
        Scenario::new("hung_up_idle").turn("%say hello").signal("HUP"),
        streaming("killed_stream").signal("KILL"),
    ]
}

/// What a process that takes a session up keeps of the mode and the model that the last one was told.
pub(super) fn kept() -> Vec<Scenario> {
    let mode = |mode: &str| json!({"subtype": "set_permission_mode", "mode": mode});
    let model = |model: &str| json!({"subtype": "set_model", "model": model});
    // One that is not retired: the real CLI goes on with its default instead, from the day of the retirement on.
    let older = "claude-sonnet-4-6";
    let mut all = Vec::new();
    for (name, told, flags) in [
        ("edits", vec![mode("acceptEdits")], ""),
        ("plan", vec![mode("plan")], ""),
        ("dont_ask", vec![mode("dontAsk")], ""),
        (
            "plan_and_flag",
            vec![mode("plan")],
            " --permission-mode acceptEdits",
        ),
        ("plan_and_default", vec![mode("plan"), mode("default")], ""),
        ("older_model", vec![model(older)], ""),
        ("haiku", vec![model("haiku")], ""),
        ("sonnet", vec![model("sonnet")], ""),
        ("default_model", vec![model(older), model("default")], ""),
        ("model_and_flag", vec![model(older)], " --model opus"),
    ] {
        let begun = Scenario::new(&format!("kept_{name}"));
        let begun = told.into_iter().fold(begun, Scenario::control).turn("%say one");
        let resumed = begun
            .then_process()
            .flags(&format!("--resume {{session}}{flags}"));
        all.push(resumed.turn("%say two"));
    }
    let flagged = |name: &str, flags: &str| Scenario::new(name).flags(flags).turn("%say one");
    let told = |name: &str, request: Value| Scenario::new(name).control(request).turn("%say one");
    all.extend([
        flagged(
            "kept_of_a_flag",
            &format!("--model {older} --permission-mode plan"),
        )
        .then_process()
        .flags("--resume {session}")
        .turn("%say two"),
        told("kept_where_it_goes_on", model(older))
            .then_process()
            .flags("--continue")
            .turn("%say two"),
        told("kept_by_a_fork", model(older))
            .then_process()
            .flags("--resume {session} --fork-session")
            .turn("%say two"),
        told("kept_plan_by_a_fork", mode("plan"))
            .then_process()
            .flags("--resume {session} --fork-session")
            .turn("%say two"),
        Scenario::new("kept_beside_settings")
            .file(
                ".claude/settings.json",
                r#"{"permissions": {"defaultMode": "acceptEdits"}}"#,
            )
            .control(model(older))
            .control(mode("plan"))
            .turn("%say one")
            .then_process()
            .flags("--resume {session}")
            .turn("%say two"),
        Scenario::new("told_behind_the_turn")
            .turn("%say one")
            .control(mode("plan"))
            .control(model(older))
            .then_process()
            .flags("--resume {session}")
            .turn("%say two"),
    ]);
    all
}

pub(super) fn queue() -> Vec<Scenario> {
    vec![
        Scenario::new("prompt_for_later")
            .flags("--include-partial-messages")
            .prompt_with(1, LONG, json!({}))
            .until("stream_event/content_block_delta")
            .prompt_with(2, "%say later", json!({"priority": "later"}))
            .prompt_with(3, "%say next", json!({"priority": "next"}))
            .until("result")
            .until("result")
            .until("result"),
        Scenario::new("prompt_sent_twice")
            .prompt_with(1, "%say one", json!({}))
            .until("result")
            .prompt_with(1, "%say one", json!({}))
            .turn("%say two"),
        Scenario::new("prompts_without_uuids")
            .prompt(LONG)
            .until("system/init")
            .prompt("%say two")
            .prompt("%say three")
            .until("result")
            .until("result"),
        Scenario::new("two_prompts_folded")
            .flags("--allowedTools Bash")
            .prompt_with(1, &format!("{WAIT}\n%say done"), json!({}))
            .until_file("runs")
            .prompt_with(2, "and this", json!({}))
            .prompt_with(3, "and that", json!({}))
            .until("command_lifecycle/queued")
            .until("command_lifecycle/queued")
            .until("command_lifecycle/queued")
            .make_file("go")
            .until("result"),
    ]
}

/// Models by their names: those of today, older ones, such as are not there any more, and unknown ones.
pub(super) fn models() -> Vec<Scenario> {
    let named = [
        "claude-opus-5",
        "claude-sonnet-5",
        "claude-opus-4-8",
        "claude-opus-4-7",
        "claude-opus-4-6",
        "claude-opus-4-5-20251101",
        "claude-opus-4-1-20250805",
        "claude-opus-4-0",
        "claude-sonnet-4-6",
        "claude-sonnet-4-20250514",
        "claude-haiku-4-5",
        "claude-3-7-sonnet-latest",
        "claude-3-5-haiku-20241022",
        "claude-opus-9",
        "made-up",
        "best",
        "sonnet[1m]",
    ];
    let named_by_a_flag = |name: &&str| {
        let plain: String = name
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        Scenario::new(&format!("model_{}", plain.replace('-', "_")))
            .flag("--model", name)
            .turn("%say hello")
    };
    // A switch shows the rest of what a flag does.
    let mut all: Vec<Scenario> = named.iter().step_by(3).map(named_by_a_flag).collect();
    let switched = named
        .iter()
        .fold(Scenario::new("models_switched"), |scenario, name| {
            scenario
                .control(json!({"subtype": "set_model", "model": name}))
                .turn("%say hello")
        });
    all.push(switched);
    all
}
