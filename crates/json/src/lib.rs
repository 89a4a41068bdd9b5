//! JSON as it came: raw values, open unions, one quick decoder, and walks over text that is not decoded.
//!
//! For a protocol that grows faster than the types of its reader. What a type does not know is kept as the text it came in, and
//! counted ([`drift`]). There is nothing about a certain protocol here.
//!
//! Everything accepts the same texts as serde_json, which the tests compare it with.

pub mod decode;
pub mod drift;
mod raw;
pub mod repair;
pub mod scan;
pub mod walk;
pub mod wire_enum;

pub use raw::RawJson;
