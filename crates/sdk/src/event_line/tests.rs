//! What is written can be read, and is what the schema says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_protocol::{Frame, MisfitKind};
use proptest::prelude::*;
use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::*;
use crate::cause::Cause;
use crate::error::Error;
use crate::event::{Lag, Reducer, schemas};
use crate::outcome::{Around, FailureEvidence, Verdict};
use crate::usage::{SessionUsage, Tokens, TurnUsage};

fn schema_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/events.schema.json")
}

/// The schema of a line.
fn schema() -> Value {
    let mut generator = SchemaGenerator::default();
    let mut kinds = schemas(&mut generator);
    kinds.push((TURN_ENDED, generator.root_schema_for::<TurnEndedForm>()));
    kinds.push((ERROR, generator.root_schema_for::<ErrorForm>()));
    let names: Vec<_> = kinds.iter().map(|(kind, _)| *kind).collect();
    let mut definitions = generator.take_definitions(true);
    let mut any_of: Vec<_> = names
        .iter()
        .map(|kind| json!({"$ref": format!("#/$defs/{kind}")}))
        .collect();
    any_of.push(json!({"$ref": "#/$defs/unknown"}));
    for (kind, schema) in kinds {
        let mut schema = schema.to_value();
        let fields = schema.as_object_mut().unwrap();
        for key in ["$schema", "$defs", "title"] {
            fields.remove(key);
        }
        fields["properties"]["type"] = json!({"const": kind});
        let required = fields
            .entry("required")
            .or_insert(json!([]))
            .as_array_mut()
            .unwrap();
        required.insert(0, json!("type"));
        assert!(definitions.insert(kind.to_owned(), schema).is_none(), "{kind}");
    }
    definitions.insert(
        "unknown".to_owned(),
        json!({
            "description": "An event of a later version. Readers keep it or skip it, and do not fail.",
            "type": "object",
            "properties": {"type": {"type": "string", "not": {"enum": names}}},
            "required": ["type"],
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "EventLine",
        "description": "A line of a stream of events: an event, the end of a turn, or an error. Kinds and fields may be added; what is \
            here keeps its name and its meaning. Readers ignore fields that they do not know.",
        "anyOf": any_of,
        "$defs": definitions,
    })
}

/// `UPDATE=1 cargo test -p outrigger --lib the_schema_is_current` writes it anew.
#[test]
fn the_schema_is_current() {
    let current = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(schema_path().parent().unwrap()).unwrap();
        std::fs::write(schema_path(), &current).unwrap();
    }
    let committed = std::fs::read_to_string(schema_path()).unwrap_or_default();
    assert!(
        committed == current,
        "the schema is out of date: run UPDATE=1 cargo test -p outrigger --lib the_schema_is_current"
    );
}

