//! MCP servers in the editor.

use std::path::Path;
use std::time::Duration;

use outrigger_sim::peer;
use serde_json::{Value, json};

use crate::editor::{Answer, Editor, said, updates};

/// The reply to `server/discover`.
fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "editor", "version": "7"},
        "instructions": "Ask it about the editor.",
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

fn tools(names: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let tool =
        |name: &&str| json!({"name": name, "description": "A tool of the editor", "inputSchema": schema});
    json!({"resultType": "complete", "tools": names.iter().map(tool).collect::<Vec<_>>(), "ttlMs": 0, "cacheScope": "private"})
}

pub(crate) fn text(said: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": said}]})
}

/// Answers for a server: its description and its tools; `call` answers calls, or leaves them open.
pub(crate) fn serving(mut call: impl FnMut(&Value) -> Option<Value> + Send + 'static) -> Answer {
    Box::new(move |line| {
        if line["method"] == "session/request_permission" {
            return Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}}));
        }
        assert_eq!(line["method"], "mcp/message", "{line}");
        let params = &line["params"];
        let meta = &params["params"]["_meta"];
        // Each request is independent.
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28",
            "{line}"
        );
        assert!(
            meta["io.modelcontextprotocol/clientCapabilities"]["roots"].is_object(),
            "{line}"
        );
        let result = match params["method"].as_str().unwrap() {
            "server/discover" => discovered(),
            "tools/list" => tools(&["echo"]),
            "subscriptions/listen" => return None,
            "tools/call" => call(&params["params"])?,
            method => panic!("nobody asks a server of this revision for {method}"),
        };
        Some(json!({ "result": result }))
    })
}

async fn open(editor: &mut Editor, cwd: &Path, name: &str, id: &str) -> String {
    let server = json!({"type": "acp", "name": name, "serverId": id});
    let opened = editor
        .call("session/new", json!({"cwd": cwd, "mcpServers": [server]}))
        .await;
    opened["sessionId"].as_str().expect("an id").to_owned()
}

fn is_of_server(line: &Value, method: &str) -> bool {
    line["method"] == "mcp/message" && line["params"]["method"] == method
}

/// Sends a notification about a request of the agent.
async fn tell(editor: &mut Editor, about: &Value, method: &str, params: Value) {
    let params = json!({
        "serverId": about["params"]["serverId"], "requestId": about["params"]["requestId"],
        "method": method, "params": params,
    });
    editor.notify("mcp/message", params).await;
}

#[tokio::test]
async fn a_server_of_the_editor_is_called() {
    let (mut editor, _cli) = Editor::simulated();
    let told = editor.initialize(json!({})).await;
    assert_eq!(told["agentCapabilities"]["mcpCapabilities"]["acp"], true);
    editor.answer = serving(|params| {
        assert_eq!(params["name"], "echo", "{params}");
        Some(text(params["arguments"]["text"].as_str().unwrap()))
    });
    let home = tempfile::tempdir().unwrap();
    let session = open(&mut editor, home.path(), "My Tools", "tools-1").await;
    let (lines, answer) = editor
        .turn(
            &session,
            "%tool mcp__My_Tools__echo {\"text\": \"from the editor\"}\n%say done",
        )
        .await;
    assert_eq!(
        (&answer["stopReason"], said(&lines).as_str()),
        (&json!("end_turn"), "done")
    );
    let calls = updates(&lines, "tool_call");
    assert_eq!(calls[0]["title"], "echo (My_Tools)", "{calls:#?}");
    let last = updates(&lines, "tool_call_update");
    let last = last.last().expect("the call ended");
    assert_eq!(last["status"], "completed", "{last:#}");
    assert!(last.to_string().contains("from the editor"), "{last:#}");
    editor.leave().await;
}

