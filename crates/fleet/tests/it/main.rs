//! Sessions with simulated CLIs, which share a gate and budgets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod approvals;
mod batch;
mod budget;
mod gate;
mod programs;
mod real;
mod shared_gate;
mod supervise;
