//! `outrigger mock-api`: a Messages API without a model, for the real CLI to talk to.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use anyhow::Context as _;
use clap::ValueHint;
use outrigger_sim::api::{ApiRecorder, ApiRequest, MessagesApi, Upstream};
use outrigger_sim::cassette::RedactionRules;
use outrigger_sim::claude::{LEADS_ELSEWHERE, Sandbox};
use outrigger_sim::script::{Script, json_schema};
use tokio::process::{Child, Command};

use crate::exit::{Failure, Status};
use crate::plain::plain;
use crate::signals::{Signal, Signals};
use crate::words;

/// What `outrigger mock-api` takes.
///
/// Answers as the script says, or as directives in the prompt say (a line `%say hello` makes the model say hello); listens on
/// 127.0.0.1 only. With a command, runs it so that the CLI inside talks to this API, ends with its exit status, and
/// with 1 if it succeeded and the API was not asked as the script expects. Without one, prints what to set, serves until Ctrl-C, and ends with
/// 0, or with 1 if the API was not asked as the script expects.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The script, a YAML file: which requests are answered how, and what must have been asked in the end.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Where gates are opened: NAME.reached appears when a reply waits for the gate NAME, which opens once there is a file NAME.
    #[arg(long, value_name = "DIR")]
    gates: Option<PathBuf>,
    /// The port; a free one unless given.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Write a line of JSON for each request to this file, without keys and without the CLI's own prompts.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Pass on what the script has no answer for to this API, with the key that the CLI sends.
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Record what is passed on as a script in this file, without keys and without the CLI's own prompts.
    #[arg(long, value_name = "FILE", requires = "upstream")]
    record: Option<PathBuf>,
    /// Write the recording in the place of a file that exists, with the first answer.
    #[arg(long, requires = "record")]
    overwrite: bool,
    /// Give the command a home and a configuration of its own, which are removed afterwards, so that it sees no settings, logins and
    /// sessions of yours.
    #[arg(long, requires = "command")]
    sandbox: bool,
    /// Print the JSON schema of scripts, and end.
    #[arg(long, exclusive = true)]
    schema: bool,
    /// The command to run, with its arguments.
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::AnyPath)]
    command: Vec<String>,
}

/// How the server ended.
enum End {
    Own(Status),
    /// The status of the command.
    Command(u8),
}

/// Serves, and makes the exit status.
pub(crate) async fn run(args: Args) -> ExitCode {
    match serve(args).await {
        Ok(End::Command(code)) => ExitCode::from(code),
        Ok(End::Own(status)) => words::report(Ok(status)),
        Err(failure) => words::report(Err(failure)),
    }
}

async fn serve(args: Args) -> Result<End, Failure> {
    if args.schema {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &json_schema()).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(End::Own(Status::Success));
    }
    // Before anything is started, so that a signal finds it caught.
    let mut signals = Signals::catch()?;
    let sandbox = match args.sandbox {
        true => Some(Sandbox::new().context("cannot make a place for the command")?),
        false => None,
    };
    let api = start(&args, sandbox.as_ref()).await?;
    let variables = variables(&args, &api, sandbox.as_ref());
    let Some((program, arguments)) = args.command.split_first() else {
        let mut out = io::stdout().lock();
        for (name, value) in &variables {
            writeln!(out, "export {name}={value}")?;
        }
        out.flush()?;
        drop(out);
        signals.next().await;
        let met = judge(&api);
        return Ok(End::Own(if met { Status::Success } else { Status::Failed }));
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(&variables).kill_on_drop(true);
    // The account counts if there is an upstream; another provider never does.
    let is_account = |name: &str| !name.starts_with("CLAUDE_CODE_USE_");
    for name in LEADS_ELSEWHERE {
        if args.upstream.is_none() || !is_account(name) {
            command.env_remove(name);
        }
    }
    let child = command.spawn().with_context(|| format!("cannot run {program}"));
    let child = child.map_err(|error| Failure::new(Status::NotStarted, error))?;
    let code = code_of(wait(child, &mut signals).await?);
    let met = judge(&api);
    Ok(match (code, met) {
        (0, false) => End::Own(Status::Failed),
        (code, _) => End::Command(code),
    })
}

