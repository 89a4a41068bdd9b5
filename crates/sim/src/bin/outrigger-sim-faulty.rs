//! A stand-in for `claude` that misbehaves on command; see [`outrigger_sim::peer::faulty`].

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    outrigger_sim::peer::faulty::main()
}

/// Its faults need Unix.
#[cfg(not(unix))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
