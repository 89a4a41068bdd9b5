//! What was said before, in the words of what is said now.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger::options::Launch;
use outrigger::protocol::Frame;
use outrigger::protocol::inbound::Message;
use outrigger::sessions::store::{ImportOptions, MemoryStore, import_to_store};
use outrigger::sessions::{MessageOptions, SessionId, Sessions};
use outrigger::transport::{BoxFuture, Connection, Transport};
use outrigger::{Event, History, Options, Session};
use outrigger_sim::peer;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::callbacks::{Wire, agent};
use crate::cancel::{Cancel, When};
use crate::support::Peer;

/// A transport in memory that passes for one on this machine.
pub(crate) struct Near<T>(pub(crate) T);

impl<T: Transport> Transport for Near<T> {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        self.0.open(launch)
    }

    fn is_local(&self) -> bool {
        true
    }
}

/// Starts a simulated CLI that keeps its transcripts below `home`.
pub(crate) struct Simulated(pub(crate) PathBuf, pub(crate) Option<SessionId>);

impl Transport for Simulated {
    fn open<'a>(&'a self, _: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        // A process does not use the ids of another.
        let agent = match &self.1 {
            Some(id) => peer::Agent::builder().resume(id.as_str()).seed(1),
            None => peer::Agent::builder(),
        };
        let agent = agent.cwd(&self.0).config_dir(self.0.join("config"));
        let (io, running) = agent
            .session_persistence(true)
            .directives()
            .sdk_reads_session_state()
            .spawn_in_memory();
        let connection = Connection {
            stdin: Box::new(io.stdin),
            stdout: Box::new(io.stdout),
            stderr: Some(Box::new(io.stderr)),
            process: Box::new(Peer(Arc::new(running))),
        };
        Box::pin(std::future::ready(Ok(connection)))
    }
}

pub(crate) fn near(home: &Path) -> Options {
    agent()
        .cli_path(std::env::current_exe().unwrap())
        .cwd(home)
        .env("HOME", home)
        .env("CLAUDE_CONFIG_DIR", home.join("config"))
        .permissions(outrigger::Policy::allow_all())
}

/// What a message of the main conversation says, whoever brings it. When the CLI tells a block of an answer, it does not know yet
/// why the model stops and what it took; the transcript has that.
pub(crate) fn said(frame: &Frame) -> Option<Value> {
    match frame.decode().unwrap() {
        Message::Assistant(message) if message.parent_tool_use_id.is_none() => {
            let told = message.message;
            Some(
                json!(["assistant", message.uuid, {"id": told.id, "model": told.model, "content": told.content}]),
            )
        }
        Message::User(message) if message.parent_tool_use_id.is_none() => Some(json!([
            "user",
            message.uuid,
            message.message,
            message.tool_use_result
        ])),
        _ => None,
    }
}

pub(crate) async fn frames(mut history: History) -> Vec<Value> {
    let mut all = Vec::new();
    while let Some(frame) = history.next_frame().await {
        all.extend(said(&frame.unwrap()));
    }
    all
}

/// The events of a history that a turn brings too, as a line each; with the prompts.
pub(crate) async fn shown(mut history: History) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(event) = history.next().await {
        all.push(match event.unwrap() {
            Event::Text(text) => format!("text {text}"),
            Event::Thinking(text) => format!("thinking {text}"),
            Event::ToolUse(tool) => format!("use {}", tool.name),
            Event::ToolResult(result) => format!("result {}", if result.is_error { "error" } else { "ok" }),
            Event::Message(message, _) => match *message {
                Message::User(_) => "prompt".to_owned(),
                other => format!("{other:?}"),
            },
            Event::MessageStart { .. }
            | Event::MessageStop { .. }
            | Event::ContentBlockStart { .. }
            | Event::ContentBlockStop { .. } => continue,
            other => format!("{other:?}"),
        });
    }
    all
}

/// Runs prompts; what was told of the conversation meanwhile, prompts of the user left out.
pub(crate) async fn live(session: &Session, prompts: &[&str]) -> Vec<Value> {
    let mut frames = session.frames();
    let mut told = Vec::new();
    for prompt in prompts {
        let mut turn = session.prompt(*prompt).await.unwrap();
        turn.outcome().await.unwrap();
        loop {
            let frame = frames.next().await.unwrap().unwrap();
            told.extend(said(&frame));
            if frame.kind() == "result" {
                break;
            }
        }
    }
    told
}

