//! Scripted peers.

pub mod directive;
