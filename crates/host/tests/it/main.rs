//! Hosts with simulated CLIs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod clock;
mod deferred;
mod hooks;
mod kills;
mod life;
mod limits;
mod place;
#[cfg(target_os = "linux")]
mod proofs;
mod real;
mod real_deferred;
mod spares;
mod store;
mod stored;
mod workspaces;
