//! A raw driver for the CLI's pipes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use std::{fmt, io};

use outrigger_protocol::Frame;
use outrigger_protocol::framer::LineFramer;
use outrigger_protocol::repair;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::Sandbox;
use super::transcript::{Direction, Transcript};
use crate::peer::LineReader;

/// The default limit of each wait. A turn takes some tens of milliseconds; this is for overloaded machines.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest line that is read whole.
const LONGEST_LINE: usize = 64 << 20;

/// How many frames may wait to be read. When there are more, the process has to wait with writing.
const WAITING: usize = 1024;

/// How a process is to be started.
#[derive(Debug, Clone)]
#[must_use]
pub struct Launch {
    executable: PathBuf,
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
    directory: PathBuf,
    patience: Duration,
}

/// A running `claude`, driven by raw frames.
///
/// It has a process group of its own, which is killed when this is dropped. All frames are in the
/// [transcript](Self::transcript).
#[derive(Debug)]
pub struct ClaudeProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    frames: mpsc::Receiver<Seen>,
    stderr: JoinHandle<()>,
    transcript: Transcript,
    patience: Duration,
    requests: u64,
}

/// One frame that the process wrote.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Seen {
    /// When the frame was read, since the process was started.
    pub at: Duration,
    /// The frame.
    pub frame: Frame,
    /// The same as a value, for assertions; null if it is no JSON. Lone surrogates are replaced by U+FFFD.
    pub value: Value,
}

/// The conversation did not go as it should. The message ends with the newest part of the transcript.
#[derive(thiserror::Error)]
#[error("{what}\n{transcript}")]
#[non_exhaustive]
pub struct DriveError {
    /// What did not happen, or what failed.
    pub what: String,
    /// The error of the operating system, if there was one.
    #[source]
    pub cause: Option<io::Error>,
    /// All frames up to the failure.
    pub transcript: Transcript,
}

/// As `Display`: a test that returns this error prints it.
impl fmt::Debug for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        match &self.cause {
            Some(cause) => write!(f, "caused by: {cause}"),
            None => Ok(()),
        }
    }
}

impl Launch {
    /// The executable in this sandbox, with the arguments by which an SDK starts it.
    pub fn new(executable: impl Into<PathBuf>, sandbox: &Sandbox, api_base_url: &str) -> Self {
        let arguments = [
            "--output-format",
            "stream-json",
            "--verbose",
            "--input-format",
            "stream-json",
            "--permission-prompt-tool",
            "stdio",
        ];
        Self {
            executable: executable.into(),
            arguments: arguments.map(str::to_owned).to_vec(),
            variables: sandbox.env(api_base_url),
            directory: sandbox.project(),
            patience: PATIENCE,
        }
    }

    /// Sets all arguments, in place of those by which an SDK starts it.
    pub fn args<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the executable cannot be run.
    ///
    /// # Panics
    /// Outside a tokio runtime, as everything of tokio does.
    pub fn spawn(self) -> Result<ClaudeProcess, DriveError> {
        let transcript = Transcript::new();
        let argv: Vec<_> = [self.executable.to_string_lossy().into_owned()]
            .into_iter()
            .chain(self.arguments.clone())
            .collect();
        transcript.add(
            Direction::Meta,
            json!({"argv": argv, "env": self.variables, "cwd": self.directory.to_string_lossy()}),
        );
        let mut command = Command::new(&self.executable);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(&self.variables)
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let fail = |what: &str, cause| DriveError {
            what: format!("{what} {}", self.executable.display()),
            cause,
            transcript: transcript.clone(),
        };
        let mut child = command.spawn().map_err(|cause| fail("cannot run", Some(cause)))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(fail("no pipes to", None));
        };
        let (sender, frames) = mpsc::channel(WAITING);
        // Both end with their pipe, or when nobody reads any more.
        tokio::spawn(read_frames(stdout, transcript.clone(), sender));
        let stderr = tokio::spawn(read_stderr(stderr, transcript.clone()));
        Ok(ClaudeProcess {
            child,
            stdin: Some(stdin),
            frames,
            stderr,
            transcript,
            patience: self.patience,
            requests: 0,
        })
    }
}

setters! { Launch:
    /// Adds an argument.
    arg(argument: impl Into<String>) => arguments.push(argument.into());
    /// Sets a variable.
    env(name: impl Into<String>, value: impl Into<String>) => variables.insert(name.into(), value.into());
    /// Sets the working directory; by default the sandbox's project.
    directory(directory: impl AsRef<Path>) = directory.as_ref().to_owned();

    /// Sets how long each wait may take; by default a minute.
    patience(patience: Duration) = patience;
}

