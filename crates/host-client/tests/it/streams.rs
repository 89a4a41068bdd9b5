//! Streams that break.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use outrigger_host_client::{Error, OverviewItem, SessionStream, StreamItem};

use crate::rig::{STREAM, Server, durable, problem, soon, synced};

const EVENTS: u64 = 5;

/// What a host writes for a client with this cursor: a head, comments, events, and pieces in between.
fn served(after: u64, is_chunked: bool) -> Vec<u8> {
    let mut pieces = vec![": stream\n\n".to_owned()];
    for seq in after + 1..=EVENTS {
        pieces.push(durable(seq));
        pieces.push("event: ephemeral_event\ndata: {\"payload\":{\"type\":\"stream_event\"}}\n\n".to_owned());
    }
    pieces.push(synced(EVENTS));
    if !is_chunked {
        return [STREAM.to_owned(), pieces.concat()].concat().into_bytes();
    }
    let head = STREAM.replace("connection: close", "transfer-encoding: chunked");
    let chunks = pieces
        .iter()
        .map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len()));
    [head, chunks.collect(), "0\r\n\r\n".to_owned()]
        .concat()
        .into_bytes()
}

/// Reads up to `synced`, and returns the numbers of the durable events.
async fn up_to_synced(stream: &mut SessionStream) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        match soon(stream.next()).await.unwrap() {
            StreamItem::Event(event) => {
                assert_eq!(
                    event.payload.get(),
                    format!("{{\"type\":\"assistant\",\"n\":{}}}", event.sequence_num)
                );
                seen.push(event.sequence_num);
            }
            StreamItem::Synced { seq } => {
                assert_eq!((seq, stream.cursor()), (EVENTS, EVENTS));
                return seen;
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn wherever_a_stream_is_cut_each_durable_event_comes_once_and_in_order() {
    for is_chunked in [false, true] {
        let cut = Arc::new(AtomicUsize::new(0));
        let at = Arc::clone(&cut);
        let server = Server::start(move |_, mut connection| {
            // Only the first connection after the cut was set is cut.
            let cut = at.swap(usize::MAX, Ordering::SeqCst);
            async move {
                let Some(request) = connection.request().await else {
                    return;
                };
                let bytes = served(request.after(), is_chunked);
                connection.write(&bytes[..cut.min(bytes.len())]).await;
            }
        })
        .await;
        let client = server.client();
        let whole = served(0, is_chunked).len();
        // A cut within the head is a cut of the head.
        for at in (0..whole).step_by(3) {
            cut.store(at, Ordering::SeqCst);
            let mut stream = client.stream("s", 0).unwrap();
            let seen = up_to_synced(&mut stream).await;
            assert_eq!(seen, (1..=EVENTS).collect::<Vec<_>>(), "cut at {at} of {whole}");
        }
    }
}

#[tokio::test]
async fn a_stream_goes_on_although_each_of_its_connections_is_cut() {
    let server = Server::start(|number, mut connection| async move {
        let Some(request) = connection.request().await else {
            return;
        };
        let bytes = served(request.after(), false);
        // Enough for an event now and then.
        connection.write(&bytes[..bytes.len().min(number * 40)]).await;
    })
    .await;
    let client = server.client();
    let mut stream = client.stream("s", 2).unwrap();
    assert_eq!(up_to_synced(&mut stream).await, [3, 4, 5]);
}

#[tokio::test]
async fn a_reader_that_is_dropped_at_each_poll_loses_nothing() {
    let server = Server::start(|_, mut connection| async move {
        let Some(request) = connection.request().await else {
            return;
        };
        let bytes = served(request.after(), true);
        for byte in &bytes {
            connection.write([*byte]).await;
            tokio::task::yield_now().await;
        }
    })
    .await;
    let client = server.client();
    let mut stream = client.stream("s", 0).unwrap();
    let mut seen = Vec::new();
    let (mut pieces, mut drops) = (0, 0);
    soon(async {
        loop {
            // A new future for each poll.
            let polled = poll_fn(|cx| {
                let mut next = std::pin::pin!(stream.next());
                Poll::Ready(next.as_mut().poll(cx))
            });
            match polled.await {
                Poll::Pending => {
                    drops += 1;
                    tokio::task::yield_now().await;
                }
                Poll::Ready(item) => match item.unwrap() {
                    StreamItem::Event(event) => seen.push(event.sequence_num),
                    StreamItem::Ephemeral(_) => pieces += 1,
                    StreamItem::Synced { .. } => break,
                    other => panic!("{other:?}"),
                },
            }
        }
    })
    .await;
    assert_eq!((seen, pieces), (vec![1, 2, 3, 4, 5], EVENTS));
    assert!(drops > 5, "{drops}");
}

#[tokio::test]
async fn what_comes_again_is_not_emitted_again() {
    let server = Server::start(|_, mut connection| async move {
        connection.request().await;
        let text = [1, 2, 1, 2, 3].map(durable).concat() + &synced(3);
        connection.begin_stream().await;
        connection.write(text).await;
    })
    .await;
    let mut stream = server.client().stream("s", 1).unwrap();
    for expected in [2, 3] {
        let item = soon(stream.next()).await.unwrap();
        assert!(
            matches!(&item, StreamItem::Event(event) if event.sequence_num == expected),
            "{item:?}"
        );
    }
    assert!(matches!(
        soon(stream.next()).await.unwrap(),
        StreamItem::Synced { seq: 3 }
    ));
}

#[tokio::test]
async fn what_was_left_out_once_comes_with_the_next_connection() {
    let server = Server::start(|number, mut connection| async move {
        connection.request().await;
        let events: &[u64] = if number == 0 { &[1, 3] } else { &[2, 3] };
        connection.begin_stream().await;
        connection
            .write(events.iter().copied().map(durable).collect::<String>())
            .await;
    })
    .await;
    let mut stream = server.client().stream("s", 0).unwrap();
    let mut seen = Vec::new();
    let mut gaps = 0;
    while seen.len() < 3 {
        match soon(stream.next()).await.unwrap() {
            StreamItem::Event(event) => seen.push(event.sequence_num),
            StreamItem::Disconnected {
                error: Error::Gap { after: 1, found: 3 },
                ..
            } => gaps += 1,
            _ => {}
        }
    }
    assert_eq!((seen, gaps), (vec![1, 2, 3], 1));
}

#[tokio::test]
async fn what_is_left_out_for_good_ends_the_stream() {
    let server = Server::start(|_, mut connection| async move {
        connection.request().await;
        connection.begin_stream().await;
        connection.write(durable(7)).await;
    })
    .await;
    let mut stream = server.client().stream("s", 5).unwrap();
    assert!(matches!(
        soon(stream.next()).await.unwrap(),
        StreamItem::Disconnected {
            error: Error::Gap { after: 5, found: 7 },
            ..
        }
    ));
    assert!(matches!(
        soon(stream.next()).await,
        Err(Error::Gap { after: 5, found: 7 })
    ));
    assert!(matches!(soon(stream.next()).await, Err(Error::Ended)));
}

#[tokio::test]
async fn what_was_removed_is_told_and_the_stream_goes_on_behind_it() {
    let server = Server::start(|_, mut connection| async move {
        let Some(request) = connection.request().await else {
            return;
        };
        connection.begin_stream().await;
        // Each time, although the client has seen what is kept by then.
        connection
            .write("event: catch_up_truncated\ndata: {\"first_sequence_num\":10}\n\n")
            .await;
        connection.write(durable(request.after().max(9) + 1)).await;
    })
    .await;
    let mut stream = server.client().stream("s", 3).unwrap();
    assert!(matches!(
        soon(stream.next()).await.unwrap(),
        StreamItem::Truncated {
            first_sequence_num: 10
        }
    ));
    assert_eq!(stream.cursor(), 9);
    let mut seen = Vec::new();
    while seen.len() < 3 {
        match soon(stream.next()).await.unwrap() {
            StreamItem::Event(event) => seen.push(event.sequence_num),
            StreamItem::Truncated { .. } => panic!("told twice"),
            _ => {}
        }
    }
    assert_eq!(seen, [10, 11, 12]);
}

#[tokio::test]
async fn a_refusal_ends_a_stream_unless_it_may_pass() {
    for (status, code, is_for_good) in [
        ("400 Bad Request", "invalid-cursor", true),
        ("401 Unauthorized", "unauthorized", true),
        ("403 Forbidden", "forbidden", true),
        ("404 Not Found", "unknown-session", true),
        ("409 Conflict", "cursor-ahead", true),
        ("408 Request Timeout", "body-timeout", false),
        ("429 Too Many Requests", "too-many-streams", false),
        ("500 Internal Server Error", "host-failed", false),
        ("503 Service Unavailable", "unavailable", false),
    ] {
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let server = Server::start(move |number, mut connection| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                connection.request().await;
                if number == 0 {
                    let status_code = status[..3].parse().unwrap();
                    let closing = "retry-after: 0\r\nconnection: close\r\n";
                    connection
                        .answer_with(status, closing, &problem(code, status_code))
                        .await;
                } else {
                    connection.begin_stream().await;
                    connection.write(durable(1)).await;
                }
            }
        })
        .await;
        let mut stream = server.client().stream("s", 0).unwrap();
        let first = soon(stream.next()).await;
        if is_for_good {
            let error = first.unwrap_err();
            assert!(error.problem().unwrap().is(code), "{error}");
            assert!(error.to_string().contains(&format!("It is {code}")), "{error}");
            assert!(matches!(soon(stream.next()).await, Err(Error::Ended)));
            assert_eq!(connections.load(Ordering::SeqCst), 1);
        } else {
            assert!(matches!(
                first.unwrap(),
                StreamItem::Disconnected {
                    error: Error::Refused(_),
                    ..
                }
            ));
            assert!(matches!(soon(stream.next()).await.unwrap(), StreamItem::Event(_)));
        }
    }
}

