//! The session stores against real servers, files and buckets, and sessions whose stores fail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(target_os = "linux")]
mod bucket;
mod damaged;
mod directory;
#[cfg(target_os = "linux")]
mod gates;
#[cfg(unix)]
mod local;
#[cfg(target_os = "linux")]
mod outages;
mod owners;
#[cfg(target_os = "linux")]
mod postgres;
#[cfg(target_os = "linux")]
mod redis;
mod resent;
#[cfg(target_os = "linux")]
mod servers;
mod sqlite;
