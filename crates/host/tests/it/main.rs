//! Hosts with simulated CLIs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod hooks;
mod kills;
mod life;
mod real;
mod store;
