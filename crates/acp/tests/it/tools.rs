//! Tool calls and permissions.

use serde_json::{Value, json};

use crate::editor::{Editor, said, updates};

const WRITE: &str = "%tool Write {\"file_path\": \"PLACE/a.txt\", \"content\": \"hello\"}\n%say done";

/// The statuses of the call in question, in order.
fn statuses(lines: &[Value]) -> Vec<String> {
    let calls = lines.iter().map(|line| &line["params"]["update"]);
    let calls = calls.filter(|update| {
        matches!(
            update["sessionUpdate"].as_str(),
            Some("tool_call" | "tool_call_update")
        )
    });
    let status = |update: &'_ Value| match update["sessionUpdate"].as_str() {
        // The first status of a call is optional.
        Some("tool_call") => Some(update["status"].as_str().unwrap_or("pending").to_owned()),
        _ => update["status"].as_str().map(str::to_owned),
    };
    calls.filter_map(status).collect()
}

/// A turn with one call, and the question about it.
async fn asked(answer: impl FnMut(&Value) -> Option<Value> + Send + 'static) -> (Vec<Value>, Value, Value) {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    editor.answer = Box::new(answer);
    let place = home.path().to_str().expect("a path in UTF-8");
    let (lines, answer) = editor.turn(&session, &WRITE.replace("PLACE", place)).await;
    editor.leave().await;
    let is_question = |line: &&Value| line["method"] == "session/request_permission";
    let question = lines
        .iter()
        .find(is_question)
        .cloned()
        .expect("somebody was asked");
    (lines, question["params"].clone(), answer)
}

fn select(id: &str) -> Option<Value> {
    Some(json!({"outcome": {"outcome": "selected", "optionId": id}}))
}

#[tokio::test]
async fn a_call_that_is_allowed_runs() {
    let (lines, question, answer) = asked(|_| select("allow-once")).await;
    assert_eq!(answer["stopReason"], "end_turn");
    assert_eq!(said(&lines), "done");
    let call = updates(&lines, "tool_call")[0];
    assert_eq!(call["toolCallId"], question["toolCall"]["toolCallId"]);
    assert!(
        call["title"]
            .as_str()
            .is_some_and(|title| title.contains("a.txt")),
        "{call:#}"
    );
    assert_eq!(call["kind"], "edit");
    let ids: Vec<&str> = question["options"]
        .as_array()
        .expect("options")
        .iter()
        .filter_map(|option| option["optionId"].as_str())
        .collect();
    assert_eq!((ids.first(), ids.last()), (Some(&"allow-once"), Some(&"reject")));
    let statuses = statuses(&lines);
    assert_eq!(statuses, ["pending", "in_progress", "completed"]);
    // The call is reported before the question about it.
    let at = |wanted: &dyn Fn(&Value) -> bool| lines.iter().position(wanted);
    let told = at(&|line| line["params"]["update"]["sessionUpdate"] == "tool_call");
    let question = at(&|line| line["method"] == "session/request_permission");
    assert!(told < question, "{lines:#?}");
}

#[tokio::test]
async fn whatever_is_no_permission_is_a_refusal() {
    for outcome in ["reject", "allow-always", ""] {
        let (lines, _, answer) = asked(move |_| select(outcome)).await;
        assert_eq!(answer["stopReason"], "end_turn", "{outcome:?}");
        assert_eq!(
            statuses(&lines).last().map(String::as_str),
            Some("failed"),
            "{outcome:?}: {lines:#?}"
        );
    }
}

/// The connection passes over such replies, so that nothing would end the wait.
#[tokio::test]
async fn a_reply_that_is_none_is_a_refusal() {
    for reply in [
        r#""error":"no""#,
        r#""result":{},"error":{"code":1,"message":"no"}"#,
        r#""error":{}"#,
    ] {
        let (mut editor, _cli) = Editor::simulated();
        editor.initialize(json!({})).await;
        let home = tempfile::tempdir().unwrap();
        let (session, _) = editor.open(home.path()).await;
        let place = home.path().to_str().expect("a path in UTF-8");
        let prompt = editor.prompt(&session, &WRITE.replace("PLACE", place)).await;
        let question = editor
            .wait_for(|line| line["method"] == "session/request_permission")
            .await;
        let id = &question["id"];
        editor
            .send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},{reply}}}"#))
            .await;
        let (lines, answer) = editor.until(prompt).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{reply}: {answer}");
        assert_eq!(
            statuses(&lines).last().map(String::as_str),
            Some("failed"),
            "{reply}"
        );
        assert!(!home.path().join("a.txt").exists());
        editor.leave().await;
    }
}

