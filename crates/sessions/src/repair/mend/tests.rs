//! Damages, each for itself and at random.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::write::testing::TestConfigDir;

fn uuid(number: usize) -> String {
    format!("{number:08}-0000-4000-8000-000000000000")
}

/// A record of the conversation with these blocks; 0 is no parent.
fn record(number: usize, parent: usize, kind: &str, content: Value) -> Value {
    json!({
        "parentUuid": (parent > 0).then(|| uuid(parent)), "isSidechain": false, "type": kind,
        "message": {"role": kind, "id": (kind == "assistant").then(|| format!("msg{number}")), "content": content},
        "uuid": uuid(number), "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/there", "sessionId": uuid(999),
    })
}

fn said(number: usize, parent: usize) -> Value {
    let kind = if number % 2 == 1 { "user" } else { "assistant" };
    record(
        number,
        parent,
        kind,
        json!([{"type": "text", "text": format!("m{number}")}]),
    )
}

fn call(number: usize, parent: usize, id: &str) -> Value {
    record(
        number,
        parent,
        "assistant",
        json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]),
    )
}

fn answer(number: usize, parent: usize, id: &str) -> Value {
    record(
        number,
        parent,
        "user",
        json!([{"type": "tool_result", "tool_use_id": id, "content": "done"}]),
    )
}

fn bytes(records: &[Value]) -> Vec<u8> {
    records
        .iter()
        .flat_map(|record| format!("{record}\n").into_bytes())
        .collect()
}

fn values(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Mends, and sees that mending again changes nothing.
fn mended(bytes: &[u8]) -> (Vec<u8>, Vec<Finding>) {
    let mend = |bytes: &[u8]| {
        let (pieces, findings) = mend(bytes, &mut Meter::unheard()).unwrap();
        let mended: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| piece.bytes(bytes))
            .copied()
            .collect();
        (mended, findings)
    };
    let (mended, findings) = mend(bytes);
    let (again, left) = mend(&mended);
    assert_eq!(
        left.iter()
            .filter(|it| it.problem.is_mendable())
            .collect::<Vec<_>>(),
        Vec::<&Finding>::new()
    );
    assert!(again == mended, "mended twice it is something else");
    (mended, findings)
}

fn problems(findings: &[Finding]) -> Vec<(u64, &Problem)> {
    findings
        .iter()
        .map(|it| (it.position.line, &it.problem))
        .collect()
}

/// Each record's number with its parent's; those without a number are 0.
fn links(records: &[Value]) -> Vec<(usize, usize)> {
    let number = |value: &Value| {
        value
            .as_str()
            .and_then(|uuid| uuid.get(..8)?.parse().ok())
            .unwrap_or(0)
    };
    records
        .iter()
        .map(|record| (number(&record["uuid"]), number(&record["parentUuid"])))
        .collect()
}

#[test]
fn what_is_fine_stays_as_it_is() {
    let text = format!(
        "{}\r\n\n  \n{}\n{{\"type\":\"new-thing\", \"x\" : 1e400}}",
        said(1, 0),
        r#"{"type":"user","uuid":"x","parentUuid":null,"deep":[[[]]]}"#
    );
    let (same, findings) = mended(text.as_bytes());
    assert_eq!((same, findings), (text.into_bytes(), Vec::new()));
}

