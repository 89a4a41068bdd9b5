//! A minimal client that measures times.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use outrigger_sim::claude::Sandbox;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The time limit for an answer of the agent, in seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent's process, and a client on its pipes.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last: u64,
    bytes: u64,
    line: Vec<u8>,
}

impl Client {
    pub(crate) fn start(command: &[String], sandbox: &Sandbox, api: &str, cli: &Path) -> Self {
        let (program, arguments) = command.split_first().unwrap();
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(sandbox.env(api))
            .env("CLAUDE_CODE_EXECUTABLE", cli)
            .current_dir(sandbox.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{program} does not start: {error}"));
        let stdin = child.stdin.take();
        let stdout = BufReader::with_capacity(1 << 16, child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
            last: 0,
            bytes: 0,
            line: Vec::new(),
        }
    }

    /// How many bytes the agent wrote so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.ask("session/prompt", prompt).await
    }

    /// A turn from its prompt to the answer.
    pub(crate) async fn turn(&mut self, session: &str, text: &str) {
        let id = self.prompt(session, text).await;
        let answer = self.answer(id).await;
        assert_eq!(answer["stopReason"], "end_turn", "{answer}");
    }

    /// Reads up to the next chunk of an answer's text.
    pub(crate) async fn chunk(&mut self) {
        while self.next().await["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    }

    /// Reads up to the answer to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = self.next().await;
            if line["id"] == id && line.get("method").is_none() {
                assert!(line.get("error").is_none(), "{line}");
                return line["result"].take();
            }
        }
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    /// Ends the input, and waits for the end of the process.
    pub(crate) async fn end(mut self) {
        self.stdin = None;
        tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .unwrap()
            .unwrap();
    }

    /// The resident memory of the agent's own process.
    pub(crate) fn resident_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes * 1024.0 / 1e6
    }

    async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.stdin
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .await
            .unwrap();
    }

    /// The next line. Permission requests are allowed.
    async fn next(&mut self) -> Value {
        self.line.clear();
        let read = tokio::time::timeout(PATIENCE, self.stdout.read_until(b'\n', &mut self.line))
            .await
            .unwrap_or_else(|_| panic!("nothing more came"))
            .unwrap();
        assert!(read > 0, "the agent has ended");
        self.bytes += read as u64;
        let line: Value = serde_json::from_slice(&self.line).unwrap();
        if line["method"] == "session/request_permission" {
            let allowed = line["params"]["options"]
                .as_array()
                .unwrap()
                .iter()
                .find(|option| option["kind"] == "allow_once")
                .unwrap();
            let outcome = json!({"outcome": "selected", "optionId": allowed["optionId"]});
            self.send(json!({"jsonrpc": "2.0", "id": line["id"], "result": {"outcome": outcome}}))
                .await;
        }
        line
    }
}
