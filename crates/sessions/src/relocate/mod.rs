//! Taking a session to another directory, or to another machine.

pub(crate) mod beside;
