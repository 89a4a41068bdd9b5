//! A transport that plays cassettes.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_sim::cassette::{self, Cassette, Divergence, Places, Playing};

use super::recording::surroundings;
use super::simulated::SimulatedProcess;
use crate::options::{Auth, Launch, Options};
use crate::start::Agent;
use crate::transport::{BoxFuture, Connection, Transport};

/// Plays a cassette to sessions instead of starting a CLI.
///
/// The session has to send what it sent when the cassette was recorded; ids, times, the order of keys and directories may differ
/// ([`outrigger_sim::cassette::CassetteReplay`]). What it says differently ends it as a CLI would that dies, with what was expected
/// and what came on stderr, and so in the error; [`check`](Self::check) has it for the test.
///
/// ```no_run
/// use outrigger::testing::Replay;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let replay = Replay::open("tests/cassettes/hello.ndjson")?;
/// let session = replay.options().start().await?;
/// session.prompt("Say hello.").await?.answer().await?;
/// session.close().await?;
/// replay.check()?;
/// # Ok(())
/// # }
/// ```
///
/// A handle: clones share what is played. Each session that is started plays it from its beginning, but where there is `hello.2.ndjson`
/// beside `hello.ndjson`, the second plays that, and so on, as [`Recording`](super::Recording) wrote them.
#[derive(Clone)]
pub struct Replay(Arc<ReplayInner>);

struct ReplayInner {
    /// One cassette for each session; the last for all further ones.
    cassettes: Vec<(String, Cassette)>,
    settings: Box<ReplaySettings>,
    played: Mutex<Vec<Playing>>,
}

type ReplaySettings = dyn Fn(cassette::CassetteReplay) -> cassette::CassetteReplay + Send + Sync;

impl Replay {
    /// Reads a cassette, as fast as it goes.
    ///
    /// # Errors
    /// When it is not there, or is none.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, cassette::CassetteError> {
        Self::with(path, |replay| replay)
    }

    /// Reads a cassette. `settings` has the pace, what to ignore, and the rules of the recording.
    ///
    /// # Errors
    /// When it is not there, or is none.
    pub fn with(
        path: impl Into<PathBuf>,
        settings: impl Fn(cassette::CassetteReplay) -> cassette::CassetteReplay + Send + Sync + 'static,
    ) -> Result<Self, cassette::CassetteError> {
        let path = path.into();
        let mut cassettes = vec![(path.display().to_string(), Cassette::read(&path)?)];
        loop {
            let next = super::numbered(&path, cassettes.len() + 1);
            if !next.exists() {
                break;
            }
            cassettes.push((next.display().to_string(), Cassette::read(&next)?));
        }
        Ok(Self(Arc::new(ReplayInner {
            cassettes,
            settings: Box::new(settings),
            played: Mutex::default(),
        })))
    }

    /// Options with this transport, for any account. Set the same options as in the recorded session.
    pub fn options(&self) -> Options {
        Agent::builder().auth(Auth::Unchecked).transport(self.clone())
    }

    /// The replays that were started, in order.
    pub fn played(&self) -> Vec<Playing> {
        self.0.played().clone()
    }

    /// Whether all sessions so far sent what was recorded.
    ///
    /// # Errors
    /// The first difference, with what the recording has around it.
    pub fn check(&self) -> Result<(), Box<Divergence>> {
        let found = self.0.played().iter().find_map(Playing::divergence);
        found.map_or(Ok(()), |divergence| Err(Box::new(divergence)))
    }
}

impl ReplayInner {
    fn played(&self) -> MutexGuard<'_, Vec<Playing>> {
        self.played.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Replay {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let mut played = self.0.played();
            let number = played.len().min(self.0.cassettes.len().saturating_sub(1));
            let (name, cassette) = self
                .0
                .cassettes
                .get(number)
                .ok_or_else(|| io::Error::other("there is no cassette"))?;
            let (argv, env) = surroundings(launch);
            let replay = cassette::CassetteReplay::new(cassette.clone())
                .name(name)
                .surroundings(argv, env, &launch.cwd)
                .places(Places::complete);
            let (io, playing) = (self.0.settings)(replay).spawn_in_memory();
            let running = playing.running().clone();
            played.push(playing);
            Ok(Connection {
                stdin: Box::new(io.stdin),
                stdout: Box::new(io.stdout),
                stderr: Some(Box::new(io.stderr)),
                process: Box::new(SimulatedProcess(running)),
            })
        })
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.cassettes.iter().map(|(name, _)| name).collect();
        f.debug_struct("Replay")
            .field("cassettes", &names)
            .finish_non_exhaustive()
    }
}
