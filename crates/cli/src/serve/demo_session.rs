//! `outrigger serve --demo`: the whole of it on a machine that has nothing.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use outrigger::protocol::RawJson;
use outrigger_host::log::SqliteLog;
use outrigger_host::{Delivered, HostPolicy, NewSession, ServePolicy, SessionHost, Subscription};
use outrigger_host_http::{Scope, ServeError};
use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::Sandbox;
use serde_json::json;
use uuid::Uuid;

use super::Serving;
use crate::demo::{DemoAgent, DemoScreen, pinned_cli, real, simulated};
use crate::exit::{CommandResult, Failure, Status};
use crate::signals::Signals;
use crate::words;

/// What the scripted model does.
const PROMPT: &str =
    "%tool Write {\"file_path\":\"hello.txt\",\"content\":\"hello\\n\"}\n%say The file is there.";

/// How long a process without work lives, so that the demo shows a session that is resumed.
const IDLE: Duration = Duration::from_secs(20);

/// Serves until a signal comes.
pub(super) async fn run(listen: Option<SocketAddr>, mut signals: Signals) -> CommandResult {
    if let Some(listen) = listen.filter(|listen| !listen.ip().is_loopback()) {
        return Err(Failure::new(Status::Usage, ServeError::Exposed(listen)));
    }
    let screen = DemoScreen::new();
    screen.title("outrigger serve --demo");
    let cli = tokio::select! {
        cli = pinned_cli(&screen) => cli?,
        signal = signals.next() => return Ok(signal.status()),
    };
    let sandbox = Sandbox::new().context("cannot make a temporary directory")?;
    let api = MessagesApi::builder()
        .directives(true)
        .start()
        .await
        .context("cannot start the scripted model")?;
    let (what, options) = match &cli {
        DemoAgent::Real { path, what } => (what.clone(), real(path, &sandbox, &api)),
        DemoAgent::Simulated => (
            "the host; the agent is SIMULATED, inside of this program".to_owned(),
            simulated::options(&sandbox),
        ),
    };
    screen.fact("real", &what);
    screen.fact("scripted", "the model's words");
    screen.fact(
        "place",
        &format!("{} (removed at the end)", sandbox.path().display()),
    );

    let mut policy = HostPolicy::new(options, [sandbox.project()]);
    policy.idle = IDLE;
    // A simulated agent has no lease.
    policy.lease = matches!(cli, DemoAgent::Real { .. });
    let mut settings = ServePolicy::new(policy);
    settings.server.listen = listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
    let log = SqliteLog::open(sandbox.path().join("host.db"))?;
    let serving = Serving::new(settings, log).await?;
    let (token, _) = serving.tokens.issue("demo", Scope::ALL, None).await?;
    let mut new = NewSession::new(sandbox.project());
    new.title = Some("demo".to_owned());
    let session = serving.host.create(new, "demo").await?;
    let events = serving.host.subscribe(&session.id, 0).await?;
    let prompt: RawJson = json!({
        "type": "user", "uuid": Uuid::new_v4(), "message": {"role": "user", "content": PROMPT},
    })
    .into();
    serving.host.send(&session.id, prompt, "demo").await?;
    screen.fact("serves", &serving.url);
    screen.fact(
        "try",
        &format!(
            "in another terminal:\n\
             export OUTRIGGER_HOST={} OUTRIGGER_TOKEN={}\n\
             {this} ps\n\
             {this} approve\n\
             {this} attach {}",
            serving.url,
            token.reveal(),
            session.id,
            this = words::this_program()
        ),
    );
    screen.fact("end", "Ctrl-C");
    let host = serving.host.clone();
    let told = tokio::spawn(show_events(host, events, screen.clone()));
    let result = serving.serve(signals, None).await;
    told.abort();
    api.shutdown().await;
    result
}

/// Shows what becomes of the session.
async fn show_events(host: SessionHost, mut events: Subscription, screen: DemoScreen) {
    while let Ok(delivered) = events.next().await {
        let Delivered::Event(event) = delivered else {
            continue;
        };
        let payload = event.payload.to_value().unwrap_or_default();
        let actor = event.actor.as_deref().unwrap_or("host").to_owned();
        match event.kind.as_str() {
            "process_started" => screen.event("host", "a process of the CLI started"),
            "process_exited" => screen.event("host", "the process ended; the session stays"),
            "approval_opened" => {
                let id = payload["approval_id"]
                    .as_str()
                    .and_then(|id| Uuid::parse_str(id).ok());
                let tool = match id {
                    Some(id) => host
                        .approval(id)
                        .await
                        .ok()
                        .and_then(|approval| approval.tool_name),
                    None => None,
                };
                screen.event(
                    "host",
                    &format!(
                        "{} waits for an approval",
                        tool.as_deref().unwrap_or("a question")
                    ),
                );
            }
            "approval_decided" => {
                screen.event(&actor, payload["state"].as_str().unwrap_or_default());
            }
            "result" => screen.event("model", payload["result"].as_str().unwrap_or_default()),
            _ => {}
        }
    }
}
