//! One request from its arrival to the end of its answer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body as HttpBody, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use outrigger_protocol::repair;
use serde_json::{Value, json};

use super::connection::{Breaker, RequestConnection};
use super::message::{ApiAnswer, ApiFault, ApiMessage, Body};
use super::render::{MessageContext, NoMessage, RenderStep, error_body};
use super::request::{AnsweredBy, ApiRequest, RequestOutcome, Route};
use super::server::{ApiDecision, ApiShared, lock};

/// The largest request that is read. Anything longer is answered with 413, as the real API does.
const LARGEST_BODY: usize = 32 << 20;

/// Records how a request ended: unless set otherwise, the client went away.
pub(super) struct Settling {
    shared: Arc<ApiShared>,
    number: u64,
    outcome: RequestOutcome,
}

impl Settling {
    pub(super) fn settle(mut self, outcome: RequestOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        self.shared.log.settle(self.number, self.outcome);
    }
}

pub(super) async fn answer(
    State(shared): State<Arc<ApiShared>>,
    ConnectInfo(line): ConnectInfo<RequestConnection>,
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
        outcome: RequestOutcome::Pending,
        answered_by: AnsweredBy::Undecided,
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
        outcome: RequestOutcome::ClientGone,
    };
    if let Some(fault) = refusal {
        let why = AnsweredBy::Nothing(fault.text.as_str().into());
        shared.log.decided(taken.number, why);
        return respond_fault(&fault, taken.number, settling);
    }
    if let Some((decision, by)) = shared.decide(&taken) {
        shared.log.decided(taken.number, by);
        return match decision {
            ApiDecision::Answer(answer) => respond(&shared, &taken, *answer, line, settling).await,
            #[cfg(feature = "api-record")]
            ApiDecision::Upstream => {
                let body = body.unwrap_or_default();
                super::forward::forward(&shared, &taken, parts, body, line.0, settling).await
            }
        };
    }
    let length = body.map_or(0, |bytes| bytes.len()) as u64;
    let answer = own_answer(&shared, &taken, length);
    let by = match &answer {
        Ok(_) => AnsweredBy::Server,
        Err(fault) => AnsweredBy::Nothing(fault.text.as_str().into()),
    };
    shared.log.decided(taken.number, by);
    match answer {
        Ok(value) => respond_json(200, value.to_string(), &[], taken.number, settling),
        Err(fault) => respond_fault(&fault, taken.number, settling),
    }
}

/// The reply to requests that need no script: all that are not for messages.
fn own_answer(shared: &ApiShared, request: &ApiRequest, length: u64) -> Result<Value, ApiFault> {
    let model = |id: &str| json!({"type": "model", "id": id, "display_name": id, "created_at": "1970-01-01T00:00:00Z"});
    match request.route() {
        Route::CountTokens => Ok(json!({"input_tokens": shared.settings.input_tokens.unwrap_or(length / 4)})),
        Route::Hello => Ok(json!({"message": "hello"})),
        Route::Models => {
            let path = request.path.split('?').next().unwrap_or_default();
            let one = path.strip_prefix("/v1/models/").filter(|id| !id.is_empty());
            let there = |id: &str| {
                shared.settings.models.is_empty() || shared.settings.models.iter().any(|known| known == id)
            };
            match one {
                Some(id) if there(id) => Ok(model(id)),
                Some(id) => Err(ApiFault::new(404).message(format!("model: {id}"))),
                None => Ok(json!({
                    "data": shared.settings.models.iter().map(|id| model(id)).collect::<Vec<_>>(),
                    "has_more": false,
                    "first_id": shared.settings.models.first(),
                    "last_id": shared.settings.models.last(),
                })),
            }
        }
        Route::Messages | Route::Other => {
            Err(ApiFault::new(404).message(format!("{} {} is not scripted", request.method, request.path)))
        }
    }
}

/// The highest number of an answer of which a call is in this request.
fn last_call(body: &Value) -> u64 {
    let messages = body["messages"].as_array().into_iter().flatten();
    let blocks = messages
        .filter_map(|message| message["content"].as_array())
        .flatten();
    let ids = blocks.filter_map(|block| block["id"].as_str()?.strip_prefix("toolu_sim_"));
    let numbers = ids.filter_map(|id| id.split('_').next()?.parse::<u32>().ok());
    numbers.max().unwrap_or_default().into()
}

