//! `outrigger serve`: a host of sessions on this machine.

mod demo_session;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueHint;
use outrigger::Agent;
use outrigger::advice::reworded;
use outrigger::discover::find;
use outrigger::env::Surroundings;
use outrigger_host::log::SqliteLog;
use outrigger_host::{HostPolicy, ServePolicy, SessionHost};
use outrigger_host_http::{Front, ServeError, Tokens};
use tokio::net::TcpListener;

use crate::exit::{CommandResult, Failure, Status};
use crate::signals::Signals;
use crate::words;

/// What `outrigger serve` takes.
///
/// Owns sessions of Claude Code: clients create them, send prompts, watch, and answer their questions, over HTTP. What was accepted is in a log
/// on disk, and the next `outrigger serve` goes on with it. The first start prints a link that gives a token, once.
///
/// Sessions run as you, with your account, in the directories that `--root` or the policy file names. docs/host.md says what is promised.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A directory in which sessions may be, with what is below it. May be given several times.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "policy")]
    root: Vec<PathBuf>,
    /// The CLI, if not the one that is found without this.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "policy")]
    cli: Option<PathBuf>,
    /// What sessions may have, where the host listens, and for whom: a file in TOML.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    policy: Option<PathBuf>,
    /// The address to listen on; 127.0.0.1:7070 unless the policy file has another one. Port 0 is a free port.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where the log is kept; outrigger/host in your directory for the state of programs, unless given.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,
    /// Print a link that gives a token also if there are tokens already, for whoever has lost theirs.
    #[arg(long)]
    link: bool,
    /// How long turns that run may go on after the first signal, such as 10m, while no other turn begins; without it they are interrupted at once. What
    /// is sent meanwhile waits for the next start. A second signal ends it at once.
    #[arg(long, value_name = "DURATION", value_parser = crate::time::duration)]
    drain: Option<Duration>,
    /// Read the policy file, say whether it is sound, and end.
    #[arg(long, requires = "policy")]
    check: bool,
    /// Show how a host works on a machine without a key: the pinned CLI, a scripted model, and a session that waits for an approval.
    #[arg(long, conflicts_with_all = ["root", "cli", "policy", "data", "link", "check", "drain"])]
    demo: bool,
}

/// A host that is about to serve.
struct Serving {
    host: SessionHost,
    tokens: Tokens,
    front: Front,
    listener: TcpListener,
    /// The address, as clients say it.
    url: String,
}

/// Serves until a signal comes.
pub(crate) async fn run(args: Args) -> CommandResult {
    if args.demo {
        return demo_session::run(args.listen, Signals::catch()?).await;
    }
    let mut settings = settings(&args)?;
    if let Some(listen) = args.listen {
        settings.server.listen = listen;
    }
    check(&settings)?;
    if args.check {
        writeln!(io::stdout(), "the policy file is sound")?;
        return Ok(Status::Success);
    }
    // Before anything is started, so that a signal finds it caught.
    let signals = Signals::catch()?;
    // Clients show an answer while the model writes it.
    settings.policy.options = settings.policy.options.include_partial_messages(true);
    let path = log_file(args.data)?;
    if let Some(data) = path.parent() {
        private_directory(data).with_context(|| format!("cannot make {}", data.display()))?;
    }
    let log = SqliteLog::open(&path).with_context(|| {
        format!(
            "cannot open the log {}; --data names another directory for one",
            path.display()
        )
    })?;
    let serving = Serving::new(settings, log).await?;
    if let Err(failure) = serving.tell(&path, args.link) {
        serving.host.shutdown().await;
        return Err(failure);
    }
    serving.serve(signals, args.drain).await
}

fn usage(error: anyhow::Error) -> Failure {
    Failure::new(Status::Usage, error)
}

fn settings(args: &Args) -> Result<ServePolicy, Failure> {
    if let Some(path) = &args.policy {
        return ServePolicy::read(path).map_err(|error| usage(error.into()));
    }
    if args.root.is_empty() {
        return Err(usage(anyhow::anyhow!(
            "no directory for sessions: name one by --root, or a policy file by --policy"
        )));
    }
    for root in &args.root {
        if !root.is_dir() {
            return Err(usage(anyhow::anyhow!(
                "--root {}: there is no such directory",
                root.display()
            )));
        }
    }
    let options = match &args.cli {
        Some(cli) => Agent::builder().cli_path(cli),
        None => Agent::builder(),
    };
    Ok(ServePolicy::new(HostPolicy::new(options, &args.root)))
}

