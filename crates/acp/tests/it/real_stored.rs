//! Stored sessions with the real CLI: rewinds, forks, replays, titles and the archive.

use serde_json::{Value, json};

use crate::editor::{Editor, said, updates};
use crate::real::Rig;

async fn turn(editor: &mut Editor, session: &str, text: &str) -> String {
    let (_, answer) = editor.turn(session, text).await;
    let id = answer["_meta"]["claudeCode"]["messageUuid"].as_str();
    id.unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

/// The last API request.
fn last_request(rig: &Rig) -> String {
    let requests = rig.api.message_requests();
    json!(requests.last().expect("a request").messages()).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_conversation_go_back() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let mut editor = rig.editor();
    let told = editor.initialize(json!({})).await;
    assert!(
        told["agentCapabilities"]["_meta"]["claudeCode"]["rewind"].is_object(),
        "{told:#}"
    );
    let (session, _) = editor.open(&cwd).await;
    let mode = json!({"sessionId": session, "modeId": "acceptEdits"});
    editor.call("session/set_mode", mode).await;
    let file = cwd.join("made.txt");
    let write = json!({"file_path": file, "content": "by the agent\n"});
    let zeroth = turn(&mut editor, &session, "%say the beginning").await;
    let first = turn(
        &mut editor,
        &session,
        &format!("%tool Write {write}\n%say the middle"),
    )
    .await;
    turn(&mut editor, &session, "%say the end").await;
    assert!(file.exists());

    let rewind =
        |message: &str, dry: bool| json!({"sessionId": session, "messageId": message, "dryRun": dry});
    let would = editor.call("_session/rewind", rewind(&first, true)).await;
    assert_eq!(would["canRewind"], true, "{would:#}");
    assert_eq!(would["filesChanged"], json!([file]), "{would:#}");
    assert!(file.exists());
    let done = editor.call("_session/rewind", rewind(&first, false)).await;
    assert_eq!(done["canRewind"], true, "{done:#}");
    assert!(!file.exists());
    // The mode is kept, and so are the messages before the prompt.
    editor.answer = Box::new(|asked| panic!("nothing is to be asked: {asked}"));
    let again = turn(
        &mut editor,
        &session,
        &format!("%tool Write {write}\n%say another way"),
    )
    .await;
    let request = last_request(&rig);
    assert!(
        request.contains("the beginning") && !request.contains("the middle"),
        "{request}"
    );
    assert!(file.exists());
    // The same on the new branch.
    let done = editor.call("_session/rewind", rewind(&again, false)).await;
    assert_eq!(done["canRewind"], true, "{done:#}");
    assert!(!file.exists());
    turn(&mut editor, &session, "%say a third way").await;
    editor.call("session/close", json!({"sessionId": session})).await;

    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = editor.ask("session/load", load.clone()).await;
    let (lines, _) = editor.until(id).await;
    assert_eq!(said(&lines), "the beginninga third way", "{lines:#?}");
    let ids: Vec<&Value> = updates(&lines, "user_message_chunk")
        .into_iter()
        .map(|chunk| &chunk["messageId"])
        .collect();
    assert_eq!(
        ids[0],
        zeroth.as_str(),
        "the id of a prompt is that of its message"
    );

    // To before the first prompt.
    let nothing = json!({"sessionId": session, "messageId": zeroth, "files": false});
    let done = editor.call("_session/rewind", nothing).await;
    assert_eq!(done["canRewind"], true, "{done:#}");
    turn(&mut editor, &session, "%say from nothing").await;
    assert!(!last_request(&rig).contains("the beginning"));
    editor.leave().await;
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let id = editor.ask("session/load", load).await;
    let (lines, _) = editor.until(id).await;
    assert_eq!(said(&lines), "from nothing", "{lines:#?}");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cleared_session_is_found_again_and_can_be_forked_at_a_message() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(&cwd).await;
    turn(&mut editor, &session, "%say forenoon").await;
    editor.turn(&session, "/clear").await;
    turn(&mut editor, &session, "%say afternoon").await;
    let second = turn(&mut editor, &session, "%say more").await;
    editor.leave().await;

    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = editor.ask("session/load", load).await;
    let (lines, answer) = editor.until(id).await;
    assert!(answer.get("error").is_none(), "{answer:#}");
    assert_eq!(said(&lines), "afternoonmore", "{lines:#?}");
    let (lines, _) = editor.turn(&session, "%say on").await;
    assert_eq!(said(&lines), "on");
    assert!(last_request(&rig).contains("afternoon") && !last_request(&rig).contains("forenoon"));
    let listed = editor.call("session/list", json!({"cwd": cwd})).await;
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1), "{listed:#}");
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str(), "{listed:#}");

    let fork = json!({"sessionId": session, "cwd": cwd, "mcpServers": [], "_meta": {"claudeCode": {"upToMessageId": second}}});
    let copy = editor.call("session/fork", fork).await;
    let copy = copy["sessionId"].as_str().expect("an id").to_owned();
    editor.turn(&copy, "%say apart").await;
    let request = last_request(&rig);
    assert!(
        request.contains("%say more") && !request.contains("%say on"),
        "{request}"
    );
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn titles_and_the_archive_are_those_of_the_cli() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(&cwd).await;
    turn(&mut editor, &session, "%say hello").await;
    let id = editor
        .ask(
            "session/set_title",
            json!({"sessionId": session, "title": "A title of mine"}),
        )
        .await;
    let (lines, answer) = editor.until(id).await;
    assert_eq!(answer["result"]["title"], "A title of mine", "{answer:#}");
    // The update comes independently, before or behind the answer.
    let is_told = |line: &Value| {
        let update = &line["params"]["update"];
        title_of(update).as_deref() == Some("A title of mine")
    };
    if !lines.iter().any(is_told) {
        editor.wait_for(is_told).await;
    }
    turn(&mut editor, &session, "%say more").await;
    let which = json!({"sessionId": session});
    assert_eq!(
        editor.call("session/status", which.clone()).await["status"],
        "open"
    );
    editor.call("session/archive", which.clone()).await;
    assert_eq!(
        editor.call("session/status", which.clone()).await["status"],
        "saved"
    );
    let listed = editor.call("session/list", json!({"cwd": cwd})).await;
    assert_eq!(listed["sessions"], json!([]));
    let listed = editor
        .call("session/list", json!({"cwd": cwd, "archived": "only"}))
        .await;
    assert_eq!(listed["sessions"][0]["title"], "A title of mine", "{listed:#}");
    editor.call("session/unarchive", which).await;
    let listed = editor.call("session/list", json!({"cwd": cwd})).await;
    assert_eq!(listed["sessions"][0]["archived"], false, "{listed:#}");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_has_a_name_after_its_first_turn() {
    let rig = Rig::start().await;
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(&rig.sandbox.project()).await;
    let told = editor
        .turn_until(&session, "Rename the parser\n%say done", |line| {
            title_of(&line["params"]["update"]).is_some()
        })
        .await;
    assert_eq!(told["params"]["sessionId"], session.as_str());
    let title = title_of(&told["params"]["update"]);
    assert!(
        title.is_some_and(|title| title.starts_with("Rename the parser")),
        "{told:#}"
    );
    // The user's title wins.
    let (lines, _) = editor.turn(&session, "/rename A name of mine").await;
    let last = |lines: &[Value]| {
        updates(lines, "session_info_update")
            .into_iter()
            .rev()
            .find_map(title_of)
    };
    assert_eq!(last(&lines).as_deref(), Some("A name of mine"), "{lines:#?}");
    let (lines, _) = editor.turn(&session, "%say more").await;
    assert_eq!(last(&lines), None, "{lines:#?}");
    editor.leave().await;
}