async fn respond(
    shared: &Arc<ApiShared>,
    request: &ApiRequest,
    answer: ApiAnswer,
    line: RequestConnection,
    settling: Settling,
) -> Response {
    for wait in &answer.before {
        shared.wait(wait).await;
    }
    let message = match answer.body {
        Body::Message(message) => message,
        Body::Fault(fault) => return respond_fault(&fault, request.number, settling),
        Body::Dropped => return break_off(&line.0, settling).await,
    };
    // A conversation may have begun with another server.
    shared
        .answered
        .fetch_max(last_call(&request.body), Ordering::Relaxed);
    let context = MessageContext {
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
        Ok(text) => respond_json(200, text, &headers_of(&message), request.number, settling),
        Err(NoMessage::Fault(fault)) => respond_fault(&fault, request.number, settling),
        Err(NoMessage::Cut) => break_off(&line.0, settling).await,
    }
}

/// How long a connection stays open behind the last event before a cut. A client that finds the connection broken forgets what it has
/// received and not read, so that a shorter time makes what it reads a matter of how busy the machine is.
const BEFORE_A_CUT: Duration = Duration::from_millis(250);

/// Breaks the connection. The connection's end drops this future too; until then there is nothing to answer.
pub(super) async fn break_off(breaker: &Breaker, settling: Settling) -> Response {
    settling.settle(RequestOutcome::Broken);
    breaker.trip();
    pending().await
}

fn respond_stream(
    shared: &Arc<ApiShared>,
    message: &ApiMessage,
    context: MessageContext<'_>,
    breaker: Arc<Breaker>,
    number: u64,
    settling: Settling,
) -> Response {
    let mut response = stream(shared, message.stream(context), 200, breaker, settling);
    let kind = "text/event-stream; charset=utf-8";
    fill(response.headers_mut(), kind, &headers_of(message), number);
    response
}

/// The headers of a message; its content type is that of the script, if it has one.
fn headers_of(message: &ApiMessage) -> Vec<(String, String)> {
    let kind = message
        .content_type
        .iter()
        .map(|kind| ("content-type".to_owned(), kind.clone()));
    kind.chain(message.headers.iter().cloned()).collect()
}

/// A response whose body the steps send.
fn stream(
    shared: &Arc<ApiShared>,
    steps: Vec<RenderStep>,
    status: u16,
    breaker: Arc<Breaker>,
    settling: Settling,
) -> Response {
    struct Streaming {
        shared: Arc<ApiShared>,
        steps: std::vec::IntoIter<RenderStep>,
        breaker: Arc<Breaker>,
        settling: Option<Settling>,
        status: u16,
    }
    let streaming = Streaming {
        shared: Arc::clone(shared),
        steps: steps.into_iter(),
        status,
        breaker,
        settling: Some(settling),
    };
    let events = futures_util::stream::unfold(streaming, |mut streaming| async move {
        loop {
            match streaming.steps.next() {
                Some(RenderStep::Send(event)) => {
                    return Some((Ok::<_, Infallible>(Bytes::from(event)), streaming));
                }
                Some(RenderStep::Wait(wait)) => streaming.shared.wait(&wait).await,
                Some(RenderStep::Cut) => {
                    // Waiting flushes what was sent so far.
                    tokio::time::sleep(BEFORE_A_CUT).await;
                    if let Some(settling) = streaming.settling.take() {
                        settling.settle(RequestOutcome::Broken);
                    }
                    streaming.breaker.trip();
                    pending::<()>().await;
                }
                None => {
                    if let Some(settling) = streaming.settling.take() {
                        settling.settle(RequestOutcome::Answered(streaming.status));
                    }
                    return None;
                }
            }
        }
    });
    let mut response = Response::new(HttpBody::from_stream(events));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

pub(super) fn respond_fault(fault: &ApiFault, number: u64, settling: Settling) -> Response {
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
    settling.settle(RequestOutcome::Answered(response.status().as_u16()));
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
                tracing::error!(%name, %value, "HTTP can't carry this header of the script; it is dropped")
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
