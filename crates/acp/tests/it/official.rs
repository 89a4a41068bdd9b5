//! A client on the official crate, with its types, which does what only this agent has: it reviews edits, serves tools, loads a part of a
//! session, sees limits, and has the sessions of subagents.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol as sdk;
use agent_client_protocol::v1::schema as acp;
use futures_util::{sink, stream};
use outrigger_acp::{IdleCompaction, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex, split};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::editor::PATIENCE;
use crate::limits::with_a_limit;
use crate::real::Rig;
use crate::subagents::{agent, waiting, waiting_agent};

type Agent = sdk::v1::ConnectionTo<sdk::Agent>;

/// The tools, as the reference servers for Neovim and Emacs list them.
const TOOLS: &str = include_str!("../../../../clients/acp/editors/server/tools.json");

fn tools() -> Vec<Value> {
    serde_json::from_str(TOOLS).expect("JSON")
}

/// The user in front of the client: allows each call once, and rejects edits of files that are named so.
#[derive(Default)]
struct Client {
    updates: watch::Sender<Vec<acp::SessionNotification>>,
    reviewed: Mutex<Vec<String>>,
    called: Mutex<Vec<String>>,
}

impl Client {
    /// Runs the client against an agent for as long as `talk` takes.
    async fn connect<T>(
        self: &Arc<Self>,
        rig: &Rig,
        talk: impl AsyncFnOnce(Agent) -> Result<T, sdk::Error>,
    ) -> T {
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
        let [updated, reviewer, server] = [(); 3].map(|()| Arc::clone(self));
        let told = sdk::Client
            .v1()
            .on_receive_notification(
                async move |update: acp::SessionNotification, _| {
                    updated.updates.send_modify(|updates| updates.push(update));
                    Ok(())
                },
                sdk::on_receive_notification!(),
            )
            .on_receive_request(
                async move |request: acp::RequestPermissionRequest, responder, _| {
                    let once =
                        |option: &&acp::PermissionOption| option.kind == acp::PermissionOptionKind::AllowOnce;
                    let id = request.options.iter().find(once).expect("an option");
                    let chosen = acp::SelectedPermissionOutcome::new(id.option_id.clone());
                    let outcome = acp::RequestPermissionOutcome::Selected(chosen);
                    responder.respond(acp::RequestPermissionResponse::new(outcome))
                },
                sdk::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: acp::WriteTextFileRequest, responder, _| {
                    let name = request.path.file_name().expect("a name").to_string_lossy();
                    if !name.contains("rejected") {
                        std::fs::write(&request.path, &request.content).expect("it can be written");
                    }
                    let reviewed = format!("{name}: {}", request.content);
                    reviewer.reviewed.lock().expect("no panic").push(reviewed);
                    responder.respond(acp::WriteTextFileResponse::new())
                },
                sdk::on_receive_request!(),
            )
            .on_receive_request(
                async move |request: acp::MessageMcpRequest, responder, _| {
                    let answer = server.answer(&request);
                    responder.respond(serde_json::from_value(answer).expect("a response"))
                },
                sdk::on_receive_request!(),
            )
            .connect_with(
                sdk::Lines::new(Box::pin(outgoing), Box::pin(incoming)),
                async |agent: Agent| talk(agent).await,
            )
            .await
            .expect("the connection lasts");
        stop.cancel();
        agent.await.expect("it does not panic").expect("it ends well");
        told
    }

    /// The answer of the server for the editor's tools.
    fn answer(&self, request: &acp::MessageMcpRequest) -> Value {
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
                self.called.lock().expect("no panic").push(name);
                json!({"result": {
                    "resultType": "complete", "structuredContent": told,
                    "content": [{"type": "text", "text": told.to_string()}],
                }})
            }
            other => json!({"error": {"code": -32601, "message": format!("there is no method {other}")}}),
        }
    }

    /// Waits until an update has this.
    async fn until<T>(&self, wanted: impl Fn(&acp::SessionNotification) -> Option<T>) -> T {
        let mut updates = self.updates.subscribe();
        let found = async {
            let seen = updates.wait_for(|updates| updates.iter().any(|update| wanted(update).is_some()));
            drop(seen.await.expect("the client is there"));
        };
        let in_time = tokio::time::timeout(PATIENCE, found).await;
        let updates = self.updates.borrow();
        assert!(in_time.is_ok(), "it did not come: {updates:#?}");
        updates.iter().find_map(wanted).expect("it has come")
    }

    /// The text of the answers in a session.
    fn said(&self, session: &acp::SessionId) -> String {
        let updates = self.updates.borrow();
        let of = updates.iter().filter(|update| update.session_id == *session);
        of.filter_map(|update| said(&update.update)).collect()
    }
}

fn said(update: &acp::SessionUpdate) -> Option<&str> {
    match update {
        acp::SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
            acp::ContentBlock::Text(text) => Some(&text.text),
            _ => None,
        },
        _ => None,
    }
}

