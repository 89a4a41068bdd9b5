//! Runs the command.

use std::process::{Command, Output, Stdio};

/// The command, with a clean environment.
pub(crate) fn outrigger(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    for name in [
        "PATH",
        "SystemRoot",
        "HOME",
        "LOCALAPPDATA",
        "OUTRIGGER_CLAUDE_CACHE",
        "XDG_CACHE_HOME",
    ] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    // Times are told in the zone of the machine, and flags come from its owner's configuration.
    command.env("TZ", "UTC").env("XDG_CONFIG_HOME", "/nowhere");
    command
}

/// What a command wrote on stdout, and its exit status; what it wrote on stderr is shown if the test fails.
pub(crate) fn ran(command: &mut Command) -> (String, i32) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it runs");
    eprint!("{}", String::from_utf8_lossy(&stderr));
    let stdout = String::from_utf8(stdout).expect("UTF-8");
    println!("{stdout}");
    (stdout, status.code().expect("an exit code"))
}
