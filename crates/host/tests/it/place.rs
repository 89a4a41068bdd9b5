//! A host in a temporary directory, with simulated CLIs.

use std::sync::Arc;
use std::time::Duration;

use outrigger::protocol::RawJson;
use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::agent::Builder;
use outrigger::{Options, SessionId};
use outrigger_host::log::SqliteLog;
use outrigger_host::{Delivered, HostPolicy, LogEvent, NewSession, SessionHost, Subscription};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) struct Place {
    pub(crate) cli: Simulated,
    pub(crate) dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(|agent| agent)
    }

    /// With more that the simulated CLI is to do.
    pub(crate) fn with(configure: impl Fn(Builder) -> Builder + Send + Sync + 'static) -> Self {
        Self {
            cli: Simulated::agent(move |agent| configure(agent.directives())),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// Sessions are stored beside the log.
    pub(crate) fn options(&self) -> Options {
        let config = self.dir.path().join("claude");
        self.cli
            .options()
            .env("CLAUDE_CONFIG_DIR", config.display().to_string())
    }

    pub(crate) fn policy(&self) -> HostPolicy {
        let mut policy = HostPolicy::new(self.options(), [self.dir.path()]);
        // A simulated CLI in memory is far away, where nothing can be leased.
        policy.lease = false;
        policy
    }

    pub(crate) async fn host(&self) -> SessionHost {
        self.host_with(self.policy()).await
    }

    pub(crate) async fn host_with(&self, policy: HostPolicy) -> SessionHost {
        let log = SqliteLog::open(self.dir.path().join("host.db")).unwrap();
        SessionHost::open(policy, log).await.unwrap()
    }

    pub(crate) async fn session(&self, host: &SessionHost) -> SessionId {
        host.create(NewSession::new(self.dir.path()), "ada")
            .await
            .unwrap()
            .id
    }
}

pub(crate) fn user(text: &str, uuid: Uuid) -> RawJson {
    json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}).into()
}

/// Longer than anything here takes on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The next event that `wanted` accepts.
pub(crate) async fn until(
    events: &mut Subscription,
    wanted: impl Fn(&LogEvent, &Value) -> bool,
) -> Arc<LogEvent> {
    let mut seen = Vec::new();
    let found = async {
        loop {
            if let Delivered::Event(event) = events.next().await.unwrap() {
                if wanted(&event, &event.payload.to_value().unwrap()) {
                    return event;
                }
                seen.push(event.payload.to_string());
            }
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.unwrap_or_else(|_| panic!("it did not come; there were {seen:#?}"))
}

pub(crate) async fn processed(events: &mut Subscription, id: Uuid, status: &str) {
    until(events, |event, payload| {
        event.kind == "delivery_update"
            && payload["event_id"] == id.to_string()
            && payload["status"] == status
    })
    .await;
}

/// A prompt, up to the end of its turn.
pub(crate) async fn say(host: &SessionHost, id: &SessionId, text: &str) -> Uuid {
    let mut events = host
        .subscribe(id, host.session(id).await.unwrap().head_seq)
        .await
        .unwrap();
    let prompt = Uuid::new_v4();
    host.send(id, user(text, prompt), "ada").await.unwrap();
    processed(&mut events, prompt, "processed").await;
    prompt
}
