//! The SDK against the real, pinned CLI, with a scripted API on loopback. The binary is fetched through npm when it is not in
//! the cache; a test fails when it can't be had.

mod background;
mod control;
mod first;
mod flow;
mod interrupt;
mod process;
mod queue;
mod rig;
mod steering;
mod turns;
