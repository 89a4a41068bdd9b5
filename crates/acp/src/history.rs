//! A conversation that is over, told again in the same events.

use std::path::PathBuf;
use std::time::Instant;

use outrigger::protocol::RawJson;
use outrigger::sessions::SessionMessage;

use crate::event::{Event, Extra};
use crate::reduce::{Reducer, Step, Topic};

/// Makes events of the messages of a session at rest, one after the other.
#[derive(Debug)]
pub(crate) struct History {
    reducer: Reducer,
    /// Nothing happens in history, so it is always the same time.
    now: Instant,
}

impl History {
    /// Of a session that worked in this directory.
    pub(crate) fn new(cwd: PathBuf) -> Self {
        Self {
            reducer: Reducer::new(cwd),
            now: Instant::now(),
        }
    }

    /// Takes the next message.
    pub(crate) fn message(&mut self, message: &SessionMessage) -> Vec<Event> {
        match message.decode() {
            Ok(message) => events(self.reducer.recorded(message, self.now)),
            Err(misfit) => {
                tracing::warn!(%misfit, uuid = message.uuid, "a message of a transcript could not be read");
                let data =
                    RawJson::encode(&serde_json::json!({"uuid": message.uuid, "reason": misfit.reason}));
                let extra = data.map(|data| Extra {
                    topic: Topic::Misfit,
                    call: None,
                    data,
                });
                extra
                    .map(|extra| Event::Extra(Box::new(extra)))
                    .into_iter()
                    .collect()
            }
        }
    }

    /// There is no more: what is still open will never end.
    pub(crate) fn end(mut self) -> Vec<Event> {
        events(self.reducer.history_over())
    }
}

fn events(steps: Vec<Step>) -> Vec<Event> {
    let events = steps.into_iter().filter_map(|step| match step {
        Step::Event(event) => Some(event),
        // What could be done is long done.
        Step::Effect(_) => None,
    });
    events.collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use outrigger::sessions::{MessageOptions, SessionId, Sessions};
    use serde_json::{Value, json};

    use super::*;
    use crate::reduce::testing::line;

    const ID: &str = "00000000-0000-4000-8000-000000000001";

    /// A transcript of these records, each behind the other, told again.
    fn told(records: &[Value]) -> String {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("projects").join("-w");
        std::fs::create_dir_all(&project).unwrap();
        let mut text = String::new();
        for (number, record) in records.iter().enumerate() {
            let mut record = record.clone();
            let fields = record.as_object_mut().unwrap();
            let parent = number.checked_sub(1).map(|before| format!("u{before}"));
            fields.insert("uuid".into(), json!(format!("u{number}")));
            fields.insert("parentUuid".into(), json!(parent));
            fields.insert("sessionId".into(), json!(ID));
            fields.insert("cwd".into(), json!("/w"));
            fields.insert("timestamp".into(), json!("2026-01-01T00:00:00.000Z"));
            writeln!(text, "{record}").unwrap();
        }
        std::fs::write(project.join(format!("{ID}.jsonl")), text).unwrap();
        let messages = Sessions::at(home.path())
            .messages(&SessionId::new(ID).unwrap(), &MessageOptions::new())
            .unwrap();
        let mut history = History::new("/w".into());
        let mut all = Vec::new();
        for message in messages {
            all.extend(history.message(&message.unwrap()));
        }
        all.extend(history.end());
        all.into_iter()
            .map(|event| line(&Step::Event(event)) + "\n")
            .collect()
    }

    fn user(content: Value) -> Value {
        json!({"type": "user", "message": {"role": "user", "content": content}})
    }

    fn answer(id: &str, block: Value) -> Value {
        json!({"type": "assistant", "message": {"id": id, "type": "message", "role": "assistant", "model": "x",
            "content": [block], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}}})
    }

    #[test]
    fn history_is_told_like_what_happens_now() {
        let mut result = user(json!([{"type": "tool_result", "tool_use_id": "t", "content": "hi"}]));
        result["toolUseResult"] = json!({"stdout": "hi", "stderr": "", "interrupted": false});
        let told = told(&[
            user(json!("hello")),
            answer(
                "m",
                json!({"type": "thinking", "thinking": "hm", "signature": ""}),
            ),
            answer("m", json!({"type": "text", "text": "one"})),
            answer(
                "m",
                json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "echo hi"}}),
            ),
            result,
            answer("n", json!({"type": "text", "text": "two"})),
            answer(
                "n",
                json!({"type": "tool_use", "id": "v", "name": "Read", "input": {"file_path": "/w/a"}}),
            ),
        ]);
        assert_eq!(
            told,
            "user u0 \"hello\"\nthought m \"hm\"\ntext m \"one\"\n\
             call t Bash Execute Pending \"echo hi\" [terminal t] in={\"command\":\"echo hi\"}\n\
             \x20 terminal t runs \"echo hi\" in Some(\"/w\")\n  call t InProgress\n  terminal t \"hi\"\n\
             \x20 terminal t exits Some(0) None\n  call t Completed\ntext n \"two\"\n\
             call v Read Read Pending \"Read a\" @/w/a [] in={\"file_path\":\"/w/a\"}\n  call v Cancelled\n"
        );
    }

    #[test]
    fn what_was_for_the_model_only_is_not_told() {
        let mut meta = user(json!("a caveat"));
        meta["isMeta"] = json!(true);
        let mut notified = user(json!("<task-notification>x</task-notification>"));
        notified["origin"] = json!({"kind": "task-notification"});
        let command = "<command-name>/hello</command-name>\n<command-message>hello</command-message>\n<command-args>you</command-args>";
        let told = told(&[
            user(json!("first")),
            meta,
            notified,
            user(json!(command)),
            user(json!("<local-command-stdout>printed</local-command-stdout>")),
            user(json!([{"type": "text", "text": "[Request interrupted by user]"}])),
        ]);
        assert_eq!(
            told,
            "user u0 \"first\"\nuser u3 \"/hello you\"\ntext - \"printed\"\n"
        );
    }

    #[test]
    fn what_was_in_the_background_is_over() {
        let mut result = user(
            json!([{"type": "tool_result", "tool_use_id": "t", "content": "Command running in background with ID: b1"}]),
        );
        result["toolUseResult"] =
            json!({"stdout": "", "stderr": "", "interrupted": false, "backgroundTaskId": "b1"});
        let told = told(&[
            user(json!("go")),
            answer(
                "m",
                json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make"}}),
            ),
            result,
        ]);
        assert!(
            told.ends_with("  call t InProgress\n  call t Completed\n") && !told.contains("background"),
            "{told}"
        );
    }
}
