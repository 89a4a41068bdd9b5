//! Where messages and their blocks begin and end, as programs see it.

use outrigger::{AmbientEvent, BlockKind, Error, Event, Session};
use outrigger_sim::peer::{Agent, Match, Steps};
use serde_json::{Value, json};

use crate::support::{reaching, session};

/// Two messages with text, and a tool call between them.
const TWO: &str = "%say First I look.\n%+tool Bash {\"command\":\"true\"}\n%say Then I am done.";

/// What the README's loop prints, and what is open at the end.
#[derive(Debug, Default)]
struct Reader {
    printed: String,
    open: Vec<String>,
    ids: Vec<String>,
}

impl Reader {
    fn read(&mut self, event: Event) {
        match event {
            Event::Text(text) => self.printed.push_str(&text),
            Event::ContentBlockStop { kind, index, .. } => {
                assert_eq!(self.open.pop(), Some(format!("{index} {kind}")));
                if kind == BlockKind::Text {
                    self.printed.push('\n');
                }
            }
            Event::MessageStart { id, model, .. } => {
                assert!(self.open.is_empty() && model.is_some());
                self.ids.push(id.unwrap());
                self.open.push("message".to_owned());
            }
            Event::ContentBlockStart { index, kind, .. } => {
                assert_eq!(self.open, ["message"]);
                self.open.push(format!("{index} {kind}"));
            }
            Event::MessageStop { id, .. } => {
                assert_eq!(self.open.pop().as_deref(), Some("message"));
                assert_eq!(id.as_ref(), self.ids.last());
            }
            _ => {}
        }
    }
}

async fn read(session: &Session, prompt: &str) -> (Reader, Option<Error>) {
    let mut turn = session.prompt(prompt).await.unwrap();
    let (mut reader, mut error) = (Reader::default(), None);
    while let Some(event) = turn.next().await {
        assert!(error.is_none(), "an error is the last");
        match event {
            Ok(event) => reader.read(event),
            Err(broken) => error = Some(broken),
        }
    }
    assert!(reader.open.is_empty(), "{reader:?}");
    (reader, error)
}

#[tokio::test(start_paused = true)]
async fn texts_of_two_messages_are_two_lines_whether_they_stream_or_not() {
    for partial in [false, true] {
        let (session, _running) = session(Agent::builder().partial_messages(partial)).await;
        let (reader, error) = read(&session, TWO).await;
        assert_eq!(reader.printed, "First I look.\nThen I am done.\n", "{partial}");
        assert!(reader.ids.len() >= 2, "{reader:?}");
        assert!(error.is_none());
        let mut turn = session.prompt(TWO).await.unwrap();
        let (text, _) = turn.text().await.unwrap();
        assert_eq!(text, "First I look.\n\nThen I am done.", "{partial}");
    }
}

fn streamed(event: Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null, "uuid": "u", "session_id": "s"})
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_cli_had_begun_ends_before_the_error() {
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []});
    let script = Steps::new()
        .initialize()
        .expect(Match::prompt("go"))
        .send(streamed(json!({"type": "message_start", "message": message})))
        .send(streamed(json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": "so fa"}})))
        .die(9);
    let (options, _running) = reaching(script.spawn_in_memory());
    let session = options.start().await.unwrap();
    let mut ambient = session.ambient();
    let (reader, error) = read(&session, "go").await;
    assert!(error.is_some());
    let mut all = reader;
    while let Some(event) = ambient.next().await {
        if let AmbientEvent::Event(event) = event {
            all.read(event);
        }
    }
    assert_eq!(all.printed, "so fa\n");
    assert_eq!(all.ids, ["m"]);
    assert!(all.open.is_empty(), "{all:?}");
}
