//! What a cancel reaches: turns while the editor reads nothing, and questions whose answers come right behind it.

use std::time::Duration;

use outrigger::testing::Simulated;
use outrigger_sim::peer::Signal;
use serde_json::{Value, json};

use crate::draft;
use crate::editor::{Editor, updates};
use crate::schema::Version;
use crate::subagents::agent;

/// An editor in a version of the protocol, with a session.
async fn started(version: Version) -> (Editor, Simulated, String, tempfile::TempDir) {
    let cli = Simulated::agent(|agent| agent.directives().real_tools(true));
    let mut editor = Editor::of(&cli);
    let home = tempfile::tempdir().expect("a directory");
    let capabilities = json!({"elicitation": {"form": {}}, "subagents": {}});
    let session = match version {
        Version::V1 => {
            editor.initialize(capabilities).await;
            editor.open(home.path()).await.0
        }
        Version::Draft => {
            draft::meet(&mut editor, &json!({"elicitation": {"form": {}}})).await;
            draft::opened(&mut editor, home.path()).await
        }
    };
    (editor, cli, session, home)
}

/// Whether the CLI got a line like this.
fn got(cli: &Simulated, wanted: impl Fn(&Value) -> bool) -> bool {
    cli.report().expect("it was started").received().any(wanted)
}

fn interrupts(line: &Value) -> bool {
    line["request"]["subtype"] == "interrupt"
}

fn allows(line: &Value) -> bool {
    line["response"]["response"]["behavior"] == "allow"
}

fn allow() -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})
}

#[tokio::test(start_paused = true)]
async fn a_cancel_interrupts_the_turn_of_an_editor_that_reads_nothing() {
    for version in [Version::V1, Version::Draft] {
        let (mut editor, cli, session, _home) = started(version).await;
        let prompt = format!("{}%hang\n%say more", many());
        let prompt = editor.prompt(&session, &prompt).await;
        // The paused clock advances only when no task can run: the pipe is full, and the model hangs.
        tokio::time::sleep(Duration::from_millis(500)).await;
        editor
            .notify("session/cancel", json!({"sessionId": session}))
            .await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(got(&cli, interrupts));
        match version {
            Version::V1 => {
                let (_, answer) = editor.until(prompt).await;
                assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer:#}");
            }
            Version::Draft => {
                let lines = draft::idle(&mut editor).await;
                assert_eq!(draft::end(&lines)["stopReason"], "cancelled");
            }
        }
        editor.leave().await;
    }
}

