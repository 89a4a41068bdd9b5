//! The agent as an editor sees it: lines in, lines out. Each line of both directions is validated by the protocol's JSON Schema.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod auth;
mod buffers;
mod cancels;
mod continued;
mod draft;
mod editor;
mod ends;
mod faults;
#[cfg(all(feature = "host", unix))]
mod hosted;
mod limits;
#[cfg(unix)]
mod meta;
mod official;
#[cfg(target_os = "linux")]
mod openings;
mod own_turns;
#[cfg(target_os = "linux")]
mod plans;
mod process;
mod prompts;
mod real;
mod real_choices;
mod real_stored;
mod replays;
mod requests;
mod reviews;
mod rewind;
mod schema;
mod servers;
mod sessions;
mod spare;
mod stored;
mod subagents;
mod tools;
