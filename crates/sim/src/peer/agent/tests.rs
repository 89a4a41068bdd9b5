//! Conversations by hand; the sequences are those that the CLI wrote in the same conversation.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};

use super::*;
use crate::peer::Signal;

mod commands;
mod controls;
mod hooks;
mod mcp;
mod people;
mod pipes;
mod results;
mod sessions;
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
        assert_eq!(answer["response"]["response"]["claude_code_version"], "2.1.330");
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
    assert_eq!(result["total_cost_usd"], 0.00014);
    assert_eq!(result["num_turns"], 1);
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(kinds, ["system/init", "assistant", "result/success"]);
}

#[tokio::test(start_paused = true)]
async fn perm_allow() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("{TOUCH}\n%say done")).await;
    let question = hand.until("control_request/can_use_tool").await;
    assert_eq!(
        question["request"]["permission_suggestions"],
        json!([
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch a.txt"}], "behavior": "allow",
                "destination": "localSettings"},
            {"type": "addDirectories", "directories": ["/home/user/project"], "destination": "session"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        ])
    );
    assert_eq!(question["request"]["blocked_path"], "/home/user/project/a.txt");
    hand.answer(
        &question,
        json!({"behavior": "allow", "updatedInput": question["request"]["input"]}),
    )
    .await;
    let result = hand.until("result/success").await;
    assert_eq!(
        (&result["num_turns"], &result["result"]),
        (&json!(2), &json!("done"))
    );
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "control_request/can_use_tool",
            "user",
            "assistant",
            "result/success"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn perm_deny_interrupt() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("{TOUCH}\n%say must not be reached")).await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(
        &question,
        json!({"behavior": "deny", "message": "no", "interrupt": true}),
    )
    .await;
    let result = hand.until("result/error_during_execution").await;
    assert_eq!(result["terminal_reason"], "aborted_tools");
    assert_eq!(result["num_turns"], 3);
    assert_eq!(result["stop_reason"], "tool_use");
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
    hand.prompt("%say second turn works").await;
    let result = hand.until("result/success").await;
    assert_eq!(result["result"], "second turn works");
    assert_eq!(result["result_index"], 1);
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "control_request/can_use_tool",
            "user",
            "user",
            "result/error_during_execution",
            "system/init",
            "assistant",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn deny_and_wrong_answers() {
    let mut hand = Hand::ready(Agent::builder()).await;
    for (answer, text) in [
        (json!({"behavior": "deny", "message": "not today"}), "not today"),
        (
            json!({"behavior": "deny"}),
            "The canUseTool callback returned an invalid",
        ),
        (
            json!({"allowed": true}),
            "The canUseTool callback returned an invalid",
        ),
        (
            json!({"behavior": "allow", "updatedInput": null}),
            "The canUseTool callback returned an invalid",
        ),
        (
            json!({"behavior": "allow", "updatedInput": {"command": "echo changed"}}),
            "changed",
        ),
        (
            json!({"behavior": "allow", "updatedInput": {}}),
            "(Bash completed with no output)",
        ),
    ] {
        hand.prompt(&format!("{TOUCH}\n%say after")).await;
        let question = hand.until("control_request/can_use_tool").await;
        hand.answer(&question, answer).await;
        let user = hand.until("user").await;
        let content = user["message"]["content"][0]["content"].as_str().unwrap();
        assert!(content.starts_with(text), "{content}");
        assert_eq!(hand.until("result/success").await["result"], "after");
    }
    let (exit, _) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
}

const SLOW_THEN_TOOL: &str = "%slow 100 chunk=4\n%say word word word word word word word word word word word \n\
     %+tool Bash {\"command\":\"sleep 1\",\"description\":\"x\"}\n%say end of first";

