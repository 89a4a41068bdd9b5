//! The real `claude` for tests: its version, its download, and a sandbox to run it in.
//!
//! * [`pin`]: the version that this workspace is tested with, with the packages' checksums.
//! * [`Fetch`]: has the `npm` client download that package, checks it and keeps the executable in a cache.
//! * [`Sandbox`]: a home, a configuration and a project of its own, and an environment with nothing else in it.
//!
//! `outrigger_sim::claude` has the same, and drives the pipes of such a CLI. This crate stands alone so that
//! `cargo xtask` can fetch the CLI without building the protocol.

mod fetch;
mod pin;
mod sandbox;

pub use fetch::{Fetch, FetchError, FetchFailure, Progress, TERMS, executable};
pub use pin::{Package, Pin, Platform, pin};
pub use sandbox::{DUMMY_KEY, LEADS_ELSEWHERE, Sandbox};
