//! Where a session is at home.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::file;
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions, project_dir_name};
use crate::record::Lines;
use crate::record::object::Object;

impl SessionFile {
    /// The directory that the session is to be resumed in: the one that it was last [relocated](Self::relocate) to, else the first
    /// recorded one that its project is named after, else the first recorded one. `None` where none is recorded.
    ///
    /// The whole transcript is gone through, one line in memory at a time.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn recorded_dir(&self) -> Result<Option<PathBuf>> {
        let project = self.project_dir().file_name();
        let file = file::open(&self.path).map_err(Error::io("open", &self.path))?;
        let mut lines = Lines::new(file);
        let (mut relocated, mut named, mut first) = (None, None, None);
        while let Some(line) = lines.next().map_err(Error::io("read", &self.path))? {
            let has = |word: &[u8]| memchr::memmem::find(line.bytes, word).is_some();
            let may_relocate = has(b"relocatedCwd");
            if !may_relocate && (named.is_some() || !has(b"\"cwd\"")) {
                continue;
            }
            let text = String::from_utf8_lossy(line.bytes);
            let Some(record) = Object::parse(&text) else {
                continue;
            };
            if record.string("type").as_deref() == Some("relocated") {
                relocated = record.string("relocatedCwd").or(relocated);
            }
            let Some(cwd) = record.string("cwd") else { continue };
            if named.is_none() && project.is_some_and(|project| project == &*project_dir_name(&cwd)) {
                named = Some(cwd.clone());
            }
            first = first.or(Some(cwd));
        }
        Ok(relocated.or(named).or(first).map(PathBuf::from))
    }
}

impl Sessions {
    /// The directory in which to start a CLI that resumes a session: [`SessionFile::recorded_dir`] of the file that
    /// [`find`](Self::find) returns.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no project has the session; [`Error::NoDirectory`] when it recorded no directory, or that directory
    /// does not exist.
    pub fn resume_dir(&self, id: &SessionId) -> Result<PathBuf> {
        let file = self.find(id)?;
        match file.recorded_dir()? {
            Some(dir) if dir.is_dir() => Ok(dir),
            dir => Err(Error::NoDirectory {
                id: id.clone(),
                dir,
                file: file.path,
            }),
        }
    }
}

/// Where a path that is in `old` is when `old` is at `new`.
pub(super) fn moved(path: &str, old: &Path, new: &str) -> Option<String> {
    let old = old.to_str()?;
    if path == old {
        return Some(new.to_owned());
    }
    // A root ends with the separator, which other directories do not.
    let open = |path: &str| path.strip_suffix(['/', '\\']).unwrap_or(path).to_owned();
    let rest = path.strip_prefix(&*open(old))?;
    rest.starts_with(['/', '\\']).then(|| open(new) + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_a_directory_move_with_it() {
        for (path, old, new, expected) in [
            ("/a/b", "/a", "/c", Some("/c/b")),
            ("/a", "/a", "/c", Some("/c")),
            ("/ab", "/a", "/c", None),
            ("/a/b", "/a/", "/c/", Some("/c/b")),
            ("/a/b", "/", "/c", Some("/c/a/b")),
            ("/", "/", "/c", Some("/c")),
            ("/a/b", "/a", "/", Some("/b")),
            ("/a", "/a", "/", Some("/")),
            (r"C:\a\b", r"C:\a", r"D:\", Some(r"D:\b")),
            (r"C:\a", r"C:\", r"D:\c", Some(r"D:\c\a")),
        ] {
            assert_eq!(
                moved(path, Path::new(old), new).as_deref(),
                expected,
                "{path} from {old} to {new}"
            );
        }
    }
}
