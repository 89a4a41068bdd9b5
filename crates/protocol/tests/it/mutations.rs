//! Takes recorded frames of the CLI apart: whatever is missing, added or of another kind, nothing panics, nothing is lost, and the
//! judge tells what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use outrigger_protocol::Frame;
use outrigger_protocol::check::{Checker, Direction, FrameFinding, Recorded, Verdict, recorded};
use serde_json::{Map, Value, json};

/// One frame of each kind that the fixtures have: the longest, which has the most fields.
fn samples() -> Vec<Value> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut best: BTreeMap<String, (usize, Value)> = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        for line in std::fs::read(entry.unwrap().path())
            .unwrap()
            .split(|byte| *byte == b'\n')
        {
            let Recorded::Frame(Direction::Out, raw) = recorded(line) else {
                continue;
            };
            let Ok(value) = raw.to_value() else { continue };
            let kind = [
                &value["type"],
                &value["subtype"],
                &value["request"]["subtype"],
                &value["event"]["type"],
                &value["event"]["delta"]["type"],
            ];
            let length = raw.get().len();
            let kept = best.entry(format!("{kind:?}")).or_default();
            if length > kept.0 {
                *kept = (length, value);
            }
        }
    }
    best.into_values().map(|(_, sample)| sample).collect()
}

fn judge(value: &Value) -> Verdict {
    let mut checker = Checker::new();
    checker
        .line(Direction::Out, value.to_string().as_bytes())
        .remove(0)
}

/// The pointers of all objects, of first elements only in lists.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(at.to_owned());
            for (key, value) in fields {
                objects(
                    value,
                    &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        Value::Array(items) => {
            if let Some(first) = items.first() {
                objects(first, &format!("{at}/0"), found);
            }
        }
        _ => {}
    }
}

fn object_at<'v>(value: &'v mut Value, at: &str) -> &'v mut Map<String, Value> {
    value.pointer_mut(at).unwrap().as_object_mut().unwrap()
}

/// Calls `with` for each field of each object of each sample: the sample, the pointer of the object, the key.
fn each_field(mut with: impl FnMut(&Value, &str, &str)) {
    for sample in samples() {
        let mut places = Vec::new();
        objects(&sample, "", &mut places);
        for place in places {
            let keys: Vec<String> = sample
                .pointer(&place)
                .unwrap()
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect();
            for key in keys {
                with(&sample, &place, &key);
            }
        }
    }
}

#[test]
fn a_missing_field_breaks_nothing_else() {
    each_field(|sample, place, key| {
        let mut mutant = sample.clone();
        object_at(&mut mutant, place).remove(key);
        let verdict = judge(&mutant);
        for finding in &verdict.findings {
            // It may be one that the type needs, or the tag; it never makes other fields unknown.
            let excused = matches!(key, "type" | "subtype" | "kind" | "hook_event_name");
            assert!(
                excused
                    || matches!(finding, FrameFinding::Undecodable(reason) if reason.contains("missing field")),
                "{place}/{key}: {finding}\n{mutant}"
            );
        }
    });
}

