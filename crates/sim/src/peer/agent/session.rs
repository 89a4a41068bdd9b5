//! The loop: lines in, turns one after the other, and the end.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::background::{self, Finished};
use super::context::{Abort, AgentState, Context, HostReply, Priority, QueuedPrompt, UNCLASSIFIED};
use super::played::ModelPlayer;
use super::turn::{self, TurnWork};
use super::{Config, control, cost, deferral, delivered, ids, mcp_control, payload, transcript};
use crate::fields::JsonFields as _;
use crate::inject::Wire;
use crate::matcher::prompt_text;
use crate::peer::io::LineReader;
use crate::running::{self, Exit, Log, Signal};

/// How many lines wait for a client that does not read.
const BACKLOG: usize = 256;

/// How long a command that gets SIGTERM may take to write its last output.
const LAST_WORD: Duration = Duration::from_secs(2);

/// How long the commands of agents that have reported may run after the end of the input.
const LAST_COMMANDS: Duration = Duration::from_secs(5);

type RunningTurn = Pin<Box<dyn Future<Output = bool> + Send>>;

struct Session<I> {
    ctx: Arc<Context>,
    stdin: LineReader<I>,
    signals: mpsc::Receiver<Signal>,
    finished: mpsc::Receiver<Finished>,
    turn: Option<(RunningTurn, Vec<QueuedPrompt>)>,
    ended: bool,
    /// What stands for a deferred call, once the host knows that it is about to be taken up.
    announced: Option<QueuedPrompt>,
    /// Exit with this code once the turn is over.
    last: Option<i32>,
    /// Until when agents in the background are waited for, once there is nothing else to do.
    deadline: Option<(Duration, Instant)>,
}

pub(super) async fn run<I, O, E>(
    config: Config,
    brain: ModelPlayer,
    log: Arc<Log>,
    signals: mpsc::Receiver<Signal>,
    stdin: I,
    stdout: O,
    stderr: E,
) -> Exit
where
    I: AsyncRead + Unpin + Send + 'static,
    O: AsyncWrite + Unpin + Send + 'static,
    E: AsyncWrite + Unpin + Send + 'static,
{
    let (out, lines) = mpsc::channel(BACKLOG);
    let (complaints, texts) = mpsc::channel::<Option<String>>(BACKLOG);
    let writer = tokio::spawn(write(lines, stdout, |line| line));
    let complainer = tokio::spawn(write(texts, stderr, |text| format!("{text}\n").into_bytes()));
    let (finish, finished) = mpsc::channel(BACKLOG);
    let ctx = Arc::new(Context::new(config, brain, log, out, complaints, finish));
    let mut session = Session {
        ctx: ctx.clone(),
        stdin: LineReader::new(stdin),
        signals,
        finished,
        turn: None,
        ended: false,
        announced: None,
        last: None,
        deadline: None,
    };
    let complaints = ctx.state().settings.take_complaints();
    for complaint in complaints {
        ctx.complain(complaint).await;
    }
    let exit = match ctx.open() {
        Ok(()) => {
            if ctx.state().mode == "plan" && !ctx.config.mode_given && ctx.state().resumed {
                ctx.send_system("status", json!({"status": null, "permissionMode": "plan"}))
                    .await;
            }
            session.run().await
        }
        Err(failed) => refuse_to_open(&ctx, failed).await,
    };
    drop(session);
    background::stop_all(&ctx);
    // Lines that a script wrote before it ended the process are sent; a killed process writes nothing more.
    let ordered = ctx.exit.borrow().is_some() || ctx.state().exit_after_turn.is_some();
    let killed = matches!(exit, Exit::Signal(_));
    if !killed {
        close(&ctx).await;
    }
    if killed && !ordered {
        writer.abort();
        complainer.abort();
    } else {
        let _ = ctx.out.send(None).await;
        let _ = ctx.complaints.send(None).await;
    }
    let _ = writer.await;
    let _ = complainer.await;
    let flaws = {
        let lines = ctx.log.lock().lines.clone();
        ctx.brain.lock().await.end(&lines)
    };
    for flaw in flaws {
        ctx.log.flaw(flaw);
    }
    exit
}

