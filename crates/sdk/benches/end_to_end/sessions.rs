//! The cases that run the SDK.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use outrigger::mcp::{SdkMcpServer, Tool};
use outrigger::options::{Auth, Launch, Secret};
use outrigger::permissions::PermissionResult;
use outrigger::transport::{BoxFuture, Connection, Exit, Pipes, Process, Signal, Transport};
use outrigger::{Agent, Event, Options, Session};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{feed, gauge};

/// How many sessions are idle at once.
pub(crate) const IDLE: usize = 1000;

fn options(transport: impl Transport) -> Options {
    Agent::builder()
        .auth(Auth::ApiKey(Secret::new("measured")))
        .transport(transport)
}

/// A peer of this program in a process of its own, over the pipes that the SDK's own transport would use.
struct Feeder(&'static str);

impl Transport for Feeder {
    fn open<'a>(&'a self, _: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async {
            let command: Command = feed::command(self.0);
            let mut child = tokio::process::Command::from(command)
                .kill_on_drop(true)
                .spawn()?;
            Ok(Connection {
                stdin: Box::new(child.stdin.take().unwrap()),
                stdout: Box::new(child.stdout.take().unwrap()),
                stderr: None,
                process: Box::new(Fed(child)),
            })
        })
    }
}

struct Fed(tokio::process::Child);

impl Process for Fed {
    fn id(&self) -> Option<u32> {
        self.0.id()
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async { Ok(self.0.wait().await?.into()) })
    }

    fn signal(&mut self, _: Signal) -> io::Result<()> {
        self.0.start_kill()
    }
}

/// What became of a stream.
#[derive(Default)]
pub(crate) struct Streamed {
    /// Messages that the session read.
    pub(crate) frames: u64,
    /// Elements that the program got.
    pub(crate) items: u64,
    /// Messages that the program was too slow for.
    pub(crate) left_out: u64,
    pub(crate) bytes: u64,
    /// Resident KiB at the first tenth of the stream, at the half, and at the end.
    pub(crate) rss: [u64; 3],
    pub(crate) cpu: Duration,
}

/// How the program takes what comes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Taking {
    /// Typed events.
    Events,
    /// Frames, undecoded.
    Frames,
    /// Nothing until all is there, then typed events.
    Late,
}

pub(crate) async fn stream(what: &'static str, taking: Taking) -> Streamed {
    let session = options(Feeder(what)).start().await.unwrap();
    let before = session.stats();
    let begun = gauge::cpu();
    let mut turn = session.prompt("go").await.unwrap();
    let watch = turn.watch();
    let mut out = Streamed::default();
    if taking == Taking::Late {
        watch.outcome().await.unwrap();
    }
    loop {
        match taking {
            Taking::Frames if turn.next_frame().await.is_none() => break,
            Taking::Frames => {}
            _ => match turn.next().await {
                None => break,
                Some(Ok(Event::Lagged(lag))) => out.left_out += lag.frames,
                Some(Ok(Event::Undecodable(frame, misfit))) => panic!("{misfit}: {}", frame.text()),
                Some(event) => drop(std::hint::black_box(event.unwrap())),
            },
        }
        out.items += 1;
        if out.items == 20_000 {
            out.rss[0] = gauge::rss();
        } else if out.items == 100_000 {
            out.rss[1] = gauge::rss();
        }
    }
    assert!(watch.outcome().await.unwrap().is_success());
    out.cpu = gauge::cpu() - begun;
    out.rss[2] = gauge::rss();
    let after = session.stats();
    out.frames = after.frames - before.frames;
    out.bytes = after.bytes - before.bytes;
    assert!(after.misfits == 0 && after.unknown.is_empty(), "{after:?}");
    session.close().await.unwrap();
    out
}

/// Lets the peer ask; what it measured.
pub(crate) async fn round_trips() -> (String, Duration) {
    let allow = |_| async { PermissionResult::allow() };
    asked(options(Feeder("ask")).permissions(allow)).await
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: u64,
    b: u64,
}

/// Lets the peer call a tool of a server in this process; what it measured.
pub(crate) async fn tool_calls() -> (String, Duration) {
    let add = Tool::new("add", "Adds", async |input: Add, _| {
        (input.a + input.b).to_string()
    });
    asked(options(Feeder("call")).sdk_mcp_server("calc", SdkMcpServer::new("calc").tool(add))).await
}

async fn asked(options: Options) -> (String, Duration) {
    let session = options.start().await.unwrap();
    let begun = gauge::cpu();
    let (said, _) = session.prompt("go").await.unwrap().text().await.unwrap();
    assert_eq!(said, "", "the answer is in the result alone");
    let mut turn = session.prompt("again").await.unwrap();
    let outcome = turn.outcome().await.unwrap();
    let cpu = (gauge::cpu() - begun) / 2;
    session.close().await.unwrap();
    (outcome.result_text().to_owned(), cpu)
}

/// Memory (bytes) and tasks of one idle session in memory.
pub(crate) async fn idle() -> (u64, f64) {
    // What the first session sets up once is not counted.
    let first = in_memory().await;
    let (rss, tasks) = (gauge::rss(), alive());
    let mut sessions = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        sessions.push(in_memory().await);
    }
    let (rss, tasks) = (gauge::rss() - rss, alive() - tasks);
    drop((first, sessions));
    (rss * 1024 / IDLE as u64, tasks as f64 / IDLE as f64)
}

fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

async fn in_memory() -> Session {
    let peer = Memory::default();
    options(Pipes::new(peer.clone(), peer)).start().await.unwrap()
}

/// A peer without a task or a process: it answers requests where they are written, and else says nothing.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<(VecDeque<u8>, Option<Waker>)>>);

impl AsyncWrite for Memory {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, line: &[u8]) -> Poll<io::Result<usize>> {
        let message: serde_json::Value = serde_json::from_slice(line)?;
        let (id, reply) = (&message["request_id"], feed::INITIALIZED.replace('\n', ""));
        let answer = format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{id},"response":{reply}}}}}"#
        );
        let mut inner = self.0.lock().unwrap();
        inner.0.extend(answer.as_bytes());
        inner.0.push_back(b'\n');
        if let Some(waker) = inner.1.take() {
            waker.wake();
        }
        Poll::Ready(Ok(line.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Memory {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.lock().unwrap();
        if inner.0.is_empty() {
            inner.1 = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let room = into.remaining().min(inner.0.len());
        into.put_slice(&inner.0.make_contiguous()[..room]);
        inner.0.drain(..room);
        if inner.0.is_empty() {
            inner.0 = VecDeque::new();
        }
        Poll::Ready(Ok(()))
    }
}
