//! Changes stored sessions: titles, tags, the archive, removal, forks, export and import.
//!
//! A transcript is only ever appended to, or replaced as a whole: readers, including the CLI, find whole records.
//! The CLI opens the file again for each record that it writes, so it may go on while a function here changes its session. No function
//! here creates a missing session, except [forks](crate::SessionFile::fork) and imports, which get an id of their own.
//! Only their owner can read the files that are written.

pub(crate) mod append;
mod archive;
mod delete;
mod export;
mod fork;
mod import;
mod lineage;
mod mark;
mod plan;
mod tag;
#[cfg(test)]
pub(crate) mod testing;

pub use fork::ForkOptions;
pub use import::Imported;
pub use tag::clean_tag;
