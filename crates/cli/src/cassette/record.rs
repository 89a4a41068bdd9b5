//! `outrigger record`: stands between a client and the CLI and writes down what passes.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Context as _;
use clap::ValueHint;
use outrigger_sim::cassette::{About, Places, Recorder, RedactionRules};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use super::Redaction;
use super::cassette_draft::CassetteDraft;
use crate::agent::AgentArgs;
use crate::config::ConfigArgs;
use crate::exit::{CommandResult, Failure, Status};
use crate::plain::plain;

/// Record a session: run the CLI in its place, pass everything through, and write it to a cassette.
///
/// Name this command where a client expects the CLI, for instance by a script: `exec outrigger record -o session.ndjson -- claude
/// "$@"`. It ends as the CLI ends. Or let it be the client itself: `outrigger record --prompt "Say hello."`, with the options
/// that `outrigger run` and `outrigger chat` have in common. Secrets, home directories and names are taken out before anything is written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write the cassette here, in the place of a file that is there, once there is something to write; session.ndjson unless given, or
    /// session.2.ndjson and so on if that is there.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    redaction: Redaction,
    /// Say this instead of passing on what a client says, once the turn before is over. Can be repeated.
    #[arg(long = "prompt", value_name = "TEXT")]
    prompts: Vec<String>,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    _config: ConfigArgs,
    /// The CLI and its arguments.
    #[arg(
        required_unless_present = "prompts",
        conflicts_with_all = ["prompts", "ChosenConversation", "SessionArgs"],
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CLAUDE",
        value_hint = ValueHint::AnyPath
    )]
    command: Vec<OsString>,
}

/// Runs it. Does not return once a CLI runs whose client is elsewhere: what reads this process's stdin can't be stopped, and would keep it.
pub(crate) async fn run(args: Args) -> CommandResult {
    if !args.prompts.is_empty() {
        let output = args.output.as_deref();
        return super::record_prompts::record(&args.prompts, &args.agent, output, &args.redaction).await;
    }
    let (program, arguments) = args
        .command
        .split_first()
        .ok_or_else(|| Failure::new(Status::Usage, anyhow::anyhow!("which CLI is to be run?")))?;
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    let not_started = |error: io::Error| {
        let what = format!("cannot start {}", program.display());
        Failure::new(Status::NotStarted, anyhow::Error::new(error).context(what))
    };
    // Clients ask for the version before they start a session; that is none.
    if super::replay::asks_for_version(arguments) {
        let status = command.status().await.map_err(not_started)?;
        std::process::exit(code(status));
    }
    let draft = CassetteDraft::begin(args.output.as_deref())?;
    let recorder = args.recorder(&draft)?;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Before there is a CLI, which one that comes at once must reach.
    let caught = ForwardedSignals::catch().context("signals can't be caught")?;
    let mut child = command.spawn().map_err(not_started)?;
    let draft = Arc::new(draft);
    let code = pass(&mut child, &recorder, &draft, caught).await?;
    // The client's session went on, whatever became of the recording, and so must its end.
    let finished = recorder.finish();
    if let Some(told) = end(&draft, finished) {
        eprintln!("outrigger: {}", plain(&told));
    }
    std::process::exit(code)
}

/// Leaves the recording where it belongs; gives what there is to say about it.
fn end(draft: &CassetteDraft, finished: io::Result<()>) -> Option<String> {
    let kept = match draft.is_at() {
        None => draft.keeps().map(|kept| kept.display().to_string()),
        Some(_) => None,
    };
    if let Some(kept) = kept {
        draft.remove();
        return Some(format!("the CLI wrote nothing on stdout, so {kept} is as it was"));
    }
    if let Err(error) = draft.put() {
        let left = draft.leave().unwrap_or_default();
        return Some(format!(
            "the recording is in {}, since it cannot be put in its place: {error}",
            left.display()
        ));
    }
    let place = draft.path();
    match finished {
        Err(error) => Some(format!("{}: {error}", place.display())),
        Ok(()) => draft
            .has_other_name()
            .then(|| format!("recorded in {}", place.display())),
    }
}

