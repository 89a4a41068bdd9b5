//! What `outrigger::testing` gives to programs, used as a program would.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod cassettes;
mod chaos;
mod real;
#[path = "../it/real/rig.rs"]
#[allow(dead_code, reason = "it is made for many tests")]
mod rig;
mod simulated;
