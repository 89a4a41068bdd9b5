//! A conversation in which the CLI dies behind every single frame: whoever waits for anything is told, and nothing is left.
//!
//! The conversation is what a simulated agent says, recorded when the test begins: partial messages, a permission question, a
//! tool, a second turn that leaves work in the background, and the turn that this begins. A hook callback is put in. A second
//! conversation is one that the real CLI had.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt as _;
use outrigger::permissions::PermissionResult;
use outrigger::transport::Exit;
use outrigger::{AmbientEvent, Error, Policy};
use outrigger_sim::peer;
use outrigger_sim::peer::faulty::{Death, FaultyScript, FaultyStep};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::stand::{Stand, on_both_runtimes};
use crate::support::{PATIENCE, reaching};

/// How many processes there are at the same time.
const AT_ONCE: usize = 6;

const FIRST: &str =
    "%say first of all\n%+tool Bash {\"command\":\"touch x\",\"description\":\"touch\"}\n%say done with it";
const SECOND: &str =
    "%tool Bash {\"command\":\"sleep 2\",\"description\":\"wait\",\"run_in_background\":true}\n%say begun";

/// Has the conversation with a simulated agent.
async fn have_it() -> peer::Report {
    let agent = peer::Agent::builder()
        .directives()
        .partial_messages(true)
        .sdk_reads_session_state();
    let (options, running) = reaching(agent.spawn_in_memory());
    let session = options.permissions(Policy::allow_all()).start().await.unwrap();
    let mut ambient = session.ambient();
    session.prompt(FIRST).await.unwrap().outcome().await.unwrap();
    session.raw_request("mcp_status", json!({})).await.unwrap();
    session.prompt(SECOND).await.unwrap().outcome().await.unwrap();
    while !matches!(ambient.next().await.unwrap(), AmbientEvent::TurnEnded(_)) {}
    session.close().await.unwrap();
    running.exit().await;
    running.report()
}

/// The conversation as a script.
fn recorded() -> &'static [FaultyStep] {
    static STEPS: OnceLock<Vec<FaultyStep>> = OnceLock::new();
    STEPS.get_or_init(|| {
        // On a thread of its own, since a runtime can't be started inside of another.
        let report = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build();
            runtime.unwrap().block_on(have_it())
        });
        script(&report.join().unwrap())
    })
}

fn script(report: &peer::Report) -> Vec<FaultyStep> {
    let mut names = BTreeMap::new();
    let mut steps = Vec::new();
    let (mut prompts, mut requests) = (0, 0);
    for line in &report.lines {
        let json = &line.json;
        if !line.from_client {
            if json["request"]["subtype"] == "can_use_tool" && requests == 1 && prompts == 1 {
                steps.push(FaultyStep::Line(json!({"type": "control_request", "request_id": "hook", "request": {
                    "subtype": "hook_callback", "callback_id": "hook_0", "input": {"hook_event_name": "PreToolUse"}}})));
                steps.push(FaultyStep::Await(
                    json!({"type": "control_response", "response": {"request_id": "hook"}}),
                ));
            }
            steps.push(FaultyStep::Line(named(json, &names)));
            continue;
        }
        let mut name = |id: &Value, kind: &str, number: &mut usize| {
            names.insert(id.as_str().unwrap().to_owned(), format!("${kind}.{number}"));
            *number += 1;
        };
        steps.push(FaultyStep::Await(match json["type"].as_str() {
            Some("user") => {
                name(&json["uuid"], "prompt", &mut prompts);
                json!({"type": "user"})
            }
            Some("control_request") => {
                name(&json["request_id"], "request", &mut requests);
                json!({"type": "control_request", "request": {"subtype": json["request"]["subtype"]}})
            }
            Some("control_response") => {
                json!({"type": "control_response", "response": {"request_id": json["response"]["request_id"]}})
            }
            _ => continue,
        }));
    }
    steps
}

/// With the ids of our side replaced by the names that stand for them.
pub(crate) fn named(json: &Value, names: &BTreeMap<String, String>) -> Value {
    match json {
        Value::String(text) => names.get(text).cloned().unwrap_or_else(|| text.clone()).into(),
        Value::Array(items) => items.iter().map(|item| named(item, names)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), named(value, names)))
            .collect(),
        other => other.clone(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// By SIGKILL.
    Killed,
    /// With exit code 0, as if all were well.
    Exited,
    /// By SIGKILL, in the middle of the next line.
    InALine,
}