impl ClaudeProcess {
    /// The process id; `None` once its end was waited for.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// All frames so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Writes one frame.
    ///
    /// # Errors
    /// When stdin is closed, or the process does not read for too long.
    pub async fn send(&mut self, frame: &Value) -> Result<(), DriveError> {
        self.write(&frame.to_string(), frame.clone()).await
    }

    /// Writes one line as it is.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_line(&mut self, line: &str) -> Result<(), DriveError> {
        self.write(line, json!({"raw": line})).await
    }

    /// Sends a control request of this subtype and waits for the answer to it, whatever comes in between is passed over.
    /// Returns the `response` object, with `subtype` and the rest.
    ///
    /// # Errors
    /// When no answer comes.
    pub async fn control(&mut self, request: Value) -> Result<Value, DriveError> {
        self.requests += 1;
        let id = format!("req_{}", self.requests);
        self.send(&json!({"type": "control_request", "request_id": id, "request": request}))
            .await?;
        let what = format!("the answer to {request}");
        let answer = self
            .until(&what, |seen| {
                seen.frame.kind() == "control_response" && seen.frame.request_id() == Some(&id)
            })
            .await?;
        Ok(answer.value["response"].clone())
    }

    /// Sends `initialize` without hooks and waits for the answer.
    ///
    /// # Errors
    /// When no answer comes.
    pub async fn initialize(&mut self) -> Result<Value, DriveError> {
        self.control(json!({"subtype": "initialize", "hooks": null}))
            .await
    }

    /// Sends a prompt and does not wait.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn prompt(&mut self, text: &str) -> Result<(), DriveError> {
        let content = json!([{"type": "text", "text": text}]);
        self.send(&json!({
            "type": "user", "session_id": "", "parent_tool_use_id": null,
            "message": {"role": "user", "content": content},
        }))
        .await
    }

    /// Answers a control request of the CLI with success and this payload.
    ///
    /// # Errors
    /// As [`send`](Self::send), and when the frame has no request id.
    pub async fn answer(&mut self, request: &Seen, payload: Value) -> Result<(), DriveError> {
        let Some(id) = request.frame.request_id() else {
            return Err(self.error(format!("this is no request to answer: {}", request.value)));
        };
        self.send(&json!({
            "type": "control_response",
            "response": {"subtype": "success", "request_id": id, "response": payload},
        }))
        .await
    }

    /// The next frame; `None` at the end of stdout.
    ///
    /// # Errors
    /// When none comes in time.
    pub async fn next(&mut self) -> Result<Option<Seen>, DriveError> {
        let until = Instant::now() + self.patience;
        match timeout_at(until, self.frames.recv()).await {
            Ok(seen) => Ok(seen),
            Err(_) => Err(self.error(format!("no frame came for {:?}", self.patience))),
        }
    }

    /// Passes over frames until one is as the condition has it, and returns that one.
    ///
    /// # Errors
    /// When stdout ends before, or none comes in time.
    pub async fn until(
        &mut self,
        what: &str,
        condition: impl FnMut(&Seen) -> bool,
    ) -> Result<Seen, DriveError> {
        let mut seen = self.collect(what, condition).await?;
        seen.pop()
            .ok_or_else(|| self.error(format!("{what} did not come")))
    }

    /// Collects frames up to one that is as the condition has it, that one included.
    ///
    /// # Errors
    /// As [`until`](Self::until).
    pub async fn collect(
        &mut self,
        what: &str,
        mut condition: impl FnMut(&Seen) -> bool,
    ) -> Result<Vec<Seen>, DriveError> {
        let until = Instant::now() + self.patience;
        let mut collected = Vec::new();
        loop {
            match timeout_at(until, self.frames.recv()).await {
                Ok(Some(seen)) => {
                    let last = condition(&seen);
                    collected.push(seen);
                    if last {
                        return Ok(collected);
                    }
                }
                Ok(None) => return Err(self.error(format!("stdout ended before {what} came"))),
                Err(_) => return Err(self.error(format!("{what} did not come within {:?}", self.patience))),
            }
        }
    }

    /// Collects the frames of a turn, up to and with its `result`.
    ///
    /// # Errors
    /// As [`until`](Self::until).
    pub async fn turn(&mut self) -> Result<Vec<Seen>, DriveError> {
        self.collect("the result", |seen| seen.frame.kind() == "result")
            .await
    }

    /// Passes over the frames of a turn and returns its `result`.
    ///
    /// # Errors
    /// As [`until`](Self::until).
    pub async fn result(&mut self) -> Result<Seen, DriveError> {
        self.until("the result", |seen| seen.frame.kind() == "result")
            .await
    }

    /// Skips frames until the CLI sends a permission request, and returns the request.
    ///
    /// # Errors
    /// As [`until`](Self::until).
    pub async fn permission_request(&mut self) -> Result<Seen, DriveError> {
        self.until("can_use_tool", |seen| {
            seen.frame.subtype() == Some("can_use_tool")
        })
        .await
    }

    /// Closes stdin, as a host does that has no more prompts.
    pub fn close_stdin(&mut self) {
        if self.stdin.take().is_some() {
            self.transcript.add(Direction::Meta, json!({"stdin": "closed"}));
        }
    }

    /// Closes stdin and waits for the process to end; frames that come meanwhile are skipped, but are in the transcript.
    ///
    /// # Errors
    /// When it does not end in time. Then it is killed.
    pub async fn finish(mut self) -> Result<(ExitStatus, Transcript), DriveError> {
        self.close_stdin();
        let until = Instant::now() + self.patience;
        let ended = timeout_at(until, async {
            // Keep reading: the process may block until its last lines are read.
            while self.frames.recv().await.is_some() {}
            let status = self.child.wait().await;
            let _ = (&mut self.stderr).await;
            status
        });
        match ended.await {
            Ok(Ok(status)) => {
                self.transcript.add(Direction::Meta, exit(status));
                Ok((status, self.transcript.clone()))
            }
            Ok(Err(cause)) => Err(DriveError {
                cause: Some(cause),
                ..self.error("cannot wait for its end".to_owned())
            }),
            Err(_) => Err(self.error(format!("it did not end within {:?} of stdin's", self.patience))),
        }
    }

    async fn write(&mut self, line: &str, shown: Value) -> Result<(), DriveError> {
        self.transcript.add(Direction::In, shown);
        let until = Instant::now() + self.patience;
        let written = match &mut self.stdin {
            None => return Err(self.error("stdin is closed".to_owned())),
            Some(stdin) => {
                let writing = async {
                    // In one piece: between two the process may do something else.
                    stdin.write_all(format!("{line}\n").as_bytes()).await?;
                    stdin.flush().await
                };
                timeout_at(until, writing).await
            }
        };
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(cause)) => Err(DriveError {
                cause: Some(cause),
                ..self.error("cannot write to stdin".to_owned())
            }),
            Err(_) => Err(self.error(format!("stdin took nothing for {:?}", self.patience))),
        }
    }

    fn error(&self, what: String) -> DriveError {
        DriveError {
            what,
            cause: None,
            transcript: self.transcript.clone(),
        }
    }
}

