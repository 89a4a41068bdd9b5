//! Pages of events, and cursors.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use outrigger_host::log::Page;
use schemars::JsonSchema;
use serde::Deserialize;

use super::sessions::limit;
use super::sse::{Envelope, EventPage};
use crate::extract::{InSession, Params};
use crate::problem::{Problem, Refusal};
use crate::shared::Shared;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    /// The number after which the page begins; 0 if it is not there.
    #[schemars(with = "Option<u64>")]
    after: Option<String>,
    /// How many events at most.
    limit: Option<usize>,
}

pub(super) async fn events(
    State(shared): State<Arc<Shared>>,
    InSession(session): InSession,
    Params(query): Params<PageQuery>,
) -> Result<Response, Refusal> {
    let after = query.after.as_deref().map_or(Ok(0), cursor)?;
    let limit = limit(query.limit, shared.limits.page)?;
    let page = shared.host.events(&session, after, limit).await?;
    known(after, &page)?;
    let events = EventPage {
        events: page.events.iter().map(|event| Envelope::of(event)).collect(),
        head_seq: page.head_seq,
        first_seq: page.trimmed_seq + 1,
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
pub(super) fn cursor(text: &str) -> Result<u64, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| Problem::InvalidCursor.into())
}

/// A client with a cursor beyond the head would wait for events that are others than those it thinks of.
pub(super) fn known(after: u64, page: &Page) -> Result<(), Refusal> {
    if after > page.head_seq {
        let head = page.head_seq;
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
