//! Plans that are approved with a cleared context: implemented in a new conversation, for the same prompt.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::testing::Simulated;
use outrigger_sim::peer::{Signal, Steps};
use serde_json::{Value, json};

use crate::draft;
use crate::editor::{Editor, said, updates};

/// The model writes a plan, submits it, and would continue.
fn planning(home: &Path, plan: &str) -> String {
    let file = home.join(".claude/plans/plan.md");
    let write = json!({"file_path": file, "content": plan});
    format!("%tool Write {write}\n%tool ExitPlanMode {{}}\n%say in the old one")
}

/// A CLI with its plans and sessions below a directory. `second` replaces its second process, if it is given.
pub(crate) fn cli(home: &Path, second: fn() -> Option<Steps>) -> Simulated {
    let place = home.to_owned();
    Simulated::start(move |launch, number| {
        if number == 1
            && let Some(script) = second()
        {
            return script.spawn_in_memory();
        }
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        let env = launch.env.iter().map(|(name, value)| (text(name), text(value)));
        let around = outrigger_sim::peer::Surroundings::new(&launch.cwd, env);
        let line = outrigger_sim::peer::CommandLine::read(&launch.args).expect("flags that there are");
        let agent = line.agent(&around).expect("flags that fit");
        let agent = agent.directives().real_tools(true).seed(number as u64);
        agent.home(place.to_string_lossy()).spawn_in_memory()
    })
}

pub(crate) fn editor_of(cli: &Simulated, home: &Path) -> Editor {
    let options = cli.options().env("CLAUDE_CONFIG_DIR", home.join(".claude"));
    let config = outrigger_acp::Config::new().options(options).spare(false);
    Editor::with(config.cancel_floor(Duration::from_secs(5)))
}

type Asked = Arc<Mutex<Vec<Value>>>;

fn select(id: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": id}})
}

/// Answers plans with this choice, and records the questions.
fn answers(editor: &mut Editor, id: &'static str) -> Asked {
    let asked = Asked::default();
    let keep = Arc::clone(&asked);
    editor.answer = Box::new(move |question| {
        keep.lock().unwrap().push(question.clone());
        Some(select(id))
    });
    asked
}

const CLEAR: &str = "exit-plan-clear-auto";

async fn planner(editor: &mut Editor, home: &Path) -> String {
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(home).await;
    let mode = json!({"sessionId": session, "modeId": "plan"});
    editor.call("session/set_mode", mode).await;
    session
}

/// The frames of a kind that a process got.
fn told(cli: &Simulated, process: usize) -> Vec<Value> {
    let report = cli.started()[process].report();
    report.received().cloned().collect()
}

