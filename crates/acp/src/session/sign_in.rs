//! Whether the user is signed in, as far as a session learns of it.

use agent_client_protocol::Error;
use outrigger::protocol::Frame;
use outrigger::protocol::inbound::Message;

use super::actor::Actor;
use crate::auth;

impl Actor {
    /// A sign-in of the CLI's own (of a cloud, for one) that failed.
    pub(super) fn follow_auth(&self, frame: &Frame) {
        if frame.kind() == "auth_status"
            && let Ok(Message::AuthStatus(status)) = frame.decode()
            && status.error.is_some()
        {
            self.client.learned_auth(auth::nobody());
        }
    }

    /// Something failed. If it was for want of a sign-in, the error says how to sign in.
    pub(super) fn failed(&self, mut error: Error) -> Error {
        if auth::with_methods(&mut error, &self.client) {
            self.client.learned_auth(auth::nobody());
        }
        error
    }
}
