//! An answer that is owed to the editor, whatever the version of the protocol in which it asked.

use agent_client_protocol::{Error, JsonRpcResponse, Protocol, RequestCancellation, Responder};

/// An answer that is owed, and is given once. Whoever gives it has a `T`; what that is on the line is the asker's version's affair.
///
/// Dropped without being given, it becomes an error: the connection sees to that.
pub(crate) struct Answer<T> {
    cancellation: RequestCancellation,
    give: Box<Give<T>>,
}

type Give<T> = dyn FnOnce(Result<T, Error>) -> Result<(), Error> + Send;

impl<T: 'static> Answer<T> {
    /// Of a request; `write` puts what is given in the words of its version.
    pub(crate) fn new<R: JsonRpcResponse, P: Protocol>(
        responder: Responder<R, P>,
        write: impl FnOnce(T) -> R + Send + 'static,
    ) -> Self {
        Self {
            cancellation: responder.cancellation(),
            give: Box::new(move |told| responder.respond_with_result(told.map(write))),
        }
    }

    /// Fires when the editor takes its request back.
    pub(crate) fn cancellation(&self) -> RequestCancellation {
        self.cancellation.clone()
    }

    /// Gives it.
    pub(crate) fn give(self, told: Result<T, Error>) {
        if let Err(error) = (self.give)(told) {
            // The connection has ended, and whoever drives it knows.
            tracing::debug!(%error, "an answer was not sent");
        }
    }

    /// Gives an error.
    pub(crate) fn refuse(self, error: Error) {
        self.give(Err(error));
    }
}

impl<R: JsonRpcResponse, P: Protocol> From<Responder<R, P>> for Answer<R> {
    fn from(responder: Responder<R, P>) -> Self {
        Self {
            cancellation: responder.cancellation(),
            give: Box::new(move |told| responder.respond_with_result(told)),
        }
    }
}
