//! Drive the Claude Code CLI from Rust.

pub mod discover;
pub mod env;
pub mod options;
