//! Streams: cursors, replays, ends.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outrigger::SessionId;
use outrigger_host_http::{Limits, Scope};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::rig::{Rig, S, host_with, prompt, uuid};

#[tokio::test]
async fn a_stream_replays_from_the_cursor_says_synced_and_goes_on() {
    let rig = Rig::new(Limits::default()).await;
    rig.append(5, json!({})).await;
    let head = rig.head().await;
    assert_eq!(
        rig.get(&format!("/v1/sessions/{S}/events")).await.body["head_seq"],
        head
    );
    // From every event boundary.
    for cursor in 0..=head {
        let mut stream = rig.stream(S, Some(cursor)).await;
        let expected: Vec<_> = (cursor + 1..=head).collect();
        assert_eq!(stream.replay().await, expected, "after {cursor}");
    }
    let mut stream = rig.stream(S, None).await;
    stream.replay().await;
    assert_eq!(rig.post(S, &[prompt("b", "%say two")]).await.status, 202);
    let (mut live, mut deliveries) = (Vec::new(), Vec::new());
    while !deliveries.contains(&json!("DELIVERY_STATUS_PROCESSED")) {
        let got = stream.next().await.unwrap();
        live.extend(got.id);
        if got.name == "delivery_update" {
            deliveries.push(got.data["status"].clone());
        }
    }
    let last = *live.last().unwrap();
    assert_eq!(live, (head + 1..=last).collect::<Vec<_>>());
    assert_eq!(deliveries.len(), 3, "{deliveries:?}");
}

/// A stream may end between any two of its events, and goes on behind the last one that has a number.
#[tokio::test]
async fn how_far_a_prompt_got_is_told_before_the_event_that_moves_the_cursor() {
    let rig = Rig::new(Limits::default()).await;
    rig.post(S, &[prompt("b", "%say two")]).await;
    let mut stream = rig.stream(S, None).await;
    let (mut told, mut seen) = (None, 0);
    while seen < 3 {
        let got = stream.next().await.unwrap();
        if got.name == "client_event" && got.data["payload"]["type"] == "delivery_update" {
            assert_eq!(told.as_deref(), Some("delivery_update"), "{:?}", got.data);
            seen += 1;
        }
        told = Some(got.name);
    }
}

