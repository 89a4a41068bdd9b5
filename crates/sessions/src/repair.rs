//! Finds and repairs what crashes leave in transcripts.
//!
//! ```no_run
//! # fn main() -> outrigger_sessions::Result<()> {
//! # let sessions = outrigger_sessions::Sessions::from_env()?;
//! # let id = "550e8400-e29b-41d4-a716-446655440000".parse()?;
//! let repair = sessions.find(&id)?.repair()?;
//! for finding in repair.findings() {
//!     println!("{finding}");
//! }
//! if repair.changes_something() {
//!     let mended = repair.in_place()?;
//!     println!("repaired; the old transcript: {}", mended.backup.display());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What the CLI does with each damage
//!
//! Claude Code 2.1.330 resumes nearly everything, and does not report what it ignores. Older versions, and other readers, do not:
//!
//! | damage | the CLI, resuming | repair |
//! |---|---|---|
//! | a call without a result, at the end | answers it with an error of its own | an error result is recorded |
//! | a call without a result, further up | ignores the call | an error result is recorded behind it |
//! | a result without a call | ignores it | removed |
//! | a torn last line | ignores it, and begins a new line behind it | removed |
//! | a line that is no record | ignores it | removed, and whole records in it are kept |
//! | NULs before a record | ignores the record | the NULs are removed |
//! | a torn line with a record behind it, two records on a line | reads some of them | each gets a line |
//! | a parent that is missing | uses the record before it in the file | the same is recorded |
//! | a circle of parents | cuts it | it is cut at its first record |
//! | two records with one uuid | uses the last one | the last one replaces the first |
//! | half a surrogate pair, invalid UTF-8 | reads U+FFFD | U+FFFD is recorded |
//! | an empty file, only NULs | finds no conversation | there is nothing to repair |
//!
//! Everything else, unknown records included, stays as it is, byte for byte.

mod damaged_lines;
mod finding;
mod links;
mod mend;
mod tools;

pub use finding::{Finding, Problem};
pub use mend::{Mended, Repair};