#[test]
fn lines_are_taken_out_or_saved() {
    let (one, two, three) = (
        said(1, 0).to_string(),
        said(2, 1).to_string(),
        said(3, 2).to_string(),
    );
    let torn = &two[..two.len() / 2];
    let odd = two.replace("m2", "m\\ud83d");
    let cases: Vec<(Vec<u8>, &str, &[usize])> = vec![
        (
            format!("{one}\n{two}\n{torn}").into(),
            "3 an unfinished last line",
            &[1, 2],
        ),
        (format!("{one}\n{torn}\n{two}\n").into(), "2 not JSON", &[1, 2]),
        (
            format!("{one}\n[1]\n{two}\n").into(),
            "2 JSON, but no object",
            &[1, 2],
        ),
        (format!("{one}\n\0\0\0{two}\n").into(), "2 3 NUL bytes", &[1, 2]),
        (format!("{one}\n{two}\n\0\0").into(), "3 NUL bytes", &[1, 2]),
        (format!("{one}\0\0{two}\n").into(), "1 2 NUL bytes", &[1, 2]),
        (
            format!("{one}{two}\n{three}\n").into(),
            "1 2 records behind 0",
            &[1, 2, 3],
        ),
        (
            format!("{one}\n{}{two}{three}\n", &one[..40]).into(),
            "2 2 records behind 40",
            &[1, 2, 3],
        ),
        (
            format!("\u{feff}{one}\n{two}\n").into(),
            "1 1 records behind 3",
            &[1, 2],
        ),
        (format!("{one}\n{odd}\n").into(), "2 halves of surrogate", &[1, 2]),
        (
            [one.as_bytes(), b"\n", &two.replace("m2", "mX").into_bytes()].concat(),
            "",
            &[1, 2],
        ),
    ];
    for (bytes, expected, numbers) in cases {
        let (mended, findings) = mended(&bytes);
        let told: Vec<String> = findings
            .iter()
            .map(|it| format!("{} {}", it.position.line, it.problem))
            .collect();
        let as_expected = match expected {
            "" => told.is_empty(),
            expected => {
                told[0].contains(expected.split_once(' ').unwrap().1) && told[0].starts_with(&expected[..1])
            }
        };
        assert!(as_expected, "{expected}: {told:?}");
        let records = values(&mended);
        assert_eq!(
            links(&records).iter().map(|it| it.0).collect::<Vec<_>>(),
            numbers,
            "{expected}: {records:?}"
        );
    }
    let mut broken = two.replace("m2", "mX").into_bytes();
    let at = broken.iter().position(|byte| *byte == b'X').unwrap();
    broken[at] = 0xff;
    let (mended, findings) = mended(&[one.as_bytes(), b"\n", &broken, b"\n"].concat());
    assert_eq!(problems(&findings), [(2, &Problem::InvalidUtf8)]);
    assert_eq!(values(&mended)[1]["message"]["content"][0]["text"], "m\u{fffd}");
}

#[test]
fn links_lead_somewhere_and_nowhere_in_circles() {
    let (fixed, findings) = mended(&bytes(&[said(1, 0), said(2, 1), said(3, 77), said(4, 3)]));
    assert_eq!(links(&values(&fixed)), [(1, 0), (2, 1), (3, 2), (4, 3)]);
    let missing = Problem::MissingParent {
        uuid: uuid(3),
        parent: uuid(77),
        linked_to: Some(uuid(2)),
    };
    assert_eq!(problems(&findings), [(3, &missing)]);

    let (fixed, findings) = mended(&bytes(&[
        said(1, 0),
        said(2, 4),
        said(3, 2),
        said(4, 3),
        said(5, 5),
    ]));
    assert_eq!(links(&values(&fixed)), [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]);
    assert!(
        matches!(findings[1].problem, Problem::Cycle { .. }) && findings.len() == 2,
        "{findings:?}"
    );
    // The record before it follows it.
    let (fixed, _) = mended(&bytes(&[said(1, 2), said(2, 2)]));
    assert_eq!(links(&values(&fixed)), [(1, 2), (2, 0)]);

    // Subagents' records are no part of the main conversation.
    let side = |number, parent| {
        let mut record = said(number, parent);
        record["isSidechain"] = true.into();
        record["agentId"] = "a".into();
        record
    };
    let (fixed, _) = mended(&bytes(&[said(1, 0), side(2, 78), said(3, 77), side(4, 79)]));
    assert_eq!(links(&values(&fixed)), [(1, 0), (2, 0), (3, 1), (4, 2)]);
}

