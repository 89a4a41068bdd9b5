//! Sessions whose conversation is kept in a store: what the CLI writes down goes there as it is written, and any machine can go
//! on with it.
//!
//! The CLI works on files all the same. With [`Options::session_store`](crate::Options::session_store) it tells every line that
//! it adds to them, and this module hands those to the store in portions. To go on with a session it writes what the store has
//! into a private directory for the CLI to find, which goes when the process has ended, except for transcripts that the store has
//! not taken by then.

mod backoff;
mod catch_up;
mod mirror;
mod resume;
mod resume_dir;
mod seed;
mod source;
mod transcripts;

pub(crate) use self::catch_up::{Healed, heal};
pub(crate) use self::mirror::Mirror;
pub(crate) use self::resume::{find, house};
pub(crate) use self::source::{Begins, Source};
pub(crate) use self::transcripts::Places;
