//! What tools give, and how they fail.

use std::sync::Arc;
use std::time::Duration;

use outrigger::mcp::rmcp::model::{Resource, ResourceContents};
use outrigger::mcp::{CallToolResult, ContentBlock, Json, SdkMcpServer, Tool};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Nothing;
use super::cli::{Cli, said};

#[derive(Serialize, schemars::JsonSchema)]
struct Point {
    x: i64,
}

/// An error with a cause, that shows it in the longer form.
struct Chain;

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if f.alternate() { "outer: inner" } else { "outer" })
    }
}

async fn result(tool: Tool) -> Value {
    let (options, cli) = Cli::new();
    let name = tool.name().to_owned();
    let (_session, mut cli, _) = cli
        .start(options.sdk_mcp_server("s", SdkMcpServer::new("s").tool(tool)))
        .await;
    cli.call("s", 1, &name, json!({})).await
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_output() {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}], "isError": false});
    assert_eq!(
        result(Tool::new("t", "", async |_: Nothing, _| "static")).await,
        text("static")
    );
    assert_eq!(
        result(Tool::new("t", "", async |_: Nothing, _| String::from("owned"))).await,
        text("owned")
    );
    assert_eq!(
        result(Tool::new("t", "", async |_: Nothing, _| {
            std::borrow::Cow::Borrowed("cow")
        }))
        .await,
        text("cow")
    );
    assert_eq!(
        result(Tool::new("t", "", async |_: Nothing, _| Ok::<_, String>("ok"))).await,
        text("ok")
    );
    assert_eq!(
        result(Tool::new("t", "", async |_: Nothing, _| ())).await,
        json!({"content": [], "isError": false})
    );
    let got = result(Tool::new("t", "", async |_: Nothing, _| Json(Point { x: 1 }))).await;
    assert_eq!(
        (&got["structuredContent"], said(&got)),
        (&json!({"x": 1}), (false, r#"{"x":1}"#.into()))
    );
    let got = result(Tool::new("t", "", async |_: Nothing, _| {
        vec![
            ContentBlock::text("a"),
            ContentBlock::image("aGk=", "image/png"),
            ContentBlock::audio("aGk=", "audio/wav"),
            ContentBlock::ResourceLink(Resource::new("file:///a", "a")),
            ContentBlock::resource(ResourceContents::text("inside", "file:///b")),
        ]
    }))
    .await;
    let kinds: Vec<_> = got["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].clone())
        .collect();
    assert_eq!(kinds, ["text", "image", "audio", "resource_link", "resource"]);
    let whole = async |_: Nothing, _| CallToolResult::structured_error(json!({"code": 5}));
    let got = result(Tool::new("t", "", whole)).await;
    assert_eq!(
        (&got["structuredContent"]["code"], &got["isError"]),
        (&json!(5), &json!(true))
    );
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_failure() {
    let error = async |_: Nothing, _| Err::<(), _>(Chain);
    assert_eq!(
        said(&result(Tool::new("t", "", error)).await),
        (true, "outer: inner".into())
    );
    let panics = async |_: Nothing, _| -> String { panic!("number {}", 5) };
    let got = said(&result(Tool::new("t", "", panics)).await);
    assert_eq!(
        got,
        (true, r#"the tool "t" failed: it panicked: number 5"#.into())
    );
    // Not only in its future.
    let at_once = Tool::new("t", "", |_: Nothing, _| -> std::future::Ready<String> {
        panic!("at once")
    });
    assert!(said(&result(at_once).await).1.contains("at once"));
    // What breaks the contract of structured content.
    #[derive(Serialize, schemars::JsonSchema)]
    #[serde(untagged)]
    #[schemars(extend("type" = "object"))]
    enum Liar {
        #[expect(dead_code, reason = "for the schema")]
        Object {
            x: i64,
        },
        Number(i64),
    }
    let got = said(&result(Tool::new("t", "", async |_: Nothing, _| Json(Liar::Number(1)))).await);
    assert!(got.0 && got.1.contains("no JSON object"), "{got:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_given_up_at_its_own_time_limit() {
    let held = Arc::new(());
    let watched = Arc::downgrade(&held);
    let held = std::sync::Mutex::new(Some(held));
    let tool = Tool::new("t", "", move |_: Nothing, _| {
        let held = held.lock().unwrap().take();
        async move {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            drop(held);
        }
    })
    .timeout(Duration::from_secs(20));
    let begun = Instant::now();
    let (is_error, text) = said(&result(tool).await);
    assert!(is_error && text.contains("after 20s"), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(21));
    assert!(watched.upgrade().is_none(), "its future is gone");
}

/// Here time itself is what is tested.
#[tokio::test]
async fn a_tool_that_blocks_its_thread_is_late_all_the_same() {
    fn block() -> &'static str {
        std::thread::sleep(Duration::from_millis(150));
        "late"
    }
    let typed = Tool::new("t", "", async |_: Nothing, _| block());
    let untyped = Tool::untyped("t", "", json!({"type": "object"}), |_, _| {
        std::future::ready(block())
    });
    for tool in [typed, untyped] {
        let (is_error, text) = said(&result(tool.timeout(Duration::from_millis(30))).await);
        assert!(is_error && text.contains("after 30ms"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_server_can_be_there_from_the_start() {
    let (options, cli) = Cli::new();
    let tool = |name: &str| Tool::new(name, "", async |_: Nothing, _| "");
    let server = SdkMcpServer::new("s")
        .always_load()
        .add_tools([tool("a"), tool("b").meta("anthropic/alwaysLoad", false)]);
    let (_session, _cli, initialize) = cli.start(options.sdk_mcp_server("s", server)).await;
    let tools = &initialize["sdkMcpServerManifests"]["s"]["toolsListResult"]["tools"];
    assert_eq!(tools[0]["_meta"]["anthropic/alwaysLoad"], true);
    assert_eq!(tools[1]["_meta"]["anthropic/alwaysLoad"], false);
}

#[tokio::test(start_paused = true)]
async fn a_result_ends_the_turn_unless_it_is_an_error() {
    let good = Tool::new("t", "", async |_: Nothing, _| "done").end_turn();
    assert_eq!(result(good).await["_meta"], json!({"claude/endTurn": true}));
    let bad = Tool::new("t", "", async |_: Nothing, _| Err::<(), _>("no")).end_turn();
    assert_eq!(result(bad).await.get("_meta"), None);
}
