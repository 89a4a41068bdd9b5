//! A copy of a directory, so that what one run does there is not there in the next.

use std::path::Path;
use std::{fs, io};

/// Copies a directory with all that is in it, but for the copy itself. Links stay links.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    copy_but(from, to, &to.canonicalize()?)
}

fn copy_but(from: &Path, to: &Path, copy: &Path) -> io::Result<()> {
    if from.canonicalize()? == copy {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, source, target) = (entry.file_type()?, entry.path(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_but(&source, &target, copy)?;
        } else if kind.is_symlink() {
            #[cfg(unix)]
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
            #[cfg(not(unix))]
            fs::copy(&source, &target).map(drop)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_within_what_is_copied_is_not_copied() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path(), place.path().join("run/project"));
        fs::write(from.join("a"), "1").unwrap();
        copy(from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("a")).unwrap(), "1");
        assert!(to.join("run").is_dir() && !to.join("run/project").exists());
    }
}
