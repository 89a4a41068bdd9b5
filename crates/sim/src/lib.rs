//! Scripted peers.

pub mod api;
pub mod claude;
pub mod directive;
pub mod fault;
pub mod peer;
