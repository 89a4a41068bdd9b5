//! What a collector of OpenTelemetry receives of sessions.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod collector;
mod links;
mod starts;
mod table;
mod turns;
