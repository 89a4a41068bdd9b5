//! Random records, read fast and by a slow, obvious reader.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::messages::{ConversationSelector, Messages};
use super::Home;
use crate::MessageOptions;

/// A conversation as a list of records: no index, no memory of what was seen but lists, each question asked of all records.
struct Slow(Vec<Value>);

impl Slow {
    fn of(records: &[Value]) -> Self {
        let mut kept: Vec<Value> = Vec::new();
        for record in records {
            match kept.iter_mut().find(|it| it["uuid"] == record["uuid"]) {
                Some(older) => *older = record.clone(),
                None => kept.push(record.clone()),
            }
        }
        Self(kept)
    }

    fn find(&self, uuid: &Value) -> Option<&Value> {
        self.0.iter().find(|it| it["uuid"] == *uuid)
    }

    fn is_main(record: &Value) -> bool {
        record["isSidechain"] != true && record["teamName"].is_null() && record["type"] != "progress"
    }

    fn set_parent(&mut self, uuid: &Value, parent: &Value) {
        if let Some(record) = self.0.iter_mut().find(|it| it["uuid"] == *uuid) {
            record["parentUuid"] = parent.clone();
        }
    }

    fn move_what_follows(&mut self, anchor: &Value, but: &Value, to: &Value) {
        for record in &mut self.0 {
            if record["parentUuid"] == *anchor && record["uuid"] != *but {
                record["parentUuid"] = to.clone();
            }
        }
    }

    fn put_in_what_was_kept(&mut self) {
        for boundary in self.0.clone() {
            let metadata = &boundary["compactMetadata"];
            if let Some(uuids) = metadata["preservedMessages"]["uuids"].as_array() {
                let anchor = &metadata["preservedMessages"]["anchorUuid"];
                if uuids.is_empty() || uuids.iter().any(|uuid| self.find(uuid).is_none()) {
                    continue;
                }
                let mut parent = anchor;
                for uuid in uuids {
                    self.set_parent(uuid, parent);
                    parent = uuid;
                }
                self.move_what_follows(anchor, &uuids[0], parent);
            } else if metadata["preservedSegment"].is_object() {
                let segment = &metadata["preservedSegment"];
                self.set_parent(&segment["headUuid"], &segment["anchorUuid"]);
                self.move_what_follows(&segment["anchorUuid"], &segment["headUuid"], &segment["tailUuid"]);
            }
        }
    }

    /// From a record back to where its parents lead, no record twice.
    fn back_from(&self, record: &Value) -> Vec<Value> {
        let mut path: Vec<Value> = Vec::new();
        let mut next = Some(record);
        while let Some(record) = next {
            if path.contains(record) {
                break;
            }
            path.push(record.clone());
            next = self.find(&record["parentUuid"]);
        }
        path
    }

    fn read(mut self, order: &[Value]) -> Vec<String> {
        self.put_in_what_was_kept();
        let last_first = order.iter().rev().filter_map(|it| self.find(&it["uuid"]));
        let followed = |it: &Value| {
            let mut mains = self.0.iter().filter(|other| Self::is_main(other));
            mains.any(|other| other["parentUuid"] == it["uuid"])
        };
        let said = |it: &Value| it["type"] == "user" || it["type"] == "assistant";
        let ends = last_first.filter(|it| Self::is_main(it) && !followed(it));
        let mut tips = ends.filter_map(|end| self.back_from(end).into_iter().find(said));
        let Some(tip) = tips.next() else {
            return Vec::new();
        };
        let mut chain = self.back_from(&tip);
        chain.reverse();
        let shown = |it: &&Value| {
            said(it) && it["isSidechain"] != true && it["teamName"].is_null() && it["isMeta"] != true
        };
        self.with_parallel(chain)
            .iter()
            .filter(shown)
            .map(|it| it["uuid"].as_str().unwrap().to_owned())
            .collect()
    }

    fn calls(record: &Value, kind: &str, key: &str) -> Vec<Value> {
        let blocks = record["message"]["content"].as_array().into_iter().flatten();
        blocks
            .filter(|block| block["type"] == kind)
            .map(|block| block[key].clone())
            .collect()
    }