/// Refuses what would fail later, once clients have been told an address.
fn check(settings: &ServePolicy) -> Result<(), Failure> {
    let server = &settings.server;
    if !server.listen.ip().is_loopback() && server.tls.is_none() && server.proxy_names.is_empty() {
        return Err(usage(ServeError::Exposed(server.listen).into()));
    }
    if let Some(cli) = &settings.policy.options.cli_path {
        find(Some(cli), &Surroundings::of_this_process()).map_err(|error| {
            let hint = reworded(error.advice(), words::flag);
            Failure::new(Status::NotStarted, anyhow::anyhow!("{error}; {hint}"))
        })?;
    }
    Ok(())
}

/// The log in this directory, or in the usual one.
pub(crate) fn log_file(data: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let data = match data {
        Some(data) => data,
        None => usual_data_directory()
            .context("there is no directory for the state of programs; name one by --data")
            .map_err(usage)?,
    };
    Ok(data.join("host.db"))
}

/// `outrigger/host` in the user's directory for the state of programs.
fn usual_data_directory() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = if cfg!(windows) {
        absolute("LOCALAPPDATA")?
    } else {
        match absolute("XDG_STATE_HOME") {
            Some(path) => path,
            None => absolute("HOME")?.join(".local/state"),
        }
    };
    Some(state.join("outrigger").join("host"))
}

/// Makes a directory with its parents, for this user alone.
fn private_directory(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

impl Serving {
    async fn new(settings: ServePolicy, log: SqliteLog) -> Result<Self, Failure> {
        let ServePolicy {
            policy,
            server,
            webhooks,
            ..
        } = settings;
        let listener = TcpListener::bind(server.listen)
            .await
            .with_context(|| format!("cannot listen on {}", server.listen))?;
        let address = listener.local_addr()?;
        let host = SessionHost::open(policy, log).await?;
        let tokens = Tokens::open(host.event_log()).await?;
        let front = Front::new(host.clone(), tokens.clone())
            .webhooks(webhooks)
            .settings(&server)?;
        let scheme = if server.tls.is_some() { "https" } else { "http" };
        Ok(Self {
            host,
            tokens,
            front,
            listener,
            url: format!("{scheme}://{address}"),
        })
    }

    /// Writes where it serves, and the link for a token if there is none or one is wanted.
    fn tell(&self, log: &Path, wants_link: bool) -> Result<(), Failure> {
        let mut out = io::stdout();
        writeln!(out, "serves {} with the log {}", self.url, log.display())?;
        // Who lost the last one gets another by the link, too: whoever can start the host owns the log.
        if wants_link || self.tokens.records().iter().all(|token| token.revoked) {
            let code = self.tokens.code()?;
            writeln!(
                out,
                "within an hour, and once, this link gives a token, in a browser or pasted into `outrigger host login`:\n  {}/welcome#code={code}",
                self.url
            )?;
        }
        Ok(())
    }

    /// Serves until a signal comes, and then for up to `drain` until no turn runs. The second signal ends the program at once; the log is sound then, too.
    async fn serve(self, mut signals: Signals, drain: Option<Duration>) -> CommandResult {
        let Self {
            host,
            front,
            listener,
            ..
        } = self;
        let (told, signal) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let first = signals.next().await;
            // Nobody waits for it if the front has failed.
            let _ = told.send(first);
            let second = signals.next().await;
            std::process::exit(second.status() as i32);
        });
        let (ended, end) = tokio::sync::oneshot::channel();
        let draining = host.clone();
        let serve = front.serve(listener, async {
            // The sender waits for signals for as long as the program runs.
            if let Ok(signal) = signal.await {
                if let Some(longest) = drain {
                    eprintln!("outrigger: no turn begins any more; it ends with those that run, and in {longest:?} at the latest");
                    // What is not over by then is interrupted.
                    let _ = tokio::time::timeout(longest, draining.drain()).await;
                }
                let _ = ended.send(signal);
            }
        });
        // Beside the front: requests that it answers may wait for what only the end of the host brings about.
        let close = async {
            let signal = end.await;
            host.shutdown().await;
            signal
        };
        let (served, signal) = tokio::join!(serve, close);
        served?;
        Ok(signal.map_or(Status::Success, |signal| signal.status()))
    }
}
