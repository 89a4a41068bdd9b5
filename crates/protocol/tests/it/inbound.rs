//! Frames that are easy to get wrong.

use outrigger_protocol::inbound::*;
use outrigger_protocol::shared::{ContentBlock, ListOr, Origin, WebFetchContent};
use outrigger_protocol::{Frame, drift};

fn decode(line: &str) -> Message {
    let (message, drift) = drift::watch(|| Frame::from_line(line.as_bytes()).remove(0).decode());
    assert_eq!(drift, []);
    message.unwrap()
}

#[test]
fn an_api_error_is_a_success_that_failed_and_its_type_comes_late() {
    let Message::Result(result) = decode(
        r#"{"duration_ms":1,"duration_api_ms":0,"is_error":true,"num_turns":1,"stop_reason":"stop_sequence","session_id":"s","total_cost_usd":0.00014000000000000001,"usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":null,"iterations":[]},"modelUsage":{"m":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":0.00014000000000000001,"contextWindow":1,"maxOutputTokens":1,"cacheCreationEphemeral5mInputTokens":3}},"permission_denials":[],"type":"result","subtype":"success","result":"API Error","api_error_status":529,"terminal_reason":"api_error","uuid":"u"}"#,
    ) else {
        panic!();
    };
    assert_eq!(result.subtype, ResultSubtype::Success);
    assert!(result.is_error);
    assert_eq!(result.terminal_reason, Some(TerminalReason::ApiError));
    assert_eq!(result.total_cost_usd.to_string(), "0.00014000000000000001");
    assert_eq!(
        result.model_usage["m"].cache_creation_ephemeral_5m_input_tokens,
        Some(3)
    );
}

#[test]
fn results_of_the_apis_own_tools_have_a_shape_for_success_and_one_for_failure() {
    let block = |text: &str| serde_json::from_str::<ContentBlock>(text).unwrap();
    let found = block(
        r#"{"type":"web_search_tool_result","tool_use_id":"t","content":[{"type":"web_search_result","url":"u","title":"t","encrypted_content":"e","page_age":null}]}"#,
    );
    let ContentBlock::WebSearchToolResult(found) = found else {
        panic!()
    };
    assert!(matches!(&found.content, ListOr::List(hits) if hits[0].url == "u"));
    let failed = block(
        r#"{"type":"web_search_tool_result","tool_use_id":"t","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}"#,
    );
    let ContentBlock::WebSearchToolResult(failed) = failed else {
        panic!()
    };
    assert!(
        matches!(&failed.content, ListOr::One(error) if error.error_code.as_str() == "max_uses_exceeded")
    );
    let page = block(
        r#"{"type":"web_fetch_tool_result","tool_use_id":"t","content":{"type":"web_fetch_result","url":"u","retrieved_at":null,"content":{"type":"document","title":null,"citations":null,"source":{"type":"text","media_type":"text/plain","data":"x"}}}}"#,
    );
    let ContentBlock::WebFetchToolResult(page) = page else {
        panic!()
    };
    let WebFetchContent::Result(page) = &page.content else {
        panic!()
    };
    assert!(matches!(&*page.content, ContentBlock::Document(_)));
}

