//! Reads the files that the command line names.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The longest file that is read, in bytes.
const MOST: u64 = 16 * 1024 * 1024;

/// Reads a regular file with a text, as [`bytes`] does.
///
/// # Errors
/// As [`bytes`], and when it is no UTF-8.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads a regular file. A FIFO keeps its reader waiting until somebody writes, and a device may never end.
///
/// # Errors
/// When it cannot be read, is something else, or is longer than 16 MiB.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    refuse_pipe(path)?;
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is longer than {MOST} bytes"),
        ));
    }
    Ok(bytes)
}

/// Refuses what is neither a file nor a directory; of that, the system tells what is wrong.
///
/// # Errors
/// When it is such a thing, or is not there.
pub(crate) fn refuse_pipe(path: &Path) -> io::Result<()> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_file() || kind.is_dir() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is no regular file, but a device, a FIFO or a socket",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn only_regular_files_are_read() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read(&path).unwrap(), "text");
        let pipe = home.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for wrong in [Path::new("/dev/zero"), &pipe] {
            assert_eq!(read(wrong).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        assert!(read(home.path()).is_err());
        let missing = read(&home.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let long = File::create(&path).unwrap();
        long.set_len(MOST + 1).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
