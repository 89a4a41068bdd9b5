//! Tests of the judge: it has to find what is there, and nothing else.

use outrigger_protocol::RawJson;
use outrigger_protocol::check::*;
use outrigger_protocol::framer::Framed;

fn judge(direction: Direction, line: &str) -> Verdict {
    let mut checker = Checker::new();
    let mut verdicts = checker.line(direction, line.as_bytes());
    assert_eq!(verdicts.len(), 1);
    verdicts.remove(0)
}

fn unmodelled(verdict: &Verdict) -> Vec<&str> {
    verdict
        .findings
        .iter()
        .map(|finding| match finding {
            FrameFinding::Unmodelled(path) => path.as_str(),
            other => panic!("{other}"),
        })
        .collect()
}

#[test]
fn a_field_without_a_type_is_named_at_any_depth() {
    let verdict = judge(
        Direction::Out,
        r#"{"type":"system","subtype":"status","status":null,"uuid":"u","session_id":"s","new":null}"#,
    );
    assert_eq!(unmodelled(&verdict), ["new"]);
    let verdict = judge(
        Direction::Out,
        r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","x":{"y":1}}]},"parent_tool_use_id":null}"#,
    );
    assert_eq!(unmodelled(&verdict), ["message.content[].x"]);
    assert!(verdict.is_failure());
}

#[test]
fn payloads_of_others_are_not_looked_into() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let verdict = judge(
        Direction::Out,
        &format!(
            r#"{{"type":"user","message":{{"role":"user","content":"\ud83d"}},"tool_use_result":{{"any":{deep},"n":1e400,"s":"\ud83d"}}}}"#
        ),
    );
    assert_eq!(verdict.findings, []);
}

#[test]
fn numbers_are_equal_by_value() {
    let verdict = judge(
        Direction::Out,
        r#"{"type":"tool_progress","tool_use_id":"t","tool_name":"Bash","parent_tool_use_id":null,"elapsed_time_seconds":30,"uuid":"u","session_id":"s"}"#,
    );
    assert_eq!(verdict.findings, []);
    assert_eq!(compare("[5,1e2,0.1]", "[5.0,100,0.1]", &[]), []);
    assert_eq!(compare("9007199254740993", "9007199254740992", &[]).len(), 1);
}

#[test]
fn costs_keep_all_their_digits() {
    for cost in [
        "0.00014000000000000001",
        "0.0011200000000000001",
        "7.000000000000001e-05",
    ] {
        let typed: f64 = serde_json::from_str(cost).unwrap();
        assert_eq!(typed, cost.parse::<f64>().unwrap());
    }
}