#[tokio::test]
async fn a_busy_host_says_when_a_stream_comes_back() {
    let server = Server::start(|_, mut connection| async move {
        connection.request().await;
        let body = problem("too-many-streams", 429);
        connection
            .answer_with("429 Too Many Requests", "retry-after: 7\r\n", &body)
            .await;
    })
    .await;
    let mut stream = server.client().stream("s", 0).unwrap();
    let StreamItem::Disconnected { retry_in, .. } = soon(stream.next()).await.unwrap() else {
        panic!("it is refused")
    };
    assert_eq!(retry_in, Duration::from_secs(7));
}

#[tokio::test]
async fn a_silent_stream_is_opened_again() {
    let server = Server::start(|number, mut connection| async move {
        connection.request().await;
        connection.begin_stream().await;
        connection.write(durable(number as u64 + 1)).await;
        // Until the client goes.
        connection.request().await;
    })
    .await;
    let client = server
        .builder()
        .silence(Duration::from_millis(50))
        .build()
        .unwrap();
    let mut stream = client.stream("s", 0).unwrap();
    let mut seen = Vec::new();
    let mut silences = 0;
    while seen.len() < 3 {
        match soon(stream.next()).await.unwrap() {
            StreamItem::Event(event) => seen.push(event.sequence_num),
            StreamItem::Disconnected {
                error: Error::TimedOut(_),
                ..
            } => silences += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((seen, silences), (vec![1, 2, 3], 2));
}

#[tokio::test]
async fn the_overview_begins_anew_with_each_connection() {
    let server = Server::start(|number, mut connection| async move {
        let request = connection.request().await.unwrap();
        assert_eq!(request.line, "GET /v1/stream");
        connection.begin_stream().await;
        let text = format!(
            "event: session\ndata: {{\"session_id\":\"a\",\"state\":\"running\",\"head_seq\":{number},\"pending_approvals\":1,\"more\":1}}\n\nevent: synced\ndata: {{}}\n\nevent: weather\ndata: fine\n\n"
        );
        connection.write(text).await;
    })
    .await;
    let mut overview = server.client().overview();
    for number in 0..3 {
        let OverviewItem::Session(hint) = soon(overview.next()).await.unwrap() else {
            panic!("a session comes first")
        };
        assert_eq!((hint.session_id.as_str(), hint.head_seq), ("a", number));
        assert!(hint.raw.get().contains("\"more\":1"));
        assert!(matches!(
            soon(overview.next()).await.unwrap(),
            OverviewItem::Synced
        ));
        assert!(matches!(
            soon(overview.next()).await.unwrap(),
            OverviewItem::Other { .. }
        ));
        assert!(matches!(
            soon(overview.next()).await.unwrap(),
            OverviewItem::Disconnected { .. }
        ));
    }
}
