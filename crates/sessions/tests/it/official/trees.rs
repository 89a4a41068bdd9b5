//! Transcripts by chance, the same ones each time.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use outrigger_sessions::{SessionId, Sessions};
use serde_json::{Value, json};

pub(crate) const PROJECT: &str = "/place/of the/project";

/// Numbers that look random (Knuth's MMIX).
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A transcript in the making.
struct Draft {
    chance: Chance,
    session: SessionId,
    lines: Vec<Value>,
    made: usize,
}

impl Draft {
    fn uuid(&mut self) -> String {
        self.made += 1;
        format!(
            "{:08x}-0000-4000-8000-{:012x}",
            self.made,
            self.chance.below(1 << 30)
        )
    }

    fn record(&mut self, kind: &str, parent: Option<&str>, message: Value) -> String {
        let uuid = self.uuid();
        let second = self.lines.len();
        let mut record = json!({
            "parentUuid": parent, "isSidechain": false, "type": kind, "uuid": uuid, "sessionId": self.session,
            "timestamp": format!("2026-01-01T{:02}:{:02}:{:02}.{:03}Z", second / 3600, second / 60 % 60, second % 60, self.chance.below(1000)),
            "cwd": PROJECT, "gitBranch": self.chance.pick(&["main", "topic", "HEAD"]), "version": "2.1.330", "entrypoint": "cli",
        });
        if !message.is_null() {
            record["message"] = message;
        }
        self.lines.push(record);
        uuid
    }

    fn last(&mut self) -> &mut Value {
        self.lines.last_mut().expect("there is one")
    }

    /// A note, with its type first, as the CLI writes them and the Python SDK needs them.
    fn note(&mut self) {
        let (kind, rest) = match self.chance.below(8) {
            0 => (
                "custom-title",
                json!({"customTitle": self.chance.pick(&["A title", "Another \"title\"", ""])}),
            ),
            1 => ("ai-title", json!({"aiTitle": "What it is about"})),
            2 => ("tag", json!({"tag": self.chance.pick(&["red", "green", ""])})),
            3 => ("last-prompt", json!({"lastPrompt": "the last é prompt"})),
            4 => ("queue-operation", json!({"operation": "enqueue", "content": "x"})),
            5 => (
                "file-history-snapshot",
                json!({"snapshot": {"trackedFileBackups": {}}}),
            ),
            _ => ("mode", json!({"mode": "normal"})),
        };
        let rest = rest.to_string();
        self.lines
            .push(json!(format!("{{\"type\":\"{kind}\",{}", &rest[1..])));
    }

    fn prompt(&mut self, parent: Option<&str>) -> String {
        let text = self.chance.pick(&[
            "Why?",
            "Two\nlines of it",
            "  spaces  ",
            "ein längerer Text, größer als die anderen",
            "[Request interrupted by user]",
            "x\\y \"z\"",
        ]);
        let content = match self.chance.below(3) {
            0 => json!([{"type": "text", "text": text}]),
            1 => {
                json!([{"type": "image", "source": {"type": "base64", "data": "AA=="}}, {"type": "text", "text": text}])
            }
            _ => json!(text),
        };
        self.record("user", parent, json!({"role": "user", "content": content}))
    }

    /// A prompt and what comes of it; where the conversation stands then.
    fn turn(&mut self, parent: Option<&str>) -> String {
        let mut tip = self.prompt(parent);
        if self.chance.one_in(4) {
            tip = self.record("attachment", Some(&tip), Value::Null);
            self.last()["attachment"] = json!({"type": "file", "filename": "/x"});
        }
        for _ in 0..self.chance.below(3) {
            tip = self.answer_with_calls(&tip);
            if self.chance.one_in(5) {
                self.note();
            }
        }
        let message = format!("msg_{}", self.uuid());
        let answer = |text: &str| json!({"id": message, "role": "assistant", "content": [{"type": "text", "text": text}]});
        tip = self.record("assistant", Some(&tip), answer("so"));
        tip = self.record("assistant", Some(&tip), answer("it is"));
        if self.chance.one_in(3) {
            tip = self.record("system", Some(&tip), Value::Null);
            self.last()["subtype"] = json!("turn_duration");
        }
        tip
    }

    /// An answer with calls, each followed by its result, in an order that depends on which tool was done first.
    fn answer_with_calls(&mut self, parent: &str) -> String {
        let message = format!("msg_{}", self.uuid());
        let mut tip = parent.to_owned();
        let mut calls = Vec::new();
        for _ in 0..=self.chance.below(3) {
            let call = format!("toolu_{}", self.uuid());
            let content =
                json!([{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "x"}}]);
            tip = self.record(
                "assistant",
                Some(&tip),
                json!({"id": message, "role": "assistant", "content": content}),
            );
            calls.push((tip.clone(), call));
        }
        let mut last = tip;
        while !calls.is_empty() {
            let (block, call) = calls.remove(self.chance.below(calls.len()));
            let content = json!([{"type": "tool_result", "tool_use_id": call, "content": "y"}]);
            last = self.record("user", Some(&block), json!({"role": "user", "content": content}));
            self.last()["sourceToolAssistantUUID"] = json!(block);
        }
        last
    }
}

