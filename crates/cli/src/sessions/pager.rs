//! Long output: through the person's pager at a terminal, straight everywhere else.

use std::env;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::process::{Child, Command, Stdio};

use crate::exit::{CommandResult, Failure, Status};
use crate::paint::Paint;

/// Where a command writes what it shows.
pub(super) struct Pager;

impl Pager {
    /// Has `write` write to the pager if standard output is a terminal, else to standard output. Whoever quits the pager has seen
    /// enough, which is a success; that nobody reads standard output is not.
    pub(super) fn show(
        straight: bool,
        write: impl FnOnce(&mut dyn Write, Paint) -> Result<(), Failure>,
    ) -> CommandResult {
        let stdout = io::stdout();
        let paint = Paint::on(&stdout);
        if let Some(mut pager) = (!straight && stdout.is_terminal()).then(start).flatten() {
            let written = match pager.stdin.take() {
                Some(stdin) => {
                    let mut out = BufWriter::new(stdin);
                    write(&mut out, paint).and_then(|()| Ok(out.flush()?))
                }
                None => Ok(()),
            };
            // It stays until the person is done with it.
            pager.wait()?;
            return match written {
                Err(failure) if !failure.is_broken_pipe() => Err(failure),
                _ => Ok(Status::Success),
            };
        }
        let mut out = BufWriter::new(stdout.lock());
        write(&mut out, paint)?;
        out.flush()?;
        Ok(Status::Success)
    }
}

/// Starts `$PAGER`, or else `less`, which leaves what fits the screen there. `None` where none is wanted or none starts.
fn start() -> Option<Child> {
    let asked = env::var("PAGER").ok();
    let pager = asked.as_deref().map_or(default(), str::trim);
    if pager.is_empty() || pager == "cat" {
        return None;
    }
    let (shell, flag) = if cfg!(windows) {
        ("cmd", "/C")
    } else {
        ("sh", "-c")
    };
    // The shell would start without it, and end at once with everything that was written to it.
    let program = pager.split_whitespace().next()?;
    if !is_there(program) {
        return None;
    }
    let mut command = Command::new(shell);
    command.args([flag, pager]).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    let pager = command.spawn().ok()?;
    leave_interrupts_to_it();
    Some(pager)
}

/// Ctrl-C is for the pager, which has the terminal: if this process ended by it, the shell would take the terminal from the pager.
fn leave_interrupts_to_it() {
    // To listen is to be spared; nobody has to hear. Should it fail, Ctrl-C ends both.
    #[cfg(unix)]
    let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
    #[cfg(windows)]
    let _ = tokio::signal::windows::ctrl_c();
}

fn default() -> &'static str {
    if cfg!(windows) { "more" } else { "less" }
}

/// Whether a program can be found. On Windows nobody but the shell knows.
fn is_there(program: &str) -> bool {
    if cfg!(windows) {
        return true;
    }
    if program.contains('/') {
        return std::path::Path::new(program).exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
