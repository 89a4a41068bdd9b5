//! Streams: cursors, replays, ends.

use std::time::{Duration, SystemTime};

use outrigger_host_http::{Ephemeral, Limits, Scope};
use serde_json::json;

use crate::rig::{Rig, prompt};

const S: &str = "session-1";

#[tokio::test]
async fn a_stream_replays_from_the_cursor_says_synced_and_goes_on() {
    let rig = Rig::new(Limits::default()).await;
    assert_eq!(rig.post(S, &[prompt("a", "one")]).await.status, 202);
    let head = rig.get(&format!("/v1/sessions/{S}/events")).await.body["head_seq"]
        .as_u64()
        .unwrap();
    assert_eq!(head, 4);
    // From every event boundary.
    for cursor in 0..=head {
        let mut stream = rig.stream(S, Some(cursor)).await;
        let expected: Vec<_> = (cursor + 1..=head).collect();
        assert_eq!(stream.replay().await, expected, "after {cursor}");
    }
    let mut stream = rig.stream(S, None).await;
    stream.replay().await;
    rig.post(S, &[prompt("b", "two")]).await;
    let mut live = Vec::new();
    while live.last() != Some(&8) {
        live.extend(stream.next().await.unwrap().id);
    }
    assert_eq!(live, [5, 6, 7, 8]);
}

#[tokio::test]
async fn pages_smaller_than_the_log_lose_and_repeat_nothing() {
    let mut limits = Limits::default();
    limits.page = 3;
    let rig = Rig::new(limits).await;
    rig.host
        .with(S, |session| {
            (0..50).for_each(|n| session.worker(json!({"type": "x", "n": n})))
        })
        .unwrap();
    assert_eq!(
        rig.stream(S, None).await.replay().await,
        (1..=50).collect::<Vec<_>>()
    );
    let mut after = 0;
    let mut seen = Vec::new();
    loop {
        let page = rig
            .get(&format!("/v1/sessions/{S}/events?after={after}&limit=1000"))
            .await
            .body;
        let events = page["events"].as_array().unwrap().clone();
        assert!(events.len() <= 3);
        let Some(last) = events.last() else { break };
        after = last["sequence_num"].as_u64().unwrap();
        seen.extend(events.iter().map(|event| event["payload"]["n"].as_u64().unwrap()));
    }
    assert_eq!(seen, (0..50).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_trimmed_log_is_told_before_what_is_left() {
    let rig = Rig::new(Limits::default()).await;
    rig.host
        .with(S, |session| {
            (0..9).for_each(|n| session.worker(json!({"type": "x", "n": n})));
            session.first = 6;
        })
        .unwrap();
    let mut stream = rig.stream(S, Some(2)).await;
    let got = stream.next().await.unwrap();
    assert_eq!(
        (got.name.as_str(), &got.data),
        ("catch_up_truncated", &json!({"first_sequence_num": 6}))
    );
    assert_eq!(stream.replay().await, [6, 7, 8, 9]);
    assert_eq!(rig.stream(S, Some(5)).await.replay().await, [6, 7, 8, 9]);
}

#[tokio::test]
async fn a_cursor_of_another_log_is_an_error_and_no_empty_replay() {
    let rig = Rig::new(Limits::default()).await;
    let answer = rig.get(&format!("/v1/sessions/{S}/events/stream?after=1")).await;
    assert_eq!((answer.status, answer.problem()), (409, "cursor-ahead"));
    for cursor in ["-1", "+1", "1e3", "x", "18446744073709551616", ""] {
        let answer = rig
            .get(&format!("/v1/sessions/{S}/events/stream?after={cursor}"))
            .await;
        assert_eq!(
            (answer.status, answer.problem()),
            (400, "invalid-cursor"),
            "{cursor}"
        );
    }
}

#[tokio::test]
async fn a_reader_that_falls_behind_is_disconnected_and_resumes() {
    let rig = Rig::new(Limits::default()).await;
    let mut stream = rig.stream(S, None).await;
    stream.replay().await;
    // One lock, so that the stream sees all of it at once: more than the channel keeps.
    rig.host
        .with(S, |session| {
            for n in 0..200 {
                let _ = session.ephemeral.send(Ephemeral::Frame(json!({"n": n}).into()));
            }
            session.worker(json!({"type": "x"}));
        })
        .unwrap();
    let seen: Vec<_> = stream.rest().await.iter().filter_map(|got| got.id).collect();
    assert_eq!(seen, [1], "durable events come before the end");
    assert_eq!(rig.stream(S, Some(0)).await.replay().await, [1]);
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams() {
    let rig = Rig::new(Limits::default()).await;
    let mut stream = rig.stream(S, None).await;
    stream.replay().await;
    assert!(rig.tokens.revoke(rig.record.id));
    assert_eq!(stream.rest().await, []);
    assert_eq!(
        rig.get(&format!("/v1/sessions/{S}/events")).await.problem(),
        "unauthorized"
    );
}

#[tokio::test]
async fn a_token_that_expires_ends_its_streams() {
    let mut rig = Rig::new(Limits::default()).await;
    let soon = SystemTime::now() + Duration::from_millis(300);
    let (token, _) = rig.tokens.issue("brief", [Scope::Read], Some(soon)).unwrap();
    rig.token = token.reveal().to_owned();
    let mut stream = rig.stream(S, None).await;
    assert!(stream.head().await.contains("200 OK") || SystemTime::now() >= soon);
    stream.rest().await;
    assert!(SystemTime::now() >= soon);
}

#[tokio::test]
async fn shutting_down_ends_streams_and_returns() {
    let rig = Rig::new(Limits::default()).await;
    let mut stream = rig.stream(S, None).await;
    stream.replay().await;
    rig.stop.send(()).unwrap();
    assert_eq!(stream.rest().await, []);
    rig.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_read_cannot_hold_the_front_open() {
    let mut limits = Limits::default();
    limits.page = 4;
    limits.write_patience = Duration::from_millis(100);
    let rig = Rig::new(limits).await;
    let large = "x".repeat(1 << 20);
    rig.host
        .with(S, |session| {
            (0..64).for_each(|_| session.worker(json!({"type": "x", "large": large})));
        })
        .unwrap();
    // More waits for it than the sockets hold.
    let mut stream = rig.stream(S, None).await;
    assert!(stream.head().await.contains("200 OK"));
    rig.stop.send(()).unwrap();
    let served = tokio::time::timeout(Duration::from_secs(30), rig.served).await;
    served.expect("the front ends").unwrap().unwrap();
}