#[tokio::test]
async fn a_server_asks_first_and_answers_then() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({"elicitation": {"form": {}}})).await;
    let mut round = 0;
    editor.answer = {
        let mut serving = serving(move |params| {
            round += 1;
            assert_eq!(params["arguments"], json!({"text": "x"}), "{params}");
            let capabilities = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            assert_eq!(capabilities["elicitation"], json!({"form": {}}), "{params}");
            if round == 1 {
                assert!(params.get("inputResponses").is_none() && params.get("requestState").is_none());
                return Some(json!({
                    "resultType": "input_required", "requestState": "half-way",
                    "inputRequests": {
                        "city": {"method": "elicitation/create", "params": {
                            "message": "Where to?",
                            "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
                        }},
                        "roots": {"method": "roots/list"},
                    },
                }));
            }
            assert_eq!(params["requestState"], "half-way");
            let answers = &params["inputResponses"];
            assert_eq!(
                answers["city"],
                json!({"action": "accept", "content": {"city": "Oslo"}})
            );
            let root = answers["roots"]["roots"][0]["uri"].as_str().unwrap();
            assert!(root.starts_with("file:///"), "{answers}");
            Some(text("two nights in Oslo"))
        });
        Box::new(move |line| {
            if line["method"] == "elicitation/create" {
                assert_eq!(line["params"]["message"], "Where to?");
                return Some(json!({"action": "accept", "content": {"city": "Oslo"}}));
            }
            serving(line)
        })
    };
    let home = tempfile::tempdir().unwrap();
    let session = open(&mut editor, home.path(), "trips", "t").await;
    let (lines, _) = editor
        .turn(&session, "%tool mcp__trips__echo {\"text\": \"x\"}\n%say done")
        .await;
    let last = updates(&lines, "tool_call_update");
    assert!(
        last.last().unwrap().to_string().contains("two nights in Oslo"),
        "{last:#?}"
    );
    editor.leave().await;
}

/// The error text of a call.
async fn failure(editor: &mut Editor, session: &str) -> String {
    let (lines, answer) = editor
        .turn(session, "%tool mcp__s__echo {\"text\": \"x\"}\n%say done")
        .await;
    assert_eq!(answer["stopReason"], "end_turn");
    let last = updates(&lines, "tool_call_update");
    let last = last.last().expect("the call ended");
    assert_eq!(last["status"], "failed", "{last:#}");
    last.to_string()
}

