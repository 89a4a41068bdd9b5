//! Webhooks and schedules as resources.

use outrigger_host::{AddressRule, Source};
use outrigger_host_http::{Limits, Scope};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::rig::{Rig, S};

/// Takes one message, and answers it.
async fn receive(listener: &TcpListener) -> (String, Value) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut message = Vec::new();
    loop {
        assert_ne!(
            stream.read_buf(&mut message).await.unwrap(),
            0,
            "the message is cut off"
        );
        let text = String::from_utf8_lossy(&message).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            return (head.to_ascii_lowercase(), body);
        }
    }
}

#[tokio::test]
async fn a_webhook_is_added_told_and_removed_and_its_secret_is_shown_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let rule = AddressRule::public().allow("127.0.0.1").unwrap();
    let rig = Rig::with(|front| front.webhooks(rule)).await;
    let body = json!({"url": url, "events": ["turn_result", "session_state_changed"]});
    let added = rig.json("POST", "/v1/webhooks", &body).await;
    assert_eq!(added.status, 201, "{added:?}");
    let (id, secret) = (
        added.body["id"].as_str().unwrap(),
        added.body["secret"].as_str().unwrap(),
    );
    assert!(secret.starts_with("whsec_"));
    assert_eq!(added.body["created_by"], "ada");
    let list = rig.get("/v1/webhooks").await.body;
    assert_eq!(list["webhooks"][0]["id"], id);
    assert_eq!(
        list["webhooks"][0]["events"],
        json!(["session_state_changed", "turn_result"])
    );
    assert!(!list.to_string().contains("whsec_"), "{list}");

    let session = outrigger::SessionId::new(S).unwrap();
    let payload = json!({"type": "session_state_changed", "state": "running"});
    let event = outrigger_host::log::NewEvent::new(Source::Host, "session_state_changed", payload.into());
    let steps = vec![outrigger_host::log::Write::Append(event)];
    rig.host.event_log().write(&session, steps).await.unwrap();
    let (head, message) = receive(&listener).await;
    assert!(head.contains("webhook-signature: v1,"), "{head}");
    assert_eq!(
        (&message["data"]["session_id"], &message["data"]["state"]),
        (&json!(S), &json!("running"))
    );

    assert_eq!(
        rig.json("POST", &format!("/v1/webhooks/{id}/enable"), &json!({}))
            .await
            .status,
        204
    );
    assert_eq!(
        rig.json("DELETE", &format!("/v1/webhooks/{id}"), &json!({}))
            .await
            .status,
        204
    );
    assert_eq!(
        rig.json("DELETE", &format!("/v1/webhooks/{id}"), &json!({}))
            .await
            .problem(),
        "not-found"
    );
    for wrong in [
        json!({"url": "https://127.0.0.2/", "events": ["turn_result"]}),
        json!({"url": url, "events": []}),
        json!({"url": url, "events": ["everything"]}),
        json!({"url": url, "events": ["turn_result"], "secret": "x"}),
    ] {
        let refused = rig.json("POST", "/v1/webhooks", &wrong).await;
        assert_eq!(
            (refused.status, refused.problem()),
            (400, "invalid-request"),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_schedule_is_added_listed_and_removed() {
    let rig = Rig::new(Limits::default()).await;
    let body = json!({"session_id": S, "cron": "0 3 * * *", "time_zone": "Europe/Berlin", "prompt": "hi", "missed": "latest"});
    let added = rig.json("POST", "/v1/schedules", &body).await;
    assert_eq!(added.status, 201, "{added:?}");
    for (name, value) in body.as_object().unwrap() {
        assert_eq!(&added.body[name], value);
    }
    assert!(added.body["next_at"].is_u64());
    let list = rig.get("/v1/schedules").await.body;
    assert_eq!(list["schedules"], json!([added.body]));
    let path = format!("/v1/schedules/{}", added.body["id"].as_str().unwrap());
    assert_eq!(rig.json("DELETE", &path, &json!({})).await.status, 204);
    assert_eq!(rig.json("DELETE", &path, &json!({})).await.problem(), "not-found");
    for (change, problem) in [
        (json!({"cron": "sometimes"}), "invalid-request"),
        (json!({"time_zone": "Europe/Nowhere"}), "invalid-request"),
        (json!({"missed": "all"}), "invalid-request"),
        (json!({"prompt": ""}), "invalid-request"),
        (
            json!({"session_id": "5e551011-0000-4000-8000-00000000dead"}),
            "unknown-session",
        ),
        (json!({"session_id": "x"}), "unknown-session"),
    ] {
        let mut wrong = body.clone();
        wrong
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        assert_eq!(
            rig.json("POST", "/v1/schedules", &wrong).await.problem(),
            problem,
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn webhooks_are_the_administrators_and_schedules_are_read_by_readers() {
    let mut rig = Rig::new(Limits::default()).await;
    for (scope, webhooks, schedules) in [
        (Scope::Read, 403, 200),
        (Scope::Approve, 403, 403),
        // A prompt of somebody else is what is said in a session.
        (Scope::Send, 403, 403),
        (Scope::Admin, 200, 403),
    ] {
        let (token, _) = rig.tokens.issue("one", [scope], None).await.unwrap();
        rig.token = token.reveal().to_owned();
        assert_eq!(rig.get("/v1/webhooks").await.status, webhooks, "{scope:?}");
        assert_eq!(rig.get("/v1/schedules").await.status, schedules, "{scope:?}");
    }
}
