//! Directories of this program, which only this user can enter.

use std::fs::DirBuilder;
use std::io;
use std::path::Path;

/// Creates a directory and those above it, for this user only. Existing directories stay as they are.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
