//! The connection: four tasks that never wait for each other's work.
//!
//! * The **reader** cuts bytes into frames and routes them. It waits for nothing but the pipe.
//! * The **writer** writes whole lines to stdin, replies before prompts. A reply bypasses the writer if no line waits before it.
//! * The **stderr drain** keeps the tail for errors.
//! * The **supervisor** owns the process: it waits for its end, carries out the closing, and reports the end.
//!
//! The **watchdog** ends turns in which the model is silent for too long.

pub(crate) mod attachments;
pub(crate) mod budget;
pub(crate) mod changes;
pub(crate) mod cli_requests;
mod context;
pub(crate) mod core;
mod driver;
pub(crate) mod interrupt;
mod kill_without_runtime;
pub(crate) mod lane;
mod spill;
mod stderr_tail;
mod stdin;
mod tasks;
mod withdrawn;

use std::any::Any;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::encode_line;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tracing::Instrument;

use self::attachments::{Claimed, Mirroring};
use self::budget::{Budget, SlowReader};
pub(crate) use self::cli_requests::Answerers;
pub use self::context::Context;
use self::core::{Core, Patience};
use self::driver::Driver;
pub(crate) use self::driver::Settled;
use self::kill_without_runtime::Undriven;
use self::stdin::StdinWriter;
pub(crate) use self::withdrawn::Withdrawn;
use crate::error::{Error, Kind};
use crate::ownership::LeaseProblem;
use crate::peer;
use crate::phase::Stall;

/// How many lines may wait for the writer, of each kind; a sender waits when they are full.
const WRITER_QUEUE: usize = 64;

/// How long to wait for the cause once the pipe broke.
const END_IS_NEAR: Duration = Duration::from_secs(10);

/// The limits of the connection.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) max_line: usize,
    /// How much may wait in memory for readers, and what happens to more.
    pub(crate) buffer: usize,
    pub(crate) slow_reader: SlowReader,
    pub(crate) stderr_tail: usize,
    pub(crate) control_deadline: Duration,
    pub(crate) interrupt_deadline: Duration,
    pub(crate) patience: Patience,
}

impl Limits {
    /// How long an interrupt may take in all: taking the prompt back has the deadline of a request, and each of at most six other
    /// steps has that of an interrupt.
    fn interrupt_in_all(&self) -> Duration {
        self.interrupt_deadline
            .saturating_mul(6)
            .saturating_add(self.control_deadline)
    }
}

/// How a session is ended.
#[derive(Debug, Clone)]
pub(crate) struct Closing {
    /// How long the CLI may take to end by itself after its stdin closed.
    pub(crate) grace: Duration,
    /// How long the CLI may take after SIGTERM.
    pub(crate) term_grace: Duration,
}

/// What belongs to the process.
pub(crate) struct Attached {
    /// Dropped when the process has ended.
    pub(crate) guard: Box<dyn std::any::Any + Send>,
    pub(crate) mirror: Option<Arc<dyn Mirroring>>,
    pub(crate) ownership: Option<Arc<dyn Claimed>>,
    /// The callback for the lines of its stderr.
    pub(crate) stderr: Option<crate::stderr::StderrCallback>,
}

/// A whole line for the writer, with its line ending.
pub(crate) type OutgoingLine = Vec<u8>;

