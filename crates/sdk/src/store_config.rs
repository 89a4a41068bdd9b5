//! The settings of a session store.

mod bounded_call;

use std::sync::Arc;
use std::time::Duration;

use outrigger_sessions::store::SessionStore;

pub(crate) use self::bounded_call::{StoreFailure, call, failed};

/// How long the store may take over one call of a resume unless another time is set.
const LOAD: Duration = Duration::from_secs(60);

/// How long a turn's outcome waits for the store unless another time is set.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the end of a session waits for the store unless another time is set.
const GRACE: Duration = Duration::from_secs(30);

/// When what the CLI writes down is handed to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum StoreFlush {
    /// At the end of each turn and of the session, and when more than 500 entries or 1 MiB wait: one append for each
    /// transcript then.
    #[default]
    Batched,
    /// As it comes: an append for each frame of the CLI, which is about ten a second while it works.
    Eager,
}

/// What of the options is about a store.
#[derive(Clone)]
pub(crate) struct Keeping {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) flush: StoreFlush,
    pub(crate) load_timeout: Duration,
    pub(crate) patience: Duration,
    pub(crate) grace: Duration,
}

/// The settings; without a store, the rest has no effect.
#[derive(Clone, Default)]
pub(crate) struct StoreOptions {
    pub(crate) store: Option<Arc<dyn SessionStore>>,
    pub(crate) flush: Option<StoreFlush>,
    pub(crate) load_timeout: Option<Duration>,
    pub(crate) patience: Option<Duration>,
    pub(crate) grace: Option<Duration>,
}

impl StoreOptions {
    pub(crate) fn keeping(&self) -> Option<Keeping> {
        Some(Keeping {
            store: Arc::clone(self.store.as_ref()?),
            flush: self.flush.unwrap_or_default(),
            load_timeout: self.load_timeout.unwrap_or(LOAD),
            patience: self.patience.unwrap_or(PATIENCE),
            grace: self.grace.unwrap_or(GRACE),
        })
    }

    pub(crate) fn is_set(&self) -> bool {
        self.store.is_some()
    }
}