#[tokio::test]
async fn an_editor_that_cancels_while_it_is_asked_ends_the_turn() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let (session, _) = editor.open(home.path()).await;
    let place = home.path().to_str().expect("a path in UTF-8");
    let prompt = editor.prompt(&session, &WRITE.replace("PLACE", place)).await;
    let question = editor
        .wait_for(|line| line["method"] == "session/request_permission")
        .await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    editor
        .reply(&question, json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    let (lines, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert_eq!(
        statuses(&lines).last().map(String::as_str),
        Some("failed"),
        "{lines:#?}"
    );
    assert!(!home.path().join("a.txt").exists());
    editor.leave().await;
}

const QUESTION: &str = "%tool AskUserQuestion {\"questions\": [{\"question\": \"Which colour?\", \"header\": \"Colour\", \
    \"multiSelect\": false, \"options\": [{\"label\": \"red\", \"description\": \"warm\"}, {\"label\": \"blue\", \"description\": \"cold\"}]}]}\n%say done";

#[tokio::test]
async fn questions_are_a_form_or_choices() {
    let form = json!({"elicitation": {"form": {}}});
    for capabilities in [json!({}), form] {
        let has_forms = capabilities.get("elicitation").is_some();
        let (mut editor, cli) = Editor::simulated();
        editor.initialize(capabilities).await;
        let home = tempfile::tempdir().unwrap();
        let (session, _) = editor.open(home.path()).await;
        editor.answer = Box::new(|asked| match asked["method"].as_str()? {
            "elicitation/create" => {
                let property = &asked["params"]["requestedSchema"]["properties"]["question_0"];
                assert_eq!(property["oneOf"][1]["const"], "blue", "{asked:#}");
                Some(json!({"action": "accept", "content": {"question_0": "blue"}}))
            }
            _ => {
                assert_eq!(asked["params"]["toolCall"]["title"], "Which colour?", "{asked:#}");
                assert_eq!(asked["params"]["options"][1]["name"], "blue: cold");
                select("answer-1")
            }
        });
        let (lines, _) = editor.turn(&session, QUESTION).await;
        let asked: Vec<&str> = lines
            .iter()
            .filter(|line| line.get("id").is_some())
            .filter_map(|line| line["method"].as_str())
            .collect();
        let wanted = if has_forms {
            "elicitation/create"
        } else {
            "session/request_permission"
        };
        assert_eq!(asked, [wanted]);
        let report = cli.report().expect("it was started");
        let decision = report
            .received()
            .find(|line| line["response"]["response"]["behavior"] == "allow")
            .expect("the answer")
            .clone();
        assert_eq!(
            decision["response"]["response"]["updatedInput"]["answers"]["Which colour?"], "blue",
            "{decision:#}"
        );
        editor.leave().await;
    }
}

const PLAN: &str = "%tool ExitPlanMode {\"plan\": \"first this, then that\"}\n%say begun";

#[tokio::test]
async fn a_plan_is_approved_in_a_mode_or_kept() {
    for (id, stop, mode) in [
        ("exit-plan-default", "end_turn", Some("default")),
        ("reject", "cancelled", None),
    ] {
        let (mut editor, _cli) = Editor::simulated();
        editor.initialize(json!({})).await;
        let home = tempfile::tempdir().unwrap();
        let (session, _) = editor.open(home.path()).await;
        editor
            .call(
                "session/set_mode",
                json!({"sessionId": session, "modeId": "plan"}),
            )
            .await;
        editor.answer = Box::new(move |_| select(id));
        let (mut lines, answer) = editor.turn(&session, PLAN).await;
        assert_eq!(answer["stopReason"], stop, "{id}: {lines:#?}");
        let changes = updates(&lines, "tool_call_update");
        let cancelled = changes
            .iter()
            .any(|call| call["_meta"]["claudeCode"]["cancelled"] == true);
        assert!(!cancelled, "{id}: {changes:#?}");
        let end = changes.iter().rev().find_map(|call| call["status"].as_str());
        let expected = if id == "reject" { "failed" } else { "completed" };
        assert_eq!(end, Some(expected), "{id}: {changes:#?}");
        let (more, _) = editor.turn(&session, "%say next").await;
        lines.extend(more);
        let modes = updates(&lines, "current_mode_update");
        let last = modes.last().and_then(|update| update["currentModeId"].as_str());
        assert_eq!(last.filter(|mode| *mode != "plan"), mode, "{id}: {lines:#?}");
        editor.leave().await;
    }
}