/// The rule of growth: what was written by the first version stays valid, and can be read.
#[test]
fn what_earlier_versions_wrote_can_be_read() {
    let judge = Judge::new();
    let lines = include_str!("../../tests/fixtures/events-1.jsonl");
    let mut kinds = BTreeSet::new();
    for line in lines.lines() {
        judge.judge(&serde_json::from_str(line).unwrap(), line);
        let read: EventLine = serde_json::from_str(line).unwrap();
        assert!(!matches!(read, EventLine::Event(Event::Unknown(_))), "{line}");
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
        kinds.insert(
            serde_json::from_str::<Value>(line).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    let mut generator = SchemaGenerator::default();
    let known: BTreeSet<_> = schemas(&mut generator)
        .iter()
        .map(|(kind, _)| (*kind).to_owned())
        .collect();
    let known: BTreeSet<_> = known
        .into_iter()
        .chain([TURN_ENDED.to_owned(), ERROR.to_owned()])
        .collect();
    assert_eq!(kinds, known, "a line of each kind");
}

struct Judge(jsonschema::Validator);

impl Judge {
    fn new() -> Self {
        Self(jsonschema::validator_for(&schema()).unwrap())
    }

    fn judge(&self, value: &Value, of: &str) {
        let errors: Vec<_> = self.0.iter_errors(value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} of {of}");
    }
}

/// All that an event says, with the bytes of its frames.
fn shown(event: &Event) -> String {
    let bytes = match event {
        Event::ToolUse(tool) => tool.frame.bytes(),
        Event::ToolResult(result) => result.frame.bytes(),
        Event::Message(_, frame) | Event::Undecodable(frame, _) => frame.bytes(),
        Event::Subagent(of) => return format!("{} {}", of.parent_tool_use_id, shown(&of.event)),
        _ => &[],
    };
    format!("{event:?} {bytes:?}")
}

/// Through JSON text, nothing changes; through a JSON value, no value changes.
fn travels(event: &Event, judge: &Judge) -> String {
    let line = serde_json::to_string(event).unwrap();
    assert!(!line.contains('\n'), "{line}");
    let back: Event = serde_json::from_str(&line).unwrap();
    assert_eq!(shown(&back), shown(event), "{line}");
    assert_eq!(serde_json::to_string(&back).unwrap(), line);
    let EventLine::Event(back) = serde_json::from_str(&line).unwrap() else {
        panic!("no event: {line}")
    };
    assert_eq!(shown(&back), shown(event), "{line}");
    // Not every line is a `Value`: lone surrogates, and deep nesting.
    if let Ok(value) = serde_json::from_str::<Value>(&line) {
        judge.judge(&value, &line);
        if let Ok(back) = serde_json::from_value::<Event>(value.clone())
            && !matches!(back, Event::Undecodable(..))
        {
            let again: Value = serde_json::from_str(&serde_json::to_string(&back).unwrap()).unwrap();
            assert_eq!(again, value);
        }
    }
    line
}

fn recordings() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut places = vec![
        here.join("../protocol/tests/recordings"),
        here.join("../acp/src/fixtures"),
    ];
    places.extend(std::env::var_os("OUTRIGGER_RECORDINGS").map(PathBuf::from));
    let entries = places
        .into_iter()
        .flat_map(|place| std::fs::read_dir(place).unwrap());
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    paths
}

/// What the CLI wrote in a recording.
fn frames(path: &Path) -> Vec<Frame> {
    #[derive(Deserialize)]
    struct Recorded {
        dir: String,
        msg: RawJson,
    }
    let text = std::fs::read_to_string(path).unwrap();
    let written = |line: &str| match serde_json::from_str::<Recorded>(line) {
        Ok(recorded) if recorded.dir == "out" => Frame::from_line(recorded.msg.get()),
        Ok(_) => Vec::new(),
        Err(_) => Frame::from_line(line),
    };
    text.lines().flat_map(written).collect()
}

fn events(frames: impl IntoIterator<Item = Frame>) -> Vec<Event> {
    let mut reducer = Reducer::default();
    for frame in frames {
        reducer.push(&frame);
    }
    reducer.end();
    std::iter::from_fn(|| reducer.pop()).collect()
}

#[test]
fn every_recorded_event_and_outcome_travels() {
    let (judge, mut kinds) = (Judge::new(), BTreeSet::new());
    for path in recordings() {
        let frames = frames(&path);
        let mut before = FailureEvidence::default();
        for frame in &frames {
            before.on_frame(frame);
            if frame.kind() == "result" {
                let around = Around {
                    before: before.clone(),
                    ..Around::default()
                };
                outcome_travels(
                    &Outcome::of_result(frame, usage(0.1), vec!["p".to_owned()], &around),
                    &judge,
                );
                before.next_turn();
            }
        }
        for event in events(frames) {
            let line = travels(&event, &judge);
            kinds.insert(walk::string_at(&line, "type").unwrap());
        }
    }
    // `lagged` and `undecodable` are in no recording.
    for kind in [
        "text",
        "tool_use",
        "tool_result",
        "message",
        "message_start",
        "content_block_stop",
        "message_stop",
    ] {
        assert!(kinds.contains(kind), "{kind} is not in {kinds:?}");
    }
}

fn usage(cost: f64) -> TurnUsage {
    let tokens = Tokens {
        input: u64::MAX,
        cost_usd: cost,
        ..Tokens::default()
    };
    TurnUsage {
        cost_usd: cost,
        by_model: [("claude-x[1m]".to_owned(), tokens)].into(),
    }
}

/// All that an outcome says.
fn said(outcome: &Outcome) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        outcome.verdict(),
        outcome.error_text(),
        outcome.result_text(),
        outcome.errors(),
        outcome.structured_output(),
        outcome.deferred(),
        outcome.usage(),
        outcome.duration_ms(),
        outcome.num_turns(),
        outcome.api_error_status(),
        outcome.terminal_reason(),
        outcome.prompts(),
        outcome.session_id(),
        outcome.origin(),
        outcome.frame().map(Frame::bytes),
    )
}

