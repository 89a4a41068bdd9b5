//! The peer: writes what it is told to, and watches what it is sent.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use outrigger::options::{Auth, Secret};
use outrigger::permissions::PermissionResult;
use outrigger::transport::{BoxFuture, Exit, Pipes, Process, Signal};
use outrigger::{Agent, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Input;

/// Ids of requests, so few that they come again.
const IDS: u8 = 6;

/// How much a pipe holds, in bytes.
const PIPE: usize = 16 * 1024;

type Stdout = Arc<tokio::sync::Mutex<Option<DuplexStream>>>;

pub(super) struct Peer {
    seen: Arc<Mutex<Seen>>,
    stdout: Stdout,
    exit: watch::Sender<Option<Exit>>,
    /// Whether it reads its stdin.
    reads: watch::Sender<bool>,
}

/// What it saw and did.
#[derive(Default)]
pub(super) struct Seen {
    /// The ids of prompts, in the order in which they came.
    prompts: Vec<String>,
    /// Those that it said something about that gives them a turn.
    pub(super) named: HashSet<String>,
    /// The ids of the client's requests.
    requests: Vec<String>,
    /// Its own questions, by id.
    questions: HashMap<String, Question>,
    results: usize,
    /// How many results it had sent when it first said something of the life of a prompt.
    results_before_life: Option<usize>,
    /// Whether the line that it writes has begun with anything at all: what follows is part of that.
    in_line: bool,
    /// Whether it ever wrote anything at all, which might have been a question, too.
    raw: bool,
}

#[derive(Default)]
struct Question {
    /// Whether it was asked so that it could not be understood.
    garbled: bool,
    asked: usize,
    withdrawn: usize,
    answered: usize,
}

struct Life {
    ended: watch::Receiver<Option<Exit>>,
    exit: watch::Sender<Option<Exit>>,
    /// Whether it lives on when it is asked to end.
    stubborn: bool,
}

impl Process for Life {
    fn id(&self) -> Option<u32> {
        None
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            let ended = self.ended.wait_for(Option::is_some).await;
            Ok(ended.ok().and_then(|exit| *exit).unwrap_or_default())
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if signal == Signal::Kill || !self.stubborn {
            let number = if signal == Signal::Kill { 9 } else { 15 };
            self.exit.send_if_modified(|exit| {
                let first = exit.is_none();
                exit.get_or_insert(Exit::with_signal(number));
                first
            });
        }
        Ok(())
    }
}

impl Peer {
    /// A peer, and options that reach it.
    pub(super) fn new(kind: u8) -> (Self, Options) {
        let (stdin, peer_stdin) = tokio::io::duplex(PIPE);
        let (peer_stdout, stdout) = tokio::io::duplex(PIPE);
        let (exit, ended) = watch::channel(None);
        let (reads, reading) = watch::channel(true);
        let peer = Self {
            seen: Arc::default(),
            stdout: Arc::new(tokio::sync::Mutex::new(Some(peer_stdout))),
            exit: exit.clone(),
            reads,
        };
        let stubborn = kind & 1 != 0;
        let life = Life {
            ended: ended.clone(),
            exit: exit.clone(),
            stubborn,
        };
        let options = Agent::builder()
            .auth(Auth::ApiKey(Secret::new("simulated")))
            .cli_path("/nowhere/claude")
            .cwd("/")
            .max_line_bytes(8 * 1024_usize)
            .buffer_bytes(if kind & 2 == 0 { 64 * 1024 * 1024 } else { 4 * 1024 })
            .can_use_tool(|request| async move {
                let wait = request.call_id().parse().unwrap_or(0);
                sleep(Duration::from_millis(wait)).await;
                PermissionResult::allow()
            })
            .transport(Pipes::with_process(stdin, stdout, None, life));
        let listener = Listener {
            seen: Arc::clone(&peer.seen),
            stdout: Arc::clone(&peer.stdout),
            exit,
            stubborn,
            lifecycle: kind & 4 == 0,
        };
        tokio::spawn(listener.listen(peer_stdin, reading, ended));
        (peer, options)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("nobody panics with it")
    }

    pub(super) fn was_named(&self, prompt: &str) -> bool {
        self.seen().named.contains(prompt)
    }

    /// Whether it had said nothing of the life of any prompt when it sent this result, so that whose that was could only be
    /// guessed.
    pub(super) fn was_silent_at(&self, result: &str) -> bool {
        let number = result
            .strip_prefix("result ")
            .and_then(|number| number.parse().ok());
        let seen = self.seen();
        number.is_some_and(|number: usize| seen.results_before_life.is_none_or(|before| number <= before))
    }

    async fn write(&self, bytes: &[u8]) {
        write(&self.stdout, bytes).await;
    }

    async fn send(&self, line: Value) {
        self.seen().in_line = false;
        self.write(format!("{line}\n").as_bytes()).await;
    }

    /// One of the client's prompts, or one that it does not know.
    fn prompt(&self, which: u8) -> String {
        let seen = self.seen();
        match seen.prompts.len() {
            0 => "nobody".to_owned(),
            _ if which == 255 => "nobody".to_owned(),
            length => seen.prompts[usize::from(which) % length].clone(),
        }
    }

    /// Says of a prompt that it gets a turn.
    fn name(&self, prompt: &str) {
        self.seen().named.insert(prompt.to_owned());
    }

    pub(super) async fn step(&self, step: u8, input: &mut Input<'_>) {
        match step % 16 {
            0 => {
                let prompt = self.prompt(input.byte());
                let states = [
                    "queued",
                    "started",
                    "completed",
                    "cancelled",
                    "discarded",
                    "refused",
                    "novel",
                ];
                let state = states[usize::from(input.byte()) % states.len()];
                if state == "started" {
                    self.name(&prompt);
                }
                {
                    let mut seen = self.seen();
                    let results = seen.results;
                    // What goes on a line that has begun with something else is not read as that.
                    if !seen.in_line {
                        seen.results_before_life.get_or_insert(results);
                    }
                }
                self.send(json!({"type": "command_lifecycle", "command_uuid": prompt, "state": state, "uuid": "l", "session_id": "s"}))
                    .await;
            }
            1 => {
                let mut init = json!({"type": "system", "subtype": "init", "session_id": "s", "apiKeySource": "ANTHROPIC_API_KEY"});
                self.stamp(&mut init, input);
                self.send(init).await;
            }
            2 => {
                let text = {
                    let mut seen = self.seen();
                    seen.results += 1;
                    format!("result {}", seen.results)
                };
                let kind = input.byte();
                let (subtype, is_error, reason) = match kind % 4 {
                    0 | 1 => ("success", false, "completed"),
                    2 => ("success", false, "aborted_streaming"),
                    _ => ("error_during_execution", true, "aborted_tools"),
                };
                let mut result = json!({"type": "result", "subtype": subtype, "is_error": is_error, "result": text, "num_turns": 1,
                    "terminal_reason": reason, "session_id": "s", "total_cost_usd": 0.5});
                match kind / 4 % 3 {
                    0 => {}
                    1 => result["origin"] = json!({"kind": "human"}),
                    _ => result["origin"] = json!({"kind": "task-notification"}),
                }
                self.stamp(&mut result, input);
                self.send(result).await;
            }
            3 => {
                let mut said = json!({"type": "assistant", "session_id": "s", "parent_tool_use_id": null, "message":
                    {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [{"type": "text", "text": "said"}]}});
                let kind = input.byte();
                if kind & 1 != 0 {
                    said["parent_tool_use_id"] = json!(format!("tool{}", kind % 3));
                }
                if kind & 2 != 0 {
                    said["message"]["content"] =
                        json!([{"type": "tool_use", "id": "tool1", "name": "Agent", "input": {}}]);
                }
                self.stamp(&mut said, input);
                self.send(said).await;
            }
            4 => {
                self.send(json!({"type": "stream_event", "session_id": "s", "parent_tool_use_id": null, "event":
                    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x".repeat(usize::from(input.byte()))}}}))
                    .await;
            }
            5 => self.ask(input).await,
            6 => {
                let id = (input.byte() % IDS).to_string();
                let withdraws = {
                    let mut seen = self.seen();
                    let question = seen.questions.entry(id.clone()).or_default();
                    question.withdrawn += 1;
                    json!({"type": "control_cancel_request", "request_id": id})
                };
                self.send(withdraws).await;
            }
            7 => {
                let id = {
                    let seen = self.seen();
                    let which = usize::from(input.byte());
                    seen.requests.get(which % seen.requests.len().max(1)).cloned()
                };
                let id = id.unwrap_or_else(|| "unasked".to_owned());
                let response = match input.byte() % 6 {
                    0 => json!({"subtype": "success", "request_id": id}),
                    1 => {
                        json!({"subtype": "success", "request_id": id, "response": {"mcpServers": [], "still_queued": [], "cancelled": true}})
                    }
                    2 => {
                        json!({"subtype": "success", "request_id": id, "response": {"mcpServers": [], "still_queued": [], "cancelled": false}})
                    }
                    3 => json!({"subtype": "error", "request_id": id, "error": "no"}),
                    4 => json!({"subtype": "success", "request_id": id, "response": [1]}),
                    _ => json!({"subtype": "unheard-of", "request_id": id, "response": 7}),
                };
                self.send(json!({"type": "control_response", "response": response}))
                    .await;
            }
            8 => {
                let states = ["idle", "running", "requires_action", "novel"];
                let state = states[usize::from(input.byte()) % states.len()];
                self.send(json!({"type": "system", "subtype": "session_state_changed", "state": state, "session_id": "s"}))
                    .await;
            }
            9 => {
                let kind = input.byte();
                let subtype = [
                    "task_started",
                    "task_progress",
                    "task_updated",
                    "task_notification",
                ][usize::from(kind) % 4];
                let status = ["running", "completed", "failed", "killed"][usize::from(kind) / 4 % 4];
                let task = format!("t{}", kind / 16 % 4);
                let tool = format!("tool{}", kind / 64);
                self.send(json!({"type": "system", "subtype": subtype, "task_id": task, "tool_use_id": tool, "status": status,
                    "task_type": "local_agent", "description": "d", "is_backgrounded": kind & 1 != 0, "session_id": "s"}))
                    .await;
            }
            10 => {
                let length = usize::from(input.byte()) + 1;
                let bytes = input.up_to(length).to_vec();
                {
                    let mut seen = self.seen();
                    seen.raw = true;
                    if let Some(last) = bytes.last() {
                        seen.in_line = *last != b'\n';
                    }
                }
                self.write(&bytes).await;
            }
            11 => {
                self.seen().in_line = false;
                self.write(b"\n").await;
            }
            12 => drop(self.stdout.lock().await.take()),
            13 => {
                let code = i32::from(input.byte());
                self.end(Exit::with_code(code)).await;
            }
            14 => drop(self.reads.send_replace(input.byte().is_multiple_of(2))),
            _ => {
                let length = usize::from(input.byte()) * 64;
                self.send(json!({"type": "novel", "pad": "x".repeat(length)}))
                    .await;
            }
        }
    }

    /// Names prompts in `line`, as the next byte says.
    fn stamp(&self, line: &mut Value, input: &mut Input<'_>) {
        let which = input.byte();
        let prompts = match which % 4 {
            1 => vec![self.prompt(which / 4)],
            2 => vec![self.prompt(which / 4), self.prompt(which / 4 + 1)],
            _ => return,
        };
        for prompt in &prompts {
            self.name(prompt);
        }
        if which % 4 == 1 {
            line["user_message_uuid"] = json!(prompts[0]);
        } else {
            line["user_message_uuids"] = json!(prompts);
        }
    }

    async fn ask(&self, input: &mut Input<'_>) {
        let id = (input.byte() % IDS).to_string();
        {
            let mut seen = self.seen();
            let garbled = seen.in_line;
            let question = seen.questions.entry(id.clone()).or_default();
            question.asked += 1;
            question.garbled |= garbled;
        }
        let kind = input.byte();
        let wait = u64::from(kind / 8) * 10;
        let request = match kind % 8 {
            0..=2 => {
                json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": wait.to_string()})
            }
            3 => json!({"subtype": "can_use_tool", "tool_use_id": wait.to_string()}),
            4 => json!({"subtype": "hook_callback", "callback_id": "c", "input": {}}),
            5 => json!({"subtype": "elicitation", "mcp_server_name": "s", "message": "?"}),
            6 => json!({"subtype": "novel"}),
            _ => json!(null),
        };
        // Numbers are ids, too.
        let wire: Value = if kind & 64 != 0 {
            id.parse::<u8>().unwrap_or(0).into()
        } else {
            id.into()
        };
        self.send(json!({"type": "control_request", "request_id": wire, "request": request}))
            .await;
    }

    async fn end(&self, exit: Exit) {
        drop(self.stdout.lock().await.take());
        self.exit.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert(exit);
            first
        });
    }

    pub(super) fn read_on(&self) {
        self.reads.send_replace(true);
    }

    /// The pipes that a dead process has left open are closed at last.
    pub(super) async fn hang_up(&self) {
        drop(self.stdout.lock().await.take());
    }

    /// What the client has answered is in order. `complete` when it had the time to answer everything.
    pub(super) fn in_order(&self, complete: bool) {
        let seen = self.seen();
        for (id, question) in &seen.questions {
            let Question {
                garbled,
                asked,
                withdrawn,
                answered,
            } = *question;
            assert!(
                seen.raw || answered <= asked,
                "question {id}: asked {asked} times, answered {answered} times"
            );
            if complete && asked == 1 && withdrawn == 0 && !garbled {
                assert_eq!(answered, 1, "question {id} has no answer");
            }
        }
    }

    /// Whether it still speaks and listens.
    pub(super) async fn is_there(&self) -> bool {
        self.exit.borrow().is_none() && self.stdout.lock().await.is_some()
    }
}

async fn write(stdout: &Stdout, bytes: &[u8]) {
    let mut stdout = stdout.lock().await;
    if let Some(pipe) = &mut *stdout {
        // The client always reads, as long as it lives.
        let written = timeout(Duration::from_secs(50), pipe.write_all(bytes)).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(_)) => *stdout = None,
            Err(_) => panic!("the client does not read"),
        }
    }
}

