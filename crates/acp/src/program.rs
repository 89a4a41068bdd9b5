//! The program behind `outrigger-acp` and `outrigger acp`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use outrigger::advice::reworded;
use outrigger::discover;
use outrigger::env::Surroundings;
use tokio_util::sync::CancellationToken;
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Config, IdleCompaction, Protocol};
use crate::sdk_error;
use crate::serve::serve;

/// The output of `--help`.
const HELP: &str = "\
Claude Code for editors: an agent that speaks the Agent Client Protocol on stdin and stdout.

Usage: outrigger-acp [--protocol auto|v1|v2] [--log FILE] [--no-spare]
                     [--review-edits] [--compact-idle MINUTES]
       outrigger-acp --cli [ARGUMENT]...

  --cli [ARGUMENT]...  run the Claude Code CLI with these arguments instead (editors use it to sign in)
  --protocol VERSION   serve this version of the protocol only: v1, or the draft of v2; auto, which holds otherwise, leaves it to
                       the editor
  --log FILE           write the log there; it goes to stderr otherwise
  --no-spare           start no CLI ahead; it takes some 200 MB, and has the next session open at once
  --review-edits       have the editor write what the agent edits, so that the user can accept and reject it there
  --compact-idle MINUTES
                       compact a conversation of 200,000 tokens or more that nobody goes on with for so long, shortly before the prompt
                       cache expires (after 60 minutes with a subscription); it costs, and is announced a minute before
  --version            print the version
  --help               print this

`outrigger acp --host URL` has the sessions on a host; --token-file FILE and --ca FILE are those of `outrigger attach`.

Environment:
  CLAUDE_CODE_EXECUTABLE  the CLI to drive; searched for unless set
  RUST_LOG                what is logged: a level, or levels of modules, as in `warn,outrigger_acp=debug`
";

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
enum ProgramTask {
    Serve {
        log: Option<PathBuf>,
        spare: bool,
        protocol: Protocol,
        review_edits: bool,
        compact_idle: Option<Duration>,
    },
    Cli(Vec<OsString>),
    Version,
    Help,
}

fn task(arguments: impl IntoIterator<Item = OsString>) -> Result<ProgramTask, String> {
    let mut arguments = arguments.into_iter();
    let (mut log, mut spare) = (None, true);
    let mut protocol = Protocol::Auto;
    let (mut review_edits, mut compact_idle) = (false, None);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            // All further arguments are for the CLI.
            Some("--cli") => return Ok(ProgramTask::Cli(arguments.collect())),
            Some("--version" | "-V") => return Ok(ProgramTask::Version),
            Some("--help" | "-h") => return Ok(ProgramTask::Help),
            Some("--no-spare") => spare = false,
            Some("--review-edits") => review_edits = true,
            Some("--log") => match arguments.next() {
                Some(file) => log = Some(PathBuf::from(file)),
                None => return Err("--log needs a file".to_owned()),
            },
            Some(joined) if joined.starts_with("--log=") => {
                log = Some(PathBuf::from(&joined["--log=".len()..]))
            }
            Some("--protocol") => match arguments.next() {
                Some(version) => protocol = protocol_of(&version)?,
                None => return Err("--protocol needs a version".to_owned()),
            },
            Some(joined) if joined.starts_with("--protocol=") => {
                protocol = protocol_of(OsStr::new(&joined["--protocol=".len()..]))?
            }
            Some("--compact-idle") => match arguments.next() {
                Some(minutes) => compact_idle = Some(minutes_of(&minutes)?),
                None => return Err("--compact-idle needs a number of minutes".to_owned()),
            },
            Some(joined) if joined.starts_with("--compact-idle=") => {
                compact_idle = Some(minutes_of(OsStr::new(&joined["--compact-idle=".len()..]))?);
            }
            _ => {
                return Err(format!(
                    "unknown argument {argument:?}; --help tells what there is"
                ));
            }
        }
    }
    Ok(ProgramTask::Serve {
        log,
        spare,
        protocol,
        review_edits,
        compact_idle,
    })
}

fn minutes_of(minutes: &OsStr) -> Result<Duration, String> {
    let number = minutes.to_str().and_then(|minutes| minutes.parse::<u32>().ok());
    match number {
        Some(minutes @ 2..=1440) => Ok(Duration::from_secs(u64::from(minutes) * 60)),
        _ => Err(format!(
            "--compact-idle {minutes:?}: it is no number from 2 to 1440"
        )),
    }
}

