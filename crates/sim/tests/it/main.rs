//! The scripted peers against the real thing.

mod real_cli;