/// Updates that cannot be merged, more than the pipe holds and may wait before it.
fn many() -> String {
    format!("%say many\n{}", "%+tool Glob {\"pattern\": \"*\"}\n".repeat(400))
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_that_ends_keeps_its_process_however_long_the_editor_reads_nothing() {
    let (mut editor, cli, session, _home) = started(Version::V1).await;
    let prompt = format!("{}%hang\n%say more", many());
    let cancelled = editor.prompt(&session, &prompt).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let next = editor.prompt(&session, "%say next").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (_, answer) = editor.until(cancelled).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer:#}");
    let (_, answer) = editor.until(next).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    assert_eq!(cli.started()[0].exited(), None);
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn what_ends_while_the_editor_reads_nothing_has_ended_whatever_dies_then() {
    let (mut editor, cli, session, _home) = started(Version::V1).await;
    let ended = editor.prompt(&session, &format!("{}%say all", many())).await;
    let lost = editor.prompt(&session, "%hang\n%say beginning").await;
    // The paused clock advances only when no task can run: the pipe is full, and the model hangs.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(got(&cli, |line| line.to_string().contains("beginning")));
    cli.started()[0].signal(Signal::Kill);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (_, answer) = editor.until(ended).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    let (_, answer) = editor.until(lost).await;
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("the turn was lost"), "{answer:#}");
    assert_eq!(cli.started().len(), 1);
    editor.leave().await;
}

#[tokio::test]
async fn an_answer_behind_a_cancel_allows_nothing() {
    for (version, how) in [
        (Version::V1, "session/cancel"),
        (Version::V1, "session/close"),
        (Version::V1, "session/delete"),
        (Version::V1, "$/cancel_request"),
        (Version::Draft, "session/cancel"),
        (Version::Draft, "session/close"),
    ] {
        let (mut editor, cli, session, _home) = started(version).await;
        let prompt = editor
            .prompt(&session, "%tool Bash {\"command\": \"touch made\"}\n%say done")
            .await;
        let question = editor
            .wait_for(|line| line["method"] == "session/request_permission")
            .await;
        // Both are in the pipe before the agent reads either.
        let of_session = json!({"sessionId": session});
        let mut ending = None;
        match how {
            "session/cancel" => editor.notify(how, of_session).await,
            "$/cancel_request" => editor.notify(how, json!({"requestId": prompt})).await,
            _ => ending = Some(editor.ask(how, of_session).await),
        }
        editor.reply(&question, allow()).await;
        match (ending, version) {
            (Some(ending), _) => drop(editor.until(ending).await),
            (None, Version::V1) => {
                let (_, answer) = editor.until(prompt).await;
                assert_eq!(answer["result"]["stopReason"], "cancelled", "{how}: {answer:#}");
            }
            (None, Version::Draft) => drop(draft::idle(&mut editor).await),
        }
        assert!(!got(&cli, allows), "{how} in {version:?}");
        editor.leave().await;
    }
}

#[tokio::test]
async fn an_answer_to_another_prompt_than_the_withdrawn_one_counts() {
    let (mut editor, cli, session, _home) = started(Version::V1).await;
    let asking = editor
        .prompt(&session, "%tool Bash {\"command\": \"touch made\"}\n%say done")
        .await;
    let waiting = editor.prompt(&session, "%say never").await;
    let question = editor
        .wait_for(|line| line["method"] == "session/request_permission")
        .await;
    editor
        .notify("$/cancel_request", json!({"requestId": waiting}))
        .await;
    editor.reply(&question, allow()).await;
    let (_, answer) = editor.until(waiting).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer:#}");
    let (lines, answer) = editor.until(asking).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    assert!(got(&cli, allows));
    // The call is not cancelled with the prompt that waited behind it.
    let ends = updates(&lines, "tool_call_update").into_iter();
    let ends: Vec<&Value> = ends.map(|end| &end["status"]).collect();
    assert_eq!(ends.last(), Some(&&json!("completed")), "{lines:#?}");
    editor.leave().await;
}

#[tokio::test]
async fn a_form_behind_a_cancel_is_not_taken() {
    let (mut editor, cli, session, _home) = started(Version::V1).await;
    let prompt = editor.prompt(&session, draft::QUESTION).await;
    let form = editor
        .wait_for(|line| line["method"] == "elicitation/create")
        .await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let accepted = json!({"action": "accept", "content": {"question_0": "Blue"}});
    editor.reply(&form, accepted).await;
    let (_, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer:#}");
    assert!(!got(&cli, |line| line.to_string().contains("Blue")
        && line["type"] == "control_response"));
    editor.leave().await;
}

#[tokio::test]
async fn an_answer_behind_the_cancel_of_a_subagent_allows_that_one_nothing() {
    let (mut editor, cli, session, _home) = started(Version::V1).await;
    let call = |name: &str| {
        agent(
            name,
            true,
            &format!("%tool Bash {{\"command\": \"touch {name}\"}}\n%say done"),
        )
    };
    let prompt = format!("{}\n{}\n%say both run", call("one"), call("two"));
    let (lines, _) = editor.turn(&session, &prompt).await;
    let of = |line: &Value, name: &str| {
        line["method"] == "session/request_permission"
            && line["params"].to_string().contains(&format!("touch {name}"))
    };
    let mut asked = Vec::new();
    for name in ["one", "two"] {
        asked.push(match lines.iter().find(|line| of(line, name)) {
            Some(question) => question.clone(),
            None => editor.wait_for(|line| of(line, name)).await,
        });
    }
    let [one, two] = &asked[..] else {
        panic!("{asked:#?}")
    };
    editor
        .notify("session/cancel", json!({"sessionId": one["params"]["sessionId"]}))
        .await;
    editor.reply(one, allow()).await;
    editor.reply(two, allow()).await;
    let child = &two["params"]["sessionId"];
    editor
        .wait_for(|line| {
            let update = &line["params"]["update"];
            update["sessionUpdate"] == "subagent_update"
                && update["sessionId"] == *child
                && update["state"]["state"] == "idle"
        })
        .await;
    let report = cli.report().expect("it was started");
    assert_eq!(report.received().filter(|line| allows(line)).count(), 1);
    editor.leave().await;
}
