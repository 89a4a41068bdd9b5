//! A server that a test writes byte by byte.

use std::time::Duration;

use outrigger_host_client::{ClientBuilder, HostClient, Token};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Longer than anything here takes on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server, until it is dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Hands each connection, with its number from 0 on, to `handle`.
    pub(crate) async fn start<F, R>(handle: F) -> Self
    where
        F: Fn(usize, Connection) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move {
            let mut open = JoinSet::new();
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                open.spawn(handle(number, Connection(stream)));
            }
        });
        Self { url, task }
    }

    /// A client with a token that tries again after a millisecond.
    pub(crate) fn builder(&self) -> ClientBuilder {
        HostClient::builder(&self.url)
            .token(Token::new("the-token").unwrap())
            .backoff(Duration::from_millis(1), Duration::from_millis(1))
            .deadline(PATIENCE)
            .patience(PATIENCE)
    }

    pub(crate) fn client(&self) -> HostClient {
        self.builder().build().unwrap()
    }
}

/// A connection of a client.
pub(crate) struct Connection(TcpStream);

/// What a client asked for.
#[derive(Debug)]
pub(crate) struct Request {
    /// The method and the path.
    pub(crate) line: String,
    /// The head, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Request {
    /// The number behind `?after=`.
    pub(crate) fn after(&self) -> u64 {
        let after = self.line.split("?after=").nth(1).unwrap();
        after.split(['&', ' ']).next().unwrap().parse().unwrap()
    }
}

impl Connection {
    /// The next request; `None` if the client has gone.
    pub(crate) async fn request(&mut self) -> Option<Request> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if self.0.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let line = head
            .lines()
            .next()
            .unwrap()
            .trim_end_matches(" HTTP/1.1")
            .to_owned();
        let head = head.to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        while bytes.len() < end + length {
            if self.0.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        }
        let body = String::from_utf8(bytes[end..].to_vec()).unwrap();
        Some(Request { line, head, body })
    }

    /// Writes these bytes; a client that has gone is no error.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.0.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Answers with JSON.
    pub(crate) async fn answer(&mut self, status: &str, body: &str) {
        self.answer_with(status, "", body).await;
    }

    /// The same with more lines in the head, each with its end.
    pub(crate) async fn answer_with(&mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let kind = if status.starts_with('2') {
            "application/json"
        } else {
            "application/problem+json"
        };
        let text = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        self.write(text).await;
    }

    /// Begins a stream that ends with the connection.
    pub(crate) async fn begin_stream(&mut self) {
        self.write(STREAM).await;
    }
}

/// The head of a stream that ends with the connection.
pub(crate) const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A durable event as a host writes it.
pub(crate) fn durable(seq: u64) -> String {
    format!(
        "id: {seq}\nevent: client_event\ndata: {{\"event_id\":\"e{seq}\",\"sequence_num\":{seq},\"created_at\":\"2026-01-01T00:00:00Z\",\"source\":\"worker\",\"payload\":{{\"type\":\"assistant\",\"n\":{seq}}}}}\n\n"
    )
}

pub(crate) fn synced(seq: u64) -> String {
    format!("event: synced\ndata: {{\"seq\":{seq}}}\n\n")
}

/// A problem document.
pub(crate) fn problem(code: &str, status: u16) -> String {
    format!(r#"{{"type":"urn:outrigger:problem:{code}","title":"It is {code}","status":{status}}}"#)
}

/// Waits for a future, for as long as anything here may take.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}
