//! What a host of this CLI must handle: sixteen facts about the wire, each shown once, with what the SDK makes of it.
//!
//! Facts about hooks and MCP servers of the host are shown by a raw driver where the SDK cannot bring them about by itself; the
//! doc comments say so.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger::permissions::PermissionResult;
use outrigger::protocol::shared::{
    AgentDefinition, JsonObject, McpServerConfig, McpStdioServerConfig, OutputFormat,
};
use outrigger::{Assembler, Cause, Options, Prompt, Verdict};
use outrigger_sim::api::Route;
use outrigger_sim::claude::{ClaudeProcess, Direction, Launch, Seen};
use serde_json::json;

use super::flow::{bash, end, soon};
use super::rig::{PATIENCE, Rig, turn};

/// The raw driver in the place of this rig.
fn raw(rig: &Rig) -> ClaudeProcess {
    Launch::new(rig.executable(), rig.sandbox(), &rig.api().base_url())
        .spawn()
        .unwrap()
}

/// Options that name an MCP server of the host, which the SDK does not have.
fn with_foreign_server(rig: &Rig) -> Options {
    let servers = json!({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}});
    let file = rig.sandbox().write("mcp.json", servers.to_string()).unwrap();
    rig.options().mcp_config_files([file])
}

fn is_mcp_message(seen: &Seen, method: &str) -> bool {
    seen.frame.subtype() == Some("mcp_message") && seen.value["request"]["message"]["method"] == method
}

async fn ask_initialize(claude: &mut ClaudeProcess, fields: serde_json::Value) {
    let mut request = fields;
    request["subtype"] = json!("initialize");
    let line = json!({"type": "control_request", "request_id": "init", "request": request});
    claude.send(&line).await.unwrap();
}

/// The fact by the raw driver; the SDK answers during the start and the session begins without delay.
#[tokio::test]
async fn point_01_requests_come_before_initialize_is_answered() {
    let rig = Rig::start().await;
    let mut claude = raw(&rig);
    ask_initialize(&mut claude, json!({"hooks": null, "sdkMcpServers": ["calc"]})).await;
    let first = claude
        .until("control traffic", |seen| {
            seen.frame.kind().starts_with("control_")
        })
        .await
        .unwrap();
    assert!(is_mcp_message(&first, "initialize"), "{}", first.value);
    drop(claude);

    // Without an answer the CLI would wait for 30 s.
    let quick = Duration::from_secs(25);
    let session = tokio::time::timeout(quick, with_foreign_server(&rig).start())
        .await
        .unwrap()
        .unwrap();
    let answered = tokio::time::timeout(quick, turn(&session, "%say on"))
        .await
        .unwrap();
    assert_eq!(answered.0, ["text on"]);
    assert_eq!(session.stats().unanswered_by_us, 0);
}

/// By the raw driver, since the SDK has no server of its own here: what it has none for it refuses, notifications too.
#[tokio::test]
async fn point_02_notifications_are_requests_that_want_an_answer() {
    let rig = Rig::start().await;
    let mut claude = raw(&rig);
    ask_initialize(&mut claude, json!({"hooks": null, "sdkMcpServers": ["calc"]})).await;
    let hello = claude
        .until("initialize", |seen| is_mcp_message(seen, "initialize"))
        .await
        .unwrap();
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}});
    let id = hello.value["request"]["message"]["id"].clone();
    claude
        .answer(
            &hello,
            json!({"mcp_response": {"jsonrpc": "2.0", "id": id, "result": result}}),
        )
        .await
        .unwrap();
    let told = claude
        .until("the notification", |seen| {
            is_mcp_message(seen, "notifications/initialized")
        })
        .await
        .unwrap();
    assert!(told.frame.request_id().is_some() && told.value["request"]["message"]["id"].is_null());
    claude.answer(&told, json!({})).await.unwrap();
    // Only now it goes on.
    claude
        .until("tools/list", |seen| is_mcp_message(seen, "tools/list"))
        .await
        .unwrap();
}

#[tokio::test]
async fn point_03_results_are_not_one_per_prompt() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut turns = vec![session.prompt("%say {{gate:held}}first").await.unwrap()];
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    for text in ["one of two", "%say merged"] {
        turns.push(session.queue(text).await.unwrap());
    }
    soon(session.mcp_status()).await.unwrap();
    rig.api().gate("held").open();
    let mut texts = Vec::new();
    for turn in &mut turns {
        texts.push(end(turn).await.result_text().to_owned());
    }
    assert_eq!(texts, ["first", "merged", "merged"]);
    assert_eq!(session.usage().results, 2);
}

