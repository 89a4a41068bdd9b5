use super::*;

/// What is said, without where it begins and ends.
fn reduce(lines: &[&str]) -> Vec<String> {
    let events = all(lines);
    events.iter().filter(|event| !is_bound(event)).map(show).collect()
}

/// All that is told, to the end.
fn bounded(lines: &[&str]) -> Vec<String> {
    all(lines).iter().map(show).collect()
}

fn all(lines: &[&str]) -> Vec<Event> {
    let mut reducer = Reducer::default();
    let mut seen = Vec::new();
    for line in lines {
        reducer.push(&Frame::from_line(line.as_bytes()).remove(0));
        seen.extend(std::iter::from_fn(|| reducer.pop()));
    }
    reducer.end();
    seen.extend(std::iter::from_fn(|| reducer.pop()));
    seen
}

pub(super) fn is_bound(event: &Event) -> bool {
    match event {
        Event::MessageStart { .. }
        | Event::MessageStop { .. }
        | Event::ContentBlockStart { .. }
        | Event::ContentBlockStop { .. } => true,
        Event::Subagent(sub) => is_bound(&sub.event),
        _ => false,
    }
}

pub(super) fn show(event: &Event) -> String {
    let name = |id: &Option<String>| id.clone().unwrap_or_else(|| "?".to_owned());
    match event {
        Event::MessageStart { id, model } => format!("<{} {}", name(id), name(model)),
        Event::MessageStop {
            id,
            model,
            stop_reason,
        } => {
            let reason = stop_reason.as_ref().map_or("?", StopReason::as_str);
            format!("{} {} {reason}>", name(id), name(model))
        }
        Event::ContentBlockStart {
            message_id,
            index,
            kind,
        } => format!("[{}.{index} {kind}", name(message_id)),
        Event::ContentBlockStop {
            message_id,
            index,
            kind,
        } => format!("{}.{index} {kind}]", name(message_id)),
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
        #[cfg(feature = "serde")]
        Event::Unknown(unknown) => format!("unknown {}", unknown.kind),
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
fn what_a_gateway_leaves_out_hides_neither_text_nor_calls() {
    let line = r#"{"type":"assistant","message":{"id":"m","usage":{"input_tokens":null,"output_tokens":1.5},"content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"Bash","input":{}}]},"parent_tool_use_id":null,"session_id":"s","uuid":"u"}"#;
    assert_eq!(
        bounded(&[line]),
        [
            "<m ?",
            "[m.0 text",
            "text a",
            "m.0 text]",
            "[m.1 tool_use",
            "use Bash {}",
            "m.1 tool_use]",
            "m ? ?>"
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

fn result(more: &str) -> String {
    format!(r#"{{"type":"result","subtype":"success","is_error":false{more}}}"#)
}

fn borrowed(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

#[test]
fn messages_and_blocks_begin_and_end_where_nothing_streams() {
    let second = assistant("null", r#"{"type":"text","text":"b"}"#).replace(r#""id":"m""#, r#""id":"n""#);
    let lines = [
        assistant("null", r#"{"type":"text","text":"a"}"#),
        assistant("null", r#"{"type":"tool_use","id":"t","name":"Bash","input":{}}"#),
        second,
        result(r#","stop_reason":"end_turn","terminal_reason":"completed""#),
    ];
    assert_eq!(
        bounded(&borrowed(&lines)),
        [
            "<m x",
            "[m.0 text",
            "text a",
            "m.0 text]",
            "[m.1 tool_use",
            "use Bash {}",
            "m.1 tool_use]",
            "m x ?>",
            "<n x",
            "[n.0 text",
            "text b",
            "n.0 text]",
            "n x end_turn>",
        ]
    );
}

#[test]
fn messages_and_blocks_begin_and_end_as_they_stream() {
    let lines = [
        start(),
        stream(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#),
        delta(0, "hel"),
        delta(0, "lo"),
        assistant("null", r#"{"type":"text","text":"hello"}"#),
        stream(r#"{"type":"content_block_stop","index":0}"#),
        stream(
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"Bash","input":{}}}"#,
        ),
        stream(
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        ),
        assistant("null", r#"{"type":"tool_use","id":"t","name":"Bash","input":{}}"#),
        stream(r#"{"type":"content_block_stop","index":1}"#),
        stream(r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#),
        stream(r#"{"type":"message_stop"}"#),
    ];
    assert_eq!(
        bounded(&borrowed(&lines)),
        [
            "<m x",
            "[m.0 text",
            "text hel",
            "text lo",
            "m.0 text]",
            "[m.1 tool_use",
            "input {}",
            "use Bash {}",
            "m.1 tool_use]",
            "m x tool_use>",
        ]
    );
}

#[test]
fn what_breaks_off_ends_before_what_comes_next() {
    let other = start()
        .replace(r#""id":"m""#, r#""id":"n""#)
        .replace(r#""x""#, r#""y""#);
    let failed = assistant("null", r#"{"type":"text","text":"API Error: 529"}"#).replace(
        r#""parent_tool_use_id""#,
        r#""error":"server_error","parent_tool_use_id""#,
    );
    let lines = [
        start(),
        delta(0, "hel"),
        other,
        delta(0, "hello"),
        failed,
        delta(0, "!"),
    ];
    assert_eq!(
        bounded(&borrowed(&lines)),
        [
            "<m x",
            "[m.0 text",
            "text hel",
            "m.0 text]",
            "m x ?>",
            "<n y",
            "[n.0 text",
            "text hello",
            "n.0 text]",
            "n y ?>",
            "error server_error: API Error: 529",
            "<? ?",
            "[?.0 text",
            "text !",
            "?.0 text]",
            "? ? ?>",
        ]
    );
}

#[test]
fn a_subagent_ends_with_its_call_or_its_task() {
    let done = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"done"}]},"parent_tool_use_id":null,"session_id":"s","uuid":"u"}"#;
    let notified = r#"{"type":"system","subtype":"task_notification","task_id":"a","tool_use_id":"toolu_2","status":"completed","output_file":"","summary":"","uuid":"u","session_id":"s"}"#;
    let lines = [
        assistant(r#""toolu_1""#, r#"{"type":"text","text":"one"}"#),
        assistant(r#""toolu_2""#, r#"{"type":"text","text":"two"}"#),
        done.to_owned(),
        result(""),
        notified.to_owned(),
        assistant("null", r#"{"type":"text","text":"three"}"#),
    ];
    let seen = bounded(&borrowed(&lines));
    let seen: Vec<_> = seen
        .iter()
        .filter(|event| !event.starts_with("message"))
        .collect();
    assert_eq!(
        seen,
        [
            "sub(toolu_1) <m x",
            "sub(toolu_1) [m.0 text",
            "sub(toolu_1) text one",
            "sub(toolu_1) m.0 text]",
            "sub(toolu_2) <m x",
            "sub(toolu_2) [m.0 text",
            "sub(toolu_2) text two",
            "sub(toolu_2) m.0 text]",
            "sub(toolu_1) m x ?>",
            "result false done",
            "sub(toolu_2) m x ?>",
            "<m x",
            "[m.0 text",
            "text three",
            "m.0 text]",
            "m x ?>",
        ]
    );
}

#[test]
fn a_block_ends_where_pieces_were_left_out() {
    let mut reducer = Reducer::default();
    let mut seen = Vec::new();
    for line in [start(), delta(0, "hel")] {
        reducer.push(&Frame::from_line(line.into_bytes()).remove(0));
    }
    reducer.lagged(Lag { frames: 1, bytes: 9 });
    for line in [
        delta(0, "x"),
        assistant("null", r#"{"type":"text","text":"hello"}"#),
        stream(r#"{"type":"message_stop"}"#),
    ] {
        reducer.push(&Frame::from_line(line.into_bytes()).remove(0));
    }
    reducer.end();
    seen.extend(std::iter::from_fn(|| reducer.pop()));
    assert_eq!(
        seen.iter().map(show).collect::<Vec<_>>(),
        [
            "<m x",
            "[m.0 text",
            "text hel",
            "m.0 text]",
            "lagged 1",
            "[m.1 text",
            "text hello",
            "m.1 text]",
            "m x ?>",
        ]
    );
}