#[test]
fn a_turn_that_background_work_began_says_so() {
    let origin: Origin =
        serde_json::from_str(r#"{"kind":"task-notification","producer":"session-task","runId":"r"}"#)
            .unwrap();
    assert!(matches!(&origin, Origin::TaskNotification(task) if task.run_id.as_deref() == Some("r")));
    let text = serde_json::to_string(&origin).unwrap();
    assert_eq!(
        text,
        r#"{"kind":"task-notification","producer":"session-task","runId":"r"}"#
    );
    assert!(matches!(
        serde_json::from_str(r#"{"kind":"human"}"#).unwrap(),
        Origin::Human(_)
    ));
}

#[test]
fn responses_keep_the_id_that_they_were_asked_with() {
    let id = |response: &str| {
        let line = format!(r#"{{"type":"control_response","response":{response}}}"#);
        let Message::ControlResponse(response) = decode(&line) else {
            panic!()
        };
        match response.response {
            ControlResult::Success(success) => success.request_id.map(|id| format!("{id:?}")),
            ControlResult::Error(error) => error.request_id.map(|id| format!("{id:?}")),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        id(r#"{"subtype":"success","request_id":7}"#).as_deref(),
        Some("7")
    );
    assert_eq!(
        id(r#"{"subtype":"error","request_id":"7","error":"no"}"#).as_deref(),
        Some(r#""7""#)
    );
    assert_eq!(id(r#"{"subtype":"success","response":{}}"#), None);
}

#[test]
fn a_request_of_an_unknown_kind_still_has_an_id_to_answer() {
    let frame = Frame::from_line(
        br#"{"type":"control_request","request_id":"r","request":{"subtype":"novel","x":1}}"#.as_slice(),
    )
    .remove(0);
    let Ok(Message::ControlRequest(request)) = frame.decode() else {
        panic!()
    };
    assert_eq!(request.request_id.as_str(), "r");
    assert_eq!(request.request.tag(), "novel");
    let misfit =
        br#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":1}}"#;
    let Ok(Message::ControlRequest(request)) = Frame::from_line(misfit.as_slice()).remove(0).decode() else {
        panic!();
    };
    assert_eq!(request.request_id.as_str(), "r");
    assert!(matches!(request.request, InboundRequest::Misfit(_)));
}

#[test]
fn a_lone_surrogate_spoils_nothing_but_itself() {
    let Message::Assistant(assistant) = decode(
        r#"{"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"cut \ud83d"},{"type":"tool_use","id":"t","name":"n","input":{"a":"\ud83d"}}]},"parent_tool_use_id":null,"uuid":"u","session_id":"s"}"#,
    ) else {
        panic!();
    };
    let [ContentBlock::Text(text), ContentBlock::ToolUse(call)] = assistant.message.content.as_slice() else {
        panic!();
    };
    assert_eq!(text.text, "cut \u{fffd}");
    assert_eq!(call.input.get(), r#"{"a":"\ud83d"}"#);
}

#[test]
fn a_status_of_null_is_a_status() {
    let line = r#"{"type":"system","subtype":"status","status":null,"permissionMode":"plan","uuid":"u","session_id":"s"}"#;
    let Message::System(system) = decode(line) else {
        panic!()
    };
    let SystemMessage::Status(status) = *system else {
        panic!()
    };
    assert!(status.status.is_none());
    assert_eq!(status.permission_mode.unwrap().as_str(), "plan");
}

#[test]
fn what_a_gateway_writes_beside_the_content_does_not_hide_it() {
    let (content, rest) = (
        r#""content":[{"type":"text","text":"hi"}]"#,
        r#""session_id":"s","parent_tool_use_id":null,"uuid":"u""#,
    );
    for (odd, noted) in [
        (
            r#""model":"m","usage":{"input_tokens":null,"output_tokens":1}"#,
            1,
        ),
        (r#""model":"m","usage":{"input_tokens":1.5}"#, 1),
        (
            r#""model":null,"usage":{},"container":"c","context_management":[]"#,
            3,
        ),
        (r#""usage":null,"diagnostics":null"#, 0),
    ] {
        let line = format!(r#"{{"type":"assistant","message":{{{odd},{content}}},{rest}}}"#);
        let (message, drift) = drift::watch(|| Frame::from_line(line.as_bytes()).remove(0).decode());
        let Ok(Message::Assistant(assistant)) = message else {
            panic!("{odd}: {message:?}");
        };
        let [ContentBlock::Text(text)] = &assistant.message.content[..] else {
            panic!("{odd}: {assistant:?}");
        };
        assert_eq!(
            (text.text.as_str(), drift.len()),
            ("hi", noted),
            "{odd}: {drift:?}"
        );
        let line = format!(
            r#"{{"type":"stream_event","event":{{"type":"message_start","message":{{{odd},"content":null}}}},{rest}}}"#
        );
        let Message::StreamEvent(event) = Frame::from_line(line.as_bytes()).remove(0).decode().unwrap()
        else {
            panic!("{odd}");
        };
        assert!(
            matches!(event.event, ApiStreamEvent::MessageStart(_)),
            "{odd}: {event:?}"
        );
    }
    // One odd count hides no other, and a result has them, too.
    let line = r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":-1,
        "total_cost_usd":null,"usage":{"input_tokens":2.5,"output_tokens":7},"session_id":"s","uuid":"u",
        "modelUsage":{"a":{"inputTokens":2.5,"costUSD":null},"b":{"inputTokens":7,"costUSD":1}}}"#;
    let line = line.replace('\n', "");
    let (message, drift) = drift::watch(|| Frame::from_line(line.as_bytes()).remove(0).decode());
    let Ok(Message::Result(result)) = message else {
        panic!("{message:?}");
    };
    assert_eq!((result.usage.input_tokens, result.usage.output_tokens), (3, 7));
    let models = result.model_usage.values();
    let tokens: Vec<_> = models.map(|model| (model.input_tokens, model.cost_usd)).collect();
    assert_eq!(tokens, [(3, 0.0), (7, 1.0)]);
    assert_eq!(
        (result.num_turns, result.total_cost_usd, drift.len()),
        (0, 0.0, 5)
    );
    // Nor does a limit that says oddly when it ends: that it is reached is what counts.
    let line = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":9.5,
        "unifiedWindows":{"five_hour":{"utilization":1,"resetsAt":null}}},"uuid":"u","session_id":"s"}"#;
    let frame = Frame::from_line(line.replace('\n', "").as_bytes()).remove(0);
    let Ok(Message::RateLimitEvent(event)) = frame.decode() else {
        panic!("{frame:?}");
    };
    assert_eq!(event.rate_limit_info.resets_at, Some(10));
    // Content that is no list is a misfit, and no message without content.
    let line = format!(r#"{{"type":"assistant","message":{{"model":"m","content":"hi"}},{rest}}}"#);
    assert!(Frame::from_line(line.as_bytes()).remove(0).decode().is_err());
}
