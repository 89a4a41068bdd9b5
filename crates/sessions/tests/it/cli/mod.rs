//! Sessions that the real CLI wrote, changed at rest, and resumed by the real CLI.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod lease;
mod relocate;
mod repair;
mod rig;
mod write;
