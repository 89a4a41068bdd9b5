//! The server: takes requests in, decides, answers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body as HttpBody, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use outrigger_protocol::repair;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::connection::{BreakableListener, Breaker, Breakers, Line};
use super::conversation::Conversations;
use super::error::{StartError, WaitError};
use super::gate::Gate;
use super::log::{self, Log};
use super::obey::obey;
use super::render::{Context, Ending, Step, error_body};
use super::reply::{ApiFault, Body, Message, Reply, Wait};
use super::request::{ApiRequest, Outcome, Route};
use super::rule::Rule;

/// The largest request that is read. Anything longer is answered with 413, as the real API does.
const LARGEST_BODY: usize = 32 << 20;

/// A running scripted Messages API.
///
/// Dropping it stops the server and breaks every connection at once. See the [module](super) for how it decides what to answer.
#[derive(Debug)]
#[must_use = "the server stops when this is dropped"]
pub struct MessagesApi {
    shared: Arc<Shared>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// Settings of a [`MessagesApi`].
#[derive(Debug)]
#[must_use]
pub struct MessagesApiBuilder {
    rules: Vec<Rule>,
    replies: VecDeque<Reply>,
    default_reply: Reply,
    directives: bool,
    log_limit: usize,
    input_tokens: Option<u64>,
}

#[derive(Debug)]
struct Shared {
    log: Log,
    gates: Mutex<HashMap<String, Gate>>,
    rules: Mutex<Vec<Rule>>,
    replies: Mutex<VecDeque<Reply>>,
    conversations: Mutex<Conversations>,
    default_reply: Reply,
    directives: bool,
    input_tokens: Option<u64>,
    answered: AtomicU64,
    started: Instant,
    breakers: Breakers,
}

impl MessagesApiBuilder {
    /// Adds a reply for the requests that a rule describes, behind the rules that are there.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds a reply for the next request that no rule is for, whatever session it comes from.
    pub fn reply(mut self, reply: impl Into<Reply>) -> Self {
        self.replies.push_back(reply.into());
        self
    }

    /// Sets the reply when nothing else applies; by default the text `ok`.
    pub fn default_reply(mut self, reply: impl Into<Reply>) -> Self {
        self.default_reply = reply.into();
        self
    }

    /// Whether [directives](crate::directive) in prompts are obeyed; by default they are.
    pub fn directives(mut self, obey: bool) -> Self {
        self.directives = obey;
        self
    }

    /// Sets how many requests are kept, at least one; by default 512. Beyond that the oldest is forgotten.
    pub fn log_limit(mut self, requests: usize) -> Self {
        self.log_limit = requests;
        self
    }

    /// Sets what `count_tokens` answers; by default a quarter of the request's length in bytes.
    pub fn input_tokens(mut self, tokens: u64) -> Self {
        self.input_tokens = Some(tokens);
        self
    }

    /// Starts the server on a free port of 127.0.0.1, on the current tokio runtime.
    ///
    /// # Errors
    /// When no port can be had.
    ///
    /// # Panics
    /// Outside a tokio runtime, as everything of tokio does.
    pub async fn start(self) -> Result<MessagesApi, StartError> {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let with_address = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = with_address.map_err(|cause| StartError { cause })?;
        let shared = Arc::new(Shared {
            log: Log::new(self.log_limit),
            gates: Mutex::default(),
            rules: Mutex::new(self.rules),
            replies: Mutex::new(self.replies),
            conversations: Mutex::default(),
            default_reply: self.default_reply,
            directives: self.directives,
            input_tokens: self.input_tokens,
            answered: AtomicU64::new(0),
            started: Instant::now(),
            breakers: Breakers::default(),
        });
        let listener = BreakableListener {
            inner: listener,
            breakers: shared.breakers.clone(),
        };
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let service = router.into_make_service_with_connect_info::<Line>();
            let serving = axum::serve(listener, service).with_graceful_shutdown(async {
                let _ = stopped.await;
            });
            if let Err(error) = serving.await {
                tracing::error!(%error, "the scripted Messages API stopped serving");
            }
        });
        Ok(MessagesApi {
            shared,
            address,
            stop: Some(stop),
            task,
        })
    }
}

impl MessagesApi {
    /// A server to be set up.
    pub fn builder() -> MessagesApiBuilder {
        MessagesApiBuilder {
            rules: Vec::new(),
            replies: VecDeque::new(),
            default_reply: Reply::say("ok"),
            directives: true,
            log_limit: log::DEFAULT_LIMIT,
            input_tokens: None,
        }
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The gate of this name; it comes into being when it is first asked for, here or by a reply.
    pub fn gate(&self, name: &str) -> Gate {
        self.shared.gate(name)
    }

    /// Adds a reply for the next request that no rule is for, behind those that wait.
    pub fn push(&self, reply: impl Into<Reply>) {
        lock(&self.shared.replies).push_back(reply.into());
    }

    /// Adds a rule behind those that are there. Not to be called from inside a rule.
    pub fn add_rule(&self, rule: Rule) {
        lock(&self.shared.rules).push(rule);
    }

    /// The requests that are kept, oldest first, each with what had become of it by now.
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.shared.log.requests()
    }

