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
use crate::extract::{InSession, Params, single};
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    /// The number after which the page begins; 0 if it is not there.
    #[schemars(with = "Option<u64>")]
    after: Option<String>,
    /// How many events at most.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// Only events of these types (`type` of the payload), with commas between them. A page may be empty then, and others follow: `cursor` says how far
    /// the log was read.
    types: Option<String>,
}

/// How many types can be named.
const TYPES: usize = 32;

/// How many pages of the log are read for one answer, if no event in them is of the types that are wanted.
const READ: usize = 16;

pub(super) async fn events(
    State(shared): State<Arc<FrontState>>,
    InSession(session): InSession,
    Params(query): Params<PageQuery>,
) -> Result<Response, Refusal> {
    let after = query.after.as_deref().map_or(Ok(0), cursor)?;
    let limit = limit(query.limit, shared.limits.page)?;
    let types = query.types.as_deref().map(types).transpose()?;
    let read = if types.is_some() {
        shared.limits.page
    } else {
        limit
    };
    let (mut found, mut cursor) = (Vec::new(), after);
    let mut pages = 0;
    let (head_seq, trimmed_seq) = loop {
        let page = shared.host.events(&session, cursor, read).await?;
        check_cursor(cursor, &page)?;
        pages += 1;
        // Without events there is nothing up to the head.
        let mut last = if page.events.is_empty() {
            page.head_seq
        } else {
            cursor
        };
        for event in page.events {
            last = event.seq;
            let is_wanted = types
                .as_ref()
                .is_none_or(|types| types.contains(&event.kind.as_str()));
            if is_wanted {
                found.push(event);
            }
            if found.len() == limit {
                break;
            }
        }
        cursor = last;
        if !found.is_empty() || cursor >= page.head_seq || pages == READ {
            break (page.head_seq, page.trimmed_seq);
        }
    };
    let events = EventPage {
        events: found.iter().map(|event| Envelope::of(event)).collect(),
        head_seq,
        first_seq: trimmed_seq + 1,
        cursor,
    };
    Ok(axum::Json(events).into_response())
}

/// The types that are wanted.
fn types(text: &str) -> Result<Vec<&str>, Refusal> {
    let types: Vec<_> = text.split(',').collect();
    if types.contains(&"") || types.len() > TYPES {
        let why = format!("`types` has 1 to {TYPES} names with commas between them");
        return Err(Problem::InvalidRequest.because(why));
    }
    Ok(types)
}

/// The cursor of a stream: the header that a client sends when it resumes, before what the address says.
pub(super) fn stream_cursor(headers: &HeaderMap, after: Option<&str>) -> Result<u64, Refusal> {
    match single(headers, "last-event-id")?.map(header::HeaderValue::to_str) {
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
pub(super) fn check_cursor(after: u64, page: &Page) -> Result<(), Refusal> {
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
