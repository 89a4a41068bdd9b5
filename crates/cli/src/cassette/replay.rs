//! `outrigger replay`: plays the CLI's side of a cassette to a client.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use outrigger_sim::cassette::{CassetteReplay, Pace, Places, RedactionRules};
use outrigger_sim::peer::Exit;

use super::Redaction;
use crate::exit::{CommandResult, Status};

/// Play a cassette: be the CLI, on stdin and stdout, for a client that says what was said then.
///
/// Name this command where a client expects the CLI, for instance by a script: `exec outrigger replay session.ndjson "$@"`. What the
/// client says is compared by meaning: ids, times, the order of keys and directories may differ. If it says something else, what was
/// expected and what came is written to stderr, and the exit status is 97. Else it ends as the CLI ended then.
#[derive(Debug, clap::Args)]
// `--version` is asked of the CLI that is played.
#[command(disable_version_flag = true)]
pub(crate) struct Args {
    /// How fast: none (as fast as it goes), original, or a factor such as 0.5 (twice as fast).
    #[arg(long, default_value = "none", value_parser = pace)]
    pace: Pace,
    /// How long to wait for what the client said next, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
    /// Do not compare this place of the client's lines: a JSON pointer, in which * stands for any key or index.
    #[arg(long, value_name = "POINTER")]
    ignore: Vec<String>,
    #[command(flatten)]
    redaction: Redaction,
    /// The cassette.
    file: PathBuf,
    /// The arguments that a client gives to the CLI; all are accepted.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

fn pace(text: &str) -> Result<Pace, String> {
    match text {
        "none" => Ok(Pace::None),
        "original" => Ok(Pace::Original),
        factor => match factor.parse::<f64>() {
            Ok(factor) if factor.is_finite() && factor >= 0.0 => Ok(Pace::Scaled(factor)),
            _ => Err("it is none, original, or a factor such as 0.5".to_owned()),
        },
    }
}

/// Whether a client only wants to know which CLI this is.
pub(super) fn asks_for_version(arguments: &[OsString]) -> bool {
    let asks = |argument: &OsString| argument == OsStr::new("--version") || argument == OsStr::new("-v");
    arguments.iter().any(asks)
}

/// Runs the command. Does not return once it plays: what reads this process's stdin can't be stopped, and would keep it.
pub(crate) async fn run(args: Args) -> CommandResult {
    let file = args.file.clone();
    let cassette = tokio::task::spawn_blocking(move || super::read(&file)).await??;
    if asks_for_version(&args.arguments) {
        let version = cassette.cli_version().unwrap_or_else(|| "0.0.0".to_owned());
        writeln!(std::io::stdout(), "{version} (Claude Code)")?;
        return Ok(Status::Success);
    }
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let env = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    let rules = args.redaction.rules(RedactionRules::new())?;
    let arguments = args.arguments.into_iter().map(text);
    let mut replay = CassetteReplay::new(cassette)
        .name(args.file.display().to_string())
        .surroundings(arguments, env, std::env::current_dir().unwrap_or_default())
        .places(|places| *places = Places::here())
        .rules(|own| own.and(rules))
        .pace(args.pace)
        .patience(Duration::from_secs(args.patience));
    for pointer in &args.ignore {
        replay = replay.ignore(pointer);
    }
    let playing = replay.spawn(tokio::io::stdin(), tokio::io::stdout(), tokio::io::stderr());
    std::process::exit(match playing.exit().await {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    })
}
