//! What the CLI is told of the servers before it asks.

use std::sync::Arc;
use std::time::Duration;

use outrigger::mcp::rmcp::model::{
    ErrorData, InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig,
};
use outrigger::mcp::rmcp::service::RequestContext;
use outrigger::mcp::rmcp::{RoleServer, ServerHandler};
use outrigger::mcp::{SdkMcpServer, Tool};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::cli::{Cli, ready};
use super::{Nothing, echo, parrot};

/// How a server behaves when it is asked what it has.
#[derive(Clone, Copy)]
enum Manner {
    SlowToGreet,
    SlowToList,
    InPages,
    Old,
    Refusing,
    Changing,
    Panicking,
}

struct Odd(Manner);

impl ServerHandler for Odd {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        match self.0 {
            Manner::SlowToGreet => sleep(Duration::from_secs(60)).await,
            Manner::Refusing => return Err(ErrorData::internal_error("not today", None)),
            Manner::Panicking => panic!("a bug in the greeting"),
            _ => {}
        }
        self.negotiate_initialize(&request)
    }

    fn supported_protocol_versions(&self) -> std::borrow::Cow<'static, [ProtocolVersion]> {
        match self.0 {
            Manner::Old => vec![ProtocolVersion::V_2025_03_26].into(),
            _ => ProtocolVersion::KNOWN_VERSIONS.into(),
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = ListToolsResult::default();
        match self.0 {
            Manner::SlowToList => sleep(Duration::from_secs(60)).await,
            Manner::InPages => tools.next_cursor = Some("more".into()),
            Manner::Changing => {
                let peer = context.peer;
                // It is held back until the CLI knows the server, so nobody may wait for it here.
                tokio::spawn(async move { peer.notify_tool_list_changed().await });
                sleep(Duration::from_millis(10)).await;
            }
            _ => {}
        }
        Ok(tools)
    }
}

