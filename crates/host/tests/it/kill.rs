//! Hosts that are killed.
