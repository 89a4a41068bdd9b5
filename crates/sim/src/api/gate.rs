//! Holds replies open until the test lets them go on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::error::WaitError;

/// A named place in replies where the server stops until it is let through.
///
/// A gate starts closed. Replies that reach it wait in order of arrival; [`release`](Self::release) lets one through,
/// now or when it arrives, and [`open`](Self::open) lets everything through from now on. A reply whose client goes away
/// while it waits stops waiting and uses up no release. Clones are the same gate.
#[derive(Clone)]
pub struct Gate {
    name: Arc<str>,
    arrivals: watch::Sender<u64>,
    passes: Arc<Semaphore>,
}

impl Gate {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            arrivals: watch::Sender::new(0),
            passes: Arc::new(Semaphore::new(0)),
        }
    }

    /// Lets one reply through: the one that has waited longest, or the next to arrive.
    pub fn release(&self) {
        self.passes.add_permits(1);
    }

    /// Lets everything through, now and later. A gate that was opened stays open.
    pub fn open(&self) {
        self.passes.close();
    }

    /// How many replies have reached this gate so far, those that went on included.
    pub fn arrivals(&self) -> u64 {
        *self.arrivals.borrow()
    }

    /// Waits until `count` replies in all have reached this gate.
    ///
    /// # Errors
    /// When that does not happen `within` the given time.
    pub async fn reached(&self, count: u64, within: Duration) -> Result<(), WaitError> {
        let mut arrivals = self.arrivals.subscribe();
        let arrived = tokio::time::timeout(within, arrivals.wait_for(|arrived| *arrived >= count)).await;
        match arrived {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(WaitError {
                what: format!("{count} replies to reach the gate {:?}", self.name),
                within,
                seen: format!("{} did", self.arrivals()),
            }),
        }
    }

    /// Stops here until let through.
    pub(super) async fn pass(&self) {
        self.arrivals.send_modify(|arrivals| *arrivals += 1);
        // An error means that the gate is open.
        if let Ok(permit) = self.passes.acquire().await {
            permit.forget();
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("name", &self.name)
            .field("arrivals", &self.arrivals())
            .field("open", &self.passes.is_closed())
            .finish()
    }
}