#[tokio::test]
async fn pages_smaller_than_the_log_lose_and_repeat_nothing() {
    let mut limits = Limits::default();
    limits.page = 3;
    let rig = Rig::new(limits).await;
    rig.append(50, json!({})).await;
    assert_eq!(
        rig.stream(S, None).await.replay().await,
        (1..=51).collect::<Vec<_>>()
    );
    let mut after = 1;
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
    rig.append(8, json!({})).await;
    rig.host.trim(&SessionId::new(S).unwrap(), 5).await.unwrap();
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
    let answer = rig.get(&format!("/v1/sessions/{S}/events/stream?after=2")).await;
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
async fn a_reader_that_falls_behind_gets_each_event_once() {
    let rig = Rig::new(Limits::default()).await;
    let mut stream = rig.stream(S, None).await;
    stream.replay().await;
    // More than any channel or socket holds, and it is read only afterwards.
    for _ in 0..20 {
        rig.append(100, json!({"large": "x".repeat(10_000)})).await;
    }
    let mut seen = Vec::new();
    while seen.last() != Some(&2001) {
        seen.extend(stream.next().await.expect("the stream goes on").id);
    }
    assert_eq!(seen, (2..=2001).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_stream_of_all_sessions_tells_each_one_and_each_change() {
    let rig = Rig::new(Limits::default()).await;
    let created = rig
        .json("POST", "/v1/sessions", &json!({"cwd": rig.dir.path()}))
        .await;
    let second = created.body["id"].as_str().unwrap().to_owned();
    let mut stream = rig.open("/v1/stream", None).await;
    let mut told = Vec::new();
    loop {
        let got = stream.next().await.unwrap();
        if got.name == "synced" {
            break;
        }
        assert_eq!((got.name.as_str(), got.id), ("session", None));
        told.push(got.data["session_id"].as_str().unwrap().to_owned());
    }
    told.sort();
    let mut expected = [S.to_owned(), second.clone()];
    expected.sort();
    assert_eq!(told, expected);
    rig.post(S, &[prompt("a", "%say hi")]).await;
    let mut states = Vec::new();
    while !(states.contains(&json!("running")) && states.last() == Some(&json!("idle"))) {
        let got = stream.next().await.unwrap();
        if got.data["session_id"] == second.as_str() {
            // What its creation changed may be told after the list, too.
            assert!(states.is_empty() && got.data["state"] == "idle");
            continue;
        }
        assert_eq!(got.data["session_id"], S);
        states.push(got.data["state"].clone());
    }
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams() {
    let rig = Rig::new(Limits::default()).await;
    let mut stream = rig.stream(S, None).await;
    stream.replay().await;
    assert!(rig.tokens.revoke(rig.record.id).await.unwrap());
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
    let at = soon.duration_since(UNIX_EPOCH).unwrap().as_millis();
    let at = Some(u64::try_from(at).unwrap());
    let (token, _) = rig.tokens.issue("brief", [Scope::Read], at).await.unwrap();
    rig.token = token.reveal().to_owned();
    let mut stream = rig.stream(S, None).await;
    assert!(stream.head().await.contains("200 OK") || SystemTime::now() >= soon);
    stream.rest().await;
    assert!(SystemTime::now() + Duration::from_millis(2) >= soon);
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
    rig.append(64, json!({"large": large})).await;
    // More waits for it than the sockets hold.
    let mut stream = rig.stream(S, None).await;
    assert!(stream.head().await.contains("200 OK"));
    rig.stop.send(()).unwrap();
    let served = tokio::time::timeout(Duration::from_secs(30), rig.served).await;
    served.expect("the front ends").unwrap().unwrap();
}

#[tokio::test]
async fn a_request_that_waits_for_a_place_cannot_hold_the_front_open() {
    let dir = tempfile::tempdir().unwrap();
    let host = host_with(dir.path(), |policy| policy.max_processes = 1).await;
    let rig = Rig::over(dir, host, |front| front).await;
    let asks = "%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}";
    rig.post(S, &[prompt("a", asks)]).await;
    rig.until(0, |event| event["payload"]["type"] == "approval_opened")
        .await;
    let made = rig
        .json("POST", "/v1/sessions", &json!({"cwd": rig.dir.path()}))
        .await;
    let second = made.body["id"].as_str().unwrap();
    let mut events = rig.stream(second, None).await;
    let mut waits = TcpStream::connect(rig.address).await.unwrap();
    let body = json!({"event_id": uuid("a"), "dry_run": true}).to_string();
    let request = format!(
        "POST /v1/sessions/{second}/rewind HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        rig.token,
        body.len()
    );
    waits.write_all(request.as_bytes()).await.unwrap();
    while events.next().await.unwrap().data["payload"]["state"] != "starting" {}
    tokio::time::pause();
    rig.stop.send(()).unwrap();
    let served = tokio::time::timeout(Duration::from_secs(600), rig.served).await;
    served.expect("the front ends").unwrap().unwrap();
}

#[tokio::test]
async fn a_page_has_the_types_that_are_wanted_and_its_cursor_goes_on_without_them() {
    let mut limits = Limits::default();
    limits.page = 4;
    let rig = Rig::new(limits).await;
    // 30 of one type, one of another, and 100 more: more than is read for one answer.
    rig.append(30, json!({})).await;
    rig.append_as(1, "rare", json!({})).await;
    rig.append(100, json!({})).await;
    let head = rig.head().await;
    let path = |after: u64, rest: &str| format!("/v1/sessions/{S}/events?after={after}{rest}");
    let (mut cursor, mut found, mut pages) = (0, Vec::new(), 0);
    while cursor < head {
        let page = rig.get(&path(cursor, "&types=rare,none")).await;
        assert_eq!(page.status, 200, "{page:?}");
        assert_eq!(page.body["head_seq"], head);
        let next = page.body["cursor"].as_u64().unwrap();
        assert!(next > cursor, "{page:?}");
        for event in page.body["events"].as_array().unwrap() {
            found.push(event["sequence_num"].as_u64().unwrap());
        }
        (cursor, pages) = (next, pages + 1);
    }
    assert_eq!(cursor, head);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        pages > 1 && pages < 10,
        "an answer reads several pages, and not all: {pages}"
    );
    // No event is lost at the limit of a page.
    let (mut cursor, mut found) = (0, Vec::new());
    while cursor < head {
        let page = rig.get(&path(cursor, "&types=x&limit=3")).await.body;
        let events = page["events"].as_array().unwrap();
        assert!(events.len() <= 3);
        found.extend(events.iter().map(|event| event["sequence_num"].as_u64().unwrap()));
        cursor = page["cursor"].as_u64().unwrap();
    }
    assert_eq!(found.len(), 130);
    assert!(found.is_sorted_by(|a, b| a < b));
    // At the end there is nothing more, whatever is wanted.
    for rest in ["", "&types=x"] {
        let page = rig.get(&path(head, rest)).await.body;
        assert_eq!((&page["events"], &page["cursor"]), (&json!([]), &json!(head)));
    }
    let many = format!("&types={}x", "x,".repeat(32));
    for rest in ["&types=", "&types=x,", "&types=,", &many] {
        assert_eq!(
            rig.get(&path(0, rest)).await.problem(),
            "invalid-request",
            "{rest}"
        );
    }
    assert_eq!(
        rig.get(&path(head + 1, "&types=x")).await.problem(),
        "cursor-ahead"
    );
}

#[tokio::test]
async fn a_stream_ends_when_its_session_is_deleted() {
    let rig = Rig::new(Limits::default()).await;
    let mut stream = rig.stream(S, None).await;
    stream.replay().await;
    let path = format!("/v1/sessions/{S}");
    assert_eq!(rig.json("DELETE", &path, &json!({})).await.status, 204);
    stream.rest().await;
    assert_eq!(rig.get(&path).await.problem(), "unknown-session");
}