#[tokio::test(start_paused = true)]
async fn queue_two_at_once_during_turn() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(SLOW_THEN_TOOL).await;
    hand.until("system/init").await;
    hand.prompt_with("%say queued A", uuid(1)).await;
    hand.prompt_with("%say queued B", uuid(2)).await;
    let result = hand.until("result/success").await;
    assert_eq!(result["result"], "end of first");
    assert_eq!(result["user_message_uuid"], uuid(2)["uuid"]);
    assert_eq!(
        result["user_message_uuids"],
        json!([uuid(1)["uuid"], uuid(2)["uuid"]])
    );
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "command_lifecycle/queued",
            "command_lifecycle/queued",
            "assistant",
            "assistant",
            "user",
            "command_lifecycle/started",
            "command_lifecycle/started",
            "assistant",
            "command_lifecycle/completed",
            "command_lifecycle/completed",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn queue_three_at_once() {
    let mut hand = Hand::ready(Agent::builder()).await;
    for (n, text) in ["%say one", "%say two", "%say three"].into_iter().enumerate() {
        hand.prompt_with(text, uuid(n as u32)).await;
    }
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "command_lifecycle/queued",
            "command_lifecycle/started",
            "command_lifecycle/queued",
            "command_lifecycle/queued",
            "system/init",
            "assistant",
            "result/success",
            "command_lifecycle/completed",
            "command_lifecycle/started",
            "command_lifecycle/started",
            "system/init",
            "assistant",
            "result/success",
            "command_lifecycle/completed",
            "command_lifecycle/completed",
        ]
    );
}

const SLOW: &str =
    "%slow 150 chunk=4\n%say word word word word word word word word word word word word word word word";

