//! Conversations by hand; the sequences are those that the CLI wrote in the same conversation.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};

use super::*;
use crate::peer::Signal;
use crate::script::{Gates, Step};

mod background;
mod commands;
mod controls;
mod deferrals;
mod hooks;
mod hosts;
mod input;
mod interrupts;
mod mcp;
mod occasions;
mod people;
mod permissions;
mod pipes;
mod queue;
mod results;
mod sessions;
mod settings;
mod streams;
mod subagents;

/// A client that types by hand.
struct Hand {
    stdin: Option<DuplexStream>,
    stdout: Lines<BufReader<DuplexStream>>,
    stderr: Lines<BufReader<DuplexStream>>,
    agent: Running,
    requests: u32,
}

impl Hand {
    fn new(builder: Builder) -> Self {
        let (io, agent) = builder.spawn_in_memory();
        Self {
            stdin: Some(io.stdin),
            stdout: BufReader::new(io.stdout).lines(),
            stderr: BufReader::new(io.stderr).lines(),
            agent,
            requests: 0,
        }
    }

    /// A client that has initialized.
    async fn ready(builder: Builder) -> Self {
        let mut hand = Self::new(builder);
        hand.request(json!({"subtype": "initialize", "hooks": null}))
            .await;
        let answer = hand.next().await;
        assert_eq!(answer["response"]["response"]["claude_code_version"], "2.1.332");
        hand
    }

    async fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, request: Value) {
        self.requests += 1;
        let id = format!("req_{}", self.requests);
        let line = json!({"type": "control_request", "request_id": id, "request": request});
        self.write(&line.to_string()).await;
    }

    async fn prompt(&mut self, text: &str) {
        self.prompt_with(text, json!({})).await;
    }

    async fn prompt_with(&mut self, text: &str, extra: Value) {
        let mut line = json!({
            "type": "user", "session_id": "", "message": {"role": "user", "content": [{"type": "text", "text": text}]},
            "parent_tool_use_id": null,
        });
        line.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        self.write(&line.to_string()).await;
    }

    async fn answer(&mut self, request: &Value, answer: Value) {
        let line = json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": request["request_id"], "response": answer}});
        self.write(&line.to_string()).await;
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(3600), self.stdout.next_line()).await;
        serde_json::from_str(
            &line
                .expect("the agent should say something")
                .unwrap()
                .expect("no more lines"),
        )
        .unwrap()
    }

    /// Reads up to a line of this kind.
    async fn until(&mut self, kind: &str) -> Value {
        loop {
            let line = self.next().await;
            if running::kind(&line) == kind {
                return line;
            }
        }
    }

    /// Ends the input and gives the exit and the kinds of all lines behind the answer to `initialize`.
    async fn end(mut self) -> (Exit, Vec<String>) {
        self.stdin = None;
        while self.stdout.next_line().await.unwrap().is_some() {}
        let exit = self.agent.exit().await;
        typed(&self.agent.report());
        (exit, self.kinds())
    }

    fn kinds(&self) -> Vec<String> {
        let mut kinds = self.agent.report().sent_kinds();
        if kinds
            .first()
            .is_some_and(|kind| kind == "control_response/success")
        {
            kinds.remove(0);
        }
        kinds
    }
}

/// All that the agent wrote must be fully typed.
fn typed(report: &crate::peer::Report) {
    use outrigger_protocol::check::{Checker, Direction};
    let mut checker = Checker::new();
    for line in &report.lines {
        let direction = if line.from_client {
            Direction::In
        } else {
            Direction::Out
        };
        for verdict in checker.line(direction, line.json.to_string().as_bytes()) {
            assert!(
                line.from_client || verdict.is_clean(),
                "{verdict:?}\n{}",
                line.json
            );
        }
    }
}

/// Many lines of one kind in a row as one, with an `s` behind it.
fn squeezed(kinds: Vec<String>) -> Vec<String> {
    let mut squeezed: Vec<String> = Vec::new();
    for kind in kinds {
        match squeezed.last_mut() {
            Some(last) if *last == kind => last.push('s'),
            Some(last) if *last == format!("{kind}s") => {}
            _ => squeezed.push(kind),
        }
    }
    squeezed
}

const TOUCH: &str = "%tool Bash {\"command\": \"touch a.txt\", \"description\": \"touch a file\"}";

const SLOW_THEN_TOOL: &str = "%slow 100 chunk=4\n%say word word word word word word word word word word word \n\
     %+tool Bash {\"command\":\"sleep 1\",\"description\":\"x\"}\n%say end of first";

const SLOW: &str =
    "%slow 150 chunk=4\n%say word word word word word word word word word word word word word word word";

/// Without the digits that are left over when prices are added up.
fn dollars(value: &Value) -> f64 {
    (value.as_f64().unwrap() * 1e6).round() / 1e6
}

fn uuid(n: u32) -> Value {
    json!({"uuid": format!("00000000-0000-4000-8000-{n:012}")})
}