fn outcome_travels(outcome: &Outcome, judge: &Judge) {
    let line = serde_json::to_string(&EventLine::TurnEnded(outcome.clone())).unwrap();
    if let Ok(value) = serde_json::from_str(&line) {
        judge.judge(&value, &line);
    }
    let EventLine::TurnEnded(back) = serde_json::from_str(&line).unwrap() else {
        panic!("no outcome: {line}")
    };
    assert_eq!(said(&back), said(outcome), "{line}");
    assert_eq!(serde_json::to_string(&EventLine::TurnEnded(back)).unwrap(), line);
    let alone: Outcome = serde_json::from_str(&serde_json::to_string(outcome).unwrap()).unwrap();
    assert_eq!(said(&alone), said(outcome));
}

#[test]
fn every_verdict_and_cause_travels() {
    let judge = Judge::new();
    let mut causes = Cause::ALL.to_vec();
    causes.extend([
        Cause::StartupFailed(Some("x".to_owned())),
        Cause::Api { status: Some(529) },
        Cause::TurnFailed("model_error".to_owned()),
        Cause::Terminated { signal: 15 },
        Cause::Crashed { signal: Some(11) },
    ]);
    let mut verdicts = vec![
        Verdict::Completed,
        Verdict::LocalCommand(None),
        Verdict::LocalCommand(Some("context".to_owned())),
        Verdict::Appended,
        Verdict::Backgrounded,
        Verdict::Deferred,
        Verdict::NotRun,
        Verdict::StoppedByHook,
        Verdict::Interrupted,
        Verdict::Cancelled,
        Verdict::Dropped("discarded".to_owned()),
        Verdict::NoResult,
    ];
    verdicts.extend(causes.into_iter().map(Verdict::Failed));
    for verdict in verdicts {
        let outcome = Outcome::without_result(verdict, ["p"]);
        outcome_travels(&outcome, &judge);
    }
    // One of a later version is no guess at another.
    assert!(serde_json::from_str::<Verdict>(r#"{"name":"vanished"}"#).is_err());
    assert!(serde_json::from_str::<Cause>(r#"{"name":"vanished"}"#).is_err());
    let line = r#"{"type":"turn_ended","outcome":{"verdict":{"name":"vanished"},"usage":{},"more":[1]}}"#;
    let EventLine::Event(Event::Unknown(unknown)) = serde_json::from_str(line).unwrap() else {
        panic!("it was read")
    };
    assert_eq!(unknown.kind, "turn_ended");
    assert!(
        unknown.misfit.as_deref().unwrap().contains("vanished"),
        "{unknown:?}"
    );
    assert_eq!(serde_json::to_string(&Event::Unknown(unknown)).unwrap(), line);
}

#[test]
fn what_a_limit_says_of_when_to_go_on_travels() {
    let line = |text: String| Frame::from_line(text).remove(0);
    let mut before = FailureEvidence::default();
    before.on_frame(&line(
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4000000000}}"#
            .to_owned(),
    ));
    let result = line(
        r#"{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":429,"result":"no"}"#
            .to_owned(),
    );
    let around = Around {
        before,
        ..Around::default()
    };
    let outcome = Outcome::of_result(&result, usage(0.0), Vec::new(), &around);
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(json["retry_at_ms"], 4_000_000_000_000_u64);
    assert_eq!(json["verdict"]["cause"]["name"], "rate_limit");
    let back: Outcome = serde_json::from_value(json).unwrap();
    assert!(back.is_transient() && back.retry_after() > Some(Duration::from_secs(1000)));
}

/// What no recording has: lines that are no frames, several on a line, odd bytes.
#[test]
fn lines_that_are_no_frames_travel_byte_for_byte() {
    let judge = Judge::new();
    let deep = format!(
        r#"{{"type":"user","x":{}1{}}}"#,
        "[".repeat(1000),
        "]".repeat(1000)
    );
    let many = "{}".repeat(Frame::MOST_ON_A_LINE + 2);
    let lines: Vec<Vec<u8>> = vec![
        b"not JSON".to_vec(),
        b"".to_vec(),
        b"\xff\xfe{}".to_vec(),
        b"7".to_vec(),
        br#""text""#.to_vec(),
        br#"["type"]"#.to_vec(),
        br#"{"type":7}"#.to_vec(),
        br#"{"no":"type"}"#.to_vec(),
        br#"{"line":"x","line_base64":"eA=="}"#.to_vec(),
        br#"{"type":"strange","a":1,"a":2,"n":1e400,"s":"\ud800"}"#.to_vec(),
        b"{\"type\":\"strange\",\"s\":\"\xff\"}".to_vec(),
        br#"  {"type" : "strange" }  {"type":"other"} junk"#.to_vec(),
        b"{\"type\":\n\"strange\"}".to_vec(),
        br#"{"type":"assistant","message":7}"#.to_vec(),
        br#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"odd","x":1}]}]},"tool_use_result":{"n":1e400}}"#.to_vec(),
        deep.into_bytes(),
    ];
    let mut seen = 0;
    for line in &lines {
        for event in events(Frame::from_line(line)) {
            travels(&event, &judge);
            seen += 1;
        }
    }
    assert!(seen >= lines.len(), "{seen}");
    // The rest of too many objects is one frame.
    let rest = events(Frame::from_line(many.as_bytes())).pop().unwrap();
    let Event::Undecodable(frame, misfit) = &rest else {
        panic!("{rest:?}")
    };
    assert_eq!((frame.bytes(), misfit.kind), (&b"{}{}"[..], MisfitKind::NotJson));
    travels(&rest, &judge);

    let framed = outrigger_protocol::framer::Framed::Oversized {
        head: br#"{"type":"assistant","message":"#.to_vec(),
        length: 1 << 40,
    };
    let [event] = <[Event; 1]>::try_from(events(Frame::read(framed))).unwrap();
    travels(&event, &judge);
    let line = serde_json::to_string(&event).unwrap();
    let Event::Undecodable(frame, _) = serde_json::from_str(&line).unwrap() else {
        panic!("{line}")
    };
    assert_eq!(frame.kind(), "assistant", "the head was read again");
    travels(
        &Event::Lagged(Lag {
            frames: 3,
            bytes: u64::MAX,
        }),
        &judge,
    );
}

#[test]
fn a_strangers_event_survives() {
    for line in [
        r#"{"type":"hologram","n":1e400,"a":{"b":[1,2]},"s":"\ud800"}"#,
        r#"{"n":0,"type":"hologram"}"#,
        r#"{"type":""}"#,
        r#"{"type":"text"}"#,
        r#"{"type":"text","text":7}"#,
        r#"{"type":"subagent","parent_tool_use_id":"t","event":{"type":"subagent","parent_tool_use_id":"t","event":{}}}"#,
        r#"{"type":"subagent","parent_tool_use_id":"t","event":[]}"#,
        r#"{"type":"message","frame":{"line":"x"}}"#,
        r#"{"type":"error","error":7}"#,
    ] {
        let EventLine::Event(event) = serde_json::from_str(line).unwrap() else {
            panic!("{line}")
        };
        let Event::Unknown(unknown) = &event else {
            panic!("{line} was read as {event:?}")
        };
        assert_eq!(
            unknown.misfit.is_none(),
            line.contains("hologram") || line.contains(r#":""}"#),
            "{unknown:?}"
        );
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }
    let in_subagent = r#"{"type":"subagent","parent_tool_use_id":"t","event":{"type":"hologram","x":1}}"#;
    let event: Event = serde_json::from_str(in_subagent).unwrap();
    assert!(
        matches!(&event, Event::Subagent(of) if matches!(of.event, Event::Unknown(_))),
        "{event:?}"
    );
    assert_eq!(serde_json::to_string(&event).unwrap(), in_subagent);
    // Fields of a later version are no reason to fail.
    let text: Event = serde_json::from_str(r#"{"type":"text","text":"x","later":[1]}"#).unwrap();
    assert!(matches!(text, Event::Text(text) if text == "x"));
    let judge = Judge::new();
    for wrong in [
        json!({"type": "text"}),
        json!({"type": "turn_ended", "outcome": {}}),
        json!({"no": "type"}),
    ] {
        assert!(!judge.0.is_valid(&wrong), "{wrong}");
    }
    for line in ["7", "[]", "{}", r#"{"type":7}"#, "null"] {
        assert!(serde_json::from_str::<EventLine>(line).is_err(), "{line}");
    }
}

#[test]
fn errors_travel_as_reports() {
    let judge = Judge::new();
    let outcome = Outcome::without_result(Verdict::Failed(Cause::RateLimit), ["p"]);
    let errors = [
        Error::invalid("prompt"),
        Error::timeout("it", Duration::from_secs(1)),
        Error::turn_failed(outcome),
        Error::new(crate::error::Kind::Closed),
        Error::new(crate::error::Kind::Ended(crate::end::End {
            exit: Some(crate::peer::Exit::with_signal(9)),
            cause: Some(Cause::Killed),
            stderr_tail: "it broke".to_owned(),
            ..crate::end::End::default()
        })),
    ];
    for error in errors {
        let line = serde_json::to_string(&EventLine::Error(Box::new(error.report()))).unwrap();
        judge.judge(&serde_json::from_str(&line).unwrap(), &line);
        let EventLine::Error(back) = serde_json::from_str(&line).unwrap() else {
            panic!("{line}")
        };
        assert_eq!(
            serde_json::to_string(&error).unwrap(),
            serde_json::to_string(&back).unwrap()
        );
        assert_eq!(back.message, error.to_string());
        assert_eq!(back.cause, error.cause());
        assert_eq!(back.is_transient, error.is_transient());
    }
    let later: ErrorReport =
        serde_json::from_str(r#"{"message":"x","cause":{"name":"vanished"},"more":1}"#).unwrap();
    assert_eq!((later.message.as_str(), later.cause), ("x", None));
}

proptest! {
    /// Whatever the model and the CLI write.
    #[test]
    fn texts_and_numbers_travel(text in any::<String>(), id in any::<Option<String>>(), index: u64, cost in 0.0..1e9) {
        let judge = Judge::new();
        for event in [
            Event::MessageStart { id: id.clone(), model: id.clone() },
            Event::ContentBlockStart { message_id: id.clone(), index, kind: text.as_str().into() },
            Event::ContentBlockStop { message_id: id.clone(), index, kind: text.as_str().into() },
            Event::MessageStop { id: id.clone(), model: None, stop_reason: id.as_deref().map(Into::into) },
            Event::Text(text.clone()),
            Event::Thinking(text.clone()),
            Event::ToolInput { index, partial_json: text.clone() },
            Event::ApiError { kind: text.clone(), text: text.clone() },
            Event::Lagged(Lag { frames: index, bytes: index }),
        ] {
            travels(&event, &judge);
        }
        let used = usage(cost);
        let line = serde_json::to_string(&used).unwrap();
        let read: TurnUsage = RawJson::from_text(line).unwrap().read().unwrap();
        prop_assert_eq!(&read, &used);
        let session = SessionUsage { cost_usd: cost, by_model: used.by_model, results: index };
        let line = serde_json::to_string(&session).unwrap();
        let read: SessionUsage = RawJson::from_text(line).unwrap().read().unwrap();
        prop_assert_eq!(read, session);
    }

    /// Whatever stands on a line, a frame of it travels with all its bytes.
    #[test]
    fn any_line_travels(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in "[a-z_]{0,12}", value in any::<String>()) {
        let judge = Judge::new();
        let frame = json!({"type": kind, "message": value, "x": [value, 1.5]}).to_string().into_bytes();
        let mixed: Vec<u8> = frame.iter().chain(&bytes).copied().collect();
        for line in [bytes, frame, mixed] {
            for event in events(Frame::from_line(line)) {
                travels(&event, &judge);
            }
        }
    }
}
