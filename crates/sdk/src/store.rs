//! Sessions in a session store: a mirror copies what the CLI writes to its transcripts, and any machine can resume the session.
//!
//! The CLI still works on files. With [`Options::session_store`](crate::Options::session_store) it reports every line that it adds
//! to them, and this module appends the lines to the store in batches. To resume a session, it writes the store's entries into a
//! private directory for the CLI. The directory is removed when the process has ended, except for transcripts that the store
//! lacks.

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