#[tokio::test]
async fn a_plan_is_carried_out_in_a_new_conversation_by_the_same_prompt() {
    let home = tempfile::tempdir().unwrap();
    let cli = cli(home.path(), || None);
    let mut editor = editor_of(&cli, home.path());
    let session = planner(&mut editor, home.path()).await;
    let asked = answers(&mut editor, CLEAR);
    let plan = editor
        .prompt(&session, &planning(home.path(), "# Build it\n%say built"))
        .await;
    let next = editor.prompt(&session, "%say later").await;
    let (mut lines, answer) = editor.until(plan).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    assert_eq!(said(&lines), "built", "{lines:#?}");
    let first = answer["result"]["_meta"]["claudeCode"]["messageUuid"].clone();
    let (more, answer) = editor.until(next).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    lines.extend(more);
    assert_eq!(said(&lines), "builtlater", "{lines:#?}");

    // The choices that keep the context come first.
    let asked = asked.lock().unwrap().clone();
    let [question] = &asked[..] else {
        panic!("{asked:#?}")
    };
    let options = question["params"]["options"].as_array().unwrap();
    let ids: Vec<&str> = options
        .iter()
        .filter_map(|option| option["optionId"].as_str())
        .collect();
    assert_eq!(ids.last(), Some(&"reject"));
    assert_eq!(ids[ids.len() - 2], CLEAR);
    // The call counts as approved, and the chosen mode is active.
    let id = &question["params"]["toolCall"]["toolCallId"];
    let calls = updates(&lines, "tool_call_update").into_iter();
    let states: Vec<&Value> = calls
        .filter(|call| call["toolCallId"] == *id)
        .map(|call| &call["status"])
        .filter(|status| !status.is_null())
        .collect();
    assert_eq!(states.last(), Some(&&json!("completed")), "{lines:#?}");
    assert!(!states.contains(&&json!("failed")), "{states:?}");
    let modes = updates(&lines, "current_mode_update");
    let mode = modes.last().map(|update| &update["currentModeId"]);
    assert_eq!(mode, Some(&json!("auto")), "{modes:?}");

    // The old process got nothing more, and the new one the mode before the plan.
    assert_eq!(cli.started().len(), 2);
    assert!(cli.started()[0].exited().is_some());
    let old = told(&cli, 0);
    assert!(
        !old.iter().any(|line| line.to_string().contains("%say later")),
        "{old:#?}"
    );
    let new = told(&cli, 1);
    let at = |wanted: &dyn Fn(&Value) -> bool| new.iter().position(wanted).expect("it was told");
    let mode = at(&|line| line["request"]["mode"] == "auto");
    let plan = at(&|line| {
        line["type"] == "user"
            && line
                .to_string()
                .contains("Implement this plan:\\n\\n# Build it\\n")
    });
    assert!(mode < plan, "{new:#?}");
    let waiting = at(&|line| line["type"] == "user" && line.to_string().contains("%say later"));
    assert!(plan < waiting);
    // A rewind to the prompt removes the plan, too.
    let back = json!({"sessionId": session, "messageId": first, "files": false, "dryRun": true});
    assert_eq!(editor.call("_session/rewind", back).await["messagesRemoved"], 4);
    editor.leave().await;

    // Another agent process finds the new conversation by the editor's id.
    let cli = self::cli(home.path(), || None);
    let mut editor = editor_of(&cli, home.path());
    editor.initialize(json!({})).await;
    let load = json!({"sessionId": session, "cwd": home.path(), "mcpServers": []});
    let id = editor.ask("session/load", load).await;
    let (lines, answer) = editor.until(id).await;
    assert!(answer.get("error").is_none(), "{answer:#}");
    assert_eq!(said(&lines), "builtlater");
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_carried_out_however_far_the_editor_is_behind() {
    let home = tempfile::tempdir().unwrap();
    let cli = cli(home.path(), || None);
    let mut editor = editor_of(&cli, home.path());
    let session = planner(&mut editor, home.path()).await;
    let prompt = editor
        .prompt(&session, &planning(home.path(), "%say built"))
        .await;
    let question = editor
        .wait_for(|line| line["method"] == "session/request_permission")
        .await;
    // Each is told to the editor, which reads nothing: more than the pipe holds and may wait before it.
    for mode in ["default", "plan"].repeat(100) {
        let mode = json!({"sessionId": session, "modeId": mode});
        editor.ask("session/set_mode", mode).await;
    }
    // The paused clock advances only when no task can run.
    tokio::time::sleep(Duration::from_millis(500)).await;
    editor.reply(&question, select(CLEAR)).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (lines, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    assert_eq!(said(&lines), "built", "{lines:#?}");
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_the_new_process_starts_ends_the_prompt() {
    let home = tempfile::tempdir().unwrap();
    // It never answers.
    let cli = cli(home.path(), || {
        Some(Steps::new().sleep(Duration::from_secs(3600)))
    });
    let mut editor = editor_of(&cli, home.path());
    let session = planner(&mut editor, home.path()).await;
    answers(&mut editor, CLEAR);
    let prompt = editor
        .prompt(&session, &planning(home.path(), "%say built"))
        .await;
    editor
        .wait_for(|line| line["params"]["update"]["currentModeId"] == "auto")
        .await;
    // The paused clock advances only when no task can run.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(cli.started().len(), 2);
    let since = tokio::time::Instant::now();
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let (lines, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer:#}");
    assert!(since.elapsed() < Duration::from_secs(5));
    assert_eq!(said(&lines), "");
    editor.leave().await;
}

#[tokio::test]
async fn a_cancel_with_the_choice_and_a_death_with_it_end_or_carry_on_and_never_hang() {
    for dies in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let cli = cli(home.path(), || None);
        let mut editor = editor_of(&cli, home.path());
        let session = planner(&mut editor, home.path()).await;
        let prompt = editor
            .prompt(&session, &planning(home.path(), "%say built"))
            .await;
        let question = editor
            .wait_for(|line| line["method"] == "session/request_permission")
            .await;
        if dies {
            editor.reply(&question, select(CLEAR)).await;
            // When the call is reported as approved, before its turn can have ended.
            editor
                .wait_for(|line| {
                    line["params"]["update"]["status"] == "completed"
                        && line["params"]["update"]["toolCallId"]
                            == question["params"]["toolCall"]["toolCallId"]
                })
                .await;
            cli.started()[0].signal(Signal::Kill);
        } else {
            editor
                .notify("session/cancel", json!({"sessionId": session}))
                .await;
            editor.reply(&question, select(CLEAR)).await;
        }
        let (lines, answer) = editor.until(prompt).await;
        let (stop, words) = if dies {
            ("end_turn", "built")
        } else {
            ("cancelled", "")
        };
        assert_eq!(answer["result"]["stopReason"], stop, "{answer:#}");
        assert_eq!(said(&lines), words);
        let (lines, _) = editor.turn(&session, "%say still here").await;
        assert_eq!(said(&lines), "still here");
        editor.leave().await;
    }
}

#[tokio::test]
async fn the_draft_tells_of_one_piece_of_work_and_one_prompt() {
    let home = tempfile::tempdir().unwrap();
    let cli = cli(home.path(), || None);
    let mut editor = editor_of(&cli, home.path());
    draft::meet(&mut editor, &json!({})).await;
    let session = draft::opened(&mut editor, home.path()).await;
    let mode = json!({"sessionId": session, "configId": "mode", "type": "id", "value": "plan"});
    editor.call("session/set_config_option", mode).await;
    answers(&mut editor, CLEAR);
    let prompt = editor
        .prompt(&session, &planning(home.path(), "%say built"))
        .await;
    let lines = draft::idle(&mut editor).await;
    let ends: Vec<&Value> = lines
        .iter()
        .filter(|line| draft::state(line) == Some("idle"))
        .collect();
    assert_eq!(ends.len(), 1, "{ends:#?}");
    assert_eq!(ends[0]["params"]["update"]["stopReason"], "end_turn");
    let answers = lines
        .iter()
        .filter(|line| line["id"] == prompt && line.get("method").is_none());
    assert_eq!(answers.count(), 1);
    // The user sent one message.
    let echoes: Vec<&Value> = lines
        .iter()
        .map(|line| &line["params"]["update"])
        .filter(|update| {
            update["sessionUpdate"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("user_message"))
        })
        .collect();
    assert_eq!(echoes.len(), 1, "{echoes:#?}");
    assert!(lines.iter().any(|line| line.to_string().contains("built")));
    editor.leave().await;
}
