//! The slot for the spare: a CLI that is started ahead for the editor's next session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema as acp;
use outrigger::{Options, Spare};
use tokio::sync::{mpsc, oneshot};

use crate::ask::{EditorQuestion, Forms, Modes, QuestionCancel};

/// A spare, with what its session needs.
pub(crate) struct WarmSpare {
    pub(crate) id: acp::SessionId,
    pub(crate) spare: Spare,
    /// The options that the spare was started with.
    pub(crate) options: Options,
    pub(crate) modes: Modes,
    pub(crate) asks: mpsc::Receiver<EditorQuestion>,
    pub(crate) forms: Forms,
    pub(crate) questions: QuestionCancel,
}

/// A request for the spare: the channel that it is sent to.
pub(crate) type SpareRequest = oneshot::Sender<WarmSpare>;

/// The slot for the spare. The spare's own task holds the spare, and ends it when the slot is cleared or filled again.
#[derive(Default)]
pub(crate) struct SpareSlot {
    filled: Mutex<Option<oneshot::Sender<SpareRequest>>>,
    given_up: AtomicBool,
}

impl SpareSlot {
    /// Reserves the slot for a new spare, and returns where a request for it arrives. `None` if there is one already, or no more are
    /// started.
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

    /// Starts no more spares: one could not become a session, for a reason in the CLI or the project that the next would share.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
        self.clear();
    }

    pub(crate) fn clear(&self) {
        self.place().take();
    }

    /// Takes the spare. Waits for one that is still starting: it is ahead of a new process.
    pub(crate) async fn take(&self) -> Option<WarmSpare> {
        let place = self.place().take()?;
        let (wish, warm) = oneshot::channel();
        place.send(wish).ok()?;
        warm.await.ok()
    }
}
