//! Requests without a valid token.

use outrigger_host::SessionHost;
use outrigger_host_http::{Front, Limits, Scope};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::rig::{Rig, S, host};

fn few() -> Limits {
    let mut limits = Limits::default();
    limits.stranger_burst = 5;
    limits.strangers_per_second = 1;
    limits
}

const OPEN: &str = "GET /openapi.json HTTP/1.1\r\nHost: localhost";

/// The first answer that is another one than before. A slow machine earns further ones meanwhile.
async fn until_limited(rig: &Rig, head: &str) {
    let first = rig.raw(head, "").await.status;
    assert_ne!(first, 429, "{head}");
    for _ in 0..1000 {
        let answer = rig.raw(head, "").await;
        if answer.status != first {
            assert_eq!(
                (answer.status, answer.problem()),
                (429, "too-many-requests"),
                "{head}"
            );
            assert!(answer.head.contains("retry-after: 1"), "{answer:?}");
            return;
        }
    }
    panic!("{head}: nobody is told to wait");
}

#[tokio::test]
async fn who_has_no_token_is_told_to_wait_and_locks_nobody_out_who_has_one() {
    for head in [
        OPEN.to_owned(),
        "GET /welcome HTTP/1.1\r\nHost: localhost".to_owned(),
        "GET /readyz HTTP/1.1\r\nHost: localhost".to_owned(),
        "GET /no/such/route HTTP/1.1\r\nHost: localhost".to_owned(),
        "GET /healthz HTTP/1.1\r\nHost: evil.example".to_owned(),
        "POST /v1/tokens/exchange HTTP/1.1\r\nHost: localhost".to_owned(),
        format!("GET /v1/sessions/{S} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong"),
    ] {
        let rig = Rig::new(few()).await;
        // Whether the host is alive can be asked as often as wanted, under its own name.
        if !head.contains("evil") {
            until_limited(&rig, &head).await;
        }
        for _ in 0..20 {
            let alive = rig.raw("GET /healthz HTTP/1.1\r\nHost: localhost", "").await;
            assert_eq!(alive.status, 204);
        }
        // From the same address.
        assert_eq!(rig.get(&format!("/v1/sessions/{S}")).await.status, 200);
        assert_eq!(rig.get("/openapi.json").await.status, 200);
        let asks = format!(
            "OPTIONS /v1/sessions/{S} HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example.com"
        );
        assert_eq!(rig.raw(&asks, "").await.status, 204);
    }
}

#[tokio::test]
async fn a_token_that_is_no_longer_valid_counts_as_none() {
    let mut rig = Rig::new(few()).await;
    let (revoked, record) = rig.tokens.issue("left", Scope::ALL, None).await.unwrap();
    rig.tokens.revoke(record.id).await.unwrap();
    let (expired, _) = rig.tokens.issue("old", Scope::ALL, Some(1)).await.unwrap();
    for token in [revoked, expired] {
        let head = format!(
            "GET /v1/sessions/{S} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}",
            token.reveal()
        );
        let answer = rig.raw(&head, "").await;
        if answer.status != 429 {
            assert_eq!((answer.status, answer.problem()), (401, "unauthorized"));
        }
        rig.token = token.reveal().to_owned();
        for (method, path) in [
            ("POST", "interrupt"),
            ("POST", "events"),
            ("DELETE", "workspace"),
            ("POST", "fork"),
        ] {
            let answer = rig
                .json(method, &format!("/v1/sessions/{S}/{path}"), &json!({}))
                .await;
            assert!([401, 429].contains(&answer.status), "{answer:?}");
        }
    }
}

/// A front behind a proxy; the proxy is the test.
async fn proxied() -> (Rig, SessionHost) {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path()).await;
    let settings = |front: Front| front.limits(few()).behind_proxy(["host.example.com"]);
    (Rig::over(dir, host.clone(), settings).await, host)
}

#[tokio::test]
async fn behind_a_proxy_the_address_counts_that_the_proxy_has_seen() {
    let (rig, _host) = proxied().await;
    let from = |addresses: &str| format!("{OPEN}\r\nX-Forwarded-For: {addresses}");
    until_limited(&rig, &from("192.0.2.1")).await;
    // Whatever the client says of itself before.
    for says in ["198.51.100.1, 192.0.2.1", "192.0.2.9,192.0.2.1"] {
        let mut refused = 0;
        for _ in 0..10 {
            refused += u32::from(rig.raw(&from(says), "").await.status == 429);
        }
        assert!(refused > 0, "{says}");
    }
    assert_eq!(rig.raw(&from("192.0.2.2"), "").await.status, 200);
    assert_eq!(rig.raw(&from("192.0.2.1, 192.0.2.3"), "").await.status, 200);
    let head = format!(
        "GET /v1/sessions/{S} HTTP/1.1\r\nHost: host.example.com\r\nAuthorization: Bearer {}\r\nX-Forwarded-For: 192.0.2.1",
        rig.token
    );
    assert_eq!(rig.raw(&head, "").await.status, 200);
}

#[tokio::test]
async fn without_a_proxy_no_header_makes_another_client_of_a_client() {
    let rig = Rig::new(few()).await;
    let mut refused = 0;
    for n in 0..30 {
        let head = format!("{OPEN}\r\nX-Forwarded-For: 192.0.2.{n}");
        refused += u32::from(rig.raw(&head, "").await.status == 429);
    }
    assert!(refused > 0);
}

#[tokio::test]
async fn an_address_has_no_more_connections_than_the_limits_allow() {
    let mut limits = Limits::default();
    limits.connections_per_address = 2;
    let rig = Rig::new(limits).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = rig.stream(S, None).await;
        stream.replay().await;
        open.push(stream);
    }
    let mut third = TcpStream::connect(rig.address).await.unwrap();
    // It is closed at once, and not answered.
    let closed = third.read(&mut [0; 1]).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    rig.append(1, json!({})).await;
    for stream in &mut open {
        assert_eq!(stream.next().await.unwrap().name, "client_event");
    }
}
