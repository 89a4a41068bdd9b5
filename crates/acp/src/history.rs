//! Replays a stored session as events.

mod window;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use outrigger::protocol::RawJson;
use outrigger::sessions::read::{MessageKind, Messages, Subagent};
use outrigger::sessions::{MessageOptions, SessionFile, SessionMessage};
use serde::Deserialize;

pub(crate) use self::window::{Page, Window};
use crate::event::{Event, Extra, RecordedAgent, Topic};
use crate::reduce::{ReducedStep, Reducer, TaskPlan};

/// What a replay reads.
#[derive(Debug)]
pub(crate) enum Recorded {
    /// A subagent, whose messages follow.
    Agent(RecordedAgent),
    Message(SessionMessage),
}

/// A subagent, if its record has the call that started it.
pub(crate) fn recorded(agent: &Subagent) -> Option<RecordedAgent> {
    Some(RecordedAgent {
        agent: agent.agent_id.as_str().into(),
        call: agent.tool_use_id.as_deref()?.into(),
        parent: agent.parent_agent_id.as_deref().map(Arc::from),
        title: agent.description.clone(),
        kind: agent.agent_type.clone(),
    })
}

/// Turns the messages of a stored session into events.
#[derive(Debug)]
pub(crate) struct History {
    reducer: Reducer,
    /// The time of all messages: a replay does not depend on time.
    now: Instant,
}

impl History {
    /// For a session with this working directory.
    pub(crate) fn new(cwd: PathBuf) -> Self {
        Self {
            reducer: Reducer::new(cwd),
            now: Instant::now(),
        }
    }

