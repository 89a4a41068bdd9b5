use super::*;

fn reduce(lines: &[&str]) -> Vec<String> {
    let mut reducer = Reducer::default();
    let mut seen = Vec::new();
    for line in lines {
        reducer.push(&Frame::from_line(line.as_bytes()).remove(0));
        while let Some(event) = reducer.pop() {
            seen.push(show(&event));
        }
    }
    seen
}

pub(super) fn show(event: &Event) -> String {
    match event {
        Event::Text(text) => format!("text {text}"),
        Event::Thinking(text) => format!("thinking {text}"),
        Event::ToolUse(tool) => format!("use {} {}", tool.name, tool.input),
        Event::ToolInput { partial_json, .. } => format!("input {partial_json}"),
        Event::ToolResult(result) => format!("result {} {}", result.is_error, result.text),
        Event::ApiError { kind, text } => format!("error {kind}: {text}"),
        Event::Subagent(sub) => format!("sub({}) {}", sub.parent_tool_use_id, show(&sub.event)),
        Event::Undecodable(_, misfit) => format!("undecodable {:?}", misfit.kind),
        Event::Block(block) => format!("block {}", block.tag()),
        Event::Message(message, _) => format!("message {}", message.to_body().unwrap()),
        Event::Lagged(lag) => format!("lagged {}", lag.frames),
    }
}

fn assistant(parent: &str, content: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m","type":"message","role":"assistant","model":"x","content":[{content}],"stop_reason":null,"stop_sequence":null,"usage":null}},"parent_tool_use_id":{parent},"uuid":"u","session_id":"s"}}"#
    )
}

fn stream(event: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{event},"parent_tool_use_id":null,"uuid":"u","session_id":"s"}}"#
    )
}

fn start() -> String {
    stream(
        r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"stop_sequence":null,"usage":null}}"#,
    )
}

fn delta(index: u64, text: &str) -> String {
    stream(&format!(
        r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":"{text}"}}}}"#
    ))
}

#[test]
fn streamed_text_is_not_said_again() {
    let said = assistant("null", r#"{"type":"text","text":"hello"}"#);
    let more = assistant("null", r#"{"type":"text","text":"second block"}"#);
    let lines = [
        start(),
        delta(0, "hel"),
        delta(0, "lo"),
        said,
        delta(1, "second"),
        more,
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    // The rest of a block that was cut off while streaming comes with its final line.
    assert_eq!(
        reduce(&lines),
        ["text hel", "text lo", "text second", "text  block"]
    );
}

#[test]
fn without_partial_messages_a_block_comes_whole() {
    let line = assistant(
        "null",
        r#"{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"Bash","input":{"x":1}}"#,
    );
    assert_eq!(reduce(&[&line]), ["thinking hm", "text a", r#"use Bash {"x":1}"#]);
}

#[test]
fn a_subagent_is_kept_apart() {
    let line = assistant(r#""toolu_1""#, r#"{"type":"text","text":"inner"}"#);
    assert_eq!(reduce(&[&line]), ["sub(toolu_1) text inner"]);
}

#[test]
fn tool_results_carry_text_and_output() {
    let line = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"url","url":"x"}}]}]},"tool_use_result":"Error: no","parent_tool_use_id":null,"session_id":"s","uuid":"u"}"#;
    assert_eq!(reduce(&[line]), ["result true no"]);
}

#[test]
fn an_undecodable_frame_does_not_hide_its_neighbours() {
    let good = assistant(
        "null",
        r#"{"type":"text","text":"a"},{"type":"never_seen","x":1},{"type":"text"}"#,
    );
    let bad = r#"{"type":"assistant","message":5,"parent_tool_use_id":null}"#;
    assert_eq!(
        reduce(&[&good, bad, &good]),
        [
            "text a",
            "block never_seen",
            "block text",
            "undecodable Shape",
            "text a",
            "block never_seen",
            "block text",
        ]
    );
}

#[test]
fn a_failed_api_call_is_no_text() {
    let line = assistant("null", r#"{"type":"text","text":"API Error: 529"}"#).replace(
        r#""parent_tool_use_id""#,
        r#""error":"server_error","parent_tool_use_id""#,
    );
    assert_eq!(reduce(&[&line]), ["error server_error: API Error: 529"]);
}
