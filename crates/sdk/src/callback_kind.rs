//! The types and functions that all callbacks share.

use std::sync::Arc;

use outrigger_protocol::{Frame, RawJson};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::conn::cli_requests::CliReply;
use crate::fields::Fields;
use crate::peer::BoxFuture;

/// What a callback returns: the answer, or that it comes later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackReply<T> {
    /// The answer.
    Now(T),
    /// The request stays open, for a later answer by its id.
    Parked,
}

impl<T> From<T> for CallbackReply<T> {
    fn from(answer: T) -> Self {
        Self::Now(answer)
    }
}

impl<T: Serialize> CallbackReply<T> {
    pub(crate) fn into_answer(self) -> CliReply {
        match self {
            Self::Now(answer) => CliReply::success(&answer),
            Self::Parked => CliReply::Parked,
        }
    }
}

/// A type-erased callback. It runs in the task that answers the request.
pub(crate) type Callback<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, A> + Send + Sync>;

pub(crate) fn callback<Q, A, F, R>(call: F) -> Callback<Q, A>
where
    F: Fn(Q) -> R + Send + Sync + 'static,
    R: Future<Output: Into<A>> + Send + 'static,
{
    Arc::new(move |request| {
        let answer = call(request);
        Box::pin(async { answer.await.into() })
    })
}

/// The fields of a request.
pub(crate) fn read<T: DeserializeOwned>(frame: &Frame) -> Result<T, String> {
    if let Some(flaw) = frame.flaw() {
        return Err(flaw.to_string());
    }
    let request = Fields::of(frame)
        .get::<RawJson>("request")
        .ok_or("it has no `request`")?;
    request.read().map_err(|error| error.to_string())
}
