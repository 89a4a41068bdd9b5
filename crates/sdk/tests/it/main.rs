//! The SDK against scripted peers in memory, and against the real CLI.

mod real;
mod simulated;
mod support;