/// The state that the handles of a session share.
pub(crate) struct Conn {
    driver: Mutex<Driver>,
    /// Answers, requests and cancellations; written before prompts.
    control: mpsc::Sender<OutgoingLine>,
    stdin: StdinWriter,
    prompts: mpsc::Sender<OutgoingLine>,
    supervisor: mpsc::Sender<tasks::SupervisorCommand>,
    pub(crate) ended: watch::Receiver<Option<Error>>,
    /// Woken whenever a turn ended or the state of the run may have changed.
    pub(crate) changed: Arc<Notify>,
    dispatch: Arc<Notify>,
    /// Woken when the watchdog has another deadline.
    watched: Notify,
    /// Held from when a prompt is chosen to be sent until it is in the writer's queue, so that the order is kept.
    dispatching: tokio::sync::Mutex<()>,
    pub(crate) limits: Limits,
    pub(crate) budget: Arc<Budget>,
    /// The mirror, if there is a store.
    pub(crate) mirror: Option<Arc<dyn Mirroring>>,
    /// The lease, if there is one.
    pub(crate) ownership: Option<Arc<dyn Claimed>>,
    pub(crate) pid: Option<u32>,
    /// Where the tasks run; callers may be elsewhere.
    runtime: Handle,
    /// Ends the process if the runtime no longer runs the tasks.
    undriven: Mutex<Option<Undriven>>,
    /// The session's handle, once there is one, for callbacks. Only the layer that set it knows its type.
    handle: OnceLock<Box<dyn Any + Send + Sync>>,
    /// Whether the session was revived.
    pub(crate) revived: AtomicBool,
    /// The span of the session in the log.
    pub(crate) span: tracing::Span,
}

impl std::fmt::Debug for Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conn")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

impl Conn {
    /// Takes the pipes over and begins to read at once.
    pub(crate) fn start(
        connection: peer::Connection,
        host: Answerers,
        limits: Limits,
        closing: Closing,
        redact: Vec<String>,
        attached: Attached,
    ) -> Arc<Self> {
        let Attached {
            guard,
            mirror,
            ownership,
            stderr,
        } = attached;
        let (control, control_lines) = mpsc::channel(WRITER_QUEUE);
        let (prompts, prompt_lines) = mpsc::channel(WRITER_QUEUE);
        let (supervisor, orders) = mpsc::channel(16);
        let (end, ended) = watch::channel(None);
        let span = tracing::info_span!(
            "session",
            pid = connection.process.id(),
            session_id = tracing::field::Empty
        );
        let undriven = Undriven::of(connection.process.signaller(), ended.clone(), closing.clone());
        let now = Instant::now().into_std();
        let core = Core::new(limits.patience, limits.buffer, span.clone(), now);
        let conn = Arc::new(Self {
            span,
            driver: Mutex::new(Driver::new(core, mirror.clone())),
            control,
            stdin: StdinWriter::default(),
            prompts,
            supervisor,
            ended,
            changed: Arc::default(),
            dispatch: Arc::default(),
            watched: Notify::new(),
            dispatching: tokio::sync::Mutex::default(),
            budget: Arc::new(Budget::new(limits.buffer, limits.slow_reader.clone())),
            limits,
            mirror,
            ownership,
            pid: connection.process.id(),
            runtime: Handle::current(),
            undriven: Mutex::new(undriven),
            handle: OnceLock::new(),
            revived: AtomicBool::new(false),
        });
        tasks::spawn(
            &conn,
            connection,
            host,
            tasks::Inputs {
                control_lines,
                prompt_lines,
                orders,
                end,
                closing,
                redact,
                guard,
                stderr,
            },
        );
        conn
    }

    /// Sets the session of this connection.
    pub(crate) fn set_handle(&self, session: impl Any + Send + Sync) {
        // There is one for each connection.
        let _ = self.handle.set(Box::new(session));
    }

    /// What was set.
    pub(crate) fn handle<H: Any>(&self) -> Option<&H> {
        self.handle.get()?.downcast_ref()
    }

    /// The error for calls after the end.
    pub(crate) fn end_error(&self) -> Error {
        self.ended
            .borrow()
            .clone()
            .unwrap_or_else(|| Error::new(Kind::Closed))
    }

