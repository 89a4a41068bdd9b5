//! Events in the words of a protocol version.

pub(crate) mod v1;