#[tokio::test]
async fn a_server_that_fails_or_never_stops_asking_fails_its_call() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let mut rounds = 0;
    editor.answer = serving(move |_| {
        rounds += 1;
        assert!(rounds <= 10, "it is asked again and again");
        Some(json!({"resultType": "input_required", "requestState": "more"}))
    });
    let session = open(&mut editor, home.path(), "s", "s").await;
    let told = failure(&mut editor, &session).await;
    assert!(told.contains("asked 10 times"), "{told}");

    // Sampling is not offered.
    editor.answer = serving(|_| {
        let sampling =
            json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
        Some(json!({"resultType": "input_required", "inputRequests": {"a": sampling}}))
    });
    let told = failure(&mut editor, &session).await;
    assert!(told.contains("sampling/createMessage"), "{told}");

    // An error of the server, and one of the editor.
    editor.answer = {
        let mut serving = serving(|_| None);
        Box::new(move |line| {
            let is_call = is_of_server(line, "tools/call");
            is_call
                .then(|| json!({"error": {"code": -32000, "message": "out of paper"}}))
                .or_else(|| serving(line))
        })
    };
    let told = failure(&mut editor, &session).await;
    assert!(told.contains("out of paper"), "{told}");
    editor.answer = serving(|_| None);
    let prompt = editor
        .prompt(&session, "%tool mcp__s__echo {\"text\": \"x\"}\n%say done")
        .await;
    let call = editor.wait_for(|line| is_of_server(line, "tools/call")).await;
    editor.fail(&call, -33001, "the server was removed").await;
    let (lines, _) = editor.until(prompt).await;
    let last = updates(&lines, "tool_call_update");
    let told = last.last().expect("the call ended").to_string();
    assert!(told.contains("the server was removed"), "{told}");
    editor.leave().await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_taken_back_from_the_editor() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    editor.answer = serving(|_| None);
    let home = tempfile::tempdir().unwrap();
    let session = open(&mut editor, home.path(), "s", "s").await;
    let prompt = editor
        .prompt(&session, "%tool mcp__s__echo {\"text\": \"x\"}")
        .await;
    let call = editor.wait_for(|line| is_of_server(line, "tools/call")).await;
    let progress =
        json!({"progressToken": call["params"]["params"]["_meta"]["progressToken"], "progress": 1});
    tell(&mut editor, &call, "notifications/progress", progress).await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let id = call["id"].clone();
    editor
        .wait_for(|line| line["method"] == "$/cancel_request" && line["params"]["requestId"] == id)
        .await;
    let (_, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    // A late notification has no effect.
    editor.reply(&call, json!({"result": text("too late")})).await;
    tell(
        &mut editor,
        &call,
        "notifications/progress",
        json!({"progress": 2}),
    )
    .await;
    editor.answer = serving(|_| Some(text("in time")));
    let (lines, _) = editor
        .turn(&session, "%tool mcp__s__echo {\"text\": \"x\"}\n%say done")
        .await;
    let last = updates(&lines, "tool_call_update");
    assert!(last.last().unwrap().to_string().contains("in time"), "{last:#?}");

    // The end of the session also cancels the subscription.
    let closing = editor.ask("session/close", json!({"sessionId": session})).await;
    let (before, _) = editor.until(closing).await;
    let is_cancel = |line: &Value| line["method"] == "$/cancel_request" && line["params"]["requestId"] != id;
    assert!(before.iter().any(is_cancel), "{before:#?}");
    editor.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_says_what_it_is_holds_nobody_up() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    let begun = tokio::time::Instant::now();
    let session = open(&mut editor, home.path(), "s", "s").await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let prompt = editor.prompt(&session, "%say hello").await;
    let (lines, answer) = editor.until(prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let said = said(&lines);
    assert!(
        said.contains("MCP server s could not be reached") && said.ends_with("hello"),
        "{said}"
    );
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    editor.leave().await;
}

#[tokio::test]
async fn tools_that_change_are_there_in_the_next_turn() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    editor.answer = serving(|_| Some(text("the old one")));
    let home = tempfile::tempdir().unwrap();
    let server = json!({"type": "acp", "name": "s", "serverId": "s"});
    let params = json!({"cwd": home.path(), "mcpServers": [server]});
    let opening = editor.ask("session/new", params).await;
    let listening = editor
        .wait_for(|line| is_of_server(line, "subscriptions/listen"))
        .await;
    let (_, opened) = editor.until(opening).await;
    let session = opened["result"]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(
        listening["params"]["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    tell(
        &mut editor,
        &listening,
        "notifications/subscriptions/acknowledged",
        json!({"notifications": {"toolsListChanged": true}}),
    )
    .await;
    editor.answer = {
        let mut serving = serving(|params| Some(text(&format!("this is {}", params["name"]))));
        Box::new(move |line| {
            let is_list = is_of_server(line, "tools/list");
            is_list
                .then(|| json!({"result": tools(&["echo", "fresh"])}))
                .or_else(|| serving(line))
        })
    };
    tell(
        &mut editor,
        &listening,
        "notifications/tools/list_changed",
        json!({}),
    )
    .await;
    editor.wait_for(|line| is_of_server(line, "tools/list")).await;
    let (lines, _) = editor
        .turn(&session, "%tool mcp__s__fresh {\"text\": \"x\"}\n%say done")
        .await;
    let last = updates(&lines, "tool_call_update");
    assert!(last.last().unwrap().to_string().contains("this is"), "{last:#?}");
    editor.leave().await;
}

#[tokio::test]
async fn two_sessions_share_a_server_and_not_its_requests() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    editor.answer = serving(|_| None);
    let home = tempfile::tempdir().unwrap();
    let mut calls = Vec::new();
    for _ in 0..2 {
        let session = open(&mut editor, home.path(), "s", "shared").await;
        let prompt = editor
            .prompt(&session, "%tool mcp__s__echo {\"text\": \"x\"}\n%say done")
            .await;
        let known: Vec<Value> = calls
            .iter()
            .map(|(_, call): &(i64, Value)| call["id"].clone())
            .collect();
        let call = editor
            .wait_for(|line| is_of_server(line, "tools/call") && !known.contains(&line["id"]))
            .await;
        calls.push((prompt, call));
    }
    assert_ne!(
        calls[0].1["params"]["requestId"],
        calls[1].1["params"]["requestId"]
    );
    for (number, (prompt, call)) in calls.iter().enumerate().rev() {
        let answer = text(&format!("answer {number}"));
        editor.reply(call, json!({ "result": answer })).await;
        let (lines, _) = editor.until(*prompt).await;
        let last = updates(&lines, "tool_call_update");
        let last = last.last().expect("the call ended").to_string();
        assert!(last.contains(&format!("answer {number}")), "{last}");
    }
    editor.leave().await;
}

/// The status of the servers of a session, by name.
async fn status(editor: &mut Editor, session: &str) -> Vec<(String, String)> {
    let told = editor
        .call("_session/mcp_status", json!({"sessionId": session}))
        .await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let servers = told["servers"].as_array().expect("a list").iter();
    servers
        .map(|server| (text(&server["name"]), text(&server["status"])))
        .collect()
}

fn connected(names: &[&str]) -> Vec<(String, String)> {
    let connected = |name: &&str| ((*name).to_owned(), "connected".to_owned());
    names.iter().map(connected).collect()
}

