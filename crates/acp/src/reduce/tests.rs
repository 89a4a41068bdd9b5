//! Frames of the real CLI, in their own and in other orders, and their events.

mod background;
mod calls;
mod gauge;
mod kinds;
mod laws;
mod recorded;
pub(crate) mod support;
