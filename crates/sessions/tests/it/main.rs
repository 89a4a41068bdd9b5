//! Stored sessions beside the real CLI and the official SDKs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod cli;
mod official;
