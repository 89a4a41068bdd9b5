//! Reads the files that the command line names.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The longest file that is read, in bytes.
const MOST: u64 = 16 * 1024 * 1024;

/// Reads a file with a text, as [`bytes`] does.
///
/// # Errors
/// As [`bytes`], and when it is no UTF-8.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads a file. It may be a pipe, as a shell makes one of `<(command)`: a signal ends the wait for whoever writes.
///
/// # Errors
/// When it cannot be read, or is longer than 16 MiB.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_file_has_a_limit() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read(&path).unwrap(), "text");
        let endless = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
        assert!(read(home.path()).is_err());
        let missing = read(&home.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let long = File::create(&path).unwrap();
        long.set_len(MOST + 1).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
