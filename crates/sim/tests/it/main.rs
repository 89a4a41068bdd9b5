//! The scripted peers against the real thing.

mod executable;
mod real_cli;
