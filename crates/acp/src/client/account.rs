//! Who is signed in, as far as it is known on a connection, and what the editor was told of it.

use std::sync::{Mutex, PoisonError};

use agent_client_protocol::v1::schema as acp;

/// What is known of it on a connection, and what the editor was told.
#[derive(Debug, Default)]
pub(crate) struct KnownAccount(Mutex<Knowledge>);

#[derive(Debug, Default)]
struct Knowledge {
    status: Option<acp::AuthStatusResponse>,
    /// Whether the editor has asked, and so knows the notification.
    is_wanted: bool,
}

impl KnownAccount {
    /// The editor asks: what is known, if anything is.
    pub(crate) fn wanted(&self) -> Option<acp::AuthStatusResponse> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.is_wanted = true;
        known.status.clone()
    }

    /// The editor is being answered with this.
    pub(crate) fn set(&self, status: acp::AuthStatusResponse) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).status = Some(status);
    }

    /// Something was learned. Returns whether that is news to an editor that has asked.
    pub(super) fn learned(&self, status: &acp::AuthStatusResponse) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = known.is_wanted && known.status.as_ref() != Some(status);
        known.status = Some(status.clone());
        is_news
    }
}