#[tokio::test(start_paused = true)]
async fn single_turn_text() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt("%say hello").await;
    let init = hand.next().await;
    assert_eq!(init["cwd"], "/home/user/project");
    let assistant = hand.next().await;
    assert_eq!(
        assistant["message"]["content"],
        json!([{"type": "text", "text": "hello"}])
    );
    let result = hand.next().await;
    assert_eq!(result["result"], "hello");
    assert_eq!(dollars(&result["total_cost_usd"]), 0.00014);
    assert_eq!(result["num_turns"], 1);
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(kinds, ["system/init", "assistant", "result/success"]);
}

#[tokio::test(start_paused = true)]
async fn controls() {
    let mut hand = Hand::ready(Agent::builder()).await;
    for (request, expected) in [
        (json!({"subtype": "mcp_status"}), json!({"mcpServers": []})),
        (json!({"subtype": "stop_task", "task_id": "nope"}), json!({})),
        (
            json!({"subtype": "set_model", "model": "default"}),
            json!({"model": "claude-opus-5-5"}),
        ),
        (
            json!({"subtype": "set_permission_mode", "mode": "plan"}),
            json!({"mode": "plan"}),
        ),
        (json!({"subtype": "interrupt"}), json!({"still_queued": []})),
    ] {
        hand.request(request).await;
        assert_eq!(
            hand.until("control_response/success").await["response"]["response"],
            expected
        );
    }
    for (request, error, code) in [
        (
            json!({"subtype": "nonsense"}),
            "Unsupported control request subtype: nonsense",
            json!("unsupported_request"),
        ),
        (
            json!({}),
            "Unsupported control request subtype: undefined",
            json!("unsupported_request"),
        ),
        (
            json!({"subtype": "set_permission_mode", "mode": "delegate"}),
            "Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan",
            json!("invalid_mode"),
        ),
        (
            json!({"subtype": "set_model", "model": 5}),
            "set_model: model must be a string",
            json!("invalid_request"),
        ),
        (
            json!({"subtype": "initialize", "hooks": 5}),
            "initialize: hooks must map hook events to arrays of matchers carrying hookCallbackIds arrays and string \
             matchers",
            Value::Null,
        ),
    ] {
        hand.request(request).await;
        let answer = hand.until("control_response/error").await;
        assert_eq!(answer["response"]["error"], error);
        assert_eq!(answer["response"]["error_code"], code);
    }
    hand.request(json!({"subtype": "end_session"})).await;
    assert_eq!(hand.agent.exit().await, Exit::Code(0));
}

#[tokio::test(start_paused = true)]
async fn replies_outcomes_and_gates() {
    let gates = Gates::default();
    let replies = [
        Reply::tool("Lookup", json!({"key": 1})).result("found"),
        Reply::new()
            .hold("done")
            .step(Step::Think("hm".to_owned()))
            .and_say("done"),
    ];
    let builder = Agent::builder()
        .gates(&gates)
        .replies(replies)
        .tool("Lookup", |_| ToolOutcome::error("not to be called"))
        .allowed_tools(["Lookup"]);
    let mut hand = Hand::ready(builder).await;
    hand.prompt("go").await;
    let user = hand.until("user").await;
    assert_eq!(user["message"]["content"][0]["content"], "found");
    let gate = gates.gate("done");
    gate.arrival().await;
    assert!(!hand.kinds().contains(&"result/success".to_owned()));
    gate.open();
    assert_eq!(hand.until("result/success").await["result"], "done");
    assert_eq!(hand.end().await.0, Exit::Code(0));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_it_cannot_give_is_an_error_and_a_flaw() {
    let replies = [Reply::say("a").step(Step::Truncated)];
    let mut hand = Hand::ready(Agent::builder().replies(replies)).await;
    hand.prompt("go").await;
    let result = hand.until("result/success").await;
    let told = "the simulator cannot play `truncated`";
    assert!(result["result"].as_str().unwrap().contains(told), "{result}");
    let flaws = hand.agent.report().flaws;
    assert!(flaws[0].to_string().contains(told), "{flaws:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_conversation_gives_the_same_lines() {
    let mut lines = Vec::new();
    for _ in 0..2 {
        let mut hand = Hand::ready(Agent::builder().seed(9)).await;
        hand.prompt("%tool Bash {\"command\":\"echo hi\"}\n%say done")
            .await;
        hand.until("result/success").await;
        let report = hand.agent.report();
        lines.push(report.sent().cloned().collect::<Vec<Value>>());
    }
    assert_eq!(lines[0], lines[1]);
}

#[tokio::test]
async fn real_tools() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Agent::builder()
        .cwd(directory.path())
        .real_tools(true)
        .permission_mode("bypassPermissions");
    let mut hand = Hand::ready(builder).await;
    hand.prompt(
        "%tool Write {\"file_path\": \"w.txt\", \"content\": \"hello\\n\"}\n\
         %tool Bash {\"command\": \"cat w.txt && exit 3\"}\n%tool Read {\"file_path\": \"w.txt\"}\n%say done",
    )
    .await;
    for expected in [
        "File created successfully at: ",
        "Exit code 3\nhello",
        "1\thello\n2\t",
    ] {
        let user = hand.until("user").await;
        let content = user["message"]["content"][0]["content"].as_str().unwrap();
        assert!(content.starts_with(expected), "{content}");
    }
    assert_eq!(hand.end().await.0, Exit::Code(0));
    assert_eq!(
        std::fs::read_to_string(directory.path().join("w.txt")).unwrap(),
        "hello\n"
    );
}
