//! What must not work.

use std::time::Duration;

use outrigger_host_http::{Front, Limits, Scope, ServeError, Tokens};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::rig::{Rig, S, decision, host, prompt, uuid};

#[tokio::test]
async fn foreign_host_names_are_not_served() {
    let rig = Rig::new(Limits::default()).await;
    let token = &rig.token;
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "localhost@evil.example",
        "",
    ] {
        let head =
            format!("GET /v1/sessions/{S}/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}");
        let answer = rig.raw(&head, "").await;
        assert!(answer.status == 421 || answer.status == 400, "{host}: {answer:?}");
    }
    let twice = format!(
        "GET /v1/sessions/{S}/events HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nAuthorization: Bearer {token}"
    );
    assert_ne!(rig.raw(&twice, "").await.status, 200);
    assert_eq!(
        rig.raw("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:7070", "")
            .await
            .status,
        204
    );
}

#[tokio::test]
async fn foreign_origins_are_rejected_and_allowed_ones_get_the_headers() {
    let rig = Rig::new(Limits::default()).await;
    let token = &rig.token;
    let with = |origin: &str| {
        format!(
            "GET /v1/sessions/{S}/events HTTP/1.1\r\nHost: localhost:7070\r\nOrigin: {origin}\r\nAuthorization: Bearer {token}"
        )
    };
    for origin in [
        "https://evil.example",
        "null",
        "https://app.example.com.evil.example",
        "http://app.example.com",
        "localhost:7070",
    ] {
        let answer = rig.raw(&with(origin), "").await;
        assert_eq!(
            (answer.status, answer.problem()),
            (403, "foreign-origin"),
            "{origin}"
        );
        assert!(!answer.head.contains("access-control-allow-origin"));
    }
    for origin in ["https://app.example.com", "http://localhost:7070"] {
        let answer = rig.raw(&with(origin), "").await;
        assert_eq!(answer.status, 200);
        assert!(
            answer
                .head
                .contains(&format!("access-control-allow-origin: {origin}\r\n")),
            "{}",
            answer.head
        );
    }
    let asks = format!(
        "OPTIONS /v1/sessions/{S}/events HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example.com"
    );
    let answer = rig.raw(&asks, "").await;
    assert_eq!(answer.status, 204);
    assert!(
        answer
            .head
            .contains("access-control-allow-headers: authorization")
    );
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_told() {
    let rig = Rig::new(Limits::default()).await;
    let token = rig.token.clone();
    let lines = [
        String::new(),
        "\r\nAuthorization: Bearer".to_owned(),
        "\r\nAuthorization: Bearer outrigger_0".to_owned(),
        format!("\r\nAuthorization: Basic {token}"),
        format!("\r\nAuthorization: Bearer {token}x"),
        format!("\r\nAuthorization: Bearer {token}\r\nAuthorization: Bearer {token}"),
    ];
    for line in &lines {
        for (method, path) in [("GET", "events"), ("GET", "events/stream"), ("POST", "events")] {
            for session in [S, "unknown"] {
                let head =
                    format!("{method} /v1/sessions/{session}/{path} HTTP/1.1\r\nHost: localhost{line}");
                let answer = rig.raw(&head, "").await;
                assert_eq!((answer.status, answer.problem()), (401, "unauthorized"), "{head}");
                assert!(answer.head.contains("www-authenticate: bearer"));
            }
        }
    }
    // Not in the address either.
    let head = format!("GET /v1/sessions/{S}/events?token={token} HTTP/1.1\r\nHost: localhost");
    assert_eq!(rig.raw(&head, "").await.status, 401);
}

#[tokio::test]
async fn a_scope_allows_what_it_says_and_no_more() {
    let mut rig = Rig::new(Limits::default()).await;
    rig.post(
        S,
        &[prompt(
            "a",
            "%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}",
        )],
    )
    .await;
    let asked = rig
        .until(0, |event| event["payload"]["type"] == "approval_opened")
        .await;
    let request = asked["payload"]["request_id"].as_str().unwrap().to_owned();
    let approval = asked["payload"]["approval_id"].as_str().unwrap().to_owned();
    let before = rig.head().await;
    let (reader, _) = rig.tokens.issue("reader", [Scope::Read], None).await.unwrap();
    let (sender, _) = rig.tokens.issue("sender", [Scope::Send], None).await.unwrap();
    let (approver, _) = rig
        .tokens
        .issue("approver", [Scope::Approve], None)
        .await
        .unwrap();
    for (token, payload) in [
        (&reader, prompt("b", "x")),
        (&reader, decision(&request, "allow")),
        (&sender, decision(&request, "allow")),
        (&approver, prompt("b", "x")),
    ] {
        let answer = rig.post_with(token.reveal(), S, &[payload]).await;
        assert_eq!((answer.status, answer.problem()), (403, "forbidden"));
    }
    // Not hidden behind one that is allowed.
    let answer = rig
        .post_with(
            sender.reveal(),
            S,
            &[prompt("b", "x"), decision(&request, "allow")],
        )
        .await;
    assert_eq!(answer.status, 403);
    assert_eq!(rig.head().await, before);
    // Each route of the document, with each token that lacks its scope.
    let document = outrigger_host_http::openapi();
    let mut tried = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let Some(scope) = operation["security"][0]["token"][0].as_str() else {
                continue;
            };
            let path = path.replace("{id}", if path.contains("approvals") { &approval } else { S });
            for scopes in [Scope::Read, Scope::Send, Scope::Approve, Scope::Admin] {
                if scopes.as_str() == scope {
                    continue;
                }
                let (token, _) = rig.tokens.issue("other", [scopes], None).await.unwrap();
                rig.token = token.reveal().to_owned();
                let answer = rig
                    .json(
                        &method.to_uppercase(),
                        &path,
                        &serde_json::json!({"behavior": "allow"}),
                    )
                    .await;
                assert_eq!(
                    (answer.status, answer.problem()),
                    (403, "forbidden"),
                    "{method} {path}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 40, "{tried}");
    assert_eq!(rig.head().await, before);
}

#[tokio::test]
async fn paths_and_methods_that_are_none_are_problems() {
    let rig = Rig::new(Limits::default()).await;
    for (path, kind) in [
        (
            "/v1/sessions/5e551011-0000-4000-8000-000000000002/events",
            "unknown-session",
        ),
        ("/v1/approvals/1", "not-found"),
        ("/v1/sessions/..%2f..%2fetc/events", "unknown-session"),
        ("/v1/sessions/%ff/events", "invalid-request"),
        (
            "/v1/sessions/5e551011-0000-4000-8000-000000000001/events?limit=0",
            "invalid-request",
        ),
        (
            "/v1/sessions/5e551011-0000-4000-8000-000000000001/events?other=1",
            "invalid-request",
        ),
        ("/etc/passwd", "unknown-route"),
    ] {
        assert_eq!(rig.get(path).await.problem(), kind, "{path}");
    }
    let head = format!("DELETE /v1/sessions/{S}/events HTTP/1.1\r\nHost: localhost");
    assert_eq!(rig.raw(&head, "").await.problem(), "method-not-allowed");
}

#[tokio::test]
async fn bodies_that_are_too_large_slow_or_of_another_type_are_rejected() {
    let mut limits = Limits::default();
    limits.body_bytes = 1000;
    limits.body_patience = Duration::from_millis(50);
    let rig = Rig::new(limits).await;
    let answer = rig.post(S, &[prompt("a", &"x".repeat(1000))]).await;
    assert_eq!((answer.status, answer.problem()), (413, "body-too-large"));
    let post = format!(
        "POST /v1/sessions/{S}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}",
        rig.token
    );
    let before = rig.head().await;
    let body = format!(
        r#"{{"events":[{{"payload":{{"type":"user","uuid":"{}"}}}}]}}"#,
        uuid("u")
    );
    let answer = rig
        .raw(&format!("{post}\r\nContent-Type: text/plain"), &body)
        .await;
    assert_eq!((answer.status, answer.problem()), (400, "invalid-request"));

    let mut slow = TcpStream::connect(rig.address).await.unwrap();
    let head = format!("{post}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{");
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert_eq!(rig.head().await, before);
}

#[tokio::test]
async fn a_head_that_never_ends_loses_its_connection() {
    let mut limits = Limits::default();
    limits.head_patience = Duration::from_millis(50);
    limits.connections = 1;
    let rig = Rig::new(limits).await;
    let mut slow = TcpStream::connect(rig.address).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest).await;
    // Its place is free again.
    assert_eq!(
        rig.raw("GET /healthz HTTP/1.1\r\nHost: localhost", "")
            .await
            .status,
        204
    );
}

#[tokio::test]
async fn streams_are_bounded_per_token_and_in_all() {
    let mut limits = Limits::default();
    limits.streams = 3;
    limits.streams_per_token = 2;
    let mut rig = Rig::new(limits).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = rig.stream(S, None).await;
        stream.replay().await;
        open.push(stream);
    }
    let path = format!("/v1/sessions/{S}/events/stream");
    let answer = rig.get(&path).await;
    assert_eq!((answer.status, answer.problem()), (429, "too-many-streams"));
    assert!(answer.head.contains("retry-after: 5"));
    let (other, other_record) = rig.tokens.issue("other", [Scope::Read], None).await.unwrap();
    rig.token = other.reveal().to_owned();
    let mut third = rig.stream(S, None).await;
    third.replay().await;
    assert_eq!(rig.get(&path).await.problem(), "too-many-streams");
    // A stream that has ended gives its place back.
    rig.tokens.revoke(other_record.id).await.unwrap();
    third.rest().await;
    let (again, _) = rig.tokens.issue("again", [Scope::Read], None).await.unwrap();
    rig.token = again.reveal().to_owned();
    rig.stream(S, None).await.replay().await;
}

#[tokio::test]
async fn nothing_listens_beyond_loopback_without_a_proxy() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path()).await;
    let tokens = Tokens::open(host.event_log()).await.unwrap();
    let front = Front::new(host.clone(), tokens.clone());
    let error = front.serve(listener, std::future::ready(())).await.unwrap_err();
    assert!(matches!(error, ServeError::Exposed(_)), "{error}");
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let front = Front::new(host, tokens).behind_proxy(["host.example.com"]);
    front.serve(listener, std::future::ready(())).await.unwrap();
}