/// The steps up to the frame at `at`, and the end.
fn cut(steps: &[FaultyStep], at: usize, how: How) -> FaultyScript {
    let mut script = FaultyScript::from(steps[..=at].to_vec());
    if how == How::InALine {
        let next = steps[at + 1..].iter().find_map(|step| match step {
            FaultyStep::Line(frame) => Some(frame.to_string()),
            _ => None,
        });
        let next = next.unwrap_or_else(|| json!({"type": "keep_alive"}).to_string());
        script = script.raw(&next[..next.len() / 2]);
    }
    script.die(match how {
        How::Exited => Death::Code(0),
        _ => Death::Signal(9),
    })
}

/// Whether these steps have the result of a prompt.
fn has_result(steps: &[FaultyStep], prompt: &str) -> bool {
    steps.iter().any(|step| match step {
        FaultyStep::Line(frame) => frame["type"] == "result" && frame["user_message_uuid"] == prompt,
        _ => false,
    })
}

async fn soon<T>(about: &str, what: &str, wait: impl Future<Output = T>) -> T {
    let in_time = timeout(PATIENCE / 3, wait).await;
    in_time.unwrap_or_else(|_| panic!("{about}: {what} hangs"))
}

/// Counts the handlers that are at work.
struct AtWork(Arc<AtomicUsize>);

impl AtWork {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn dies(steps: &[FaultyStep], at: usize, how: How) {
    let about = format!("dying behind step {at} ({how:?})");
    let until = &steps[..=at];
    let exit = match how {
        How::Exited => Exit::with_code(0),
        _ => Exit::with_signal(9),
    };
    let stand = Stand::new(&cut(steps, at, how));
    let at_work = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&at_work);
    let options = stand.options().can_use_tool(move |_| {
        let working = AtWork::begin(&count);
        async move {
            // So that it may die while a handler is at work.
            tokio::time::sleep(Duration::from_millis(1)).await;
            drop(working);
            PermissionResult::allow()
        }
    });
    let session = match soon(&about, "the start", options.start()).await {
        Ok(session) => session,
        Err(error) => {
            // It had answered, and was dead before that was looked at.
            assert_eq!(error.exit(), Some(exit), "{about}: {error}");
            return stand.gone().await;
        }
    };
    let (mut frames, mut ambient) = (session.frames(), session.ambient());
    let is_told = |error: &Error| assert_eq!(error.exit(), Some(exit), "{about}: {error}");
    let turn = async |prompt: &str, name: &str| {
        let outcome = match session.prompt(prompt).await {
            Ok(mut turn) => soon(&about, name, turn.outcome()).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(_) => assert!(
                has_result(until, name),
                "{about}: {name} has an outcome from nowhere"
            ),
            Err(error) => {
                assert!(
                    !has_result(until, name),
                    "{about}: {name} lost its outcome: {error}"
                );
                is_told(&error);
            }
        }
    };
    // Both are given at once; the second is sent when the first is over.
    let turns = async {
        tokio::join!(turn(FIRST, "$prompt.0"), turn(SECOND, "$prompt.1"));
    };
    let status = async {
        if let Err(error) = session.raw_request("mcp_status", json!({})).await {
            is_told(&error);
        }
    };
    let unanswered = async { is_told(&session.raw_request("never", json!({})).await.unwrap_err()) };
    let run = async {
        if let Err(error) = session.wait_run_end(PATIENCE).await {
            is_told(&error);
        }
    };
    let seen = async {
        let mut kinds = Vec::new();
        while let Some(frame) = frames.next().await {
            kinds.push(frame.expect("nothing is missed").kind().to_owned());
        }
        kinds
    };
    let nobodys = async { while ambient.next().await.is_some() {} };
    let (kinds, ..) = tokio::join!(
        soon(&about, "frames", seen),
        turns,
        soon(&about, "a request", status),
        soon(&about, "another request", unanswered),
        soon(&about, "the end of the run", run),
        soon(&about, "ambient", nobodys),
    );
    is_told(&soon(&about, "the end", session.wait_ended()).await);
    // The first frame answers `initialize`, before anybody listens.
    let said = until.iter().filter_map(|step| match step {
        FaultyStep::Line(frame) => Some(frame["type"].as_str().unwrap().to_owned()),
        _ => None,
    });
    let said: Vec<_> = said.skip(1).collect();
    let half = usize::from(how == How::InALine);
    assert!(
        kinds.starts_with(&said) && kinds.len() <= said.len() + half,
        "{about}: {kinds:?} instead of {said:?}"
    );
    assert!(session.prompt("late").await.unwrap_err().is_closed());
    // Aborted tasks are dropped when their runtime gets to it.
    soon(&about, "the handlers", async {
        while at_work.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    stand.gone().await;
}

async fn behind_every_frame(how: How) {
    let steps = recorded();
    let ends: Vec<_> = (0..steps.len())
        .filter(|at| matches!(steps[*at], FaultyStep::Line(_)))
        .collect();
    assert!(ends.len() > 40, "{} frames", ends.len());
    futures_util::stream::iter(ends)
        .for_each_concurrent(AT_ONCE, |at| dies(steps, at, how))
        .await;
}

/// The witness itself: played to its end, the conversation goes as it went.
async fn the_conversation_is_whole() {
    let stand = Stand::new(&FaultyScript::from(recorded().to_vec()));
    let session = stand
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let mut ambient = session.ambient();
    let first = session.prompt(FIRST).await.unwrap().text().await.unwrap();
    assert_eq!(first.0, "first of all\n\ndone with it");
    session.raw_request("mcp_status", json!({})).await.unwrap();
    let second = session.prompt(SECOND).await.unwrap().text().await.unwrap();
    assert_eq!(second.0, "begun");
    while !matches!(ambient.next().await.unwrap(), AmbientEvent::TurnEnded(_)) {}
    assert_eq!(session.close().await.unwrap(), Exit::with_code(0));
    assert_eq!(stand.answers().len(), 2, "a question and a hook");
    stand.gone().await;
}

async fn killed_behind_every_frame() {
    behind_every_frame(How::Killed).await;
}

async fn exited_behind_every_frame() {
    behind_every_frame(How::Exited).await;
}

async fn killed_in_the_middle_of_every_line() {
    behind_every_frame(How::InALine).await;
}

/// A conversation of the real CLI.
fn real() -> Vec<FaultyStep> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../protocol/tests/recordings/partial_messages.jsonl"
    );
    crate::replay::script(&crate::replay::read(std::path::Path::new(path)))
}