fn protocol_of(version: &OsStr) -> Result<Protocol, String> {
    match version.to_str() {
        Some("auto") => Ok(Protocol::Auto),
        Some("v1") => Ok(Protocol::V1),
        Some("v2") => Ok(Protocol::V2),
        _ => Err(format!("--protocol {version:?}: it is not auto, v1 or v2")),
    }
}

/// Runs the program with these arguments (without its name), until the editor goes away or a signal ends it.
///
/// Only protocol messages go to stdout, except for `--version` and `--help`.
///
/// # Cancel safety
/// Dropping the future ends all sessions; their processes end in the background.
pub async fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match task(arguments) {
        Ok(task) => perform(task, config()).await,
        Err(why) => failed(&why, 2),
    }
}

/// Runs the program with the sessions on a host. Of the arguments, those for processes on this machine are rejected.
///
/// # Cancel safety
/// Dropping the future leaves the sessions; they go on.
#[cfg(feature = "host")]
pub async fn run_on(
    host: outrigger_host_client::HostClient,
    arguments: impl IntoIterator<Item = OsString>,
) -> ExitCode {
    match task(arguments).and_then(for_host) {
        Ok(task) => perform(task, config().host(host)).await,
        Err(why) => failed(&why, 2),
    }
}

#[cfg(feature = "host")]
fn for_host(task: ProgramTask) -> Result<ProgramTask, String> {
    let wrong = match &task {
        ProgramTask::Cli(_) => Some("--cli"),
        ProgramTask::Serve {
            review_edits: true, ..
        } => Some("--review-edits"),
        ProgramTask::Serve {
            compact_idle: Some(_),
            ..
        } => Some("--compact-idle"),
        ProgramTask::Serve { spare: false, .. } => Some("--no-spare"),
        ProgramTask::Serve { .. } | ProgramTask::Version | ProgramTask::Help => None,
    };
    match wrong {
        Some(flag) => Err(format!(
            "{flag} is for processes on this machine, not for sessions of a host"
        )),
        None => Ok(task),
    }
}

async fn perform(task: ProgramTask, config: Config) -> ExitCode {
    match task {
        ProgramTask::Help => print(&HELP.replace("outrigger-acp", called())),
        ProgramTask::Version => print(concat!("outrigger-acp ", env!("CARGO_PKG_VERSION"), "\n")),
        ProgramTask::Cli(arguments) => cli(arguments),
        ProgramTask::Serve {
            log,
            spare,
            protocol,
            review_edits,
            compact_idle,
        } => {
            if let Err(error) = log_to(log.as_deref()) {
                return failed(&error, 1);
            }
            let stop = CancellationToken::new();
            tokio::spawn({
                let stop = stop.clone();
                async move {
                    asked_to_end().await;
                    stop.cancel();
                }
            });
            let config = config.spare(spare).protocol(protocol);
            let mut config = config.review_edits(review_edits);
            config.idle_compaction = compact_idle.map(IdleCompaction::new);
            match serve(config, tokio::io::stdin(), tokio::io::stdout(), stop).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&error.to_string(), 1),
            }
        }
    }
}

fn config() -> Config {
    let mut config = match executable() {
        Some(path) => Config::new().cli(path),
        None => Config::new(),
    };
    // Some editors start their agents with hardly any environment. Node asks the user database, and so does the CLI.
    if let Some(home) = missing_home() {
        config.options = config.options.env("HOME", home);
    }
    config
}

/// The user's home, if the environment does not have it.
fn missing_home() -> Option<PathBuf> {
    match Surroundings::of_this_process().home() {
        Some(_) => None,
        None => std::env::home_dir().filter(|home| home.is_absolute()),
    }
}

fn executable() -> Option<PathBuf> {
    let named = std::env::var_os("CLAUDE_CODE_EXECUTABLE")?;
    (!named.is_empty()).then(|| named.into())
}

