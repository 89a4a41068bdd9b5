//! What the SDK costs beside the pipe that it reads.
//!
//! `cargo bench -p outrigger --bench end_to_end [-- [RUNS] [CASE…]]` runs each case in a process of its own, several times in
//! turn, and prints the minimum and its ratio to the floor of the same run. The peer is another process, so the CPU time is
//! the client's alone. Without arguments: five runs of everything.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]
#![cfg_attr(
    target_os = "linux",
    expect(
        clippy::unwrap_used,
        clippy::panic,
        reason = "its only input is its own output"
    )
)]

#[cfg(target_os = "linux")]
mod bare;
#[cfg(target_os = "linux")]
mod feed;
#[cfg(target_os = "linux")]
mod gauge;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod sessions;

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Ok(what) = std::env::var(feed::VARIABLE) {
        return feed::serve(&what);
    }
    match arguments[..] {
        ["--case", case, runtime] => report::one(case, runtime),
        _ => report::all(&arguments),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("CPU time and memory of one process are measured on Linux only.");
}
