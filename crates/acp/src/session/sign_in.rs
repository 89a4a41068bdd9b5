//! Failed sign-ins that a session notices.

use agent_client_protocol::{Error, ErrorCode};
use outrigger::protocol::Frame;
use outrigger::protocol::inbound::Message;

use super::actor::Actor;
use crate::auth;

impl Actor {
    /// The CLI reports a failed sign-in, such as that of a cloud provider.
    pub(super) fn follow_auth(&self, frame: &Frame) {
        if self.link.is_none()
            && frame.kind() == "auth_status"
            && let Ok(Message::AuthStatus(status)) = frame.decode()
            && status.error.is_some()
        {
            self.client.learned_auth(auth::nobody());
        }
    }

    /// Adds the ways to sign in to an error that asks for it.
    pub(super) fn failed(&self, mut error: Error) -> Error {
        if self.link.is_some() {
            if error.code == ErrorCode::AUTH_REQUIRED {
                // The account is the operator's, and the editor cannot sign in for them.
                error.code = ErrorCode::INTERNAL_ERROR;
            }
            return error;
        }
        if auth::with_methods(&mut error, &self.client) {
            self.client.learned_auth(auth::nobody());
        }
        error
    }
}
