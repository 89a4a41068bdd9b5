//! Leases: one process at a time drives a session, and stops when it loses the lease.
//!
//! With [`Options::lease`](crate::Options::lease) the SDK acquires a lease on the session's id before the CLI starts, and renews
//! it while the session lives: on disk, beside the CLI's own files, or in the session store if that has leases. `acquire.rs`
//! acquires it, `renewal.rs` renews it.

mod acquire;
mod on_disk;
mod renewal;

pub(crate) use self::acquire::{claim, claim_for, for_spare};
pub(crate) use self::renewal::Ownership;
