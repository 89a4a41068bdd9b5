//! The tasks of a connection.

use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::outbound::control::Interrupt;
use outrigger_protocol::{Frame, FrameReader};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::cli_requests::{self, Answerers};
use super::core::{Input, Output, changes_run};
use super::stderr_tail::StderrTail;
use super::{Closing, Conn, OutgoingLine};
use crate::cause::Cause;
use crate::deadline::after;
use crate::end::{End, Evidence};
use crate::error::{Error, Kind};
use crate::ownership::LeaseProblem;
use crate::peer::{Connection, Exit, Process, Signal};
use crate::phase::{Phase, Stall};
use crate::spawn::{spawn as spawn_task, spawn_in};
use crate::stderr::{Lines, StderrCallback};

/// How long frames may still arrive once the process has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// How long a process may live on after it closed its stdout, before it is closed.
const AFTER_STDOUT: Duration = Duration::from_secs(2);

/// How long a killed process may take to be reaped.
const REAP: Duration = Duration::from_secs(5);

/// How long a CLI that announced reports of prompts may take to report one, once a turn has begun that may be that prompt's. It
/// usually reports before the turn begins.
const UNSURE: Duration = Duration::from_secs(1);

/// How much is read at once: more than a pipe holds, so that a read tells that the pipe is empty now.
const CHUNK: usize = 128 * 1024;

/// A command for the supervisor.
#[derive(Debug)]
pub(super) enum SupervisorCommand {
    /// Close stdin and let it end; escalate when it does not.
    Close,
    /// Kill the process.
    Kill(String),
    /// The last handle was dropped.
    Abandon,
    /// The CLI does not end a stalled turn.
    Stalled(Stall),
    /// The lease was lost.
    Lost(LeaseProblem),
    /// The CLI's stdin can't be written.
    BrokenPipe(String),
}

pub(super) struct Inputs {
    pub(super) control_lines: mpsc::Receiver<OutgoingLine>,
    pub(super) prompt_lines: mpsc::Receiver<OutgoingLine>,
    pub(super) orders: mpsc::Receiver<SupervisorCommand>,
    pub(super) end: watch::Sender<Option<Error>>,
    pub(super) closing: Closing,
    pub(super) redact: Vec<String>,
    pub(super) guard: Box<dyn std::any::Any + Send>,
    pub(super) stderr: Option<StderrCallback>,
}

pub(super) fn spawn(conn: &Arc<Conn>, connection: Connection, host: Answerers, inputs: Inputs) {
    let Connection {
        stdin,
        stdout,
        stderr,
        process,
    } = connection;
    let tail = Arc::new(StderrTail::new(conn.limits.stderr_tail));
    let close_stdin = Arc::new(Notify::new());

    let reader = spawn_task(read(Arc::clone(conn), stdout, Arc::new(host)));
    let drain = stderr.map(|stderr| {
        let drain = drain_stderr(stderr, Arc::clone(&tail), inputs.stderr);
        spawn_in(conn.span.clone(), drain)
    });
    spawn_task(write(
        Arc::clone(conn),
        stdin,
        inputs.control_lines,
        inputs.prompt_lines,
        Arc::clone(&close_stdin),
    ));
    spawn_task(dispatch(Arc::clone(conn)));
    if let Some(mirror) = &conn.mirror {
        spawn_in(conn.span.clone(), Arc::clone(mirror).run(Arc::clone(conn)));
    }
    spawn_in(conn.span.clone(), watch(Arc::clone(conn)));
    let supervisor = Supervisor {
        conn: Arc::clone(conn),
        process,
        close_stdin,
        closing: inputs.closing,
        tail,
        redact: inputs.redact,
    };
    let outlived = Outlived {
        conn: Arc::clone(conn),
        end: inputs.end,
    };
    let span = conn.span.clone();
    let supervised = async move {
        let end = supervisor.run(inputs.orders, reader, drain).await;
        // The files of the process are removed after its end, and before the end is reported.
        drop(inputs.guard);
        if let Some(ownership) = &outlived.conn.ownership {
            // Nothing runs and nothing is written any more.
            ownership.release().await;
        }
        outlived.end.send_replace(Some(end));
    };
    spawn_in(span, supervised);
}

/// Ends the session if the supervisor is dropped while it works: that happens when its runtime is shut down.
struct Outlived {
    conn: Arc<Conn>,
    end: watch::Sender<Option<Error>>,
}

