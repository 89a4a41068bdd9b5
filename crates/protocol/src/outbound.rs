//! What the CLI reads on its stdin.
//!
//! [`encode_request`], [`encode_raw_request`] and [`encode_line`] make the bytes of a line; [`OutboundLine`] is any line, for reading
//! what was sent.

mod answer;
mod block;
pub mod control;
mod initialize;
mod line;
mod reply;
mod user;

pub use answer::*;
pub use control::*;
pub use initialize::*;
pub use line::*;
pub use reply::*;
pub use user::*;
