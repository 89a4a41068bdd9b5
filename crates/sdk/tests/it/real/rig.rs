//! The real CLI in a place of its own.

use std::path::PathBuf;
use std::time::Duration;

use outrigger::options::{Auth, Secret};
use outrigger::{Agent, Event, Options, Outcome, Session};
use outrigger_sim::api::{ApiRequest, MessagesApi};
use outrigger_sim::claude::{Sandbox, executable};

/// Longer than anything here takes on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A scripted API, and a home for CLIs that ask it. The model does what the prompts say (`outrigger_sim::directive`).
pub(crate) struct Rig {
    pub(crate) api: MessagesApi,
    pub(crate) sandbox: Sandbox,
    pub(crate) cli: PathBuf,
}

impl Rig {
    pub(crate) async fn start() -> Self {
        let api = MessagesApi::builder()
            .directives(true)
            .start()
            .await
            .expect("the API starts");
        Self {
            api,
            sandbox: Sandbox::new().expect("a directory"),
            cli: match std::env::var_os("OUTRIGGER_TEST_CLI") {
                Some(other) => other.into(),
                None => executable().await.expect("the pinned CLI"),
            },
        }
    }

    /// Options for a session of the real CLI in this place: clean environment, own home, dummy key, loopback only.
    pub(crate) fn options(&self) -> Options {
        let mut options = Agent::builder()
            .auth(Auth::ApiKey(Secret::new(ApiRequest::DUMMY_KEY)))
            .cli_path(&self.cli)
            .cwd(self.sandbox.project());
        for (name, value) in self.sandbox.env(&self.api.base_url()) {
            if name != "ANTHROPIC_API_KEY" {
                options = options.env(name, value);
            }
        }
        options
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
