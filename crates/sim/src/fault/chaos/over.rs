//! Chaos over a peer: a cassette or a script, played anew in each run, with the faults between it and the client.

use std::future::Future;
use std::sync::Arc;

use tokio::io::DuplexStream;

use super::{Case, Chaos, ChaosFailure, Summary};
use crate::cassette::{Cassette, CassetteReplay};
use crate::fault::{FaultyReader, FaultyWriter, FloodedReader, FrameDirection, Stage, Unfit, Wire};
use crate::peer::{ClientIo, Exit, Running, Signal};
use crate::script::{Gates, Script};

/// A peer that can be started for each schedule.
///
/// A [`Cassette`] is replayed without delays, a [`CassetteReplay`] with its settings, a [`Script`] by the simulated agent; and
/// a closure that starts something is a peer, too.
pub trait Peer: Send + Sync + 'static {
    /// Starts a peer. Called inside a tokio runtime.
    fn start(&self) -> (ClientIo, Running);
}

impl Peer for CassetteReplay {
    fn start(&self) -> (ClientIo, Running) {
        let (io, playing) = self.clone().spawn_in_memory();
        (io, playing.running().clone())
    }
}

impl Peer for Cassette {
    fn start(&self) -> (ClientIo, Running) {
        CassetteReplay::new(self.clone()).start()
    }
}

impl Peer for Script {
    fn start(&self) -> (ClientIo, Running) {
        let agent = self.setting().script(self, &Gates::default());
        agent.spawn_in_memory()
    }
}

impl<F: Fn() -> (ClientIo, Running) + Send + Sync + 'static> Peer for F {
    fn start(&self) -> (ClientIo, Running) {
        self()
    }
}

/// A client's ends of a peer, behind the faults of one schedule.
#[derive(Debug)]
#[non_exhaustive]
pub struct Client {
    /// Write here; shut it down or drop it to end the input.
    pub stdin: FaultyWriter,
    /// Read messages here.
    pub stdout: FaultyReader<DuplexStream>,
    /// Read complaints here. A flood is held back until the client reads, and stdout is silent until then.
    pub stderr: FloodedReader<DuplexStream>,
    /// The life of the peer.
    pub process: Life,
}

impl Client {
    /// Starts a peer and applies one schedule to its pipes. Must be called inside a tokio runtime;
    /// [`Chaos::over`] does it for each run.
    ///
    /// # Errors
    /// When a fault needs more than a peer in memory.
    pub fn new(peer: &impl Peer, case: &Case) -> Result<Self, Unfit> {
        let wire = case.wire(Stage::Transport)?;
        let (io, running) = peer.start();
        let client = Self {
            stdin: wire.writer(FrameDirection::Input, io.stdin),
            stdout: wire.reader(FrameDirection::Output, io.stdout),
            stderr: wire.stderr(io.stderr),
            process: Life {
                wire: wire.clone(),
                running: running.clone(),
                case: case.clone(),
            },
        };
        tokio::spawn(async move {
            tokio::select! {
                _ = running.exit() => {}
                _ = wire.ended() => {
                    running.signal(Signal::Kill);
                    running.exit().await;
                }
            }
            // Nothing stands still for a peer that is gone.
            wire.over();
        });
        Ok(client)
    }
}

/// The life of a peer, as far as the faults let it be. A handle.
#[derive(Debug, Clone)]
pub struct Life {
    wire: Wire,
    running: Running,
    case: Case,
}

impl Life {
    /// Waits for the end, and returns the fault's end, if a fault ended it. Can be dropped and called again.
    pub async fn exit(&self) -> Exit {
        let exit = self.running.exit().await;
        self.wire.ending().unwrap_or(exit)
    }

    /// Signals the peer; SIGTERM does nothing once a fault has it ignored.
    pub fn signal(&self, signal: Signal) {
        if !(matches!(signal, Signal::Term) && self.wire.ignores_term()) {
            self.running.signal(signal);
        }
    }

    /// The peer itself, for its report.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// The schedule of this run, and its strikes.
    pub fn case(&self) -> &Case {
        &self.case
    }
}

impl Chaos {
    /// As [`run`](Self::run), for a client that uses pipes: each run starts a new `peer`, and `test` gets the client's ends
    /// of its pipes, with the faults between.
    ///
    /// A cassette expects the recorded lines of the client, so that faults on the way to it end it with
    /// [`CassetteReplay::DIVERGED`]: use a profile for the [way from the CLI](super::Profile::output_only) where the client's lines have to arrive.
    ///
    /// ```
    /// use outrigger_sim::cassette::Cassette;
    /// use outrigger_sim::fault::{Profile, chaos};
    /// use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    ///
    /// let cassette = Cassette::parse(concat!(
    ///     r#"{"t":0,"dir":"meta","msg":{"cassette":2}}"#, "\n",
    ///     r#"{"t":0,"dir":"in","msg":{"type":"user","message":{"role":"user","content":"hi"}}}"#, "\n",
    ///     r#"{"t":1,"dir":"out","msg":{"type":"result","result":"hello"}}"#, "\n",
    /// ))?;
    /// let summary = chaos(Profile::harmless().output_only().without("stderr")).seeds(20).over(cassette, |mut client| async move {
    ///     client.stdin.write_all(b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n").await?;
    ///     drop(client.stdin);
    ///     let mut text = String::new();
    ///     client.stdout.read_to_string(&mut text).await?;
    ///     assert!(text.contains("hello"));
    ///     Ok(())
    /// })?;
    /// assert!(summary.strikes > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn over<P, F, T>(self, peer: P, test: F) -> Result<Summary, Box<ChaosFailure>>
    where
        P: Peer,
        F: Fn(Client) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), Box<dyn std::error::Error>>>,
    {
        let (peer, test) = (Arc::new(peer), Arc::new(test));
        self.run(move |case| {
            let (peer, test) = (Arc::clone(&peer), Arc::clone(&test));
            async move { test(Client::new(&*peer, &case)?).await }
        })
    }
}
