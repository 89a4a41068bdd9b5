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
        self.has(path) && !self.is_endless(path) && self.has(&self.resolved(path))
    }

    /// Where a path leads that is outside by its links alone.
    pub(super) fn led_out(&self, path: &Path) -> Option<PathBuf> {
        let resolved = self.resolved(path);
        let is_outside = self.is_endless(path) || !self.has(&resolved);
        (self.has(path) && is_outside).then_some(resolved)
    }

    /// Whether the links of a path lead to each other.
    pub(super) fn is_endless(&self, path: &Path) -> bool {
        self.real && followed(path, MOST_LINKS).is_none()
    }

    /// Whether the path is a link to something that is not there.
    pub(super) fn is_dangling(&self, path: &Path) -> bool {
        self.real && path.is_symlink() && !path.exists()
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

/// So many links to things that are not there may follow each other.
const MOST_LINKS: usize = 40;

/// Follows the links of a path, also to what is not there; a path whose links do not end stays as it is.
fn resolved(path: &Path) -> PathBuf {
    followed(path, MOST_LINKS).unwrap_or_else(|| path.to_owned())
}

/// Where a path leads; nothing if that takes more than so many links to things that are not there.
fn followed(path: &Path, links: usize) -> Option<PathBuf> {
    for ancestor in path.ancestors() {
        let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
        let joined = |found: PathBuf| {
            if rest.as_os_str().is_empty() {
                found
            } else {
                found.join(rest)
            }
        };
        if let Ok(found) = ancestor.canonicalize() {
            return Some(joined(found));
        }
        if let (Ok(target), Some(beside)) = (ancestor.read_link(), ancestor.parent()) {
            let beside = followed(beside, links.checked_sub(1)?)?;
            let target = absolute(&target.to_string_lossy(), &beside, &beside);
            return followed(&joined(target), links - 1);
        }
    }
    Some(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_lead_also_to_what_is_not_there() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let project = root.join("project");
        std::fs::create_dir(&project).unwrap();
        for (link, target) in [
            ("in", "none"),
            ("out", "../none"),
            ("twice", "out"),
            ("loop", "pool"),
            ("pool", "loop"),
        ] {
            symlink(target, project.join(link)).unwrap();
        }
        let area = Area {
            directories: vec![project.clone()],
            real: true,
        };
        for (path, to, inside) in [
            ("in", project.join("none"), true),
            ("in/x", project.join("none/x"), true),
            ("new", project.join("new"), true),
            ("out", root.join("none"), false),
            ("twice", root.join("none"), false),
            ("out/x", root.join("none/x"), false),
            ("loop", project.join("loop"), false),
        ] {
            let path = project.join(path);
            assert_eq!(area.resolved(&path), to, "{path:?}");
            assert_eq!(area.includes(&path), inside, "{path:?}");
            assert_eq!(area.led_out(&path).is_some(), !inside, "{path:?}");
        }
        assert!(area.is_endless(&project.join("pool")) && !area.is_endless(&project.join("twice")));
    }

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
