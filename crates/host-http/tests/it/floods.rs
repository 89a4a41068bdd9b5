//! Too much of everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger_host_http::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::rig::{Rig, S};

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let rig = Rig::new(Limits::default()).await;
    for filler in [
        format!("X-Large: {}", "x".repeat(128 << 10)),
        "X-Many: x\r\n".repeat(1000).trim_end().to_owned(),
    ] {
        let head = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{filler}");
        assert_eq!(rig.raw(&head, "").await.status, 431);
    }
    let long = format!("/v1/sessions/{}", "x".repeat(100_000));
    let status = rig.get(&long).await.status;
    assert!(status == 431 || status == 414, "{status}");
    assert_eq!(rig.get("/healthz").await.status, 204);
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_not_waited_for() {
    let mut limits = Limits::default();
    limits.head_patience = Duration::from_millis(100);
    limits.connections = 4;
    let rig = Rig::new(limits).await;
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        slow.push(tokio::spawn(async move {
            let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
            let endless = head.bytes().chain(std::iter::repeat(b'x'));
            for byte in endless {
                if stream.write_all(&[byte]).await.is_err() {
                    return;
                }
                // Never silent for as long as the patience.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }));
    }
    // All places are taken by them, and become free.
    assert_eq!(rig.get("/healthz").await.status, 204);
    for stream in slow {
        stream.await.unwrap();
    }
}

#[tokio::test]
async fn of_ten_thousand_streams_as_many_are_open_as_the_limits_allow() {
    let mut limits = Limits::default();
    limits.streams = 20;
    limits.streams_per_token = 15;
    limits.burst = 100_000;
    let rig = Arc::new(Rig::new(limits).await);
    let mut open = Vec::new();
    for _ in 0..15 {
        let mut stream = rig.stream(S, None).await;
        stream.replay().await;
        open.push(stream);
    }
    let refused = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for _ in 0..20 {
        let (rig, refused) = (Arc::clone(&rig), Arc::clone(&refused));
        clients.push(tokio::spawn(async move {
            // One connection for all of them, as a client that begs would have.
            let mut stream = TcpStream::connect(rig.address).await.unwrap();
            let request = format!(
                "GET /v1/sessions/{S}/events/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
                rig.token
            );
            for _ in 0..500 {
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = Vec::new();
                while !answer.ends_with(b"}") {
                    assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
                }
                let answer = String::from_utf8(answer).unwrap();
                assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
                assert!(answer.contains("too-many-streams"), "{answer}");
                refused.fetch_add(1, Ordering::SeqCst);
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(refused.load(Ordering::SeqCst), 10_000);
    // The open ones have not suffered.
    rig.append(1, serde_json::json!({})).await;
    for stream in &mut open {
        assert_eq!(stream.next().await.unwrap().name, "client_event");
    }
}

#[tokio::test]
async fn a_token_that_asks_too_fast_is_told_to_wait() {
    let mut limits = Limits::default();
    limits.burst = 5;
    limits.requests_per_second = 1;
    let mut rig = Rig::new(limits).await;
    let path = format!("/v1/sessions/{S}");
    for _ in 0..5 {
        assert_eq!(rig.get(&path).await.status, 200);
    }
    // A slow machine earns further ones meanwhile.
    let mut answer = rig.get(&path).await;
    for _ in 0..1000 {
        if answer.status != 200 {
            break;
        }
        answer = rig.get(&path).await;
    }
    assert_eq!((answer.status, answer.problem()), (429, "too-many-requests"));
    assert!(answer.head.contains("retry-after: 1"), "{answer:?}");
    // Another token is not concerned, and neither is what needs none.
    assert_eq!(rig.get("/healthz").await.status, 204);
    let (other, _) = rig
        .tokens
        .issue("other", outrigger_host_http::Scope::ALL, None)
        .await
        .unwrap();
    rig.token = other.reveal().to_owned();
    assert_eq!(rig.get(&path).await.status, 200);
}

#[tokio::test]
async fn no_route_lets_a_token_ask_as_fast_as_it_likes() {
    for (method, path) in [
        ("GET", "/openapi.json"),
        ("GET", "/readyz"),
        ("GET", "/welcome"),
        ("POST", "/v1/tokens/exchange"),
        ("DELETE", "/v1/sessions"),
        ("GET", "/no/such/route"),
    ] {
        let mut limits = Limits::default();
        limits.burst = 5;
        limits.requests_per_second = 1;
        let rig = Rig::new(limits).await;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example.com\r\nAuthorization: Bearer {}",
            rig.token
        );
        let mut answer = rig.raw(&head, "").await;
        assert_ne!(answer.status, 429, "{method} {path}");
        for _ in 0..1000 {
            if answer.status == 429 {
                break;
            }
            answer = rig.raw(&head, "").await;
        }
        assert_eq!(answer.status, 429, "{method} {path}");
        assert_eq!(answer.problem(), "too-many-requests");
        // A page can read how long it has to wait.
        assert!(
            answer
                .head
                .contains("access-control-allow-origin: https://app.example.com\r\n"),
            "{answer:?}"
        );
        assert!(answer.head.contains("retry-after: 1"), "{answer:?}");
    }
}
