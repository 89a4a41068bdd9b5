//! Changing sessions at rest: titles, tags, the archive, removal, forks, export and import.
//!
//! A transcript is only ever appended to, or replaced as a whole: what reads it meanwhile, the CLI included, finds whole records.
//! The CLI opens the file anew for each record that it writes, so it may go on while something here is done to its session. Nothing
//! here creates a session that is not there, but for [forks](crate::SessionFile::fork) and imports, which get an id of their own.
//! Files that are written can be read by their owner only.

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
