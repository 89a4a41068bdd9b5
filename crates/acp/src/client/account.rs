//! The account of the user, as far as a connection knows it and has reported it to the editor.

use std::sync::{Mutex, PoisonError};

use agent_client_protocol::v1::schema as acp;

#[derive(Debug, Default)]
pub(crate) struct KnownAccount(Mutex<Knowledge>);

#[derive(Debug, Default)]
struct Knowledge {
    status: Option<acp::AuthStatusResponse>,
    /// Whether the editor has sent `auth/status`, and so knows the notification.
    is_wanted: bool,
}

impl KnownAccount {
    /// The status for a request of the editor, if it is known.
    pub(crate) fn wanted(&self) -> Option<acp::AuthStatusResponse> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.is_wanted = true;
        known.status.clone()
    }

    /// The editor gets this status as an answer.
    pub(crate) fn set(&self, status: acp::AuthStatusResponse) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).status = Some(status);
    }

    /// Stores a status. Returns whether it is new for an editor that has asked.
    pub(super) fn learned(&self, status: &acp::AuthStatusResponse) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = known.is_wanted && known.status.as_ref() != Some(status);
        known.status = Some(status.clone());
        is_news
    }
}