#[test]
fn of_two_records_with_one_id_the_last_one_counts() {
    let mut second = said(2, 1);
    second["message"]["content"] = json!("changed");
    let (fixed, findings) = mended(&bytes(&[said(1, 0), said(2, 1), said(3, 2), said(3, 2), second]));
    let fixed = values(&fixed);
    assert_eq!(links(&fixed), [(1, 0), (2, 1), (3, 2)]);
    assert_eq!(fixed[1]["message"]["content"], "changed");
    let duplicate = |number, first, is_same| Problem::DuplicateUuid {
        uuid: uuid(number),
        first,
        is_same,
    };
    assert_eq!(
        problems(&findings),
        [(4, &duplicate(3, 3, true)), (5, &duplicate(2, 2, false))]
    );
}

#[test]
fn every_call_gets_a_result_right_behind_it() {
    // At the end; the record says what is known.
    let (fixed, findings) = mended(&bytes(&[said(1, 0), call(2, 1, "t")]));
    let fixed = values(&fixed);
    let lost = &fixed[2];
    assert_eq!(
        (&lost["parentUuid"], &lost["sourceToolAssistantUUID"]),
        (&uuid(2).into(), &uuid(2).into())
    );
    assert_eq!(
        (&lost["type"], &lost["cwd"], &lost["sessionId"]),
        (&"user".into(), &"/there".into(), &uuid(999).into())
    );
    let block = &lost["message"]["content"][0];
    assert_eq!(
        (&block["tool_use_id"], &block["is_error"]),
        (&"t".into(), &true.into())
    );
    let missing = Problem::MissingResult {
        tool_use_id: "t".into(),
        tool: "Bash".into(),
    };
    assert_eq!(problems(&findings), [(2, &missing)]);

    // Further up; what followed the call follows the result.
    let (fixed, _) = mended(&bytes(&[said(1, 0), call(2, 1, "t"), said(3, 2)]));
    let fixed = values(&fixed);
    assert_eq!(
        (&fixed[2]["parentUuid"], &fixed[3]["parentUuid"]),
        (&uuid(2).into(), &fixed[2]["uuid"])
    );

    // Calls of one answer stay together, and so do their results.
    let together = |number, parent, id: &str| {
        let mut record = call(number, parent, id);
        record["message"]["id"] = "msg".into();
        record
    };
    let (fixed, findings) = mended(&bytes(&[
        said(1, 0),
        together(2, 1, "a"),
        together(4, 2, "b"),
        answer(5, 4, "b"),
        said(6, 5),
    ]));
    let fixed = values(&fixed);
    assert_eq!(findings.len(), 1);
    assert_eq!(
        (&fixed[4]["parentUuid"], &fixed[5]["parentUuid"]),
        (&uuid(5).into(), &fixed[4]["uuid"])
    );
    assert_eq!(fixed[4]["message"]["content"][0]["tool_use_id"], "a");
    let (fixed, findings) = mended(&bytes(&[together(2, 0, "a"), together(4, 2, "b"), said(5, 4)]));
    let fixed = values(&fixed);
    assert_eq!(findings.len(), 2);
    for (parent, child) in [(0, 1), (1, 2), (2, 3), (3, 4)] {
        assert_eq!(fixed[child]["parentUuid"], fixed[parent]["uuid"], "{fixed:?}");
    }
}

#[test]
fn results_without_a_call_are_taken_out() {
    let mut both = answer(5, 3, "gone");
    let content = json!([{"type": "text", "text": "too"}, both["message"]["content"][0]]);
    both["message"]["content"] = content;
    let (fixed, findings) = mended(&bytes(&[said(1, 0), answer(3, 1, "lost"), both, said(7, 3)]));
    let fixed = values(&fixed);
    assert_eq!(links(&fixed), [(1, 0), (5, 1), (7, 1)]);
    assert_eq!(
        fixed[1]["message"]["content"],
        json!([{"type": "text", "text": "too"}])
    );
    assert_eq!(findings.len(), 2);
}

#[test]
fn what_has_no_conversation_is_told() {
    for bytes in [&b""[..], b"\n", b"\0\0", b"{\"type\":\"tag\"}\n"] {
        let (_, findings) = mended(bytes);
        assert_eq!(findings[0].problem, Problem::Empty, "{bytes:?}");
    }
    let place = TestConfigDir::new();
    let file = place.session(&["\0"]);
    let repair = place.sessions.repair(&file.id).unwrap();
    assert!(
        repair
            .in_place()
            .unwrap_err()
            .to_string()
            .contains("no conversation")
    );
    assert!(repair.into_new().is_err());
    assert_eq!(fs::read(&file.path).unwrap(), b"\0\n");
}

