//! The transport to a session of a host: to the SDK it is a CLI.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use outrigger::options::Launch;
use outrigger::protocol::{Frame, RawJson};
use outrigger::transport::{Connection, Exit, Process, Signal, Transport};
use outrigger_host_client::{
    ApprovalFilter, Envelope, Error, EventSource, HostClient, Result, SessionStream, StreamItem,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::log_frames::LogFrames;
use super::seat::whole;

/// How many bytes wait in a pipe between the SDK and the link.
const PIPE: usize = 64 * 1024;

/// How often a question is asked again when the host refuses the answer.
const MOST_ANSWERS: u8 = 3;

/// Connects the SDK with a session of a host. Cheap to clone. Connections that break are made anew by the client of the host; another
/// [`open`](Transport::open) goes on behind the last event of the one before.
#[derive(Debug, Clone)]
pub(crate) struct HostLink(Arc<HostLinkInner>);

#[derive(Debug)]
struct HostLinkInner {
    client: HostClient,
    session: String,
    place: Mutex<LogPosition>,
    /// Somebody reads the frames.
    go: Notify,
    /// The editor leaves. What is open stays so, for others.
    left: CancellationToken,
}

/// How far the log was read.
#[derive(Debug)]
struct LogPosition {
    cursor: u64,
    frames: LogFrames,
}

impl HostLink {
    pub(super) fn new(
        client: HostClient,
        session: String,
        cursor: u64,
        frames: LogFrames,
        left: CancellationToken,
    ) -> Self {
        Self(Arc::new(HostLinkInner {
            client,
            session,
            place: Mutex::new(LogPosition { cursor, frames }),
            go: Notify::new(),
            left,
        }))
    }

    /// The editor leaves the session, which goes on: questions that are answered or refused from now on, because nobody can be asked, stay open on the
    /// host. What it cancelled still ends.
    pub(crate) fn leave(&self) {
        self.0.left.cancel();
    }

    /// Somebody reads the frames of the connection that was opened last: they may come now.
    pub(crate) fn go(&self) {
        self.0.go.notify_one();
    }
}

impl HostLinkInner {
    fn place(&self) -> MutexGuard<'_, LogPosition> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for HostLink {
    fn open<'a>(&'a self, _: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        let (stdin, written) = duplex(PIPE);
        let (out, stdout) = duplex(PIPE);
        let (mut complaints, stderr) = duplex(PIPE);
        let shared = Arc::clone(&self.0);
        let task = tokio::spawn(async move {
            let work = LinkConnection::new(shared, out);
            let Err(error) = work.run(BufReader::new(written).lines()).await else {
                return Exit::with_code(0);
            };
            // The SDK may have gone.
            let _ = complaints
                .write_all(format!("{}\n", whole(&error)).as_bytes())
                .await;
            Exit::with_code(1)
        });
        let process = LinkProcess { task, exit: None };
        let connection = Connection {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Some(Box::new(stderr)),
            process: Box::new(process),
        };
        Box::pin(std::future::ready(Ok(connection)))
    }
}

/// The task of a link, in the place of a process.
struct LinkProcess {
    task: JoinHandle<Exit>,
    exit: Option<Exit>,
}

impl Process for LinkProcess {
    fn id(&self) -> Option<u32> {
        None
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            if let Some(exit) = self.exit {
                return Ok(exit);
            }
            let exit = (&mut self.task).await.unwrap_or_default();
            self.exit = Some(exit);
            Ok(exit)
        })
    }

    fn signal(&mut self, _: Signal) -> io::Result<()> {
        self.task.abort();
        Ok(())
    }
}

impl Drop for LinkProcess {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What was sent to the host.
enum SentToHost {
    Prompt(String),
    /// A request, by the SDK's id.
    Request(String),
    Decision(String),
    Withdrawal,
}

type Sending = BoxFuture<'static, (SentToHost, Result<()>)>;

/// A question that the SDK has.
struct PendingQuestion {
    line: String,
    answers: u8,
}

/// Which events are read.
enum EventReading {
    /// None: the SDK has not asked, or nobody reads the frames yet.
    Nothing,
    /// Only the reply to the first request of the SDK; the rest comes again.
    Greeting(Box<SessionStream>),
    All(Box<SessionStream>),
}

/// One connection with the SDK.
struct LinkConnection {
    shared: Arc<HostLinkInner>,
    out: DuplexStream,
    /// What makes the ids of this connection's requests different from those of all others.
    prefix: String,
    sending: Option<Sending>,
    reading: EventReading,
    /// The id of the SDK's first request, until the host has replied.
    greeting: Option<String>,
    is_greeted: bool,
    is_read: bool,
    /// The questions that waited before the events were read, each with its line. Those that the events have are not among them.
    waiting: Vec<(String, String)>,
    is_broken: bool,
    questions: HashMap<String, PendingQuestion>,
    /// The conversations (the call of each subagent) whose message streams from its beginning on.
    whole: HashSet<Option<String>>,
}

impl LinkConnection {
    fn new(shared: Arc<HostLinkInner>, out: DuplexStream) -> Self {
        Self {
            shared,
            out,
            prefix: format!("acp-{}-", uuid::Uuid::new_v4().simple()),
            sending: None,
            reading: EventReading::Nothing,
            greeting: None,
            is_greeted: false,
            is_read: false,
            waiting: Vec::new(),
            is_broken: false,
            questions: HashMap::new(),
            whole: HashSet::new(),
        }
    }

