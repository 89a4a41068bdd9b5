//! MCP servers in this program, as the real CLI drives them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::mcp::rmcp;
use outrigger::mcp::{ContentBlock, Json, McpServers, McpStartup, SdkMcpServer, Tool, ToolContext};
use outrigger::permissions::PermissionResult;
use outrigger::protocol::shared::{McpServerConfig, McpServerState, McpStdioServerConfig};
use outrigger::{Event, Session, ToolResult, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::rig::{PATIENCE, Rig, turn};

#[derive(Deserialize, schemars::JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    b: f64,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Sum {
    sum: f64,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn add() -> Tool {
    Tool::new("add", "Adds two numbers", async |input: Add, _| {
        format!("{}", input.a + input.b)
    })
    .read_only()
}

fn calc() -> SdkMcpServer {
    SdkMcpServer::new("calc").tool(add())
}

/// A server of tools that fail in every way, and give all that there is to give.
fn lab(log: &Arc<Mutex<Vec<String>>>) -> SdkMcpServer {
    let log = Arc::clone(log);
    SdkMcpServer::new("lab")
        .tool(add())
        .tool(Tool::new("structured", "", async |input: Add, _| {
            Json(Sum {
                sum: input.a + input.b,
            })
        }))
        .tool(Tool::new("image", "", async |_: Nothing, _| {
            let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
            vec![
                ContentBlock::text("a pixel"),
                ContentBlock::image(pixel, "image/png"),
            ]
        }))
        .tool(Tool::new("fails", "", async |_: Nothing, _| {
            Err::<String, _>(std::io::Error::other("the disk is full"))
        }))
        .tool(Tool::new("panics", "", async |_: Nothing, _| -> String {
            panic!("a bug in the tool")
        }))
        .tool(
            Tool::new("slow", "", async |_: Nothing, _| {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                "never"
            })
            .timeout(Duration::from_millis(100)),
        )
        .tool(Tool::new("context", "", move |_: Nothing, cx: ToolContext| {
            let log = Arc::clone(&log);
            async move {
                cx.progress(1.0, Some(2.0), Some("half")).await;
                let session = cx.session().expect("there is a session");
                let status = session.mcp_status().await.expect("it answers");
                log.lock().unwrap().push(cx.tool_use_id().unwrap_or("none").to_owned());
                format!("{} servers", status.mcp_servers.len())
            }
        }))
}

/// Runs a prompt, and returns the results of its tools.
async fn results(session: &Session, prompt: &str) -> Vec<ToolResult> {
    let mut turn = session.prompt(prompt).await.unwrap();
    let run = async {
        let mut results = Vec::new();
        while let Some(event) = turn.next().await {
            if let Event::ToolResult(result) = event.unwrap() {
                results.push(result);
            }
        }
        assert_eq!(turn.outcome().await.unwrap().verdict(), &Verdict::Completed);
        results
    };
    tokio::time::timeout(PATIENCE, run).await.expect("the turn ends")
}

/// What the model got of a result.
fn shown(result: &ToolResult) -> String {
    format!(
        "{} {}",
        if result.is_error { "error" } else { "ok" },
        serde_json::to_string(&result.content).unwrap()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_there_after_a_second_introduction() {
    let rig = Rig::start().await;
    let options = rig.options().sdk_mcp_server("calc", calc());
    let session = options
        .allowed_tools(["mcp__calc"])
        .title("first")
        .start()
        .await
        .unwrap();
    for _ in 0..2 {
        let got = results(&session, "%tool mcp__calc__add {\"a\":2,\"b\":3}\n%say done").await;
        assert!(shown(&got[0]).starts_with("ok") && shown(&got[0]).contains('5'));
        session.reinitialize().await.unwrap();
    }
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_there_in_the_first_turn_without_a_handshake() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .sdk_mcp_server("calc", calc())
        .allowed_tools(["mcp__calc"])
        .start()
        .await
        .unwrap();
    let mut frames = session.frames();
    let parked = format!("{:?}", session.initialized().sdk_mcp_manifests_parked);
    assert!(parked.contains("Parked"), "{parked}");
    let got = results(&session, "%tool mcp__calc__add {\"a\":2,\"b\":3}\n%say done").await;
    assert_eq!(got.len(), 1);
    assert!(
        shown(&got[0]).starts_with("ok") && shown(&got[0]).contains('5'),
        "{}",
        shown(&got[0])
    );
    let servers = session.init().unwrap().mcp_servers;
    assert_eq!((servers.len(), servers[0].name.as_str()), (1, "calc"));
    session.close().await.unwrap();
    let mut methods = Vec::new();
    while let Some(Ok(frame)) = frames.next().await {
        let line: serde_json::Value = serde_json::from_str(&frame.text()).unwrap();
        if line["request"]["subtype"] == "mcp_message" {
            methods.push(line["request"]["message"]["method"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(methods, ["tools/call"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_tools_give_and_how_they_fail() {
    let rig = Rig::start().await;
    let log = Arc::default();
    let session = rig
        .options()
        .sdk_mcp_server("lab", lab(&log))
        .sdk_mcp_manifests(false)
        .allowed_tools(["mcp__lab"])
        .start()
        .await
        .unwrap();
    let of = async |tool: &str, input: &str| {
        let got = results(&session, &format!("%tool mcp__lab__{tool} {input}\n%say done")).await;
        assert_eq!(got.len(), 1);
        shown(&got[0])
    };
    let got = of("structured", r#"{"a":1,"b":2}"#).await;
    assert!(got.starts_with("ok") && got.contains("sum"), "{got}");
    let got = of("image", "{}").await;
    assert!(got.starts_with("ok") && got.contains("image"), "{got}");
    let got = of("fails", "{}").await;
    assert!(
        got.starts_with("error") && got.contains("the disk is full"),
        "{got}"
    );
    let got = of("panics", "{}").await;
    assert!(
        got.starts_with("error") && got.contains("a bug in the tool"),
        "{got}"
    );
    let got = of("slow", "{}").await;
    assert!(got.starts_with("error") && got.contains("100ms"), "{got}");
    let got = of("add", r#"{"a":"two"}"#).await;
    assert!(got.starts_with("error") && got.contains("do not fit"), "{got}");
    let got = of("context", "{}").await;
    assert!(got.starts_with("ok") && got.contains("1 servers"), "{got}");
    assert!(log.lock().unwrap()[0].starts_with("toolu_"), "{log:?}");
    // None of it has done any harm.
    let got = of("add", r#"{"a":2,"b":3}"#).await;
    assert!(got.starts_with("ok") && got.contains('5'), "{got}");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_tools_run_in_parallel() {
    let rig = Rig::start().await;
    let barrier = Arc::new(tokio::sync::Barrier::new(10));
    let tool = Tool::with_state(
        "meet",
        "",
        barrier,
        async |barrier: Arc<tokio::sync::Barrier>, _: Nothing, _| {
            barrier.wait().await;
            "met"
        },
    );
    let session = rig
        .options()
        .sdk_mcp_server("pool", SdkMcpServer::new("pool").tool(tool.read_only()))
        .allowed_tools(["mcp__pool"])
        .start()
        .await
        .unwrap();
    let mut prompt = "%tool mcp__pool__meet {}\n".to_owned();
    prompt.push_str(&"+%tool mcp__pool__meet {}\n".repeat(9).replace("+%", "%+"));
    let got = results(&session, &format!("{prompt}%say done")).await;
    assert_eq!(got.len(), 10);
    assert!(
        got.iter()
            .all(|result| !result.is_error && shown(result).contains("met"))
    );
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_permission_handler_decides_about_tools_and_interrupts_end_them() {
    let rig = Rig::start().await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
    let hang = Tool::with_state("hang", "", Arc::clone(&dropped), move |dropped, _: Nothing, _| {
        let begun = begun.clone();
        async move {
            let _guard = Dropped(dropped);
            begun.send(()).await.unwrap();
            std::future::pending::<String>().await
        }
    });
    let seen = Arc::clone(&asked);
    let session = rig
        .options()
        .sdk_mcp_server("calc", calc().tool(hang))
        .can_use_tool(move |request| {
            seen.lock().unwrap().push(request.tool_name.clone());
            async move { PermissionResult::allow() }
        })
        .start()
        .await
        .unwrap();
    let mut running = session
        .prompt("%tool mcp__calc__hang {}\n%say done")
        .await
        .unwrap();
    tokio::time::timeout(PATIENCE, has_begun.recv())
        .await
        .unwrap()
        .unwrap();
    session.interrupt().await.unwrap();
    assert_eq!(running.outcome().await.unwrap().verdict(), &Verdict::Interrupted);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!(*asked.lock().unwrap(), ["mcp__calc__hang"]);
    // The server has not suffered.
    let got = results(&session, "%tool mcp__calc__add {\"a\":2,\"b\":3}\n%say done").await;
    assert!(shown(&got[0]).contains('5'), "{}", shown(&got[0]));
    assert_eq!(session.stats().unanswered_by_us, 0);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_come_and_go_at_run_time() {
    let rig = Rig::start().await;
    let server = calc();
    let tools = server.tools().unwrap();
    let session = rig
        .options()
        .sdk_mcp_server("calc", server)
        .allowed_tools(["mcp__calc"])
        .start()
        .await
        .unwrap();
    results(&session, "%say first").await;
    tools
        .add(Tool::new("sub", "", async |input: Add, _| {
            format!("{}", input.a - input.b)
        }))
        .unwrap();
    until(&session, "mcp__calc__sub", true).await;
    let got = results(&session, "%tool mcp__calc__sub {\"a\":7,\"b\":3}\n%say done").await;
    assert!(
        shown(&got[0]).starts_with("ok") && shown(&got[0]).contains('4'),
        "{}",
        shown(&got[0])
    );
    assert!(tools.remove("sub"));
    until(&session, "mcp__calc__sub", false).await;
    session.close().await.unwrap();
}

/// Waits until the CLI has a tool, or has it no longer.
async fn until(session: &Session, tool: &str, has: bool) {
    let (_, server) = (tool, "calc");
    let wait = async {
        loop {
            let status = session.mcp_status().await.unwrap();
            let tools = status.mcp_servers.iter().find(|status| status.name == server);
            let tools = tools.and_then(|status| status.tools.as_ref());
            let found = tools.is_some_and(|tools| {
                tools
                    .iter()
                    .any(|known| format!("mcp__{server}__{}", known.name) == tool)
            });
            if found == has {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .expect("the CLI lists again");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_recipe_serves_two_sessions_at_once() {
    let rig = Rig::start().await;
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let server = SdkMcpServer::from_handler(move || {
        count.fetch_add(1, Ordering::SeqCst);
        Library
    });
    let options = rig
        .options()
        .sdk_mcp_server("library", server)
        .allowed_tools(["mcp__library"]);
    let (one, two) = tokio::join!(options.clone().start(), options.start());
    let (one, two) = (one.unwrap(), two.unwrap());
    let prompt = "%tool mcp__library__shelve {\"book\":\"Moby Dick\"}\n%say done";
    let (first, second) = tokio::join!(results(&one, prompt), results(&two, prompt));
    for got in [first, second] {
        assert!(shown(&got[0]).contains("shelved Moby Dick"), "{}", shown(&got[0]));
    }
    assert_eq!(made.load(Ordering::SeqCst), 2);
    one.close().await.unwrap();
    two.close().await.unwrap();
}

/// A server written with rmcp: tools and resources.
struct Library;

impl rmcp::ServerHandler for Library {
    fn get_info(&self) -> rmcp::model::ServerConfig {
        rmcp::model::ServerConfig::new(
            rmcp::model::ServerCapabilities::builder()
                .enable_tools()
                .enable_resources()
                .build(),
        )
    }

    async fn list_tools(
        &self,
        request: Option<rmcp::model::PaginatedRequestParams>,
        _: rmcp::service::RequestContext<rmcp::RoleServer>,
    ) -> Result<rmcp::model::ListToolsResult, rmcp::ErrorData> {
        let schema = json!({"type": "object", "properties": {"book": {"type": "string"}}});
        let schema = Arc::new(schema.as_object().unwrap().clone());
        let tool = |name: &'static str| rmcp::model::Tool::new(name, "", Arc::clone(&schema));
        // In two pages.
        let mut page = rmcp::model::ListToolsResult::default();
        match request.and_then(|request| request.cursor) {
            None => {
                page.tools = vec![tool("lend")];
                page.next_cursor = Some("more".into());
            }
            Some(_) => page.tools = vec![tool("shelve")],
        }
        Ok(page)
    }

    async fn call_tool(
        &self,
        request: rmcp::model::CallToolRequestParams,
        context: rmcp::service::RequestContext<rmcp::RoleServer>,
    ) -> Result<rmcp::model::CallToolResponse, rmcp::ErrorData> {
        assert!(context.extensions.get::<outrigger::Context>().is_some());
        let book = request.arguments.unwrap_or_default();
        let text = format!("shelved {}", book["book"].as_str().unwrap_or_default());
        Ok(rmcp::model::CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn list_resources(
        &self,
        _: Option<rmcp::model::PaginatedRequestParams>,
        _: rmcp::service::RequestContext<rmcp::RoleServer>,
    ) -> Result<rmcp::model::ListResourcesResult, rmcp::ErrorData> {
        let resource = |uri: &str| rmcp::model::Resource::new(uri, "catalogue");
        let resources = vec![resource("ui://catalogue"), resource("book://moby-dick")];
        Ok(rmcp::model::ListResourcesResult::with_all_items(resources))
    }

    async fn read_resource(
        &self,
        request: rmcp::model::ReadResourceRequestParams,
        _: rmcp::service::RequestContext<rmcp::RoleServer>,
    ) -> Result<rmcp::model::ReadResourceResponse, rmcp::ErrorData> {
        let contents = rmcp::model::ResourceContents::text("Moby Dick", request.uri);
        Ok(rmcp::model::ReadResourceResult::new(vec![contents]).into())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_resources_of_a_handler() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .sdk_mcp_server("library", SdkMcpServer::from_handler(|| Library))
        .allowed_tools(["mcp__library"])
        .start()
        .await
        .unwrap();
    let status = session.mcp_ready(["library"], PATIENCE).await.unwrap();
    let tools = status[0].tools.as_ref().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["lend", "shelve"], "both pages");
    let got = results(
        &session,
        "%tool ListMcpResourcesTool {\"server\":\"library\"}\n%say done",
    )
    .await;
    assert!(shown(&got[0]).contains("book://moby-dick"), "{}", shown(&got[0]));
    let read = "%tool ReadMcpResourceTool {\"server\":\"library\",\"uri\":\"book://moby-dick\"}\n%say done";
    let got = results(&session, read).await;
    assert!(shown(&got[0]).contains("Moby Dick"), "{}", shown(&got[0]));
    // What is here need not be asked for by way of the CLI.
    let read = session
        .mcp_read_resource("library", "ui://catalogue")
        .await
        .unwrap_err();
    assert!(read.as_refusal().is_some(), "{read}");
    let called = session
        .mcp_call("mcp__library__shelve", json!({"book": "x"}).try_into().unwrap())
        .await;
    assert!(called.unwrap_err().as_refusal().is_some());
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_from_a_subagent() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .sdk_mcp_server("calc", calc())
        .allowed_tools(["mcp__calc", "Agent"])
        .start()
        .await
        .unwrap();
    let inner = "%tool mcp__calc__add {\\\"a\\\":2,\\\"b\\\":3}\\n%say inner done";
    let prompt = format!(
        "%tool Agent {{\"description\":\"adds\",\"prompt\":\"{inner}\",\"subagent_type\":\"general-purpose\",\"run_in_background\":false}}\n%say outer done"
    );
    let (seen, outcome) = turn(&session, &prompt).await;
    assert_eq!(outcome.verdict(), &Verdict::Completed);
    assert!(seen.contains(&"sub use mcp__calc__add".to_owned()), "{seen:?}");
    assert!(seen.contains(&"sub result ok".to_owned()), "{seen:?}");
    session.close().await.unwrap();
}

/// A stdio server in shell script that takes its time to begin.
fn slow_server(rig: &Rig, delay: &str) -> McpServerConfig {
    let script = format!(
        r#"sleep {delay}
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"slow","version":"1"}}}}}}';;
    *'"tools/list"'*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"tools":[{{"name":"late","inputSchema":{{"type":"object"}}}}]}}}}';;
    *'"tools/call"'*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"content":[{{"type":"text","text":"better than never"}}]}}}}';;
    *) [ -n "$id" ] && echo '{{"jsonrpc":"2.0","id":'$id',"error":{{"code":-32601,"message":"no"}}}}';;
  esac
done
"#
    );
    let path = rig.sandbox().write(format!("slow-{delay}.sh"), script).unwrap();
    McpServerConfig::Stdio(McpStdioServerConfig::new("sh", [path.to_str().unwrap()]))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_prompt_waits_for_a_slow_server() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .mcp_servers("slow", slow_server(&rig, "4"))
        .sdk_mcp_server("calc", calc())
        .allowed_tools(["mcp__slow", "mcp__calc"])
        .start()
        .await
        .unwrap();
    assert_eq!(session.mcp_startup(), McpStartup::Waiting);
    let early = session
        .mcp_ready(["slow", "calc"], Duration::from_millis(10))
        .await
        .unwrap_err();
    let problem = early.as_mcp_not_ready().unwrap();
    assert!(problem.pending.contains(&"slow".to_owned()), "{early}");
    let got = results(&session, "%tool mcp__slow__late {}\n%say done").await;
    assert!(shown(&got[0]).contains("better than never"), "{}", shown(&got[0]));
    assert_eq!(session.mcp_startup(), McpStartup::Ready);
    let ready = session.mcp_ready(Vec::<String>::new(), PATIENCE).await.unwrap();
    assert_eq!(ready.len(), 2);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_ready_is_named_and_holds_nobody_up() {
    let rig = Rig::start().await;
    let broken = McpServerConfig::Stdio(McpStdioServerConfig::new("/no/such/program", [""; 0]));
    let session = rig
        .options()
        .mcp_servers("slow", slow_server(&rig, "3600"))
        .mcp_servers("broken", broken)
        .wait_for_mcp(Duration::from_millis(500))
        .start()
        .await
        .unwrap();
    let (seen, _) = turn(&session, "%say on we go").await;
    assert_eq!(seen, ["text on we go"]);
    let McpStartup::NotReady(problem) = session.mcp_startup() else {
        panic!("{:?}", session.mcp_startup());
    };
    assert_eq!(problem.pending, ["slow"]);
    assert!(problem.failed.contains_key("broken"), "{problem}");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_set_at_run_time() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .sdk_mcp_server("calc", calc())
        .allowed_tools(["mcp__calc", "mcp__other", "mcp__slow"])
        .start()
        .await
        .unwrap();
    results(&session, "%tool mcp__calc__add {\"a\":2,\"b\":3}\n%say done").await;
    let other = SdkMcpServer::new("other").tool(Tool::new("hello", "", async |_: Nothing, _| "hello"));
    let servers = McpServers::new()
        .sdk("other", other.clone())
        .server("slow", slow_server(&rig, "0"));
    let reply = session.mcp_set_servers(servers).await.unwrap();
    assert!(reply.errors.is_empty(), "{reply:?}");
    session.mcp_ready(["other", "slow"], PATIENCE).await.unwrap();
    let got = results(&session, "%tool mcp__other__hello {}\n%say done").await;
    assert!(shown(&got[0]).contains("hello"), "{}", shown(&got[0]));
    let status = session.mcp_status().await.unwrap();
    let names: Vec<_> = status
        .mcp_servers
        .iter()
        .map(|status| status.name.as_str())
        .collect();
    assert!(!names.contains(&"calc"), "{names:?}");

    // Another one takes its place.
    let newer = SdkMcpServer::new("other").tool(Tool::new("hello", "", async |_: Nothing, _| "hello again"));
    session
        .mcp_set_servers(McpServers::new().sdk("other", newer))
        .await
        .unwrap();
    session.mcp_ready(["other"], PATIENCE).await.unwrap();
    let got = results(&session, "%tool mcp__other__hello {}\n%say done").await;
    assert!(shown(&got[0]).contains("hello again"), "{}", shown(&got[0]));

    session.mcp_toggle("other", false).await.unwrap();
    let off = session.mcp_ready(["other"], PATIENCE).await.unwrap_err();
    assert_eq!(
        off.as_mcp_not_ready().unwrap().failed["other"],
        McpServerState::Disabled.as_str()
    );
    session.mcp_toggle("other", true).await.unwrap();
    session.mcp_ready(["other"], PATIENCE).await.unwrap();
    // The CLI does not connect them anew on demand; turning them off and on does.
    assert!(
        session
            .mcp_reconnect("other")
            .await
            .unwrap_err()
            .as_refusal()
            .is_some()
    );
    let got = results(&session, "%tool mcp__other__hello {}\n%say done").await;
    assert!(shown(&got[0]).contains("hello again"), "{}", shown(&got[0]));

    session.mcp_set_servers(McpServers::new()).await.unwrap();
    let status = session.mcp_status().await.unwrap();
    assert!(
        !status.mcp_servers.iter().any(|status| status.name == "other"),
        "{status:?}"
    );

    let twice = McpServers::new()
        .sdk("x", calc())
        .server("x", slow_server(&rig, "0"));
    assert!(session.mcp_set_servers(twice).await.unwrap_err().is_invalid());
    let _: McpServers = BTreeMap::<String, McpServerConfig>::new().into();
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_in_this_program_is_waited_for_by_the_cli() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .sdk_mcp_server("library", SdkMcpServer::from_handler(|| SlowLibrary))
        .allowed_tools(["mcp__library"])
        .start()
        .await
        .unwrap();
    let got = results(
        &session,
        "%tool mcp__library__shelve {\"book\":\"Moby Dick\"}\n%say done",
    )
    .await;
    assert!(shown(&got[0]).contains("shelved Moby Dick"), "{}", shown(&got[0]));
    session.close().await.unwrap();
}

/// Takes its time to say what it has.
struct SlowLibrary;

impl rmcp::ServerHandler for SlowLibrary {
    fn get_info(&self) -> rmcp::model::ServerConfig {
        Library.get_info()
    }

    async fn list_tools(
        &self,
        request: Option<rmcp::model::PaginatedRequestParams>,
        context: rmcp::service::RequestContext<rmcp::RoleServer>,
    ) -> Result<rmcp::model::ListToolsResult, rmcp::ErrorData> {
        tokio::time::sleep(Duration::from_secs(4)).await;
        Library.list_tools(request, context).await
    }

    async fn call_tool(
        &self,
        request: rmcp::model::CallToolRequestParams,
        context: rmcp::service::RequestContext<rmcp::RoleServer>,
    ) -> Result<rmcp::model::CallToolResponse, rmcp::ErrorData> {
        Library.call_tool(request, context).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cli_does_with_hints_and_limits() {
    let rig = Rig::start().await;
    let (begun, mut cancelled) = tokio::sync::mpsc::channel(1);
    let stuck = Tool::new("stuck", "", move |_: Nothing, cx: ToolContext| {
        let begun = begun.clone();
        async move {
            let token = cx.cancelled().clone();
            tokio::spawn(async move {
                token.cancelled().await;
                begun.send(()).await
            });
            std::future::pending::<String>().await
        }
    });
    let long = |name: &str| Tool::new(name, "", async |_: Nothing, _| "word ".repeat(24_000));
    let server = SdkMcpServer::new("lab")
        .tool(stuck)
        .tool(long("long"))
        .tool(long("whole").max_result_size_chars(200_000))
        .tool(Tool::new("last", "", async |_: Nothing, _| "that is all").end_turn())
        .call_timeout(Duration::from_secs(2));
    let session = rig
        .options()
        .sdk_mcp_server("lab", server)
        .allowed_tools(["mcp__lab"])
        .start()
        .await
        .unwrap();
    let got = results(&session, "%tool mcp__lab__stuck {}\n%say done").await;
    assert!(got[0].is_error, "{}", shown(&got[0]));
    tokio::time::timeout(PATIENCE, cancelled.recv())
        .await
        .unwrap()
        .unwrap();
    let clipped = results(&session, "%tool mcp__lab__long {}\n%say done").await;
    let whole = results(&session, "%tool mcp__lab__whole {}\n%say done").await;
    let (clipped, whole) = (shown(&clipped[0]).len(), shown(&whole[0]).len());
    assert!(clipped < 20_000 && whole >= 120_000, "{clipped} {whole}");
    let (seen, outcome) = turn(&session, "%tool mcp__lab__last {}\n%say not said").await;
    assert_eq!(outcome.verdict(), &Verdict::Completed);
    assert!(!seen.contains(&"text not said".to_owned()), "{seen:?}");
    session.close().await.unwrap();
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_spare_has_servers_from_its_start_and_gets_more_by_its_claim() {
    let rig = Rig::start().await;
    let spare = rig
        .options()
        .sdk_mcp_server("calc", calc())
        .allowed_tools(["mcp__calc", "mcp__more"])
        .prewarm()
        .await
        .unwrap();
    let claim = outrigger::Claim::new(rig.sandbox().project());
    let taken = spare
        .claim(claim.clone().sdk_mcp_server("calc", calc()))
        .await
        .unwrap_err();
    assert!(taken.error.is_invalid(), "{taken}");
    let more = SdkMcpServer::new("more").tool(Tool::new("hello", "", async |_: Nothing, _| "hello"));
    let session = taken
        .spare
        .unwrap()
        .claim(claim.sdk_mcp_server("more", more))
        .await
        .unwrap();
    let got = results(
        &session,
        "%tool mcp__calc__add {\"a\":2,\"b\":3}\n%tool mcp__more__hello {}\n%say done",
    )
    .await;
    assert!(shown(&got[0]).contains('5'), "{}", shown(&got[0]));
    assert!(shown(&got[1]).contains("hello"), "{}", shown(&got[1]));
    session.close().await.unwrap();
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_revived_session_has_its_servers_again() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .sdk_mcp_server("calc", calc())
        .allowed_tools(["mcp__calc", "mcp__more"])
        .start()
        .await
        .unwrap();
    let add = "%tool mcp__calc__add {\"a\":2,\"b\":3}\n%say done";
    results(&session, add).await;
    let more = SdkMcpServer::new("more").tool(Tool::new("hello", "", async |_: Nothing, _| "hello"));
    let both = McpServers::new().sdk("calc", calc()).sdk("more", more);
    session.mcp_set_servers(both).await.unwrap();
    session.mcp_ready(["calc", "more"], PATIENCE).await.unwrap();
    let handle = session.clone();
    session.kill().await.unwrap();
    let revived = handle.revive().await.unwrap();
    assert!(
        revived.lost.mcp_servers.is_empty(),
        "{:?}",
        revived.lost.mcp_servers
    );
    let session = revived.session;
    session.mcp_ready(["calc", "more"], PATIENCE).await.unwrap();
    let got = results(&session, &add.replace("%say", "%tool mcp__more__hello {}\n%say")).await;
    assert!(shown(&got[0]).contains('5'), "{}", shown(&got[0]));
    assert!(shown(&got[1]).contains("hello"), "{}", shown(&got[1]));
    session.close().await.unwrap();
}
