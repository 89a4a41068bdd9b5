//! What clients send, and what becomes of it.

use outrigger_host_http::{Limits, Scope};
use serde_json::json;

use crate::rig::{Rig, S, decision, prompt, uuid};

#[tokio::test]
async fn a_repeated_send_is_stored_once() {
    let rig = Rig::new(Limits::default()).await;
    let first = rig.post(S, &[prompt("a", "%say hi")]).await;
    assert_eq!(first.status, 202);
    let seq = first.body["events"][0]["sequence_num"].clone();
    assert_eq!(
        first.body,
        json!({"events": [{"event_id": uuid("a"), "sequence_num": seq, "effect": "stored"}]})
    );
    let second = rig.post(S, &[prompt("a", "%say hi")]).await;
    assert_eq!(second.status, 202);
    assert_eq!(
        second.body,
        json!({"events": [{"event_id": uuid("a"), "sequence_num": seq, "effect": "repeated"}]})
    );
    let other = rig.post(S, &[prompt("a", "%say other")]).await;
    assert_eq!((other.status, other.problem()), (409, "reused"));
    rig.until(0, |event| event["payload"]["type"] == "result").await;
    let events = rig.get(&format!("/v1/sessions/{S}/events?limit=1000")).await.body;
    let prompts: Vec<_> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["event_id"] == uuid("a"))
        .collect();
    assert_eq!(prompts.len(), 1);
    assert_eq!(
        (&prompts[0]["actor"], &prompts[0]["source"]),
        (&json!("ada"), &json!("client"))
    );
}

#[tokio::test]
async fn the_second_who_decides_learns_who_was_first() {
    let rig = Rig::new(Limits::default()).await;
    let (bob, _) = rig.tokens.issue("bob", [Scope::Approve], None).await.unwrap();
    let ask = "%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}";
    rig.post(S, &[prompt("a", ask)]).await;
    let asked = rig
        .until(0, |event| event["payload"]["type"] == "control_request")
        .await;
    let request = asked["payload"]["request_id"].as_str().unwrap();
    let first = rig.post(S, &[decision(request, "deny")]).await;
    assert_eq!(first.body["events"][0]["effect"], "stored");
    let second = rig
        .post_with(bob.reveal(), S, &[decision(request, "allow")])
        .await;
    assert_eq!(second.status, 202);
    assert_eq!(second.body["events"][0]["effect"], "decided");
    assert_eq!(second.body["events"][0]["decided_by"], "ada");
    let done = rig
        .until(0, |event| event["payload"].to_string().contains("tool_result"))
        .await;
    assert!(
        done["payload"].to_string().contains("\"is_error\":true"),
        "{done}"
    );
}

#[tokio::test]
async fn a_batch_that_is_wrong_in_part_stores_nothing() {
    let rig = Rig::new(Limits::default()).await;
    let before = rig.head().await;
    let answer = rig
        .post(S, &[prompt("a", "%say hi"), json!({"type": "user"})])
        .await;
    assert_eq!((answer.status, answer.problem()), (400, "invalid-request"));
    assert!(answer.body["detail"].as_str().unwrap().contains("events[1]"));
    let answer = rig
        .post(S, &[prompt("a", "%say hi"), json!({"type": "assistant"})])
        .await;
    assert_eq!((answer.status, answer.problem()), (400, "invalid-request"));
    assert_eq!(rig.head().await, before);
}