/// What the agent can do, for a client with these capabilities.
async fn initialize(agent: &Agent, capabilities: Value) -> Result<acp::AgentCapabilities, sdk::Error> {
    let capabilities: acp::ClientCapabilities = serde_json::from_value(capabilities).expect("capabilities");
    let request = acp::InitializeRequest::new(sdk::schema::ProtocolVersion::V1);
    let request = request.client_capabilities(capabilities);
    Ok(agent.send_request(request).block_task().await?.agent_capabilities)
}

async fn open(agent: &Agent, cwd: &Path) -> Result<acp::SessionId, sdk::Error> {
    let opened = agent.send_request(acp::NewSessionRequest::new(cwd)).block_task();
    Ok(opened.await?.session_id)
}

fn prompt(session: &acp::SessionId, text: &str) -> acp::PromptRequest {
    acp::PromptRequest::new(session.clone(), vec![acp::ContentBlock::from(text)])
}

/// A turn that ends by itself.
async fn turn(agent: &Agent, session: &acp::SessionId, text: &str) -> Result<(), sdk::Error> {
    let ended = agent.send_request(prompt(session, text)).block_task().await?;
    assert_eq!(ended.stop_reason, acp::StopReason::EndTurn);
    Ok(())
}

fn write(path: &Path, text: &str) -> String {
    format!("%tool Write {}\n", json!({"file_path": path, "content": text}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_go_through_its_review() {
    let mut rig = Rig::start().await;
    rig.config = rig.config.clone().review_edits(true);
    let cwd = rig.sandbox.project();
    let [accepted, rejected] = ["accepted.txt", "rejected.txt"].map(|name| cwd.join(name));
    let client = Arc::<Client>::default();
    let talk = async |agent: Agent| {
        let files = json!({"fs": {"readTextFile": false, "writeTextFile": true}});
        let can = initialize(&agent, files).await?;
        assert_eq!(can.meta.expect("ours")["claudeCode"]["reviewEdits"], true);
        let session = open(&agent, &cwd).await?;
        let text = write(&accepted, "good") + &write(&rejected, "bad") + "%say done";
        turn(&agent, &session, &text).await
    };
    client.connect(&rig, talk).await;
    let reviewed = client.reviewed.lock().expect("no panic");
    assert_eq!(*reviewed, ["accepted.txt: good", "rejected.txt: bad"]);
    let accepted = std::fs::read_to_string(accepted).expect("it was accepted");
    assert_eq!((accepted.as_str(), rejected.exists()), ("good", false));
    assert!(
        sent(&rig).contains("The user rejected this edit"),
        "{}",
        sent(&rig)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_calls_its_tools() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let client = Arc::<Client>::default();
    let talk = async |agent: Agent| {
        assert!(initialize(&agent, json!({})).await?.mcp_capabilities.acp);
        let server = json!({"type": "acp", "name": "editor", "serverId": "editor"});
        let server: acp::McpServer = serde_json::from_value(server).expect("a server");
        let new = acp::NewSessionRequest::new(&cwd).mcp_servers(vec![server]);
        let session = agent.send_request(new).block_task().await?.session_id;
        let lines = tools().into_iter().map(|tool| {
            let name = tool["name"].as_str().expect("a name").to_owned();
            format!("%tool mcp__editor__{name} {{}}\n")
        });
        turn(&agent, &session, &(lines.collect::<String>() + "%say done")).await
    };
    client.connect(&rig, talk).await;
    let names = ["get_diagnostics", "get_selection", "get_open_files"];
    assert_eq!(*client.called.lock().expect("no panic"), names);
    for name in names {
        assert!(sent(&rig).contains(&format!("of {name}")), "{}", sent(&rig));
    }
}

/// The messages of the last API request.
fn sent(rig: &Rig) -> String {
    let requests = rig.api.message_requests();
    json!(requests.last().expect("a request").messages()).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_loads_the_end_of_a_session_and_then_the_rest() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let first = async |agent: Agent| {
        initialize(&agent, json!({})).await?;
        let session = open(&agent, &cwd).await?;
        for text in ["%say one.", "%say two.", "%say three."] {
            turn(&agent, &session, text).await?;
        }
        Ok(session)
    };
    let session = Arc::<Client>::default().connect(&rig, first).await;

    let client = Arc::<Client>::default();
    let again = async |agent: Agent| {
        initialize(&agent, json!({})).await?;
        let Value::Object(meta) = json!({"claudeCode": {"replay": {"limit": 1}}}) else {
            panic!("an object")
        };
        let load = acp::LoadSessionRequest::new(session.clone(), &cwd).meta(meta);
        let loaded = agent.send_request(load).block_task().await?;
        assert_eq!(client.said(&session), "three.");
        let before = loaded.meta.expect("ours")["claudeCode"]["replay"]["before"].clone();
        let page = json!({"sessionId": session, "cwd": cwd, "before": before});
        let page = sdk::UntypedMessage::new("_session/history", page)?;
        let mut page = agent.send_request(page).block_task().await?;
        assert_eq!(page["before"], Value::Null);
        let updates: Vec<acp::SessionUpdate> =
            serde_json::from_value(page["updates"].take()).expect("updates of the protocol");
        assert_eq!(updates.iter().filter_map(said).collect::<String>(), "one.two.");
        turn(&agent, &session, "%say four.").await
    };
    client.connect(&rig, again).await;
    assert!(sent(&rig).contains("one."), "{}", sent(&rig));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_has_its_time_and_the_thread_goes_on() {
    let mut rig = Rig::start().await;
    let limited = with_a_limit(&mut rig);
    let cwd = rig.sandbox.project();
    let client = Arc::<Client>::default();
    let api = &rig.api;
    let talk = async |agent: Agent| {
        initialize(&agent, json!({"session": {"notices": {}}})).await?;
        let session = open(&agent, &cwd).await?;
        api.push(limited);
        let failed = agent
            .send_request(prompt(&session, "%say never"))
            .block_task()
            .await;
        let data = failed.expect_err("it is limited").data.expect("with data");
        assert!(data["retryAfterSeconds"].is_u64(), "{data:#}");
        turn(&agent, &session, "%say it goes on").await?;
        assert!(client.said(&session).ends_with("it goes on"));
        Ok(())
    };
    client.connect(&rig, talk).await;
    let time = "resets at 2100-01-01 12:34 UTC";
    client
        .until(|update| match &update.update {
            acp::SessionUpdate::Notice(notice) => notice.title.contains(time).then_some(()),
            _ => None,
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_conversation_is_compacted_behind_a_notice() {
    let mut rig = Rig::start().await;
    let soon = IdleCompaction::new(Duration::from_millis(200)).from_tokens(1);
    rig.config = rig.config.clone().idle_compaction(soon);
    let cwd = rig.sandbox.project();
    let client = Arc::<Client>::default();
    let talk = async |agent: Agent| {
        initialize(&agent, json!({"session": {"notices": {}, "compaction": {}}})).await?;
        let session = open(&agent, &cwd).await?;
        turn(&agent, &session, "%say a long conversation").await?;
        client
            .until(|update| match &update.update {
                acp::SessionUpdate::CompactionUpdate(update) => {
                    (update.status == acp::CompactionStatus::Completed).then_some(())
                }
                _ => None,
            })
            .await;
        Ok(())
    };
    client.connect(&rig, talk).await;
    let updates = client.updates.borrow();
    let place = |wanted: fn(&acp::SessionUpdate) -> bool| {
        let found = updates.iter().position(|update| wanted(&update.update));
        found.unwrap_or_else(|| panic!("it is not among {updates:#?}"))
    };
    let announced = place(|update| match update {
        acp::SessionUpdate::Notice(notice) => {
            let meta = notice.meta.as_ref();
            meta.is_some_and(|meta| meta["claudeCode"]["topic"] == "idle_compaction")
        }
        _ => false,
    });
    let begun = place(|update| matches!(update, acp::SessionUpdate::CompactionUpdate(_)));
    assert!(announced < begun, "{updates:#?}");
}

/// The state of a subagent's session in an update.
fn state<'a>(update: &'a acp::SessionNotification, child: &acp::SessionId) -> Option<&'a acp::StateUpdate> {
    match &update.update {
        acp::SessionUpdate::SubagentUpdate(update) if update.session_id == *child => update.state.value(),
        _ => None,
    }
}

fn ended(state: &acp::StateUpdate) -> Option<acp::IdleStopReason> {
    match state {
        acp::StateUpdate::Idle(idle) => idle.stop_reason.clone(),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subagents_are_sessions_and_one_is_cancelled() {
    let rig = Rig::start().await;
    let cwd = rig.sandbox.project();
    let client = Arc::<Client>::default();
    let talk = async |connection: Agent| {
        initialize(&connection, json!({"subagents": {}})).await?;
        let session = open(&connection, &cwd).await?;
        let both = [
            waiting_agent("one", true),
            agent("two", true, &waiting("two")),
            "%say both run".to_owned(),
        ];
        turn(&connection, &session, &both.join("\n")).await?;
        let child = async |name: &str| {
            let announced = client.until(|update| match &update.update {
                acp::SessionUpdate::SubagentUpdate(child) if child.title.value()? == name => {
                    let can = child.capabilities.value()?;
                    can.cancel.as_ref().map(|_| child.session_id.clone())
                }
                _ => None,
            });
            announced.await
        };
        let (one, two) = (child("one").await, child("two").await);
        for began in ["one.began", "two.began"] {
            while !cwd.join(began).exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        connection.send_notification(acp::CancelNotification::new(one.clone()))?;
        let reason = client.until(|update| state(update, &one).and_then(ended)).await;
        assert_eq!(reason, acp::IdleStopReason::Cancelled);
        std::fs::write(cwd.join("two"), "").expect("it can be written");
        let reason = client.until(|update| state(update, &two).and_then(ended)).await;
        assert_eq!(reason, acp::IdleStopReason::EndTurn);
        assert_eq!(
            (client.said(&one), client.said(&two)),
            (String::new(), "two is done".to_owned())
        );
        turn(&connection, &session, "%say and on").await
    };
    client.connect(&rig, talk).await;
}