    /// Writes a line; waits for room, and no longer than the session lives.
    async fn write(&self, queue: &mpsc::Sender<Vec<u8>>, bytes: Vec<u8>) -> Result<(), Error> {
        match queue.send(bytes).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.near_end().await),
        }
    }

    /// The error of the end, which is near if the writer is gone. It has the cause.
    async fn near_end(&self) -> Error {
        tokio::time::timeout(END_IS_NEAR, self.wait_ended())
            .await
            .unwrap_or_else(|_| self.end_error())
    }

    /// Sends a request and waits for the payload of its reply, `null` if it has none.
    ///
    /// Dropping the future cancels the request: if it was written and has no reply, the SDK sends `control_cancel_request`.
    pub(crate) async fn request(
        self: &Arc<Self>,
        subtype: &str,
        request: RawJson,
        deadline: Option<Duration>,
    ) -> Result<RawJson, Error> {
        self.request_in(WritePriority::Ahead, subtype, request, deadline)
            .await
    }

    /// Like [`request`](Self::request), at the given priority. Boxed, so that it is compiled once and not with each request.
    #[inline(never)]
    pub(crate) fn request_in<'a>(
        self: &'a Arc<Self>,
        priority: WritePriority,
        subtype: &'a str,
        request: RawJson,
        deadline: Option<Duration>,
    ) -> crate::peer::BoxFuture<'a, Result<RawJson, Error>> {
        Box::pin(self.exchange(priority, subtype, request, deadline))
    }

    async fn exchange(
        self: &Arc<Self>,
        priority: WritePriority,
        subtype: &str,
        request: RawJson,
        deadline: Option<Duration>,
    ) -> Result<RawJson, Error> {
        let id = uuid::Uuid::new_v4().to_string();
        let line = encode_line(&ControlRequestLine {
            kind: "control_request",
            request_id: &id,
            request: &request,
        })
        .map_err(|error| Error::invalid_because(format!("fields of the request `{subtype}`"), error))?;
        let answer = self.driver().expect(&id, subtype)?;
        let mut open = RequestGuard {
            conn: self,
            id: &id,
            written: None,
        };
        let exchange = async {
            let queue = match priority {
                WritePriority::Ahead => &self.control,
                WritePriority::BehindPrompts => &self.prompts,
            };
            {
                let _in_order = match priority {
                    WritePriority::Ahead => None,
                    WritePriority::BehindPrompts => Some(self.dispatching.lock().await),
                };
                self.write(queue, line).await?;
            }
            open.written = Some(queue);
            let answer = answer.await.unwrap_or_else(|_| Err(self.end_error()));
            match &answer {
                Ok(_) => tracing::debug!("answered"),
                Err(error) => tracing::debug!(refused = error.as_refusal().is_some(), "failed"),
            }
            answer
        };
        let span = tracing::debug_span!(parent: &self.span, "request", subtype, id);
        let exchange = exchange.instrument(span);
        match deadline {
            None => exchange.await,
            Some(after) => tokio::time::timeout(after, exchange)
                .await
                .unwrap_or_else(|_| Err(Error::timeout(format!("the answer to `{subtype}`"), after))),
        }
    }

    /// Passes the prompts that may be sent to the writer, then runs `then` before any other may be sent. `None` when the writer is
    /// gone; then the supervisor settles the prompts.
    async fn send_ready<T>(&self, then: impl FnOnce() -> T) -> Option<T> {
        let _in_order = self.dispatching.lock().await;
        loop {
            // Room first: a prompt that was taken out and not written, because this future was dropped, would be lost.
            let room = self.prompts.reserve().await.ok()?;
            let next = self.poll_send();
            let Some(bytes) = next else { break };
            room.send(bytes);
            self.watched.notify_one();
        }
        Some(then())
    }

    /// The same without waiting: the dispatcher does what cannot be done at once. So a prompt that was accepted before the closing
    /// is sent before the closing.
    fn send_ready_now(&self) {
        if let Ok(_in_order) = self.dispatching.try_lock() {
            while let Ok(room) = self.prompts.try_reserve() {
                let next = self.poll_send();
                let Some(bytes) = next else { return };
                room.send(bytes);
                self.watched.notify_one();
            }
        }
        self.dispatch();
    }

    /// Wakes the dispatcher: a prompt may be ready.
    fn dispatch(&self) {
        self.dispatch.notify_one();
    }

    /// Begins to close in an orderly way; see [`Self::wait_ended`].
    pub(crate) async fn close(&self) {
        // A supervisor that is gone has ended the session already.
        let _ = self.supervisor.send(tasks::SupervisorCommand::Close).await;
    }

    /// Ends a stalled process, and returns the error that names the phase.
    pub(crate) async fn end_stalled(&self, stall: Stall) -> Error {
        // A supervisor that is gone has ended it already.
        let _ = self
            .supervisor
            .send(tasks::SupervisorCommand::Stalled(stall))
            .await;
        self.wait_ended().await
    }

    /// Ends the process that has lost its session.
    pub(crate) async fn lost(&self, problem: &LeaseProblem) {
        // A supervisor that is gone has ended it already.
        let _ = self
            .supervisor
            .send(tasks::SupervisorCommand::Lost(problem.clone()))
            .await;
    }

    /// Ends the process at once, without waiting for anything.
    fn kill_now(&self, reason: &str) {
        // A full queue has a command to end the process already.
        let _ = self
            .supervisor
            .try_send(tasks::SupervisorCommand::Kill(reason.to_owned()));
    }

    pub(crate) async fn kill(&self, reason: &str) {
        let _ = self
            .supervisor
            .send(tasks::SupervisorCommand::Kill(reason.to_owned()))
            .await;
    }

    /// Ends the process without waiting: for `Drop`.
    pub(crate) fn abandon(&self) {
        // A full queue has a command to end the process already; with the supervisor gone there is nothing to end.
        let _ = self.supervisor.try_send(tasks::SupervisorCommand::Abandon);
        let undriven = self
            .undriven
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(undriven) = undriven {
            undriven.see_to_it();
        }
    }

    pub(crate) async fn wait_ended(&self) -> Error {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(error) => error.clone().unwrap_or_else(|| Error::new(Kind::Closed)),
            Err(_) => self.end_error(),
        }
    }
}