#[test]
fn the_old_transcript_stays_as_a_backup() {
    let place = TestConfigDir::new();
    let text = format!("{}\n{{\"type\":\"x\", \"odd\":1}}\n{{\"torn", said(1, 0));
    let file = place.put(&SessionId::random(), "/p", text.as_bytes());
    for nth in ["bak", "bak.1"] {
        fs::write(&file.path, &text).unwrap();
        let mended = file.repair().unwrap().in_place().unwrap();
        assert_eq!(
            mended.backup,
            file.path.with_file_name(format!("{}.{nth}", file.id.file_name()))
        );
        assert_eq!(fs::read_to_string(&mended.backup).unwrap(), text);
        assert_eq!(fs::read_to_string(&file.path).unwrap(), text[..text.len() - 6]);
        assert_eq!(mended.file.size, text.len() as u64 - 6);
    }
    // Nothing is to be mended now.
    assert!(
        file.repair()
            .unwrap()
            .in_place()
            .unwrap_err()
            .to_string()
            .contains("nothing is wrong")
    );

    fs::write(&file.path, &text).unwrap();
    let repair = file.repair().unwrap();
    fs::write(&file.path, format!("{text}\":1}}\n")).unwrap();
    assert!(matches!(repair.in_place(), Err(Error::Changed(_))));
    // What comes at the last moment is carried over.
    let backup = place.dir().join("backup");
    fs::write(&backup, format!("{text}\n{{\"late\":1}}\n")).unwrap();
    fs::write(&file.path, "{}\n").unwrap();
    repair.carry_over(&backup).unwrap();
    assert_eq!(fs::read_to_string(&file.path).unwrap(), "{}\n{\"late\":1}\n");
}

/// Somebody who asked nobody writes on; nothing of that is lost when the transcript is replaced.
#[test]
fn what_is_written_during_a_repair_is_there_after_it() {
    let place = TestConfigDir::new();
    let file = place.session(&[&said(1, 0).to_string()]);
    file.append("{\"torn").unwrap();
    let repair = file.repair().unwrap();
    let mended = repair.exchange(&mut Meter::unheard(), || {
        file.append("{\"nth\":1}").unwrap();
        file.append("{\"nth\":2}").unwrap();
    });
    assert!(fs::metadata(mended.unwrap().backup).unwrap().len() > repair.old.len() as u64);
    let late = [json!({"nth": 1}), json!({"nth": 2})];
    assert_eq!(
        values(&fs::read(&file.path).unwrap()),
        [&[said(1, 0)][..], &late].concat()
    );
    // What was there before the exchange began is not carried over: the repair does not know it.
    file.append("{\"torn").unwrap();
    let repair = file.repair().unwrap();
    file.append("{\"nth\":3}").unwrap();
    let before = fs::read(&file.path).unwrap();
    assert!(matches!(repair.in_place(), Err(Error::Changed(_))));
    assert_eq!(fs::read(&file.path).unwrap(), before);
}

