//! What a program starts in the place of `claude`: it becomes the player, with a recorder in each of its pipes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_protocol::framer::{Framed, LineFramer};
use serde::{Deserialize, Serialize};

use super::recorded;
use crate::cassette::{LineEnd, Said, What};

/// How the player of a run is started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlayerStage {
    /// The player.
    pub(crate) cli: PathBuf,
    /// Variables that the program gets, whatever it says.
    pub(crate) set: BTreeMap<String, String>,
    /// Variables that the program gets unless it says otherwise.
    pub(crate) defaults: BTreeMap<String, String>,
    /// Variables that the program must not have.
    pub(crate) unset: Vec<String>,
    /// Values that count as none: a program has them from the user, and not from its test.
    pub(crate) users: BTreeMap<String, String>,
    /// A working directory in place of which the player gets another one.
    pub(crate) moved: Option<(PathBuf, PathBuf)>,
}

/// The file of the stage in the directory of a run.
const FILE: &str = "stage.json";

impl PlayerStage {
    /// Sets a variable of the player.
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.set.insert(name.to_owned(), value.into());
    }

    /// Writes how the player is started, and a `claude` that starts it.
    #[cfg(unix)]
    pub(crate) fn write(&self, own: &Path, run: &Path, bin: &Path) -> io::Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(run.join(FILE), serde_json::to_string(self)?)?;
        let quoted = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"));
        // The program may start it with an environment of its own, so everything has to be here.
        let script = format!(
            "#!/bin/sh\nexec {} --in-run {} \"$@\"\n",
            quoted(own),
            quoted(run)
        );
        let claude = bin.join("claude");
        fs::write(&claude, script)?;
        fs::set_permissions(&claude, fs::Permissions::from_mode(0o755))?;
        Ok(claude)
    }

    /// A program cannot be replaced by another one here.
    #[cfg(not(unix))]
    pub(crate) fn write(&self, _: &Path, _: &Path, _: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Becomes the player of the run in this directory, with these arguments. Comes back only if that fails.
///
/// The process stays the same one, so that signals reach the player and its exit is seen. `own` is this program, which is started
/// once more for each pipe, as a [recorder](record).
///
/// # Errors
/// When the run is no longer there, or the player cannot be started.
#[cfg(unix)]
pub fn become_player(own: &Path, run: &Path, arguments: &[OsString]) -> io::Result<Infallible> {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    let stage = fs::read(run.join(FILE)).map_err(|error| {
        let what = format!("the run of this `claude` is over ({}: {error})", run.display());
        io::Error::new(error.kind(), what)
    })?;
    let stage: PlayerStage = serde_json::from_slice(&stage)?;
    let (mut file, path) = recorded::create(run)?;
    let began = recorded::now();
    let argv = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned());
    let mut cwd = std::env::current_dir().unwrap_or_default();
    if let Some((from, to)) = &stage.moved
        && *from == cwd
    {
        std::env::set_current_dir(to)?;
        cwd.clone_from(to);
    }
    let start = recorded::Start {
        argv: argv.collect(),
        cwd: cwd.to_string_lossy().into_owned(),
        pid: std::process::id().cast_signed(),
        began: began.as_secs_f64(),
    };
    let start = What::Note(RawJson::from(serde_json::to_value(start)?));
    file.write_all(recorded::entry(began, start).as_bytes())?;
    let recorder = |direction: &str| {
        let mut recorder = Command::new(own);
        // The lock on the file is theirs as well: it lasts until both have ended. A group of their own keeps signals away.
        recorder
            .arg("--record-frames")
            .arg(direction)
            .arg(began.as_micros().to_string())
            .arg(&path)
            .process_group(0);
        recorder
    };
    let (input, to_player) = io::pipe()?;
    recorder("in")
        .stdin(Stdio::inherit())
        .stdout(to_player)
        .stderr(file.try_clone()?)
        .spawn()?;
    let (from_player, output) = io::pipe()?;
    recorder("out")
        .stdin(from_player)
        .stdout(Stdio::inherit())
        .stderr(file.try_clone()?)
        .spawn()?;
    let mut player = Command::new(&stage.cli);
    player
        .args(arguments)
        .stdin(input)
        .stdout(output)
        .env("PWD", &cwd);
    for name in &stage.unset {
        player.env_remove(name);
    }
    for (name, value) in &stage.defaults {
        let own = std::env::var_os(name).filter(|value| !value.is_empty());
        if own.is_none_or(|own| stage.users.get(name).is_some_and(|users| own == **users)) {
            player.env(name, value);
        }
    }
    player.envs(&stage.set).env(super::FRAMES, &path);
    let error = player.exec();
    let what = format!("cannot start {}: {error}", stage.cli.display());
    Err(io::Error::new(error.kind(), what))
}

