//! Ctrl-C and its kin while something takes its time.

use std::process;
use std::sync::{Arc, OnceLock};

use tokio::task::JoinHandle;

use crate::exit::Status;
use crate::signals::{Signal, Signals};

/// Listens for signals until it is dropped. Afterwards nobody does, and they change nothing: what is left then is short.
#[derive(Debug)]
pub(super) struct Interrupt {
    came: Arc<OnceLock<Signal>>,
    listener: Option<JoinHandle<()>>,
}

impl Interrupt {
    /// From now on the first signal is a wish, which is to be asked for; the second one ends the process.
    pub(super) fn heed() -> Self {
        Self::listen(true)
    }

    /// From now on a signal ends the process: for what waits for a person.
    pub(super) fn end_at_once() -> Self {
        Self::listen(false)
    }

    fn listen(is_wish: bool) -> Self {
        let came = Arc::new(OnceLock::new());
        // Where they cannot be caught, they end the process as ever.
        let listener = Signals::catch().ok().map(|mut signals| {
            let came = came.clone();
            tokio::spawn(async move {
                let first = signals.next().await;
                if is_wish && came.set(first).is_ok() {
                    signals.next().await;
                }
                process::exit(first.status() as i32);
            })
        });
        Self { came, listener }
    }

    /// The exit status of the signal that came, if one did.
    pub(super) fn status(&self) -> Option<Status> {
        self.came.get().map(|signal| signal.status())
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}
