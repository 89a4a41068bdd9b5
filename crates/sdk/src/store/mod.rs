//! Sessions whose conversation is kept in a store: what the CLI writes down goes there as it is written, and any machine can go
//! on with it.
//!
//! The CLI works on files all the same. With [`Options::session_store`](crate::Options::session_store) it tells every line that
//! it adds to them, and this module hands those to the store in portions. To go on with a session it writes what the store has
//! into a private directory for the CLI to find, which goes when the process has ended, except for transcripts that the store has
//! not taken by then.

mod backoff;
mod kept;
mod mirror;
mod place;
mod places;
mod resume;
mod seed;
mod source;

pub(crate) use self::kept::{Healed, heal};
pub(crate) use self::mirror::Mirror;
pub(crate) use self::places::Places;
pub(crate) use self::resume::{find, house};
pub(crate) use self::source::{Begins, Source};
