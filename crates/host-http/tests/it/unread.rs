//! What a token without the scope `read` is told.

use outrigger_host::NewSession;
use outrigger_host_http::Scope;
use serde_json::{Value, json};

use crate::rig::{Rig, host_that_stores, prompt, uuid};

/// A word that is only in what the scope `read` protects: the title of a session, its directory, what was said in it, and what it asks.
const WORD: &str = "albatross";

/// What is not told either: fields of sessions, approvals and events.
const FIELDS: [&str; 10] = [
    "cwd",
    "head_seq",
    "has_history",
    "pending_approvals",
    "request",
    "input_hash",
    "tool_name",
    "tool_use_id",
    "payload",
    "filesChanged",
];

/// Routes that tell these fields all the same, and why it is nothing that `read` protects.
const OWN: [(&str, &str); 2] = [
    // Sessions that are none of the host's: the administrator chooses among them.
    ("get", "/v1/adoptable"),
    // What the caller has just written.
    ("post", "/v1/schedules"),
];

/// What is in a document of JSON, by the names of its fields.
fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.push(name.clone());
                names(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

struct Scene {
    rig: Rig,
    session: String,
    approval: String,
    schedule: String,
    webhook: String,
    token: String,
    left: String,
    _workspaces: tempfile::TempDir,
}

impl Scene {
    /// A session with a turn behind it, and with one that asks.
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let workspaces = tempfile::tempdir().unwrap();
        let host = host_that_stores(dir.path(), workspaces.path()).await;
        let cwd = dir.path().join(WORD);
        std::fs::create_dir(&cwd).unwrap();
        let mut new = NewSession::new(&cwd);
        new.title = Some(WORD.to_owned());
        let session = host.create(new, WORD).await.unwrap().id.to_string();
        let rig = Rig::over(dir, host, |front| front).await;

        let left = uuid("left");
        let name: String = cwd
            .canonicalize()
            .unwrap()
            .to_str()
            .unwrap()
            .chars()
            .map(|char| if char.is_ascii_alphanumeric() { char } else { '-' })
            .collect();
        let project = workspaces.path().join("claude").join("projects").join(name);
        std::fs::create_dir_all(&project).unwrap();
        let line = json!({
            "type": "user", "uuid": left, "parentUuid": null, "sessionId": left, "cwd": cwd.canonicalize().unwrap(), "isSidechain": false,
            "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": WORD},
        });
        std::fs::write(project.join(format!("{left}.jsonl")), format!("{line}\n")).unwrap();

        rig.post(&session, &[prompt("a", &format!("%say {WORD}"))]).await;
        let mut events = rig.stream(&session, Some(0)).await;
        while events.next().await.unwrap().data["payload"]["status"] != "processed" {}
        let asks = format!("%tool Write {{\"file_path\":\"{WORD}.txt\",\"content\":\"{WORD}\"}}");
        rig.post(&session, &[prompt("b", &asks)]).await;
        let approval = loop {
            let payload = events.next().await.unwrap().data["payload"].clone();
            if payload["type"] == "approval_opened" {
                break payload["approval_id"].as_str().unwrap().to_owned();
            }
        };
        let id = |answer: crate::rig::Answer| answer.body["id"].as_str().unwrap().to_owned();
        let schedule =
            json!({"session_id": session, "cron": "0 3 * * *", "time_zone": "UTC", "prompt": WORD});
        let schedule = id(rig.json("POST", "/v1/schedules", &schedule).await);
        let webhook = json!({"url": "https://example.com/", "events": ["turn_result"]});
        let webhook = id(rig.json("POST", "/v1/webhooks", &webhook).await);
        let token = id(rig
            .json("POST", "/v1/tokens", &json!({"label": "x", "scopes": ["read"]}))
            .await);
        Self {
            rig,
            session,
            approval,
            schedule,
            webhook,
            token,
            left,
            _workspaces: workspaces,
        }
    }

    /// What to send to a route, so that it does what it is for.
    fn body(&self, path: &str) -> Value {
        match path {
            // What is there already, as a client says who repeats a creation.
            "/v1/sessions" => {
                json!({"id": self.session, "cwd": self.rig.dir.path().join(WORD), "title": WORD})
            }
            "/v1/sessions/{id}" => json!({"model": null}),
            "/v1/sessions/{id}/rewind" => json!({"event_id": uuid("a"), "dry_run": true}),
            "/v1/sessions/{id}/events" => {
                json!({"events": [{"payload": prompt("a", &format!("%say {WORD}"))}]})
            }
            "/v1/approvals/{id}/decision" => json!({"behavior": "allow"}),
            "/v1/adoptions" => json!({"session_id": self.left}),
            "/v1/tokens" => json!({"label": "x", "scopes": ["send"]}),
            "/v1/schedules" => {
                json!({"session_id": self.session, "cron": "0 3 * * *", "time_zone": "UTC", "prompt": "hi"})
            }
            "/v1/webhooks" => json!({"url": "https://example.com/", "events": ["turn_result"]}),
            _ => json!({}),
        }
    }

    fn path(&self, path: &str) -> String {
        let id = match path {
            path if path.starts_with("/v1/approvals/") => &self.approval,
            path if path.starts_with("/v1/tokens/") => &self.token,
            path if path.starts_with("/v1/schedules/") => &self.schedule,
            path if path.starts_with("/v1/webhooks/") => &self.webhook,
            _ => &self.session,
        };
        path.replace("{id}", id)
    }
}