    /// Those of the kept requests that asked for a message.
    pub fn message_requests(&self) -> Vec<ApiRequest> {
        let mut requests = self.requests();
        requests.retain(|request| request.route() == Route::Messages);
        requests
    }

    /// How many requests came in all.
    pub fn request_count(&self) -> u64 {
        self.shared.log.counts().0
    }

    /// How many of them were forgotten because the log was full.
    pub fn forgotten_requests(&self) -> u64 {
        self.shared.log.counts().1
    }

    /// Waits until in all `count` requests for a message have come, and returns those that are kept.
    ///
    /// # Errors
    /// When that does not happen `within` the given time.
    pub async fn wait_for_requests(
        &self,
        count: u64,
        within: Duration,
    ) -> Result<Vec<ApiRequest>, WaitError> {
        let what = format!("{count} requests for a message");
        let mut requests = self
            .shared
            .log
            .wait_until(&what, within, |_, messages| messages >= count)
            .await?;
        requests.retain(|request| request.route() == Route::Messages);
        Ok(requests)
    }

    /// Waits until the kept requests are as the condition has it; it is asked again whenever one arrives or is done.
    ///
    /// `what` says in the error what was waited for.
    ///
    /// # Errors
    /// When that does not happen `within` the given time.
    pub async fn wait_until(
        &self,
        what: &str,
        within: Duration,
        mut condition: impl FnMut(&[ApiRequest]) -> bool,
    ) -> Result<Vec<ApiRequest>, WaitError> {
        self.shared
            .log
            .wait_until(what, within, |requests, _| condition(requests))
            .await
    }

    /// Stops the server and waits until it has let go of its port and all connections; replies in progress are cut.
    pub async fn shutdown(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        loop {
            self.shared.breakers.trip_all();
            // A connection may have been accepted just before the listener closed; the next round breaks it.
            if tokio::time::timeout(Duration::from_millis(20), &mut self.task)
                .await
                .is_ok()
            {
                return;
            }
        }
    }
}

impl Drop for MessagesApi {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.breakers.trip_all();
    }
}

impl Shared {
    fn gate(&self, name: &str) -> Gate {
        let mut gates = lock(&self.gates);
        gates
            .entry(name.to_owned())
            .or_insert_with(|| Gate::new(name))
            .clone()
    }

    /// What to answer to a request for a message.
    fn decide(&self, request: &ApiRequest) -> Reply {
        if let Some(reply) = lock(&self.rules).iter_mut().find_map(|rule| rule.answer(request)) {
            return reply;
        }
        if let Some(reply) = lock(&self.replies).pop_front() {
            return reply;
        }
        if self.directives {
            match obey(request, &mut lock(&self.conversations)) {
                Some(Ok(reply)) => return reply,
                Some(Err(error)) => return ApiFault::new(400).message(error.to_string()).into(),
                None => {}
            }
        }
        self.default_reply.clone()
    }

    async fn wait(&self, wait: &Wait) {
        match wait {
            Wait::Gate(name) => self.gate(name).pass().await,
            Wait::Pause(time) => tokio::time::sleep(*time).await,
            Wait::Forever => pending().await,
        }
    }
}

/// Notes what became of a request: that the client went away, unless something else is said before.
struct Settling {
    shared: Arc<Shared>,
    number: u64,
    outcome: Outcome,
}

impl Settling {
    fn settle(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        self.shared.log.settle(self.number, self.outcome);
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(line): ConnectInfo<Line>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LARGEST_BODY).await;
    let mut taken = ApiRequest {
        number: 0,
        at: shared.started.elapsed(),
        method: parts.method.to_string(),
        path: parts.uri.to_string(),
        headers: headers(&parts.headers),
        body: Arc::new(Value::Null),
        turn: 0,
        outcome: Outcome::Pending,
    };
    let mut refusal = None;
    match &body {
        Ok(bytes) if bytes.is_empty() => {}
        Ok(bytes) => match read_json(bytes) {
            Ok(value) => taken.body = Arc::new(value),
            Err(error) => {
                refusal = Some(ApiFault::new(400).message(format!("the body is not JSON: {error}")));
            }
        },
        Err(_) => refusal = Some(ApiFault::new(413)),
    }
    let route = taken.route();
    if route == Route::Messages {
        taken.turn = lock(&shared.conversations).next_turn(&taken);
    }
    let taken = shared.log.push(taken);
    let settling = Settling {
        shared: Arc::clone(&shared),
        number: taken.number,
        outcome: Outcome::ClientGone,
    };
    if let Some(fault) = refusal {
        return respond_fault(&fault, taken.number, settling);
    }
    match route {
        Route::Messages => {
            let reply = shared.decide(&taken);
            respond(&shared, &taken, reply, line, settling).await
        }
        Route::CountTokens => {
            let length = body.map_or(0, |bytes| bytes.len()) as u64;
            let tokens = shared.input_tokens.unwrap_or(length / 4);
            respond_json(
                200,
                json!({"input_tokens": tokens}).to_string(),
                &[],
                taken.number,
                settling,
            )
        }
        Route::Hello => respond_json(
            200,
            json!({"message": "hello"}).to_string(),
            &[],
            taken.number,
            settling,
        ),
        Route::Other => {
            let text = format!("{} {} is not scripted", taken.method, taken.path);
            respond_fault(&ApiFault::new(404).message(text), taken.number, settling)
        }
    }
}

