//! Verdicts, from the results that were recorded for them.

use super::*;

fn frame(text: String) -> Frame {
    Frame::from_line(text.into_bytes()).remove(0)
}

fn result(fields: &str) -> Frame {
    frame(format!(r#"{{"type":"result",{fields}}}"#))
}

/// Of a turn in which these frames came before the result.
fn after(frames: &[&str], fields: &str) -> Outcome {
    let mut around = Around::default();
    for line in frames {
        around.before.on_frame(&frame((*line).to_owned()));
    }
    Outcome::of_result(&result(fields), TurnUsage::default(), Vec::new(), &around)
}

fn verdict(fields: &str) -> Verdict {
    after(&[], fields).verdict().clone()
}

fn verdict_with(fields: &str, around: &Around) -> Verdict {
    Verdict::of(&Facts::read(&result(fields), around))
}

#[test]
fn a_result_that_was_cut_off_is_one() {
    let frame = |head: &str| {
        let framed = outrigger_protocol::framer::Framed::Oversized {
            head: head.as_bytes().to_vec(),
            length: 1_000_000,
        };
        Frame::read(framed).remove(0)
    };
    let cut = frame(r#"{"subtype":"success","is_error":false,"result":"so lo"#);
    assert!(is_result(&cut));
    let facts = Facts::read(&cut, &Around::default());
    assert_eq!(
        Verdict::of(&facts),
        Verdict::Failed(Cause::TurnFailed("unreadable_result".into()))
    );
    assert!(facts.errors[0].contains("1000000 bytes"), "{:?}", facts.errors);
    assert!(!is_result(&frame(r#"{"message":{"content":[{"text":"so lo"#)));
}

#[test]
fn the_truth_table() {
    use Cause::*;
    use Verdict::*;
    let other = |reason: &str| Failed(TurnFailed(reason.to_owned()));
    let table = [
        (
            r#""subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":1,"result":"hi""#,
            Completed,
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":0,"local_command":"context","result":"x""#,
            LocalCommand(Some("context".into())),
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":0,"result":"""#,
            Appended,
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"background_requested","result":"""#,
            Backgrounded,
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"tool_deferred","result":"""#,
            Deferred,
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":0,"result":"Operation stopped by hook""#,
            NotRun,
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"hook_stopped","result":"""#,
            StoppedByHook,
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"stop_hook_prevented","result":"""#,
            StoppedByHook,
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","num_turns":2"#,
            Interrupted,
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","num_turns":3"#,
            Interrupted,
        ),
        (
            r#""subtype":"success","is_error":false,"terminal_reason":"aborted_streaming","num_turns":1"#,
            Interrupted,
        ),
        (
            r#""subtype":"error_max_turns","is_error":true,"terminal_reason":"max_turns","num_turns":2"#,
            Failed(MaxTurns),
        ),
        (
            r#""subtype":"error_max_turns","is_error":true,"num_turns":2"#,
            Failed(MaxTurns),
        ),
        (
            r#""subtype":"error_max_budget_usd","is_error":true,"terminal_reason":"budget_exhausted","num_turns":1"#,
            Failed(Budget),
        ),
        (
            r#""subtype":"error_max_budget_usd","is_error":true,"num_turns":1"#,
            Failed(Budget),
        ),
        (
            r#""subtype":"error_max_structured_output_retries","is_error":true,"num_turns":5"#,
            Failed(StructuredOutput),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"prompt_too_long","num_turns":1"#,
            Failed(TooLong),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"blocking_limit","num_turns":1"#,
            Failed(TooLong),
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["it broke"]"#,
            Failed(StartupFailed(None)),
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["No conversation found with session ID: 1"]"#,
            Failed(UnknownSession),
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"startup_failure_reason":"proxy_invalid""#,
            Failed(StartupFailed(Some("proxy_invalid".into()))),
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"startup_failure_reason":"bypass_root""#,
            Failed(RootBypass),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":529,"num_turns":1"#,
            Failed(Api { status: Some(529) }),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":429,"num_turns":1"#,
            Failed(RateLimit),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":401,"num_turns":1"#,
            Failed(InvalidKey),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":null,"num_turns":1"#,
            Failed(Api { status: None }),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","stop_reason":"refusal","num_turns":1"#,
            Failed(Refused),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error":"connection_failed","num_turns":1"#,
            Failed(ConnectionFailed),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error":"max_output_tokens","num_turns":4"#,
            Failed(MaxOutputTokens),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error":"usage_limit_reached","num_turns":1"#,
            Failed(RateLimit),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error":"something_new","num_turns":1"#,
            Failed(Api { status: None }),
        ),
        // A reason of the CLI's own, and an answer of the API.
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"image_error","num_turns":1"#,
            other("image_error"),
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"image_error","api_error_status":413,"num_turns":1"#,
            Failed(Api { status: Some(413) }),
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"num_turns":2"#,
            other("error_during_execution"),
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"something_new","result":"""#,
            other("something_new"),
        ),
        (
            r#""subtype":"error_something_new","is_error":false,"num_turns":1"#,
            other("error_something_new"),
        ),
        (
            r#""subtype":"success","num_turns":1,"result":"no is_error""#,
            other("success"),
        ),
        (r#""is_error":{"mistyped":1},"subtype":7"#, other("")),
        // Refusals are none of a turn that went on after one.
        (
            r#""subtype":"success","is_error":false,"terminal_reason":"completed","stop_reason":"end_turn","safety_stops":1,"num_turns":2,"result":"ok""#,
            Completed,
        ),
    ];
    for (fields, expected) in table {
        assert_eq!(verdict(fields), expected, "{fields}");
        let is_success = matches!(
            expected,
            Completed | LocalCommand(_) | Appended | Backgrounded | Deferred
        );
        assert_eq!(expected.is_success(), is_success, "{expected}");
        let has_answer = matches!(expected, Completed | LocalCommand(_));
        assert_eq!(expected.has_answer(), has_answer, "{expected}");
    }
}

/// The same three ends as CLIs tell them that say less the older they are: with the last message before the result, as it was
/// recorded of 2.1.330, 2.1.100, 2.1.50, 2.0.77 and 2.0.30.
#[test]
fn a_refusal_a_missing_login_and_a_broken_connection_are_three_things() {
    let reasons = [
        r#","terminal_reason":"api_error""#,
        r#","terminal_reason":"completed""#,
        "",
    ];
    for reason in reasons {
        let of = |message: &str, said: &str| {
            let message = format!(r#"{{"type":"assistant","parent_tool_use_id":null{message}}}"#);
            after(
                &[&message],
                &format!(r#""subtype":"success","is_error":true,"num_turns":1{reason}{said}"#),
            )
        };
        for (message, said, cause) in [
            (
                r#","error":"invalid_request""#,
                r#","stop_reason":"refusal","result":"API Error: Opus 5.5's safeguards flagged this message""#,
                Cause::Refused,
            ),
            (
                r#","error":"invalid_request""#,
                r#","stop_reason":"stop_sequence","result":"API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy (…). Try rephrasing""#,
                Cause::Refused,
            ),
            (
                r#","error":"authentication_failed""#,
                r#","result":"Not logged in · Please run /login""#,
                Cause::NotLoggedIn,
            ),
            (
                r#","error":"authentication_failed""#,
                r#","result":"words that nobody knows""#,
                Cause::NotLoggedIn,
            ),
            (
                "",
                r#","result":"Invalid API key · Please run /login""#,
                Cause::NotLoggedIn,
            ),
            (
                r#","error":"authentication_failed","api_error_status":401"#,
                r#","result":"Invalid API key · Fix external API key""#,
                Cause::InvalidKey,
            ),
            (
                "",
                r#","result":"Invalid API key · Fix external API key""#,
                Cause::InvalidKey,
            ),
            (
                r#","error":"server_error","api_error":"connection_failed""#,
                r#","result":"words that nobody knows""#,
                Cause::ConnectionFailed,
            ),
            (
                r#","error":"unknown""#,
                r#","result":"API Error: Unable to connect to API. Check your internet connection""#,
                Cause::ConnectionFailed,
            ),
            (
                "",
                r#","result":"API Error: Connection error.""#,
                Cause::ConnectionFailed,
            ),
            (
                r#","error":"unknown""#,
                r#","result":"API Error: 529 {\"message\":\"Not logged in\"}""#,
                Cause::Api { status: Some(529) },
            ),
            (
                r#","error":"rate_limit""#,
                r#","result":"API Error: Request rejected (429)""#,
                Cause::RateLimit,
            ),
            (
                r#","error":"billing_error","api_error_status":400"#,
                r#","result":"Credit balance is too low""#,
                Cause::Billing,
            ),
            (
                r#","error":"authentication_failed","api_error_status":403"#,
                r#","result":"Failed to authenticate. API Error: 403 no""#,
                Cause::Api { status: Some(403) },
            ),
            (
                r#","error":"something_new""#,
                r#","result":"words that nobody knows""#,
                Cause::Api { status: None },
            ),
        ] {
            let outcome = of(message, said);
            assert_eq!(outcome.cause(), Some(cause), "{message} {said} {reason}");
            assert!(outcome.error_text().is_some());
        }
        let told = r#"{"type":"system","subtype":"model_refusal_no_fallback"}"#;
        let refused = after(
            &[told],
            &format!(r#""subtype":"success","is_error":true,"num_turns":1{reason}"#),
        );
        assert_eq!(refused.cause(), Some(Cause::Refused));
    }
    // What a subagent met is not what the turn ended with.
    let of_subagent = r#"{"type":"assistant","parent_tool_use_id":"t","error":"authentication_failed"}"#;
    let outcome = after(
        &[of_subagent],
        r#""subtype":"success","is_error":true,"terminal_reason":"api_error","num_turns":1"#,
    );
    assert_eq!(outcome.cause(), Some(Cause::Api { status: None }));
}

#[test]
fn when_to_try_again() {
    let failed = |status: u16| {
        format!(
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":{status},"num_turns":1"#
        )
    };
    let retry =
        r#"{"type":"system","subtype":"api_retry","attempt":2,"retry_delay_ms":1503.5,"error_status":529}"#;
    let outcome = after(&[retry], &failed(529));
    assert!(outcome.is_transient());
    assert_eq!(outcome.retry_after(), Some(Duration::from_micros(1_503_500)));
    let error = outcome.answer().unwrap_err();
    assert!(error.is_transient());
    assert_eq!(error.retry_after(), Some(Duration::from_micros(1_503_500)));
    assert_eq!(after(&[], &failed(529)).retry_after(), None);
    // What does not pass is not tried again.
    for status in [400, 401, 403, 404] {
        let outcome = after(&[retry], &failed(status));
        assert_eq!(
            (outcome.is_transient(), outcome.retry_after()),
            (false, None),
            "{status}"
        );
    }
    let odd = r#"{"type":"system","subtype":"api_retry","retry_delay_ms":-1}"#;
    assert_eq!(after(&[odd], &failed(529)).retry_after(), None);

    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let limit = |status: &str, at: u64| {
        format!(r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"{status}","resetsAt":{at}}}}}"#)
    };
    let resets = after(&[&limit("rejected", now + 3600), retry], &failed(429));
    let wait = resets.retry_after().unwrap().as_secs();
    assert!((3590..=3600).contains(&wait), "{wait}");
    let past = after(&[&limit("rejected", now - 5)], &failed(429));
    assert_eq!(past.retry_after(), Some(Duration::ZERO));
    // A limit that lets requests through is not the one that was met.
    let other = after(&[&limit("allowed_warning", now + 3600), retry], &failed(429));
    assert_eq!(other.retry_after(), Some(Duration::from_micros(1_503_500)));
    let in_message = format!(
        r#"{{"type":"assistant","error":"rate_limit","api_error_params":{{"rate_limit_info":{{"status":"rejected","resetsAt":{}}}}}}}"#,
        now + 60
    );
    let wait = after(&[&in_message], &failed(429)).retry_after().unwrap();
    assert!((50..=60).contains(&wait.as_secs()), "{wait:?}");
}

/// CLIs before 2.1.150 tell of an interrupted turn as of one that broke.
#[test]
fn an_interrupt_is_known_by_who_asked_for_it() {
    let asked = Around {
        interrupted: true,
        ..Around::default()
    };
    let broke = r#""subtype":"error_during_execution","is_error":true"#;
    for turns in [0, 2] {
        let fields = format!(r#"{broke},"num_turns":{turns}"#);
        assert_eq!(verdict_with(&fields, &asked), Verdict::Interrupted);
        assert!(matches!(verdict(&fields), Verdict::Failed(_)));
    }
    for fields in [
        // It was faster.
        r#""subtype":"success","is_error":false,"num_turns":1,"result":"done""#,
        r#""subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":1,"result":"done""#,
        // So was what made it fail.
        r#""subtype":"success","is_error":true,"num_turns":1,"result":"API Error: Connection error.""#,
        r#""subtype":"error_max_turns","is_error":true,"num_turns":1"#,
        r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"model_error","num_turns":1"#,
        r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["No conversation found with session ID: 1"]"#,
        r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"startup_failure_reason":"proxy_invalid""#,
    ] {
        assert_eq!(verdict_with(fields, &asked), verdict(fields), "{fields}");
        assert_ne!(verdict(fields), Verdict::Interrupted, "{fields}");
    }
}

#[test]
fn only_an_answer_is_one() {
    for (fields, text) in [
        (
            r#""subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":1,"result":"hi","total_cost_usd":0.5,"uuid":"u","session_id":"s""#,
            "hi",
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":0,"local_command":"context","result":"12 tokens""#,
            "12 tokens",
        ),
    ] {
        let outcome = after(&[], fields);
        assert_eq!(outcome.error_text(), None);
        let answer = outcome.answer().unwrap();
        assert_eq!((answer.text(), answer.to_string().as_str()), (text, text));
        assert_eq!(answer.value(), text);
        assert!(answer.outcome().is_success() && answer.other_outcomes().is_empty());
        assert_eq!(answer.session_id(), answer.outcome().session_id());
        assert_eq!(answer.into_value(), text);
    }
    for (fields, said) in [
        (
            r#""subtype":"success","is_error":false,"num_turns":0,"result":"""#,
            "the turn has no answer: appended without a turn",
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"background_requested","result":"part of it""#,
            "the turn has no answer: moved to the background",
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"tool_deferred","result":"part of it""#,
            "the turn has no answer: deferred",
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":0,"result":"Operation stopped by hook: no""#,
            "the turn has no answer: not run: Operation stopped by hook: no",
        ),
        (
            r#""subtype":"success","is_error":false,"num_turns":1,"terminal_reason":"hook_stopped","result":"""#,
            "the turn has no answer: stopped by a hook",
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","num_turns":3,"errors":["[ede_diagnostic] x"]"#,
            "the turn has no answer: interrupted",
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":500,"num_turns":1,"result":"API Error: 500 no""#,
            "the turn failed: the API answered 500: API Error: 500 no",
        ),
        (
            r#""subtype":"error_max_turns","is_error":true,"terminal_reason":"max_turns","num_turns":2,"errors":["Reached maximum number of turns (1)"]"#,
            "the turn failed: the limit of turns is reached: Reached maximum number of turns (1)",
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"model_error","num_turns":2"#,
            "the turn failed: model_error",
        ),
    ] {
        let outcome = after(&[], fields);
        let verdict = outcome.verdict().clone();
        let error = outcome.answer().unwrap_err();
        assert_eq!(error.to_string(), said);
        assert_eq!(error.outcome().unwrap().verdict(), &verdict);
        assert_eq!(error.cause(), verdict.cause().cloned());
    }
    // A turn without a result has none either.
    for verdict in [
        Verdict::Cancelled,
        Verdict::NoResult,
        Verdict::Dropped("refused".into()),
    ] {
        let outcome = Outcome::without_result(verdict, ["p"]);
        assert!(!outcome.is_success() && outcome.answer().is_err());
    }
}

/// One recorded result of the real CLI for each way in which it ended turns.
#[test]
fn the_truth_table_holds_for_recorded_results() {
    let mut seen = Vec::new();
    for line in include_str!("../../tests/fixtures/results.jsonl").lines() {
        let recorded: std::collections::BTreeMap<String, RawJson> = serde_json::from_str(line).unwrap();
        let frame = Frame::from_line(recorded["msg"].get().as_bytes()).remove(0);
        let scenario: String = recorded["scenario"].decode().unwrap();
        let outcome = Outcome::of_result(&frame, TurnUsage::default(), Vec::new(), &Around::default());
        let success = if outcome.is_success() { "+" } else { "-" };
        seen.push(format!("{success} {scenario}: {}", outcome.verdict()));
    }
    assert_eq!(
        seen,
        [
            "- api_idle_stream: interrupted",
            "- hook_pending_interrupt: interrupted",
            "- mcp_await_initialize.not_first: failed: it refused a line of input",
            "- resume.5_unknown_uuid: failed: the session is unknown",
            "- max_budget: failed: the budget is spent",
            "- structured_output_invalid.bad_input: failed: the output does not fit the schema",
            "- max_turns.1: failed: the limit of turns is reached",
            "- queue_priorities.now: interrupted",
            "+ api_stop_reasons.empty: completed",
            "+ background_bash: completed",
            "+ all_controls: completed",
            "+ structured_output_flag: completed",
            "- hook_pretooluse.continue_false: stopped by a hook",
            "+ hooks_all_events: local command clear",
            "+ hooks_all_events: local command compact",
            "+ slash_commands: local command context",
            "+ slash_commands: local command cost",
            "- hook_userpromptsubmit.block: not run",
            "- api_error_mid_tool_loop: failed: the API answered 400",
            "- api_errors_fatal.403: failed: the API answered 403",
            "- api_errors_fatal.404: failed: the API answered 404",
            "- api_errors_exhausted.429: failed: the rate limit is reached",
            "- api_errors_exhausted.500: failed: the API answered 500",
            "- api_529_default_retries: failed: the API answered 529",
            "- api_connection_refused: failed: the API was not reached, or the connection broke",
            "- big_prompt.3mb_text: failed: the conversation is too long",
            "- api_errors_fatal.413: failed: the API answered 413",
            "- api_errors_fatal.prompt_too_long: failed: the conversation is too long",
        ]
    );
}

#[test]
fn a_success_without_the_output_that_was_asked_for_is_none() {
    let done = r#""subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":1,"result":"the model's""#;
    let wanted = Around {
        wanted_output: true,
        ..Around::default()
    };
    let none = Verdict::Failed(Cause::NoStructuredOutput);
    assert_eq!(verdict_with(done, &wanted), none);
    assert_eq!(
        verdict_with(&format!(r#"{done},"structured_output":null"#), &wanted),
        none
    );
    assert_eq!(
        verdict_with(&format!(r#"{done},"structured_output":{{"a":1}}"#), &wanted),
        Verdict::Completed
    );
    let outcome = Outcome::of_result(&result(done), TurnUsage::default(), Vec::new(), &wanted);
    assert_eq!(outcome.error_text(), None, "the model's words are no error's");
}

#[test]
fn an_odd_field_cannot_hide_the_end() {
    let frame = Frame::from_line(
        br#"{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":"many","ttft_ms":[],"result":"cut \ud83d"}"#
            .as_slice(),
    )
    .remove(0);
    let outcome = Outcome::of_result(&frame, TurnUsage::default(), Vec::new(), &Around::default());
    assert_eq!(
        (outcome.verdict(), outcome.result_text()),
        (&Verdict::Completed, "cut \u{fffd}")
    );
}
