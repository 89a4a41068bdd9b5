//! The SDK against scripted peers in memory, and against the real CLI.

mod simulated;
mod support;