/// Replaces this process by the CLI.
fn cli(arguments: Vec<OsString>) -> ExitCode {
    let found = discover::find(executable().as_deref(), &Surroundings::of_this_process());
    let path = match found {
        Ok(found) => found.path,
        Err(error) => {
            let advice = reworded(error.advice(), sdk_error::setting);
            return failed(&format!("{error}; {advice}"), 1);
        }
    };
    let mut command = std::process::Command::new(&path);
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        if is_mark(&name) {
            command.env_remove(name);
        }
    }
    become_it(&mut command, &path)
}

/// Whether a variable marks an outer session, in which the CLI may refuse to run.
fn is_mark(name: &OsStr) -> bool {
    matches!(
        name.to_str(),
        Some("CLAUDECODE" | "CLAUDE_CODE_ENTRYPOINT" | "CLAUDE_CODE_SSE_PORT" | "CLAUDE_CODE_SESSION_ID")
    )
}

#[cfg(unix)]
fn become_it(command: &mut std::process::Command, path: &std::path::Path) -> ExitCode {
    use std::os::unix::process::CommandExt as _;
    let error = command.exec();
    failed(&format!("{}: {error}", path.display()), 1)
}

#[cfg(not(unix))]
fn become_it(command: &mut std::process::Command, path: &std::path::Path) -> ExitCode {
    match command.status() {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => failed(&format!("{}: {error}", path.display()), 1),
    }
}

/// What is logged, by the value of `RUST_LOG`.
fn levels(wanted: &str) -> Result<Targets, String> {
    let levels: Targets = match wanted.trim() {
        "" => Targets::new().with_default(LevelFilter::WARN),
        wanted => wanted
            .parse()
            .map_err(|error: tracing_subscriber::filter::ParseError| format!("RUST_LOG={wanted}: {error}"))?,
    };
    // There the official crate describes all handlers with each message, which takes for ever (see `serve::handlers`).
    let endless = "agent_client_protocol::jsonrpc::incoming_actor";
    Ok(match levels.would_enable(endless, &Level::DEBUG) {
        true => levels.with_target(endless, LevelFilter::INFO),
        false => levels,
    })
}

/// The log goes to stderr, or to a file.
fn log_to(file: Option<&std::path::Path>) -> Result<(), String> {
    let levels = levels(&std::env::var("RUST_LOG").unwrap_or_default())?;
    let registry = tracing_subscriber::registry().with(levels);
    let layer = tracing_subscriber::fmt::layer().with_ansi(false);
    let begun = match file {
        Some(path) => {
            let file = File::options().create(true).append(true).open(path);
            let file = file.map_err(|error| format!("log {}: {error}", path.display()))?;
            registry.with(layer.with_writer(Mutex::new(file))).try_init()
        }
        None => registry.with(layer.with_writer(io::stderr)).try_init(),
    };
    begun.map_err(|error| error.to_string())
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn failed(why: &str, code: u8) -> ExitCode {
    // There is no other place for the message.
    let _ = writeln!(io::stderr(), "{}: {why}", called());
    ExitCode::from(code)
}

/// How this program was called: it is also a command of `outrigger`.
fn called() -> &'static str {
    match std::env::args_os().nth(1) {
        Some(word) if word == "acp" => "outrigger acp",
        _ => "outrigger-acp",
    }
}

/// Resolves when a signal asks the program to end.
#[cfg(unix)]
async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ];
    let mut signals: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    std::future::poll_fn(|cx| {
        if signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready()) {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    })
    .await;
}