/// The `request` object of a control request.
pub(crate) fn encode_request<T: Serialize + ?Sized>(subtype: &str, fields: &T) -> Result<RawJson, Error> {
    #[derive(Serialize)]
    struct Tagged<'a, T: ?Sized> {
        subtype: &'a str,
        #[serde(flatten)]
        fields: &'a T,
    }
    RawJson::encode(&Tagged { subtype, fields })
        .map_err(|error| Error::invalid_because(format!("fields of the request `{subtype}`"), error))
}

/// The position of a request among the lines to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WritePriority {
    /// Before prompts that wait: the request only reads, or unblocks the CLI.
    Ahead,
    /// Behind the prompts that are queued, since the frame concerns them.
    BehindPrompts,
}

#[derive(Serialize)]
struct ControlRequestLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    request_id: &'a str,
    request: &'a RawJson,
}

/// Cancels a request when its future is dropped, or its deadline passes, before the reply.
struct RequestGuard<'a> {
    conn: &'a Arc<Conn>,
    id: &'a str,
    /// The queue that has the request.
    written: Option<&'a mpsc::Sender<OutgoingLine>>,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        let is_open = self.conn.driver().forget(self.id);
        let Some(queue) = self.written.filter(|_| is_open) else {
            return;
        };
        #[derive(Serialize)]
        struct Cancel<'a> {
            #[serde(rename = "type")]
            kind: &'static str,
            request_id: &'a str,
        }
        if let Ok(bytes) = encode_line(&Cancel {
            kind: "control_cancel_request",
            request_id: self.id,
        }) {
            // In another queue it could overtake the request. With a full one it is not sent; a later reply is dropped.
            let _ = queue.try_send(bytes);
        }
    }
}