async fn told(name: &str, server: SdkMcpServer) -> (Value, Duration) {
    let (options, cli) = Cli::new();
    let begun = Instant::now();
    let (_session, _cli, initialize) = cli.start(options.sdk_mcp_server(name, server)).await;
    (initialize, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn the_names_settings_and_manifests_go_into_initialize() {
    let (options, cli) = Cli::new();
    let plain = SdkMcpServer::new("p")
        .version("2.0")
        .instructions("Ask the parrot.")
        .tool(
            echo()
                .title("Echo")
                .read_only()
                .destructive(false)
                .idempotent()
                .open_world(false)
                .search_hint("birds")
                .always_load()
                .max_result_size_chars(9)
                .end_turn(),
        );
    let timed = SdkMcpServer::new("t").call_timeout(Duration::from_secs(5));
    let options = options
        .sdk_mcp_server("parrot", plain)
        .sdk_mcp_server("timed", timed);
    let (_session, _cli, initialize) = cli.start(options).await;
    assert_eq!(initialize["sdkMcpServers"], json!(["parrot", "timed"]));
    assert_eq!(
        initialize["sdkMcpServerConfigs"],
        json!({"timed": {"timeout": 5000}})
    );
    let manifest = &initialize["sdkMcpServerManifests"]["parrot"];
    assert_eq!(
        manifest["initializeResult"],
        json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "p", "version": "2.0"}, "instructions": "Ask the parrot.",
        })
    );
    assert_eq!(
        manifest["toolsListResult"],
        json!({"tools": [{
            "name": "echo", "title": "Echo", "description": "Says it back",
            "inputSchema": {
                "type": "object", "required": ["word"],
                "properties": {"word": {"type": "string", "description": "What to say back."}},
            },
            "annotations": {
                "title": "Echo", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
                "openWorldHint": false,
            },
            "_meta": {
                "anthropic/searchHint": "birds", "anthropic/alwaysLoad": true,
                "anthropic/maxResultSizeChars": 9,
            },
        }]})
    );
    assert_eq!(
        initialize["sdkMcpServerManifests"]["timed"]["toolsListResult"],
        json!({"tools": []})
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_ahead_when_it_is_not_wanted_or_there_is_nobody() {
    let (options, cli) = Cli::new();
    let options = options
        .sdk_mcp_server("parrot", parrot())
        .sdk_mcp_manifests(false);
    let (_session, _cli, initialize) = cli.start(options).await;
    assert_eq!(initialize["sdkMcpServers"], json!(["parrot"]));
    assert_eq!(initialize.get("sdkMcpServerManifests"), None);

    let (options, cli) = Cli::new();
    let (_session, _cli, initialize) = cli.start(options).await;
    assert_eq!(initialize.get("sdkMcpServers"), None);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_does_not_say_in_time_or_not_as_a_whole_is_left_to_the_cli() {
    // Whether it is greeted ahead.
    for (manner, greeted) in [
        (Manner::SlowToGreet, false),
        (Manner::Old, false),
        (Manner::Refusing, false),
        (Manner::Panicking, false),
        (Manner::SlowToList, true),
        (Manner::InPages, true),
        (Manner::Changing, true),
    ] {
        let server = SdkMcpServer::from_handler(move || Odd(manner));
        let (initialize, took) = told("odd", server).await;
        assert_eq!(initialize["sdkMcpServers"], json!(["odd"]));
        let manifest = &initialize["sdkMcpServerManifests"]["odd"];
        assert_eq!(manifest["initializeResult"].is_object(), greeted, "{manifest}");
        assert_eq!(manifest.get("toolsListResult"), None, "{manifest}");
        assert!(took <= Duration::from_millis(300), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_servers_together_have_one_deadline() {
    let (options, cli) = Cli::new();
    let mut options = options.sdk_mcp_server("parrot", parrot());
    for number in 0..20 {
        let slow = SdkMcpServer::from_handler(|| Odd(Manner::SlowToGreet));
        options = options.sdk_mcp_server(format!("slow{number}"), slow);
    }
    let begun = Instant::now();
    let (_session, _cli, initialize) = cli.start(options).await;
    assert!(
        begun.elapsed() <= Duration::from_millis(300),
        "{:?}",
        begun.elapsed()
    );
    let manifests = initialize["sdkMcpServerManifests"].as_object().unwrap();
    assert_eq!(manifests.keys().collect::<Vec<_>>(), ["parrot"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_told_ahead_goes_on_from_there() {
    let made = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let server = SdkMcpServer::from_handler(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Odd(Manner::InPages)
    });
    let (options, cli) = Cli::new();
    let options = options
        .sdk_mcp_server("odd", server)
        .sdk_mcp_server("parrot", parrot());
    let (_session, mut cli, _) = cli.start(options).await;
    // No handshake: the CLI has it from the manifest.
    let said = cli.call("parrot", 2, "echo", json!({"word": "hello"})).await;
    assert_eq!(said["content"][0]["text"], "hello");
    let listed = cli.ask("odd", 1, "tools/list", json!({"cursor": "more"})).await;
    assert!(listed["result"].is_object(), "{listed}");
    assert_eq!(made.load(std::sync::atomic::Ordering::SeqCst), 1);
    // A CLI that does not care for manifests makes its own, with a server of its own.
    assert!(cli.connect("odd").await["result"].is_object());
    assert_eq!(made.load(std::sync::atomic::Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_before_the_cli_knows_the_server_is_told_afterwards() {
    let server = SdkMcpServer::from_handler(|| Odd(Manner::Changing));
    let (options, mut cli) = Cli::new();
    let starting = tokio::spawn(options.sdk_mcp_server("odd", server).start());
    let initialize = cli.request("initialize").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!cli.is_answered("nothing").await);
    assert!(cli.has_not_heard(|line| line["request"]["subtype"] == "mcp_message"));
    cli.reply(&initialize, super::cli::ready()).await;
    let told = cli.request("mcp_message").await;
    assert_eq!(
        told["request"]["message"]["method"],
        "notifications/tools/list_changed"
    );
    assert_eq!(told["request"]["server_name"], "odd");
    cli.reply(&told, json!({})).await;
    starting.await.unwrap().unwrap();
}

#[test]
fn what_could_not_work_is_refused_before_anything_is_started() {
    let options = || Cli::new().0;
    let wrong = |options: outrigger::Options| options.check().expect_err("it is wrong").to_string();
    for name in ["", "two words", "a__b", "_a", "a_", "ä", &"x".repeat(65)] {
        let error = wrong(options().sdk_mcp_server(name, parrot()));
        assert!(error.contains("sdk_mcp_server"), "{error}");
    }
    let twice = options()
        .sdk_mcp_server("a", parrot())
        .sdk_mcp_server("a", parrot());
    assert!(wrong(twice).contains("two servers"));
    let remote = outrigger::protocol::shared::McpServerConfig::Stdio(
        outrigger::protocol::shared::McpStdioServerConfig::new("x", [""; 0]),
    );
    let both = options().sdk_mcp_server("a", parrot()).mcp_servers("a", remote);
    assert!(wrong(both).contains("different names"));
    let field = options()
        .sdk_mcp_server("a", parrot())
        .initialize_field("sdkMcpServers", outrigger::protocol::RawJson::null());
    assert!(wrong(field).contains("sdkMcpServers"));

    let tool = |name: &str| Tool::new(name, "", async |_: Nothing, _| "");
    let of = |tool: Tool| wrong(options().sdk_mcp_server("a", SdkMcpServer::new("a").tool(tool)));
    assert!(of(tool("")).contains("128"));
    assert!(of(tool("a b")).contains("128"));
    assert!(of(tool(&"x".repeat(129))).contains("128"));
    let text = Tool::new("text", "", async |_: String, _| "");
    assert!(of(text).contains("input is of type \"string\""));
    let list = Tool::new("list", "", async |_: Nothing, _| outrigger::mcp::Json(vec![1]));
    assert!(of(list).contains("output is of type \"array\""));
    assert!(of(Tool::untyped("u", "", json!(true), async |_, _| "")).contains("instead of a JSON object"));
    assert!(of(Tool::untyped("u", "", json!({}), async |_, _| "")).contains("has no type"));
    let same = SdkMcpServer::new("a").tool(tool("x")).tool(tool("x"));
    assert!(wrong(options().sdk_mcp_server("a", same)).contains("two of this name"));
    let alike = SdkMcpServer::new("a").tool(tool("x.y")).tool(tool("x_y"));
    assert!(wrong(options().sdk_mcp_server("a", alike)).contains("dots as underscores"));
    let short = SdkMcpServer::new("a").call_timeout(Duration::from_millis(999));
    assert!(wrong(options().sdk_mcp_server("a", short)).contains("call_timeout"));
    let handler = SdkMcpServer::from_handler(|| Odd(Manner::Old));
    assert!(handler.clone().tool(tool("x")).check().is_err());
    assert!(handler.clone().version("2").check().is_err());
    assert!(handler.check().is_ok());
}

/// What `reinitialize` says again is what the CLI was told first, except for what may have changed since.
#[tokio::test(start_paused = true)]
async fn servers_are_named_when_the_session_introduces_itself_again() {
    let (options, cli) = Cli::new();
    let parrot = parrot().call_timeout(Duration::from_secs(9));
    let options = options.sdk_mcp_server("s", parrot).title("first");
    let (session, mut cli, first) = cli.start(options).await;
    assert_eq!(first["title"], "first");
    let (again, second) = tokio::join!(session.reinitialize(), async {
        let asked = cli.request("initialize").await;
        cli.reply(&asked, ready()).await;
        asked["request"].clone()
    });
    again.unwrap();
    let mut expected = first;
    let fields = expected.as_object_mut().unwrap();
    fields.retain(|key, _| key != "title" && !key.starts_with("sdkMcpServerManifests"));
    assert_eq!(second, expected);
    assert_eq!(second["sdkMcpServers"], json!(["s"]));
    assert_eq!(second["sdkMcpServerConfigs"]["s"]["timeout"], 9000);
}
