//! What must hold whatever comes in, for inputs that a machine makes up.
//!
//! Each target is a function of bytes that panics when a law is broken. `cargo test` runs it over the inputs in `corpus/` (found
//! interesting before) and `crashes/` (broke a law once); `cargo xtask fuzz` has libFuzzer look for
//! more, elsewhere each time without `--seed`.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a law that does not hold is told by a panic"
)]

pub mod codec;
pub mod seeds;
pub mod session;