/// The session to resume does not exist, or a new session has the id of another.
async fn refuse_to_open(ctx: &Context, failed: transcript::LoadFailure) -> Exit {
    ctx.complain(failed.text.clone()).await;
    if failed.told {
        if let Some(id) = failed.session_id {
            ctx.state().session_id = id;
        }
        let mut line = payload::crashed(json!([failed.text]));
        line.put("startup_failure_reason", failed.reason);
        ctx.send_stamped(line).await;
    }
    Exit::Code(1)
}

/// Records the cost of the session, for the process that resumes it.
async fn close(ctx: &Context) {
    let fields = {
        let state = ctx.state();
        let wall = ctx.log.elapsed().as_millis() as u64;
        let api = state.api_time.as_millis() as u64;
        json!({
            "totalCostUSD": cost::total(&state.used), "totalAPIDuration": api, "totalAPIDurationWithoutRetries": api,
            "totalToolDuration": 0, "totalLinesAdded": 0, "totalLinesRemoved": 0, "totalDuration": wall,
            "startTime": ids::wall_ms(Duration::ZERO), "modelUsage": cost::by_model(&state.used),
            "hasUnknownModelCost": false,
        })
    };
    ctx.keep(|transcript| transcript.note("cost-state", fields));
    ctx.send_mirror().await;
}

/// Writes until the end mark. Lines for a client that has gone are dropped, as in the CLI.
async fn write<T, O: AsyncWrite + Unpin>(
    mut lines: mpsc::Receiver<Option<T>>,
    mut to: O,
    bytes: impl Fn(T) -> Vec<u8>,
) {
    let mut gone = false;
    while let Some(Some(line)) = lines.recv().await {
        if !gone {
            let bytes = bytes(line);
            gone = to.write_all(&bytes).await.is_err() || to.flush().await.is_err();
        }
    }
    let _ = to.shutdown().await;
}

