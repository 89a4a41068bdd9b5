//! The front of a host with simulated CLIs, over loopback connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what went wrong by failing"
)]

mod attacks;
mod audited;
mod depth;
mod documents;
mod encrypted;
mod floods;
mod hooks;
mod resources;
mod rig;
mod sends;
mod strangers;
mod streams;
mod tricks;
mod unread;