#[tokio::test]
async fn point_04_success_is_not_always_success() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let (_, outcome) = turn(&session, "%error 400 n=99").await;
    let frame = outcome.frame().unwrap();
    assert_eq!(frame.subtype(), Some("success"));
    assert_eq!(
        outcome.verdict(),
        &Verdict::Failed(Cause::Api { status: Some(400) })
    );
    assert!(outcome.answer().is_err());
}

#[tokio::test]
async fn point_05_the_exit_code_repeats_the_last_result() {
    let rig = Rig::start().await;
    for (last, code) in [("%error 400 n=99", 1), ("%say good", 0)] {
        let session = rig.session().await;
        turn(&session, "%error 403 n=99").await;
        turn(&session, last).await;
        let exit = soon(session.close())
            .await
            .expect("an orderly end is no error, whatever its code");
        assert_eq!(exit.code, Some(code), "{last}");
    }
}

/// The fact by the raw driver; the SDK writes whole lines of JSON, however much is written at once.
#[tokio::test(flavor = "multi_thread")]
async fn point_06_a_bad_line_ends_the_cli() {
    let rig = Rig::start().await;
    let mut claude = raw(&rig);
    claude.send_line("{\"type\":").await.unwrap();
    let (status, _) = claude.finish().await.unwrap();
    assert_eq!(status.code(), Some(1));

    let session = rig.session().await;
    let long = "x\r\n\u{2028}\0\u{7f}".repeat(20_000);
    let mut running = session.prompt(format!("%say fine\n{long}")).await.unwrap();
    let requests = (0..50).map(|_| {
        let session = session.clone();
        tokio::spawn(async move { session.mcp_status().await })
    });
    for request in requests.collect::<Vec<_>>() {
        soon(request).await.unwrap().unwrap();
    }
    assert_eq!(end(&mut running).await.result_text(), "fine");
}

#[tokio::test]
async fn point_07_permissions_have_no_deadline() {
    let rig = Rig::start().await;
    let short = Duration::from_millis(50);
    let handler = move |_| async move {
        // Longer than every deadline of the session.
        tokio::time::sleep(short * 6).await;
        PermissionResult::allow()
    };
    let options = rig
        .options()
        .permissions(handler)
        .control_deadline(short)
        .interrupt_deadline(short);
    let session = options.start().await.unwrap();
    let (seen, _) = turn(&session, &format!("{}\n%say done", bash("touch late.txt"))).await;
    assert_eq!(seen, ["use Bash", "result ok", "text done"]);
    assert!(rig.sandbox().project().join("late.txt").exists());
}

#[tokio::test]
async fn point_08_questions_are_withdrawn() {
    let rig = Rig::start().await;
    let (asked, mut was_asked) = tokio::sync::mpsc::channel::<()>(1);
    let handler = move |_| {
        let asked = asked.clone();
        async move {
            asked.send(()).await.unwrap();
            std::future::pending::<PermissionResult>().await
        }
    };
    let session = rig.options().permissions(handler).start().await.unwrap();
    let mut running = session.prompt(bash("touch x")).await.unwrap();
    soon(was_asked.recv()).await.unwrap();
    soon(session.interrupt()).await.unwrap();
    assert_eq!(session.stats().unanswered_by_us, 0);
    assert_eq!(end(&mut running).await.verdict(), &Verdict::Interrupted);
}

#[tokio::test]
async fn point_09_closing_stdin_does_not_end_the_turn() {
    let rig = Rig::start().await;
    let session = rig.options().close_grace(PATIENCE).start().await.unwrap();
    let running = session.prompt("%say {{gate:held}}to the end").await.unwrap();
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    let outcome = running.watch();
    drop(running);
    let (exit, ()) =
        soon(async { tokio::join!(session.close(), async { rig.api().gate("held").open() }) }).await;
    assert_eq!(outcome.outcome().await.unwrap().result_text(), "to the end");
    assert_eq!(exit.unwrap().code, Some(0));
}

#[tokio::test]
async fn point_10_init_comes_with_each_turn_and_the_id_may_change() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    assert!(
        session.init().is_none() && session.id().is_none(),
        "before the first prompt"
    );
    let mut frames = session.frames();
    turn(&session, "%say one").await;
    turn(&session, "%say two").await;
    let before = session.id().unwrap();
    let mut clear = session.prompt(Prompt::command("clear", "")).await.unwrap();
    end(&mut clear).await;
    turn(&session, "%say three").await;
    let ids = session.ids();
    assert_eq!((ids.len(), &ids[0]), (2, &before));
    assert_eq!(session.init().unwrap().session_id, ids[1]);
    session.close().await.unwrap();
    let mut inits = 0;
    while let Some(frame) = soon(frames.next()).await {
        inits += usize::from(frame.unwrap().subtype() == Some("init"));
    }
    assert!(inits >= 3, "{inits}");
}

