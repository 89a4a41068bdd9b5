//! The scripted peers against the real thing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(feature = "api-record")]
mod api_recorded;
mod api_script;
mod executable;
#[cfg(unix)]
mod players;
mod real_cli;
mod scripts;