#[test]
fn the_comparison_finds_what_is_missing_and_what_changed() {
    let finds = |original, typed| compare(original, typed, &["type"]);
    assert_eq!(finds(r#"{"type":"x","a":1}"#, r#"{"a":1,"b":null}"#), []);
    assert_eq!(
        finds(r#"{"a":{"type":1}}"#, r#"{"a":{}}"#),
        [FrameFinding::Unmodelled("a.type".into())]
    );
    assert_eq!(
        finds(r#"{"a":null}"#, r#"{}"#),
        [FrameFinding::Unmodelled("a".into())]
    );
    assert_eq!(
        finds(r#"{"a":1}"#, r#"{"a":null}"#),
        [FrameFinding::Altered("a".into())]
    );
    assert_eq!(finds(r#"{"a":"\u0041"}"#, r#"{"a":"A"}"#), []);
    assert_eq!(
        finds("[1,2]", "[1]"),
        [FrameFinding::Altered(" had 2 elements and has 1".into())]
    );
    // As in JavaScript, the last of two equal keys counts.
    assert_eq!(finds(r#"{"a":1,"a":2}"#, r#"{"a":2}"#), []);
}

#[test]
fn what_is_unknown_is_told_values_of_open_sets_too() {
    let kind = judge(Direction::Out, r#"{"type":"no_such_type"}"#);
    assert!(
        matches!(kind.findings.as_slice(), [FrameFinding::Unknown(_)]),
        "{kind:?}"
    );
    let subtype = judge(Direction::Out, r#"{"type":"system","subtype":"no_such_subtype"}"#);
    assert!(
        matches!(subtype.findings.as_slice(), [FrameFinding::Unknown(_)]),
        "{subtype:?}"
    );
    assert!(subtype.is_failure());
    let value = judge(
        Direction::Out,
        r#"{"type":"command_lifecycle","command_uuid":"c","state":"no_such_state","uuid":"u","session_id":"s"}"#,
    );
    assert!(
        matches!(value.findings.as_slice(), [FrameFinding::Unlisted(_)]),
        "{value:?}"
    );
    assert!(!value.is_clean() && value.is_failure());
}

#[test]
fn what_does_not_decode_is_told_with_the_reason() {
    let misfit = judge(Direction::Out, r#"{"type":"command_lifecycle","command_uuid":7}"#);
    match misfit.findings.as_slice() {
        [FrameFinding::Undecodable(reason)] => {
            assert!(reason.contains("invalid type: integer `7`"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
    let no_frame = judge(Direction::Out, "oops");
    assert!(matches!(
        no_frame.findings.as_slice(),
        [FrameFinding::Undecodable(_)]
    ));
    assert!(no_frame.is_failure());
}

#[test]
fn a_client_may_write_what_it_likes() {
    let verdict = judge(Direction::In, r#"{"type":"no_such_type","x":1}"#);
    assert!(
        matches!(verdict.findings.as_slice(), [FrameFinding::Unknown(_)]),
        "{verdict:?}"
    );
    assert!(!verdict.is_failure());
    let verdict = judge(
        Direction::In,
        r#"{"type":"control_request","request_id":"a","request":{"subtype":"set_model","model":null,"x":1}}"#,
    );
    assert_eq!(unmodelled(&verdict), ["request.x"]);
    assert!(!verdict.is_failure());
    let mut checker = Checker::new();
    assert!(checker.raw_text(Direction::In, "not json").is_empty());
    assert_eq!(checker.report().raw_lines, 1);
    // The CLI may not.
    assert_eq!(checker.raw_text(Direction::Out, "not json").len(), 1);
    assert!(!checker.report().passed());
}

#[test]
fn responses_are_told_by_the_request_that_they_answer() {
    let mut checker = Checker::new();
    let mut answers = |direction, line: &str| checker.line(direction, line.as_bytes()).remove(0).answers;
    let ask = |id: &str, subtype: &str| {
        format!(r#"{{"type":"control_request","request_id":{id},"request":{{"subtype":"{subtype}"}}}}"#)
    };
    let answer = |id: &str| {
        format!(r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{id}}}}}"#)
    };
    answers(Direction::In, &ask("7", "mcp_status"));
    answers(Direction::Out, &ask(r#""7""#, "no_such_subtype"));
    assert_eq!(
        answers(Direction::Out, &answer("7")).as_deref(),
        Some("mcp_status")
    );
    assert_eq!(
        answers(Direction::In, &answer(r#""7""#)).as_deref(),
        Some("no_such_subtype")
    );
    // An id that is used again, and the echo of an answer.
    answers(Direction::In, &ask(r#""a""#, "interrupt"));
    answers(Direction::In, &ask(r#""a""#, "set_model"));
    assert_eq!(
        answers(Direction::Out, &answer(r#""a""#)).as_deref(),
        Some("interrupt")
    );
    assert_eq!(
        answers(Direction::Out, &answer(r#""a""#)).as_deref(),
        Some("set_model")
    );
    answers(Direction::Out, &ask(r#""b""#, "can_use_tool"));
    assert_eq!(
        answers(Direction::In, &answer(r#""b""#)).as_deref(),
        Some("can_use_tool")
    );
    assert_eq!(
        answers(Direction::Out, &answer(r#""b""#)).as_deref(),
        Some("can_use_tool")
    );
    assert_eq!(answers(Direction::Out, &answer(r#""nobody asked""#)), None);
    checker.conversation();
    let verdicts = checker.line(Direction::Out, answer("7").as_bytes());
    assert_eq!(verdicts[0].answers, None);
}

#[test]
fn payloads_of_responses_are_judged_by_what_was_asked() {
    let mut checker = Checker::new();
    let mut line = |direction, line: &str| checker.line(direction, line.as_bytes()).remove(0);
    let answer = |payload: &str| {
        let answer =
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"a","response":"#;
        format!("{answer}{payload}}}}}")
    };
    line(
        Direction::In,
        r#"{"type":"control_request","request_id":"a","request":{"subtype":"interrupt"}}"#,
    );
    let verdict = line(Direction::Out, &answer(r#"{"still_queued":[],"new":1}"#));
    assert_eq!(unmodelled(&verdict), ["response.response.new"]);
    let verdict = line(Direction::Out, &answer(r#"{"still_queued":7}"#));
    assert!(
        matches!(verdict.findings.as_slice(), [FrameFinding::Undecodable(_)]),
        "{verdict:?}"
    );
    // An echo of an answer of the client is judged as that.
    line(
        Direction::Out,
        r#"{"type":"control_request","request_id":"b","request":{"subtype":"elicitation","mcp_server_name":"s","message":"m"}}"#,
    );
    let echo = answer(r#"{"action":"decline"}"#).replace(r#""a""#, r#""b""#);
    for direction in [Direction::In, Direction::Out] {
        assert_eq!(line(direction, &echo).findings, []);
    }
    // A request that has no type: what it gives back has none either.
    line(
        Direction::In,
        r#"{"type":"control_request","request_id":"a","request":{"subtype":"novel"}}"#,
    );
    line(Direction::Out, &answer("{}"));
    let verdict = line(Direction::Out, &answer("{}"));
    assert!(
        matches!(verdict.findings.as_slice(), [FrameFinding::Unknown(_)]),
        "{verdict:?}"
    );
}

#[test]
fn plain_lines_are_taken_for_the_side_that_writes_such() {
    let side = |line: &str| judge(Direction::Unknown, line).direction;
    assert_eq!(side(r#"{"type":"keep_alive"}"#), Direction::Out);
    assert_eq!(side(r#"{"type":"system","subtype":"init"}"#), Direction::Out);
    let ask = |subtype: &str| {
        format!(r#"{{"type":"control_request","request_id":"a","request":{{"subtype":"{subtype}"}}}}"#)
    };
    assert_eq!(side(&ask("can_use_tool")), Direction::Out);
    assert_eq!(side(&ask("interrupt")), Direction::In);
    assert_eq!(
        side(r#"{"type":"update_environment_variables","variables":{}}"#),
        Direction::In
    );
    let mut checker = Checker::new();
    checker.line(Direction::Unknown, ask("can_use_tool").as_bytes());
    let answer = br#"{"type":"control_response","response":{"subtype":"success","request_id":"a"}}"#;
    assert_eq!(
        checker.line(Direction::Unknown, answer)[0].direction,
        Direction::In
    );
}

#[test]
fn recordings_are_read() {
    let read = |line: &str| recorded(line.as_bytes());
    let frame = RawJson::from_text(r#"{"type": "keep_alive"}"#).unwrap();
    assert_eq!(
        read(r#"{"t": 0.5, "dir": "out", "msg": {"type": "keep_alive"}}"#),
        Recorded::Frame(Direction::Out, frame)
    );
    assert_eq!(
        read(r#"{"t": 0.5, "dir": "in", "msg": {"raw": "{\"a\n"}}"#),
        Recorded::Text(Direction::In, "{\"a\n".to_owned())
    );
    assert_eq!(
        read(r#"{"t": 0, "dir": "meta", "msg": {"scenario": "x"}}"#),
        Recorded::Start
    );
    assert_eq!(
        read(r#"{"t": 0, "dir": "meta", "msg": {"exit_code": 0}}"#),
        Recorded::Remark
    );
    assert_eq!(
        read(r#"{"t": 0, "dir": "err", "msg": {"raw": "oops"}}"#),
        Recorded::Remark
    );
    assert_eq!(read(r#"{"type":"keep_alive"}"#), Recorded::Plain);
    assert_eq!(read("not json"), Recorded::Plain);
}

#[test]
fn the_report_counts_by_kind() {
    let mut checker = Checker::new();
    for line in [
        r#"{"type":"keep_alive"}"#,
        r#"{"type":"keep_alive","x":1}"#,
        r#"{"type":"keep_alive","x":1}"#,
    ] {
        checker.line(Direction::Out, line.as_bytes());
    }
    let [kind] = checker.report().kinds.as_slice() else {
        panic!("{:?}", checker.report());
    };
    assert_eq!((kind.total, kind.typed, kind.failed), (3, 1, 2));
    assert_eq!(kind.unmodelled.get("x"), Some(&2));
    assert!(
        checker
            .report()
            .to_string()
            .contains("2 x field without a type: x")
    );
}

#[test]
fn what_is_no_utf8_is_told() {
    let mut checker = Checker::new();
    let verdicts = checker.line(Direction::Out, b"{\"type\":\"keep_alive\",\"x\":\"\xff\"}");
    let lost = FrameFinding::Lost("not UTF-8 at byte 26".to_owned());
    assert!(verdicts[0].findings.contains(&lost), "{verdicts:?}");
    assert!(!checker.report().passed());
    let enveloped = b"{\"dir\":\"out\",\"msg\":{\"type\":\"keep_alive\",\"x\":\"\xff\"}}";
    assert_eq!(recorded(enveloped), Recorded::Plain);
}

#[test]
fn a_line_that_is_too_long_is_told() {
    let mut checker = Checker::new();
    let head = br#"{"type":"assistant","message":"#[..].into();
    checker.framed(
        Direction::Unknown,
        Framed::Oversized {
            head,
            length: 1 << 40,
        },
    );
    let [kind] = checker.report().kinds.as_slice() else {
        panic!("{:?}", checker.report());
    };
    assert_eq!((kind.kind.as_str(), kind.failed), ("assistant", 1));
    assert!(
        kind.undecodable.keys().all(|why| why.contains("1099511627776")),
        "{kind:?}"
    );
}

#[test]
fn plain_lines_that_nobody_knows_are_the_clis_fault() {
    for line in [
        r#"{"type":"novel"}"#,
        r#"{"type":"system","subtype":"novel"}"#,
        r#"{"type":"control_request","request_id":"a","request":{"subtype":"novel"}}"#,
    ] {
        let verdict = judge(Direction::Unknown, line);
        assert!(
            verdict.direction == Direction::Out && verdict.is_failure(),
            "{verdict:?}"
        );
    }
}

#[test]
fn the_report_stays_small_whatever_is_said() {
    let mut checker = Checker::new();
    for number in 0..3000 {
        let kind = format!(r#"{{"type":"novel {number} {}"}}"#, "\\u001b[31m".repeat(500));
        checker.line(Direction::Out, kind.as_bytes());
        checker.line(
            Direction::Out,
            format!(r#"{{"type":"keep_alive","x{number}":1}}"#).as_bytes(),
        );
    }
    let report = checker.report();
    assert_eq!(report.frames(), 6000);
    let text = report.to_string();
    assert!(
        text.len() < 3_000_000 && !text.contains('\u{1b}'),
        "{}",
        text.len()
    );
    assert!(text.contains("(others)"));
}

/// A conversation with all the places where the CLI says what tools take and give, each with `{}` in it.
fn calls() -> Vec<String> {
    let edit = r#"{"file_path":"/a","old_string":"a","new_string":"b"{}}"#;
    let question = r#"{"questions":[{"question":"Which?","header":"Choice","multiSelect":false,"options":[{"label":"a","description":"b"{}}]}]}"#;
    let hook = r#""session_id":"s","transcript_path":"/t","cwd":"/c""#;
    let bash = r#"{"stdout":"","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false{}}"#;
    let call = |id: &str, name: &str, input: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"m","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":1,"output_tokens":1}}}},"parent_tool_use_id":null,"uuid":"u","session_id":"s"}}"#
        )
    };
    let result = |id: &str, output: &str| {
        format!(
            r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":""}}]}},"parent_tool_use_id":null,"uuid":"u","session_id":"s","tool_use_result":{output}}}"#
        )
    };
    let agent = r#"{"status":"completed","agentId":"a","prompt":"p","totalToolUseCount":0,"totalDurationMs":1,"totalTokens":2,"content":[{"type":"text","text":"t","citations":[{"any":1}]}],"usage":{"input_tokens":1,"output_tokens":1,"cache_creation":null,"fallback_credit":null,"iterations":null,"speed":null{}}}"#;
    let asked =
        |request: String| format!(r#"{{"type":"control_request","request_id":"r","request":{request}}}"#);
    vec![
        call("t1", "Edit", edit),
        call("t2", "AskUserQuestion", question),
        call("t3", "Bash", r#"{"command":"ls"}"#),
        result("t3", bash),
        asked(format!(
            r#"{{"subtype":"can_use_tool","tool_name":"Edit","tool_use_id":"t1","input":{edit}}}"#
        )),
        asked(format!(
            r#"{{"subtype":"hook_callback","callback_id":"h","input":{{{hook},"hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":{edit},"tool_use_id":"t1"}}}}"#
        )),
        asked(format!(
            r#"{{"subtype":"hook_callback","callback_id":"h","input":{{{hook},"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{{"command":"ls"}},"tool_response":{bash},"tool_use_id":"t3"}}}}"#
        )),
        asked(format!(
            r#"{{"subtype":"hook_callback","callback_id":"h","input":{{{hook},"hook_event_name":"PostToolBatch","tool_calls":[{{"tool_name":"Bash","tool_input":{{"command":"ls"}},"tool_use_id":"t3","tool_response":[{{"type":"text","text":"a"{{}}}}]}}]}}}}"#
        )),
        asked(
            r#"{"subtype":"mcp_message","server_name":"s","message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"any":{"b":[2]}},"_meta":{"progressToken":1}{}}}}"#
                .to_owned(),
        ),
        asked(
            r#"{"subtype":"mcp_message","server_name":"s","message":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"any":{"a":1}},"clientInfo":{"name":"n","version":"1"{}}}}}"#
                .to_owned(),
        ),
        call("t4", "Agent", r#"{"description":"d","prompt":"p"}"#),
        result("t4", agent),
    ]
}

#[test]
fn what_tools_take_and_give_is_judged_by_the_types_of_the_tools() {
    let findings = |planted: Option<usize>, field: &str| {
        let mut checker = Checker::new();
        let mut found = Vec::new();
        for (at, line) in calls().into_iter().enumerate() {
            let line = line.replace("{}", if planted == Some(at) { field } else { "" });
            for verdict in checker.line(Direction::Out, line.as_bytes()) {
                found.extend(verdict.findings.into_iter().map(|finding| (at, finding)));
            }
        }
        found
    };
    assert_eq!(findings(None, ""), []);
    let planted: Vec<usize> = (0..calls().len())
        .filter(|at| calls()[*at].contains("{}"))
        .collect();
    assert_eq!(planted, [0, 1, 3, 4, 5, 6, 7, 8, 9, 11]);
    for at in planted {
        let found = findings(Some(at), r#","zz_new":1"#);
        assert!(
            matches!(found.as_slice(), [(place, FrameFinding::Unmodelled(path))] if *place == at && path.ends_with("zz_new")),
            "{}: {found:?}",
            calls()[at]
        );
    }
}

#[test]
fn a_mistake_of_the_model_is_no_fault_of_the_types() {
    let call = &calls()[0];
    for (name, input) in [("Edit", r#"{"file_path":7}"#), ("NoSuchTool", r#"{"a":1}"#)] {
        let line = call.replace(r#""name":"Edit""#, &format!(r#""name":"{name}""#));
        let at = line.find(r#""input":"#).unwrap() + 8;
        let end = line.find(r#"}],"stop_reason""#).unwrap();
        let line = format!("{}{input}{}", &line[..at], &line[end..]);
        assert_eq!(judge(Direction::Out, &line).findings, [], "{line}");
    }
}

#[test]
fn what_a_tool_of_an_mcp_server_gave_is_judged_by_the_specification_of_mcp() {
    let findings = |content: &str| {
        let mut checker = Checker::new();
        let asked = r#"{"type":"control_request","request_id":"r","request":{"subtype":"mcp_call","server":"s","tool":"t"}}"#;
        checker.line(Direction::In, asked.as_bytes());
        let reply = format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"r","response":{{"content":{content}}}}}}}"#
        );
        checker.line(Direction::Out, reply.as_bytes()).remove(0).findings
    };
    assert_eq!(findings(r#"[{"type":"text","text":"a"}]"#), []);
    assert_eq!(findings(r#""a""#), []);
    assert_eq!(
        findings(r#"[{"type":"text","text":"a","zz_new":1}]"#),
        [FrameFinding::Unmodelled(
            "response.response.content[].zz_new".into()
        )]
    );
    let unknown = r#"{"type":"control_request","request_id":"r","request":{"subtype":"mcp_message","server_name":"s","message":{"jsonrpc":"2.0","id":1,"method":"zz/new","params":{}}}}"#;
    assert!(matches!(
        judge(Direction::Out, unknown).findings.as_slice(),
        [FrameFinding::Unknown(_)]
    ));
}
