//! The SDK against the real, pinned CLI, with a scripted API on loopback. The binary is fetched through npm when it is not in
//! the cache; a test fails when it can't be had.

#[cfg(target_os = "linux")]
mod account;
mod api;
#[cfg(unix)]
mod background;
#[cfg(target_os = "linux")]
mod callbacks;
#[cfg(target_os = "linux")]
mod causes;
mod cleared;
mod control;
#[cfg(target_os = "linux")]
mod faults;
mod first;
mod flow;
mod hooks;
#[cfg(unix)]
mod interrupt;
mod matrix;
mod mcp;
#[cfg(target_os = "linux")]
mod options;
mod output;
#[cfg(target_os = "linux")]
mod policy;
#[cfg(target_os = "linux")]
mod process;
mod queue;
#[cfg(target_os = "linux")]
mod revive;
pub(crate) mod rig;
mod sessions;
mod steering;
mod tries;
mod turns;
#[cfg(unix)]
mod warm;
mod watchdog;
mod wire16;
mod worktree;