/// A history without the prompts, which the CLI does not tell.
pub(crate) fn without_prompts(history: Vec<Value>) -> Vec<Value> {
    let is_prompt = |message: &Value| {
        let has_result = message[2]["content"]
            .as_array()
            .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"));
        message[0] == "user" && !has_result
    };
    history
        .into_iter()
        .filter(|message| !is_prompt(message))
        .collect()
}

const TURNS: [&str; 2] = [
    "%tool Bash {\"command\":\"true\",\"description\":\"try\"}\n%say one",
    "%say two",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_was_received_is_what_the_history_gives() {
    let home = tempfile::tempdir().unwrap();
    let options = near(home.path()).transport(Near(Simulated(home.path().to_owned(), None)));
    let session = options.start().await.unwrap();
    let none = session.history().await.unwrap();
    assert!(none.is_empty() && !none.is_behind(), "{none:?}");
    let told = live(&session, &TURNS).await;
    assert_eq!(told.len(), 4, "{told:#?}");
    let history = session.history().await.unwrap();
    assert!(!history.is_behind() && history.len() == 6, "{history:?}");
    assert_eq!(without_prompts(frames(history).await), told);
    let events = shown(session.history().await.unwrap()).await;
    assert_eq!(
        events,
        [
            "prompt",
            "use Bash",
            "result ok",
            "text one",
            "prompt",
            "text two"
        ]
    );
    let some = MessageOptions::new().offset(1).limit(2);
    let some = session.history_with(&some).await.unwrap();
    assert_eq!((some.len(), some.is_behind()), (2, false));
    assert_eq!(shown(some).await, ["use Bash", "result ok"]);

    // After its end, and without a process.
    let id = SessionId::new(&session.id().unwrap()).unwrap();
    session.clone().close().await.unwrap();
    assert_eq!(
        without_prompts(frames(session.history().await.unwrap()).await),
        told
    );
    let sessions = Sessions::at(home.path().join("config"));
    let all = MessageOptions::new();
    let history = History::open(&sessions, &id, &all).await.unwrap();
    assert_eq!(without_prompts(frames(history).await), told);
    let error = History::open(&sessions, &SessionId::random(), &all)
        .await
        .unwrap_err();
    assert!(error.as_files_error().is_some(), "{error}");

    // And from a store.
    let store = Arc::new(MemoryStore::new());
    let file = sessions.find(&id).unwrap();
    import_to_store(&file.path, &*store, ImportOptions::default())
        .await
        .unwrap();
    let stored = |id: SessionId| {
        let (store, dir) = (Arc::clone(&store) as _, home.path().to_owned());
        async move { History::of_store(store, dir, &id, &MessageOptions::new()).await }
    };
    assert_eq!(without_prompts(frames(stored(id).await.unwrap()).await), told);
    let error = stored(SessionId::random()).await.unwrap_err();
    assert!(error.as_store_error().is_some(), "{error}");
}

/// A transcript of so many prompts, written by hand to be large; its session.
fn long(home: &Path, messages: usize) -> (Sessions, SessionId, PathBuf) {
    let sessions = Sessions::at(home.join("config"));
    let project = sessions.project_dir(home);
    std::fs::create_dir_all(&project).unwrap();
    let id = SessionId::random();
    let mut text = String::new();
    let mut parent = Value::Null;
    for n in 0..messages {
        let uuid = format!("00000000-0000-4000-8000-{n:012}");
        let message = json!({"role": "user", "content": format!("{n} {}", "x".repeat(20_000))});
        let record = json!({"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": id.as_str(), "message": message,
            "timestamp": "2026-01-01T00:00:00.000Z", "isSidechain": false, "cwd": home});
        text.push_str(&format!("{record}\n"));
        parent = json!(uuid);
    }
    let file = project.join(format!("{id}.jsonl"));
    std::fs::write(&file, text).unwrap();
    (sessions, id, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_is_read_in_pages_and_its_damage_is_told() {
    let home = tempfile::tempdir().unwrap();
    let (sessions, id, file) = long(home.path(), 300);
    let all = MessageOptions::new();
    let mut history = History::open(&sessions, &id, &all).await.unwrap();
    assert_eq!(history.len(), 300);
    history.next_frame().await.unwrap().unwrap();
    // What was read before the file was cut comes, and then the error, once.
    std::fs::OpenOptions::new()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(0)
        .unwrap();
    let (mut read, mut errors) = (1, Vec::new());
    while let Some(frame) = history.next_frame().await {
        match frame {
            Ok(_) => read += 1,
            Err(error) => errors.push(error),
        }
    }
    // As many as have a mebibyte, and one that goes beyond it.
    assert!((50..=54).contains(&read), "{read}");
    let [error] = &errors[..] else {
        panic!("{errors:?}")
    };
    assert!(
        error.as_files_error().is_some() && error.to_string().contains("the rest"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_history_can_be_given_up_at_any_point() {
    let home = tempfile::tempdir().unwrap();
    let (sessions, id, file) = long(home.path(), 120);
    let all = MessageOptions::new();
    let store = Arc::new(MemoryStore::new());
    import_to_store(&file, &*store, ImportOptions::default())
        .await
        .unwrap();
    let (pipes, mut wire) = Wire::pair();
    let options = near(home.path()).resume(id.as_str()).transport(Near(pipes));
    let starting = tokio::spawn(options.start());
    wire.initialized(&[]).await;
    let session = starting.await.unwrap().unwrap();
    for when in [When::AtOnce, When::Woken, When::Later] {
        for polls in 0..4 {
            let cancel = Cancel { polls, when };
            drop(cancel.of(session.history()).await);
            drop(cancel.of(session.history_with(&all)).await);
            drop(cancel.of(History::open(&sessions, &id, &all)).await);
            let stored = History::of_store(Arc::clone(&store) as _, home.path(), &id, &all);
            drop(cancel.of(stored).await);
            let mut history = History::open(&sessions, &id, &all).await.unwrap();
            let mut uuids = Vec::new();
            loop {
                let frame = match cancel.of(history.next_frame()).await {
                    Some(frame) => frame,
                    None => history.next_frame().await,
                };
                let Some(frame) = frame else { break };
                uuids.extend(frame.unwrap().uuid().map(str::to_owned));
            }
            let expected: Vec<_> = (0..120)
                .map(|n| format!("00000000-0000-4000-8000-{n:012}"))
                .collect();
            assert_eq!(uuids, expected, "{polls} {when:?}");
            let mut history = History::open(&sessions, &id, &all).await.unwrap();
            let mut events = 0;
            loop {
                let event = match cancel.of(history.next()).await {
                    Some(event) => event,
                    None => history.next().await,
                };
                let Some(event) = event else { break };
                event.unwrap();
                events += 1;
            }
            assert_eq!(events, 120);
        }
    }
    let (closed, ()) = tokio::join!(session.close(), wire.end());
    closed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_not_written_down_is_waited_for_and_said() {
    let home = tempfile::tempdir().unwrap();
    let (_, id, file) = long(home.path(), 2);
    let (pipes, mut wire) = Wire::pair();
    let options = near(home.path()).resume(id.as_str()).transport(Near(pipes));
    let starting = tokio::spawn(options.start());
    wire.initialized(&[]).await;
    let session = starting.await.unwrap().unwrap();
    let history = session.history().await.unwrap();
    assert_eq!((history.len(), history.is_behind()), (2, false));

    let mut seen = session.frames();
    let uuid = "00000000-0000-4000-8000-000000000009";
    let message =
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]});
    wire.say(&json!({"type": "user", "uuid": uuid, "session_id": id.as_str(), "parent_tool_use_id": null, "message": message}))
        .await;
    seen.next().await.unwrap().unwrap();
    let begun = Instant::now();
    let history = session.history().await.unwrap();
    assert_eq!((history.len(), history.is_behind()), (2, true));
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());

    // It is there before the second is over.
    let record = json!({"type": "user", "uuid": uuid, "parentUuid": "00000000-0000-4000-8000-000000000001",
        "sessionId": id.as_str(), "message": message, "isSidechain": false});
    let writing = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let before = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{before}{record}\n")).unwrap();
    };
    let begun = Instant::now();
    let (history, ()) = tokio::join!(session.history(), writing);
    let history = history.unwrap();
    assert_eq!((history.len(), history.is_behind()), (3, false));
    assert!(
        begun.elapsed() < Duration::from_millis(900),
        "{:?}",
        begun.elapsed()
    );
    let (closed, ()) = tokio::join!(session.close(), wire.end());
    closed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_history_that_nobody_can_know_is_an_error() {
    let (session, wire, _) = Wire::start(agent()).await;
    // It has said nothing, so there is none, wherever it would be.
    assert!(session.history().await.unwrap().is_empty());
    let (closed, ()) = tokio::join!(session.close(), wire.end());
    closed.unwrap();
    for options in [
        agent().resume("0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22"),
        agent().resume("a title"),
        agent().continue_conversation(true),
    ] {
        let (session, wire, _) = Wire::start(options).await;
        let error = session.history().await.unwrap_err();
        assert!(error.is_invalid(), "{error}");
        let (closed, ()) = tokio::join!(session.close(), wire.end());
        closed.unwrap();
    }
}
