//! Whose a session is: one process at a time drives it, and whoever lost it stops.
//!
//! With [`Options::lease`](crate::Options::lease) a session's id is claimed before the CLI is started, and the claim is kept up
//! while it lives: on disk, beside the CLI's own files, or in the session store if that has leases. `claim.rs` makes the claim,
//! `own.rs` has it.

mod acquire;
mod on_disk;
mod renewal;

pub(crate) use self::acquire::claim;
pub(crate) use self::renewal::Ownership;