impl Args {
    fn recorder(&self, draft: &CassetteDraft) -> Result<Recorder, Failure> {
        let text = |text: OsString| text.to_string_lossy().into_owned();
        let env = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        let cwd = std::env::current_dir().context("the working directory is not there")?;
        let rules = self.redaction.rules(RedactionRules::new())?;
        let about = About::new(self.command.iter().cloned().map(text), env, cwd)
            .places(|places| *places = Places::here())
            .rules(|own| own.and(rules))
            .recorder(concat!("outrigger ", env!("CARGO_PKG_VERSION")));
        let path = draft.path();
        let recorder = Recorder::create(&path, &about);
        Ok(recorder.with_context(|| format!("cannot write {}", path.display()))?)
    }
}

/// Passes everything through until the CLI has ended, and gives its exit status.
async fn pass(
    child: &mut Child,
    recorder: &Recorder,
    draft: &Arc<CassetteDraft>,
    caught: ForwardedSignals,
) -> anyhow::Result<i32> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        anyhow::bail!("the CLI was started without pipes");
    };
    let mut stdin = recorder.stdin(stdin);
    let input = tokio::spawn(async move {
        // A CLI that has ended reads no more, which is no failure; dropping the pipe ends its input.
        let _ = tokio::io::copy(&mut tokio::io::stdin(), &mut stdin).await;
        let _ = stdin.shutdown().await;
    });
    let begun = Arc::clone(draft);
    let output = tokio::spawn(flow(recorder.stdout(stdout), tokio::io::stdout(), move || {
        // From here on there is a recording, which has to be found whatever becomes of this process. If it cannot be put there, that
        // is told at the end.
        let _ = begun.put();
    }));
    let errors = tokio::spawn(flow(recorder.stderr(stderr), tokio::io::stderr(), || {}));
    let signals = caught.hand_on(child.id(), recorder.clone());
    let status = tokio::select! {
        status = child.wait() => status?,
        never = signals => match never {},
    };
    // What it wrote before it ended is still on its way. What it left running may keep the pipes, and is not waited for.
    let rest = async {
        let _ = output.await;
        let _ = errors.await;
    };
    let _ = tokio::time::timeout(std::time::Duration::from_secs(2), rest).await;
    input.abort();
    // Recorded with the input, if that is over.
    let _ = input.await;
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    recorder.exit(status.code(), signal);
    Ok(code(status))
}

/// Passes on what comes; `came` is called whenever it does.
async fn flow(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
    came: impl Fn(),
) {
    use tokio::io::AsyncReadExt as _;

    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        came();
        // A line has to be seen at once, and nobody may be there to see it.
        if to.write_all(&buffer[..length]).await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
}

fn code(status: std::process::ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(1)
}

/// The signals that are handed on to the CLI.
#[cfg(unix)]
struct ForwardedSignals {
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl ForwardedSignals {
    /// From here on signals do not end this process.
    fn catch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Hands signals on. Ctrl-C at a terminal reaches the CLI anyway.
    async fn hand_on(mut self, pid: Option<u32>, recorder: Recorder) -> std::convert::Infallible {
        use std::io::IsTerminal as _;

        use rustix::process::{Pid, Signal, kill_process};

        let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        loop {
            let (signal, name) = tokio::select! {
                Some(()) = self.terminate.recv() => (Signal::TERM, "SIGTERM"),
                Some(()) = self.hang_up.recv() => (Signal::HUP, "SIGHUP"),
                Some(()) = self.interrupt.recv() => (Signal::INT, "SIGINT"),
                else => return std::future::pending().await,
            };
            recorder.signal(name);
            if let Some(pid) = pid
                && !(signal == Signal::INT && io::stdin().is_terminal())
            {
                // One that has ended needs no signal.
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// There are no such signals.
#[cfg(not(unix))]
struct Caught;

#[cfg(not(unix))]
impl ForwardedSignals {
    fn catch() -> io::Result<Self> {
        Ok(Self)
    }

    async fn hand_on(self, _: Option<u32>, _: Recorder) -> std::convert::Infallible {
        std::future::pending().await
    }
}