async fn respond(
    shared: &Arc<Shared>,
    request: &ApiRequest,
    reply: Reply,
    line: Line,
    settling: Settling,
) -> Response {
    for wait in &reply.before {
        shared.wait(wait).await;
    }
    let message = match reply.body {
        Body::Message(message) => message,
        Body::Fault(fault) => return respond_fault(&fault, request.number, settling),
        Body::Dropped => return break_off(&line.0, settling).await,
    };
    let context = Context {
        number: shared.answered.fetch_add(1, Ordering::Relaxed) + 1,
        model: request.model().unwrap_or_default(),
    };
    if request.stream() {
        return respond_stream(shared, &message, context, line.0, request.number, settling);
    }
    let (waits, whole) = message.whole(context);
    for wait in &waits {
        shared.wait(wait).await;
    }
    match whole {
        Ok(text) => respond_json(200, text, &message.headers, request.number, settling),
        Err(Ending::Fault(fault)) => respond_fault(&fault, request.number, settling),
        Err(Ending::Cut) => break_off(&line.0, settling).await,
    }
}

/// Breaks the connection. The connection's end drops this future too; until then there is nothing to answer.
async fn break_off(breaker: &Breaker, settling: Settling) -> Response {
    settling.settle(Outcome::Broken);
    breaker.trip();
    pending().await
}

fn respond_stream(
    shared: &Arc<Shared>,
    message: &Message,
    context: Context<'_>,
    breaker: Arc<Breaker>,
    number: u64,
    settling: Settling,
) -> Response {
    struct Streaming {
        shared: Arc<Shared>,
        steps: std::vec::IntoIter<Step>,
        breaker: Arc<Breaker>,
        settling: Option<Settling>,
    }
    let streaming = Streaming {
        shared: Arc::clone(shared),
        steps: message.stream(context).into_iter(),
        breaker,
        settling: Some(settling),
    };
    let events = futures_util::stream::unfold(streaming, |mut streaming| async move {
        loop {
            match streaming.steps.next() {
                Some(Step::Send(event)) => return Some((Ok::<_, Infallible>(Bytes::from(event)), streaming)),
                Some(Step::Wait(wait)) => streaming.shared.wait(&wait).await,
                Some(Step::Cut) => {
                    // What was sent so far is flushed as soon as this waits; give it a moment to get through.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    if let Some(settling) = streaming.settling.take() {
                        settling.settle(Outcome::Broken);
                    }
                    streaming.breaker.trip();
                    pending::<()>().await;
                }
                None => {
                    if let Some(settling) = streaming.settling.take() {
                        settling.settle(Outcome::Answered(200));
                    }
                    return None;
                }
            }
        }
    });
    let mut response = Response::new(HttpBody::from_stream(events));
    fill(
        response.headers_mut(),
        "text/event-stream; charset=utf-8",
        &message.headers,
        number,
    );
    response
}

fn respond_fault(fault: &ApiFault, number: u64, settling: Settling) -> Response {
    let mut body = error_body(&fault.kind, &fault.text);
    if let Some(body) = body.as_object_mut() {
        body.insert("request_id".to_owned(), request_id(number).into());
    }
    respond_json(fault.status, body.to_string(), &fault.headers, number, settling)
}

fn respond_json(
    status: u16,
    text: String,
    headers: &[(String, String)],
    number: u64,
    settling: Settling,
) -> Response {
    let mut response = Response::new(HttpBody::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    fill(response.headers_mut(), "application/json", headers, number);
    settling.settle(Outcome::Answered(response.status().as_u16()));
    response
}

fn fill(headers: &mut HeaderMap, content_type: &'static str, scripted: &[(String, String)], number: u64) {
    headers.insert("content-type", HeaderValue::from_static(content_type));
    if let Ok(id) = HeaderValue::from_str(&request_id(number)) {
        headers.insert("request-id", id);
    }
    for (name, value) in scripted {
        match (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => {
                headers.insert(name, value);
            }
            _ => {
                tracing::error!(%name, %value, "the script's header is none that HTTP can carry; it is left out")
            }
        }
    }
}

fn request_id(number: u64) -> String {
    format!("req_sim_{number:06}")
}

fn headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let secret = ["x-api-key", "authorization", "proxy-authorization", "cookie"];
    let headers = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        let bare = value.strip_prefix("Bearer ").unwrap_or(&value);
        let shown = if secret.contains(&name.as_str()) && bare != ApiRequest::DUMMY_KEY {
            "<redacted>".to_owned()
        } else {
            value.into_owned()
        };
        (name.as_str().to_owned(), shown)
    });
    headers.collect()
}

fn read_json(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|error| {
        let mended = std::str::from_utf8(bytes).ok().and_then(repair::lone_surrogates);
        mended.map_or(Err(error), |text| serde_json::from_str(&text))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in a test's closure must not turn into one of the server.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
