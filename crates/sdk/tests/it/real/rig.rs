//! The real CLI in a place of its own.

use std::ops::Deref;
use std::time::Duration;

use outrigger::testing::RealCli;
use outrigger::{Event, Local, Options, Outcome, Session};
use outrigger_sim::api::MessagesApi;

/// Longer than anything here takes on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The real CLI, whose model does what the prompts say (`outrigger_sim::directive`).
pub(crate) struct Rig(RealCli);

impl Deref for Rig {
    type Target = RealCli;

    fn deref(&self) -> &RealCli {
        &self.0
    }
}

impl Rig {
    pub(crate) async fn start() -> Self {
        let real = match std::env::var_os("OUTRIGGER_TEST_CLI") {
            Some(other) => {
                let api = MessagesApi::builder().start().await.expect("the API starts");
                RealCli::with_executable(other, api)
            }
            None => RealCli::directives().await,
        };
        Self(real.expect("the pinned CLI, and a place for it"))
    }

    /// Options for a session of the real CLI in this place, by the default transport.
    pub(crate) fn options(&self) -> Options {
        self.0.options().transport(Local::new())
    }

    pub(crate) async fn session(&self) -> Session {
        self.options().start().await.expect("the session starts")
    }
}

/// Runs a prompt and returns its events, shown, and its outcome.
pub(crate) async fn turn(session: &Session, prompt: &str) -> (Vec<String>, Outcome) {
    let mut turn = session.prompt(prompt).await.expect("the prompt is accepted");
    let run = async {
        let mut seen = Vec::new();
        while let Some(event) = turn.next().await {
            seen.extend(show(&event.expect("the session lives")));
        }
        (seen, turn.outcome().await.expect("the turn ends"))
    };
    tokio::time::timeout(PATIENCE, run)
        .await
        .expect("the turn ends in time")
}

/// The events that tests look at, as a line each.
pub(crate) fn show(event: &Event) -> Option<String> {
    Some(match event {
        Event::Text(text) => format!("text {text}"),
        Event::Thinking(text) => format!("thinking {text}"),
        Event::ToolUse(tool) => format!("use {}", tool.name),
        Event::ToolResult(result) => format!("result {}", if result.is_error { "error" } else { "ok" }),
        Event::ApiError { kind, .. } => format!("api error {kind}"),
        Event::Subagent(sub) => format!("sub {}", show(&sub.event)?),
        Event::Undecodable(_, misfit) => format!("undecodable {misfit}"),
        _ => return None,
    })
}