#[tokio::test]
async fn servers_are_changed_while_the_session_runs() {
    let (mut editor, cli) = Editor::simulated();
    let told = editor.initialize(json!({})).await;
    let offered = &told["agentCapabilities"]["_meta"]["claudeCode"]["mcpServers"];
    assert_eq!(
        *offered,
        json!({"set": true, "status": true, "reconnect": true, "toggle": true})
    );
    editor.answer = serving(|params| Some(text(&params["arguments"].to_string())));
    let home = tempfile::tempdir().unwrap();
    let session = open(&mut editor, home.path(), "one", "1").await;
    editor.turn(&session, "%say that begins it").await;
    assert_eq!(status(&mut editor, &session).await, connected(&["one"]));

    let server = |name: &str, id: &str| json!({"type": "acp", "name": name, "serverId": id});
    let set = |servers: &[Value]| json!({"sessionId": session, "mcpServers": servers});
    let told = editor
        .call(
            "_session/set_mcp_servers",
            set(&[server("one", "1"), server("two", "2")]),
        )
        .await;
    assert_eq!(told, json!({"added": ["two"], "removed": [], "errors": {}}));
    let call = "%tool mcp__two__echo {\"text\": \"x\"}\n%say done";
    let (lines, _) = editor.turn(&session, call).await;
    let ended = |lines: &[Value]| {
        let last = updates(lines, "tool_call_update");
        last.last().unwrap_or_else(|| panic!("{lines:#?}"))["status"].clone()
    };
    assert_eq!(ended(&lines), "completed", "{lines:#?}");
    assert_eq!(status(&mut editor, &session).await, connected(&["one", "two"]));

    // Another server of the same name replaces it.
    let told = editor
        .call("_session/set_mcp_servers", set(&[server("two", "3")]))
        .await;
    assert_eq!(told, json!({"added": ["two"], "removed": ["one"], "errors": {}}));

    // A new process gets the last servers of the session.
    cli.started()[0].signal(peer::Signal::Kill);
    editor.turn(&session, "%say back again").await;
    assert_eq!(status(&mut editor, &session).await, connected(&["two"]));
    assert_eq!(cli.started().len(), 2, "the CLI was started again");
    let (lines, _) = editor.turn(&session, call).await;
    let called = |line: &Value| is_of_server(line, "tools/call") && line["params"]["serverId"] == "3";
    assert!(lines.iter().any(called), "{lines:#?}");
    editor.leave().await;
}

#[tokio::test]
async fn what_is_no_server_or_no_session_is_refused() {
    let (mut editor, _cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().unwrap();
    editor.answer = serving(|_| None);
    let session = open(&mut editor, home.path(), "one", "1").await;
    for (method, more) in [
        ("mcp_reconnect", json!({"serverName": "none"})),
        ("mcp_toggle", json!({"serverName": "none", "enabled": true})),
        ("mcp_toggle", json!({"serverName": "one"})),
        (
            "set_mcp_servers",
            json!({"mcpServers": [{"type": "acp", "name": "ide", "serverId": "1"}]}),
        ),
        ("set_mcp_servers", json!({})),
    ] {
        for (session, code) in [(session.as_str(), -32602), ("nobody", -32002)] {
            let mut params = more.clone();
            params["sessionId"] = json!(session);
            let refused = editor.refused(&format!("_session/{method}"), params).await;
            let is_wrong = refused["code"] == -32602;
            assert!(refused["code"] == code || is_wrong, "{method}: {refused}");
        }
    }
    let refused = editor
        .refused("_session/mcp_status", json!({"sessionId": "nobody"}))
        .await;
    assert_eq!(refused["code"], -32002);
    for enabled in [false, true] {
        let params = json!({"sessionId": session, "serverName": "one", "enabled": enabled});
        assert_eq!(editor.call("_session/mcp_toggle", params).await, json!({}));
    }
    let params = json!({"sessionId": session, "serverName": "one"});
    assert_eq!(editor.call("_session/mcp_reconnect", params).await, json!({}));
    assert_eq!(status(&mut editor, &session).await, connected(&["one"]));
    editor.leave().await;
}

#[tokio::test]
async fn servers_that_can_t_be_told_apart_are_refused() {
    let (mut editor, cli) = Editor::simulated();
    editor.initialize(json!({})).await;
    let server = |name: &str, id: &str| json!({"type": "acp", "name": name, "serverId": id});
    for (servers, parameter) in [
        (vec![server("a", "1"), server("b", "1")], "mcpServers[1].serverId"),
        (vec![server("a", "1"), server("a", "2")], "mcpServers[1].name"),
        (vec![server("\u{65e5}", "1")], "mcpServers[0].name"),
    ] {
        let refused = editor
            .refused("session/new", json!({"cwd": "/", "mcpServers": servers}))
            .await;
        assert_eq!(
            (&refused["code"], &refused["data"]["parameter"]),
            (&json!(-32602), &json!(parameter)),
            "{refused}"
        );
    }
    assert!(cli.started().is_empty());
    editor.leave().await;
}
