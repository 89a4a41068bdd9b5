//! The answer to a request of the editor, independent of the protocol version.

use agent_client_protocol::{Error, JsonRpcResponse, Protocol, RequestCancellation, Responder};

/// An answer that is sent once. The caller gives a `T`; `write` converts it to the response of the request's version.
///
/// Dropped unsent, it becomes an error, which the connection sends.
pub(crate) struct ResponseSender<T> {
    cancellation: RequestCancellation,
    give: Box<Give<T>>,
}

type Give<T> = dyn FnOnce(Result<T, Error>) -> Result<(), Error> + Send;

impl<T: 'static> ResponseSender<T> {
    pub(crate) fn new<R: JsonRpcResponse, P: Protocol>(
        responder: Responder<R, P>,
        write: impl FnOnce(T) -> R + Send + 'static,
    ) -> Self {
        Self {
            cancellation: responder.cancellation(),
            give: Box::new(move |told| responder.respond_with_result(told.map(write))),
        }
    }

    /// Fires when the editor cancels its request.
    pub(crate) fn cancellation(&self) -> RequestCancellation {
        self.cancellation.clone()
    }

    pub(crate) fn give(self, told: Result<T, Error>) {
        if let Err(error) = (self.give)(told) {
            // The connection has ended, as its own task reports.
            tracing::debug!(%error, "an answer was not sent");
        }
    }

    pub(crate) fn refuse(self, error: Error) {
        self.give(Err(error));
    }
}

impl<R: JsonRpcResponse, P: Protocol> From<Responder<R, P>> for ResponseSender<R> {
    fn from(responder: Responder<R, P>) -> Self {
        Self {
            cancellation: responder.cancellation(),
            give: Box::new(move |told| responder.respond_with_result(told)),
        }
    }
}
