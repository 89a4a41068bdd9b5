//! The SDK against the real, pinned CLI, with a scripted API on loopback. The binary is fetched through npm when it is not in
//! the cache; a test fails when it can't be had.

mod control;
mod first;
#[cfg(target_os = "linux")]
mod process;
mod rig;
mod steering;
