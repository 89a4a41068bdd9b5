//! What the CLI has stored of a session.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;

use super::feed::{Reader, StreamEnd};
use crate::extract::{Caller, InSession};
use crate::front_state::FrontState;
use crate::problem::Refusal;

pub(super) async fn read(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    InSession(session): InSession,
) -> Result<Response, Refusal> {
    // It may last as long as a stream of events, and ends like one.
    let reader = Reader::new(Arc::clone(&shared), token)?;
    let transcript = shared.host.transcript(&session).await?;
    let pieces = stream::try_unfold((transcript, reader), |(mut transcript, reader)| async move {
        // An error breaks the connection, so that no client takes what it has for all of it.
        reader.check()?;
        let piece = transcript.next().await.map_err(StreamEnd::Host)?;
        Ok::<_, StreamEnd>(piece.map(|piece| (piece, (transcript, reader))))
    });
    let mut response = Body::from_stream(pieces).into_response();
    let kind = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
