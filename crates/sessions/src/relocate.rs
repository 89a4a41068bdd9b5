//! Moves a session to another directory, or to another machine.
//!
//! Claude Code 2.1.330 needs little to resume a session: it searches the id in all projects of its config directory, runs in the
//! directory in which it is started, and informs the model if that is another one than before. The recorded directories matter to
//! lists of sessions, to users who want to resume one where it ran, and to older CLIs, which find a session only in its own project.
//! So both are moved: the files to the new project's directory, and the directories in the records.

pub(crate) mod beside;
mod home;
mod transfer;

pub use transfer::RelocateOptions;
pub(crate) use transfer::{Created, ELSEWHERE, TransferChange};