impl Drop for ClaudeProcess {
    fn drop(&mut self) {
        // Kills its tools too: the CLI leaves them behind when it is killed. Once its end was waited for, the id may be reused.
        #[cfg(unix)]
        if let Some(group) = self
            .id()
            .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()))
        {
            // An error means that nobody is left in it.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Reads frames until stdout ends or nobody wants them any more.
async fn read_frames(mut stdout: impl AsyncRead + Unpin, transcript: Transcript, sender: mpsc::Sender<Seen>) {
    let mut framer = LineFramer::new(LONGEST_LINE);
    let mut buffer = vec![0; 64 << 10];
    loop {
        // A pipe that fails is one that has ended.
        let length = stdout.read(&mut buffer).await.unwrap_or(0);
        let mut lines = Vec::new();
        match length {
            0 => framer.finish(|line| lines.push(line)),
            length => framer.feed(&buffer[..length], |line| lines.push(line)),
        }
        for frame in lines.into_iter().flat_map(Frame::read) {
            let value = value_of(&frame);
            let shown = if value.is_null() {
                json!({"raw": frame.text()})
            } else {
                value.clone()
            };
            let at = transcript.add(Direction::Out, shown);
            if sender.send(Seen { at, frame, value }).await.is_err() {
                return;
            }
        }
        if length == 0 {
            return;
        }
    }
}

async fn read_stderr(stderr: impl AsyncRead + Unpin, transcript: Transcript) {
    let mut lines = LineReader::new(stderr);
    while let Some(line) = lines.next().await {
        transcript.add(Direction::Err, json!({"raw": line}));
    }
}

fn value_of(frame: &Frame) -> Value {
    let text = frame.text();
    let whole = serde_json::from_str(&text).ok();
    let mended = || serde_json::from_str(&repair::lone_surrogates(&text)?).ok();
    whole.or_else(mended).unwrap_or_default()
}

fn exit(status: ExitStatus) -> Value {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    json!({"exit_code": status.code(), "exit_signal": signal})
}
