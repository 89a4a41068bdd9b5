//! Servers that read and write JSON-RPC themselves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::mcp::{RawSender, SdkMcpServer};
use outrigger::protocol::RawJson;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::cli::{Cli, request};

fn raw(message: &Value) -> RawJson {
    RawJson::encode(message).expect("JSON")
}

/// A server that answers each request by what `answer` makes of it, and tells what it got.
fn server(
    answer: impl Fn(&Value) -> Option<String> + Send + Sync + 'static,
) -> (SdkMcpServer, mpsc::UnboundedReceiver<Value>, Senders) {
    let (heard, hears) = mpsc::unbounded_channel();
    let senders = Senders::default();
    let (answer, kept) = (Arc::new(answer), senders.clone());
    let server = SdkMcpServer::from_raw(move |mut connection| {
        let (answer, heard, kept) = (Arc::clone(&answer), heard.clone(), kept.clone());
        async move {
            kept.0.lock().unwrap().push(connection.sender());
            let sender = connection.sender();
            while let Some(got) = connection.next().await {
                let message: Value = got.message.decode().expect("JSON");
                let answer = answer(&message);
                heard.send(message).expect("the test listens");
                if let Some(answer) = answer {
                    sender
                        .send(RawJson::from_text(&answer).expect("JSON"))
                        .await
                        .expect("it is sent");
                }
            }
        }
    });
    (server, hears, senders)
}

/// One for each connection.
#[derive(Clone, Default)]
struct Senders(Arc<Mutex<Vec<RawSender>>>);

impl Senders {
    fn last(&self) -> RawSender {
        self.0.lock().unwrap().last().expect("a connection").clone()
    }
}

fn greeting(message: &Value) -> Option<String> {
    (message["method"] == "initialize").then(|| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#,
            message["id"]
        )
    })
}

#[tokio::test(start_paused = true)]
async fn a_raw_server_gets_and_gives_messages_as_they_are() {
    let (server, mut hears, senders) = server(|message| {
        greeting(message).or_else(|| {
            // What no typed server could say.
            message.get("method")?;
            let id = message.get("id")?;
            Some(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"z":1.50,"a":12345678901234567890123,"unknown":[null]}}}}"#
            ))
        })
    });
    let (options, cli) = Cli::new();
    let (_session, mut cli, told) = cli.start(options.sdk_mcp_server("s", server)).await;
    // It was asked ahead what it is.
    assert!(told["sdkMcpServerManifests"]["s"].is_object(), "{told:#}");
    assert_eq!(hears.recv().await.unwrap()["method"], "initialize");
    assert_eq!(hears.recv().await.unwrap()["method"], "notifications/initialized");

    let params = json!({"future": {"deep": [1, 2]}, "name": 7});
    let posted = cli.post("s", request(7, "tools/call", params.clone())).await;
    let answer = cli.answer(&posted).await["response"]["mcp_response"].clone();
    // Whoever reads it here rounds; it was not rounded on its way.
    assert_eq!(answer["result"]["unknown"], json!([null]), "{answer}");
    assert_eq!(hears.recv().await.unwrap()["params"], params);

    // A request of the server's, and its answer.
    let asks = json!({"jsonrpc": "2.0", "id": "mine", "method": "roots/list"});
    let sender = senders.last();
    let asked = tokio::spawn(async move { sender.send(raw(&asks)).await });
    let got = cli.request("mcp_message").await;
    assert_eq!(got["request"]["message"]["method"], "roots/list");
    cli.reply(&got, json!({})).await;
    asked.await.unwrap().expect("the CLI took it");
    let roots = json!({"jsonrpc": "2.0", "id": "mine", "result": {"roots": []}});
    let posted = cli.post("s", roots.clone()).await;
    assert_eq!(cli.answer(&posted).await["subtype"], "success");
    assert_eq!(hears.recv().await.unwrap(), roots);
}