    pub(crate) fn events(&mut self, recorded: Recorded) -> Vec<Event> {
        let message = match recorded {
            Recorded::Agent(agent) => return vec![Event::RecordedAgent(Box::new(agent))],
            Recorded::Message(message) => message,
        };
        match message.decode() {
            Ok(message) => events(self.reducer.recorded(message, self.now)),
            Err(misfit) => {
                tracing::warn!(%misfit, uuid = %message.uuid, "a message of a transcript could not be read");
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

    /// The replay ends: calls that are still open never end. Also returns the plan.
    pub(crate) fn end(mut self) -> (Vec<Event>, TaskPlan) {
        let last = events(self.reducer.history_over());
        (last, self.reducer.into_plan())
    }
}

/// Reads the messages of a session in order. A subagent and its messages follow the call that started it.
/// Stops when `tell` returns that the receiver is gone.
///
/// # Errors
/// When the transcript can't be read. An unreadable transcript of a subagent is skipped.
pub(crate) fn read(
    file: &SessionFile,
    options: &MessageOptions,
    tell: &mut dyn FnMut(Recorded) -> bool,
) -> outrigger::sessions::Result<()> {
    let mut agents: HashMap<String, Vec<Subagent>> = HashMap::new();
    for agent in file.subagents() {
        if let Some(call) = agent.tool_use_id.clone() {
            agents.entry(call).or_default().push(agent);
        }
    }
    // The transcripts that are open, the innermost last. Each subagent is read once, so that the loop ends.
    let mut reading: Vec<TranscriptReading> = vec![TranscriptReading {
        messages: file.messages(options)?,
        agent: None,
        begins: None,
    }];
    while let Some(innermost) = reading.last_mut() {
        if let Some(agent) = innermost.begins.take()
            && !tell(Recorded::Agent(agent))
        {
            return Ok(());
        }
        let from = innermost.agent.clone();
        let message = match innermost.messages.next() {
            Some(Ok(message)) => message,
            Some(Err(why)) if reading.len() > 1 => {
                tracing::warn!(%why, "what an agent said could not be read");
                reading.pop();
                continue;
            }
            Some(Err(why)) => return Err(why),
            None => {
                reading.pop();
                continue;
            }
        };
        let begun = match agents.is_empty() {
            true => Vec::new(),
            false => calls(&message),
        };
        if !tell(Recorded::Message(message)) {
            return Ok(());
        }
        // Reversed, as the last is popped first.
        for agent in begun
            .iter()
            .filter_map(|call| agents.remove(call))
            .flatten()
            .rev()
        {
            match agent.messages(&MessageOptions::new()) {
                Ok(messages) => reading.push(TranscriptReading {
                    messages,
                    agent: Some(agent.agent_id.as_str().into()),
                    begins: recorded(&agent).map(|agent| RecordedAgent {
                        parent: from.clone(),
                        ..agent
                    }),
                }),
                Err(why) => {
                    tracing::warn!(%why, agent = %agent.agent_id, "what an agent said could not be read")
                }
            }
        }
    }
    Ok(())
}

/// A transcript that is being read.
struct TranscriptReading {
    messages: Messages,
    /// The subagent whose transcript is read; `None` for the main conversation.
    agent: Option<Arc<str>>,
    /// The subagent, until the receiver has it.
    begins: Option<RecordedAgent>,
}

/// The tool calls of a message.
fn calls(message: &SessionMessage) -> Vec<String> {
    #[derive(Deserialize)]
    struct MessageBlocks {
        content: Vec<Block>,
    }
    #[derive(Deserialize)]
    struct Block {
        r#type: String,
        id: Option<String>,
    }
    if message.kind != MessageKind::Assistant {
        return Vec::new();
    }
    let said: Option<MessageBlocks> = message.message.as_ref().and_then(|raw| raw.decode().ok());
    let blocks = said.map(|said| said.content).unwrap_or_default().into_iter();
    blocks
        .filter(|block| block.r#type == "tool_use")
        .filter_map(|block| block.id)
        .collect()
}

fn events(steps: Vec<ReducedStep>) -> Vec<Event> {
    let events = steps.into_iter().filter_map(|step| match step {
        ReducedStep::Event(event) => Some(event),
        // Effects are for running commands only.
        ReducedStep::Effect(_) => None,
    });
    events.collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use outrigger::sessions::{SessionId, Sessions};
    use serde_json::{Value, json};

    use super::*;
    use crate::reduce::testing::line;

    const ID: &str = "00000000-0000-4000-8000-000000000001";

    /// Replays a transcript of these records.
    fn told(records: &[Value]) -> String {
        told_with(records, &[])
    }

    /// The same with subagents: the call that started each, and its messages.
    fn told_with(records: &[Value], agents: &[(&str, &[Value])]) -> String {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("projects").join("-w");
        let subagents = project.join(ID).join("subagents");
        std::fs::create_dir_all(&subagents).unwrap();
        std::fs::write(project.join(format!("{ID}.jsonl")), transcript("u", records)).unwrap();
        for (number, (call, records)) in agents.iter().enumerate() {
            let path = subagents.join(format!("agent-a{number}.jsonl"));
            let text = transcript(&format!("a{number}-"), records);
            std::fs::write(&path, text).unwrap();
            let about = json!({"agentType": "general-purpose", "toolUseId": call});
            std::fs::write(path.with_extension("meta.json"), about.to_string()).unwrap();
        }
        let sessions = Sessions::at(home.path());
        let file = sessions.find(&SessionId::new(ID).unwrap()).unwrap();
        let mut history = History::new("/w".into());
        let mut all = Vec::new();
        read(&file, &MessageOptions::new(), &mut |recorded| {
            all.extend(history.events(recorded));
            true
        })
        .unwrap();
        all.extend(history.end().0);
        all.into_iter()
            .map(|event| line(&ReducedStep::Event(event)) + "\n")
            .collect()
    }

    fn transcript(prefix: &str, records: &[Value]) -> String {
        let mut text = String::new();
        for (number, record) in records.iter().enumerate() {
            let mut record = record.clone();
            let fields = record.as_object_mut().unwrap();
            let parent = number.checked_sub(1).map(|before| format!("{prefix}{before}"));
            fields.insert("uuid".into(), json!(format!("{prefix}{number}")));
            fields.insert("parentUuid".into(), json!(parent));
            fields.insert("sessionId".into(), json!(ID));
            fields.insert("cwd".into(), json!("/w"));
            fields.insert("timestamp".into(), json!("2026-01-01T00:00:00.000Z"));
            writeln!(text, "{record}").unwrap();
        }
        text
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

    #[test]
    fn what_agents_said_comes_below_their_calls() {
        let call = |id: &str, name: &str, input: Value| {
            answer(
                "m",
                json!({"type": "tool_use", "id": id, "name": name, "input": input}),
            )
        };
        let result = |id: &str| user(json!([{"type": "tool_result", "tool_use_id": id, "content": "done"}]));
        let agent = json!({"description": "CallView", "prompt": "look", "subagent_type": "general-purpose"});
        let outer = [
            user(json!("go")),
            call("one", "Agent", agent.clone()),
            call("two", "Agent", agent.clone()),
            result("one"),
            result("two"),
            answer("n", json!({"type": "text", "text": "all done"})),
        ];
        let one = [
            user(json!("look")),
            call("in", "Bash", json!({"command": "ls"})),
            result("in"),
            call("deep", "Agent", agent),
            result("deep"),
        ];
        let deep = [
            user(json!("look deeper")),
            call("read", "Read", json!({"file_path": "/w/a"})),
            result("read"),
        ];
        let two = [
            user(json!("look")),
            answer("t", json!({"type": "text", "text": "seen"})),
        ];
        let told = told_with(
            &outer,
            &[("deep", &deep), ("one", &one), ("two", &two), ("gone", &deep)],
        );
        let input = r#"{"description":"CallView","subagent_type":"general-purpose"}"#;
        let expected = format!(
            r#"user u0 "go"
call one Agent Think Pending "CallView" ["look"] in={input}
agent a1 of one by -
prompt a1-0 of one "look"
call in Bash Execute Pending "ls" under one [terminal in] in={{"command":"ls"}}
  terminal in runs "ls" in Some("/w")
  call in under one InProgress
  terminal in "done"
  terminal in exits Some(0) None
  call in under one Completed
call deep Agent Think Pending "CallView" under one ["look"] in={input}
agent a0 of deep by a1
prompt a0-0 of deep "look deeper"
call read Read Read Pending "Read a" under deep @/w/a [] in={{"file_path":"/w/a"}}
  call read under deep InProgress
  call read under deep Completed ["```\ndone\n```"]
  call deep under one InProgress
  call deep under one Completed ["done"]
call two Agent Think Pending "CallView" ["look"] in={input}
agent a2 of two by -
prompt a2-0 of two "look"
text t under two "seen"
  call one InProgress
  call one Completed ["done"]
  call two InProgress
  call two Completed ["done"]
text n "all done"
"#
        );
        assert_eq!(told, expected);
    }
}