fn title_of(update: &Value) -> Option<String> {
    update["title"].as_str().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agents_did_is_told_again_below_their_calls() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let mut editor = rig.editor();
    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    let can = json!({"_meta": {"claudeCode": {"subagentText": true}}});
    editor.initialize(can.clone()).await;
    let (session, _) = editor.open(&cwd).await;
    let inner = format!(
        "%tool Bash {}\n%say the inner report",
        json!({"command": "echo inner", "description": "Say it"})
    );
    let agent = json!({
        "description": "Look into it", "prompt": inner, "subagent_type": "general-purpose", "run_in_background": false,
    });
    let (live, _) = editor
        .turn(&session, &format!("%tool Agent {agent}\n%say done"))
        .await;
    editor.leave().await;

    let mut editor = rig.editor();
    editor.initialize(can).await;
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = editor.ask("session/load", load).await;
    let (again, _) = editor.until(id).await;
    // The calls, each with its parent.
    let calls = |lines: &[Value]| -> Vec<(Value, Value, Value)> {
        let calls = updates(lines, "tool_call").into_iter();
        calls
            .map(|call| {
                let about = &call["_meta"]["claudeCode"];
                (
                    call["toolCallId"].clone(),
                    about["toolName"].clone(),
                    about["parentToolUseId"].clone(),
                )
            })
            .collect()
    };
    assert_eq!(calls(&again), calls(&live), "{again:#?}");
    assert_eq!(calls(&again).len(), 2);
    assert_eq!(calls(&again)[1].2, calls(&again)[0].0);
    let of_agent = |lines: &[Value]| {
        let chunks = updates(lines, "agent_message_chunk").into_iter();
        let of_agent = chunks.filter(|chunk| chunk["_meta"]["claudeCode"]["parentToolUseId"].is_string());
        of_agent
            .map(|chunk| chunk["content"]["text"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of_agent(&again), ["the inner report"], "{again:#?}");
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_plan_is_carried_out_with_a_cleared_context() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(&cwd).await;
    let mode = json!({"sessionId": session, "modeId": "plan"});
    editor.call("session/set_mode", mode).await;
    turn(&mut editor, &session, "%say thinking").await;
    let request = last_request(&rig);
    let from = request.find("/plans/").expect("the CLI names the plan's file");
    let is_before = |c: char| c.is_whitespace() || "\"`(".contains(c);
    let begin = request[..from].rfind(is_before).expect("a path") + 1;
    let end = from + request[from..].find(".md").expect("a file") + 3;
    let write = json!({"file_path": request[begin..end], "content": "# Build it\n%say built\n"});
    editor.answer = Box::new(|question| {
        let options = question["params"]["options"].as_array()?;
        let ids = options.iter().filter_map(|option| option["optionId"].as_str());
        let id = ids.clone().find(|id| id.starts_with("exit-plan-clear-"));
        let id = id.or_else(|| ids.clone().find(|id| *id == "allow-once"))?;
        Some(json!({"outcome": {"outcome": "selected", "optionId": id}}))
    });
    let plan = format!("%tool Write {write}\n%tool ExitPlanMode {{}}\n%say in the old one");
    let (lines, answer) = editor.turn(&session, &plan).await;
    assert_eq!(
        (said(&lines).as_str(), &answer["stopReason"]),
        ("built", &json!("end_turn")),
        "{lines:#?}"
    );
    let request = last_request(&rig);
    assert!(request.contains("Implement this plan:"), "{request}");
    assert!(!request.contains("thinking"), "the context is kept: {request}");
    let calls = updates(&lines, "tool_call_update").into_iter();
    let failed = calls.filter(|call| call["status"] == "failed").count();
    assert_eq!(failed, 0, "{lines:#?}");
    let modes = updates(&lines, "current_mode_update");
    let mode = modes.last().map(|update| update["currentModeId"].clone());
    assert!(mode.is_some_and(|mode| mode != "plan"), "{modes:?}");
    editor.turn(&session, "%say after it").await;
    assert!(last_request(&rig).contains("Implement this plan:"));
    editor.leave().await;

    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    let id = editor.ask("session/load", load).await;
    let (lines, answer) = editor.until(id).await;
    assert!(answer.get("error").is_none(), "{answer:#}");
    assert_eq!(said(&lines), "builtafter it", "{lines:#?}");
    editor.leave().await;
}
