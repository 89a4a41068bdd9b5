//! Frames of the real CLI, in their own and in other orders, and their events.

mod background;
mod call_lifecycle;
mod gauge;
mod kinds;
mod laws;
mod recorded;
pub(crate) mod support;
