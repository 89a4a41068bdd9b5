//! A peer that follows its steps.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use super::agent::payload;
use super::faulty::frames;
use super::io::{NoLine, Pipes};
use crate::matcher::Match;
use crate::running::{self, ClientIo, Exit, Log, Mismatch, Running};

/// The exit code of steps whose client did something else.
const MISMATCH_CODE: i32 = 97;

/// A peer that follows its steps, in order, and does nothing else.
///
/// Lines that come early wait for their step. A step that expects a line takes the next one: if it differs, or none
/// comes in time, the steps end there with exit code [`MISMATCH_CODE`](Self::MISMATCH_CODE), and the report has
/// the expected and the received line. After its last step it reads on until the client hangs up and exits with 0.
///
/// ```
/// use outrigger_sim::peer::{Match, Steps};
/// use serde_json::json;
///
/// let script = Steps::new()
///     .initialize()
///     .expect(Match::prompt("hello"))
///     .send(json!({"type": "result", "subtype": "success", "is_error": false}))
///     .expect(Match::request("interrupt"))
///     .reply_error("too late")
///     .exit(1);
/// ```
#[derive(Debug)]
#[must_use]
pub struct Steps {
    steps: Vec<PeerStep>,
    patience: Duration,
}

enum PeerStep {
    Expect(Match),
    Send(Make),
    Raw(Vec<u8>),
    Stderr(String),
    Sleep(Duration),
    ExpectEnd,
    StopReading,
    CloseStdout,
    Exit(Exit),
}

type Make = Box<dyn FnOnce(&ReceivedLines) -> Value + Send>;

/// The lines that the peer has received, for steps that depend on them.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ReceivedLines {
    /// The lines that steps have taken, in order.
    pub lines: Vec<Value>,
}

impl ReceivedLines {
    /// The line that the last step took; null before the first.
    pub fn last(&self) -> &Value {
        self.lines.last().unwrap_or(&Value::Null)
    }

    /// The id of the last control request that a step received, as it was written; null if there was none.
    pub fn request_id(&self) -> &Value {
        let requests = self.lines.iter().rev();
        requests
            .filter(|line| line["type"] == "control_request")
            .map(|line| &line["request_id"])
            .next()
            .unwrap_or(&Value::Null)
    }
}

impl Steps {
    /// See [`Steps`].
    pub const MISMATCH_CODE: i32 = MISMATCH_CODE;

    /// No steps yet.
    pub fn new() -> Self {
        Self {
            steps: Vec::new(),
            patience: Duration::from_secs(30),
        }
    }

    /// Takes the next line, which must match.
    pub fn expect(self, line: impl Into<Match>) -> Self {
        self.step(PeerStep::Expect(line.into()))
    }

    /// Takes an `initialize` request and answers it as the CLI does.
    pub fn initialize(self) -> Self {
        self.initialize_with(json!({}))
    }

    /// Takes an `initialize` request and answers it as the CLI does, with these keys set differently.
    pub fn initialize_with(self, changes: Value) -> Self {
        self.expect(Match::request("initialize")).send_with(move |seen| {
            let mut payload = payload::initialize("/home/user/project", "default", payload::MODEL, "idle");
            merge(&mut payload, changes);
            json!({"type": "control_response", "response": {
                "subtype": "success", "request_id": seen.request_id(), "response": payload,
                "pending_permission_requests": [], "pending_user_dialog_requests": [],
            }})
        })
    }

    /// Writes a line.
    pub fn send(self, line: Value) -> Self {
        self.send_with(move |_| line)
    }

    /// Writes a line that depends on the received lines.
    pub fn send_with(self, line: impl FnOnce(&ReceivedLines) -> Value + Send + 'static) -> Self {
        self.step(PeerStep::Send(Box::new(line)))
    }

    /// Writes bytes as they are: no line end is added.
    pub fn send_raw(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(PeerStep::Raw(bytes.into()))
    }

    /// Answers the last control request with a payload.
    pub fn reply(self, payload: Value) -> Self {
        self.send_with(move |seen| frames::success(seen.request_id(), payload))
    }

    /// Answers the last control request with an error.
    pub fn reply_error(self, error: impl Into<String>) -> Self {
        let error = error.into();
        self.send_with(move |seen| frames::error(seen.request_id(), &error))
    }

    /// Answers a control request, by its id, with a payload.
    pub fn reply_to(self, request_id: impl Into<Value>, payload: Value) -> Self {
        let request_id: Value = request_id.into();
        self.send(frames::success(request_id, payload))
    }

    /// Writes a line to stderr.
    pub fn complain(self, line: impl Into<String>) -> Self {
        self.step(PeerStep::Stderr(line.into()))
    }

    /// Lets time pass.
    pub fn sleep(self, duration: Duration) -> Self {
        self.step(PeerStep::Sleep(duration))
    }

    /// Waits until the client ends its input. A line that comes before is a mismatch.
    pub fn expect_end(self) -> Self {
        self.step(PeerStep::ExpectEnd)
    }

    /// Reads nothing more, so that the client's pipe fills up.
    pub fn stop_reading(self) -> Self {
        self.step(PeerStep::StopReading)
    }

    /// Closes stdout and lives on.
    pub fn close_stdout(self) -> Self {
        self.step(PeerStep::CloseStdout)
    }

    /// Ends with an exit code.
    pub fn exit(self, code: i32) -> Self {
        self.step(PeerStep::Exit(Exit::Code(code)))
    }

    /// Ends as if by a signal.
    pub fn die(self, signal: i32) -> Self {
        self.step(PeerStep::Exit(Exit::Signal(signal)))
    }

