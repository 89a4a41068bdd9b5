//! A peer in memory that keeps nothing, so that what grows is the session's.

use outrigger::transport::Pipes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// How much one delta says when a turn says much, in bytes.
const DELTA: usize = 16 * 1024;

/// A peer whose turns say `turn_bytes`, or a word if that is 0.
pub(crate) fn spawn(turn_bytes: u64) -> Pipes {
    let (stdin, peer_stdin) = tokio::io::duplex(64 * 1024);
    let (mut peer_stdout, stdout) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let mut lines = BufReader::new(peer_stdin).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line: Value = serde_json::from_str(&line).unwrap();
            let answer = match line["type"].as_str() {
                Some("user") => turn(&line["uuid"], turn_bytes),
                Some("control_request") => vec![
                    json!({"type": "control_response", "response": {"subtype": "success",
                    "request_id": line["request_id"], "response": {"commands": [], "models": [], "capabilities": ["msg_lifecycle_v1"],
                    "account": {"apiKeySource": "ANTHROPIC_API_KEY"}}}}),
                ],
                _ => continue,
            };
            for line in answer {
                peer_stdout
                    .write_all(format!("{line}\n").as_bytes())
                    .await
                    .unwrap();
            }
        }
    });
    Pipes::new(stdin, stdout)
}

/// The frames of one turn, as the CLI writes them. What is only told apart by an id has a fresh one.
fn turn(prompt: &Value, bytes: u64) -> Vec<Value> {
    let fresh = |kind: &str| json!(format!("{kind}-{}", prompt.as_str().unwrap_or_default()));
    let life = |state: &str| json!({"type": "command_lifecycle", "command_uuid": prompt, "state": state, "session_id": "s"});
    let delta = |text: String| {
        json!({"type": "stream_event", "session_id": "s", "parent_tool_use_id": null, "uuid": fresh("delta"), "event":
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}})
    };
    let event = |event: Value| json!({"type": "stream_event", "session_id": "s", "parent_tool_use_id": null, "event": event});
    let text = match usize::try_from(bytes).unwrap() {
        0 => "a word".to_owned(),
        bytes => "x".repeat(bytes),
    };
    let task = fresh("task");
    let mut frames = vec![
        life("queued"),
        life("started"),
        json!({"type": "system", "subtype": "init", "session_id": "s", "apiKeySource": "ANTHROPIC_API_KEY", "user_message_uuid": prompt}),
        json!({"type": "system", "subtype": "task_started", "task_id": task, "tool_use_id": fresh("tool"), "task_type": "local_agent",
               "description": "d", "session_id": "s"}),
        event(
            json!({"type": "message_start", "message": {"id": fresh("message"), "type": "message", "role": "assistant", "model": "m", "content": []}}),
        ),
        event(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
    ];
    frames.extend(
        text.as_bytes()
            .chunks(DELTA)
            .map(|part| delta(String::from_utf8_lossy(part).into_owned())),
    );
    frames.extend([
        event(json!({"type": "content_block_stop", "index": 0})),
        event(json!({"type": "message_stop"})),
        json!({"type": "assistant", "session_id": "s", "parent_tool_use_id": null, "uuid": fresh("assistant"), "message":
            {"id": fresh("message"), "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": text}]}}),
        json!({"type": "system", "subtype": "task_notification", "task_id": task, "tool_use_id": fresh("tool"), "status": "completed",
               "summary": "d", "session_id": "s"}),
        // A kind that is new each time: they are counted apart up to a bound.
        json!({"type": fresh("novel"), "session_id": "s"}),
        life("completed"),
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "done", "num_turns": 1, "terminal_reason": "completed",
               "session_id": fresh("session"), "total_cost_usd": 0.5, "user_message_uuid": prompt}),
    ]);
    frames
}
