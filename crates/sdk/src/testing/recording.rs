//! A transport that records what passes through another one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use outrigger_sim::cassette::{About, Places, Recorder, RedactionRules};

use crate::options::Launch;
use crate::transport::{BoxFuture, Connection, Exit, Process, Signal, Signaller, Transport};

/// Records each session of another transport into a cassette, for [`Replay`](super::Replay).
///
/// Nothing is changed of what passes and of when it does. Secrets, directories and names are redacted before they are
/// written; see [`RedactionRules`]. Each line is in the file before it is handed on. Recording that fails (a disk that is full) does not
/// fail the session; [`finish`](Self::finish) returns the error.
///
/// ```no_run
/// use outrigger::testing::Recording;
/// use outrigger::{Agent, Local};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let recording = Recording::new(Local::new(), "tests/cassettes/hello.ndjson");
/// let session = Agent::builder().transport(recording.clone()).start().await?;
/// session.prompt("Say hello.").await?.answer().await?;
/// session.close().await?;
/// recording.finish()?;
/// # Ok(())
/// # }
/// ```
///
/// It is a handle: clones share the recording. A transport that is opened more than once writes `hello.2.ndjson`, `hello.3.ndjson`, …
/// for the second session and those that follow.
pub struct Recording<T>(Arc<RecordingInner<T>>);

struct RecordingInner<T> {
    transport: T,
    path: PathBuf,
    rules: Mutex<RedactionRules>,
    opened: AtomicUsize,
    recorders: Mutex<Vec<Recorder>>,
}

impl<T> Clone for Recording<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Transport> Recording<T> {
    /// Records what passes through `transport` into a file at `path`; one that is there is replaced.
    pub fn new(transport: T, path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(RecordingInner {
            transport,
            path: path.into(),
            rules: Mutex::default(),
            opened: AtomicUsize::new(0),
            recorders: Mutex::default(),
        }))
    }

    /// Sets rules for redaction, beside those that always hold, for sessions that are started from now on.
    pub fn rules(self, rules: RedactionRules) -> Self {
        *self.0.rules.lock().unwrap_or_else(PoisonError::into_inner) = rules;
        self
    }

    /// Whether everything so far is written.
    ///
    /// # Errors
    /// The first failure at which a recording stopped.
    pub fn finish(&self) -> io::Result<()> {
        let recorders = self.0.recorders.lock().unwrap_or_else(PoisonError::into_inner);
        recorders.iter().try_for_each(Recorder::finish)
    }

    fn recorder(&self, launch: &Launch) -> io::Result<Recorder> {
        let (argv, env) = surroundings(launch);
        let mut rules = self
            .0
            .rules
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        // Shorter ones are in every other word.
        for secret in launch.secrets.iter().filter(|secret| secret.reveal().len() >= 4) {
            rules = rules.literal(secret.reveal());
        }
        let about = About::new(argv, env, &launch.cwd)
            .places(Places::complete)
            .rules(|own| own.and(rules))
            .recorder(concat!("outrigger ", env!("CARGO_PKG_VERSION")));
        let number = self.0.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let recorder = Recorder::create(super::numbered(&self.0.path, number), &about)?;
        let mut recorders = self.0.recorders.lock().unwrap_or_else(PoisonError::into_inner);
        recorders.push(recorder.clone());
        Ok(recorder)
    }
}

impl<T: Transport> Transport for Recording<T> {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            // Without a CLI there is nothing to record, and an older cassette stays.
            let connection = self.0.transport.open(launch).await?;
            let recorder = self.recorder(launch).map_err(|error| {
                let path = self.0.path.display();
                io::Error::new(error.kind(), format!("cannot write the cassette {path}: {error}"))
            })?;
            Ok(Connection {
                stdin: Box::new(recorder.stdin(connection.stdin)),
                stdout: Box::new(recorder.stdout(connection.stdout)),
                stderr: connection
                    .stderr
                    .map(|stderr| Box::new(recorder.stderr(stderr)) as Box<_>),
                process: Box::new(RecordedProcess {
                    process: connection.process,
                    recorder,
                }),
            })
        })
    }

    fn is_local(&self) -> bool {
        self.0.transport.is_local()
    }

    fn home(&self) -> Option<&Path> {
        self.0.transport.home()
    }

    fn can_reopen(&self) -> bool {
        self.0.transport.can_reopen()
    }
}

impl<T> fmt::Debug for Recording<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("path", &self.0.path)
            .finish_non_exhaustive()
    }
}

/// The command line and the environment as texts.
pub(super) fn surroundings(launch: &Launch) -> (Vec<String>, Vec<(String, String)>) {
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let argv = std::iter::once(launch.program.as_os_str()).chain(launch.args.iter().map(AsRef::as_ref));
    let env = launch.env.iter();
    (
        argv.map(text).collect(),
        env.map(|(name, value)| (text(name), text(value))).collect(),
    )
}

/// A process whose end is recorded.
struct RecordedProcess {
    process: Box<dyn Process>,
    recorder: Recorder,
}

impl Process for RecordedProcess {
    fn id(&self) -> Option<u32> {
        self.process.id()
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            let exit = self.process.wait().await?;
            self.recorder.exit(exit.code, exit.signal);
            Ok(exit)
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.recorder.signal(match signal {
            Signal::Terminate => "SIGTERM",
            Signal::Kill => "SIGKILL",
        });
        self.process.signal(signal)
    }

    fn signaller(&self) -> Option<Box<dyn Signaller>> {
        self.process.signaller()
    }

    fn killed_for_memory(&self) -> Option<bool> {
        self.process.killed_for_memory()
    }
}