    fn step(mut self, step: PeerStep) -> Self {
        self.steps.push(step);
        self
    }

    /// Runs in a task of its own, over pipes in memory. Must be called inside a tokio runtime.
    pub fn spawn_in_memory(self) -> (ClientIo, Running) {
        let (client, peer) = running::pipes();
        (client, self.spawn(peer.stdin, peer.stdout, peer.stderr))
    }

    /// Runs in a task of its own. Must be called inside a tokio runtime.
    pub fn spawn<I, O, E>(self, stdin: I, stdout: O, stderr: E) -> Running
    where
        I: AsyncRead + Unpin + Send + 'static,
        O: AsyncWrite + Unpin + Send + 'static,
        E: AsyncWrite + Unpin + Send + 'static,
    {
        let (running, mut reins) = running::reins();
        tokio::spawn(async move {
            let log = reins.log;
            let mut play = StepsPlay {
                pipes: Pipes::new(stdin, stdout, stderr).logged(log.clone()),
                patience: self.patience,
                seen: ReceivedLines::default(),
                log: log.clone(),
            };
            let played = async {
                match play.all(self.steps).await {
                    Ok(exit) => exit,
                    Err(mismatch) => {
                        log.disagree(mismatch);
                        Exit::Code(MISMATCH_CODE)
                    }
                }
            };
            let exit = tokio::select! {
                exit = played => exit,
                Some(signal) = reins.signals.recv() => signal.exit(),
            };
            drop(play);
            let _ = reins.exit.send(Some(exit));
        });
        running
    }
}

setters! { Steps:
    /// How long a step waits for a line; 30 s unless set. A paused clock does not make it wait.
    patience(patience: Duration) = patience;
    /// Appends other steps.
    then(other: Self) => steps.extend(other.steps);
}

impl Default for Steps {
    fn default() -> Self {
        Self::new()
    }
}

struct StepsPlay<I, O, E> {
    pipes: Pipes<I, O, E>,
    patience: Duration,
    seen: ReceivedLines,
    log: std::sync::Arc<Log>,
}

impl<I, O, E> StepsPlay<I, O, E>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
    E: AsyncWrite + Unpin,
{
    async fn all(&mut self, steps: Vec<PeerStep>) -> Result<Exit, Mismatch> {
        for (n, step) in steps.into_iter().enumerate() {
            let wrong = |expected: String, received: String| Mismatch {
                step: n + 1,
                expected,
                received,
            };
            match step {
                PeerStep::Expect(wanted) => match self.take().await {
                    Ok(line) => match wanted.flaw(&line) {
                        None => self.seen.lines.push(line),
                        Some(flaw) => {
                            return Err(wrong(wanted.to_string(), format!("{line}\n  BUT      {flaw}")));
                        }
                    },
                    Err(reason) => return Err(wrong(wanted.to_string(), reason)),
                },
                PeerStep::ExpectEnd => match self.take().await {
                    Ok(line) => return Err(wrong("the end of input".into(), line.to_string())),
                    Err(_) if self.pipes.ended => {}
                    Err(reason) => return Err(wrong("the end of input".into(), reason)),
                },
                PeerStep::Send(make) => {
                    let line = make(&self.seen);
                    let bytes = format!("{line}\n");
                    self.log.add(false, line);
                    self.pipes.write(bytes.as_bytes()).await;
                }
                PeerStep::Raw(bytes) => {
                    self.log
                        .add(false, Value::String(String::from_utf8_lossy(&bytes).into_owned()));
                    self.pipes.write(&bytes).await;
                }
                PeerStep::Stderr(line) => self.pipes.complain(format!("{line}\n").as_bytes()).await,
                PeerStep::Sleep(duration) => self.pipes.meanwhile(tokio::time::sleep(duration)).await,
                PeerStep::StopReading => self.pipes.reading = false,
                PeerStep::CloseStdout => self.pipes.stdout = None,
                PeerStep::Exit(exit) => return Ok(exit),
            }
        }
        if self.pipes.reading {
            while self.pipes.next().await.is_some() {}
            return Ok(Exit::Code(0));
        }
        // Nothing is read any more, so that the end of the input cannot be seen: only a signal ends it.
        std::future::pending().await
    }

    /// The next line, or why there is none.
    async fn take(&mut self) -> Result<Value, String> {
        if !self.pipes.reading && self.pipes.is_empty() {
            return Err("nothing: the steps have stopped reading".into());
        }
        match self.pipes.take(self.patience).await {
            Ok(line) => Ok(running::read_json(&line)),
            Err(NoLine::End) => Err("the end of input".into()),
            Err(NoLine::Late) => Err(format!("nothing within {:?}", self.patience)),
        }
    }
}

impl fmt::Debug for PeerStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expect(wanted) => write!(f, "expect {wanted}"),
            Self::Send(_) => f.write_str("send"),
            Self::Raw(bytes) => write!(f, "send {} bytes", bytes.len()),
            Self::Stderr(line) => write!(f, "complain {line:?}"),
            Self::Sleep(duration) => write!(f, "sleep {duration:?}"),
            Self::ExpectEnd => f.write_str("expect the end of input"),
            Self::StopReading => f.write_str("stop reading"),
            Self::CloseStdout => f.write_str("close stdout"),
            Self::Exit(exit) => write!(f, "exit {exit:?}"),
        }
    }
}

/// Sets the keys of `changes` in `target`, and those of its objects in theirs.
fn merge(target: &mut Value, changes: Value) {
    match (target, changes) {
        (Value::Object(target), Value::Object(changes)) => {
            for (key, change) in changes {
                merge(target.entry(key).or_insert(Value::Null), change);
            }
        }
        (target, changes) => *target = changes,
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
