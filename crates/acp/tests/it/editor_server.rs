//! The editor's diagnostics and selection as tools: a client on the official crate, which serves what the documentation says.

use std::io;
use std::sync::{Arc, Mutex};

use agent_client_protocol as sdk;
use agent_client_protocol::v1::schema as acp;
use futures_util::{sink, stream};
use outrigger_acp::serve;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex, split};
use tokio_util::sync::CancellationToken;

use crate::real::Rig;

/// The tools, as the reference servers for Neovim and Emacs list them.
const TOOLS: &str = include_str!("../../../../clients/acp/editors/server/tools.json");

fn tools() -> Vec<Value> {
    serde_json::from_str(TOOLS).expect("JSON")
}

fn answer(request: &acp::MessageMcpRequest, called: &Mutex<Vec<String>>) -> Value {
    let request = serde_json::to_value(request).expect("JSON");
    assert_eq!(request["serverId"], "editor", "{request}");
    match request["method"].as_str().expect("a method") {
        "server/discover" => json!({"result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "editor", "version": "1"}, "ttlMs": 0, "cacheScope": "private",
        }}),
        "tools/list" => {
            json!({"result": {"resultType": "complete", "tools": tools(), "ttlMs": 0, "cacheScope": "private"}})
        }
        "tools/call" => {
            let name = request["params"]["name"].as_str().expect("a name").to_owned();
            let told = json!({"told": format!("of {name}")});
            called.lock().expect("no panic").push(name);
            json!({"result": {
                "resultType": "complete", "structuredContent": told,
                "content": [{"type": "text", "text": told.to_string()}],
            }})
        }
        other => json!({"error": {"code": -32601, "message": format!("there is no method {other}")}}),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_calls_the_tools_of_a_client_on_the_official_crate() {
    let rig = Rig::start().await;
    let (here, there) = duplex(64 * 1024);
    let (read, write) = split(there);
    let stop = CancellationToken::new();
    let agent = tokio::spawn(serve(rig.config.clone(), read, write, stop.clone()));
    let (read, write) = split(here);
    let outgoing = sink::unfold(write, |mut write, line: String| async move {
        write.write_all(format!("{line}\n").as_bytes()).await?;
        Ok::<_, io::Error>(write)
    });
    let incoming = stream::unfold(BufReader::new(read).lines(), |mut lines| async move {
        lines.next_line().await.transpose().map(|line| (line, lines))
    });
    let called = Arc::new(Mutex::new(Vec::new()));
    let (calls, cwd) = (Arc::clone(&called), rig.sandbox.project());
    sdk::Client
        .v1()
        .on_receive_request(
            async move |request: acp::MessageMcpRequest, responder, _| {
                let answer = answer(&request, &calls);
                responder.respond(serde_json::from_value(answer).expect("a response"))
            },
            sdk::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: acp::RequestPermissionRequest, responder, _| {
                let id = request.options[0].option_id.clone();
                let chosen = acp::SelectedPermissionOutcome::new(id);
                let outcome = acp::RequestPermissionOutcome::Selected(chosen);
                responder.respond(acp::RequestPermissionResponse::new(outcome))
            },
            sdk::on_receive_request!(),
        )
        .connect_with(
            sdk::Lines::new(Box::pin(outgoing), Box::pin(incoming)),
            async |agent| {
                let version = sdk::schema::ProtocolVersion::V1;
                let told = agent
                    .send_request(acp::InitializeRequest::new(version))
                    .block_task()
                    .await?;
                assert!(told.agent_capabilities.mcp_capabilities.acp);
                let server = json!({"type": "acp", "name": "editor", "serverId": "editor"});
                let server: acp::McpServer = serde_json::from_value(server).expect("a server");
                let new = acp::NewSessionRequest::new(cwd).mcp_servers(vec![server]);
                let opened = agent.send_request(new).block_task().await?;
                let lines = tools();
                let lines = lines.iter().map(|tool| {
                    let name = tool["name"].as_str().expect("a name");
                    format!("%tool mcp__editor__{name} {{}}\n")
                });
                let text = lines.collect::<String>() + "%say done";
                let prompt = acp::PromptRequest::new(opened.session_id, vec![acp::ContentBlock::from(text)]);
                let end = agent.send_request(prompt).block_task().await?;
                assert_eq!(end.stop_reason, acp::StopReason::EndTurn);
                Ok(())
            },
        )
        .await
        .expect("the connection lasts");
    stop.cancel();
    agent.await.expect("it does not panic").expect("it ends well");
    let names = ["get_diagnostics", "get_selection", "get_open_files"];
    assert_eq!(*called.lock().expect("no panic"), names);
    let requests = rig.api.message_requests();
    let sent = json!(requests.last().expect("a request").messages()).to_string();
    for name in names {
        assert!(sent.contains(&format!("of {name}")), "{sent}");
    }
}
