//! `outrigger protocol check`.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::tool::{outrigger, ran};

fn check(text: impl AsRef<[u8]>) -> (String, i32) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("recording.jsonl");
    fs::write(&path, text).unwrap();
    ran(outrigger(&["protocol", "check"]).arg(path))
}

const STATUS: &str = r#"{"type":"system","subtype":"status","status":null,"uuid":"u","session_id":"s"}"#;

#[test]
fn what_is_fully_typed_passes() {
    let enveloped = format!("{{\"t\":0.1,\"dir\":\"out\",\"msg\":{STATUS}}}");
    let other = r#"{"t":0.2,"dir":"err","msg":{"raw":"noise"}}"#;
    // Without a line ending at the end, with blank lines, and several frames on a line.
    let (text, code) = check(format!(
        "{STATUS}\r\n\n{enveloped}\n{other}\n{STATUS} {STATUS}\n{STATUS}"
    ));
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("cli    system/status: 5 of 5 fully typed"),
        "{text}"
    );
    assert!(text.ends_with("5 frames in 1 file: all that the CLI wrote is fully typed, all is lossless\n"));
    let (text, code) = check("");
    assert_eq!(
        (text.as_str(), code),
        ("0 frames in 1 file: nothing to judge\n", 1)
    );
}

#[test]
fn recorded_conversations_pass() {
    let recordings = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../protocol/tests/recordings");
    let (text, code) = ran(outrigger(&["protocol", "check", "--json"]).arg(recordings));
    assert_eq!(code, 0);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["passed"], true);
    assert!(report["frames"].as_u64() > Some(100), "{}", report["frames"]);
    assert!(report["files"].as_array().unwrap().len() > 3);
    assert!(report["report"]["kinds"][0]["total"].as_u64() > Some(0));
}

#[test]
fn whatever_is_wrong_is_named_with_its_place() {
    let status = |extra: &str| STATUS.replace("null", extra);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (line, named) in [
        ("oops".to_owned(), "not JSON"),
        ("7".to_owned(), "no object"),
        ("{}".to_owned(), "without a string `type`"),
        ("{\"type\":\"novel\"}".to_owned(), "unknown Message `novel`"),
        (
            "{\"type\":\"system\",\"subtype\":\"novel\"}".to_owned(),
            "`novel`",
        ),
        (status("\"novel\""), "`novel`"),
        (status("null,\"novel\":1"), "field without a type: novel"),
        (status("7"), "invalid type: integer `7`"),
        (
            format!("{{\"type\":\"novel\",\"x\":{deep}}}"),
            "unknown Message `novel`",
        ),
        (
            status(&format!("null,\"deep\":{deep}")),
            "field without a type: deep",
        ),
        (status("null,\"half\":\"\\ud83d\""), "field without a type: half"),
        (format!("{STATUS}garbage"), "not JSON"),
        (
            format!("{{\"dir\":\"out\",\"msg\":{}}}", status("null,\"novel\":1")),
            "field without a type: novel",
        ),
        (
            "{\"dir\":\"out\",\"msg\":{\"raw\":\"oops\"}}".to_owned(),
            "not JSON",
        ),
    ] {
        let (text, code) = check(format!("{STATUS}\n\n{line}\n{STATUS}\n"));
        assert_eq!(code, 1, "{text}");
        let place = text.lines().find(|told| told.contains("recording.jsonl:3: "));
        assert!(place.is_some_and(|told| told.contains(named)), "{named}: {text}");
    }
}

#[test]
fn a_lone_surrogate_in_a_typed_field_loses_nothing() {
    let (text, code) = check(
        r#"{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"\ud83d"}]},"parent_tool_use_id":null,"uuid":"u","session_id":"s"}"#,
    );
    assert_eq!(code, 0, "{text}");
}

#[test]
fn bytes_that_are_no_utf8_are_named() {
    let mut line = STATUS.replace("\"s\"", "\"?\"").into_bytes();
    let at = line.iter().position(|byte| *byte == b'?').unwrap();
    line[at] = 0xff;
    let (text, code) = check(line);
    assert_eq!(code, 1);
    assert!(text.contains(&format!("not UTF-8 at byte {at}")), "{text}");
}

