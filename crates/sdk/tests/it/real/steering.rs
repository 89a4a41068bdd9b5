//! What control requests bring about, and that they work at any moment.

use std::sync::Arc;
use std::time::Duration;

use outrigger::permissions::PermissionResult;
use outrigger::protocol::outbound::control::{EndSession, GetTaskOutput, RewindFiles};
use outrigger::protocol::shared::{JsonObject, PermissionMode};
use outrigger::{Event, Policy, Session, TaskState, Verdict};
use outrigger_sim::api::RequestOutcome as Reached;
use serde_json::json;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::rig::{PATIENCE, Rig, turn};

/// Waits for a frame of this kind and subtype, and returns it as JSON.
async fn frame(frames: &mut outrigger::Frames, kind: &str, subtype: &str) -> serde_json::Value {
    let wait = async {
        while let Some(frame) = frames.next().await {
            let frame = frame.expect("nothing is left out");
            if frame.kind() == kind && (subtype.is_empty() || frame.subtype() == Some(subtype)) {
                return serde_json::from_slice(frame.bytes()).expect("it is JSON");
            }
        }
        panic!("the session ended before a {kind}/{subtype}");
    };
    timeout(PATIENCE, wait).await.expect("it comes in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_and_its_thinking_change_from_the_next_request_on() {
    let rig = Rig::start().await;
    let session = rig.options().model("claude-sonnet-4-5").start().await.unwrap();
    turn(&session, "%say one").await;
    session.set_max_thinking_tokens(Some(2048)).await.unwrap();
    turn(&session, "%say two").await;
    session.set_max_thinking_tokens(Some(0)).await.unwrap();
    session.set_model(Some("claude-haiku-4-5")).await.unwrap();
    turn(&session, "%say three").await;

    // In mid-turn: the first request of this turn goes to one model, the second to the other.
    let mut running = session
        .prompt("%say {{gate:middle}}three and a half\n%+tool Bash {\"command\":\"echo hi\"}\n%say four")
        .await
        .unwrap();
    rig.api().gate("middle").reached(1, PATIENCE).await.unwrap();
    session.set_model(Some("claude-sonnet-4-5")).await.unwrap();
    rig.api().gate("middle").open();
    let outcome = timeout(PATIENCE, running.outcome()).await.unwrap().unwrap();
    assert_eq!(outcome.result_text(), "four");

    let asked: Vec<_> = rig
        .api()
        .message_requests()
        .iter()
        // The CLI tries a model out, without tools, before it changes to it.
        .filter(|request| request.tools().next().is_some())
        .map(|request| {
            (
                request.model().unwrap_or_default().to_owned(),
                request.body["thinking"]["budget_tokens"].as_u64(),
            )
        })
        .collect();
    let [_, two, three, four, five] = &asked[..] else {
        panic!("{asked:?}");
    };
    assert_eq!(*two, ("claude-sonnet-4-5".into(), Some(2048)));
    assert_eq!(*three, ("claude-haiku-4-5".into(), None));
    assert_eq!(
        (four.0.as_str(), five.0.as_str()),
        ("claude-haiku-4-5", "claude-sonnet-4-5")
    );
    // The CLI notes each change in the conversation; these notes are nobody's turn.
    assert_eq!(session.stats().misfits, 0);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_permission_mode_and_rules_decide() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::deny_all())
        .start()
        .await
        .unwrap();
    let project = rig.sandbox().project();
    let write = |name: &str| {
        let path = project.join(name);
        format!(
            "%tool Write {}\n%say done",
            json!({"file_path": path, "content": "x"})
        )
    };
    let (seen, _) = turn(&session, &write("a.txt")).await;
    assert_eq!(seen[1], "result error");

    let mut frames = session.frames();
    session
        .set_permission_mode(PermissionMode::AcceptEdits)
        .await
        .unwrap();
    let status = frame(&mut frames, "system", "status").await;
    assert_eq!(status["permissionMode"], "acceptEdits");
    let (seen, _) = turn(&session, &write("a.txt")).await;
    assert_eq!(seen[1], "result ok");

    session
        .set_permission_mode(PermissionMode::Default)
        .await
        .unwrap();
    let touch = "%tool Bash {\"command\":\"touch b.txt\"}\n%say done";
    assert_eq!(turn(&session, touch).await.0[1], "result error");
    let rules = json!({"permissions": {"allow": ["Bash(touch:*)"]}});
    session
        .apply_flag_settings(JsonObject::try_from(rules).unwrap())
        .await
        .unwrap();
    assert_eq!(turn(&session, touch).await.0[1], "result ok");
    assert!(project.join("a.txt").exists() && project.join("b.txt").exists());
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_is_announced() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut frames = session.frames();
    session.rename_session("Ümlaut \u{1f600}").await.unwrap();
    let changed = frame(&mut frames, "system", "session_title_changed").await;
    assert_eq!(changed["title"], "Ümlaut \u{1f600}");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_brought_back_as_they_were() {
    let rig = Rig::start().await;
    let kept = rig.sandbox().write("kept.txt", "before\n").unwrap();
    let made = rig.sandbox().project().join("made.txt");
    let session = rig
        .options()
        .enable_file_checkpointing(true)
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    // The model has not read the file; this says that it has.
    session.seed_read_state_of(&kept).await.unwrap();
    let mut edits = session
        .prompt(format!(
            "%tool Edit {}\n%tool Write {}\n%say done",
            json!({"file_path": kept, "old_string": "before", "new_string": "after"}),
            json!({"file_path": made, "content": "x\n"}),
        ))
        .await
        .unwrap();
    let id = edits.id().to_string();
    let mut results = Vec::new();
    while let Some(event) = timeout(PATIENCE, edits.next()).await.unwrap() {
        if let Event::ToolResult(result) = event.unwrap() {
            results.push((result.is_error, result.text));
        }
    }
    assert!(
        results.len() == 2 && results.iter().all(|(failed, _)| !failed),
        "{results:?}"
    );
    let content = || std::fs::read_to_string(&kept).unwrap();
    assert_eq!((content().as_str(), made.exists()), ("after\n", true));

    let would = session
        .request(&RewindFiles::new(id.clone()).dry_run(true))
        .await
        .unwrap();
    assert!(would.can_rewind, "{would:?}");
    assert_eq!(would.files_changed.unwrap().len(), 2);
    assert_eq!(content(), "after\n", "nothing happened yet");

    let did = session.rewind_files(&id).await.unwrap();
    assert!(did.can_rewind, "{did:?}");
    assert_eq!((content().as_str(), made.exists()), ("before\n", false));

    let unknown = session
        .request(&RewindFiles::new("00000000-0000-4000-8000-000000000000").dry_run(true))
        .await
        .unwrap();
    assert!(!unknown.can_rewind && unknown.error.is_some());
    let refused = session.rewind_files("nope").await.unwrap_err();
    assert!(
        refused
            .as_refusal()
            .unwrap()
            .message
            .contains("No file checkpoint")
    );
    session.close().await.unwrap();
}

/// Waits until a task of the session is as wanted. The session announces tasks by frames, so each frame is a moment to look.
async fn task(session: &Session, wanted: impl Fn(&outrigger::Task) -> bool) -> outrigger::Task {
    let mut frames = session.frames();
    let look = async {
        loop {
            if let Some(task) = session.tasks().iter().find(|task| wanted(task)) {
                return task.clone();
            }
            frames
                .next()
                .await
                .expect("the session lives")
                .expect("nothing is left out");
        }
    };
    timeout(PATIENCE, look).await.expect("such a task comes")
}

#[tokio::test(flavor = "multi_thread")]
async fn background_shells_are_read_and_stopped() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let endless = json!({"command": "echo begun; tail -f /dev/null", "run_in_background": true});
    let (seen, outcome) = turn(&session, &format!("%tool Bash {endless}\n%say on its way")).await;
    assert_eq!(
        (seen[1].as_str(), outcome.result_text()),
        ("result ok", "on its way")
    );
    let shell = task(&session, |task| task.task_type.as_deref() == Some("local_bash")).await;
    assert!(shell.is_backgrounded && !shell.state.is_ended(), "{shell:?}");
    // The shell writes when it likes; nothing announces it.
    let read = async {
        loop {
            let output = session.get_task_output(&shell.id).await.unwrap();
            if output.total_bytes > 0 {
                return output;
            }
        }
    };
    let output = timeout(PATIENCE, read).await.unwrap();
    assert_eq!((output.output.trim(), output.truncated), ("begun", false));
    let typed = session
        .request(&GetTaskOutput::new(shell.id.clone()))
        .await
        .unwrap();
    assert_eq!(typed.total_bytes, output.total_bytes);

    session.stop_task(&shell.id).await.unwrap();
    let stopped = task(&session, |task| task.id == shell.id && task.state.is_ended()).await;
    assert_eq!(stopped.state, TaskState::Stopped);
    session.close().await.unwrap();
}

