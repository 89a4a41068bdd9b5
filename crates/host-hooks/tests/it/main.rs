//! Webhooks and schedules of hosts with a log on disk.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod delivery;
mod kills;
mod receiver;
mod rig;
mod schedules;
mod webhooks;
