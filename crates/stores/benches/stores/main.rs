//! How fast the stores take entries and give them back, as ratios in one run.
//!
//! `cargo bench -p outrigger-stores`; servers are started as the tests start them (PostgreSQL, Redis, and SeaweedFS after
//! `cargo xtask set-up`). `OUTRIGGER_BENCH_APPENDS` (300) and `OUTRIGGER_BENCH_MIB` (32) make it larger or smaller. All is below the
//! temporary directory, which has to be on a disk for `fsync` to mean something.
#![cfg_attr(
    target_os = "linux",
    expect(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        reason = "this is a program for a terminal, which ends when something fails"
    )
)]
#![expect(clippy::print_stdout, reason = "this is a program for a terminal")]
#![allow(dead_code, reason = "the servers can do more than is needed here")]

#[cfg(target_os = "linux")]
mod measure;

fn main() {
    #[cfg(target_os = "linux")]
    measure::run();
    #[cfg(not(target_os = "linux"))]
    println!("the servers are only started on Linux");
}
