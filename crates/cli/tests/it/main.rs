//! Tests of the `outrigger` command from the outside.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may end in a panic, and shows what it saw"
)]

mod acp;
#[cfg(unix)]
mod asking;
#[cfg(unix)]
mod bars;
mod batch;
#[cfg(unix)]
mod cassette;
mod chat;
#[cfg(unix)]
mod completions;
#[cfg(unix)]
mod config;
mod demo;
#[cfg(unix)]
mod display;
mod doctor;
#[cfg(unix)]
mod edited;
#[cfg(unix)]
mod flags;
#[cfg(unix)]
mod follow;
mod kept;
#[cfg(unix)]
mod lists;
#[cfg(unix)]
mod mock_api;
#[cfg(unix)]
mod pipes;
mod policy;
mod protocol;
#[cfg(unix)]
mod remote;
#[cfg(unix)]
mod resumed;
mod rig;
mod run;
mod serve;
mod sessions;
mod settings;
#[cfg(unix)]
mod shells;
mod stored;
mod telemetry;
#[cfg(unix)]
mod terminal;
mod tool;
mod top;
#[cfg(unix)]
mod waiting;
