//! The SDK against scripted peers in memory, and against the real CLI.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod callbacks;
mod cancel;
mod examples;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod handover;
mod history;
mod interrupts;
mod mcp;
mod messages;
mod names;
#[cfg(target_os = "linux")]
mod orphans;
mod pool;
mod real;
#[cfg(unix)]
mod replay;
mod retry;
mod simulated;
mod slash;
mod stderr;
mod stores;
mod support;
mod tail;
mod testing;
mod unreaped;
#[cfg(unix)]
mod version;
mod watchdog;
#[cfg(target_os = "linux")]
mod witness;
