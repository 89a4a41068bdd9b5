//! What the CLI asks, and what it is answered, line by line: a peer that says what a test tells it to.

mod closed;
mod hooks;
mod parked;
mod state;

use std::time::Duration;

use outrigger::options::{Auth, Secret};
use outrigger::transport::Pipes;
use outrigger::{Agent, Options, Session};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::time::timeout;

/// The CLI's end of the pipes. The clock is paused, so that waiting costs nothing.
pub(crate) struct Wire {
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

/// Longer than any deadline that is not for ever.
const AGES: Duration = Duration::from_secs(100 * 24 * 3600);

pub(crate) fn agent() -> Options {
    Agent::builder().auth(Auth::ApiKey(Secret::new("simulated")))
}

impl Wire {
    /// Starts a session, and tells how it introduced itself.
    pub(crate) async fn start(options: Options) -> (Session, Self, Value) {
        let (pipes, mut wire) = Self::pair();
        let starting = tokio::spawn(options.transport(pipes).start());
        let initialize = wire.initialized(&[]).await;
        (starting.await.unwrap().unwrap(), wire, initialize)
    }

    /// Both ends of the pipes.
    pub(crate) fn pair() -> (Pipes, Self) {
        Self::pair_of(64 * 1024 * 1024)
    }

    /// Pipes that hold as little as those of the system.
    fn narrow() -> (Pipes, Self) {
        Self::pair_of(4 * 1024)
    }

    fn pair_of(bytes: usize) -> (Pipes, Self) {
        let (ours, theirs) = tokio::io::duplex(bytes);
        let (stdout, stdin) = tokio::io::split(ours);
        let (lines, write) = tokio::io::split(theirs);
        let wire = Self {
            write,
            lines: BufReader::new(lines).lines(),
        };
        (Pipes::new(stdin, stdout), wire)
    }

    /// Answers the next `initialize`, with these requests as those that are open.
    pub(crate) async fn initialized(&mut self, listed: &[Value]) -> Value {
        let request = self.line().await;
        assert_eq!(request["request"]["subtype"], "initialize", "{request}");
        self.say(&json!({"type": "control_response", "response": {
            "subtype": "success",
            "request_id": request["request_id"],
            "response": {"capabilities": [], "account": {"apiKeySource": "ANTHROPIC_API_KEY"}},
            "pending_permission_requests": listed,
        }}))
        .await;
        request["request"].clone()
    }

    pub(crate) async fn say(&mut self, line: &Value) {
        self.write
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    /// A line as it is.
    pub(crate) async fn say_raw(&mut self, line: &[u8]) {
        self.write.write_all(line).await.unwrap();
        if !line.ends_with(b"\n") {
            self.write.write_all(b"\n").await.unwrap();
        }
    }

    /// Waits until the session closes its end, and goes.
    pub(crate) async fn end(mut self) {
        while let Ok(Some(_)) = self.lines.next_line().await {}
    }

    pub(crate) async fn ask(&mut self, id: &str, request: &Value) {
        self.say(&asked(id, request)).await;
    }

    async fn withdraw(&mut self, id: &str) {
        self.say(&json!({"type": "control_cancel_request", "request_id": id}))
            .await;
    }

    pub(crate) async fn line(&mut self) -> Value {
        serde_json::from_str(&self.raw_line().await).unwrap()
    }

    async fn raw_line(&mut self) -> String {
        let line = timeout(AGES, self.lines.next_line()).await.expect("a line comes");
        line.unwrap().expect("the session writes")
    }

    /// The next answer: to which request, and which.
    pub(crate) async fn answer(&mut self) -> (String, Value) {
        let line = self.line().await;
        assert_eq!(line["type"], "control_response", "{line}");
        let response = &line["response"];
        let id = response["request_id"].as_str().unwrap().to_owned();
        let answer = match response["subtype"].as_str() {
            Some("success") => response["response"].clone(),
            _ => json!({"error": response["error"]}),
        };
        (id, answer)
    }

    /// Nothing more is said, however long one waits.
    async fn silent(&mut self) {
        self.silent_for(AGES).await;
    }

    async fn silent_for(&mut self, time: Duration) {
        if let Ok(line) = timeout(time, self.lines.next_line()).await {
            panic!("{line:?}");
        }
    }
}

fn asked(id: &str, request: &Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

fn bash(command: &str) -> Value {
    json!({
        "subtype": "can_use_tool",
        "tool_name": "Bash",
        "input": {"command": command},
        "tool_use_id": format!("toolu_{command}"),
    })
}

fn question() -> Value {
    json!({
        "subtype": "can_use_tool",
        "tool_name": "AskUserQuestion",
        "input": {"questions": [
            {"question": "Which?", "header": "Fruit", "multiSelect": true, "options": [
                {"label": "Apple", "description": "red"},
                {"label": "Pear", "description": "green", "preview": "a pear"}
            ]},
            {"question": "When?", "header": "Time", "multiSelect": false, "options": [
                {"label": "Now", "description": ""},
                {"label": "Later", "description": ""}
            ]}
        ]},
        "tool_use_id": "toolu_q",
        "requires_user_interaction": true,
    })
}

fn plan() -> Value {
    json!({
        "subtype": "can_use_tool",
        "tool_name": "ExitPlanMode",
        "input": {"plan": "# Do it", "planFilePath": "/plans/a.md"},
        "tool_use_id": "toolu_p",
        "requires_user_interaction": true,
    })
}

fn elicitation() -> Value {
    json!({
        "subtype": "elicitation",
        "mcp_server_name": "forms",
        "message": "Who are you?",
        "mode": "form",
        "requested_schema": {"type": "object", "properties": {"name": {"type": "string"}}},
        "property_order": ["name"],
    })
}

fn dialog() -> Value {
    json!({"subtype": "request_user_dialog", "dialog_kind": "trust", "payload": {"path": "/p"}})
}
