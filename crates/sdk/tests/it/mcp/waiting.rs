//! Prompts wait for the servers that the caller passed, and nobody waits for ever.

use std::time::Duration;

use outrigger::mcp::{McpServers, McpStartup, SdkMcpServer};
use outrigger::permissions::PermissionDeny;
use outrigger::protocol::shared::{McpServerConfig, McpStdioServerConfig};
use outrigger::{Session, Verdict};
use outrigger_sim::peer::faulty::frames;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::cli::{Cli, said};
use super::{echo, parrot};

fn stdio() -> McpServerConfig {
    McpServerConfig::Stdio(McpStdioServerConfig::new("server", [""; 0]))
}

fn status(servers: &[(&str, &str)]) -> Value {
    let servers: Vec<Value> = servers
        .iter()
        .map(|(name, status)| json!({"name": name, "status": status}))
        .collect();
    json!({"mcpServers": servers})
}

/// Answers `mcp_status` until something else than it comes, or the session asks no more.
async fn answer(cli: &mut Cli, payload: Value) {
    let asked = cli.request("mcp_status").await;
    cli.reply(&asked, payload).await;
}

async fn waiting(wait: Option<Duration>) -> (Session, Cli) {
    let (options, cli) = Cli::new();
    let options = options.mcp_servers("slow", stdio()).wait_for_mcp(wait);
    let (session, cli, _) = cli.start(options).await;
    (session, cli)
}

async fn prompted(cli: &mut Cli) -> Value {
    cli.next(|line| line["type"] == "user").await
}

