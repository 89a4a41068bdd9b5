//! What the operator's log has of requests.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::{ThreadId, current};

use outrigger_host_http::{Limits, Scope};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use crate::rig::{Rig, S, prompt};

/// The subscriber of the whole program: one for a thread would miss what another thread was the first to reach.
static KEPT: LazyLock<Kept> = LazyLock::new(|| {
    let kept = Kept::default();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(kept.clone())).unwrap();
    kept
});

/// Keeps the events of the audit, and the thread that they come from.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<(ThreadId, Entry)>>>);

#[derive(Debug, Clone, Default)]
struct Entry {
    level: String,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Entry {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Kept {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "outrigger_host_http::audit" {
            let mut entry = Entry {
                level: event.metadata().level().to_string(),
                ..Entry::default()
            };
            event.record(&mut entry);
            self.0.lock().unwrap().push((current().id(), entry));
        }
    }
}

impl Entry {
    fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// The test, its front and its host are on one thread.
#[tokio::test]
async fn each_request_is_in_the_audit_with_who_did_what_and_no_secret() {
    let kept = KEPT.clone();
    let mut rig = Rig::new(Limits::default()).await;
    let token_id = rig.record.id.to_string();
    let secret = rig.token.clone();
    rig.post(
        S,
        &[prompt(
            "7a1f0a9e-0000-4000-8000-000000000001",
            "the very secret plan",
        )],
    )
    .await;
    rig.get(&format!("/v1/sessions/{S}/events?after=0")).await;
    rig.get("/v1/sessions/a-very-secret-name").await;
    rig.get("/very/secret/path?token=x").await;
    let (reader, record) = rig.tokens.issue("reader", [Scope::Read], None).await.unwrap();
    rig.token = reader.reveal().to_owned();
    rig.json(
        "POST",
        "/v1/webhooks",
        &json!({"url": "https://very-secret.example.com/", "events": ["turn_result"]}),
    )
    .await;
    rig.token = "no token".to_owned();
    rig.get(&format!("/v1/sessions/{S}")).await;
    rig.raw("GET /healthz HTTP/1.1\r\nHost: evil.example", "").await;

    let mut entries = kept.0.lock().unwrap().clone();
    entries.retain(|(thread, _)| *thread == current().id());
    let entries: Vec<Entry> = entries.into_iter().map(|(_, entry)| entry).collect();
    let sums: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry.level.as_str(),
                entry.get("actor"),
                entry.get("method").unwrap(),
                entry.get("route").unwrap(),
                entry.get("session"),
                entry.get("status").unwrap(),
            )
        })
        .collect();
    let (info, debug) = (Level::INFO.as_str(), Level::DEBUG.as_str());
    assert_eq!(
        sums,
        [
            (
                info,
                Some("ada"),
                "POST",
                "/v1/sessions/{id}/events",
                Some(S),
                "202"
            ),
            (
                debug,
                Some("ada"),
                "GET",
                "/v1/sessions/{id}/events",
                Some(S),
                "200"
            ),
            (info, Some("ada"), "GET", "/v1/sessions/{id}", None, "404"),
            (info, None, "GET", "none", None, "404"),
            (info, Some("reader"), "POST", "/v1/webhooks", None, "403"),
            (info, None, "GET", "/v1/sessions/{id}", Some(S), "401"),
            (info, None, "GET", "/healthz", None, "421"),
        ]
    );
    assert_eq!(entries[0].get("token_id"), Some(&*token_id));
    assert_eq!(entries[4].get("token_id"), Some(&*record.id.to_string()));
    let all = format!("{entries:?}");
    assert!(
        !all.contains("very-secret") && !all.contains("very/secret") && !all.contains("secret plan"),
        "{all}"
    );
    assert!(!all.contains(&secret), "{all}");
}