    /// Until the SDK closes its end. What it has written before that is sent.
    async fn run(mut self, mut lines: Lines<BufReader<DuplexStream>>) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        loop {
            let is_free = self.sending.is_none();
            tokio::select! {
                biased;
                (sent, result) = pending(&mut self.sending), if !is_free => {
                    self.sending = None;
                    if let Err(error) = result {
                        self.failed(sent, &error).await;
                    } else if let SentToHost::Decision(request) = sent {
                        self.questions.remove(&request);
                    }
                }
                line = lines.next_line(), if is_free => match line {
                    Ok(Some(line)) => self.take(line).await?,
                    // The SDK has gone.
                    Ok(None) | Err(_) => return Ok(()),
                },
                () = shared.go.notified(), if !self.is_read => {
                    self.is_read = true;
                    self.begin().await?;
                }
                item = next(&mut self.reading) => self.item(item?).await?,
            }
        }
    }

    async fn begin(&mut self) -> Result<()> {
        if self.is_greeted && self.is_read {
            // A turn that runs already ends with a result that is not for the first prompt of this connection. The SDK would guess that it is, unless it has
            // seen that beginnings are told.
            let nobodys = uuid::Uuid::new_v4().to_string();
            let frame = json!({
                "type": "command_lifecycle", "command_uuid": nobodys, "state": "completed", "uuid": uuid::Uuid::new_v4().to_string(),
                "session_id": self.shared.session,
            });
            self.write(&frame.to_string()).await;
            // Whatever is asked from here on comes with the events, behind the frames that it is about.
            self.find_what_waits().await;
            let cursor = self.shared.place().cursor;
            let stream = self.shared.client.stream(&self.shared.session, cursor)?;
            self.reading = EventReading::All(Box::new(stream));
        }
        Ok(())
    }

    /// Writes a line for the SDK. If it has gone, that ends the input, too.
    async fn write(&mut self, line: &str) {
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        let _ = self.out.write_all(&bytes).await;
    }

    // ---- From the SDK to the host -----------------------------------------------------------------------------------

