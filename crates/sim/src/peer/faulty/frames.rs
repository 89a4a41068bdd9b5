//! Frames as the CLI writes them, for scripts to use as they are or to spoil.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use crate::fields::JsonFields as _;
use crate::peer::agent::payload;

/// The session's id.
pub const SESSION: &str = "5e551000-0000-4000-8000-000000000001";

fn stamped(mut frame: Value) -> Value {
    frame.merge(json!({"session_id": SESSION, "uuid": "$uuid"}));
    frame
}

/// A `system` message of this subtype.
pub fn system(subtype: &str, fields: Value) -> Value {
    let mut frame = json!({"type": "system", "subtype": subtype});
    frame.merge(fields);
    stamped(frame)
}

/// The answer to the last control request, which is `initialize`.
pub fn initialized() -> Value {
    let mut frame = success(
        "$request",
        payload::initialize("/home/user", "default", payload::MODEL, "idle"),
    );
    frame["response"]["pending_permission_requests"] = json!([]);
    frame["response"]["pending_user_dialog_requests"] = json!([]);
    frame
}

/// A control request's good answer.
pub fn success(id: impl Serialize, payload: Value) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": payload}})
}

/// A control request's bad answer.
pub fn error(id: impl Serialize, message: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "error", "request_id": id, "error": message}})
}

/// The state of the last prompt: `queued`, `started`, `completed`, `cancelled`, `discarded`, `refused`.
pub fn lifecycle(state: &str) -> Value {
    lifecycle_of("$prompt", state)
}

/// The state of a prompt.
pub fn lifecycle_of(prompt: &str, state: &str) -> Value {
    stamped(json!({"type": "command_lifecycle", "command_uuid": prompt, "state": state}))
}

/// The beginning of a turn.
pub fn init() -> Value {
    stamped(payload::init(&payload::Init {
        cwd: Path::new("/home/user/project"),
        project: Path::new("/home/user/project"),
        home: "/home/user",
        session_id: SESSION,
        model: payload::MODEL,
        mode: "default",
        tools: payload::tools(),
        directories: &[],
        mcp_servers: json!([]),
    }))
}

/// The state of the session: `idle`, `running`, `requires_action`.
pub fn state(state: &str) -> Value {
    system("session_state_changed", json!({"state": state}))
}

/// A message of the model with these content blocks.
pub fn assistant(content: Value) -> Value {
    stamped(json!({
        "type": "assistant", "parent_tool_use_id": null, "request_id": "req_1", "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": payload::MODEL, "content": content,
            "stop_reason": null, "stop_sequence": null, "usage": payload::usage_so_far(10, 1), "context_management": null,
        },
    }))
}

/// A text of the model.
pub fn text(text: &str) -> Value {
    assistant(json!([{"type": "text", "text": text}]))
}

/// The model calls a tool.
pub fn tool_use(id: &str, name: &str, input: Value) -> Value {
    assistant(json!([{"type": "tool_use", "id": id, "name": name, "input": input}]))
}

/// A tool's result.
pub fn tool_result(id: &str, text: &str) -> Value {
    stamped(json!({
        "type": "user", "parent_tool_use_id": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": false}]},
        "tool_use_result": {"stdout": text, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false},
    }))
}

/// An event of the model's stream.
pub fn stream(event: Value) -> Value {
    stamped(json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}))
}

/// The beginning of a streamed message of one text block.
pub fn stream_begins() -> [Value; 2] {
    [
        stream(json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": payload::MODEL, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": payload::usage_so_far(10, 1),
        }})),
        stream(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
    ]
}

/// A piece of a streamed text.
pub fn delta(text: &str) -> Value {
    stream(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}))
}

/// The end of a streamed message, behind its `assistant` line.
pub fn stream_ends() -> [Value; 3] {
    [
        stream(json!({"type": "content_block_stop", "index": 0})),
        stream(
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
                      "usage": payload::usage_so_far(10, 5)}),
        ),
        stream(json!({"type": "message_stop"})),
    ]
}

/// The good end of the last prompt's turn.
pub fn result(text: &str) -> Value {
    result_of(&["$prompt"], text)
}

/// The good end of the turn of these prompts.
pub fn result_of(prompts: &[&str], text: &str) -> Value {
    let mut frame = nobodys_result(text);
    frame["user_message_uuids"] = json!(prompts);
    frame["user_message_uuid"] = json!(prompts.last());
    frame
}

/// The good end of a turn that answers no prompt.
pub fn nobodys_result(text: &str) -> Value {
    stamped(json!({
        "type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed", "result": text,
        "num_turns": 1, "duration_ms": 5, "duration_api_ms": 3, "stop_reason": "end_turn",
        "total_cost_usd": payload::cost(10, 5), "usage": payload::usage(10, 5),
        "modelUsage": {payload::MODEL: payload::model_usage(payload::MODEL, 10, 5)},
        "permission_denials": [], "subagent_stats": payload::subagent_stats(),
        "fast_mode_state": "off", "safety_stops": 0, "queued_turn_count": 0,
    }))
}

/// The end of a turn that background work began.
pub fn foreign_result(text: &str) -> Value {
    let mut frame = nobodys_result(text);
    frame["origin"] = json!({"kind": "task-notification", "producer": "session-task"});
    frame
}

/// The end of an interrupted turn.
pub fn aborted() -> Value {
    let mut frame = result("");
    frame["subtype"] = json!("error_during_execution");
    frame["is_error"] = json!(true);
    frame["terminal_reason"] = json!("aborted_streaming");
    frame["errors"] = json!(["[ede_diagnostic] aborted"]);
    if let Some(fields) = frame.as_object_mut() {
        fields.remove("result");
    }
    frame
}

/// A permission request for a tool.
pub fn ask(id: &str, tool: &str) -> Value {
    json!({"type": "control_request", "request_id": id, "request": {
        "subtype": "can_use_tool", "tool_name": tool, "display_name": tool, "tool_use_id": format!("toolu_{id}"),
        "input": {"command": "touch a.txt", "description": "touch a file"}, "description": "touch a file",
        "permission_suggestions": [],
    }})
}

/// Takes a question back.
pub fn withdraw(id: &str) -> Value {
    json!({"type": "control_cancel_request", "request_id": id})
}

/// An agent begins in the background: the list of what runs, and the beginning itself.
pub fn agent_begins(task: &str) -> [Value; 2] {
    [
        system(
            "background_tasks_changed",
            json!({"tasks": [{"task_id": task, "run_id": "run_1", "task_type": "local_agent",
                              "subagent_type": "general-purpose", "description": "sub task"}]}),
        ),
        system(
            "task_started",
            json!({"task_id": task, "run_id": "run_1", "tool_use_id": "toolu_agent", "description": "sub task",
                   "subagent_type": "general-purpose", "is_backgrounded": true, "spawn_depth": 1,
                   "task_type": "local_agent", "prompt": "look"}),
        ),
    ]
}

/// An agent in the background ends, and so does the list of what runs.
pub fn agent_ends(task: &str) -> [Value; 3] {
    [
        system(
            "task_updated",
            json!({"task_id": task, "run_id": "run_1", "patch": {"status": "completed", "end_time": 1}}),
        ),
        system(
            "task_notification",
            json!({"task_id": task, "run_id": "run_1", "tool_use_id": "toolu_agent", "status": "completed",
                   "output_file": "", "summary": "found it"}),
        ),
        system("background_tasks_changed", json!({"tasks": []})),
    ]
}
