//! A host whose wall clock the test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use outrigger::SessionId;
use outrigger::testing::Simulated;
use outrigger_host::log::{NewEvent, SqliteLog, Write};
use outrigger_host::{HostPolicy, NewSession, SessionHost, Source};
use outrigger_host_hooks::Clock;
use serde_json::{Value, json};

/// 1 March 2026 at noon, in UTC.
const NOON: i64 = 1_772_366_400;

pub(crate) struct Rig {
    cli: Simulated,
    dir: tempfile::TempDir,
    /// In seconds since 1970.
    now: Arc<AtomicI64>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self {
            cli: Simulated::agent(|agent| agent.directives()),
            dir: tempfile::tempdir().unwrap(),
            now: Arc::new(AtomicI64::new(NOON)),
        }
    }

    pub(crate) async fn host(&self) -> SessionHost {
        let mut policy = HostPolicy::new(self.cli.options(), [self.dir.path()]);
        policy.lease = false;
        let log = SqliteLog::open(self.dir.path().join("host.db")).unwrap();
        SessionHost::open(policy, log).await.unwrap()
    }

    pub(crate) async fn session(&self, host: &SessionHost) -> SessionId {
        let new = NewSession::new(self.dir.path());
        host.create(new, "ada").await.unwrap().id
    }

    /// Where its sessions are, and its log.
    pub(crate) fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub(crate) fn clock(&self) -> Clock {
        let now = Arc::clone(&self.now);
        Clock::new(move || Timestamp::from_second(now.load(Ordering::SeqCst)).unwrap())
    }

    /// Sets the clock forward.
    pub(crate) fn advance(&self, seconds: i64) {
        self.now.fetch_add(seconds, Ordering::SeqCst);
    }
}

/// Appends an event to a session.
pub(crate) async fn append(host: &SessionHost, session: &SessionId, source: Source, payload: Value) {
    let kind = payload["type"].as_str().unwrap().to_owned();
    let event = NewEvent::new(source, kind, payload.into());
    host.event_log()
        .write(session, vec![Write::Append(event)])
        .await
        .unwrap();
}

/// Appends a change of the state, which is told apart by its name.
pub(crate) async fn state(host: &SessionHost, session: &SessionId, name: &str) {
    let payload = json!({"type": "session_state_changed", "session_id": session.as_str(), "state": name});
    append(host, session, Source::Host, payload).await;
}

/// The payloads of the events of a kind.
pub(crate) async fn payloads(host: &SessionHost, session: &SessionId, kind: &str) -> Vec<Value> {
    let page = host.events(session, 0, 1000).await.unwrap();
    let events = page.events.iter().filter(|event| event.kind == kind);
    events.map(|event| event.payload.to_value().unwrap()).collect()
}