#[tokio::test(start_paused = true)]
async fn prompts_are_held_back_until_the_servers_have_connected() {
    let (session, mut cli) = waiting(Some(Duration::from_secs(30))).await;
    assert_eq!(session.mcp_startup(), McpStartup::Waiting);
    let _turn = session.prompt("first").await.unwrap();
    let _queued = session.queue("second").await.unwrap();
    let mut taken_back = session.prompt("third").await.unwrap();
    // Not known yet, then pending, then connected. Another server is nobody's concern.
    answer(&mut cli, status(&[])).await;
    answer(&mut cli, status(&[("slow", "pending")])).await;
    assert!(!cli.is_answered("nothing").await);
    assert!(cli.has_not_heard(|line| line["type"] == "user"), "it waits");
    taken_back.cancel().await.unwrap();
    assert_eq!(taken_back.outcome().await.unwrap().verdict(), &Verdict::Cancelled);
    answer(&mut cli, status(&[("slow", "connected"), ("other", "pending")])).await;
    assert_eq!(prompted(&mut cli).await["message"]["content"][0]["text"], "first");
    assert_eq!(session.mcp_startup(), McpStartup::Ready);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_the_prompt_that_waits() {
    let (session, mut cli) = waiting(Some(Duration::from_secs(30))).await;
    let mut first = session.prompt("first").await.unwrap();
    let _second = session.prompt("second").await.unwrap();
    let (interrupted, ()) = tokio::join!(session.interrupt(), async {
        let asked = cli.request("interrupt").await;
        cli.reply(&asked, json!({"still_queued": []})).await;
    });
    let [outcome] = &interrupted.unwrap().outcomes[..] else {
        panic!("the one of the first prompt");
    };
    assert_eq!(outcome.prompts(), [first.id().to_string()]);
    assert_eq!(outcome.verdict(), &Verdict::Cancelled);
    assert_eq!(first.outcome().await.unwrap().verdict(), &Verdict::Cancelled);
    answer(&mut cli, status(&[("slow", "connected")])).await;
    let sent = prompted(&mut cli).await;
    assert_eq!(sent["message"]["content"][0]["text"], "second");
}

/// The request is about a call that an earlier process left open.
#[tokio::test(start_paused = true)]
async fn a_denial_that_ends_the_turn_leaves_the_prompt_that_waits_alone() {
    let (options, cli) = Cli::new();
    let options = options
        .mcp_servers("slow", stdio())
        .wait_for_mcp(Duration::from_secs(30))
        .can_use_tool(async |_| PermissionDeny::new("no").interrupt());
    let (session, mut cli, _) = cli.start(options).await;
    let mut turn = session.prompt("first").await.unwrap();
    cli.send(frames::ask("q", "Bash")).await;
    assert_eq!(cli.answer("q").await["response"]["interrupt"], true);
    answer(&mut cli, status(&[("slow", "connected")])).await;
    let sent = prompted(&mut cli).await;
    let id = sent["uuid"].as_str().unwrap();
    assert_eq!(id, turn.id().to_string());
    // A turn that broke, of a CLI that gives no reason; it was not interrupted.
    cli.send(frames::ask("q2", "Bash")).await;
    assert_eq!(cli.answer("q2").await["response"]["interrupt"], true);
    cli.send(
        json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 1,
        "session_id": "s", "user_message_uuids": [id]}),
    )
    .await;
    let outcome = turn.outcome().await.unwrap();
    assert!(matches!(outcome.verdict(), Verdict::Failed(_)), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_in_time_and_says_who_was_missing() {
    let (session, mut cli) = waiting(Some(Duration::from_secs(3))).await;
    let begun = Instant::now();
    let _turn = session.prompt("first").await.unwrap();
    let prompt = loop {
        let line = cli
            .next(|line| line["type"] == "user" || line["request"]["subtype"] == "mcp_status")
            .await;
        if line["type"] == "user" {
            break line;
        }
        cli.reply(&line, status(&[("slow", "pending")])).await;
    };
    assert_eq!(prompt["message"]["content"][0]["text"], "first");
    assert!(
        begun.elapsed() <= Duration::from_millis(3100),
        "{:?}",
        begun.elapsed()
    );
    let McpStartup::NotReady(problem) = session.mcp_startup() else {
        panic!("{:?}", session.mcp_startup());
    };
    assert_eq!(
        (problem.pending.as_slice(), problem.failed.len()),
        (&["slow".to_owned()][..], 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_cli_that_does_not_say_holds_nobody_up_for_longer() {
    let (session, mut cli) = waiting(Some(Duration::from_secs(3))).await;
    let begun = Instant::now();
    let _turn = session.prompt("first").await.unwrap();
    prompted(&mut cli).await;
    assert!(
        begun.elapsed() <= Duration::from_millis(3100),
        "{:?}",
        begun.elapsed()
    );

    let (session, mut cli) = waiting(Some(Duration::from_secs(3))).await;
    let _turn = session.prompt("first").await.unwrap();
    let asked = cli.request("mcp_status").await;
    let response = json!({"subtype": "error", "request_id": asked["request_id"], "error": "no such thing"});
    cli.send(json!({"type": "control_response", "response": response}))
        .await;
    prompted(&mut cli).await;
    assert_eq!(session.mcp_startup(), McpStartup::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_failed_server_ends_the_wait() {
    let (session, mut cli) = waiting(Some(Duration::from_secs(30))).await;
    let begun = Instant::now();
    let _turn = session.prompt("first").await.unwrap();
    answer(&mut cli, status(&[("slow", "failed")])).await;
    prompted(&mut cli).await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    let McpStartup::NotReady(problem) = session.mcp_startup() else {
        panic!("{:?}", session.mcp_startup());
    };
    assert_eq!(problem.to_string(), "MCP servers are not ready: slow (failed)");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_who_need_not() {
    let (session, mut cli) = waiting(None).await;
    assert_eq!(session.mcp_startup(), McpStartup::NotAwaited);
    let _turn = session.prompt("first").await.unwrap();
    prompted(&mut cli).await;

    let (options, cli) = Cli::new();
    let (session, mut cli, _) = cli.start(options.sdk_mcp_server("s", parrot())).await;
    assert_eq!(session.mcp_startup(), McpStartup::NotAwaited);
    let _turn = session.prompt("first").await.unwrap();
    prompted(&mut cli).await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_session_ends_the_wait() {
    let (session, cli) = waiting(Some(Duration::from_secs(30))).await;
    let mut turn = session.prompt("first").await.unwrap();
    drop(cli);
    assert!(turn.outcome().await.unwrap_err().is_closed());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(session.mcp_startup(), McpStartup::Unknown);
}

#[tokio::test(start_paused = true)]
async fn mcp_ready_names_those_that_are_not() {
    let (options, cli) = Cli::new();
    let (session, mut cli, _) = cli.start(options).await;
    let asking = session.clone();
    let ready = tokio::spawn(async move { asking.mcp_ready(["a", "b"], Duration::from_secs(5)).await });
    answer(
        &mut cli,
        status(&[("a", "connected"), ("b", "pending"), ("c", "failed")]),
    )
    .await;
    answer(
        &mut cli,
        status(&[("a", "connected"), ("b", "connected"), ("c", "failed")]),
    )
    .await;
    let ready = ready.await.unwrap().unwrap();
    assert_eq!(
        ready
            .iter()
            .map(|status| status.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );

    let asking = session.clone();
    let all = tokio::spawn(async move {
        asking
            .mcp_ready(Vec::<String>::new(), Duration::from_secs(5))
            .await
    });
    let failed = json!({"mcpServers": [
        {"name": "a", "status": "connected"}, {"name": "b", "status": "needs-auth"},
        {"name": "c", "status": "failed", "error": "exit 1"}]});
    answer(&mut cli, failed).await;
    let error = all.await.unwrap().unwrap_err();
    let problem = error.as_mcp_not_ready().unwrap();
    assert_eq!(
        problem
            .failed
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect::<Vec<_>>(),
        [("b", "needs-auth"), ("c", "exit 1")]
    );

    let asking = session.clone();
    let unknown = tokio::spawn(async move { asking.mcp_ready(["x"], Duration::from_millis(300)).await });
    let begun = Instant::now();
    while !unknown.is_finished() {
        if let Ok(asked) = tokio::time::timeout(Duration::from_millis(100), cli.request("mcp_status")).await {
            cli.reply(&asked, status(&[])).await;
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(1));
    let error = unknown.await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "MCP servers are not ready: x (not connected after 300ms)"
    );
}

#[tokio::test(start_paused = true)]
async fn servers_are_set_while_the_session_runs() {
    let (options, cli) = Cli::new();
    let (session, mut cli, _) = cli.start(options.sdk_mcp_server("old", parrot())).await;
    assert_eq!(
        said(&cli.call("old", 1, "echo", json!({"word": "w"})).await).1,
        "w"
    );
    let new = SdkMcpServer::new("new")
        .tool(echo())
        .call_timeout(Duration::from_secs(9));
    let (setting, servers) = (
        session.clone(),
        McpServers::new().sdk("new", new.clone()).server("other", stdio()),
    );
    let set = tokio::spawn(async move { setting.mcp_set_servers(servers).await });
    let asked = cli.request("mcp_set_servers").await;
    assert_eq!(
        asked["request"]["servers"],
        json!({"new": {"type": "sdk", "name": "new", "timeout": 9000},
            "other": {"type": "stdio", "command": "server", "args": []}})
    );
    // Before the answer both are there.
    assert!(cli.connect("new").await["result"].is_object());
    assert_eq!(
        said(&cli.call("old", 2, "echo", json!({"word": "w"})).await).1,
        "w"
    );
    cli.reply(
        &asked,
        json!({"added": ["new", "other"], "removed": ["old"], "errors": {}}),
    )
    .await;
    set.await.unwrap().unwrap();
    assert_eq!(
        said(&cli.call("new", 3, "echo", json!({"word": "w"})).await).1,
        "w"
    );
    let posted = cli.post("old", super::cli::call(4, "echo", json!({}))).await;
    assert_eq!(
        cli.answer(&posted).await["error"],
        "SDK MCP server not found: old"
    );

    let last = parrot();
    // The same server again is left alone; another of its name, or one with other settings, goes through a release.
    let patient = new.clone().call_timeout(Duration::from_secs(8));
    for (server, releases) in [(new, false), (patient, true), (parrot(), true)] {
        let setting = session.clone();
        let set = tokio::spawn(async move {
            setting
                .mcp_set_servers(McpServers::new().sdk("new", server))
                .await
        });
        let mut asked = cli.request("mcp_set_servers").await;
        if releases {
            assert_eq!(asked["request"]["servers"], json!({}));
            cli.reply(&asked, json!({"added": [], "removed": ["new"], "errors": {}}))
                .await;
            asked = cli.request("mcp_set_servers").await;
        }
        assert_eq!(asked["request"]["servers"]["new"]["type"], "sdk");
        cli.reply(&asked, json!({"added": [], "removed": [], "errors": {}}))
            .await;
        let reply = set.await.unwrap().unwrap();
        assert_eq!(reply.removed.is_empty(), !releases);
    }
    let settings = {
        let mut settings = outrigger::protocol::outbound::SdkMcpServerSettings::default();
        settings.timeout = Some(4000);
        settings.connector_id = Some("c".to_owned());
        settings
    };
    let told = McpServers::new().sdk("x", parrot().settings(settings));
    let setting = session.clone();
    let set = tokio::spawn(async move { setting.mcp_set_servers(told).await });
    let asked = cli.request("mcp_set_servers").await;
    assert_eq!(
        asked["request"]["servers"]["x"],
        json!({"type": "sdk", "name": "x", "timeout": 4000, "connectorId": "c"})
    );
    cli.refuse(&asked, "enough").await;
    assert!(set.await.unwrap().is_err());
    // What failed is tried again as if for the first time: the CLI still has the server before.
    for fails in [true, false] {
        let (setting, server) = (session.clone(), last.clone());
        let servers = McpServers::new().sdk("new", server);
        let set = tokio::spawn(async move { setting.mcp_set_servers(servers).await });
        let asked = cli.request("mcp_set_servers").await;
        assert_eq!(asked["request"]["servers"], json!({}));
        if fails {
            cli.refuse(&asked, "not now").await;
            assert!(set.await.unwrap().unwrap_err().as_refusal().is_some());
        }
    }
    let bad = McpServers::new().sdk("a__b", parrot());
    assert!(session.mcp_set_servers(bad).await.unwrap_err().is_invalid());
}
