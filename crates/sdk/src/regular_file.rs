//! Reads files, and nothing that keeps a reader waiting or never ends: a name in a directory of others may be a FIFO or a device.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// Opens what is there without waiting. A FIFO that nobody writes to would block already when it is opened.
pub(crate) fn open_at_once(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    options.open(path)
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// When it cannot be read; [`ErrorKind::InvalidInput`] when it is something else, [`ErrorKind::FileTooLarge`] when it is longer.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut content = Vec::new();
    // The length that the system reports is 0 for files that are made while they are read, and may have changed.
    file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        let message = format!("it has more than {most} bytes, which is the limit");
        return Err(Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(content)
}

/// Checks that a file can be opened for reading, and is a regular one.
///
/// # Errors
/// When it cannot; [`ErrorKind::InvalidInput`] when it is something else.
pub(crate) fn check(path: &Path) -> Result<()> {
    open_regular(path).map(drop)
}

fn open_regular(path: &Path) -> Result<File> {
    let file = open_at_once(path)?;
    let kind = file.metadata()?.file_type();
    // Of a directory, reading tells what is wrong.
    if kind.is_file() || kind.is_dir() {
        return Ok(file);
    }
    let message = "it is no regular file, but a device, a FIFO or a socket";
    Err(Error::new(ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_what_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"four");
        assert_eq!(read(&path, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(read(directory.path(), 4).is_err());
        // A file without a length that the system would report.
        #[cfg(target_os = "linux")]
        assert_eq!(
            read(Path::new("/proc/self/status"), 3).unwrap_err().kind(),
            ErrorKind::FileTooLarge
        );
    }

    #[test]
    #[cfg(unix)]
    fn what_never_ends_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        for path in [Path::new("/dev/null"), &fifo] {
            assert_eq!(read(path, 4).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }
}
