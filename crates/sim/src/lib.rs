//! Scripted peers.

pub mod api;
pub mod directive;
