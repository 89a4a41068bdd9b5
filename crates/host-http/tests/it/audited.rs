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
    // As a client may write it, too.
    let encoded = S.replacen('5', "%35", 1);
    rig.get(&format!("/v1/sessions/{encoded}")).await;
    rig.get("/v1/sessions/a-very-secret-name").await;
    rig.get(&format!("/v1/approvals/{S}")).await;
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
            (debug, Some("ada"), "GET", "/v1/sessions/{id}", Some(S), "200"),
            (info, Some("ada"), "GET", "/v1/sessions/{id}", None, "404"),
            (info, Some("ada"), "GET", "/v1/approvals/{id}", None, "404"),
            (info, Some("ada"), "GET", "none", None, "404"),
            (info, Some("reader"), "POST", "/v1/webhooks", None, "403"),
            (info, None, "GET", "/v1/sessions/{id}", Some(S), "401"),
            (info, None, "GET", "/healthz", None, "421"),
        ]
    );
    assert_eq!(entries[0].get("token_id"), Some(&*token_id));
    assert_eq!(entries[6].get("token_id"), Some(&*record.id.to_string()));
    let all = format!("{entries:?}");
    assert!(
        !all.contains("very-secret") && !all.contains("very/secret") && !all.contains("secret plan"),
        "{all}"
    );
    assert!(!all.contains(&secret), "{all}");
}

#[tokio::test]
async fn who_did_what_can_be_read_afterwards() {
    let mut rig = Rig::new(Limits::default()).await;
    let (admin, admin_id) = (rig.token.clone(), rig.record.id);
    let made = rig
        .json(
            "POST",
            "/v1/sessions",
            &json!({"cwd": rig.dir.path(), "title": "the very secret plan"}),
        )
        .await;
    let session = made.body["id"].clone();
    let issued = rig
        .json(
            "POST",
            "/v1/tokens",
            &json!({"label": "reader", "scopes": ["read"]}),
        )
        .await;
    let reader = issued.body["id"].clone();
    // Events of the session have their actor there; who reads leaves no trace.
    rig.post(S, &[prompt("a", "%say hi")]).await;
    rig.get("/v1/sessions").await;
    rig.token = issued.body["token"].as_str().unwrap().to_owned();
    // As a client may write it, too.
    let encoded = S.replacen('5', "%35", 1);
    rig.json("POST", &format!("/v1/sessions/{encoded}/archive"), &json!({}))
        .await;
    rig.get("/v1/tokens").await;
    rig.json("DELETE", "/v1/webhooks/a-very-secret-name", &json!({}))
        .await;
    rig.token = "no token".to_owned();
    rig.json("POST", &format!("/v1/sessions/{S}/archive"), &json!({}))
        .await;
    let code = rig.tokens.code().unwrap();
    let exchanged = rig
        .json("POST", "/v1/tokens/exchange", &json!({"code": code}))
        .await;
    rig.token = admin.clone();
    rig.json(
        "DELETE",
        &format!("/v1/tokens/{}", reader.as_str().unwrap().replace('-', "%2D")),
        &json!({}),
    )
    .await;

    let audit = rig.get("/v1/audit").await;
    assert_eq!((audit.status, &audit.body["next"]), (200, &json!(null)));
    let entries = audit.body["entries"].as_array().unwrap();
    let sums: Vec<_> = entries
        .iter()
        .rev()
        .map(|entry| {
            json!([
                entry["token_id"],
                entry["actor"],
                entry["method"],
                entry["route"],
                entry["object"],
                entry["status"]
            ])
        })
        .collect();
    let first = &exchanged.body["id"];
    let expected = json!([
        [admin_id, "ada", "POST", "/v1/sessions", session, 201],
        [admin_id, "ada", "POST", "/v1/tokens", reader, 201],
        [reader, "reader", "POST", "/v1/sessions/{id}/archive", S, 403],
        [reader, "reader", "GET", "/v1/tokens", null, 403],
        [reader, "reader", "DELETE", "/v1/webhooks/{id}", null, 403],
        [first, "first start", "POST", "/v1/tokens/exchange", first, 201],
        [admin_id, "ada", "DELETE", "/v1/tokens/{id}", reader, 204],
    ]);
    assert_eq!(json!(sums), expected);
    let all = audit.body.to_string();
    assert!(
        !all.contains("secret") && !all.contains(&admin) && !all.contains(&code),
        "{all}"
    );
    // In pages, and from the file, also by another process.
    let page = rig.get("/v1/audit?limit=3").await.body;
    assert_eq!(
        (page["entries"].as_array().unwrap().len(), &page["next"]),
        (3, &json!(5))
    );
    let rest = rig.get("/v1/audit?before=5").await.body;
    assert_eq!(rest["entries"].as_array().unwrap().len(), 4);
    let read = outrigger_host::log::SqliteLog::audit_of(rig.dir.path().join("host.db"), 2).unwrap();
    assert_eq!(read.iter().map(|entry| entry.number).collect::<Vec<_>>(), [7, 6]);
}

/// The link of a first start is worth as much as the host.
#[tokio::test]
async fn a_code_is_not_spent_on_an_exchange_that_fails() {
    let mut rig = Rig::new(Limits::default()).await;
    let code = rig.tokens.code().unwrap();
    let file = rusqlite::Connection::open(rig.dir.path().join("host.db")).unwrap();
    rig.token = "no token".to_owned();
    for table in ["audit", "records"] {
        let sql =
            format!("CREATE TRIGGER full BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'full'); END");
        file.execute_batch(&sql).unwrap();
        let refused = rig
            .json("POST", "/v1/tokens/exchange", &json!({"code": code}))
            .await;
        assert_eq!(refused.status, 503, "{table}");
        file.execute_batch("DROP TRIGGER full").unwrap();
        assert_eq!(rig.tokens.records().len(), 1, "{table}");
    }
    for status in [201, 401] {
        let answer = rig
            .json("POST", "/v1/tokens/exchange", &json!({"code": code}))
            .await;
        assert_eq!(answer.status, status);
    }
}
