//! An end by a signal.

#[cfg(unix)]
use std::os::unix::process::CommandExt as _;
#[cfg(unix)]
use std::process::{Command, ExitCode};

/// The argument that makes this program end by the signal whose number is the next one.
#[cfg(unix)]
const DIE: &str = "--die-by";

/// Ends this process by a signal, and comes back if the system refuses.
#[cfg(unix)]
pub(crate) fn die(number: i32) {
    // The runtime's handlers stay as long as the program does. Begun anew, the same process has none.
    if let Ok(program) = std::env::current_exe() {
        let _ = Command::new(program).arg(DIE).arg(number.to_string()).exec();
    }
}

/// Only Unix has signals.
#[cfg(not(unix))]
pub(crate) fn die(_: i32) {}

/// Ends by a signal if the command line has one; else does nothing and returns `None`.
#[cfg(unix)]
pub(crate) fn be_dying() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next()? != DIE {
        return None;
    }
    let number = arguments
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or_default();
    if let Some(signal) = rustix::process::Signal::from_named_raw(number) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    }
    // One that ends no process, or none at all.
    Some(ExitCode::from(128_u8.wrapping_add(number as u8)))
}
