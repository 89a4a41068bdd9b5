//! Calls of a store, which is user code, with a deadline.

use std::time::Duration;

use outrigger_sessions::store::StoreError;
use tokio::sync::oneshot;

use crate::deadline::AbortOnDrop;
use crate::error::{Error, Kind};
use crate::spawn::spawn;

/// Why a call of a store failed.
#[derive(Debug)]
pub(crate) enum StoreFailure {
    /// The store returned an error.
    Store(StoreError),
    /// The deadline passed, and the call was dropped.
    Late(Duration),
    /// The call panicked, or its runtime is shut down.
    Broken(String),
}

impl StoreFailure {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Store(error) => error.chain(),
            Self::Late(after) => format!("the session store took longer than {after:?}"),
            Self::Broken(how) => format!("the session store broke down: {how}"),
        }
    }

    /// Whether another holder has the session.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_fenced() || error.is_held())
    }

    /// Whether a retry may help. A late call may still take effect, or twice with the retry: entries with a `uuid` are stored once
    /// all the same.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Store(error) => error.may_pass(),
            Self::Late(_) | Self::Broken(_) => true,
        }
    }
}

/// Runs the call in its own task, no longer than `timeout`, so that a panic stays there. Dropping the future drops the call.
pub(crate) async fn call<T: Send + 'static>(
    timeout: Duration,
    future: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreFailure> {
    let (told, mut value) = oneshot::channel();
    let work = async move {
        // Whoever waits no more needs no value.
        let _ = told.send(future.await);
    };
    wait(timeout, AbortOnDrop(spawn(work))).await?;
    match value.try_recv() {
        Ok(value) => value.map_err(StoreFailure::Store),
        Err(_) => Err(StoreFailure::Broken("it was not run".to_owned())),
    }
}

async fn wait(timeout: Duration, mut running: AbortOnDrop<()>) -> Result<(), StoreFailure> {
    match tokio::time::timeout(timeout, &mut running.0).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(broken)) => Err(StoreFailure::Broken(broken.to_string())),
        Err(_) => Err(StoreFailure::Late(timeout)),
    }
}

pub(crate) fn failed(what: String, failure: StoreFailure) -> Error {
    match failure {
        StoreFailure::Store(source) => Error::new(Kind::Store { what, source }),
        StoreFailure::Late(after) => {
            Error::timeout(format!("the session store's {what} (see `load_timeout`)"), after)
        }
        StoreFailure::Broken(how) => Error::invalid_because(
            format!("session store: the {what} broke down, which is a fault of the store"),
            how,
        ),
    }
}
