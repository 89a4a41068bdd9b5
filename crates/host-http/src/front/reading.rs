//! Pages of events, and cursors.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::sse::Envelope;
use super::{SessionId, Shared};
use crate::host::{Host, Page};
use crate::problem::{Problem, Refusal};
use crate::token::Scope;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    after: Option<String>,
    limit: Option<String>,
}

/// What a client gets of a log: the events after its cursor.
#[derive(Serialize)]
struct Events<'a> {
    events: Vec<Envelope<'a>>,
    head_seq: u64,
    /// Events before this one are no longer kept.
    first_seq: u64,
}

pub(super) async fn events<H: Host>(
    State(shared): State<Arc<Shared<H>>>,
    SessionId(session): SessionId,
    query: Result<Query<PageQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    shared.authorize(&headers, [Scope::Read])?;
    let Query(query) = query.map_err(|error| Problem::InvalidRequest.because(error.body_text()))?;
    let after = query.after.as_deref().map_or(Ok(0), cursor)?;
    let limit = match query.limit.as_deref().map(str::parse::<usize>) {
        None => shared.limits.page,
        Some(Ok(limit)) if limit > 0 => limit.min(shared.limits.page),
        Some(_) => return Err(Problem::InvalidRequest.because("`limit` is a number from 1 on")),
    };
    let page = shared.host.events(&session, after, limit).await?;
    known(after, &page)?;
    let events = Events {
        events: page.events.iter().map(Envelope::of).collect(),
        head_seq: page.head,
        first_seq: page.first,
    };
    Ok(axum::Json(events).into_response())
}

/// The cursor of a stream: the header that a client sends when it resumes, before what the address says.
pub(super) fn stream_cursor(headers: &HeaderMap, after: Option<&str>) -> Result<u64, Refusal> {
    match headers.get("last-event-id").map(header::HeaderValue::to_str) {
        Some(Ok(text)) => cursor(text),
        Some(Err(_)) => Err(Problem::InvalidCursor.into()),
        None => after.map_or(Ok(0), cursor),
    }
}

/// Reads a cursor: decimal digits and nothing else.
fn cursor(text: &str) -> Result<u64, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| Problem::InvalidCursor.into())
}

/// A client with a cursor beyond the head would wait for events that are others than those it thinks of.
pub(super) fn known(after: u64, page: &Page) -> Result<(), Refusal> {
    if after > page.head {
        let head = page.head;
        return Err(
            Problem::CursorAhead.because(format!("the cursor is {after}, and the last event is {head}"))
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_is_digits_or_rejected(text in "\\PC{0,24}", number in any::<u64>()) {
            prop_assert_eq!(cursor(&number.to_string()).ok(), Some(number));
            if let Ok(read) = cursor(&text) {
                let digits = text.trim_start_matches('0');
                prop_assert_eq!(read.to_string(), if digits.is_empty() { "0" } else { digits });
            }
        }
    }
}
