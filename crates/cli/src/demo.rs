//! `outrigger demo`: a real session on a machine that has nothing, no key and no account.
//!
//! The model's words come from a script; the agent's process, its tools and the protocol are the real ones. Only where the
//! CLI cannot be had is the agent simulated, too, and that is said.

mod demo_screen;
mod get;
pub(crate) mod simulated;
mod steps;

use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use outrigger::options::{Auth, Secret};
use outrigger::{Agent, Options};
use outrigger_sim::api::{ApiRequest, MessagesApi};
use outrigger_sim::claude::Sandbox;

use crate::exit::{CommandResult, Status};
pub(crate) use demo_screen::DemoScreen;
pub(crate) use get::DemoAgent;

/// What `outrigger demo` takes.
///
/// Runs a session of several turns with Claude Code: tools, a permission question, streaming, an interrupt, background work. It needs
/// no key: the model's words are scripted, on 127.0.0.1, while the CLI, its tools and the protocol are real. The pinned CLI is
/// fetched through npm if it is neither in the cache nor installed, after saying so; where that cannot be, the agent is simulated.
///
/// Everything happens in a temporary directory with a home of its own. The exit status is 0 if every step did what it should.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Use this CLI and fetch nothing.
    #[arg(long, value_name = "PATH", conflicts_with = "simulated")]
    cli: Option<PathBuf>,
    /// Fetch nothing, and simulate the agent.
    #[arg(long)]
    simulated: bool,
    /// Leave the directory behind.
    #[arg(long)]
    keep: bool,
}

/// What says the model's words.
enum Model {
    Api(MessagesApi),
    Simulated,
}

impl Model {
    /// How a scripted answer refers to what the last tool gave back.
    fn last_result(&self) -> &'static str {
        match self {
            Self::Api(_) => "{{last}}",
            Self::Simulated => "what the tool says above",
        }
    }
}

/// Runs the demo.
pub(crate) async fn run(args: Args) -> CommandResult {
    let mut told = pin!(told_to_end());
    let screen = DemoScreen::new();
    screen.title("outrigger demo");
    let cli = tokio::select! {
        cli = get::cli(&screen, args.cli.clone(), args.simulated) => cli?,
        status = &mut told => return Ok(status?),
    };
    session(&args, &screen, &cli, told).await
}

/// The CLI of a demo for which none was named.
pub(crate) async fn pinned_cli(screen: &DemoScreen) -> anyhow::Result<DemoAgent> {
    get::cli(screen, None, false).await
}

/// Waits for Ctrl-C and, where there is such a thing, SIGTERM.
#[cfg(unix)]
async fn told_to_end() -> std::io::Result<Status> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(tokio::select! {
        _ = interrupt.recv() => Status::Interrupted,
        _ = terminate.recv() => Status::Terminated,
    })
}

#[cfg(not(unix))]
async fn told_to_end() -> std::io::Result<Status> {
    tokio::signal::ctrl_c().await?;
    Ok(Status::Interrupted)
}

/// Runs the session, until it is over or `told` to end.
async fn session(
    args: &Args,
    screen: &DemoScreen,
    cli: &DemoAgent,
    told: impl Future<Output = std::io::Result<Status>>,
) -> CommandResult {
    let began = Instant::now();
    let sandbox = Sandbox::new().context("cannot make a temporary directory")?;
    let (options, model) = match cli {
        DemoAgent::Real { path, .. } => {
            let api = MessagesApi::builder()
                .directives(true)
                .default_reply(outrigger_sim::api::Reply::say(steps::AMBIENT))
                .start()
                .await
                .context("cannot start the scripted model")?;
            (real(path, &sandbox, &api), Model::Api(api))
        }
        DemoAgent::Simulated => (simulated::options(&sandbox), Model::Simulated),
    };
    let kind = match cli {
        DemoAgent::Real { what, .. } => format!("{what}: its process, its tools and the protocol"),
        DemoAgent::Simulated => {
            "the tools and the protocol; the agent is SIMULATED, inside of this program".to_owned()
        }
    };
    screen.fact("real", &kind);
    screen.fact(
        "scripted",
        &match &model {
            Model::Api(api) => format!("the model's words, from this program at {}", api.base_url()),
            Model::Simulated => "the model's words".to_owned(),
        },
    );
    screen.fact(
        "account",
        "none, and nothing is charged: prices are what it would have cost",
    );
    let kept = if args.keep { "kept" } else { "removed at the end" };
    screen.fact("place", &format!("{} ({kept})", sandbox.path().display()));
    let steps = steps::Steps {
        screen,
        model: &model,
        sandbox: &sandbox,
    };
    let done = steps.run(options, told).await;
    if let Model::Api(api) = model {
        api.shutdown().await;
    }
    if args.keep {
        let path = sandbox.keep();
        screen.fact("kept", &path.display().to_string());
    }
    let seconds = began.elapsed().as_secs_f64();
    let count = match done? {
        steps::DemoEnd::Well(count) => count,
        steps::DemoEnd::Told(status) => return Ok(status),
    };
    screen.end(&format!(
        "{count} steps, each did what it should, in {seconds:.1} s."
    ));
    Ok(Status::Success)
}

/// The real CLI in a place of its own: nothing of the user's environment, no network but loopback is asked for.
pub(crate) fn real(cli: &std::path::Path, sandbox: &Sandbox, api: &MessagesApi) -> Options {
    let mut options = Agent::builder()
        .auth(Auth::ApiKey(Secret::new(ApiRequest::DUMMY_KEY)))
        .cli_path(cli)
        .cwd(sandbox.project())
        .start_deadline(Duration::from_secs(60));
    for (name, value) in sandbox.env(&api.base_url()) {
        if name != "ANTHROPIC_API_KEY" {
            options = options.env(name, value);
        }
    }
    options
}
