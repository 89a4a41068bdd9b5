//! A front that runs, and a client that writes bytes.

use std::time::Duration;

use outrigger::SessionId;
use outrigger::testing::Simulated;
use outrigger_host::log::{NewEvent, SqliteLog, Write};
use outrigger_host::{HostPolicy, NewSession, SessionHost, Source, WorkspacePolicy};
use outrigger_host_http::{Front, Limits, Scope, ServeError, TokenRecord, Tokens};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// For a test that would otherwise hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// The session that is there from the beginning.
pub(crate) const S: &str = "5e551011-0000-4000-8000-000000000001";

/// A host of simulated CLIs that follow the words of their prompts, with the session [`S`].
pub(crate) async fn host(dir: &std::path::Path) -> SessionHost {
    host_with(dir, |_| {}).await
}

/// With more in its policy.
pub(crate) async fn host_with(dir: &std::path::Path, change: impl FnOnce(&mut HostPolicy)) -> SessionHost {
    let cli = Simulated::agent(|agent| agent.directives());
    let mut policy = HostPolicy::new(cli.options(), [dir]);
    change(&mut policy);
    policy.lease = false;
    policy.permission_modes = vec!["plan".to_owned()];
    let log = SqliteLog::open(dir.join("host.db")).unwrap();
    let host = SessionHost::open(policy, log).await.unwrap();
    let mut new = NewSession::new(dir);
    new.id = Some(SessionId::new(S).unwrap());
    host.create(new, "test").await.unwrap();
    host
}

/// With transcripts, and the state of files before turns, in the second directory.
pub(crate) async fn host_that_stores(dir: &std::path::Path, beside: &std::path::Path) -> SessionHost {
    host_with(dir, |policy| {
        let config = beside.join("claude").display().to_string();
        policy.options = policy.options.clone().env("CLAUDE_CONFIG_DIR", config);
        policy.workspaces = Some(WorkspacePolicy::new(beside.join("trees")));
    })
    .await
}

pub(crate) struct Rig {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) host: SessionHost,
    pub(crate) tokens: Tokens,
    pub(crate) token: String,
    pub(crate) record: TokenRecord,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) served: JoinHandle<Result<(), ServeError>>,
}

impl Rig {
    pub(crate) async fn new(limits: Limits) -> Self {
        Self::with(|front| front.limits(limits)).await
    }