    fn results(record: &Value) -> Vec<Value> {
        if record["type"] == "user" {
            Self::calls(record, "tool_result", "tool_use_id")
        } else {
            Vec::new()
        }
    }

    /// The one record that made a call, unless blocks of several answers did.
    fn maker(&self, call: &Value) -> Option<&Value> {
        let makers = self
            .0
            .iter()
            .filter(|it| it["type"] == "assistant" && Self::calls(it, "tool_use", "id").contains(call));
        let makers: Vec<&Value> = makers.collect();
        let first = makers.first()?;
        makers
            .iter()
            .all(|it| it["message"]["id"] == first["message"]["id"])
            .then(|| *makers.last().unwrap())
    }

    fn with_parallel(&self, chain: Vec<Value>) -> Vec<Value> {
        let mut seen = chain.clone();
        let mut whole = chain.clone();
        let mut done: Vec<Value> = Vec::new();
        for answer in chain.iter().filter(|it| it["type"] == "assistant") {
            let message = &answer["message"]["id"];
            if done.contains(message) {
                continue;
            }
            done.push(message.clone());
            let blocks: Vec<&Value> = self
                .0
                .iter()
                .filter(|it| it["type"] == "assistant" && it["message"]["id"] == *message)
                .collect();
            let mut lost: Vec<Value> = Vec::new();
            let mut strays: Vec<(usize, Value)> = Vec::new();
            for block in &blocks {
                for (at, it) in self.0.iter().enumerate() {
                    let calls = Self::results(it);
                    if calls.is_empty() || it["parentUuid"].is_null() || seen.contains(it) {
                        continue;
                    }
                    let same = |other: &Value| other["isSidechain"] == it["isSidechain"];
                    let follows = it["parentUuid"] == block["uuid"];
                    let names = it["sourceToolAssistantUUID"] == block["uuid"] && same(block);
                    let answers = calls.iter().any(|call| {
                        self.maker(call)
                            .is_some_and(|maker| maker == *block && same(maker))
                    });
                    if !(follows || names || answers)
                        || lost.contains(it)
                        || strays.iter().any(|stray| stray.1 == *it)
                    {
                        continue;
                    }
                    if blocks.iter().any(|block| it["parentUuid"] == block["uuid"]) {
                        lost.push(it.clone());
                    } else {
                        strays.push((at, it.clone()));
                    }
                }
            }
            strays.sort_by_key(|stray| stray.0);
            let mut answered: Vec<Value> = chain.iter().chain(&lost).flat_map(Self::results).collect();
            for (_, stray) in strays {
                let calls = Self::results(&stray);
                let is_open = |call: &Value| {
                    !answered.contains(call) && self.maker(call).is_some_and(|maker| blocks.contains(&maker))
                };
                if calls.iter().any(is_open) {
                    answered.extend(calls);
                    lost.push(stray);
                }
            }
            let mut back: Vec<Value> = blocks
                .iter()
                .filter(|it| !seen.contains(it))
                .map(|it| (*it).clone())
                .collect();
            let time = |it: &Value| it["timestamp"].as_str().unwrap().to_owned();
            back.sort_by_key(time);
            lost.sort_by_key(time);
            back.extend(lost);
            seen.extend(back.iter().cloned());
            let of_answer = |it: &Value| it["type"] == "assistant" && it["message"]["id"] == *message;
            let last = chain.iter().rev().find(|it| of_answer(it)).unwrap();
            let place = whole.iter().position(|it| it == last).unwrap() + 1;
            whole.splice(place..place, back);
        }
        whole
    }
}

