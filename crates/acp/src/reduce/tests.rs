//! Frames, as the real CLI wrote them and in every other order, to what is told of them.

mod background;
mod calls;
mod gauge;
mod kinds;
mod laws;
mod recorded;
pub(crate) mod support;