struct Listener {
    seen: Arc<Mutex<Seen>>,
    stdout: Stdout,
    exit: watch::Sender<Option<Exit>>,
    stubborn: bool,
    lifecycle: bool,
}

impl Listener {
    async fn listen(
        self,
        stdin: DuplexStream,
        mut reading: watch::Receiver<bool>,
        mut ended: watch::Receiver<Option<Exit>>,
    ) {
        let mut lines = BufReader::new(stdin).lines();
        loop {
            let line = async {
                // Dropping the peer lets it read on.
                let _ = reading.wait_for(|reads| *reads).await;
                lines.next_line().await
            };
            let line = tokio::select! {
                line = line => line,
                _ = ended.wait_for(Option::is_some) => return,
            };
            let Ok(Some(line)) = line else { break };
            self.on_line(&line).await;
        }
        if !self.stubborn {
            drop(self.stdout.lock().await.take());
            self.exit.send_if_modified(|ended| {
                let first = ended.is_none();
                ended.get_or_insert(Exit::with_code(0));
                first
            });
        } else {
            // It lives on until it is killed, and its pipes with it.
            let _ = ended.wait_for(Option::is_some).await;
        }
    }

    async fn on_line(&self, line: &str) {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let first = {
            let mut seen = self.seen.lock().expect("nobody panics with it");
            match line["type"].as_str() {
                Some("user") => seen.prompts.push(text(&line["uuid"])),
                Some("control_request") => seen.requests.push(text(&line["request_id"])),
                Some("control_cancel_request") => {
                    let id = text(&line["request_id"]);
                    assert!(
                        seen.requests.contains(&id),
                        "a request is withdrawn that was never made"
                    );
                }
                Some("control_response") => {
                    let id = &line["response"]["request_id"];
                    let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
                    let raw = seen.raw;
                    let question = seen.questions.entry(id).or_default();
                    question.answered += 1;
                    assert!(
                        raw || question.answered <= question.asked,
                        "an answer too many: {line}"
                    );
                }
                other => panic!("what is a {other:?}?"),
            }
            line["request"]["subtype"] == "initialize"
        };
        if first {
            let capabilities = if self.lifecycle {
                json!(["msg_lifecycle_v1", "interrupt_cancel_queued_v1"])
            } else {
                json!([])
            };
            let answer = json!({"type": "control_response", "response": {"subtype": "success", "request_id": line["request_id"],
                "response": {"commands": [], "models": [], "capabilities": capabilities,
                             "account": {"apiKeySource": "ANTHROPIC_API_KEY", "tokenSource": "none", "apiProvider": "firstParty"}}}});
            write(&self.stdout, format!("{answer}\n").as_bytes()).await;
        }
    }
}