#[tokio::test]
async fn point_11_a_message_comes_a_block_at_a_time() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .include_partial_messages(true)
        .start()
        .await
        .unwrap();
    let mut running = session.prompt("%think hm\n%+say all\n%+say of it").await.unwrap();
    let mut assembler = Assembler::new();
    let (mut order, mut blocks) = (Vec::new(), 0);
    while let Some(Ok(frame)) = soon(running.next_frame()).await {
        assembler.push(&frame);
        blocks = blocks.max(assembler.blocks().count());
        if frame.kind() == "assistant" {
            order.push("assistant");
        } else if frame.text().contains("content_block_stop") {
            order.push("stop");
        }
    }
    // The finished line is ahead of the end of its own block.
    assert_eq!(
        order,
        ["assistant", "stop", "assistant", "stop", "assistant", "stop"]
    );
    assert_eq!(blocks, 3, "they are one message");
    assert_eq!(end(&mut running).await.result_text(), "of it");
}

#[tokio::test]
async fn point_12_stdio_servers_need_arguments() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let bare = json!({"servers": {"x": {"command": "false"}}});
    let fact = soon(session.raw_request("mcp_set_servers", bare)).await.unwrap();
    assert!(fact.get().contains("Spread syntax"), "{fact}");
    let server = McpStdioServerConfig::new("false", Vec::<String>::new());
    let servers = BTreeMap::from([("y".to_owned(), McpServerConfig::Stdio(server))]);
    let reply = soon(session.mcp_set_servers(servers)).await.unwrap();
    assert!(!format!("{reply:?}").contains("Spread syntax"), "{reply:?}");
}

#[tokio::test]
async fn point_13_what_the_cli_would_drop_silently_is_refused() {
    let rig = Rig::start().await;
    let good = AgentDefinition::new("runs things", "You run things.");
    let bad = AgentDefinition::new("", "You do nothing.");
    let error = rig
        .options()
        .agents("good", good.clone())
        .agents("bad", bad)
        .start()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("bad"), "{error}");
    let schema = JsonObject::encode(&json!({"type": "nonsense"})).unwrap();
    let error = rig
        .options()
        .output_format(OutputFormat::JsonSchema { schema })
        .start()
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("schema") || error.to_string().contains("output_format"),
        "{error}"
    );
    let session = rig.options().agents("good", good).start().await.unwrap();
    assert!(
        session
            .initialized()
            .agents
            .iter()
            .any(|agent| agent.name == "good")
    );
}

/// By the raw driver: the callback is accepted and never called.
#[tokio::test]
async fn point_14_there_is_no_session_start_for_callbacks() {
    let rig = Rig::start().await;
    let mut claude = raw(&rig);
    let hooks = json!({"SessionStart": [{"hookCallbackIds": ["a"]}], "SessionEnd": [{"hookCallbackIds": ["b"]}],
                       "Setup": [{"hookCallbackIds": ["c"]}]});
    let answer = claude
        .control(json!({"subtype": "initialize", "hooks": hooks}))
        .await
        .unwrap();
    assert_eq!(answer["subtype"], "success");
    claude.prompt("%say hi").await.unwrap();
    claude.result().await.unwrap();
    let (_, transcript) = claude.finish().await.unwrap();
    let entries = transcript.entries();
    let asked = entries.iter().filter(|entry| {
        entry.direction == Direction::Out && entry.message["request"]["subtype"] == "hook_callback"
    });
    assert_eq!(asked.count(), 0, "{transcript}");
}

#[tokio::test]
async fn point_15_undeclared_frames_are_known() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut frames = session.frames();
    turn(&session, "%say one").await;
    soon(session.rename_session("a better name")).await.unwrap();
    turn(&session, "%say two").await;
    let stats = session.stats();
    session.close().await.unwrap();
    let mut kinds = Vec::new();
    while let Some(frame) = soon(frames.next()).await {
        let frame = frame.unwrap();
        kinds.push(format!(
            "{}/{}",
            frame.kind(),
            frame.subtype().unwrap_or_default()
        ));
    }
    for kind in ["command_lifecycle/", "system/session_title_changed"] {
        assert!(kinds.iter().any(|seen| seen == kind), "{kind}: {kinds:?}");
    }
    assert_eq!((stats.unknown.len(), stats.misfits), (0, 0), "{stats:?}");
}

#[tokio::test]
async fn point_16_only_the_api_is_asked_and_home_is_where_we_say() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    turn(&session, "%say hi").await;
    session.close().await.unwrap();
    let others: Vec<_> = rig
        .api()
        .requests()
        .into_iter()
        .filter(|asked| asked.route() == Route::Other)
        .collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(rig.sandbox().config().join("projects").is_dir());
}
