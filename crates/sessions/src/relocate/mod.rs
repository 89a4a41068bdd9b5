//! Taking a session to another directory, or to another machine.
//!
//! What Claude Code 2.1.330 needs for resuming is little: it looks for the id in all projects of its config directory, runs in the
//! directory that it is started in, and tells the model when that is another one than before. The recorded directories matter to
//! those who list sessions, who want to resume one where it ran, and to older CLIs, which find a session only in its own project.
//! So both are moved: the files into the new project's directory, and the directories in the records.

pub(crate) mod beside;
mod home;
mod transfer;

pub use transfer::RelocateOptions;
pub(crate) use transfer::{Change, Created, ELSEWHERE};