impl Drop for Outlived {
    fn drop(&mut self) {
        if self.end.borrow().is_some() {
            return;
        }
        if let Some(ownership) = &self.conn.ownership {
            ownership.abandon();
        }
        let error = Error::new(Kind::Ended(End {
            cause: Some(Cause::EndedByUs),
            reason: Some("its runtime was shut down".to_owned()),
            ..End::default()
        }));
        self.conn.note(Input::End(&error));
        self.end.send_replace(Some(error));
        self.conn.changed.notify_waiters();
    }
}

async fn read(conn: Arc<Conn>, mut stdout: Box<dyn AsyncRead + Send + Unpin>, host: Arc<Answerers>) {
    let mut reader = FrameReader::new(conn.limits.max_line);
    let mut chunk = vec![0; CHUNK];
    let mut frames = Vec::new();
    loop {
        // An error of the pipe is its end; the supervisor reports the cause.
        let read = stdout.read(&mut chunk).await.unwrap_or(0);
        let now = Instant::now();
        match read {
            0 => reader.finish(&mut frames),
            read => reader.feed(&chunk[..read], &mut frames),
        }
        route(&conn, &host, &mut frames, now);
        if read == 0 {
            return;
        }
    }
}

/// Routes the frames of one read, under one lock unless something has to be done in between.
fn route(conn: &Arc<Conn>, host: &Arc<Answerers>, frames: &mut Vec<Frame>, now: Instant) {
    if tracing::enabled!(tracing::Level::TRACE) {
        for frame in frames.iter() {
            tracing::trace!(
                parent: &conn.span,
                kind = frame.kind(),
                subtype = frame.subtype(),
                bytes = frame.bytes().len(),
                "frame"
            );
        }
    }
    let mut notable = false;
    let mut frames = frames.drain(..);
    let mut deeds = Vec::new();
    loop {
        let mut driver = conn.driver();
        let is_all = !frames.any(|frame| {
            notable |= changes_run(&frame);
            driver.on_frame(&frame, now)
        });
        driver.flush(&mut deeds);
        drop(driver);
        for deed in deeds.drain(..) {
            match deed {
                Output::CliRequest { serial, id, frame } => {
                    cli_requests::spawn(conn, host, serial, id, frame)
                }
                Output::RefuseRequest { serial, id, frame } => {
                    cli_requests::refuse(conn, host, serial, &id, &frame)
                }
                other => conn.act(other),
            }
        }
        if is_all {
            break;
        }
    }
    if notable {
        conn.changed.notify_waiters();
    }
}

/// Confirms a guess once the CLI had the time to report otherwise. At most two of these run for a prompt: at the assumed begin and
/// end of its turn.
pub(super) fn confirm_later(conn: &Arc<Conn>, turn: u64) {
    let conn = Arc::clone(conn);
    spawn_task(async move {
        let mut ended = conn.ended.clone();
        tokio::select! {
            _ = ended.wait_for(Option::is_some) => {}
            () = tokio::time::sleep(UNSURE) => {
                conn.note(Input::Confirm { turn });
            }
        }
    });
}

async fn write(
    conn: Arc<Conn>,
    stdin: Box<dyn AsyncWrite + Send + Unpin>,
    mut control: mpsc::Receiver<OutgoingLine>,
    mut prompts: mpsc::Receiver<OutgoingLine>,
    close: Arc<Notify>,
) {
    let closing = close.notified();
    tokio::pin!(closing);
    let mut ended = conn.ended.clone();
    let over = ended.wait_for(Option::is_some);
    tokio::pin!(over);
    let stdin = conn.stdin.open(stdin);
    loop {
        tokio::select! {
            // Replies unblock the CLI; prompts only add work. Accepted lines are written before the end.
            biased;
            () = std::future::poll_fn(|cx| stdin.poll_begin(cx, &mut control, &mut prompts)) => {}
            () = &mut closing => break,
            _ = &mut over => return,
        }
        let written = tokio::select! {
            biased;
            written = stdin.write() => written,
            // A process that the CLI has left behind may hold a pipe open without reading it.
            _ = &mut over => return,
        };
        if let Err(error) = written {
            // A supervisor that is gone knows already.
            let _ = conn
                .supervisor
                .send(SupervisorCommand::BrokenPipe(error.to_string()))
                .await;
            return;
        }
    }
    let Some((mut stdin, rest)) = stdin.take() else {
        return;
    };
    let last = async {
        // An error can't matter here: the peer sees the end of its stdin, or is gone.
        let _ = stdin.write_all(&rest).await;
        let _ = stdin.shutdown().await;
    };
    tokio::select! {
        biased;
        () = last => {}
        _ = &mut over => {}
    }
}

