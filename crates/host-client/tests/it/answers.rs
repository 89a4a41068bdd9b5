//! Answers that are lost, and requests that are sent again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_host_client::{
    ApprovalState, Effect, Error, HostClient, NewSession, NewToken, Prompt, StreamItem, Token,
};
use serde_json::{Value, json};

use crate::rig::{Connection, PATIENCE, Request, Server, problem, soon, synced};

type Seen = Arc<Mutex<Vec<Request>>>;

/// A host that does what each request asks for, and loses the first answers: the connection ends instead.
async fn losing(lost: usize, answer: fn(&Request, usize) -> (&'static str, String)) -> (Server, Seen) {
    let seen = Seen::default();
    let requests = Arc::clone(&seen);
    let server = Server::start(move |_, mut connection: Connection| {
        let seen = Arc::clone(&requests);
        async move {
            while let Some(request) = connection.request().await {
                let number = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request);
                    seen.len()
                };
                if number <= lost {
                    return;
                }
                let (status, body) = answer(seen.lock().unwrap().last().unwrap(), number);
                connection.answer(status, &body).await;
            }
        }
    })
    .await;
    (server, seen)
}

/// A proxy that gives this answer to the first request, and then reaches a host.
async fn proxied(status: &'static str) -> (Server, Seen) {
    let seen = Seen::default();
    let requests = Arc::clone(&seen);
    let server = Server::start(move |_, mut connection: Connection| {
        let seen = Arc::clone(&requests);
        async move {
            while let Some(request) = connection.request().await {
                seen.lock().unwrap().push(request);
                let is_first = seen.lock().unwrap().len() == 1;
                let session = json!({"id": "s", "state": "idle", "cwd": "/x"}).to_string();
                match is_first {
                    true => connection.answer(status, "<html>").await,
                    false => connection.answer("200 OK", &session).await,
                }
            }
        }
    })
    .await;
    (server, seen)
}

fn accepted(effect: &str) -> String {
    json!({"events": [{"event_id": "e", "sequence_num": 4, "effect": effect}]}).to_string()
}

fn approval(decision: Value) -> Value {
    json!({
        "id": "a", "session_id": "s", "kind": "tool", "state": "allowed", "request": {},
        "decided_by": "ada", "decided_at": 5, "decision": decision,
    })
}

#[tokio::test]
async fn a_prompt_whose_answer_is_lost_is_sent_again_as_it_was() {
    let (server, seen) = losing(2, |_, _| ("202 Accepted", accepted("repeated"))).await;
    let prompt = Prompt::text("Run the \"tests\".");
    let sent = soon(server.client().send_prompt("s/../t", &prompt))
        .await
        .unwrap();
    assert_eq!((sent.effect, sent.sequence_num), (Effect::Repeated, 4));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    for request in &*seen {
        assert_eq!(request.line, "POST /v1/sessions/s%2F..%2Ft/events");
        assert_eq!(request.body, seen[0].body);
        assert!(request.head.contains("authorization: bearer the-token"));
    }
    let body: Value = serde_json::from_str(&seen[0].body).unwrap();
    assert_eq!(body["events"][0]["payload"]["uuid"], prompt.uuid().to_string());
}

#[tokio::test]
async fn a_creation_is_sent_again_with_its_key() {
    let (server, seen) = losing(1, |_, _| {
        (
            "201 Created",
            json!({"id": "s", "state": "idle", "cwd": "/x"}).to_string(),
        )
    })
    .await;
    let client = server.client();
    let session = soon(client.create_session(&NewSession::new("/x"))).await.unwrap();
    assert_eq!(session.id, "s");
    soon(client.create_session(&NewSession::new("/x"))).await.unwrap();
    let mut named = NewSession::new("/x");
    named.id = Some("an-id".to_owned());
    soon(client.create_session(&named)).await.unwrap();
    let mut seen = seen.lock().unwrap();
    // Its id is what tells a repetition.
    let by_id = seen.pop().unwrap();
    assert!(by_id.body.contains("an-id") && !by_id.head.contains("idempotency-key"));
    let keys: Vec<_> = seen
        .iter()
        .map(|request| {
            let key = request
                .head
                .lines()
                .find(|line| line.starts_with("idempotency-key: "));
            key.expect("a key").to_owned()
        })
        .collect();
    assert_eq!(keys.len(), 3);
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[1], keys[2], "another creation is another one");
}