/// An MCP server in as few words as possible: one tool, one resource.
#[cfg(unix)]
const SERVER: &str = r#"
while read -r line; do
  id=${line##*'"id":'}; id=${id%%[!0-9]*}
  case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"tiny","version":"1"}}' ;;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"greet","description":"greets","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) result='{"content":[{"type":"text","text":"hello"}]}' ;;
    *'"method":"resources/list"'*) result='{"resources":[]}' ;;
    *'"method":"resources/read"'*) result='{"contents":[{"uri":"ui://card","mimeType":"text/html","text":"<p>card</p>"}]}' ;;
    *'"id":'*) result='{}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn servers_are_added_called_and_removed() {
    use outrigger::protocol::shared::{McpServerConfig, McpStdioServerConfig};

    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let server = McpServerConfig::Stdio(McpStdioServerConfig::new("/bin/sh", ["-c", SERVER]));
    let set = session
        .mcp_set_servers(std::collections::BTreeMap::from([("tiny".to_owned(), server)]))
        .await
        .unwrap();
    assert_eq!((set.added.len(), set.errors.len()), (1, 0), "{set:?}");
    let status = session.mcp_status().await.unwrap().mcp_servers.remove(0);
    assert_eq!(status.status.as_str(), "connected", "{status:?}");
    assert_eq!(status.tools.unwrap()[0].name, "greet");

    let arguments = JsonObject::try_from(json!({"to": "you"})).unwrap();
    let called = session.mcp_call("mcp__tiny__greet", arguments).await.unwrap();
    assert_eq!(
        called.content.to_value().unwrap(),
        json!([{"type": "text", "text": "hello"}])
    );
    let card = session.mcp_read_resource("tiny", "ui://card").await.unwrap();
    assert_eq!(card.contents[0].text.as_deref(), Some("<p>card</p>"));
    session.mcp_reconnect("tiny").await.unwrap();
    let (seen, _) = turn(&session, "%tool mcp__tiny__greet {}\n%say {{last}}").await;
    assert_eq!(seen[..2], ["use mcp__tiny__greet", "result ok"]);
    assert!(seen[2].contains("hello"), "{seen:?}");

    let gone = session
        .mcp_set_servers(outrigger::mcp::McpServers::new())
        .await
        .unwrap();
    assert_eq!(gone.removed, ["tiny"]);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_in_the_foreground_can_be_sent_to_the_background() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let mut running = session
        .prompt("%tool Bash {\"command\":\"tail -f /dev/null\"}\n%say went on")
        .await
        .unwrap();
    // After some seconds the CLI reports a command in the foreground as a task.
    let shell = task(&session, |task| !task.is_backgrounded).await;
    session.background_tasks().await.unwrap();
    let outcome = timeout(PATIENCE, running.outcome()).await.unwrap().unwrap();
    assert_eq!(
        (outcome.verdict(), outcome.result_text()),
        (&Verdict::Completed, "went on")
    );
    let shell = task(&session, |task| task.id == shell.id && task.is_backgrounded).await;
    assert!(!shell.state.is_ended());
    session.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_at_any_moment() {
    let rig = Rig::start().await;
    let asked = Arc::new(Notify::new());
    let (decide, decision) = oneshot::channel::<()>();
    let decision = tokio::sync::Mutex::new(Some(decision));
    let (tell, decision) = (Arc::clone(&asked), Arc::new(decision));
    let session = rig
        .options()
        .can_use_tool(move |_| {
            let (tell, decision) = (Arc::clone(&tell), Arc::clone(&decision));
            async move {
                tell.notify_one();
                let decision = decision.lock().await.take().expect("one question");
                decision.await.expect("the test decides");
                PermissionResult::allow()
            }
        })
        .start()
        .await
        .unwrap();
    // Before the first prompt.
    assert!(session.mcp_status().await.unwrap().mcp_servers.is_empty());

    // Frames that nobody takes, and a turn that nobody reads: requests pass them by.
    let unread = session.frames();
    let mut question = session
        .prompt("%tool Bash {\"command\":\"touch c.txt\"}\n%say {{gate:end}}asked")
        .await
        .unwrap();
    timeout(PATIENCE, asked.notified()).await.expect("it is asked");
    // While a question is open.
    let rules = session.list_permission_rules().await.unwrap();
    // Nobody answers questions here, so the model has no tool to ask them with.
    let rules = serde_json::to_value(&rules.state.rules).unwrap();
    assert_eq!(rules.as_array().unwrap().len(), 1, "{rules}");
    assert!(rules.to_string().contains("AskUserQuestion"), "{rules}");
    session
        .set_permission_mode(PermissionMode::AcceptEdits)
        .await
        .unwrap();
    assert!(question.watch().now().is_none(), "the question is still open");
    decide.send(()).unwrap();

    // While the model is silent, from many tasks at once.
    rig.api().gate("end").reached(1, PATIENCE).await.unwrap();
    let many = (0..100).map(|number| {
        let session = session.clone();
        tokio::spawn(async move {
            match number % 4 {
                0 => session.get_binary_version().await.map(drop),
                1 => session.mcp_status().await.map(drop),
                2 => session.get_settings().await.map(drop),
                _ => session.get_usage().await.map(drop),
            }
        })
    });
    for answer in timeout(PATIENCE, futures_util::future::join_all(many))
        .await
        .unwrap()
    {
        answer.unwrap().unwrap();
    }
    assert!(question.watch().now().is_none(), "the turn still runs");
    rig.api().gate("end").open();
    let outcome = timeout(PATIENCE, question.outcome()).await.unwrap().unwrap();
    assert_eq!(outcome.result_text(), "asked");

    // After the last turn.
    assert!(session.get_session_cost().await.is_ok());
    let unknown = session
        .raw_request("no_such_thing", json!({"a": 1}))
        .await
        .unwrap_err();
    assert!(unknown.is_unsupported(), "{unknown}");
    assert_eq!(
        unknown.to_string(),
        "the CLI refused `no_such_thing`: Unsupported control request subtype: no_such_thing [unsupported_request]"
    );
    let raw = session
        .raw_request("get_binary_version", json!({}))
        .await
        .unwrap();
    assert!(raw.to_value().unwrap()["version"].is_string());
    let stats = session.stats();
    assert_eq!((stats.unanswered_by_cli, stats.unmatched_responses), (0, 0));
    drop(unread);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_given_up_is_taken_back() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    turn(&session, "%say one").await;
    let asking = session.clone();
    let given_up = tokio::spawn(async move { asking.side_question("%hang").await.map(drop) });
    rig.api().wait_for_requests(2, PATIENCE).await.unwrap();
    assert_eq!(session.stats().unanswered_by_cli, 1);
    given_up.abort();
    // The CLI hangs up on the API, so it was told.
    rig.api()
        .wait_until("the side question to be dropped", PATIENCE, |requests| {
            requests
                .iter()
                .any(|request| request.outcome == Reached::ClientGone)
        })
        .await
        .unwrap();

    let slow = session
        .request_within(
            &outrigger::protocol::outbound::control::SideQuestion::new("%hang"),
            Duration::from_millis(50),
        )
        .await
        .unwrap_err();
    assert!(slow.is_timeout(), "{slow}");
    let (_, outcome) = turn(&session, "%say two").await;
    assert_eq!(outcome.result_text(), "two");
    assert_eq!(session.stats().unanswered_by_cli, 0);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cli_can_be_asked_to_end_in_mid_turn() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut running = session.prompt("%hang").await.unwrap();
    rig.api().wait_for_requests(1, PATIENCE).await.unwrap();
    session.request(&EndSession::new()).await.unwrap();
    let outcome = timeout(PATIENCE, running.outcome()).await.unwrap().unwrap();
    assert_eq!(outcome.verdict(), &Verdict::Interrupted);
    let ended = timeout(PATIENCE, session.wait_ended()).await.unwrap();
    // The exit code repeats the result.
    assert_eq!(ended.exit().and_then(|exit| exit.code), Some(1), "{ended}");
    assert!(session.prompt("%say late").await.unwrap_err().is_closed());
    assert!(session.mcp_status().await.unwrap_err().is_closed());
}