fn write(config: &Path, nth: usize, make: impl FnOnce(&mut Draft)) -> SessionId {
    let session = SessionId::new(&format!("{nth:08x}-0000-4000-8000-000000000000")).unwrap();
    let mut draft = Draft {
        chance: Chance(nth as u64 * 7919 + 1),
        session: session.clone(),
        lines: Vec::new(),
        made: 0,
    };
    make(&mut draft);
    let dir = Sessions::at(config).project_dir(PROJECT);
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(session.file_name());
    let line = |line: &Value| line.as_str().map_or_else(|| line.to_string(), str::to_owned) + "\n";
    fs::write(&path, draft.lines.iter().map(line).collect::<String>()).unwrap();
    // Half of a second apart, and some at the same time.
    let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_225_600_000 + (nth as u64 / 2) * 500);
    fs::File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .set_modified(modified)
        .unwrap();
    session
}

/// Transcripts as the CLI writes them: turns one after the other, now and then one that begins where an earlier one ended.
pub(crate) fn orderly(config: &Path, many: usize) -> Vec<SessionId> {
    let one = |nth| {
        write(config, nth, |draft| {
            let mut tips: Vec<String> = Vec::new();
            for _ in 0..=draft.chance.below(12) {
                if draft.chance.one_in(3) {
                    draft.note();
                }
                let parent = match tips.len() {
                    0 => None,
                    many if draft.chance.one_in(6) => Some(tips[draft.chance.below(many)].clone()),
                    many => Some(tips[many - 1].clone()),
                };
                let tip = draft.turn(parent.as_deref());
                tips.push(tip);
            }
            if draft.chance.one_in(4) {
                let last = tips[tips.len() - 1].clone();
                draft.prompt(Some(&last));
            }
            draft.note();
        })
    };
    (0..many).map(one).collect()
}

/// Records that follow anything, with everything that makes a transcript awkward.
pub(crate) fn disorderly(config: &Path, many: usize) -> Vec<SessionId> {
    (0..many).map(|nth| write(config, nth, scramble)).collect()
}

fn scramble(draft: &mut Draft) {
    let mut ids: Vec<String> = vec!["11111111-0000-4000-8000-000000000000".to_owned()];
    for _ in 0..4 + draft.chance.below(24) {
        let near = ids.len().min(if draft.chance.one_in(3) { 12 } else { 1 });
        let parent = ids[ids.len() - 1 - draft.chance.below(near)].clone();
        let parent = (ids.len() > 1 || draft.chance.one_in(2)).then_some(parent);
        let parent = parent.as_deref();
        let message = format!("m{}", draft.chance.below(4));
        let call = format!("t{}", draft.chance.below(5));
        let any = |draft: &mut Draft| ids[draft.chance.below(ids.len())].clone();
        let uuid = match draft.chance.below(20) {
            0..5 => draft.prompt(parent),
            5..8 => {
                let content = json!([{"type": "text", "text": "x"}]);
                draft.record(
                    "assistant",
                    parent,
                    json!({"id": message, "role": "assistant", "content": content}),
                )
            }
            8..12 => {
                let content = json!([{"type": "tool_use", "id": call, "name": "X", "input": {}}]);
                draft.record(
                    "assistant",
                    parent,
                    json!({"id": message, "role": "assistant", "content": content}),
                )
            }
            12..16 => {
                let content = json!([{"type": "tool_result", "tool_use_id": call, "content": "y"}]);
                let uuid = draft.record("user", parent, json!({"role": "user", "content": content}));
                if draft.chance.one_in(4) {
                    draft.last()["sourceToolAssistantUUID"] = json!(any(draft));
                }
                uuid
            }
            16 => draft.record("progress", parent, Value::Null),
            17 => {
                let uuid = draft.record("attachment", parent, Value::Null);
                let source = any(draft);
                draft.last()["attachment"] = match draft.chance.below(4) {
                    0 => json!({"type": "file"}),
                    1 => json!({"type": "queued_command", "prompt": "q", "source_uuid": source}),
                    2 => json!({"type": "queued_command", "prompt": "q", "isMeta": true}),
                    _ => json!({"type": "queued_command", "prompt": [], "commandMode": "prompt"}),
                };
                uuid
            }
            kind => {
                let uuid = draft.record("system", parent, Value::Null);
                let (head, anchor, tail) = (any(draft), any(draft), any(draft));
                draft.last()["subtype"] = json!("compact_boundary");
                draft.last()["compactMetadata"] = match kind {
                    18 => {
                        json!({"preservedSegment": {"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}})
                    }
                    _ => json!({"preservedMessages": {"anchorUuid": anchor, "uuids": [head, tail]}}),
                };
                uuid
            }
        };
        match draft.chance.below(12) {
            0 => draft.last()["isSidechain"] = json!(true),
            1 => draft.last()["isMeta"] = json!(true),
            2 => draft.last()["teamName"] = json!("t"),
            3 => draft.last()["agentId"] = json!("g"),
            _ => {}
        }
        ids.push(uuid);
    }
}
