//! The client with hosts that lose, repeat, stall and lie, over loopback connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what went wrong by failing"
)]

mod answers;
mod encrypted;
mod hostile;
mod real_host;
mod rig;
mod routes;
mod streams;