impl<I: AsyncRead + Unpin> Session<I> {
    async fn run(&mut self) -> Exit {
        let mut exit = self.ctx.exit.subscribe();
        loop {
            // A fault that ends the process ends its input as well, which is not the client's doing.
            if let Some(exit) = self.ctx.config.wire.as_ref().and_then(Wire::ending) {
                self.ctx.exit.send_replace(Some(exit));
                return exit;
            }
            if self.turn.is_none() {
                if let Some(exit) = self.ctx.state().exit_after_turn {
                    return exit;
                }
                if let Some(code) = self.last {
                    return Exit::Code(code);
                }
                if self.is_deferred() {
                    self.take_up().await;
                    continue;
                }
                if background::take_up(&self.ctx).await {
                    continue;
                }
                if self.waiting() {
                    // The CLI reads what is already there before it begins: an interrupt right after a prompt reaches it.
                    if let Some(exit) = self.take_interrupt().await {
                        return exit;
                    }
                    self.begin().await;
                    continue;
                }
                let is_idle =
                    |state: &AgentState| state.last_aborted || state.tasks.iter().all(|task| !task.runs());
                if self.ended && is_idle(&self.ctx.state()) {
                    background::stop_commands(&self.ctx).await;
                    self.ctx.send_results(true).await;
                    return Exit::Code(i32::from(self.ctx.state().last_is_error));
                }
            }
            let deadline = self.waits_for_tasks();
            let turn = async {
                match &mut self.turn {
                    Some((turn, _)) => turn.await,
                    None => std::future::pending().await,
                }
            };
            let wire = self.ctx.config.wire.clone();
            let broken = async move {
                match wire {
                    Some(wire) => wire.ended().await,
                    None => std::future::pending().await,
                }
            };
            let ordered = async {
                match exit.wait_for(Option::is_some).await.map(|exit| *exit) {
                    Ok(Some(exit)) => exit,
                    // The sender lives as long as the session.
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(signal) = self.signals.recv() => if let Some(exit) = self.signal(signal).await {
                    return exit;
                },
                line = self.stdin.next(), if !self.ended => match line {
                    Some(line) => {
                        if let Some(exit) = self.line(&line).await {
                            return exit;
                        }
                        // Interrupts that came together are answered together.
                        let aborted = self.turn.is_some() && self.ctx.abort.borrow().is_some();
                        if aborted && let Some(exit) = self.take_interrupt().await {
                            return exit;
                        }
                    }
                    None => self.end_of_input().await,
                },
                exit = ordered => return exit,
                _ = broken => {}
                Some(finished) = self.finished.recv() => background::finish(&self.ctx, finished).await,
                cancelled = turn => self.turn_over(cancelled).await,
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    if self.ctx.state().tasks.iter().all(|task| !task.runs() || !task.is_agent()) {
                        background::stop_commands(&self.ctx).await;
                        continue;
                    }
                    let most = self.ctx.config.patience;
                    self.ctx.complain(format!("Background agents were stopped after {most:?}.")).await;
                    background::stop_agents(&self.ctx).await;
                    // Gives them time for their last output.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    }

    /// Until when agents and their commands are waited for, if there is nothing else to wait for.
    fn waits_for_tasks(&mut self) -> Option<Instant> {
        let (alone, has_agents) = {
            let state = self.ctx.state();
            let running: Vec<_> = state.tasks.iter().filter(|task| task.runs()).collect();
            let alone = running.iter().all(|task| task.is_agent() || task.is_owned());
            let has_agents = running.iter().any(|task| task.is_agent());
            (alone && self.ended && self.turn.is_none(), has_agents)
        };
        let most = match has_agents {
            true => self.ctx.config.patience,
            false => LAST_COMMANDS,
        };
        let before = self.deadline.filter(|(before, _)| *before == most);
        self.deadline = alone.then(|| before.unwrap_or_else(|| (most, Instant::now() + most)));
        self.deadline.map(|(_, deadline)| deadline)
    }

    fn waiting(&self) -> bool {
        let state = self.ctx.state();
        !state.queue.is_empty() || !state.wakes.is_empty()
    }

    /// Whether there is a call to take up, of which the hooks are known if that was wanted.
    fn is_deferred(&self) -> bool {
        let state = self.ctx.state();
        state.deferred.is_some() && (state.initialized || !self.ctx.config.await_initialize)
    }

    /// Goes on with the turn that another process began.
    async fn take_up(&mut self) {
        let prompt = match self.announced.take() {
            Some(prompt) => prompt,
            None => deferral::announce(&self.ctx).await,
        };
        let (deferred, abort) = {
            let mut state = self.ctx.state();
            state.running = true;
            (state.deferred.take(), std::mem::take(&mut state.abort_next))
        };
        self.ctx.abort.send_replace(abort.then_some(Abort::Interrupt));
        self.ctx.set_session_state("running").await;
        let work = TurnWork {
            prompts: Vec::new(),
            origin: None,
            deferred,
        };
        self.turn = Some((Box::pin(turn::run(self.ctx.clone(), work)), vec![prompt]));
    }

    /// Handles interrupts that are already there.
    async fn take_interrupt(&mut self) -> Option<Exit> {
        loop {
            let next = {
                let mut next = std::pin::pin!(self.stdin.next());
                poll_fn(|cx| match next.as_mut().poll(cx) {
                    Poll::Ready(line) => Poll::Ready(Some(line)),
                    Poll::Pending => Poll::Ready(None),
                })
                .await
            };
            match next {
                None => return None,
                Some(None) => {
                    self.end_of_input().await;
                    return None;
                }
                Some(Some(line)) => {
                    let json = running::read_json(&line);
                    if json["type"] == "control_request" && json["request"]["subtype"] == "interrupt" {
                        if let Some(exit) = self.line(&line).await {
                            return Some(exit);
                        }
                    } else {
                        self.stdin.put_back(line);
                        return None;
                    }
                }
            }
        }
    }

    /// Begins the next turn.
    async fn begin(&mut self) {
        let (prompts, origin, abort) = {
            let mut state = self.ctx.state();
            let mut prompts: Vec<QueuedPrompt> = Vec::new();
            // What waits together is merged, but `later` prompts keep to themselves, and so do those without a query.
            let first = state
                .queue
                .iter()
                .position(|prompt| prompt.priority != Priority::Later)
                .unwrap_or(0);
            if let Some(prompt) = state.queue.remove(first) {
                let merges = |prompt: &QueuedPrompt| prompt.query && prompt.priority != Priority::Later;
                let merge = merges(&prompt);
                prompts.push(prompt);
                if merge {
                    let queue = std::mem::take(&mut state.queue);
                    let (merged, left): (Vec<QueuedPrompt>, Vec<QueuedPrompt>) =
                        queue.into_iter().partition(merges);
                    prompts.extend(merged);
                    state.queue = left.into();
                }
            }
            let origin = if prompts.is_empty() {
                state.wakes.pop_front()
            } else {
                None
            };
            state.running = true;
            (prompts, origin, std::mem::take(&mut state.abort_next))
        };
        self.ctx.abort.send_replace(abort.then_some(Abort::Interrupt));
        for prompt in &prompts {
            let timestamp = self.ctx.timestamp();
            self.ctx.keep(|transcript| transcript.dequeue(timestamp));
            self.ctx.send_lifecycle(prompt, "started").await;
        }
        self.ctx.set_session_state("running").await;
        let work = TurnWork {
            prompts: prompts.clone(),
            origin,
            deferred: None,
        };
        self.turn = Some((Box::pin(turn::run(self.ctx.clone(), work)), prompts));
    }

    async fn turn_over(&mut self, cancelled: bool) {
        let Some((_, prompts)) = self.turn.take() else {
            return;
        };
        let failed = {
            let mut state = self.ctx.state();
            state.running = false;
            std::mem::take(&mut state.last_failed_at_api)
        };
        let aborted = self.ctx.abort.send_replace(None).is_some();
        let state = if aborted || cancelled || failed {
            "cancelled"
        } else {
            "completed"
        };
        for prompt in &prompts {
            self.ctx.send_lifecycle(prompt, state).await;
        }
        // A prompt that waits goes on at once.
        if !self.waiting() {
            self.ctx.set_session_state("idle").await;
        }
    }

    /// Handles a line from the client. Gives the exit if the session is over.
    async fn line(&mut self, line: &str) -> Option<Exit> {
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        let json = running::parse(line);
        self.ctx.log.add(true, running::read_json(line));
        let is_json = json.as_ref().is_ok_and(|json| !json.is_null());
        let is_initialize = json.as_ref().is_ok_and(|json| {
            json["type"] == "control_request" && json["request"]["subtype"] == "initialize"
        });
        if self.ctx.config.await_initialize && !is_initialize && !self.ctx.state().initialized {
            let what = match is_json {
                true => "a different message",
                false => "not valid JSON",
            };
            let text = format!(
                "Error: --await-initialize requires the initialize control request as the first stdin line, and the first line \
                 is {what}."
            );
            let failed = transcript::LoadFailure {
                told: self.ctx.config.startup_failure_results,
                reason: Some("initialize_not_first"),
                ..transcript::LoadFailure::new(text, None)
            };
            return Some(refuse_to_open(&self.ctx, failed).await);
        }
        if self.ctx.config.await_initialize
            && !self.ctx.state().initialized
            && let Ok(json) = &json
            && let Some(text) = delivered::refusal(&self.ctx.config, &json["request"])
        {
            return Some(self.refuse(text).await);
        }
        let json = match json {
            Ok(Value::Null) | Err(_) => {
                let kind = line
                    .split_once("\"type\":\"")
                    .and_then(|(_, rest)| rest.split_once('"'));
                let (kind, length) = (
                    kind.map_or("unknown", |(kind, _)| kind),
                    line.encode_utf16().count(),
                );
                let text =
                    format!("Error parsing streaming input line (type={kind}, {length} chars): SyntaxError");
                return Some(self.refuse(text).await);
            }
            Ok(json) => json,
        };
        if is_initialize && self.announced.is_none() && self.ctx.state().deferred.is_some() {
            self.announced = Some(deferral::announce(&self.ctx).await);
        }
        match json["type"].as_str() {
            Some("user") => return self.prompt(&json).await,
            Some("control_request") => {
                if !json["request"].is_object() {
                    return Some(self.refuse("Error: Missing request on control_request").await);
                }
                let ends = control::handle(&self.ctx, json.get("request_id"), &json["request"]).await;
                if ends {
                    // In mid-turn the turn is aborted and its result decides.
                    self.last = Some(i32::from(self.turn.is_some()));
                }
            }
            Some("control_response") => {
                // Failures are not replayed.
                if self.ctx.config.replay && json["response"]["subtype"] != "error" {
                    self.ctx.send(json.clone()).await;
                }
                self.answer(&json["response"]);
            }
            Some("control_cancel_request") => mcp_control::cancel(&self.ctx, &json["request_id"]).await,
            Some("update_environment_variables") => take_environment(&self.ctx, &json).await,
            // The CLI ignores unknown messages.
            _ => {}
        }
        None
    }

    async fn refuse(&mut self, text: impl Into<String>) -> Exit {
        self.ctx.complain(text).await;
        Exit::Code(1)
    }

    async fn prompt(&mut self, json: &Value) -> Option<Exit> {
        let role = &json["message"]["role"];
        if role != "user" {
            let role = match role {
                Value::Null => "undefined".to_owned(),
                Value::String(role) => role.clone(),
                other => other.to_string(),
            };
            return Some(
                self.refuse(format!("Error: Expected message role 'user', got '{role}'"))
                    .await,
            );
        }
        let prompt = QueuedPrompt {
            uuid: json["uuid"].as_str().map(str::to_owned),
            text: prompt_text(json),
            message: json["message"].clone(),
            priority: match json["priority"].as_str() {
                Some("now") => Priority::Now,
                Some("later") => Priority::Later,
                _ => Priority::Next,
            },
            origin: match json["isSynthetic"] == true {
                true => Some(UNCLASSIFIED),
                false => (json["origin"]["kind"] == "human").then_some("human"),
            },
            query: json["shouldQuery"] != false,
            composed: json["client_composed"] == true,
        };
        if let Some(uuid) = &prompt.uuid
            && !self.ctx.state().seen.insert(uuid.clone())
        {
            // Sent before: dropped without a word.
            return None;
        }
        let is_past = prompt
            .uuid
            .as_ref()
            .is_some_and(|uuid| self.ctx.state().past.contains(uuid));
        if is_past {
            // The resumed session has this prompt already.
            self.ctx.send_lifecycle(&prompt, "completed").await;
            return None;
        }
        if self.ctx.is_parked() {
            let why = "not_claimed: this process was started with --await-claim and has not been claimed; send claim_session \
                       before the first message";
            self.ctx
                .send_stamped(json!({
                    "type": "result", "subtype": "error_during_execution", "is_error": true, "errors": [why],
                    "num_turns": 0, "duration_ms": 0, "duration_api_ms": 0, "total_cost_usd": 0, "usage": {},
                    "modelUsage": {}, "permission_denials": [],
                }))
                .await;
            self.ctx.send_lifecycle(&prompt, "completed").await;
            return None;
        }
        let timestamp = self.ctx.timestamp();
        self.ctx
            .keep(|transcript| transcript.enqueue(&prompt.text, timestamp));
        let at_once = prompt.priority == Priority::Now && self.turn.is_some();
        if at_once {
            self.ctx.abort_turn(Abort::Displaced).await;
        }
        if self.turn.is_none() {
            self.ctx.set_session_state("running").await;
        }
        self.ctx.send_lifecycle(&prompt, "queued").await;
        if at_once {
            self.ctx.state().queue.push_front(prompt);
        } else {
            self.ctx.state().queue.push_back(prompt);
        }
        None
    }

    /// An answer to a request of ours. One that nobody waits for is ignored.
    fn answer(&self, response: &Value) {
        let Some(id) = response["request_id"].as_str() else {
            return;
        };
        let Some(waiting) = self.ctx.state().pending.remove(id) else {
            return;
        };
        let answer = if response["subtype"] == "error" {
            HostReply::Error(response["error"].as_str().unwrap_or_default().to_owned())
        } else {
            HostReply::Success(response["response"].clone())
        };
        let _ = waiting.sender.send(answer);
    }

    async fn end_of_input(&mut self) {
        self.ended = true;
        let pending = {
            let mut state = self.ctx.state();
            state.closed = true;
            std::mem::take(&mut state.pending)
        };
        for waiting in pending.into_values() {
            let _ = waiting.sender.send(HostReply::Closed);
        }
    }

    async fn signal(&mut self, signal: Signal) -> Option<Exit> {
        match signal {
            Signal::Term if self.ctx.config.wire.as_ref().is_some_and(Wire::ignores_term) => None,
            Signal::Term if self.turn.is_some() && self.ctx.state().commands > 0 => {
                // The result of the command is reported before the end.
                self.ctx.terminating.send_replace(true);
                let ctx = self.ctx.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(LAST_WORD).await;
                    ctx.exit.send_replace(Some(Exit::Code(143)));
                });
                None
            }
            Signal::Term => {
                background::terminate(&self.ctx).await;
                Some(Exit::Code(143))
            }
            Signal::Hup => Some(Exit::Code(129)),
            Signal::Kill => Some(Exit::Signal(9)),
            Signal::Int if self.turn.is_none() => Some(Exit::Code(0)),
            Signal::Int => {
                self.ctx.abort_turn(Abort::Signal).await;
                self.last = Some(0);
                None
            }
        }
    }
}

/// Takes in variables for the commands that follow.
async fn take_environment(ctx: &Context, json: &Value) {
    let variables = json["variables"].as_object().into_iter().flatten();
    let mut applied = Vec::new();
    for (name, value) in variables.filter(|(name, _)| CHANGEABLE.contains(&name.as_str())) {
        if let Some(value) = value.as_str() {
            applied.push(name);
            ctx.state().environment.insert(name.clone(), value.to_owned());
        }
    }
    if let Some(id) = json.get("request_id") {
        ctx.send(success(Some(id), Some(json!({"applied": applied}))))
            .await;
    }
}

/// The variables that a host may change while the process runs; others are ignored.
const CHANGEABLE: &[&str] = &["CLAUDE_CODE_SESSION_ACCESS_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

/// A `control_response` with a payload.
pub(super) fn success(request_id: Option<&Value>, payload: Option<Value>) -> Value {
    let mut response = json!({"subtype": "success"});
    response.put("request_id", request_id);
    response.put("response", payload);
    json!({"type": "control_response", "response": response})
}

/// A `control_response` with an error, and its code if it has one.
pub(super) fn failure(request_id: Option<&Value>, error: &str, code: Option<&str>) -> Value {
    let mut response = json!({"subtype": "error", "error": error});
    response.put("request_id", request_id);
    response.put("error_code", code);
    json!({"type": "control_response", "response": response})
}
