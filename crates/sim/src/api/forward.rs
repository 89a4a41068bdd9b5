//! Passes requests on to another API, and its replies back.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use axum::body::{Body as HttpBody, Bytes};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::StreamExt as _;

use super::answer::{Settling, break_off, respond_fault};
use super::connection::Breaker;
use super::message::ApiFault;
use super::record::{AnswerEnd, Tape};
use super::request::{ApiRequest, RequestOutcome};
use super::server::ApiShared;
use super::upstream::{Unanswered, passed_on};

/// Passes a request on. The reply is streamed to the client, and copied to the recorder.
pub(super) async fn forward(
    shared: &Arc<ApiShared>,
    request: &ApiRequest,
    parts: Parts,
    body: Bytes,
    breaker: Arc<Breaker>,
    settling: Settling,
) -> Response {
    let Some(upstream) = &shared.settings.upstream else {
        return respond_fault(&ApiFault::new(502), request.number, settling);
    };
    let recorder = shared.settings.recorder.as_ref();
    let mut tape = recorder.and_then(|recorder| recorder.begin(request, &parts.headers, &shared.home));
    let bodiless = parts.method == Method::HEAD;
    let answer = upstream
        .ask(parts.method, &request.path, &parts.headers, body)
        .await;
    let (head, body) = match answer {
        Ok(answer) => answer.into_parts(),
        Err(Unanswered::Unreachable(why)) => {
            // The error is about this network, not about the API.
            if let Some(tape) = tape {
                tape.discard();
            }
            tracing::warn!(%why);
            return respond_fault(&ApiFault::new(502).message(why), request.number, settling);
        }
        Err(Unanswered::Broken) => {
            if let Some(tape) = tape {
                tape.end(AnswerEnd::Cut);
            }
            return break_off(&breaker, settling).await;
        }
    };
    let status = head.status;
    if let Some(tape) = &mut tape {
        tape.head(status.as_u16(), &head.headers);
    }
    let length = head.headers.get("content-length");
    let mut passing = PassingReply {
        left: length.and_then(|length| length.to_str().ok()?.parse().ok()),
        body: HttpBody::new(body).into_data_stream(),
        tape,
        settling: Some(settling),
        breaker,
        status: status.as_u16(),
    };
    if bodiless || passing.left == Some(0) {
        passing.end(AnswerEnd::Whole, RequestOutcome::Answered(passing.status));
    }
    let pieces = futures_util::stream::unfold(passing, |mut passing| async move {
        match passing.body.next().await {
            Some(Ok(bytes)) => {
                if let Some(tape) = &mut passing.tape {
                    tape.feed(&bytes);
                }
                // The end of a body of known length is never polled.
                if let Some(left) = &mut passing.left {
                    *left = left.saturating_sub(bytes.len() as u64);
                    if *left == 0 {
                        passing.end(AnswerEnd::Whole, RequestOutcome::Answered(passing.status));
                    }
                }
                Some((Ok::<_, Infallible>(bytes), passing))
            }
            Some(Err(_)) => {
                passing.end(AnswerEnd::Cut, RequestOutcome::Broken);
                passing.breaker.trip();
                pending().await
            }
            None => {
                let status = passing.status;
                passing.end(AnswerEnd::Whole, RequestOutcome::Answered(status));
                None
            }
        }
    });
    let mut response = Response::new(HttpBody::from_stream(pieces));
    *response.status_mut() = status;
    *response.headers_mut() = passed_on(&head.headers);
    if let Some(length) = length {
        response.headers_mut().insert("content-length", length.clone());
    }
    response
}

/// A reply on its way. Dropping it before its end records that the client went away.
struct PassingReply {
    body: axum::body::BodyDataStream,
    tape: Option<Tape>,
    settling: Option<Settling>,
    breaker: Arc<Breaker>,
    status: u16,
    /// How many bytes are still to come, if the length is known.
    left: Option<u64>,
}

impl PassingReply {
    fn end(&mut self, ended: AnswerEnd, outcome: RequestOutcome) {
        if let Some(tape) = self.tape.take() {
            tape.end(ended);
        }
        if let Some(settling) = self.settling.take() {
            settling.settle(outcome);
        }
    }
}