async fn start(args: &Args, sandbox: Option<&Sandbox>) -> Result<MessagesApi, Failure> {
    let usage = |error: anyhow::Error| Failure::new(Status::Usage, error);
    let home = sandbox.map(|sandbox| sandbox.home().to_string_lossy().into_owned());
    let mut builder = MessagesApi::builder().port(args.port);
    if let Some(home) = &home {
        builder = builder.home(home);
    }
    if let Some(directory) = &args.gates {
        builder = builder.gate_files(directory);
    }
    if let Some(path) = &args.script {
        let script = Script::from_file(path).map_err(|error| usage(error.into()))?;
        if let (Some(gate), None) = (script.gate_names().first(), &args.gates) {
            let file = path.display();
            let why = format!(
                "{file}: it waits for the gate `{gate}`: say with --gates in which directory it is opened"
            );
            return Err(usage(anyhow::Error::msg(why)));
        }
        builder = builder.script(script).map_err(|error| usage(error.into()))?;
    }
    if let Some(path) = &args.log {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        builder = builder.log_file(file);
    }
    if let Some(url) = &args.upstream {
        builder = builder.upstream(Upstream::new(url).map_err(|error| usage(error.into()))?);
    }
    if let Some(path) = &args.record {
        let recorder = match args.overwrite {
            true => ApiRecorder::replace(path, RedactionRules::new()),
            false => ApiRecorder::create(path, RedactionRules::new()),
        };
        let hint = |error: &io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => "; --overwrite replaces it",
            _ => "",
        };
        let recorder = recorder.map_err(|error| {
            let text = format!("cannot record in {}{}", path.display(), hint(&error));
            anyhow::Error::new(error).context(text)
        });
        builder = builder.record(recorder?);
    }
    Ok(builder.start().await?)
}

/// What leads the CLI to the API, and keeps it from going elsewhere.
fn variables(args: &Args, api: &MessagesApi, sandbox: Option<&Sandbox>) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    if let Some(sandbox) = sandbox {
        let kept = |name: &str| name != "PATH" && name != "ANTHROPIC_API_KEY";
        let all = sandbox.env(&api.base_url());
        variables.extend(all.into_iter().filter(|(name, _)| kept(name)));
    }
    let mut set = |name: &str, value: &str| variables.insert(name.to_owned(), value.to_owned());
    set("ANTHROPIC_BASE_URL", &api.base_url());
    if args.upstream.is_none() {
        set("ANTHROPIC_API_KEY", ApiRequest::DUMMY_KEY);
    }
    for name in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
        "DISABLE_TELEMETRY",
    ] {
        set(name, "1");
    }
    // A proxy could not reach this machine's loopback.
    set("NO_PROXY", "127.0.0.1");
    variables
}

/// Waits for the end of the command. The first signal is passed on, the second kills it.
async fn wait(mut child: Child, signals: &mut Signals) -> io::Result<ExitStatus> {
    let first = tokio::select! {
        status = child.wait() => return status,
        signal = signals.next() => signal,
    };
    pass_on(&child, first);
    tokio::select! {
        status = child.wait() => return status,
        _ = signals.next() => {}
    }
    child.start_kill()?;
    child.wait().await
}

/// Ctrl-C at a terminal reaches the command by itself.
#[cfg(unix)]
fn pass_on(child: &Child, signal: Signal) {
    use rustix::process::{Pid, Signal as Number, kill_process};
    use std::io::IsTerminal as _;

    let number = match signal {
        Signal::Interrupt if io::stdin().is_terminal() => return,
        Signal::Interrupt => Number::INT,
        Signal::Terminate | Signal::OutOfTime => Number::TERM,
    };
    let id = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    if let Some(id) = id {
        // One that has ended just now needs no signal.
        let _ = kill_process(id, number);
    }
}

#[cfg(not(unix))]
fn pass_on(_: &Child, _: Signal) {}

fn code_of(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return u8::try_from(128 + signal).unwrap_or(u8::MAX);
        }
    }
    status.code().map_or(1, |code| u8::try_from(code).unwrap_or(1))
}

/// Whether all was asked as expected, and nothing of it is missing in files; tells what is not.
fn judge(api: &MessagesApi) -> bool {
    let mut met = true;
    if let Err(flaws) = api.verdict() {
        met = false;
        eprintln!("outrigger: the API was not asked as expected:");
        for flaw in flaws.0 {
            eprintln!("  {}", plain(&flaw.to_string()));
        }
    }
    if let Some(why) = api.write_failure() {
        met = false;
        eprintln!("outrigger: the log or the recording is not complete: {why}");
    }
    met
}