/// In an order in which none is in the way of another: what ends something comes last.
fn order(method: &str, path: &str) -> u8 {
    match (method, path) {
        ("delete", "/v1/sessions/{id}") => 6,
        ("delete", "/v1/sessions/{id}/workspace") => 5,
        (_, "/v1/sessions/{id}/archive") => 4,
        ("delete", _) => 3,
        (_, "/v1/sessions/{id}/stop" | "/v1/sessions/{id}/interrupt") => 1,
        (_, "/v1/sessions/{id}/fork" | "/v1/sessions/{id}/rewind") => 2,
        _ => 0,
    }
}

#[tokio::test]
async fn no_reply_has_what_the_scope_read_protects() {
    let mut scene = Scene::new().await;
    let document = outrigger_host_http::openapi();
    let mut routes = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let Some(scopes) = operation["security"][0]["token"].as_array() else {
                continue;
            };
            let scope = match scopes.first().and_then(Value::as_str) {
                Some("read") => continue,
                Some("approve") => Scope::Approve,
                Some("admin") => Scope::Admin,
                _ => Scope::Send,
            };
            routes.push((method.clone(), path.clone(), scope));
        }
    }
    routes.sort_by_key(|(method, path, _)| order(method, path));
    let mut tokens = Vec::new();
    for scope in [Scope::Send, Scope::Approve, Scope::Admin] {
        let (token, _) = scene.rig.tokens.issue("blind", [scope], None).await.unwrap();
        tokens.push((scope, token.reveal().to_owned()));
    }
    let mut answered = 0;
    for (method, path, scope) in &routes {
        let token = tokens.iter().find(|(of, _)| of == scope).unwrap().1.clone();
        scene.rig.token = token;
        // Once more: what was decided or made before is told no more of.
        for _ in 0..2 {
            let answer = scene
                .rig
                .json(&method.to_uppercase(), &scene.path(path), &scene.body(path))
                .await;
            let what = format!("{method} {path}: {answer:?}");
            assert_ne!(answer.status, 403, "{what}");
            answered += u32::from((200..300).contains(&answer.status));
            if OWN.contains(&(&**method, &**path)) {
                continue;
            }
            assert!(!answer.body.to_string().contains(WORD), "{what}");
            let mut found = Vec::new();
            names(&answer.body, &mut found);
            let told: Vec<_> = found
                .iter()
                .filter(|name| FIELDS.contains(&name.as_str()))
                .collect();
            assert!(told.is_empty(), "{told:?} in {what}");
        }
    }
    assert!(answered > 24, "{answered} of {} twice", routes.len());
}

#[tokio::test]
async fn who_may_only_decide_or_send_is_told_what_became_of_that() {
    let mut scene = Scene::new().await;
    let whole = scene
        .rig
        .json("PATCH", &format!("/v1/sessions/{}", scene.session), &json!({}))
        .await;
    assert_eq!(whole.body["title"], WORD, "{whole:?}");
    let path = format!("/v1/approvals/{}/decision", scene.approval);
    let (approver, _) = scene
        .rig
        .tokens
        .issue("approver", [Scope::Approve], None)
        .await
        .unwrap();
    let reader = std::mem::replace(&mut scene.rig.token, approver.reveal().to_owned());
    let decided = scene
        .rig
        .json("POST", &path, &json!({"behavior": "deny", "message": "no"}))
        .await;
    assert_eq!(
        (
            decided.status,
            &decided.body["state"],
            &decided.body["decided_by"]
        ),
        (200, &json!("denied"), &json!("approver"))
    );
    assert_eq!(decided.body["session_id"], scene.session);
    let late = scene.rig.json("POST", &path, &json!({"behavior": "allow"})).await;
    assert_eq!(late.problem(), "too-late");
    assert_eq!(
        (&late.body["approval"]["state"], &late.body["approval"]["request"]),
        (&json!("denied"), &Value::Null)
    );
    // Who may read, too, is told all of it.
    scene.rig.token = reader;
    let late = scene.rig.json("POST", &path, &json!({"behavior": "allow"})).await;
    assert!(late.body["approval"]["request"].is_object(), "{late:?}");
}
