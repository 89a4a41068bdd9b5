//! The place of the CLI that is started ahead, for the session that the editor opens next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema as acp;
use outrigger::{Options, Spare};
use tokio::sync::{mpsc, oneshot};

use crate::ask::{Ask, Forms, Modes};

/// A spare, and who answers it once it is a session.
pub(crate) struct WarmSpare {
    pub(crate) id: acp::SessionId,
    pub(crate) spare: Spare,
    /// What it was started with.
    pub(crate) options: Options,
    pub(crate) modes: Modes,
    pub(crate) asks: mpsc::Receiver<Ask>,
    pub(crate) forms: Forms,
}

/// Whoever wants the spare says where it is to go.
pub(crate) type SpareRequest = oneshot::Sender<WarmSpare>;

/// The place of the spare. Its task has it, and ends it when the place is filled by another or cleared.
#[derive(Default)]
pub(crate) struct SpareSlot {
    filled: Mutex<Option<oneshot::Sender<SpareRequest>>>,
    given_up: AtomicBool,
}

impl SpareSlot {
    /// Makes room for a spare; whoever starts it waits for the wish for it. `None` if none is to be started any more, or one is there.
    pub(crate) fn fill(&self) -> Option<oneshot::Receiver<SpareRequest>> {
        let mut place = self.place();
        let is_filled = place.as_ref().is_some_and(|place| !place.is_closed());
        if self.given_up.load(Ordering::Acquire) || is_filled {
            return None;
        }
        let (sender, wishes) = oneshot::channel();
        *place = Some(sender);
        Some(wishes)
    }

    fn place(&self) -> MutexGuard<'_, Option<oneshot::Sender<SpareRequest>>> {
        self.filled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No spare is started any more: one did not become a session, and the next would not either, be it for the CLI's sake or for
    /// the project's.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
        self.clear();
    }

    /// Ends the spare, if there is one.
    pub(crate) fn clear(&self) {
        self.place().take();
    }

    /// The spare. One that is being started is waited for: it is ahead of one that would be started now.
    pub(crate) async fn take(&self) -> Option<WarmSpare> {
        let place = self.place().take()?;
        let (wish, warm) = oneshot::channel();
        place.send(wish).ok()?;
        warm.await.ok()
    }
}