/// Sends the prompts that may be sent.
async fn dispatch(conn: Arc<Conn>) {
    let mut ended = conn.ended.clone();
    loop {
        tokio::select! {
            () = conn.dispatch.notified() => {}
            _ = ended.wait_for(Option::is_some) => return,
        }
        if conn.send_ready(|| ()).await.is_none() {
            return;
        }
    }
}

/// Ends a stalled turn, and if that does not help, the process.
async fn watch(conn: Arc<Conn>) {
    let mut ended = conn.ended.clone();
    loop {
        let due = conn.driver().due();
        let timer = async {
            match due {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = ended.wait_for(Option::is_some) => return,
            () = conn.watched.notified() => continue,
            () = timer => {}
        }
        let Some(stall) = conn.poll_stall() else {
            continue;
        };
        tracing::warn!(phase = %stall.phase, after = ?stall.after, "a deadline has passed; the turn is interrupted");
        let within = conn.limits.interrupt_in_all();
        let interrupted = tokio::select! {
            _ = ended.wait_for(Option::is_some) => return,
            interrupted = timeout(within, conn.interrupt(Interrupt::default())) => interrupted
                .unwrap_or_else(|_| Err(Error::timeout("the end of the stalled turn", within))),
        };
        if let Err(error) = &interrupted {
            tracing::warn!(%error, "the turn could not be ended; the process is");
        }
        if interrupted.is_err() || stall.phase == Phase::Run {
            let _ = conn.end_stalled(stall).await;
            return;
        }
    }
}

async fn drain_stderr(
    mut stderr: Box<dyn AsyncRead + Send + Unpin>,
    tail: Arc<StderrTail>,
    mut callback: Option<StderrCallback>,
) {
    let mut chunk = vec![0; 8 * 1024];
    let mut lines = None;
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        tail.push(&chunk[..read]);
        // Most CLIs write nothing there, and need no thread for it.
        if let Some(callback) = callback.take() {
            lines = Lines::to(callback)
                .inspect_err(|error| tracing::warn!(%error, "there is no thread for the stderr callback"))
                .ok();
        }
        if let Some(lines) = &mut lines {
            lines.push(&chunk[..read]);
        }
        tracing::debug!(bytes = read, "stderr");
    }
}

struct Supervisor {
    conn: Arc<Conn>,
    process: Box<dyn Process>,
    close_stdin: Arc<Notify>,
    closing: Closing,
    tail: Arc<StderrTail>,
    redact: Vec<String>,
}

/// The stage of the end.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum EndStage {
    Running,
    /// The CLI closed its stdout and should end by itself.
    Silent,
    Closed,
    Terminated,
    Killed,
}