#[cfg(not(unix))]
async fn asked_to_end() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Result<ProgramTask, String> {
        task(arguments.iter().map(OsString::from))
    }

    #[test]
    fn what_follows_cli_is_the_cli_s() {
        let arguments = ["auth", "login", "--log"].map(OsString::from).to_vec();
        assert_eq!(
            of(&["--cli", "auth", "login", "--log"]),
            Ok(ProgramTask::Cli(arguments))
        );
    }

    #[test]
    fn the_log_has_a_file() {
        let log = Some(PathBuf::from("a.log"));
        let serve = |log, spare, protocol| {
            Ok(ProgramTask::Serve {
                log,
                spare,
                protocol,
                review_edits: false,
                compact_idle: None,
            })
        };
        assert_eq!(of(&["--log", "a.log"]), serve(log.clone(), true, Protocol::Auto));
        assert_eq!(
            of(&["--log=a.log", "--no-spare"]),
            serve(log, false, Protocol::Auto)
        );
        assert_eq!(of(&["--protocol", "v2"]), serve(None, true, Protocol::V2));
        assert_eq!(of(&["--protocol=v1"]), serve(None, true, Protocol::V1));
        assert!(of(&["--protocol", "3"]).is_err());
        let minutes = |arguments: &[&str]| match of(arguments) {
            Ok(ProgramTask::Serve { compact_idle, .. }) => compact_idle,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            minutes(&["--compact-idle", "55"]),
            Some(Duration::from_secs(3300))
        );
        assert_eq!(minutes(&["--compact-idle=2"]), Some(Duration::from_secs(120)));
        for wrong in ["1", "0", "-5", "1441", "soon"] {
            assert!(of(&["--compact-idle", wrong]).is_err(), "{wrong}");
        }
        assert!(of(&["--compact-idle"]).is_err());
        assert!(matches!(
            of(&["--review-edits"]),
            Ok(ProgramTask::Serve {
                review_edits: true,
                ..
            })
        ));
        assert!(of(&["--log"]).is_err());
        assert!(of(&["serve"]).is_err());
    }

    #[test]
    fn what_is_logged_is_what_is_wanted() {
        let actor = "agent_client_protocol::jsonrpc::incoming_actor";
        let most = |wanted: &str, target: &str| {
            let levels = levels(wanted).expect("levels");
            let all = [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR];
            all.into_iter().find(|level| levels.would_enable(target, level))
        };
        assert_eq!(most("", actor), Some(Level::WARN));
        assert_eq!(most("error", actor), Some(Level::ERROR));
        assert_eq!(most("off", actor), None);
        assert_eq!(most("trace", actor), Some(Level::INFO));
        assert_eq!(most("trace", "outrigger_acp"), Some(Level::TRACE));
        assert!(levels("a=b=c").is_err());
    }

    /// The pages for users of editors.
    const PAGES: [(&str, &str); 5] = [
        ("editors.md", include_str!("../../../docs/editors.md")),
        ("editors-emacs.md", include_str!("../../../docs/editors-emacs.md")),
        (
            "editors-jetbrains.md",
            include_str!("../../../docs/editors-jetbrains.md"),
        ),
        (
            "editors-neovim.md",
            include_str!("../../../docs/editors-neovim.md"),
        ),
        ("editors-zed.md", include_str!("../../../docs/editors-zed.md")),
    ];

    /// The command lines of the agent that a page has, in text and in settings.
    fn lines_of_the_agent(page: &str) -> Vec<Vec<String>> {
        let mut lines = Vec::new();
        let spans = page.split('`').map(str::trim);
        for span in spans.filter(|span| !span.contains('\n')) {
            let flags = span.strip_prefix("outrigger-acp ").unwrap_or(span);
            if flags.starts_with("--") {
                lines.push(flags.split_whitespace().map(str::to_owned).collect());
            }
        }
        // In JSON, Lua and Emacs Lisp.
        for word in page.split('"').filter(|word| word.starts_with("--")) {
            lines.push(vec![word.to_owned()]);
        }
        lines
    }

    #[test]
    fn the_pages_for_editors_name_flags_that_are_there() {
        // Of `outrigger acp`, and of other programs.
        let others = ["--host", "--token-file", "--ca", "--profile"];
        let mut named = String::new();
        for (name, page) in PAGES {
            for mut line in lines_of_the_agent(page) {
                named += &line[0];
                named.push(' ');
                if others.contains(&line[0].as_str()) {
                    continue;
                }
                match line.last_mut() {
                    Some(last) if last == "MINUTES" => *last = "55".to_owned(),
                    Some(last) if last == "…" => drop(line.pop()),
                    _ => {}
                }
                let told = task(line.iter().map(OsString::from));
                assert!(told.is_ok(), "{name}: {line:?}: {told:?}");
            }
        }
        // And each flag of the agent is on one of them.
        let flags = HELP.split(|c: char| !(c == '-' || c.is_ascii_alphabetic()));
        for flag in flags.filter(|flag| flag.starts_with("--") && !matches!(*flag, "--version" | "--help")) {
            assert!(named.split(' ').any(|name| name == flag), "no page names {flag}");
        }
    }
}
