//! Sessions that the real CLI wrote, changed at rest, and resumed by the real CLI.

mod lease;
mod relocate;
mod repair;
mod rig;
mod write;