    /// A rig whose front has more settings.
    pub(crate) async fn with(settings: impl FnOnce(Front) -> Front) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let host = host(dir.path()).await;
        Self::over(dir, host, settings).await
    }

    /// A rig with this host.
    pub(crate) async fn over(
        dir: tempfile::TempDir,
        host: SessionHost,
        settings: impl FnOnce(Front) -> Front,
    ) -> Self {
        let tokens = Tokens::open(host.event_log()).await.unwrap();
        let (token, record) = tokens.issue("ada", Scope::ALL, None).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let front = Front::new(host.clone(), tokens.clone()).origins(["https://app.example.com"]);
        let served = tokio::spawn(settings(front).serve(listener, async {
            let _ = stopped.await;
        }));
        Self {
            dir,
            host,
            tokens,
            token: token.reveal().to_owned(),
            record,
            address,
            stop,
            served,
        }
    }

    /// Appends `count` events with the numbers from 0 on.
    pub(crate) async fn append(&self, count: usize, payload: Value) {
        self.append_as(count, "x", payload).await;
    }

    /// With this type.
    pub(crate) async fn append_as(&self, count: usize, kind: &str, payload: Value) {
        let id = SessionId::new(S).unwrap();
        let events = (0..count).map(|n| {
            let mut payload = payload.clone();
            payload["type"] = kind.into();
            payload["n"] = n.into();
            Write::Append(NewEvent::new(Source::Worker, kind, payload.into()))
        });
        self.host.event_log().write(&id, events.collect()).await.unwrap();
    }

    /// The number of the newest event.
    pub(crate) async fn head(&self) -> u64 {
        self.host
            .session(&SessionId::new(S).unwrap())
            .await
            .unwrap()
            .head_seq
    }

    /// A request with a JSON body.
    pub(crate) async fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json",
            self.token
        );
        self.raw(&head, &body.to_string()).await
    }

    /// The event of the session that `wanted` accepts, as soon as it is there.
    pub(crate) async fn until(&self, after: u64, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut stream = self.stream(S, Some(after)).await;
        loop {
            let got = stream.next().await.expect("the stream goes on");
            if got.name == "client_event" && wanted(&got.data) {
                return got.data;
            }
        }
    }

    /// A request with these lines after the request line, and its whole answer.
    pub(crate) async fn raw(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let length = body.len();
        let request = format!("{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        // A front that rejects the head may close before it has read the body.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
        Answer::read(&String::from_utf8(answer).unwrap())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.raw(
            &format!(
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}",
                self.token
            ),
            "",
        )
        .await
    }

    /// The body of an answer that is no JSON.
    pub(crate) async fn text(&self, path: &str) -> String {
        let mut stream = self.open(path, None).await;
        assert!(stream.head().await.contains("200 OK"));
        while !stream.text.ends_with('\n') {
            let mut bytes = [0; 4096];
            let read = timeout(PATIENCE, stream.stream.read(&mut bytes))
                .await
                .unwrap()
                .unwrap();
            stream.text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
        stream.text
    }

    pub(crate) async fn post_with(&self, token: &str, session: &str, payloads: &[Value]) -> Answer {
        let events: Vec<_> = payloads
            .iter()
            .map(|payload| json!({"payload": payload}))
            .collect();
        let head = format!(
            "POST /v1/sessions/{session}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json"
        );
        self.raw(
            &head,
            &json!({"session_id": session, "events": events}).to_string(),
        )
        .await
    }

    pub(crate) async fn post(&self, session: &str, payloads: &[Value]) -> Answer {
        self.post_with(&self.token, session, payloads).await
    }

    pub(crate) async fn stream(&self, session: &str, last: Option<u64>) -> Stream {
        self.open(&format!("/v1/sessions/{session}/events/stream"), last)
            .await
    }

    pub(crate) async fn open(&self, path: &str, last: Option<u64>) -> Stream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let last = last.map_or_else(String::new, |last| format!("Last-Event-ID: {last}\r\n"));
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{last}\r\n",
            self.token
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        Stream {
            stream,
            text: String::new(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Answer {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
        Self {
            status,
            head: head.to_ascii_lowercase(),
            body: serde_json::from_str(body).unwrap_or_default(),
        }
    }

    /// The kind of the problem; fails when the answer is no problem document.
    pub(crate) fn problem(&self) -> &str {
        assert!(
            self.head.contains("content-type: application/problem+json"),
            "{self:?}"
        );
        assert_eq!(self.body["status"], self.status);
        self.body["type"]
            .as_str()
            .unwrap()
            .strip_prefix("urn:outrigger:problem:")
            .unwrap()
    }
}

pub(crate) struct Stream {
    stream: TcpStream,
    text: String,
}

/// An event of a stream: its id, its name, and its data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Got {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Stream {
    /// The next event that is no comment. The sizes of chunks stand in lines of their own, which are no fields. `None` when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<Got> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let lines: Vec<_> = event.lines().map(str::to_owned).collect();
                self.text = rest.to_owned();
                let field = |name: &str| {
                    let line = lines.iter().find_map(|line| line.strip_prefix(name))?;
                    line.strip_prefix(": ").map(str::to_owned)
                };
                if let Some(name) = field("event") {
                    let id = field("id").map(|id| id.parse().unwrap());
                    return Some(Got {
                        id,
                        name,
                        data: serde_json::from_str(&field("data").unwrap()).unwrap(),
                    });
                }
                continue;
            }
            let mut bytes = [0; 4096];
            let read = timeout(PATIENCE, self.stream.read(&mut bytes))
                .await
                .unwrap()
                .unwrap_or(0);
            if read == 0 {
                return None;
            }
            self.text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
    }

    /// The durable sequence numbers up to `synced`.
    pub(crate) async fn replay(&mut self) -> Vec<u64> {
        let mut seen = Vec::new();
        loop {
            let got = self.next().await.unwrap();
            match &*got.name {
                "client_event" => seen.push(got.id.unwrap()),
                "synced" => return seen,
                other => panic!("{other} in a replay"),
            }
        }
    }

    /// What is there before the connection ends.
    pub(crate) async fn rest(&mut self) -> Vec<Got> {
        let mut rest = Vec::new();
        let ended = timeout(PATIENCE, async {
            while let Some(got) = self.next().await {
                rest.push(got);
            }
        });
        ended.await.expect("the stream ends");
        rest
    }

    /// How many bytes come before the connection ends, and whether they end as a whole answer does.
    pub(crate) async fn read_to_end(&mut self) -> (usize, bool) {
        let mut bytes = Vec::new();
        let read = self.stream.read_to_end(&mut bytes);
        // A connection that breaks has sent something, too.
        let _ = timeout(PATIENCE, read).await.expect("the answer ends");
        (bytes.len(), bytes.ends_with(b"\r\n0\r\n\r\n"))
    }

    /// The head of the answer.
    pub(crate) async fn head(&mut self) -> String {
        while !self.text.contains("\r\n\r\n") {
            let mut bytes = [0; 4096];
            let read = timeout(PATIENCE, self.stream.read(&mut bytes))
                .await
                .unwrap()
                .unwrap();
            assert_ne!(read, 0, "the connection ended");
            self.text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
        let (head, rest) = self.text.split_once("\r\n\r\n").unwrap();
        let head = head.to_owned();
        self.text = rest.to_owned();
        head
    }
}

/// The id of the prompt with this name.
pub(crate) fn uuid(name: &str) -> String {
    let number = name
        .bytes()
        .fold(0, |number, byte| number << 8 | u128::from(byte));
    uuid::Uuid::from_u128(number).to_string()
}

pub(crate) fn prompt(name: &str, text: &str) -> Value {
    json!({"type": "user", "uuid": uuid(name), "message": {"role": "user", "content": text}})
}

pub(crate) fn decision(request: &str, behavior: &str) -> Value {
    json!({"type": "control_response",
        "response": {"subtype": "success", "request_id": request, "response": answer(behavior)}})
}

/// What the CLI gets.
pub(crate) fn answer(behavior: &str) -> Value {
    match behavior {
        "deny" => json!({"behavior": "deny", "message": "no"}),
        _ => json!({"behavior": behavior}),
    }
}
