//! What `outrigger::testing` gives to programs, used as a program would.

mod cassettes;
mod chaos;
mod exchanged;
mod real;
#[cfg(target_os = "linux")]
mod real_faults;
mod simulated;