async fn dies_for_real(steps: &[FaultyStep], at: usize, how: How) {
    let about = format!("dying behind step {at} of the real conversation ({how:?})");
    let exit = match how {
        How::Exited => Exit::with_code(0),
        _ => Exit::with_signal(9),
    };
    let stand = Stand::new(&cut(steps, at, how));
    let is_told = |error: &Error| assert_eq!(error.exit(), Some(exit), "{about}: {error}");
    let options = stand.options().permissions(Policy::allow_all());
    let session = match soon(&about, "the start", options.start()).await {
        Ok(session) => session,
        Err(error) => {
            is_told(&error);
            return stand.gone().await;
        }
    };
    let is_over = steps[..=at]
        .iter()
        .any(|step| matches!(step, FaultyStep::Line(frame) if frame["type"] == "result"));
    let outcome = match session.prompt("go").await {
        Ok(mut turn) => soon(&about, "the turn", turn.outcome()).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(outcome) => assert!(is_over && outcome.result_text() == "done", "{about}: {outcome:?}"),
        Err(error) => {
            assert!(!is_over, "{about}: the outcome was lost: {error}");
            is_told(&error);
        }
    }
    is_told(&soon(&about, "the end", session.wait_ended()).await);
    stand.gone().await;
}

async fn behind_every_real_frame() {
    let steps = real();
    let ends = (0..steps.len()).filter(|at| matches!(steps[*at], FaultyStep::Line(_)));
    let ends: Vec<_> = ends
        .flat_map(|at| [How::Killed, How::Exited, How::InALine].map(|how| (at, how)))
        .collect();
    assert!(ends.len() > 100, "{} ends", ends.len());
    futures_util::stream::iter(ends)
        .for_each_concurrent(AT_ONCE, |(at, how)| dies_for_real(&steps, at, how))
        .await;
}

on_both_runtimes!(
    behind_every_real_frame,
    the_conversation_is_whole,
    killed_behind_every_frame,
    exited_behind_every_frame,
    killed_in_the_middle_of_every_line,
);