/// A program cannot be replaced by another one here.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn become_player(_: &Path, _: &Path, _: &[OsString]) -> io::Result<Infallible> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What a recorder is told.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecorderNotice {
    direction: String,
    began: Duration,
    file: PathBuf,
}

impl RecorderNotice {
    /// From the arguments behind `--record-frames`: the direction, when the process began, and the file of its frames.
    pub fn read(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let direction = arguments.next()?.into_string().ok()?;
        let began = arguments.next()?.to_str()?.parse().ok()?;
        let file = arguments.next()?.into();
        Some(Self {
            direction,
            began: Duration::from_micros(began),
            file,
        })
    }
}

/// Copies stdin to stdout, and records each line on stderr, which is the file of the process. A line is recorded before the other
/// side can have read it, so that no answer stands ahead of what it answers.
///
/// # Errors
/// When nobody reads, or nothing can be read.
pub fn record(recorder: &RecorderNotice) -> io::Result<()> {
    let (mut input, mut output, mut file) = (io::stdin().lock(), io::stdout().lock(), io::stderr().lock());
    let mut framer = LineFramer::new(LineFramer::DEFAULT_CAP);
    let mut keep = |framed: Framed| {
        let line = match framed {
            Framed::Line(line) => line,
            Framed::Oversized { head, .. } => head,
            _ => return,
        };
        let text = String::from_utf8_lossy(&line);
        let what = match recorder.direction.as_str() {
            "in" => What::In(Said::of(&text)),
            _ => What::Out(Said::of(&text), LineEnd::There),
        };
        // What cannot be recorded must not stop the conversation.
        let _ = file.write_all(recorded::entry(recorder.began, what).as_bytes());
    };
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let Some(bytes) = chunk.get(..read) else { break };
        framer.feed(bytes, &mut keep);
        output.write_all(bytes)?;
        output.flush()?;
    }
    framer.finish(&mut keep);
    if recorder.direction == "out" {
        fs::write(recorded::closed(&recorder.file), "")?;
    }
    Ok(())
}

/// How long a player waits for its recorder. The recorder is slower where nobody reads what it copies.
const HAND_OVER: Duration = Duration::from_secs(2);

/// Ends this player's stdout, and waits until the recorder has copied all of it, for at most two seconds: who waits for the process
/// takes its output for complete. The real CLI does not wait, so its last lines may come after its end.
///
/// # Errors
/// When stdout cannot be replaced.
#[cfg(unix)]
pub fn hand_over_stdout(frames: &Path) -> io::Result<()> {
    io::stdout().flush()?;
    rustix::stdio::dup2_stdout(fs::File::options().write(true).open("/dev/null")?)?;
    let began = std::time::Instant::now();
    while !recorded::closed(frames).exists() && began.elapsed() < HAND_OVER {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// A program cannot be replaced by another one here, so there is no recorder.
#[cfg(not(unix))]
pub fn hand_over_stdout(_: &Path) -> io::Result<()> {
    Ok(())
}
