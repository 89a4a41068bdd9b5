//! What the real CLI makes of damages, and of what was mended.

use std::fs;

use outrigger_sessions::SessionFile;
use outrigger_sessions::repair::Problem;
use serde_json::Value;

use super::rig::{Rig, THREE_TURNS, json, line_with, lines};

/// What is done to a transcript: its name, and the damaged lines.
type Damage = (&'static str, fn(&mut Vec<String>));

fn call(lines: &[String]) -> usize {
    line_with(lines, &["\"assistant\"", "\"tool_use\"", "\"Bash\""])
}

fn result(lines: &[String]) -> usize {
    line_with(lines, &["\"tool_result\"", "\"hi\""])
}

fn third(lines: &[String]) -> usize {
    line_with(lines, &["\"user\"", "%say three"])
}

/// Changes a field of a line.
fn set(line: &mut String, field: &str, value: impl Into<Value>) {
    let mut record = json(line);
    record[field] = value.into();
    *line = record.to_string();
}

const DAMAGES: [Damage; 11] = [
    ("a torn last line", |lines| {
        let torn = lines[third(lines)][..200].to_owned();
        lines.push(torn);
    }),
    ("garbage between", |lines| {
        lines.insert(third(lines), "xx{garbage".to_owned())
    }),
    ("NULs before a record", |lines| {
        let at = third(lines);
        lines[at].insert_str(0, &"\0".repeat(512));
    }),
    ("a torn line with a record behind it", |lines| {
        let at = third(lines);
        let torn = lines[at][..150].to_owned();
        lines[at].insert_str(0, &torn);
    }),
    ("a missing parent", |lines| {
        let at = third(lines);
        set(
            &mut lines[at],
            "parentUuid",
            "00000000-0000-4000-8000-000000000000",
        );
    }),
    ("a circle", |lines| {
        let last = json(&lines[third(lines)])["uuid"].clone();
        let first = line_with(lines, &["%say one", "\"user\"", "parentUuid"]);
        set(&mut lines[first], "parentUuid", last);
    }),
    ("a record twice", |lines| {
        let at = third(lines);
        lines.insert(at, lines[at].clone());
    }),
    ("half a surrogate pair", |lines| {
        let at = third(lines);
        lines[at] = lines[at].replace("%say three", "%say three\\ud83d");
    }),
    ("a call without a result", |lines| {
        lines.truncate(call(lines) + 1);
    }),
    ("a result that was lost", |lines| {
        lines.remove(result(lines));
    }),
    ("a result whose call was lost", |lines| {
        lines.remove(call(lines));
    }),
];

/// What the model is told after the repair, where it is not what it was told before the damage.
fn told_after(name: &str) -> Vec<String> {
    const LOST: &str = "user result [The result of this tool call was not recorded: the session ended before it, or the record was \
        lost. What the call has done is unknown.]";
    let mut told = THREE_TURNS.map(str::to_owned).to_vec();
    match name {
        "half a surrogate pair" => told[8] = "user %say three\u{fffd}".to_owned(),
        "a call without a result" => {
            told[6] = LOST.to_owned();
            // The CLI's own words where an answer is missing.
            told.splice(7..10, ["assistant No response requested.".to_owned()]);
        }
        "a result that was lost" => told[6] = LOST.to_owned(),
        "a result whose call was lost" => drop(told.drain(5..7)),
        _ => {}
    }
    told
}

fn damage(file: &SessionFile, damage: fn(&mut Vec<String>)) {
    let mut lines = lines(file);
    damage(&mut lines);
    fs::write(&file.path, lines.join("\n")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_mended_is_resumed_and_answers() {
    let rig = Rig::start().await;
    let file = rig.three_turns().await;
    assert_eq!(
        file.repair().unwrap().findings(),
        [],
        "the CLI's own transcript is fine"
    );
    let whole = fs::read(&file.path).unwrap();
    for (name, change) in DAMAGES {
        fs::write(&file.path, &whole).unwrap();
        damage(&file, change);
        let repair = file.repair().unwrap();
        assert!(repair.changes_something(), "{name}");
        let new = repair.into_new().unwrap();
        repair.in_place().unwrap();
        assert_eq!(
            rig.resume(&file.id).await,
            told_after(name),
            "{name}: {:?}",
            repair.findings()
        );
        assert_eq!(
            rig.resume(&new.id).await,
            told_after(name),
            "{name}, as a new session"
        );
        let after = rig.sessions.find(&file.id).unwrap().repair().unwrap();
        assert_eq!(
            after.findings(),
            [],
            "{name}: the CLI went on with a sound transcript"
        );
    }
}

/// What the documentation of `repair` says that the CLI does without it: where that changes, the table there has to.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_cli_makes_of_damages_is_known() {
    let rig = Rig::start().await;
    let file = rig.three_turns().await;
    let whole = fs::read(&file.path).unwrap();
    for (name, change) in DAMAGES {
        fs::write(&file.path, &whole).unwrap();
        damage(&file, change);
        let told = rig.resume(&file.id).await;
        let mut expected = told_after(name);
        match name {
            "NULs before a record" | "a torn line with a record behind it" => drop(expected.remove(8)),
            "a call without a result" => {
                expected[6] =
                    "user result [Tool call interrupted: the session ended before this call".to_owned();
                assert!(told[6].starts_with(&expected[6]), "{told:?}");
                expected[6].clone_from(&told[6]);
            }
            "a result that was lost" => drop(expected.drain(5..7)),
            _ => {}
        }
        assert_eq!(told, expected, "{name}");
    }
    fs::write(&file.path, "").unwrap();
    let mut claude = rig.spawn(&rig.sandbox.project(), &["--resume", file.id.as_str()]);
    let result = claude.result().await.unwrap().value;
    assert!(
        result["errors"][0]
            .as_str()
            .unwrap()
            .contains("No conversation found"),
        "{result}"
    );
    assert_eq!(file.repair().unwrap().findings()[0].problem, Problem::Empty);
}
