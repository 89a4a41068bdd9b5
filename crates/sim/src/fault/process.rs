//! What only a process can do to itself.

#[cfg(unix)]
pub(super) use crate::peer::faulty::{leave as grandchild, survive};

/// Elsewhere there are no such signals.
#[cfg(not(unix))]
pub(super) fn survive() {}

/// Elsewhere there is no stand-in that could be the grandchild.
#[cfg(not(unix))]
pub(super) fn grandchild(_: crate::peer::faulty::Grandchild) {}
