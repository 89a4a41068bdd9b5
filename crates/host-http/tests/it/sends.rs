//! What clients send, and what becomes of it.

use outrigger_host_http::{Limits, Scope};
use serde_json::json;

use crate::rig::{Rig, decision, prompt};

const S: &str = "session-1";

#[tokio::test]
async fn a_repeated_send_is_stored_once() {
    let rig = Rig::new(Limits::default()).await;
    let first = rig.post(S, &[prompt("a", "hi")]).await;
    assert_eq!(
        first.body,
        json!({"events": [{"event_id": "evt_1", "sequence_num": 1, "effect": "stored"}]})
    );
    let second = rig.post(S, &[prompt("a", "hi")]).await;
    assert_eq!(second.status, 202);
    assert_eq!(
        second.body,
        json!({"events": [{"event_id": "evt_1", "sequence_num": 1, "effect": "repeated"}]})
    );
    let events = rig.get(&format!("/v1/sessions/{S}/events")).await.body;
    let prompts = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["payload"]["type"] == "user");
    assert_eq!(prompts.count(), 1);
    assert_eq!(events["events"][0]["actor"], "ada");
    assert_eq!(events["events"][0]["source"], "client");
    assert_eq!(events["events"][1]["source"], "worker");
}

#[tokio::test]
async fn the_second_who_decides_learns_who_was_first() {
    let rig = Rig::new(Limits::default()).await;
    let (bob, _) = rig.tokens.issue("bob", [Scope::Approve], None).unwrap();
    rig.post(S, &[prompt("a", "permission")]).await;
    let first = rig.post(S, &[decision("ask-a", "deny")]).await;
    assert_eq!(first.body["events"][0]["effect"], "stored");
    let second = rig
        .post_with(bob.reveal(), S, &[decision("ask-a", "allow")])
        .await;
    assert_eq!(second.status, 202);
    assert_eq!(second.body["events"][0]["effect"], "decided");
    assert_eq!(second.body["events"][0]["decided_by"], "ada");
    let text = rig
        .get(&format!("/v1/sessions/{S}/events"))
        .await
        .body
        .to_string();
    assert!(text.contains("permission: deny") && !text.contains("permission: allow"));
}

#[tokio::test]
async fn a_batch_that_is_wrong_in_part_stores_nothing() {
    let rig = Rig::new(Limits::default()).await;
    let answer = rig.post(S, &[prompt("a", "hi"), json!({"type": "user"})]).await;
    assert_eq!((answer.status, answer.problem()), (400, "invalid-request"));
    assert!(answer.body["detail"].as_str().unwrap().contains("events[1]"));
    assert_eq!(
        rig.get(&format!("/v1/sessions/{S}/events")).await.body["head_seq"],
        0
    );
}