impl Supervisor {
    async fn run(
        mut self,
        mut orders: mpsc::Receiver<SupervisorCommand>,
        mut reader: tokio::task::JoinHandle<()>,
        mut drain: Option<tokio::task::JoinHandle<()>>,
    ) -> Error {
        let mut stage = EndStage::Running;
        let mut deadline: Option<Instant> = None;
        let mut reason: Option<String> = None;
        let mut broken_pipe: Option<String> = None;
        let mut stalled: Option<Stall> = None;
        let mut reader_ended = false;
        let exit = loop {
            let timer = async {
                match deadline {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                exit = self.process.wait() => break exit.ok(),
                Some(order) = orders.recv() => {
                    let (next, because) = match order {
                        SupervisorCommand::Close => (EndStage::Closed, Some("it was closed".to_owned())),
                        SupervisorCommand::Kill(because) => (EndStage::Killed, Some(because)),
                        SupervisorCommand::Abandon => (EndStage::Closed, Some("its handles were dropped".to_owned())),
                        SupervisorCommand::Stalled(stall) => {
                            stalled = Some(stall);
                            let mut because = format!("{} took longer than {:?}", stall.phase, stall.after);
                            if stall.phase == Phase::Initialize
                                && let Some(mark) = self.conn.core().startup_mark()
                            {
                                because.push_str(&format!("; it came as far as `{mark}`"));
                            }
                            (EndStage::Terminated, Some(because))
                        }
                        SupervisorCommand::Lost(problem) => {
                            let stage = match problem.leaves_time() {
                                true => EndStage::Terminated,
                                false => EndStage::Killed,
                            };
                            (stage, Some(problem.to_string()))
                        }
                        SupervisorCommand::BrokenPipe(error) => {
                            // Most likely it is ending by itself, and its exit will show the cause.
                            broken_pipe = Some(format!("its stdin can't be written: {error}"));
                            (EndStage::Closed, None)
                        }
                    };
                    if next > stage {
                        reason = reason.or(because);
                        deadline = self.enter(next);
                        stage = next;
                    }
                }
                _ = &mut reader, if !reader_ended => {
                    reader_ended = true;
                    if stage < EndStage::Silent {
                        stage = EndStage::Silent;
                        deadline = self.enter(stage);
                    }
                }
                () = timer => {
                    stage = match stage {
                        EndStage::Running | EndStage::Silent => EndStage::Closed,
                        EndStage::Closed => EndStage::Terminated,
                        EndStage::Terminated => EndStage::Killed,
                        EndStage::Killed => {
                            reason = Some("it did not end when killed".to_owned());
                            break None;
                        }
                    };
                    if stage == EndStage::Closed {
                        reason.get_or_insert_with(|| "it closed its stdout".to_owned());
                    }
                    // It lives on with a broken pipe, so that is why it is ended.
                    reason = reason.or_else(|| broken_pipe.take());
                    deadline = self.enter(stage);
                }
            }
        };
        // The last frames and words are in the pipes. A grandchild may keep them open, so there is an end to waiting.
        let rest = async {
            if !reader_ended {
                // A reader that panicked has nothing more to say.
                let _ = (&mut reader).await;
            }
            if let Some(drain) = &mut drain {
                let _ = drain.await;
            }
        };
        let is_unread = timeout(DRAIN, rest).await.is_err();
        if is_unread {
            reader.abort();
            if let Some(drain) = &drain {
                drain.abort();
            }
        }
        if let Some(mirror) = &self.conn.mirror {
            // Before the end is told: what could not be stored is told too. What nobody read of the CLI may be a report, too.
            let cut_off = is_unread || !exit.is_some_and(Exit::success);
            mirror.finish(&self.conn, cut_off).await;
        }
        self.finish(exit, reason, stage, stalled)
    }

    /// Begins a stage, and returns when the next is due.
    fn enter(&mut self, stage: EndStage) -> Option<Instant> {
        tracing::debug!(?stage, pid = self.process.id(), "ending");
        let time = match stage {
            EndStage::Running => return None,
            EndStage::Silent => AFTER_STDOUT,
            EndStage::Closed => {
                self.conn.note(Input::Closing);
                self.close_stdin.notify_one();
                self.closing.grace
            }
            EndStage::Terminated => {
                self.signal(Signal::Terminate);
                self.closing.term_grace
            }
            EndStage::Killed => {
                self.signal(Signal::Kill);
                REAP
            }
        };
        Some(after(time))
    }

    fn signal(&mut self, signal: Signal) {
        if let Err(error) = self.process.signal(signal) {
            tracing::warn!(%error, ?signal, "could not signal the process");
        }
    }

    fn finish(
        self,
        exit: Option<Exit>,
        reason: Option<String>,
        stage: EndStage,
        stalled: Option<Stall>,
    ) -> Error {
        let oom_killed = self.process.killed_for_memory();
        let lease = self.conn.ownership.as_ref().and_then(|own| own.problem_at_end());
        let reason = reason.or_else(|| lease.as_ref().map(ToString::to_string));
        let mut driver = self.conn.driver();
        let last_error = driver.core().last_result().cloned();
        let last_error = last_error.filter(|outcome| !outcome.is_success());
        let mut secrets = self.redact;
        secrets.append(&mut driver.secrets);
        let stderr_tail = self.tail.text(&secrets);
        let mid_turn = driver.core().is_mid_turn();
        let last_frames = driver.core().recent();
        let mut cause = Cause::of_end(&Evidence {
            exit,
            stderr: &stderr_tail,
            last_error: last_error.as_ref(),
            by_us: reason.is_some() || stage >= EndStage::Terminated,
            killed_by_us: stage == EndStage::Killed,
            mid_turn,
            has_spoken: !last_frames.is_empty(),
            oom_killed,
        });
        if lease.as_ref().is_some_and(|lease| lease.holder().is_some()) {
            cause = Cause::SessionInUse;
        } else if stalled.is_some_and(|stall| stall.phase.is_in_all()) {
            cause = Cause::DeadlinePassed;
        }
        tracing::debug!(?exit, reason, ?cause, "ended");
        let error = Error::new(Kind::Ended(End {
            exit,
            cause: Some(cause),
            stderr_tail,
            last_error,
            reason,
            stalled: stalled.map(|stall| stall.phase),
            lease,
            last_frames,
            mid_turn,
        }));
        // It ends once.
        let _ = driver.step(Input::End(&error), Instant::now());
        drop(driver);
        self.conn.changed.notify_waiters();
        error
    }
}