#[test]
fn what_a_client_wrote_only_has_to_be_lossless() {
    let (text, code) =
        check("{\"dir\":\"in\",\"msg\":{\"type\":\"novel\"}}\n{\"dir\":\"in\",\"msg\":{\"raw\":\"oops\"}}\n");
    assert_eq!(code, 0);
    assert!(text.contains("client novel: 0 of 1 fully typed"), "{text}");
    assert!(text.contains("1 lines recorded as text"), "{text}");
}

#[test]
fn conversations_do_not_mix() {
    let directory = TempDir::new().unwrap();
    let ask =
        r#"{"dir":"in","msg":{"type":"control_request","request_id":"a","request":{"subtype":"interrupt"}}}"#;
    let answer = r#"{"dir":"out","msg":{"type":"control_response","response":{"subtype":"success","request_id":"a"}}}"#;
    let (first, second) = (directory.path().join("1.jsonl"), directory.path().join("2.jsonl"));
    fs::write(&first, format!("{ask}\n{answer}\n")).unwrap();
    fs::write(&second, answer).unwrap();
    let (text, _) = ran(outrigger(&["protocol", "check"]).args([first, second]));
    assert!(
        text.contains("control_response/success/interrupt: 1 of 1"),
        "{text}"
    );
    assert!(text.contains("control_response/success: 1 of 1"), "{text}");
}

#[test]
fn what_cannot_be_read_is_another_status_and_the_rest_is_judged() {
    let directory = TempDir::new().unwrap();
    let (bad, missing) = (
        directory.path().join("bad.ndjson"),
        directory.path().join("missing"),
    );
    fs::write(&bad, "oops\n").unwrap();
    let (text, code) = ran(outrigger(&["protocol", "check", "--json"]).args([&missing, &bad]));
    assert_eq!(code, 2);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&report["passed"], &report["failed"]),
        (&Value::Bool(false), &1.into())
    );
    assert!(
        report["unreadable"][0]["path"]
            .as_str()
            .unwrap()
            .ends_with("missing")
    );
    let empty = TempDir::new().unwrap();
    assert_eq!(ran(outrigger(&["protocol", "check"]).arg(empty.path())).1, 2);
    assert_eq!(ran(outrigger(&["protocol", "check"]).arg(directory.path())).1, 1);
    assert_eq!(ran(&mut outrigger(&["protocol", "check"])).1, 2);
}

#[test]
fn standard_input_is_read() {
    let mut command = outrigger(&["protocol", "check", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"type\":\"novel\"}").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("standard input:1: novel: unknown Message `novel`"),
        "{text}"
    );
}

#[test]
fn what_has_nothing_to_judge_is_told_apart() {
    let place = TempDir::new().unwrap();
    let missing = place.path().join("missing.jsonl");
    fs::create_dir(place.path().join("folder")).unwrap();
    for (path, says) in [
        (missing, "no such file"),
        (place.path().join("folder"), "it has no *.jsonl"),
    ] {
        let (text, code) = ran(outrigger(&["protocol", "check"]).arg(&path));
        assert_eq!(code, 2, "{text}");
        assert!(
            text.to_lowercase().contains(says) && !text.contains("nothing to judge"),
            "{text}"
        );
    }
}

#[test]
fn a_program_gets_all_failures_and_a_person_the_first() {
    let fields: String = (0..15).map(|n| format!(",\"x{n:02}\":1")).collect();
    let wrong = STATUS.replace("null", &format!("null{fields}"));
    let text = format!("{wrong}\n").repeat(12);
    let (told, code) = check(&text);
    assert_eq!(code, 1);
    assert!(told.contains("recording.jsonl: 2 more frames fail\n"), "{told}");

    let directory = TempDir::new().unwrap();
    let path = directory.path().join("recording.jsonl");
    fs::write(&path, text).unwrap();
    let (report, code) = ran(outrigger(&["protocol", "check", "--json"]).arg(path));
    assert_eq!(code, 1);
    let report: Value = serde_json::from_str(&report).unwrap();
    let failures = report["files"][0]["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 12);
    assert_eq!(failures[11]["line"], 12);
    assert_eq!(failures[11]["found"].as_array().unwrap().len(), 15);
    assert!(report.get("told").is_none() && report["files"][0].get("told").is_none());
}
