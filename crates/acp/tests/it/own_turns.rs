//! Turns that the CLI begins by itself, when work in the background has ended.

use std::time::Duration;

use outrigger::SlowReader;
use outrigger::testing::sim::fault::{At, Effect, Schedule};
use outrigger::testing::sim::script::Script;
use outrigger::testing::{Faulty, Simulated};
use serde_json::{Value, json};

use crate::draft;
use crate::editor::{Editor, said, updates};
use crate::schema::Version;

const LONG: &str = "a very long text that goes on and on and on and on and on and on and on";

/// A command in the background ends after its turn, and the model then does this. The next prompt gets `next`.
fn with(then: &str, next: &str) -> Simulated {
    let script = format!(
        "prompts:
  - prompt: go
    steps:
      - background: {{command: sleep 1, after: 500ms, output: done, exit: 0, then: [{then}]}}
      - say: started
  - prompt: next
    steps: [{next}]
"
    );
    Simulated::script(Script::from_yaml(&script).expect("a script"))
}

/// The same with a long text.
fn speaking() -> Simulated {
    with(
        &format!("{{pace: {{chunk: 5, every: 300ms}}}}, {{say: \"{LONG}\"}}"),
        "{say: on we go}",
    )
}

/// An editor whose turn has ended, with a command in the background.
async fn gone(cli: &Simulated, version: Version) -> (Editor, String, tempfile::TempDir) {
    gone_with(Editor::of(cli), version).await
}

async fn gone_with(mut editor: Editor, version: Version) -> (Editor, String, tempfile::TempDir) {
    let home = tempfile::tempdir().expect("a directory");
    let session = match version {
        Version::V1 => {
            editor.initialize(json!({})).await;
            let (session, _) = editor.open(home.path()).await;
            editor.turn(&session, "go").await;
            session
        }
        Version::Draft => {
            draft::meet(&mut editor, &json!({})).await;
            let session = draft::opened(&mut editor, home.path()).await;
            draft::turn(&mut editor, &session, "go").await;
            session
        }
    };
    (editor, session, home)
}

fn speaks(line: &Value) -> bool {
    line["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_the_clis_own_can_be_cancelled() {
    for version in [Version::V1, Version::Draft] {
        let cli = speaking();
        let (mut editor, session, _home) = gone(&cli, version).await;
        editor.wait_for(speaks).await;
        editor
            .notify("session/cancel", json!({"sessionId": session}))
            .await;
        let lines = match version {
            Version::V1 => editor.turn(&session, "next").await.0,
            Version::Draft => {
                let own = draft::idle(&mut editor).await;
                assert_eq!(draft::end(&own)["stopReason"], "cancelled", "{own:#?}");
                own
            }
        };
        assert!(!said(&lines).contains(LONG), "{lines:#?}");
        let report = cli.report().expect("it was started");
        let interrupts = report
            .received()
            .filter(|line| line["request"]["subtype"] == "interrupt");
        assert_eq!(interrupts.count(), 1, "{version:?}");
        editor.leave().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_the_clis_own_can_be_steered_and_is_not_rewound() {
    let cli = speaking();
    let (mut editor, session, _home) = gone(&cli, Version::V1).await;
    editor.wait_for(speaks).await;
    let rewind = json!({"sessionId": session, "messageId": "00000000-0000-4000-8000-000000000000"});
    let refused = editor.refused("_session/rewind", rewind).await;
    assert_eq!(refused["code"], -32600, "{refused:#}");
    let steer = json!({"sessionId": session, "prompt": [{"type": "text", "text": "next"}],
        "_meta": {"steering": {"idleBehavior": "promptRequired"}}});
    let told = editor.call("_session/steering", steer).await;
    assert_eq!(told, json!({"outcome": "injected"}));
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_ended_a_turn_of_the_clis_own_ends_no_prompt() {
    for version in [Version::V1, Version::Draft] {
        let cli = with(
            "{call: {tool: Bash, input: {command: \"touch x\"}}}, {say: after}",
            "{api_error: 400}",
        );
        let (mut editor, session, _home) = gone(&cli, version).await;
        let question = editor
            .wait_for(|line| line["method"] == "session/request_permission")
            .await;
        editor
            .reply(&question, json!({"outcome": {"outcome": "cancelled"}}))
            .await;
        match version {
            Version::V1 => {
                let next = editor.prompt(&session, "next").await;
                let (_, answer) = editor.until(next).await;
                assert_eq!(answer["error"]["data"]["apiErrorStatus"], 400, "{answer:#}");
            }
            Version::Draft => {
                draft::idle(&mut editor).await;
                editor.prompt(&session, "next").await;
                let lines = draft::idle(&mut editor).await;
                assert_ne!(draft::end(&lines)["stopReason"], "cancelled", "{lines:#?}");
            }
        }
        editor.leave().await;
    }
}

/// The editor reads too late, and the result of the turn is among the frames that are dropped.
#[tokio::test(start_paused = true)]
async fn a_turn_of_the_clis_own_whose_result_is_lost_has_ended() {
    let calls = "{call: {tool: Glob, input: {pattern: \"*\"}}}, ".repeat(400);
    let cli = with(
        &format!("{calls}{{say: after}}"),
        "{call: {tool: Bash, input: {command: \"touch x\"}}}, {say: after}",
    );
    let options = cli.options().slow_reader(SlowReader::LeaveOut);
    let editor = Editor::of_options(options.buffer_bytes(64 * 1024));
    let (mut editor, session, _home) = gone_with(editor, Version::Draft).await;
    // The paused clock advances only when no task can run: the pipe is full, and the turn over.
    tokio::time::sleep(Duration::from_secs(2)).await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let own = draft::idle(&mut editor).await;
    assert_eq!(draft::end(&own)["stopReason"], "cancelled", "{own:#?}");
    assert!(!said(&own).contains("after"), "its end was lost: {own:#?}");
    // The next turn is not cancelled: the user is asked.
    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    editor.prompt(&session, "next").await;
    let lines = draft::idle(&mut editor).await;
    assert!(
        lines
            .iter()
            .any(|line| line["method"] == "session/request_permission"),
        "{lines:#?}"
    );
    editor.leave().await;
}

/// A rewind looks at the files first. Work in the background may end meanwhile, and begin a turn, which ends with the process.
#[tokio::test(start_paused = true)]
async fn a_turn_of_the_clis_own_that_begins_during_a_rewind_ends_with_it() {
    let home = tempfile::tempdir().expect("a directory");
    let cli = speaking();
    let slowly = Schedule::new(0).with(
        Effect::Delay { ms: 1000 },
        At::kind("control_request/rewind_files").input(),
    );
    let faulty = Faulty::new(cli.clone(), &slowly).expect("faults of a transport");
    let options = cli.options().env("CLAUDE_CONFIG_DIR", home.path().join("config"));
    let mut editor = Editor::of_options(options.transport(faulty));
    draft::meet(&mut editor, &json!({})).await;
    let session = draft::opened(&mut editor, home.path()).await;
    let lines = draft::turn(&mut editor, &session, "go").await;
    let prompt = &updates(&lines, "user_message")[0]["messageId"];
    let rewind = json!({"sessionId": session, "messageId": prompt});
    let rewind = editor.ask("_session/rewind", rewind).await;
    let own = draft::idle(&mut editor).await;
    assert_eq!(draft::end(&own)["stopReason"], "cancelled", "{own:#?}");
    let (_, rewound) = editor.until(rewind).await;
    assert_eq!(rewound["result"]["canRewind"], true, "{rewound:#}");
    editor.leave().await;
}
