//! The protocol from outside: recorded conversations, what upstream declares, and laws that hold for any input.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod check;
mod decode;
mod framer;
mod frames;
mod heads;
mod hooks;
mod inbound;
mod inventory;
mod laws;
mod mutations;
mod reader;
mod recordings;
mod replies;
mod requests;
mod settings;
mod shared;
mod support;
mod tools;
