//! Paths: what is inside of the project, and what is sensitive.

use std::path::{Component, Path, PathBuf};

use super::context::{AgentState, Context};
use crate::word_list::WordList;

/// Files and directories that always need a permission request to change, whatever rule allows it.
const SENSITIVE: WordList = WordList(
    ".git .claude .vscode .idea .mcp.json .bashrc .bash_profile .profile .zshrc .gitconfig .gitmodules",
);

/// A path as the tools take it: below the working directory or the home, without `.` and `..`.
pub(super) fn absolute(path: &str, cwd: &Path, home: &Path) -> PathBuf {
    let path = path.trim();
    let path = match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => cwd.join(path),
    };
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// The path as the CLI describes it to a person.
pub(super) fn described(path: &Path, cwd: &Path, home: &Path) -> String {
    if let Ok(below) = path.strip_prefix(cwd)
        && !below.as_os_str().is_empty()
    {
        return below.to_string_lossy().into_owned();
    }
    match path.strip_prefix(home) {
        Ok(below) if !below.as_os_str().is_empty() && !path.starts_with(cwd) => {
            format!("~/{}", below.to_string_lossy())
        }
        _ => path.to_string_lossy().into_owned(),
    }
}

/// Whether a change needs a request; what the project lies in does not count.
pub(super) fn is_sensitive(path: &Path, cwd: &Path) -> bool {
    let path = path.strip_prefix(cwd).unwrap_or(path);
    path.components()
        .any(|part| SENSITIVE.iter().any(|name| part.as_os_str() == name))
}

/// Whether what is in the way belongs to the CLI's settings and not to other tools.
pub(super) fn is_of_the_cli(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".claude")
}

/// The directories in which files may be used.
pub(super) struct Area {
    directories: Vec<PathBuf>,
    /// Whether there are real files, and so links.
    real: bool,
}

impl Area {
    pub(super) fn new(ctx: &Context, state: &AgentState) -> Self {
        let mut directories = vec![ctx.project()];
        directories.extend(state.all_directories().map(PathBuf::from));
        let real = ctx.config.real_tools;
        if real {
            let resolved: Vec<PathBuf> = directories.iter().map(|directory| resolved(directory)).collect();
            directories.extend(resolved);
        }
        Self { directories, real }
    }

    fn has(&self, path: &Path) -> bool {
        self.directories
            .iter()
            .any(|directory| path.starts_with(directory))
    }

    /// Whether a path is inside, by its name and where its links lead.
    pub(super) fn includes(&self, path: &Path) -> bool {
        self.has(path) && self.has(&self.resolved(path))
    }

    /// Where a path leads that is outside by its links alone.
    pub(super) fn led_out(&self, path: &Path) -> Option<PathBuf> {
        let resolved = self.resolved(path);
        (self.has(path) && !self.has(&resolved)).then_some(resolved)
    }

    /// The path without links.
    pub(super) fn resolved(&self, path: &Path) -> PathBuf {
        if self.real {
            resolved(path)
        } else {
            path.to_owned()
        }
    }

    /// The directory of a path, or the path if it is one; behind it where it leads, if that is elsewhere.
    pub(super) fn directories_of(&self, path: &Path) -> Vec<PathBuf> {
        let directory = if self.real && path.is_dir() {
            path
        } else {
            path.parent().unwrap_or(path)
        };
        let mut directories = vec![directory.to_owned(), self.resolved(directory)];
        directories.dedup();
        directories
    }
}

/// Follows the links of as much of a path as exists.
fn resolved(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(found) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() {
                found
            } else {
                found.join(rest)
            };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions() {
        let (cwd, home) = (Path::new("/home/user/project"), Path::new("/home/user"));
        for (path, expected) in [
            ("/home/user/project/a/b", "a/b"),
            ("/home/user/b", "~/b"),
            ("/home/user", "/home/user"),
            ("/etc/b", "/etc/b"),
        ] {
            assert_eq!(described(Path::new(path), cwd, home), expected);
        }
    }
}
