//! Opens files of sessions. All of them are opened here, so that no special file with such a name blocks a reader.
//!
//! Any user who can write to a project's directory can put a FIFO, a socket, a device or a directory in the place of a transcript.
//! Opening a FIFO blocks until a process writes to it, and a device may never end.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// The largest small file, such as a title or the metadata of a subagent.
const SMALL: u64 = 16 << 20;

/// Opens a regular file to read it. Links are followed.
///
/// # Errors
/// When it cannot be opened; [`ErrorKind::InvalidInput`] when it is something else.
pub(crate) fn open(path: &Path) -> Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens an existing regular file. Options for creating or truncating would act before its type is known, so callers
/// must not set them.
pub(crate) fn open_with(options: &mut OpenOptions, path: &Path) -> Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        // Both mean nothing to a regular file.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed());
    }
    regular(options.open(path)?)
}

fn regular(file: File) -> Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = if kind.is_dir() {
        "it is no regular file, but a directory"
    } else {
        "it is no regular file, but a device, a FIFO or a socket"
    };
    Err(Error::new(ErrorKind::InvalidInput, what))
}

/// Reads a small file as a whole.
///
/// # Errors
/// As [`open`]; [`ErrorKind::FileTooLarge`] when it has more than 16 MiB.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = open(path)?.take(SMALL + 1).read_to_end(&mut bytes)?;
    if length as u64 > SMALL {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// As [`read`], a text.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// All of these have to come back: nobody writes to the FIFO.
    #[cfg(unix)]
    #[test]
    fn only_a_regular_file_is_opened_and_nothing_waits() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("file"), "text").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        fs::create_dir(path("directory")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(path("fifo")).status();
        assert!(made.unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("device")).unwrap();

        for name in ["file", "link"] {
            assert_eq!(read_text(&path(name)).unwrap(), "text", "{name}");
        }
        for name in ["directory", "fifo", "device"] {
            let error = open(&path(name)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
        }
        for name in ["directory", "fifo", "socket", "device", "gone"] {
            assert!(open(&path(name)).is_err(), "{name}");
            let mut options = OpenOptions::new();
            assert!(
                open_with(options.read(true).append(true), &path(name)).is_err(),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_too_long_for_a_small_file_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        File::create(&path).unwrap().set_len(SMALL + 1).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    /// Whoever opens a file by another way brings the trap back.
    #[test]
    fn no_other_module_opens_files_to_read_them() {
        fn sources(dir: &Path, into: &mut Vec<std::path::PathBuf>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() && name != "tests" && name != "conformance" {
                    sources(&path, into);
                } else if name.ends_with(".rs") && !name.contains("test") {
                    into.push(path);
                }
            }
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut all = Vec::new();
        sources(&root, &mut all);
        assert!(all.len() > 50, "{all:?}");
        let mut found = Vec::new();
        for path in all.into_iter().filter(|path| !path.ends_with("file.rs")) {
            let text = fs::read_to_string(&path).unwrap();
            let (code, _) = text.split_once("mod tests {").unwrap_or((&text, ""));
            for (nth, line) in code.lines().enumerate() {
                let opens = ["File::open(", "fs::read(", "fs::read_to_string(", "fs::copy("];
                // Directories are opened to sync them, and the system's own files are no sessions'.
                let is_known = line.contains("File::open(dir)")
                    || line.contains("\"/proc/")
                    || line.contains("let read =");
                if !is_known && opens.iter().any(|call| line.contains(call)) {
                    found.push(format!("{}:{}: {line}", path.display(), nth + 1));
                }
            }
        }
        assert!(found.is_empty(), "{found:#?}");
    }
}
