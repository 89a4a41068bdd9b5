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
mod real_faults;
#[path = "../it/real/rig.rs"]
#[expect(dead_code, reason = "it is made for many tests")]
mod rig;
mod simulated;
#[path = "../it/support.rs"]
#[expect(dead_code, reason = "it is made for many tests")]
mod support;
#[path = "../it/witness.rs"]
#[expect(dead_code, reason = "it is made for many tests")]
mod witness;
