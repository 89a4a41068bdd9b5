//! A program that a test writes and runs.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that a test runs at once: a file with this text that may be executed.
///
/// A process of its own writes the file. A file that this process has open for writing is open in each child as well that another
/// test starts at that moment, until the child becomes its program, and the system refuses to run a file that anybody can write
/// to: "text file busy".
///
/// # Errors
/// When the file cannot be written.
pub fn script(path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> io::Result<()> {
    let mut shell = Command::new("/bin/sh")
        .args(["-c", r#"cat > "$1" && chmod 755 "$1""#, "sh"])
        .arg(path.as_ref())
        .stdin(Stdio::piped())
        .spawn()?;
    let written = shell
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(text.as_ref()));
    let status = shell.wait()?;
    written?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("the shell that writes it: {status}")))
    }
}
