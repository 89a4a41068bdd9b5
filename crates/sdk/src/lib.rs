//! Drive the Claude Code CLI from Rust.
