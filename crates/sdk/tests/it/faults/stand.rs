//! A stand-in and what a test wants to know of it.

use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use outrigger::options::{Auth, Secret};
use outrigger::{Agent, Event, Options, Outcome, Session, Turn};
use outrigger_sim::peer::faulty::{self, FaultyScript, Note};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use crate::support::PATIENCE;

/// Runs each test on a runtime of one thread, which hangs where something blocks, and on one of several, where more can happen
/// at the same time.
macro_rules! on_both_runtimes {
    ($($name:ident),+ $(,)?) => {
        $(
            mod $name {
                #[tokio::test]
                async fn current_thread() {
                    $crate::faults::stand::within_reason(super::$name()).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn multi_thread() {
                    $crate::faults::stand::within_reason(super::$name()).await;
                }
            }
        )+
    };
}
pub(crate) use on_both_runtimes;

/// The deadline of a whole test. A runtime whose thread is blocked does not see its own timers, so another thread looks too.
pub(crate) async fn within_reason(test: impl Future<Output = ()>) {
    // May have to be built, which takes as long as it takes.
    faulty::executable().expect("the stand-in");
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if is_done.recv_timeout(PATIENCE + Duration::from_secs(30)) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = std::io::stderr().write_all(b"a thread of a test's runtime is blocked for good\n");
            std::process::abort();
        }
    });
    timeout(PATIENCE, test).await.expect("the test hangs");
    drop(done);
}

/// A stand-in's script, home and log. Each process that is started from it does the same.
pub(crate) struct Stand {
    directory: tempfile::TempDir,
}

impl Stand {
    pub(crate) fn new(script: &FaultyScript) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("script.json"), script.to_json()).unwrap();
        Self { directory }
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log.jsonl")
    }

    /// Options that reach it as if it were the CLI.
    pub(crate) fn options(&self) -> Options {
        let home = self.directory.path();
        Agent::builder()
            .auth(Auth::ApiKey(Secret::new("simulated")))
            .cli_path(faulty::executable().unwrap())
            .cwd(home)
            .env("HOME", home)
            .env("CLAUDE_CONFIG_DIR", home)
            .env(faulty::SCRIPT, home.join("script.json"))
            .env(faulty::LOG, self.log())
    }

    pub(crate) async fn session(&self) -> Session {
        self.options().start().await.expect("it starts")
    }

    /// What happened to it so far.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines = log.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("a note"))
            .collect()
    }

    /// The lines that it took off its input.
    pub(crate) fn received(&self) -> Vec<Value> {
        let notes = self.notes().into_iter();
        notes
            .filter_map(|note| match note {
                Note::Received(line) => Some(line),
                _ => None,
            })
            .collect()
    }

    /// The answers that it got, with the id of what they answer.
    pub(crate) fn answers(&self) -> Vec<(Value, Value)> {
        let lines = self.received().into_iter();
        lines
            .filter(|line| line["type"] == "control_response")
            .map(|line| {
                let response = &line["response"];
                (response["request_id"].clone(), response["response"].clone())
            })
            .collect()
    }

    /// The processes that it started.
    pub(crate) fn grandchildren(&self) -> Vec<u32> {
        let notes = self.notes().into_iter();
        notes
            .filter_map(|note| match note {
                Note::Grandchild(pid) => Some(pid),
                _ => None,
            })
            .collect()
    }

    /// What is left of it in the table of processes: itself, what it started, and a zombie that nobody waited for.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for note in self.notes() {
            let pid = match note {
                Note::Began(pid) | Note::Grandchild(pid) => pid,
                _ => continue,
            };
            let directory = PathBuf::from(format!("/proc/{pid}"));
            let Ok(stat) = std::fs::read_to_string(directory.join("stat")) else {
                continue;
            };
            let Some((state, parent)) = state_and_parent(&stat) else {
                continue;
            };
            // A zombie of somebody else is somebody else's to wait for. It has no environment any more.
            let is_zombie = state == 'Z' || state == 'X';
            if (is_zombie && parent == std::process::id())
                || (!is_zombie && self.is_environment_of(&directory))
            {
                left.push(format!("process {pid}, {state}, child of {parent}"));
            }
        }
        left
    }

    fn is_environment_of(&self, process: &Path) -> bool {
        let log = format!("{}={}", faulty::LOG, self.log().display());
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|line| line == log.as_bytes())
    }

    /// Closes the session, and waits until nothing is left.
    pub(crate) async fn closed(&self, session: Session) {
        session.close().await.unwrap();
        self.gone().await;
    }

    /// Waits until nothing is left. Nothing announces changes of the process table, so it is looked at again and again.
    pub(crate) async fn gone(&self) {
        let deadline = Instant::now() + PATIENCE / 2;
        loop {
            let left = self.left();
            if left.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "there is left: {left:#?}");
            sleep(Duration::from_millis(2)).await;
        }
        let began = self.notes().iter().any(|note| matches!(note, Note::Began(_)));
        assert!(began, "there was a process");
    }

    /// Waits until its log has what is wanted.
    pub(crate) async fn noted(&self, wanted: impl Fn(&Note) -> bool) {
        let deadline = Instant::now() + PATIENCE / 2;
        while !self.notes().iter().any(&wanted) {
            assert!(Instant::now() < deadline, "there is: {:#?}", self.notes());
            sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Of a line of `/proc/PID/stat`, whose name may hold anything.
fn state_and_parent(stat: &str) -> Option<(char, u32)> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// An event in a line. What begins and ends every turn has none.
pub(crate) fn tell(event: &Event) -> Option<String> {
    Some(match event {
        Event::Text(text) => format!("text {text}"),
        Event::ToolUse(tool) => format!("use {}", tool.name),
        Event::ToolResult(result) => format!("result {} bytes", result.text.len()),
        Event::Block(_) => "block".to_owned(),
        Event::Undecodable(frame, _) => format!("undecodable {}", frame.kind()),
        Event::Lagged(lag) => format!("lag {}", lag.frames),
        Event::Message(_, frame) => match (frame.kind(), frame.subtype()) {
            ("command_lifecycle" | "result", _) | ("system", Some("init")) => return None,
            (kind, None) => kind.to_owned(),
            (kind, Some(subtype)) => format!("{kind}/{subtype}"),
        },
        Event::MessageStart { .. }
        | Event::MessageStop { .. }
        | Event::ContentBlockStart { .. }
        | Event::ContentBlockStop { .. } => return None,
        other => format!("{other:?}"),
    })
}

/// Reads a turn to its end.
pub(crate) async fn read(turn: &mut Turn) -> (Vec<String>, Outcome) {
    let mut told = Vec::new();
    while let Some(event) = turn.next().await {
        told.extend(tell(&event.expect("the session lives")));
    }
    (told, turn.outcome().await.expect("the turn ends"))
}

/// Runs a prompt to the end of its turn.
pub(crate) async fn turn(session: &Session, prompt: &str) -> (Vec<String>, Outcome) {
    read(&mut session.prompt(prompt).await.unwrap()).await
}

/// Runs a script of one turn and closes. What the turn told, and its answer.
pub(crate) async fn one_turn(script: FaultyScript) -> (Vec<String>, String) {
    let stand = Stand::new(&script);
    let session = stand.session().await;
    let (told, outcome) = turn(&session, "go").await;
    assert!(outcome.is_success(), "{:?}", outcome.verdict());
    assert_eq!(session.close().await.unwrap().code, Some(0));
    stand.gone().await;
    (told, outcome.result_text().to_owned())
}
