//! Sessions that live on a host: this agent is one of their clients.
//!
//! A [`HostLink`] is a transport of the SDK: what the SDK writes for the CLI goes to the host, and what the log of the host says comes back as the
//! frames of a CLI. So all that is above a transport is the same for both kinds of sessions.

#[cfg(not(feature = "host"))]
mod absent;
#[cfg(feature = "host")]
mod link;
#[cfg(feature = "host")]
mod log_frames;
#[cfg(feature = "host")]
mod seat;

#[cfg(not(feature = "host"))]
pub(crate) use self::absent::{Host, HostLink, HostSession};
#[cfg(feature = "host")]
pub(crate) use self::link::HostLink;
#[cfg(feature = "host")]
pub(crate) use self::seat::{Host, HostSession};
