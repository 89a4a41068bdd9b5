//! The rules of the bridge, both ways.

#![expect(deprecated, reason = "MCP 2025-11-25 has roots and logging")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::mcp::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, PromptMessage, Role,
    ServerCapabilities, ServerConfig, SetLevelRequestParams,
};
use outrigger::mcp::rmcp::service::RequestContext;
use outrigger::mcp::rmcp::{RoleServer, ServerHandler};
use outrigger::mcp::{ContentBlock, SdkMcpServer, Tool, ToolContext};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::cli::{Cli, call, request, said};
use super::{Nothing, Word, echo, parrot};

/// Counts how often it was dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A tool that never ends by itself.
fn hang(dropped: &Arc<AtomicUsize>) -> Tool {
    Tool::with_state("hang", "", Arc::clone(dropped), async |dropped, _: Nothing, _| {
        let _guard = Dropped(dropped);
        std::future::pending::<String>().await
    })
}

async fn started(server: SdkMcpServer) -> (outrigger::Session, Cli) {
    let (options, cli) = Cli::new();
    let (session, mut cli, _) = cli.start(options.sdk_mcp_server("s", server)).await;
    cli.connect("s").await;
    (session, cli)
}

/// Waits until something has come about.
async fn until(what: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if what() {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("it has not come about");
}

#[tokio::test(start_paused = true)]
async fn calls_run_at_once_and_one_that_never_ends_holds_up_nobody() {
    let dropped = Arc::default();
    let (_session, mut cli) = started(parrot().tool(hang(&dropped))).await;
    let mut hanging = Vec::new();
    for id in 100..200 {
        hanging.push(cli.post("s", call(id, "hang", json!({}))).await);
    }
    for id in 1..20 {
        let word = format!("word {id}");
        let result = cli.call("s", id, "echo", json!({"word": word})).await;
        assert_eq!(said(&result), (false, word));
    }
    assert!(!cli.is_answered(&hanging[0]).await);
    // An id that is open is refused, and the one that is open is not touched.
    let again = cli.ask("s", 100, "tools/list", Value::Null).await;
    assert_eq!(
        (&again["id"], &again["error"]["code"]),
        (&json!(100), &json!(-32600)),
        "{again}"
    );
    assert!(!cli.is_answered(&hanging[0]).await);
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_dropped_and_answered() {
    let dropped = Arc::default();
    let (session, mut cli) = started(parrot().tool(hang(&dropped))).await;
    let hanging = cli.post("s", call(5, "hang", json!({}))).await;
    let other = cli.post("s", call(6, "hang", json!({}))).await;
    assert!(!cli.is_answered(&hanging).await);
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 5, "reason": "AbortError: remote-cancel"}});
    let posted = cli.post("s", cancelled).await;
    assert_eq!(cli.answer(&posted).await["subtype"], "success");
    let answer = cli.answer(&hanging).await;
    assert_eq!(
        answer["response"]["mcp_response"]["error"]["code"], -32800,
        "{answer}"
    );
    until(|| dropped.load(Ordering::SeqCst) == 1).await;
    assert!(!cli.is_answered(&other).await);
    assert_eq!(session.stats().unanswered_by_us, 1);
    // The id is free again.
    assert_eq!(
        said(&cli.call("s", 5, "echo", json!({"word": "x"})).await),
        (false, "x".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_never_overtakes_its_call() {
    let dropped = Arc::default();
    let (session, mut cli) = started(parrot().tool(hang(&dropped))).await;
    for id in 10..60 {
        let posted = cli.post("s", call(id, "hang", json!({}))).await;
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        cli.post("s", cancelled).await;
        let answer = cli.answer(&posted).await;
        assert_eq!(
            answer["response"]["mcp_response"]["error"]["code"], -32800,
            "{answer}"
        );
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(session.stats().unanswered_by_us, 0);
    let (_, cli_has_heard) = (session, cli.is_answered("nothing").await);
    assert!(!cli_has_heard);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_request_is_withdrawn_is_dropped_and_not_answered() {
    let dropped = Arc::default();
    let (session, mut cli) = started(parrot().tool(hang(&dropped))).await;
    let hanging = cli.post("s", call(5, "hang", json!({}))).await;
    assert!(!cli.is_answered(&hanging).await);
    cli.send(json!({"type": "control_cancel_request", "request_id": hanging}))
        .await;
    until(|| dropped.load(Ordering::SeqCst) == 1).await;
    assert_eq!(session.stats().unanswered_by_us, 0);
    assert_eq!(
        said(&cli.call("s", 5, "echo", json!({"word": "x"})).await),
        (false, "x".into())
    );
    assert!(!cli.is_answered(&hanging).await);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_session_ends_the_calls() {
    let dropped = Arc::default();
    let (session, mut cli) = started(parrot().tool(hang(&dropped))).await;
    let hanging = cli.post("s", call(5, "hang", json!({}))).await;
    assert!(!cli.is_answered(&hanging).await);
    drop(cli);
    session.wait_ended().await;
    until(|| dropped.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_is_said_is_answered() {
    let (_session, mut cli) = started(parrot()).await;
    for notification in [
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
        json!({"jsonrpc": "2.0", "method": "notifications/of/another/world", "params": {"a": 1}}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}),
        json!({"jsonrpc": "2.0", "id": 99, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 99, "error": {"code": -32601, "message": "no"}}),
        json!({"jsonrpc": "2.0"}),
    ] {
        let posted = cli.post("s", notification).await;
        let answer = cli.answer(&posted).await;
        assert_eq!(answer["subtype"], "success", "{answer}");
    }
    for broken in [
        json!([]),
        json!("tools/call"),
        json!(null),
        json!({"jsonrpc": "2.0", "method": 5, "id": 1}),
        json!({"jsonrpc": "2.0", "method": "tools/list", "id": {"a": 1}}),
        json!({"jsonrpc": "2.0", "method": "tools/list", "id": 1.5}),
    ] {
        let posted = cli.post("s", broken.clone()).await;
        let answer = cli.answer(&posted).await;
        assert_eq!(
            answer["response"]["mcp_response"]["error"]["code"], -32600,
            "{broken}: {answer}"
        );
    }
    let unknown = cli.ask("s", 7, "no/such/method", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let no_tool = cli.ask("s", 8, "tools/call", json!({"name": "nothing"})).await;
    assert!(
        no_tool["error"]["message"].as_str().unwrap().contains("no tool"),
        "{no_tool}"
    );
    let posted = cli.post("nobody", request(1, "tools/list", Value::Null)).await;
    let answer = cli.answer(&posted).await;
    assert_eq!(
        (&answer["subtype"], &answer["error"]),
        (&json!("error"), &json!("SDK MCP server not found: nobody"))
    );
    // Ids may be strings.
    let pong = cli.ask("s", "seven", "ping", Value::Null).await;
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": "seven", "result": {}}));
}

#[tokio::test(start_paused = true)]
async fn odd_arguments_arrive_or_are_explained() {
    let (_session, mut cli) = started(parrot()).await;
    let result = cli.call("s", 1, "echo", json!({})).await;
    assert!(said(&result).1.contains("missing field `word`"), "{result}");
    let result = cli.call("s", 2, "echo", json!({"word": 5})).await;
    let (is_error, text) = said(&result);
    assert!(
        is_error && text.contains("do not fit the input schema of `echo`"),
        "{result}"
    );
    let result = cli.call("s", 3, "echo", json!("word")).await;
    assert!(said(&result).0, "{result}");
    // What no Rust string can hold is repaired rather than refused.
    let line = r#"{"type":"control_request","request_id":"odd","request":{"subtype":"mcp_message","server_name":"s","message":{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"word":"a\ud800b"}}}}}"#;
    cli.send_text(line).await;
    let answer = cli.answer("odd").await;
    let (is_error, text) = said(&answer["response"]["mcp_response"]["result"]);
    assert!(
        !is_error && text.starts_with('a') && text.ends_with('b'),
        "{answer}"
    );
    // Nested deeper than anybody can read.
    let deep = format!("{}1{}", "[".repeat(3000), "]".repeat(3000));
    let line = format!(
        r#"{{"type":"control_request","request_id":"deep","request":{{"subtype":"mcp_message","server_name":"s","message":{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"echo","arguments":{{"word":"w","deep":{deep}}}}}}}}}}}"#
    );
    cli.send_text(&line).await;
    let answer = cli.answer("deep").await;
    let (is_error, text) = said(&answer["response"]["mcp_response"]["result"]);
    assert!(is_error || text == "w", "{answer}");
    assert_eq!(
        said(&cli.call("s", 6, "echo", json!({"word": "still"})).await).1,
        "still"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_handshake_is_a_new_server_and_ends_the_old_one() {
    let (made, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, guard) = (Arc::clone(&made), Arc::clone(&dropped));
    let server = SdkMcpServer::from_handler(move || {
        count.fetch_add(1, Ordering::SeqCst);
        Full::new(&guard)
    });
    let (options, cli) = Cli::new();
    let options = options.sdk_mcp_server("s", server).sdk_mcp_manifests(false);
    let (_session, mut cli, _) = cli.start(options).await;
    // Before the first.
    let early = cli.ask("s", 1, "tools/list", Value::Null).await;
    assert!(
        early["error"]["message"].as_str().unwrap().contains("has ended"),
        "{early}"
    );
    cli.connect("s").await;
    let hanging = cli.post("s", call(1, "hang", json!({}))).await;
    assert!(!cli.is_answered(&hanging).await);
    cli.connect("s").await;
    let answer = cli.answer(&hanging).await;
    assert!(
        answer["response"]["mcp_response"]["error"].is_object(),
        "{answer}"
    );
    until(|| dropped.load(Ordering::SeqCst) == 1).await;
    // The id of the old one is free.
    assert_eq!(said(&cli.call("s", 1, "say", json!({})).await).1, "said");
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cant_be_made_fails_alone_and_may_be_tried_again() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let server = SdkMcpServer::from_handler(move || {
        assert!(count.fetch_add(1, Ordering::SeqCst) > 1, "not yet");
        Full::new(&Arc::default())
    });
    let (options, cli) = Cli::new();
    let options = options.sdk_mcp_server("s", server).sdk_mcp_server("p", parrot());
    let (_session, mut cli, initialize) = cli.start(options).await;
    assert_eq!(initialize["sdkMcpServerManifests"].as_object().unwrap().len(), 1);
    let failed = cli.connect("s").await;
    assert!(failed["error"].is_object(), "{failed}");
    assert_eq!(
        said(&cli.call("p", 1, "echo", json!({"word": "here"})).await).1,
        "here"
    );
    assert!(cli.connect("s").await["result"].is_object());
    assert_eq!(said(&cli.call("s", 1, "say", json!({})).await).1, "said");
}

/// A handler with all that MCP has.
struct Full {
    dropped: Arc<AtomicUsize>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Full {
    fn new(dropped: &Arc<AtomicUsize>) -> Self {
        Self {
            dropped: Arc::clone(dropped),
            told: Arc::default(),
        }
    }
}

impl ServerHandler for Full {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_prompts()
                .build(),
        )
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = match &*request.name {
            "say" => "said".to_owned(),
            "roots" => {
                let roots = context.peer.list_roots().await;
                match roots {
                    Ok(roots) => format!("{} roots", roots.roots.len()),
                    Err(error) => format!("refused: {error}"),
                }
            }
            "polite" => {
                // It is told first, and has time.
                context.ct.cancelled().await;
                sleep(Duration::from_secs(2)).await;
                self.dropped.fetch_add(10, Ordering::SeqCst);
                "too late".to_owned()
            }
            _ => {
                let _guard = Dropped(Arc::clone(&self.dropped));
                std::future::pending().await
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let message = PromptMessage::new_text(Role::User, format!("prompt {}", request.name));
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        panic!("a bug in the completion")
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.told.lock().unwrap().push("level".to_owned());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_completion_logging_and_a_panic_that_is_no_tools() {
    let (_session, mut cli) = started(SdkMcpServer::from_handler(|| Full::new(&Arc::default()))).await;
    let prompt = cli.ask("s", 1, "prompts/get", json!({"name": "p"})).await;
    assert_eq!(
        prompt["result"]["messages"][0]["content"]["text"], "prompt p",
        "{prompt}"
    );
    let level = cli
        .ask("s", 2, "logging/setLevel", json!({"level": "info"}))
        .await;
    assert_eq!(level["result"], json!({}), "{level}");
    let params = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "b"}});
    let panicked = cli.ask("s", 3, "completion/complete", params).await;
    assert!(
        panicked["error"]["message"]
            .as_str()
            .unwrap()
            .contains("a bug in the completion"),
        "{panicked}"
    );
    assert_eq!(said(&cli.call("s", 4, "say", json!({})).await).1, "said");
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_time_to_notice_that_it_is_cancelled() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let guard = Arc::clone(&dropped);
    let (_session, mut cli) = started(SdkMcpServer::from_handler(move || Full::new(&guard))).await;
    for (id, tool) in [(1, "polite"), (2, "hang")] {
        let posted = cli.post("s", call(id, tool, json!({}))).await;
        assert!(!cli.is_answered(&posted).await);
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        cli.post("s", cancelled).await;
        // The CLI does not wait for that.
        cli.answer(&posted).await;
    }
    sleep(Duration::from_secs(3)).await;
    assert_eq!(
        dropped.load(Ordering::SeqCst),
        10,
        "the polite one has ended, the other is waited for"
    );
    sleep(Duration::from_secs(3)).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 11);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_asks_goes_to_the_cli_and_the_answer_back() {
    let (_session, mut cli) = started(SdkMcpServer::from_handler(|| Full::new(&Arc::default()))).await;
    for refused in [false, true] {
        let posted = cli.post("s", call(1, "roots", json!({}))).await;
        let asked = cli.request("mcp_message").await;
        assert_eq!(asked["request"]["server_name"], "s");
        let message = &asked["request"]["message"];
        assert_eq!(message["method"], "roots/list", "{message}");
        cli.reply(&asked, json!({})).await;
        let answer = if refused {
            json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        } else {
            json!({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": [{"uri": "file:///a"}]}})
        };
        let answered = cli.post("s", answer).await;
        assert_eq!(cli.answer(&answered).await["subtype"], "success");
        let result = cli.answer(&posted).await;
        let (_, text) = said(&result["response"]["mcp_response"]["result"]);
        if refused {
            assert!(text.contains("Method not found"), "{text}");
        } else {
            assert_eq!(text, "1 roots");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_in_order_and_before_the_result() {
    let tool = Tool::new("work", "", async |_: Nothing, cx: ToolContext| {
        for step in 1..=3 {
            cx.progress(f64::from(step), Some(3.0), Some("working")).await;
        }
        "done"
    });
    let (_session, mut cli) = started(SdkMcpServer::new("s").tool(tool)).await;
    let params =
        json!({"name": "work", "arguments": {}, "_meta": {"progressToken": 9, "claudecode/toolUseId": "t"}});
    let posted = cli.post("s", request(1, "tools/call", params)).await;
    for step in 1..=3 {
        let told = cli.request("mcp_message").await;
        assert!(!cli.is_answered(&posted).await);
        assert_eq!(
            told["request"]["message"],
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                "progressToken": 9, "progress": f64::from(step), "total": 3.0, "message": "working"}})
        );
        cli.reply(&told, json!({})).await;
    }
    let result = cli.answer(&posted).await;
    assert_eq!(said(&result["response"]["mcp_response"]["result"]).1, "done");
    // Nobody wants to know: nothing is told.
    let result = cli.call("s", 2, "work", json!({})).await;
    assert_eq!(said(&result).1, "done");
}

#[tokio::test(start_paused = true)]
async fn the_context_of_a_call() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let token_fired = Arc::new(Notify::new());
    let (log, fired) = (Arc::clone(&seen), Arc::clone(&token_fired));
    let tool = Tool::new("look", "", move |_: Nothing, cx: ToolContext| {
        let (log, fired) = (Arc::clone(&log), Arc::clone(&fired));
        async move {
            let has_session = cx.session().is_some();
            log.lock().unwrap().push((
                cx.tool_use_id().map(str::to_owned),
                has_session,
                cx.meta("x").cloned(),
            ));
            let token = cx.cancelled().clone();
            tokio::spawn(async move {
                token.cancelled().await;
                fired.notify_one();
            });
            std::future::pending::<()>().await
        }
    });
    let (_session, mut cli) = started(SdkMcpServer::new("s").tool(tool)).await;
    let params = json!({"name": "look", "_meta": {"claudecode/toolUseId": "toolu_1", "x": 5}});
    let posted = cli.post("s", request(1, "tools/call", params)).await;
    assert!(!cli.is_answered(&posted).await);
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    cli.post("s", cancelled).await;
    tokio::time::timeout(Duration::from_secs(5), token_fired.notified())
        .await
        .unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [(Some("toolu_1".to_owned()), true, Some(json!(5)))]
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_of_tools_that_the_cli_refuses_is_told_again_and_later_ones_as_well() {
    let server = parrot();
    let tools = server.tools().unwrap();
    let (session, mut cli) = started(server).await;
    for name in ["one", "two"] {
        tools.add(Tool::new(name, "", async |_: Word, _| "")).unwrap();
        for refusals in [2, 1, 0] {
            let told = cli.request("mcp_message").await;
            let method = &told["request"]["message"]["method"];
            assert_eq!(method, "notifications/tools/list_changed");
            match refusals {
                0 => cli.reply(&told, json!({})).await,
                _ => cli.refuse(&told, "not now").await,
            }
        }
    }
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_tools_is_told_to_every_session() {
    let server = parrot();
    let tools = server.tools().unwrap();
    let (one, mut first) = started(server.clone()).await;
    let (two, mut second) = started(server).await;
    tools.add(Tool::new("new", "", async |_: Word, _| "")).unwrap();
    assert!(
        tools
            .add(Tool::new("no good", "", async |_: Word, _| ""))
            .is_err()
    );
    assert_eq!(tools.names(), ["echo", "new"]);
    for cli in [&mut first, &mut second] {
        let told = cli.request("mcp_message").await;
        assert_eq!(
            told["request"]["message"]["method"],
            "notifications/tools/list_changed"
        );
        cli.reply(&told, json!({})).await;
        let listed = cli.ask("s", 1, "tools/list", Value::Null).await;
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 2);
    }
    assert!(tools.remove("new") && !tools.remove("new"));
    let told = first.request("mcp_message").await;
    first.reply(&told, json!({})).await;
    let gone = first.ask("s", 2, "tools/call", json!({"name": "new"})).await;
    assert!(gone["error"].is_object(), "{gone}");
    // Another tool of the same name takes its place.
    tools.add(echo().title("Echo, again")).unwrap();
    assert_eq!(tools.names(), ["echo"]);
    drop((one, two));
}
