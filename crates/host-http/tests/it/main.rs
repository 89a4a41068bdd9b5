//! The front with a host in memory, over loopback connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what went wrong by failing"
)]

mod attacks;
mod encrypted;
mod rig;
mod sends;
mod streams;

#[path = "../../examples/scripted_host/scripted.rs"]
#[allow(dead_code, unreachable_pub, reason = "the example uses what the tests do not")]
mod scripted;
