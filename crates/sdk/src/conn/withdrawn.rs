//! Whether a CLI request was withdrawn.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// A [`CancellationToken`] that is created on first use, since most requests never need it. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Withdrawn(Arc<OnceLock<CancellationToken>>);

impl Withdrawn {
    pub(crate) fn token(&self) -> &CancellationToken {
        self.0.get_or_init(CancellationToken::new)
    }

    pub(crate) fn cancel(&self) {
        self.token().cancel();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.get().is_some_and(CancellationToken::is_cancelled)
    }
}