#[test]
fn records_that_cannot_be_carried_over_are_in_the_backup_and_the_error_says_so() {
    let place = TestConfigDir::new();
    let file = place.session(&[&said(1, 0).to_string()]);
    file.append("{\"torn").unwrap();
    let repair = file.repair().unwrap();
    let backup = file.path.with_extension("jsonl.bak");
    let error = repair.exchange(&mut Meter::unheard(), || {
        file.append("{\"nth\":1}").unwrap();
        // The backup goes where nobody can read it.
        fs::rename(&backup, place.dir().join("moved")).unwrap();
    });
    let error = error.unwrap_err();
    let Error::NotCarriedOver {
        file: named,
        backup: kept,
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((named, kept), (&file.path, &backup));
    assert!(error.to_string().contains("is repaired"), "{error}");
    assert_eq!(values(&fs::read(&file.path).unwrap()), [said(1, 0)]);
    let old = fs::read_to_string(place.dir().join("moved")).unwrap();
    assert!(old.ends_with("{\"nth\":1}\n"), "{old}");
}

#[test]
fn a_new_session_has_all_of_the_old_one() {
    let place = TestConfigDir::new();
    let id = SessionId::random();
    let mut first = said(1, 0);
    first["sessionId"] = id.as_str().into();
    let file = place.put(&id, "/p", format!("{first}\n{}\n{{\"torn", said(2, 1)).as_bytes());
    fs::create_dir_all(file.subagents_dir()).unwrap();
    fs::write(file.subagents_dir().join("agent-1.jsonl"), format!("{first}\n")).unwrap();
    fs::write(file.subagents_dir().join("agent-1.meta.json"), "{}").unwrap();
    let before = fs::read(&file.path).unwrap();
    let new = file.repair().unwrap().into_new().unwrap();
    assert_eq!(fs::read(&file.path).unwrap(), before);
    first["sessionId"] = new.id.as_str().into();
    let text = fs::read_to_string(&new.path).unwrap();
    assert_eq!(values(text.as_bytes()), [first.clone(), said(2, 1)]);
    let agent = fs::read(new.subagents_dir().join("agent-1.jsonl")).unwrap();
    assert_eq!(values(&agent), [first]);
    assert!(new.subagents_dir().join("agent-1.meta.json").exists());
}

/// Something that may be in a transcript.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let record = (1..12_usize, 0..13_usize, 0..5, 0..4_usize).prop_map(|(number, parent, kind, tool)| {
        let tool = format!("t{tool}");
        let record = match kind {
            0 | 1 => said(number, parent),
            2 => call(number, parent, &tool),
            _ => answer(number, parent, &tool),
        };
        record.to_string().into_bytes()
    });
    let torn = (record.clone(), any::<prop::sample::Index>())
        .prop_map(|(record, at)| record[..at.index(record.len())].to_vec());
    let nul = record.clone().prop_map(|record| [b"\0\0", &record[..]].concat());
    let glued = (torn.clone(), record.clone()).prop_map(|(torn, record)| [torn, record].concat());
    let noise = proptest::collection::vec(any::<u8>(), 0..20);
    prop_oneof![8 => record, 1 => torn, 1 => nul, 1 => glued, 1 => noise]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn mending_twice_changes_nothing(lines in proptest::collection::vec(line(), 0..25), is_ended in any::<bool>()) {
        let mut bytes = lines.join(&b'\n');
        if is_ended {
            bytes.push(b'\n');
        }
        let (mended, findings) = mended(&bytes);
        let touched: HashSet<u64> = findings.iter().map(|it| it.position.line).collect();
        // What nothing was found about is there as it was, unless what it followed was mended.
        let kept: HashSet<&[u8]> = mended.split(|byte| *byte == b'\n').collect();
        for (nth, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if touched.contains(&(nth as u64 + 1)) || kept.contains(line) {
                continue;
            }
            let record: Value = serde_json::from_slice(line).unwrap();
            let same = kept.iter().filter_map(|line| serde_json::from_slice::<Value>(line).ok()).any(|mut other| {
                other["parentUuid"] = record["parentUuid"].clone();
                other == record
            });
            let is_replaced = findings.iter().any(|it| matches!(&it.problem, Problem::DuplicateUuid { uuid, .. } if record["uuid"] == **uuid));
            prop_assert!(same || is_replaced, "{}", record);
        }
        // No call of the main conversation is without a result, and the other way round.
        let mut ids: HashMap<String, (bool, bool)> = HashMap::new();
        for record in mended.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok()) {
            for block in record["message"]["content"].as_array().into_iter().flatten() {
                if let Some(id) = block["id"].as_str() {
                    ids.entry(id.to_owned()).or_default().0 = true;
                }
                if let Some(id) = block["tool_use_id"].as_str() {
                    ids.entry(id.to_owned()).or_default().1 = true;
                }
            }
        }
        prop_assert!(ids.values().all(|both| *both == (true, true)), "{:?}", ids);
    }
}
