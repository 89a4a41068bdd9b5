//! A CLI that says what a test says.

use outrigger::options::{Auth, Secret};
use outrigger::transport::Pipes;
use outrigger::{Agent, Options, Session};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::time::timeout;

use crate::support::PATIENCE;

/// The other end of a session's pipes.
pub(crate) struct Cli {
    lines: Lines<BufReader<DuplexStream>>,
    stdout: DuplexStream,
    /// What came while something else was waited for.
    early: Vec<Value>,
    requests: u64,
}

impl Cli {
    /// Options that reach it.
    pub(crate) fn new() -> (Options, Self) {
        let (stdin, lines) = tokio::io::duplex(1 << 20);
        let (stdout, read) = tokio::io::duplex(1 << 20);
        let cli = Self {
            lines: BufReader::new(lines).lines(),
            stdout,
            early: Vec::new(),
            requests: 0,
        };
        let auth = Auth::ApiKey(Secret::new("simulated"));
        let options = Agent::builder().auth(auth).transport(Pipes::new(stdin, read));
        (options, cli)
    }

    /// Starts a session, and returns what it said in `initialize`.
    pub(crate) async fn start(mut self, options: Options) -> (Session, Self, Value) {
        let (session, (cli, request)) = tokio::join!(options.start(), async move {
            let request = self.request("initialize").await;
            self.reply(&request, ready()).await;
            (self, request)
        });
        (session.expect("it starts"), cli, request["request"].clone())
    }

    pub(crate) async fn send(&mut self, line: Value) {
        self.send_text(&line.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.stdout.write_all(line.as_bytes()).await.expect("it reads");
    }

    /// Whether no such line was read so far.
    pub(crate) fn has_not_heard(&self, what: impl Fn(&Value) -> bool) -> bool {
        !self.early.iter().any(what)
    }

    /// The next line that fits, leaving others for later.
    pub(crate) async fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&fits) {
            return self.early.remove(at);
        }
        loop {
            let line = timeout(PATIENCE, self.lines.next_line()).await;
            let line = line
                .expect("a line in time")
                .expect("a pipe")
                .expect("it is open");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if fits(&line) {
                return line;
            }
            self.early.push(line);
        }
    }

    /// The next request of the session of this kind.
    pub(crate) async fn request(&mut self, subtype: &str) -> Value {
        self.next(|line| line["type"] == "control_request" && line["request"]["subtype"] == subtype)
            .await
    }

    pub(crate) async fn reply(&mut self, request: &Value, payload: Value) {
        let id = &request["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": payload});
        self.send(json!({"type": "control_response", "response": response}))
            .await;
    }

    pub(crate) async fn refuse(&mut self, request: &Value, why: &str) {
        let response = json!({"subtype": "error", "request_id": request["request_id"], "error": why});
        self.send(json!({"type": "control_response", "response": response}))
            .await;
    }

    /// Hands a message to a server, and returns the id of the request that it went in.
    pub(crate) async fn post(&mut self, server: &str, message: Value) -> String {
        self.requests += 1;
        let id = format!("cli-{}", self.requests);
        let request = json!({"subtype": "mcp_message", "server_name": server, "message": message});
        self.send(json!({"type": "control_request", "request_id": id, "request": request}))
            .await;
        id
    }

    /// The answer to a request of ours.
    pub(crate) async fn answer(&mut self, id: &str) -> Value {
        let line = self
            .next(|line| line["type"] == "control_response" && line["response"]["request_id"] == id)
            .await;
        line["response"].clone()
    }

    /// Whether there is an answer to a request of ours by now.
    pub(crate) async fn is_answered(&mut self, id: &str) -> bool {
        // The clock is paused, so this passes once nothing else can happen.
        let fits = |line: &Value| line["response"]["request_id"] == id;
        loop {
            if self.early.iter().any(fits) {
                return true;
            }
            match timeout(std::time::Duration::from_millis(1), self.lines.next_line()).await {
                Ok(line) => {
                    let line = line.expect("a pipe").expect("it is open");
                    self.early.push(serde_json::from_str(&line).expect("JSON"));
                }
                Err(_) => return false,
            }
        }
    }

    /// Asks a server, and returns its JSON-RPC answer.
    pub(crate) async fn ask(
        &mut self,
        server: &str,
        id: impl Into<Value>,
        method: &str,
        params: Value,
    ) -> Value {
        let posted = self.post(server, request(id, method, params)).await;
        self.answer(&posted).await["response"]["mcp_response"].clone()
    }

    /// Calls a tool, and returns its result.
    pub(crate) async fn call(&mut self, server: &str, id: u64, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask(server, id, "tools/call", params).await["result"].clone()
    }

    /// Makes the handshake, as the CLI does when it was told nothing ahead.
    pub(crate) async fn connect(&mut self, server: &str) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "claude-code", "version": "2.1.330"},
        });
        let greeting = self.ask(server, 0, "initialize", params).await;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let posted = self.post(server, initialized).await;
        assert_eq!(self.answer(&posted).await["subtype"], "success");
        greeting
    }
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "id": id.into(), "method": method});
    if !params.is_null() {
        message["params"] = params;
    }
    message
}

pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// What a result says, with whether it is an error.
pub(crate) fn said(result: &Value) -> (bool, String) {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    (result["isError"] == true, text.to_owned())
}

/// What the CLI says to `initialize`.
pub(crate) fn ready() -> Value {
    json!({"commands": [], "account": {"apiKeySource": "ANTHROPIC_API_KEY"}})
}
