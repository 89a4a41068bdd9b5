//! Servers that mean harm, or are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger_host_client::{Error, StreamItem};

use crate::rig::{Server, durable, soon};

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_token_goes_nowhere_else() {
    let visits = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&visits);
    let elsewhere = Server::start(move |_, mut connection| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            connection.request().await;
        }
    })
    .await;
    let place = elsewhere.url.clone();
    let server = Server::start(move |_, mut connection| {
        let headers = format!("location: {place}/v1/sessions\r\n");
        async move {
            while connection.request().await.is_some() {
                connection
                    .answer_with("307 Temporary Redirect", &headers, "")
                    .await;
            }
        }
    })
    .await;
    let client = server.client();
    let error = soon(client.sessions(None, None)).await.unwrap_err();
    assert!(matches!(&error, Error::Unexpected(_)), "{error}");
    assert!(error.to_string().contains(&elsewhere.url), "{error}");
    let mut stream = client.stream("s", 0).unwrap();
    assert!(matches!(soon(stream.next()).await, Err(Error::Unexpected(_))));
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_endless_head_is_cut_off() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let server = Server::start(move |_, mut connection| {
        let count = Arc::clone(&count);
        async move {
            connection.request().await;
            let mut open = connection.write("HTTP/1.1 200 OK\r\n").await;
            while open {
                open = connection.write(format!("x: {}\r\n", "y".repeat(1000))).await;
                count.fetch_add(1000, Ordering::SeqCst);
            }
        }
    })
    .await;
    let client = server.builder().patience(Duration::ZERO).build().unwrap();
    let error = soon(client.session("s")).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    // What the sockets hold, and what the client took.
    assert!(written.load(Ordering::SeqCst) < 16 << 20);
}

#[tokio::test]
async fn a_head_that_never_ends_runs_into_the_deadline() {
    let server = Server::start(|_, mut connection| async move {
        connection.request().await;
        connection.write("HTTP/1.1 200 OK\r\ncontent-").await;
        connection.request().await;
    })
    .await;
    let builder = server.builder().deadline(Duration::from_millis(50));
    let client = builder.patience(Duration::ZERO).build().unwrap();
    let error = soon(client.session("s")).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error}");
    let mut stream = client.stream("s", 0).unwrap();
    assert!(matches!(
        soon(stream.next()).await.unwrap(),
        StreamItem::Disconnected {
            error: Error::TimedOut(_),
            ..
        }
    ));
}

#[tokio::test]
async fn an_answer_and_an_event_that_are_too_large_are_errors() {
    let server = Server::start(|_, mut connection| async move {
        let Some(request) = connection.request().await else {
            return;
        };
        if request.line.contains("/stream") {
            connection.begin_stream().await;
            connection.write(durable(1)).await;
            connection.write("data: ").await;
        } else {
            connection
                .write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n\"")
                .await;
        }
        while connection.write("x".repeat(64 * 1024)).await {}
    })
    .await;
    let client = server.builder().limits(1 << 20, 1 << 20).build().unwrap();
    let error = soon(client.session("s")).await.unwrap_err();
    assert!(
        matches!(error, Error::TooLarge(limit) if limit == 1 << 20),
        "{error}"
    );
    let mut stream = client.stream("s", 0).unwrap();
    assert!(matches!(soon(stream.next()).await.unwrap(), StreamItem::Event(_)));
    assert!(matches!(soon(stream.next()).await, Err(Error::TooLarge(_))));
    assert!(matches!(soon(stream.next()).await, Err(Error::Ended)));
}

#[tokio::test]
async fn what_is_no_host_is_told() {
    let server = Server::start(|_, mut connection| async move {
        while let Some(request) = connection.request().await {
            if request.line.contains("/v1/sessions?") {
                // JSON, but another document.
                connection.answer("200 OK", r#"{"items":[]}"#).await;
            } else if request.line.contains("/events/stream") {
                connection.answer("200 OK", "{}").await;
            } else {
                connection
                    .answer_with("404 Not Found", "x: y\r\n", "<html>no</html>")
                    .await;
            }
        }
    })
    .await;
    let client = server.client();
    let error = soon(client.sessions(Some("a"), None)).await.unwrap_err();
    assert!(error.to_string().contains("missing field `sessions`"), "{error}");
    let mut stream = client.stream("s", 0).unwrap();
    let error = soon(stream.next()).await.unwrap_err();
    assert!(error.to_string().contains("no stream of events"), "{error}");
    let error = soon(client.session("s")).await.unwrap_err();
    assert_eq!(error.to_string(), "the host refuses: without a reason (404)");
}

#[tokio::test]
async fn an_event_that_cannot_be_read_ends_the_stream() {
    for event in [
        "event: client_event\ndata: {\"event_id\":\"e\"}\n\n",
        "event: client_event\ndata: not JSON\n\n",
        "event: synced\ndata: {}\n\n",
    ] {
        let server = Server::start(move |_, mut connection| async move {
            connection.request().await;
            connection.begin_stream().await;
            connection.write(event).await;
        })
        .await;
        let mut stream = server.client().stream("s", 0).unwrap();
        let error = soon(stream.next()).await.unwrap_err();
        assert!(matches!(error, Error::Unexpected(_)), "{error}");
        assert!(matches!(soon(stream.next()).await, Err(Error::Ended)));
    }
}
