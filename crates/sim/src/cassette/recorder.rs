//! Writes down what passes between a client and a CLI.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use outrigger_protocol::framer::{Framed, LineFramer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::file::{Event, Header, LineEnd, Said, VERSION, What};
use super::lines::Lines;
use super::places::Places;
use super::redact::{RedactionRules, Redactor};
use super::split::Held;
use crate::word_list::WordList;

/// The facts of a recording that are known before it begins.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct About {
    argv: Vec<String>,
    env: Vec<(String, String)>,
    places: Places,
    rules: RedactionRules,
    cli_version: Option<String>,
    recorder: Option<String>,
}

impl About {
    /// A session of a CLI with this command line and environment, in this directory. The places and the secrets are taken from them.
    pub fn new(
        argv: impl IntoIterator<Item = impl Into<String>>,
        env: impl IntoIterator<Item = (String, String)>,
        cwd: impl AsRef<Path>,
    ) -> Self {
        let env: Vec<_> = env.into_iter().collect();
        let pairs = || env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let places = Places::of(cwd, pairs());
        let rules = RedactionRules::new().secrets_of(pairs());
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            places,
            rules,
            env,
            ..Self::default()
        }
    }

    /// Changes the rules for redaction, which have the secrets of the environment already.
    pub fn rules(mut self, change: impl FnOnce(RedactionRules) -> RedactionRules) -> Self {
        self.rules = change(self.rules);
        self
    }

    /// Changes the places for which placeholders are written.
    pub fn places(mut self, change: impl FnOnce(&mut Places)) -> Self {
        change(&mut self.places);
        self
    }

    /// What redacts lines of this session.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(&self.places, self.rules.clone())
    }

    fn header(&self, redactor: &Redactor) -> Header {
        let text = |text: &String| redactor.text(text).unwrap_or_else(|| text.clone());
        let matters = self.env.iter().filter(|(name, _)| matters(name));
        Header {
            version: VERSION,
            recorder: self
                .recorder
                .clone()
                .unwrap_or_else(|| concat!("outrigger-sim ", env!("CARGO_PKG_VERSION")).to_owned()),
            cli_version: self.cli_version.clone(),
            argv: redacted(&self.argv, redactor),
            env: matters.map(|(name, value)| (name.clone(), text(value))).collect(),
            cwd: "{{cwd}}".to_owned(),
            platform: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

setters! { About:
    /// The CLI's version, where it is known.
    cli_version(version: impl Into<String>) = Some(version.into());

    /// What records, with its version; this crate unless set.
    recorder(recorder: impl Into<String>) = Some(recorder.into());
}

/// A command line without what must not be in a file.
pub(super) fn redacted(argv: &[String], redactor: &Redactor) -> Vec<String> {
    let mut follows_secret = false;
    let mut is_program = true;
    let argv = argv.iter().map(|argument| {
        is_program &= !argument.starts_with('-');
        if is_program && Path::new(argument).is_absolute() {
            // The path of a program, often in a home directory that the session never uses, does not matter.
            return file_name(argument);
        }
        // `--token VALUE` has nothing in the value to be known by.
        let hidden = std::mem::replace(
            &mut follows_secret,
            argument.starts_with('-') && super::scan::is_secret_name(argument),
        );
        if hidden {
            super::redact::SECRET.to_owned()
        } else {
            redactor.line(argument).unwrap_or_else(|| argument.clone())
        }
    });
    argv.collect()
}

fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Whether a variable changes the CLI's behaviour. No others are recorded.
fn matters(name: &str) -> bool {
    const NAMES: WordList = WordList(
        "ANTHROPIC_MODEL ANTHROPIC_DEFAULT_HAIKU_MODEL ANTHROPIC_DEFAULT_OPUS_MODEL ANTHROPIC_DEFAULT_SONNET_MODEL \
         ANTHROPIC_SMALL_FAST_MODEL BASH_DEFAULT_TIMEOUT_MS BASH_MAX_OUTPUT_LENGTH BASH_MAX_TIMEOUT_MS \
         DISABLE_AUTOUPDATER DISABLE_AUTO_COMPACT DISABLE_COMPACT DISABLE_ERROR_REPORTING DISABLE_PROMPT_CACHING \
         DISABLE_TELEMETRY ENABLE_TOOL_SEARCH MAX_MCP_OUTPUT_TOKENS MAX_THINKING_TOKENS MCP_TIMEOUT \
         MCP_TOOL_TIMEOUT",
    );
    let is_ours = NAMES.has(name) || name.starts_with("CLAUDE_CODE_");
    // Directories of one machine and secrets do not change the behaviour.
    is_ours && !super::scan::is_secret_name(name) && !name.ends_with("TMPDIR") && !name.ends_with("_DIR")
}

/// Writes a cassette, line by line, while the session runs. A handle: clones write the same cassette.
///
/// Each line is redacted and written to the file before its frame is passed on, so that a crash loses at most the
/// line that was being written. When writing fails, the session goes on, the recording stops, and [`finish`](Self::finish) returns the error.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<CassetteRecorderInner>>);

struct CassetteRecorderInner {
    file: Box<dyn Write + Send>,
    redactor: Redactor,
    held: Held,
    start: Instant,
    failed: Option<io::Error>,
    stdin_closed: bool,
    ended: bool,
}

impl Recorder {
    /// Begins a file. One that is there is replaced; directories that are missing are made.
    ///
    /// # Errors
    /// When it cannot be made or written to.
    pub fn create(path: impl AsRef<Path>, about: &About) -> io::Result<Self> {
        let path = path.as_ref();
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        Self::new(File::create(path)?, about)
    }

    /// Begins a cassette in whatever takes bytes. Its times are tokio's, from now on.
    ///
    /// # Errors
    /// When the header cannot be written.
    pub fn new(file: impl Write + Send + 'static, about: &About) -> io::Result<Self> {
        let redactor = about.redactor();
        let mut file: Box<dyn Write + Send> = Box::new(file);
        file.write_all(about.header(&redactor).line().as_bytes())?;
        file.flush()?;
        Ok(Self(Arc::new(Mutex::new(CassetteRecorderInner {
            file,
            redactor,
            held: Held::default(),
            start: Instant::now(),
            failed: None,
            stdin_closed: false,
            ended: false,
        }))))
    }

    /// The client's writer to the CLI: lines are passed on and recorded. Closing it is recorded, too.
    pub fn stdin<W>(&self, inner: W) -> RecordedWriter<W> {
        RecordedWriter {
            inner,
            tap: Some(Tap::new(self, Way::In)),
        }
    }

    /// The client's reader of the CLI: its lines are recorded.
    pub fn stdout<R>(&self, inner: R) -> RecordedReader<R> {
        RecordedReader {
            inner,
            tap: Some(Tap::new(self, Way::Out)),
        }
    }

    /// The CLI's stderr: its lines are recorded.
    pub fn stderr<R>(&self, inner: R) -> RecordedReader<R> {
        RecordedReader {
            inner,
            tap: Some(Tap::new(self, Way::Err)),
        }
    }

    /// Records that the client sent a signal.
    pub fn signal(&self, name: &str) {
        self.lock().write(What::Signal(name.to_owned()));
    }

    /// Records how the CLI ended. Only the first end counts.
    pub fn exit(&self, code: Option<i32>, signal: Option<i32>) {
        let mut inner = self.lock();
        if !std::mem::replace(&mut inner.ended, true) {
            inner.write(What::Exit { code, signal });
        }
    }

    /// Whether everything was written. Later lines are recorded, too.
    ///
    /// # Errors
    /// The error that stopped the recording.
    pub fn finish(&self) -> io::Result<()> {
        let mut inner = self.lock();
        inner.let_go();
        match &inner.failed {
            Some(error) => Err(io::Error::new(
                error.kind(),
                format!("the recording stopped: {error}"),
            )),
            None => inner.file.flush(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, CassetteRecorderInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("failed", &self.lock().failed)
            .finish_non_exhaustive()
    }
}

impl CassetteRecorderInner {
    fn write(&mut self, what: What) {
        let at = self.start.elapsed();
        self.write_at(at, what);
    }

    fn write_at(&mut self, at: Duration, what: What) {
        let redactor = self.redactor.clone();
        let redacted = |said: Said| said.map(|line| redactor.line(line));
        let what = match what {
            What::In(said) => What::In(redacted(said)),
            What::Out(said, end) => What::Out(said, end),
            What::Err(text) => What::Err(redactor.line(&text).unwrap_or(text)),
            other => other,
        };
        let event = Event { at, what };
        for event in self.held.pass(event, &self.redactor) {
            self.append(&event.line());
        }
    }

    fn let_go(&mut self) {
        for event in self.held.let_go(&self.redactor) {
            self.append(&event.line());
        }
    }

    fn append(&mut self, line: &str) {
        if self.failed.is_none()
            && let Err(error) = self
                .file
                .write_all(line.as_bytes())
                .and_then(|()| self.file.flush())
        {
            self.failed = Some(error);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    In,
    Out,
    Err,
}

/// Cuts what passes into lines and records them.
#[derive(Debug)]
struct Tap {
    recorder: Recorder,
    way: Way,
    cut: Cut,
}

/// The client's lines are recorded as the CLI reads them; the CLI's lines are kept unchanged.
#[derive(Debug)]
enum Cut {
    Read(LineFramer),
    Kept(Lines),
}

impl Tap {
    fn new(recorder: &Recorder, way: Way) -> Self {
        Self {
            recorder: recorder.clone(),
            way,
            cut: match way {
                Way::In => Cut::Read(LineFramer::new(LineFramer::DEFAULT_CAP)),
                Way::Out | Way::Err => Cut::Kept(Lines::default()),
            },
        }
    }

    fn feed(way: Way, cut: &mut Cut, inner: &mut CassetteRecorderInner, bytes: &[u8]) {
        match cut {
            Cut::Read(framer) => framer.feed(bytes, |framed| {
                inner.write(said(way, read(framed), LineEnd::There));
            }),
            Cut::Kept(lines) => lines.feed(bytes, |line| inner.write(said(way, line, LineEnd::There))),
        }
    }

    /// The stream has ended, or nobody reads it any more.
    fn end(mut self, over: bool) {
        let mut inner = self.recorder.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut self.cut {
            Cut::Read(framer) => {
                framer.finish(|framed| inner.write(said(self.way, read(framed), LineEnd::Missing)));
            }
            Cut::Kept(lines) => {
                if let Some(line) = lines.finish() {
                    inner.write(said(self.way, line, LineEnd::Missing));
                }
            }
        }
        if self.way == Way::In && !std::mem::replace(&mut inner.stdin_closed, true) {
            inner.write(What::StdinClosed);
        }
        if self.way == Way::Out && over {
            inner.write(What::StdoutClosed);
        }
    }
}

fn read(framed: Framed) -> String {
    match framed {
        Framed::Line(line) => String::from_utf8_lossy(&line).into_owned(),
        Framed::Oversized { head, length } => {
            format!("{} … ({length} bytes)", String::from_utf8_lossy(&head))
        }
        _ => String::new(),
    }
}

fn said(way: Way, line: String, end: LineEnd) -> What {
    match way {
        Way::In => What::In(Said::of(&line)),
        Way::Out => What::Out(Said::of(&line), end),
        Way::Err => What::Err(line),
    }
}

/// Hands everything on to another writer and records what that took. Made by [`Recorder::stdin`].
#[derive(Debug)]
pub struct RecordedWriter<W> {
    inner: W,
    tap: Option<Tap>,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for RecordedWriter<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let Some(tap) = &mut this.tap else {
            return Pin::new(&mut this.inner).poll_write(cx, bytes);
        };
        // Held during the write: a reply to this line must not be recorded before it.
        let mut recording = tap.recorder.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = ready!(Pin::new(&mut this.inner).poll_write(cx, bytes))?;
        let passed = bytes.get(..written).unwrap_or_default();
        Tap::feed(tap.way, &mut tap.cut, &mut recording, passed);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(tap) = self.tap.take() {
            tap.end(true);
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<W> Drop for RecordedWriter<W> {
    fn drop(&mut self) {
        if let Some(tap) = self.tap.take() {
            tap.end(true);
        }
    }
}

/// Hands on what another reader gives and records it. Made by [`Recorder::stdout`] and [`Recorder::stderr`].
#[derive(Debug)]
pub struct RecordedReader<R> {
    inner: R,
    tap: Option<Tap>,
}

impl<R: AsyncRead + Unpin> AsyncRead for RecordedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let room = buffer.remaining();
        let read = ready!(Pin::new(&mut this.inner).poll_read(cx, buffer));
        let passed = buffer.filled().get(before..).unwrap_or_default();
        if let Some(tap) = &mut this.tap {
            let mut recording = tap.recorder.0.lock().unwrap_or_else(PoisonError::into_inner);
            Tap::feed(tap.way, &mut tap.cut, &mut recording, passed);
        }
        // The end of the stream; an empty buffer means nothing.
        if (read.is_err() || passed.is_empty() && room > 0)
            && let Some(tap) = this.tap.take()
        {
            tap.end(true);
        }
        Poll::Ready(read)
    }
}

impl<R> Drop for RecordedReader<R> {
    fn drop(&mut self) {
        if let Some(tap) = self.tap.take() {
            tap.end(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_program_is_installed_is_not_written() {
        let redactor = Redactor::new(&Places::default(), RedactionRules::new());
        let argv = ["/home/jane/bin/node", "/opt/cli.js", "--add-dir", "/opt/x"].map(str::to_owned);
        assert_eq!(
            redacted(&argv, &redactor),
            ["node", "cli.js", "--add-dir", "/opt/x"]
        );
    }
}