    /// A line of the SDK.
    async fn take(&mut self, line: String) -> Result<()> {
        #[derive(Deserialize)]
        struct SdkFrameHead {
            r#type: String,
            uuid: Option<String>,
            request_id: Option<String>,
            request: Option<Map<String, Value>>,
            response: Option<Answered>,
        }
        #[derive(Deserialize)]
        struct Answered {
            request_id: String,
        }
        let Ok(head) = serde_json::from_str::<SdkFrameHead>(&line) else {
            return Ok(());
        };
        let subtype = head
            .request
            .as_ref()
            .and_then(|request| request.get("subtype")?.as_str());
        let is_cancel = matches!(subtype, Some("interrupt" | "cancel_async_message" | "stop_task"));
        if self.shared.left.is_cancelled() && head.r#type != "user" && !is_cancel {
            return Ok(());
        }
        match (head.r#type.as_str(), head.request_id) {
            ("user", _) => {
                if let (Some(prompt), Ok(frame)) = (head.uuid, RawJson::from_text(line)) {
                    self.shared.place().frames.sends(&prompt);
                    self.send(SentToHost::Prompt(prompt), frame);
                }
            }
            ("control_request", Some(id)) => {
                return self.request(id, head.request.unwrap_or_default()).await;
            }
            ("control_cancel_request", Some(id)) => {
                let frame = json!({"type": "control_cancel_request", "request_id": self.named(&id)});
                self.send(SentToHost::Withdrawal, frame.into());
            }
            ("control_response", _) => {
                if let (Some(answered), Ok(frame)) = (head.response, RawJson::from_text(line)) {
                    self.send(SentToHost::Decision(answered.request_id), frame);
                }
            }
            (kind, _) => tracing::debug!(kind, "a host has no use for this frame"),
        }
        Ok(())
    }

    async fn request(&mut self, id: String, mut request: Map<String, Value>) -> Result<()> {
        match request.get("subtype").and_then(Value::as_str) {
            Some("initialize") => {
                // All that the SDK could say here is the operator's.
                request.retain(|name, _| name == "subtype");
                let cursor = self.shared.place().cursor;
                let stream = self.shared.client.stream(&self.shared.session, cursor)?;
                self.greeting = Some(id.clone());
                self.reading = EventReading::Greeting(Box::new(stream));
            }
            Some("cancel_async_message") => {
                let prompt = request.get("message_uuid").and_then(Value::as_str);
                // The host does not give prompts back. The turn is interrupted once it runs.
                if !prompt.is_some_and(|prompt| self.shared.place().frames.is_running(prompt)) {
                    self.reply(&id, Ok(json!({"cancelled": false}))).await;
                    return Ok(());
                }
            }
            _ => {}
        }
        let frame = json!({"type": "control_request", "request_id": self.named(&id), "request": request});
        self.send(SentToHost::Request(id), frame.into());
        Ok(())
    }

    fn named(&self, id: &str) -> String {
        format!("{}{id}", self.prefix)
    }

    fn send(&mut self, what: SentToHost, frame: RawJson) {
        let shared = Arc::clone(&self.shared);
        self.sending = Some(Box::pin(async move {
            let sent = shared.client.send(&shared.session, &[frame]).await;
            (what, sent.map(drop))
        }));
    }

    async fn reply(&mut self, id: &str, result: std::result::Result<Value, String>) {
        let response = match result {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
        };
        let frame = json!({"type": "control_response", "response": response});
        self.write(&frame.to_string()).await;
    }

    /// The host did not take a frame, or nobody knows whether it did.
    async fn failed(&mut self, sent: SentToHost, error: &Error) {
        let why = whole(error);
        match sent {
            SentToHost::Prompt(prompt) => {
                let line = self.shared.place().frames.gives_up(&prompt, &why);
                self.write(&line).await;
            }
            SentToHost::Request(id) => self.reply(&id, Err(why)).await,
            SentToHost::Decision(request) => {
                self.send_informational(&format!("The host did not take the answer\n{why}"), "warning")
                    .await;
                let again = self.questions.get_mut(&request).map(|question| {
                    question.answers += 1;
                    (question.answers < MOST_ANSWERS).then(|| without_suggestions(&question.line))
                });
                match again {
                    Some(Some(line)) => self.write(&line).await,
                    // Somebody else has to decide.
                    _ => drop(self.questions.remove(&request)),
                }
            }
            SentToHost::Withdrawal => tracing::debug!(why, "a request was not withdrawn"),
        }
    }

    async fn send_informational(&mut self, text: &str, level: &str) {
        let uuid = uuid::Uuid::new_v4().to_string();
        let line = self.shared.place().frames.informational(text, level, &uuid);
        self.write(&line).await;
    }

    // ---- From the host to the SDK -----------------------------------------------------------------------------------

    async fn item(&mut self, item: StreamItem) -> Result<()> {
        match item {
            StreamItem::Event(event) => {
                self.is_broken = false;
                if matches!(self.reading, EventReading::Greeting(_)) {
                    return self.greeted(&event).await;
                }
                self.event(&event).await;
            }
            StreamItem::Ephemeral(frame) if matches!(self.reading, EventReading::All(_)) => {
                self.streamed(&frame).await;
            }
            StreamItem::Synced { .. } if matches!(self.reading, EventReading::All(_)) => {
                self.is_broken = false;
                for (request, line) in std::mem::take(&mut self.waiting) {
                    if let Some(line) = self.asks(request, &line) {
                        self.write(&line).await;
                    }
                }
            }
            StreamItem::Truncated { .. } => {
                self.send_informational(
                    "The host does not keep a part of this session any more",
                    "warning",
                )
                .await;
            }
            StreamItem::Disconnected { error, .. } => {
                // The rest of a message comes as a whole.
                self.whole.clear();
                if !std::mem::replace(&mut self.is_broken, true) {
                    let said = format!(
                        "The connection to the host broke, and is made again\n{}",
                        whole(&error)
                    );
                    self.send_informational(&said, "info").await;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Looks for the reply to the first request.
    async fn greeted(&mut self, event: &Envelope) -> Result<()> {
        let Some((id, mut frame)) = self.replied(event) else {
            return Ok(());
        };
        if self.greeting.as_ref() != Some(&id) {
            return Ok(());
        }
        let reply = &mut frame["response"]["response"];
        let has_lifecycle = reply["capabilities"]
            .as_array()
            .is_some_and(|names| names.iter().any(|name| name == "msg_lifecycle_v1"));
        if !has_lifecycle {
            self.shared.place().frames.tell_beginnings();
        }
        leave_out(reply);
        self.write(&frame.to_string()).await;
        (self.greeting, self.is_greeted, self.reading) = (None, true, EventReading::Nothing);
        self.begin().await
    }

    async fn event(&mut self, event: &Envelope) {
        let kind = event.kind();
        let mut lines = {
            let mut place = self.shared.place();
            place.cursor = event.sequence_num;
            match event.source {
                EventSource::Worker if kind.starts_with("control_") => Vec::new(),
                _ => place.frames.event(event),
            }
        };
        if event.source == EventSource::Worker && kind.starts_with("control_") {
            lines.extend(self.control(&kind, event));
        }
        for line in lines {
            self.write(&line).await;
        }
    }

    /// A request of the CLI, its withdrawal, or the reply to one of the SDK's.
    fn control(&mut self, kind: &str, event: &Envelope) -> Option<String> {
        let text = event.payload.get();
        match kind {
            "control_response" => self.replied(event).map(|(_, frame)| frame.to_string()),
            "control_request" => {
                let request = request_id(text)?;
                self.waiting.retain(|(waiting, _)| *waiting != request);
                self.asks(request, text)
            }
            // It was answered, by whomever.
            "control_cancel_request" => {
                let request = request_id(text)?;
                self.waiting.retain(|(waiting, _)| *waiting != request);
                self.questions.remove(&request)?;
                Some(text.to_owned())
            }
            _ => None,
        }
    }

    /// The reply to a request of this connection, with the SDK's id.
    fn replied(&self, event: &Envelope) -> Option<(String, Value)> {
        let mut frame = event.payload.to_value().ok()?;
        if frame["type"] != "control_response" {
            return None;
        }
        let id = frame["response"]["request_id"].as_str()?;
        let id = id.strip_prefix(&self.prefix)?.to_owned();
        frame["response"]["request_id"] = id.clone().into();
        Some((id, frame))
    }

    /// The line for a question, unless the SDK has it.
    fn asks(&mut self, request: String, line: &str) -> Option<String> {
        if self.questions.contains_key(&request) {
            return None;
        }
        let question = PendingQuestion {
            line: line.to_owned(),
            answers: 0,
        };
        self.questions.insert(request, question);
        Some(line.to_owned())
    }

    /// Finds the questions that wait since before this connection.
    async fn find_what_waits(&mut self) {
        let filter = ApprovalFilter::pending().of_session(&self.shared.session);
        match self.shared.client.all_approvals(&filter).await {
            Ok(approvals) => {
                let lines = approvals.into_iter();
                let lines = lines.map(|approval| (approval.request_id, approval.request.get().to_owned()));
                self.waiting.extend(lines);
            }
            Err(error) => {
                let said = format!("The host does not say which questions wait\n{}", whole(&error));
                self.send_informational(&said, "warning").await;
            }
        }
    }

    /// A frame that is not kept. A message whose beginning was missed comes as a whole later.
    async fn streamed(&mut self, frame: &RawJson) {
        for frame in Frame::from_line(frame.get()) {
            if frame.kind() != "stream_event" {
                continue;
            }
            let of = frame.parent_tool_use_id().map(str::to_owned);
            if frame.event_type() == Some("message_start") {
                self.whole.insert(of);
            } else if !self.whole.contains(&of) {
                continue;
            }
            let line = frame.text().into_owned();
            self.write(&line).await;
        }
    }
}

fn request_id(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct RequestIdOnly {
        request_id: String,
    }
    serde_json::from_str::<RequestIdOnly>(text)
        .ok()
        .map(|head| head.request_id)
}

/// Leaves out of a reply to `initialize` what clients of a host cannot choose.
fn leave_out(reply: &mut Value) {
    let Some(reply) = reply.as_object_mut() else {
        return;
    };
    for name in [
        "agents",
        "commands",
        "fast_mode_state",
        "fast_mode_disabled_reason",
    ] {
        reply.remove(name);
    }
    let models = reply.get_mut("models").and_then(Value::as_array_mut);
    for model in models.into_iter().flatten().filter_map(Value::as_object_mut) {
        model.retain(|name, _| {
            !["supportsEffort", "supportedEffortLevels", "supportsFastMode"].contains(&name.as_str())
        });
    }
    for (name, none) in [("agents", json!([])), ("commands", json!([]))] {
        reply.insert(name.to_owned(), none);
    }
}

/// A question that is asked once more, without what the host may have refused.
fn without_suggestions(line: &str) -> String {
    let Ok(mut frame) = serde_json::from_str::<Value>(line) else {
        return line.to_owned();
    };
    if let Some(request) = frame["request"].as_object_mut() {
        request.remove("permission_suggestions");
    }
    frame.to_string()
}

async fn pending(sending: &mut Option<Sending>) -> (SentToHost, Result<()>) {
    match sending {
        Some(sending) => sending.await,
        None => std::future::pending().await,
    }
}

async fn next(reading: &mut EventReading) -> Result<StreamItem> {
    match reading {
        EventReading::Nothing => std::future::pending().await,
        EventReading::Greeting(stream) | EventReading::All(stream) => stream.next().await,
    }
}