#[tokio::test(start_paused = true)]
async fn interrupt_with_queue() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt_with(SLOW, uuid(1)).await;
    hand.until("system/init").await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    hand.prompt_with("%say queued 1", uuid(2)).await;
    hand.prompt_with("%say queued 2", uuid(3)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    hand.request(json!({"subtype": "interrupt"})).await;
    let receipt = hand.until("control_response/success").await;
    assert_eq!(
        receipt["response"]["response"],
        json!({"still_queued": [uuid(2)["uuid"], uuid(3)["uuid"]]})
    );
    let aborted = hand.next().await;
    assert_eq!(aborted["aborted"], true);
    let result = hand.until("result/error_during_execution").await;
    assert_eq!(result["terminal_reason"], "aborted_streaming");
    assert_eq!(
        result["errors"],
        json!(["[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null"])
    );
    assert_eq!(
        (&result["stop_reason"], &result["num_turns"]),
        (&Value::Null, &json!(2))
    );
    assert_eq!(hand.until("result/success").await["result"], "queued 2");
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "command_lifecycle/queued",
            "command_lifecycle/started",
            "system/init",
            "command_lifecycle/queued",
            "command_lifecycle/queued",
            "control_response/success",
            "assistant",
            "user",
            "result/error_during_execution",
            "command_lifecycle/cancelled",
            "command_lifecycle/started",
            "command_lifecycle/started",
            "system/init",
            "assistant",
            "result/success",
            "command_lifecycle/completed",
            "command_lifecycle/completed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn interrupt_cancels_the_queue_when_asked() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt_with(SLOW, uuid(1)).await;
    hand.until("system/init").await;
    hand.prompt_with("%say queued 1", uuid(2)).await;
    hand.request(json!({"subtype": "interrupt", "cancel_queued": true}))
        .await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(1), "the last result was an error");
    assert_eq!(
        kinds[3..],
        [
            "command_lifecycle/queued",
            "command_lifecycle/cancelled",
            "control_response/success",
            "user",
            "result/error_during_execution",
            "command_lifecycle/cancelled",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn interrupt_at_once() {
    let mut hand = Hand::ready(Agent::builder()).await;
    let prompt =
        json!({"type": "user", "message": {"role": "user", "content": "%say one"}, "uuid": uuid(1)["uuid"]});
    let interrupt =
        json!({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}});
    hand.write(&format!("{prompt}\n{interrupt}")).await;
    let receipt = hand.until("control_response/success").await;
    assert_eq!(
        receipt["response"]["response"],
        json!({"still_queued": [uuid(1)["uuid"]]})
    );
    hand.until("result/error_during_execution").await;
    hand.prompt("%say two").await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "command_lifecycle/queued",
            "control_response/success",
            "command_lifecycle/started",
            "system/init",
            "user",
            "result/error_during_execution",
            "command_lifecycle/cancelled",
            "system/init",
            "assistant",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn interrupt_during_permission() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("{TOUCH}\n%say must not be reached")).await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.request(json!({"subtype": "interrupt"})).await;
    let cancel = hand.next().await;
    assert_eq!(cancel["request_id"], question["request_id"]);
    hand.until("result/error_during_execution").await;
    hand.answer(&question, json!({"behavior": "allow"})).await;
    hand.prompt("%say next turn works").await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "control_request/can_use_tool",
            "control_cancel_request",
            "control_response/success",
            "user",
            "user",
            "result/error_during_execution",
            "system/init",
            "assistant",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn queue_priorities() {
    let tail = SLOW_THEN_TOOL.replace("%say end of first", "%slow 100 chunk=4\n%say tail tail tail");
    for (priority, expected) in [
        (
            "now",
            vec![
                "assistant",
                "result/success",
                "command_lifecycle/cancelled",
                "command_lifecycle/started",
                "system/init",
                "assistant",
                "result/success",
                "command_lifecycle/completed",
            ],
        ),
        (
            "bogus",
            vec![
                "assistant",
                "assistant",
                "user",
                "command_lifecycle/started",
                "assistant",
                "command_lifecycle/completed",
                "result/success",
                "command_lifecycle/completed",
            ],
        ),
        (
            "later",
            vec![
                "assistant",
                "assistant",
                "user",
                "assistant",
                "result/success",
                "command_lifecycle/completed",
                "command_lifecycle/started",
                "system/init",
                "assistant",
                "result/success",
                "command_lifecycle/completed",
            ],
        ),
    ] {
        let mut hand = Hand::ready(Agent::builder()).await;
        hand.prompt_with(&tail, uuid(1)).await;
        hand.until("system/init").await;
        tokio::time::sleep(Duration::from_millis(900)).await;
        let mut extra = uuid(2);
        extra["priority"] = json!(priority);
        hand.prompt_with(&format!("%say from {priority}"), extra).await;
        if priority == "now" {
            let result = hand.until("result/success").await;
            assert_eq!(result["terminal_reason"], "aborted_streaming");
            assert_eq!(
                (&result["is_error"], &result["num_turns"]),
                (&json!(false), &json!(1))
            );
            assert!(result["result"].as_str().unwrap().starts_with("word word"));
        }
        let (exit, kinds) = hand.end().await;
        assert_eq!(exit, Exit::Code(0));
        let beginning = [
            "command_lifecycle/queued",
            "command_lifecycle/started",
            "system/init",
            "command_lifecycle/queued",
        ];
        assert_eq!(kinds, [&beginning[..], &expected].concat(), "{priority}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_should_query_and_duplicates() {
    let mut hand = Hand::ready(Agent::builder()).await;
    let mut silent = uuid(1);
    silent["shouldQuery"] = json!(false);
    hand.prompt_with("remember this", silent).await;
    let result = hand.until("result/success").await;
    assert_eq!(
        (&result["num_turns"], result.get("terminal_reason")),
        (&json!(0), None)
    );
    hand.prompt_with(SLOW, uuid(2)).await;
    hand.prompt_with("%say x", uuid(3)).await;
    hand.prompt_with("%say again", uuid(2)).await;
    hand.request(json!({"subtype": "cancel_async_message", "message_uuid": uuid(3)["uuid"]}))
        .await;
    hand.until("command_lifecycle/cancelled").await;
    let answer = hand.next().await;
    assert_eq!(
        answer["response"]["response"],
        json!({"cancelled": true, "message_uuid": uuid(3)["uuid"]})
    );
    let (_, kinds) = hand.end().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "result/success").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn background_bash_state_events_sdk_reads() {
    let mut hand = Hand::ready(Agent::builder().sdk_reads_session_state()).await;
    hand.prompt(&format!(
        "%tool Bash {{\"command\":\"sleep 2\",\"description\":\"bg\",\"run_in_background\":true}}\n{TOUCH}\n%say started\n\
         %say it finished"
    ))
    .await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(&question, json!({"behavior": "allow"})).await;
    assert_eq!(hand.until("result/success").await["result"], "started");
    let second = hand.until("result/success").await;
    assert_eq!(second["result"], "it finished");
    assert_eq!(second["origin"]["kind"], "task-notification");
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/session_state_changed",
            "system/init",
            "assistant",
            "system/background_tasks_changed",
            "system/task_started",
            "user",
            "assistant",
            "system/session_state_changed",
            "control_request/can_use_tool",
            "system/session_state_changed",
            "user",
            "assistant",
            "result/success",
            "system/session_state_changed",
            "system/task_updated",
            "system/task_notification",
            "system/background_tasks_changed",
            "system/session_state_changed",
            "system/init",
            "assistant",
            "result/success",
            "system/session_state_changed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn background_tasks_control() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(
        "%tool Bash {\"command\":\"echo fg; sleep 30\",\"description\":\"fg\"}\n%say moved on\n%say stopped",
    )
    .await;
    let started = hand.until("system/task_started").await;
    let id = started["task_id"].clone();
    hand.request(json!({"subtype": "background_tasks"})).await;
    hand.until("result/success").await;
    hand.request(json!({"subtype": "get_task_output", "task_id": id}))
        .await;
    let output = hand.until("control_response/success").await;
    assert_eq!(output["response"]["response"]["output"], "fg\n");
    hand.request(json!({"subtype": "stop_task", "task_id": id})).await;
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    assert_eq!(
        kinds,
        [
            "system/init",
            "assistant",
            "system/task_started",
            "system/background_tasks_changed",
            "system/task_updated",
            "control_response/success",
            "user",
            "assistant",
            "result/success",
            "control_response/success",
            "system/task_updated",
            "system/task_notification",
            "system/background_tasks_changed",
            "control_response/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn partial_messages() {
    let mut hand = Hand::ready(Agent::builder().partial_messages(true)).await;
    hand.prompt(
        "%think let me see\n%+say I will list files.\n%+tool Bash {\"command\":\"touch made-by-tool\",\
         \"description\":\"touch\"}\n%say done",
    )
    .await;
    let question = hand.until("control_request/can_use_tool").await;
    hand.answer(&question, json!({"behavior": "allow"})).await;
    let result = hand.until("result/success").await;
    assert_eq!(
        result["begun_message_ids"],
        json!(["msg_sim_0001", "msg_sim_0002"])
    );
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(0));
    let (start, delta, stop) = (
        "stream_event/content_block_start",
        "stream_event/content_block_delta",
        "stream_event/content_block_stop",
    );
    let deltas = "stream_event/content_block_deltas";
    let thought = "system/thinking_tokens";
    assert_eq!(
        squeezed(kinds),
        [
            "system/init",
            "system/status",
            "stream_event/message_start",
            start,
            thought,
            delta,
            thought,
            delta,
            thought,
            deltas,
            "assistant",
            stop,
            start,
            deltas,
            "assistant",
            stop,
            start,
            deltas,
            "assistant",
            stop,
            "stream_event/message_delta",
            "control_request/can_use_tool",
            "stream_event/message_stop",
            "user",
            "system/status",
            "stream_event/message_start",
            start,
            deltas,
            "assistant",
            stop,
            "stream_event/message_delta",
            "stream_event/message_stop",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn interrupted_stream_is_closed() {
    let mut hand = Hand::ready(Agent::builder().partial_messages(true)).await;
    hand.prompt(SLOW).await;
    hand.until("stream_event/content_block_delta").await;
    hand.request(json!({"subtype": "interrupt"})).await;
    let stop = hand.until("stream_event/message_stop").await;
    assert_eq!(
        stop["abandoned_blocks"],
        json!({"api_message_id": "msg_sim_0001", "from_block_index": 1})
    );
    let (exit, kinds) = hand.end().await;
    assert_eq!(exit, Exit::Code(1));
    assert_eq!(
        kinds[5..],
        [
            "control_response/success",
            "assistant",
            "user",
            "stream_event/content_block_stop",
            "stream_event/message_delta",
            "stream_event/message_stop",
            "result/error_during_execution",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn api_errors() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt("%error 529\n%say recovered").await;
    let retry = hand.until("system/api_retry").await;
    assert_eq!(
        (&retry["error_status"], &retry["error"]),
        (&json!(529), &json!("overloaded"))
    );
    assert_eq!(hand.until("result/success").await["result"], "recovered");
    hand.prompt("%error 400 n=99 msg=\"bad request\"\n%say never")
        .await;
    let assistant = hand.until("assistant").await;
    assert_eq!(
        (&assistant["message"]["model"], &assistant["error"]),
        (&json!("<synthetic>"), &json!("unknown"))
    );
    let result = hand.next().await;
    assert_eq!(result["result"], "API Error: 400 bad request");
    assert_eq!(result["is_error"], true);
    assert_eq!(result["api_error_status"], 400);
    assert_eq!(result["terminal_reason"], "api_error");
    let (exit, _) = hand.end().await;
    assert_eq!(exit, Exit::Code(1));
}

#[tokio::test(start_paused = true)]
async fn bad_input_ends_it() {
    for (line, complaint) in [
        (
            "this is not json",
            "Error parsing streaming input line (type=unknown, 16 chars): SyntaxError",
        ),
        (
            "{\"type\":\"user\",\"message\":",
            "Error parsing streaming input line (type=user, 25 chars): SyntaxError",
        ),
        (
            "{\"type\":\"user\"}",
            "Error: Expected message role 'user', got 'undefined'",
        ),
        (
            "{\"type\":\"user\",\"message\":{\"role\":\"assistant\",\"content\":\"hi\"}}",
            "Error: Expected message role 'user', got 'assistant'",
        ),
        (
            "{\"type\":\"control_request\"}",
            "Error: Missing request on control_request",
        ),
    ] {
        let mut hand = Hand::ready(Agent::builder()).await;
        hand.write(line).await;
        assert_eq!(hand.agent.exit().await, Exit::Code(1));
        assert_eq!(hand.stderr.next_line().await.unwrap().unwrap(), complaint);
    }
    let mut hand = Hand::ready(Agent::builder()).await;
    for line in [
        "[]",
        "42",
        "{}",
        "",
        "   ",
        "{\"type\":\"system\",\"subtype\":\"x\"}",
        "{\"type\":\"keep_alive\"}",
    ] {
        hand.write(line).await;
    }
    hand.prompt("%say got \u{1F600}").await;
    assert_eq!(hand.end().await.0, Exit::Code(0));
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
async fn end_of_input_and_signals() {
    // The turn finishes, and a question that is open becomes an error.
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(&format!("{TOUCH}\n%say after")).await;
    hand.until("control_request/can_use_tool").await;
    hand.stdin = None;
    let user = hand.until("user").await;
    let content = user["message"]["content"][0]["content"].as_str().unwrap();
    assert!(
        content.contains("stream closed before response received"),
        "{content}"
    );
    assert_eq!(hand.end().await.0, Exit::Code(0));

    for (signal, exit) in [
        (Signal::Term, Exit::Code(143)),
        (Signal::Hup, Exit::Code(129)),
        (Signal::Kill, Exit::Signal(9)),
        (Signal::Int, Exit::Code(0)),
    ] {
        let mut hand = Hand::ready(Agent::builder()).await;
        hand.prompt(SLOW).await;
        hand.until("system/init").await;
        hand.agent.signal(signal);
        assert_eq!(hand.agent.exit().await, exit);
        let wrote_result = hand.kinds().contains(&"result/error_during_execution".to_owned());
        assert_eq!(wrote_result, signal == Signal::Int);
    }

    let mut hand = Hand::ready(Agent::builder()).await;
    hand.prompt(SLOW).await;
    hand.until("system/init").await;
    hand.request(json!({"subtype": "end_session"})).await;
    assert_eq!(hand.agent.exit().await, Exit::Code(1));
}

#[tokio::test(start_paused = true)]
async fn replies_outcomes_and_gates() {
    let gate = Gate::new();
    let replies = [
        Reply::tool("Lookup", json!({"key": 1})).outcome(Outcome::text("found")),
        Reply::think("hm").and_say("done").after(&gate),
    ];
    let builder = Agent::builder()
        .replies(replies)
        .tool("Lookup", |_| Outcome::error("not to be called"))
        .allowed_tools(["Lookup"]);
    let mut hand = Hand::ready(builder).await;
    hand.prompt("go").await;
    let user = hand.until("user").await;
    assert_eq!(user["message"]["content"][0]["content"], "found");
    gate.reached().await;
    assert!(!hand.kinds().contains(&"result/success".to_owned()));
    gate.open();
    assert_eq!(hand.until("result/success").await["result"], "done");
    assert_eq!(hand.end().await.0, Exit::Code(0));
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