#[tokio::test]
async fn a_decision_whose_answer_is_lost_counts_as_ours_if_it_is_what_was_decided() {
    let too_late = |_: &Request, _| {
        let mut document: Value = serde_json::from_str(&problem("too-late", 409)).unwrap();
        document["approval"] = approval(json!({"behavior": "allow"}));
        ("409 Conflict", document.to_string())
    };
    let allow = json!({"behavior": "allow"}).into();
    let deny = json!({"behavior": "deny", "message": "no"}).into();

    let (server, seen) = losing(1, too_late).await;
    let decided = soon(server.client().decide("a", &allow)).await.unwrap();
    assert_eq!(decided.state, ApprovalState::Allowed);
    assert_eq!(seen.lock().unwrap().len(), 2);

    // Somebody else decided otherwise before the repetition.
    let (server, _) = losing(1, too_late).await;
    let error = soon(server.client().decide("a", &deny)).await.unwrap_err();
    let before = error.decided_before().unwrap();
    assert_eq!(before.decided_by.as_deref(), Some("ada"));

    // Without a lost answer, the same decision of somebody else is somebody else's.
    let (server, seen) = losing(0, too_late).await;
    let error = soon(server.client().decide("a", &allow)).await.unwrap_err();
    assert!(error.problem().unwrap().is("too-late"));
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_removal_whose_answer_is_lost_finds_nothing_left() {
    let gone = |_: &Request, _| ("404 Not Found", problem("unknown-session", 404));
    let (server, seen) = losing(1, gone).await;
    soon(server.client().delete_session("s")).await.unwrap();
    assert_eq!(seen.lock().unwrap().len(), 2);
    // What was never there is an error.
    let (server, _) = losing(0, gone).await;
    let error = soon(server.client().delete_session("s")).await.unwrap_err();
    assert_eq!(error.problem().unwrap().status, 404);
}

#[tokio::test]
async fn what_could_happen_twice_is_not_sent_again() {
    let session = |_: &Request, _| {
        (
            "200 OK",
            json!({"id": "s", "state": "idle", "cwd": "/x"}).to_string(),
        )
    };
    let (server, seen) = losing(usize::MAX, session).await;
    let client = server.client();
    let error = soon(client.interrupt("s")).await.unwrap_err();
    assert!(error.may_be_done(), "{error}");
    let error = soon(client.issue_token(&NewToken::new("x", ["read"])))
        .await
        .unwrap_err();
    assert!(error.may_be_done(), "{error}");
    let lines: Vec<_> = seen
        .lock()
        .unwrap()
        .iter()
        .map(|request| request.line.clone())
        .collect();
    assert_eq!(lines, ["POST /v1/sessions/s/interrupt", "POST /v1/tokens"]);

    // A proxy that lost the host does not know either.
    for status in [
        "408 Request Timeout",
        "500 Internal Server Error",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
        "520 Unknown",
        "524 A Timeout Occurred",
    ] {
        let (server, seen) = proxied(status).await;
        let error = soon(server.client().interrupt("s")).await.unwrap_err();
        assert!(error.may_be_done(), "{error}");
        assert_eq!(seen.lock().unwrap().len(), 1, "{status}");
    }

    // What the host did not do, it may be asked again for.
    let busy = |_: &Request, number| match number {
        1 => ("503 Service Unavailable", problem("unavailable", 503)),
        _ => (
            "200 OK",
            json!({"id": "s", "state": "idle", "cwd": "/x"}).to_string(),
        ),
    };
    let (server, seen) = losing(0, busy).await;
    soon(server.client().interrupt("s")).await.unwrap();
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_host_that_wants_to_be_left_alone_for_longer_than_the_patience_is_an_error_at_once() {
    let server = Server::start(|_, mut connection| async move {
        connection.request().await;
        let body = problem("unavailable", 503);
        connection
            .answer_with("503 Service Unavailable", "retry-after: 50\r\n", &body)
            .await;
    })
    .await;
    let client = server
        .builder()
        .patience(Duration::from_secs(20))
        .build()
        .unwrap();
    let error = soon(client.session("s")).await.unwrap_err();
    assert_eq!(
        error.problem().unwrap().retry_after,
        Some(Duration::from_secs(50))
    );
}

#[tokio::test]
async fn a_time_without_an_end_is_none() {
    let server = Server::start(|number, mut connection: Connection| async move {
        while let Some(request) = connection.request().await {
            if request.line.contains("/stream") {
                connection.begin_stream().await;
                connection.write(synced(u64::MAX)).await;
                connection
                    .write("event: catch_up_truncated\ndata: {\"first_sequence_num\": 7}\n\n")
                    .await;
                connection.write(synced(0)).await;
                return;
            }
            if number == 0 {
                return;
            }
            let session = json!({"id": "s", "state": "idle", "cwd": "/x"}).to_string();
            connection.answer("200 OK", &session).await;
        }
    })
    .await;
    let client = server
        .builder()
        .deadline(Duration::MAX)
        .patience(Duration::MAX)
        .silence(Duration::MAX);
    let client = client.build().unwrap();
    assert_eq!(soon(client.session("s")).await.unwrap().id, "s");
    // Behind the last of all events nothing is left out.
    let mut stream = client.stream("s", u64::MAX).unwrap();
    for expected in [u64::MAX, 0] {
        let item = soon(stream.next()).await.unwrap();
        assert!(
            matches!(item, StreamItem::Synced { seq } if seq == expected),
            "{item:?}"
        );
    }
}

#[tokio::test]
async fn a_host_that_was_never_reached_is_an_error_at_once() {
    // A port at which nobody listens.
    let client = HostClient::builder("http://127.0.0.1:1")
        .patience(PATIENCE * 100)
        .build()
        .unwrap();
    let error = soon(client.sessions(None, None)).await.unwrap_err();
    assert!(
        matches!(error, Error::Unreachable { .. }) && !error.may_be_done(),
        "{error}"
    );
    let mut stream = client.stream("s", 0).unwrap();
    assert!(matches!(
        soon(stream.next()).await,
        Err(Error::Unreachable { .. })
    ));
}

#[tokio::test]
async fn what_needs_no_token_is_asked_without_one() {
    let answer = |request: &Request, _| match request.line.as_str() {
        "GET /healthz" => ("204 No Content", String::new()),
        _ => (
            "201 Created",
            json!({"id": "1", "token": "t0", "scopes": ["read"]}).to_string(),
        ),
    };
    let (server, seen) = losing(0, answer).await;
    let client = server.client();
    soon(client.health()).await.unwrap();
    let issued = soon(client.exchange_code("once")).await.unwrap();
    Token::new(&issued.token).unwrap();
    for request in &*seen.lock().unwrap() {
        assert!(!request.head.contains("authorization"), "{}", request.head);
    }
}

#[tokio::test]
async fn pages_are_read_to_their_end_and_no_further() {
    let answer = |request: &Request, _| {
        let session = |id: &str| json!({"id": id, "state": "idle", "cwd": "/x"});
        let page = match request.line.as_str() {
            "GET /v1/sessions" => json!({"sessions": [session("a")], "next": "a"}),
            "GET /v1/sessions?after=a" => json!({"sessions": [session("b")], "next": "b"}),
            // It names a page again that was read.
            _ => json!({"sessions": [session("c")], "next": "a"}),
        };
        ("200 OK", page.to_string())
    };
    let (server, _) = losing(0, answer).await;
    let all = soon(server.client().all_sessions()).await.unwrap();
    let ids: Vec<_> = all.iter().map(|session| session.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
}