/// Records that mostly follow one another, with everything that makes a transcript awkward.
fn records() -> impl Strategy<Value = Vec<Value>> {
    let one = (0..100_u8, 0..14_usize, 0..12_u8, 0..4_u8, 0..4_usize, 0..30_usize);
    proptest::collection::vec(one, 1..22).prop_map(|choices| {
        let mut records: Vec<Value> = Vec::new();
        for (at, (kind, back, odd, answer, call, time)) in choices.into_iter().enumerate() {
            let uuid = if odd == 0 && at > 0 { format!("r{}", back % at) } else { format!("r{at}") };
            let parent = match (at, back) {
                (0, _) => json!(null),
                (_, 13) => json!("gone"),
                (_, 12) => json!(null),
                // Forward too, so that there are circles.
                (_, 11) => json!(format!("r{}", at + 1)),
                (_, 0..7) => records[at - 1]["uuid"].clone(),
                (_, back) => records[at - 1 - back % at]["uuid"].clone(),
            };
            let mut record = json!({
                "parentUuid": parent, "uuid": uuid, "isSidechain": odd == 1, "timestamp": format!("2026-01-01T00:00:{time:02}Z"),
                "sessionId": "s",
            });
            if odd == 2 {
                record["isMeta"] = json!(true);
            }
            if odd == 3 {
                record["teamName"] = json!("t");
            }
            let named = |back: usize| json!(format!("r{}", back % (at + 1)));
            let (kind, message) = match kind {
                0..20 => ("user", json!({"role": "user", "content": "x"})),
                20..40 => ("assistant", json!({"id": format!("m{answer}"), "content": [{"type": "text", "text": "x"}]})),
                40..60 => ("assistant", json!({"id": format!("m{answer}"), "content": [{"type": "tool_use", "id": format!("t{call}")}]})),
                60..85 => ("user", json!({"content": [{"type": "tool_result", "tool_use_id": format!("t{call}")}]})),
                85..88 => ("progress", json!(null)),
                88..92 => ("attachment", json!(null)),
                kind => {
                    record["compactMetadata"] = match kind {
                        92..95 => json!({"preservedSegment": {"headUuid": named(back), "anchorUuid": named(call), "tailUuid": named(time)}}),
                        95..97 => json!({"preservedMessages": {"anchorUuid": named(call), "uuids": [named(back), named(time)]}}),
                        _ => json!({}),
                    };
                    ("system", json!(null))
                }
            };
            if kind == "user" && odd == 4 {
                record["sourceToolAssistantUUID"] = named(back);
            }
            record["type"] = json!(kind);
            record["message"] = message;
            records.push(record);
        }
        records
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_slow_and_obvious_reader_makes_the_same_of_it(records in records()) {
        let mut path = std::env::temp_dir();
        path.push(format!("outrigger-reference-{}.jsonl", std::process::id()));
        std::fs::write(&path, super::text(&records)).unwrap();
        let messages = Messages::open(&path, ConversationSelector::Main, &MessageOptions::new());
        let read: Vec<String> = messages.unwrap().map(|message| message.unwrap().uuid.into()).collect();
        std::fs::remove_file(&path).unwrap();
        // What counts as last is where the last record of an id stands.
        let mut order: Vec<Value> = Vec::new();
        for record in &records {
            order.retain(|it| it["uuid"] != record["uuid"]);
            order.push(record.clone());
        }
        prop_assert_eq!(read, Slow::of(&records).read(&order));
    }
}

#[test]
fn arbitrary_lines_never_panic() {
    let home = Home::new();
    let pieces = [
        "{",
        "}",
        "\"type\":\"user\"",
        "\"uuid\":\"a\"",
        "\"parentUuid\":\"a\"",
        ",",
        "[",
        "]",
        "\"message\":",
        "\"content\":",
        "\u{fffd}",
        "\0",
        "null",
        "\\",
        "\"",
        "\"customTitle\":\"",
        "{\"type\":\"tag\",\"tag\":\"",
        "\"timestamp\":\"2026",
        "\"compactMetadata\":{\"preservedSegment\":",
    ];
    let lines = proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..60);
    let config = ProptestConfig::with_cases(500);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let id = home.put(&[]);
    let run = runner.run(&(lines, any::<Vec<u8>>()), |(pieces, bytes)| {
        let mut text = pieces.concat().into_bytes();
        text.extend(bytes);
        std::fs::write(home.dir().join(id.file_name()), &text).unwrap();
        let _ = home.sessions.info(&id, None).unwrap();
        let _ = home.sessions.list(&crate::ListOptions::new()).unwrap();
        if let Ok(messages) = home
            .sessions
            .messages(&id, &MessageOptions::new().include_system_messages(true))
        {
            for message in messages {
                let _ = message.unwrap().decode();
            }
            let _ = home.sessions.cost(&id, None).unwrap();
        }
        Ok(())
    });
    run.unwrap();
}