#[test]
fn a_new_field_changes_nothing_and_is_named() {
    let mut opaque = BTreeSet::new();
    for sample in samples() {
        let clean = judge(&sample);
        assert_eq!(clean.findings, [], "{sample}");
        let typed = |value: &Value| {
            let frame = Frame::from_line(value.to_string().into_bytes()).remove(0);
            frame.decode().unwrap().to_body().unwrap().to_value().unwrap()
        };
        let mut places = Vec::new();
        objects(&sample, "", &mut places);
        for place in places {
            let mut mutant = sample.clone();
            object_at(&mut mutant, &place).insert("zz_new".into(), json!({"a": [1, null]}));
            let verdict = judge(&mutant);
            match verdict.findings.as_slice() {
                [FrameFinding::Unmodelled(path)] => {
                    assert!(path.ends_with("zz_new"), "{path}");
                    // The frame's own type keeps what tools take and give as it came.
                    if !["/input", "/request/message", "/tool_input", "/tool_response"]
                        .iter()
                        .any(|of| place.contains(of))
                    {
                        assert_eq!(typed(&mutant), typed(&sample), "{place}");
                    }
                }
                // In a payload of somebody else it is just another part of the payload; a map takes it for an entry.
                [] => {
                    opaque.insert(place);
                }
                // The entries of these maps have a type of their own.
                [FrameFinding::Undecodable(_)] => {
                    let map = [
                        "odelUsage",
                        "model_usage",
                        "model_usage_since_last_result",
                        "by_type",
                    ];
                    assert!(map.iter().any(|map| place.ends_with(map)), "{place}: {verdict:?}");
                }
                other => panic!("{place}: {other:?}"),
            }
        }
    }
    assert!(opaque.len() < 150, "{opaque:?}");
    for typed in [
        "",
        "/message",
        "/message/usage",
        "/event",
        "/event/delta",
        "/rate_limit_info",
    ] {
        assert!(!opaque.contains(typed), "{typed} takes any field");
    }
}

#[test]
fn a_field_of_another_kind_is_a_misfit_with_a_reason() {
    let mut misfits = 0;
    each_field(|sample, place, key| {
        let mut mutant = sample.clone();
        let field = &mut object_at(&mut mutant, place)[key];
        *field = match field {
            Value::Object(_) => json!(true),
            Value::Array(_) => json!(12),
            Value::String(_) => json!([1.5]),
            Value::Null => json!(true),
            _ => json!({"no": "such"}),
        };
        let line = mutant.to_string();
        let frames = Frame::from_line(line.clone().into_bytes());
        assert_eq!(frames[0].bytes(), line.as_bytes());
        let verdict = judge(&mutant);
        for finding in &verdict.findings {
            match finding {
                FrameFinding::Undecodable(reason) => {
                    assert!(!reason.is_empty());
                    misfits += 1;
                }
                // A tag that is no string, or a tag of another union.
                FrameFinding::Unknown(_) => {}
                // It stands beside the content of a message, and was left out with a reason.
                FrameFinding::Altered(_) if verdict.findings.iter().any(is_undecodable) => {}
                other => panic!("{place}/{key}: {other}\n{mutant}"),
            }
        }
    });
    assert!(misfits > 300, "only {misfits} misfits");
}

fn is_undecodable(finding: &FrameFinding) -> bool {
    matches!(finding, FrameFinding::Undecodable(_))
}

#[test]
fn a_broken_block_leaves_its_neighbours_alone() {
    use outrigger_protocol::Message;
    use outrigger_protocol::shared::ContentBlock;
    let line = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":7},{"type":"novel","x":1},{"type":"text","text":"b"}]},"parent_tool_use_id":null}"#;
    let message = Frame::from_line(line.as_bytes()).remove(0).decode().unwrap();
    let Message::User(user) = message else { panic!() };
    let blocks = user.message.content.blocks();
    match blocks {
        [
            ContentBlock::Text(first),
            ContentBlock::Misfit(misfit),
            ContentBlock::Unknown(unknown),
            ContentBlock::Text(last),
        ] => {
            assert_eq!((first.text.as_str(), last.text.as_str()), ("a", "b"));
            assert_eq!(misfit.tag, "tool_result");
            assert!(misfit.reason.contains("expected a string"), "{}", misfit.reason);
            assert_eq!(misfit.raw.get(), r#"{"type":"tool_result","tool_use_id":7}"#);
            assert_eq!(unknown.get(), r#"{"type":"novel","x":1}"#);
        }
        other => panic!("{other:?}"),
    }
    // A user line that we send leaves out what is not set.
    let sent = serde_json::to_string(&blocks[0]).unwrap();
    assert_eq!(sent, r#"{"type":"text","text":"a"}"#);
}
