//! The reader, the walks and the unions against serde_json.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod decode;
mod repair;
mod walk;
