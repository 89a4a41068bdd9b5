//! Temporary directories that only this user can enter.

use std::io;
use std::path::Path;

use tempfile::TempDir;

/// Makes a temporary directory that only this user can enter.
pub(crate) fn private_directory(prefix: &str) -> io::Result<TempDir> {
    private_directory_in(prefix, &std::env::temp_dir())
}

pub(crate) fn private_directory_in(prefix: &str, parent: &Path) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.tempdir_in(parent)
}
