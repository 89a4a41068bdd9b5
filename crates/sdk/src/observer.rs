//! Those who are told of all that happens in a session, at once.

use outrigger_protocol::{Frame, RawJson};

use crate::outcome::Outcome;

/// Is told of all that happens in a session, at the moment when it happens; for telemetry. See [`Session::observe`].
///
/// The functions are called by the tasks of the session, under its lock: what they do delays the session. They must not wait, and
/// must not call the [`Session`](crate::Session) or its turns, which would wait for ever. Whoever wants to do more reads a
/// [`Tail`](crate::Tail) or [`Session::frames`](crate::Session::frames). An observer that panics is told nothing more; the session
/// goes on.
///
/// [`Session::observe`]: crate::Session::observe
pub trait Observer: Send + Sync {
    /// A prompt is sent to the CLI.
    fn prompt(&self, frame: &Frame);

    /// A frame came from the CLI.
    fn frame(&self, frame: &Frame);

    /// A request of the CLI is answered: with the payload of the reply, or with `None` if the reply is an error.
    ///
    /// The [`Frame::request_id`] of the request is `id`. A withdrawn request gets no reply; the CLI's frame `control_cancel_request`
    /// withdraws it.
    fn replied(&self, id: &str, reply: Option<&RawJson>) {
        let _ = (id, reply);
    }

    /// A turn has ended. If prompts end together, this is called for each of them, with the same outcome.
    fn turn_ended(&self, outcome: &Outcome);

    /// Nothing comes any more.
    fn session_ended(&self);
}
