//! Finding and mending what crashes leave in transcripts.
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
//!     println!("mended; as it was: {}", mended.backup.display());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What the CLI makes of each damage
//!
//! Claude Code 2.1.330 resumes nearly everything, and says nothing of what it leaves out. Older ones, and other readers, do not:
//!
//! | damage | the CLI, resuming | mended |
//! |---|---|---|
//! | a call without a result, at the end | answers it with an error of its own | an error result is recorded |
//! | a call without a result, further up | leaves the call out | an error result is recorded behind it |
//! | a result without a call | leaves it out | taken out |
//! | a torn last line | leaves it out, and begins a new line behind it | taken out |
//! | a line that is no record | leaves it out | taken out, and whole records in it are kept |
//! | NULs before a record | leaves the record out | the NULs are taken out |
//! | a torn line with a record behind it, two records on a line | takes some of them | each gets a line |
//! | a parent that is missing | takes the record before it in the file | the same is recorded |
//! | a circle of parents | cuts it | it is cut at its first record |
//! | two records with one uuid | takes the last one | that takes the place of the first |
//! | half a surrogate pair, bytes that are no UTF-8 | reads U+FFFD | U+FFFD is recorded |
//! | an empty file, only NULs | finds no conversation | there is nothing to mend |
//!
//! Everything else, unknown records included, stays as it is, byte for byte.

mod finding;
mod lines;
mod links;
mod mend;
mod tools;

pub use finding::{Finding, Problem};
pub use mend::{Mended, Repair};
