//! Paths relative to the working directory: absolute for programs, short for the user.

use std::path::{Path, PathBuf};

/// The working directory of a session.
#[derive(Debug, Clone)]
pub(crate) struct WorkDir {
    /// An absolute path.
    pub(crate) cwd: PathBuf,
}

impl WorkDir {
    /// The absolute path.
    pub(crate) fn absolute(&self, path: &str) -> PathBuf {
        self.cwd.join(path)
    }

    /// The path relative to the working directory if it is inside of it, else the absolute path.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let inside = path
            .strip_prefix(&self.cwd)
            .ok()
            .filter(|rest| !rest.as_os_str().is_empty());
        inside.unwrap_or(path).display().to_string()
    }

    /// [`shown`](Self::shown) for a path in a tool's input.
    pub(crate) fn short(&self, path: &str) -> String {
        self.shown(&self.absolute(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_is_shown_from_inside() {
        let dir = WorkDir { cwd: "/w/p".into() };
        for (path, absolute, shown) in [
            ("/w/p/src/a.rs", "/w/p/src/a.rs", "src/a.rs"),
            ("src/a.rs", "/w/p/src/a.rs", "src/a.rs"),
            ("/w/pp/a.rs", "/w/pp/a.rs", "/w/pp/a.rs"),
            ("/w/p", "/w/p", "/w/p"),
        ] {
            assert_eq!(dir.absolute(path), Path::new(absolute));
            assert_eq!(dir.short(path), shown);
        }
    }
}
