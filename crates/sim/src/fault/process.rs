//! What only a process can do to itself.

#[cfg(unix)]
pub(super) use crate::peer::faulty::leave as grandchild;

/// Ignores what asks this process to end, from now on.
#[cfg(unix)]
pub(super) fn survive() {
    // It takes a runtime of its own, which may not be made where one runs already.
    let _ = std::thread::spawn(crate::peer::faulty::survive).join();
}

/// Elsewhere there are no such signals.
#[cfg(not(unix))]
pub(super) fn survive() {}

/// Elsewhere there is no stand-in that could be the grandchild.
#[cfg(not(unix))]
pub(super) fn grandchild(_: crate::peer::faulty::Grandchild) {}