#[tokio::test(start_paused = true)]
async fn a_raw_server_that_ends_or_panics_answers_no_more() {
    for panics in [false, true] {
        let server = SdkMcpServer::from_raw(move |mut connection| async move {
            let sender = connection.sender();
            while let Some(got) = connection.next().await {
                let message: Value = got.message.decode().expect("JSON");
                if let Some(answer) = greeting(&message) {
                    sender.send(RawJson::from_text(&answer).unwrap()).await.unwrap();
                } else if message["method"] == "tools/call" {
                    assert!(!panics, "as it was told to");
                    return;
                }
            }
        });
        let (options, cli) = Cli::new();
        let (_session, mut cli, _) = cli.start(options.sdk_mcp_server("s", server)).await;
        for id in [1, 2] {
            let answer = cli.ask("s", id, "tools/call", json!({"name": "t"})).await;
            let why = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(why.contains("has ended"), "{answer}");
        }
        // It begins anew with the CLI's next connection.
        let greeted = cli.connect("s").await;
        assert_eq!(greeted["result"]["serverInfo"]["name"], "s", "{greeted}");
    }
}

/// The CLI ends without a reply to `initialize`.
#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_a_session_that_never_starts_is_refused() {
    let (server, _hears, senders) = server(greeting);
    let (options, mut cli) = Cli::new();
    let started = tokio::spawn(options.sdk_mcp_server("s", server).start());
    cli.request("initialize").await;
    let sender = senders.last();
    let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let sent = tokio::spawn(async move { sender.send(raw(&change)).await });
    drop(cli);
    started.await.unwrap().unwrap_err();
    let sent = tokio::time::timeout(Duration::from_secs(60), sent).await;
    let error = sent.expect("it does not wait").unwrap().unwrap_err();
    assert!(error.to_string().contains("the session has ended"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_a_raw_server_may_not_send_is_refused() {
    let (server, _hears, senders) = server(greeting);
    let (options, cli) = Cli::new();
    let (session, mut cli, _) = cli.start(options.sdk_mcp_server("s", server)).await;
    let sender = senders.last();
    for wrong in [
        json!([]),
        json!({}),
        json!({"id": {}, "result": 1}),
        json!({"method": 1}),
    ] {
        let error = sender.send(raw(&wrong)).await.expect_err("it is no message");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{wrong}");
    }
    // An answer that nobody waits for is let go.
    let late = json!({"jsonrpc": "2.0", "id": 99, "result": {}});
    sender.send(raw(&late)).await.expect("it is let go");

    // A request that the CLI takes back is answered without the server, whose answer comes too late.
    let posted = cli
        .post("s", request(5, "tools/call", json!({"name": "t"})))
        .await;
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    cli.post("s", cancelled).await;
    let answer = cli.answer(&posted).await["response"]["mcp_response"].clone();
    assert_eq!(answer["error"]["code"], -32800, "{answer}");

    drop(cli);
    drop(session);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert!(sender.send(raw(&changed)).await.is_err(), "nobody is there");
}

#[tokio::test(start_paused = true)]
async fn a_next_that_is_dropped_loses_no_message() {
    let (heard, mut hears) = mpsc::unbounded_channel();
    let server = SdkMcpServer::from_raw(move |mut connection| {
        let heard = heard.clone();
        async move {
            loop {
                let next = tokio::time::timeout(Duration::from_millis(1), connection.next()).await;
                match next {
                    Ok(Some(got)) => {
                        heard.send(got.message.decode::<Value>().unwrap()).unwrap();
                    }
                    Ok(None) => return,
                    Err(_) => {}
                }
            }
        }
    });
    let (options, cli) = Cli::new();
    let options = options.sdk_mcp_server("s", server).sdk_mcp_manifests(false);
    let (_session, mut cli, _) = cli.start(options).await;
    cli.post(
        "s",
        request(0, "initialize", json!({"protocolVersion": "2025-11-25"})),
    )
    .await;
    for count in 1..20 {
        cli.post("s", request(count, "tools/list", Value::Null)).await;
    }
    for count in 0..20 {
        assert_eq!(hears.recv().await.unwrap()["id"], count);
    }
}
