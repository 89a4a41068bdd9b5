//! What to start and how.

mod auth;
mod secret;

pub use auth::{Auth, AuthMismatch};
pub use secret::Secret;
