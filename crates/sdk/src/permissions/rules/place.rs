//! Where a tool call happens, and which files its paths name.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// How many links are followed on the way to a file.
const LINKS: usize = 40;

/// Where a tool call happens: what relative paths and `~/` mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The working directory, absolute. Without it no rule with a relative path allows anything, and one that refuses does so
    /// wherever its path could be.
    pub cwd: Option<PathBuf>,
    /// The home directory of whoever runs the CLI.
    pub home: Option<PathBuf>,
    /// Whether this is another machine than this process's. Its links can't be followed from here, so no rule for files allows
    /// anything there.
    pub is_remote: bool,
}

impl Place {
    /// A place with this working directory, and the home directory of this process.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: Some(cwd.into()),
            ..Self::anywhere()
        }
    }

    /// A place whose working directory is not known, with the home directory of this process.
    pub fn anywhere() -> Self {
        Self {
            cwd: None,
            home: std::env::home_dir(),
            is_remote: false,
        }
    }

    /// Sets the home directory.
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Says that this is another machine than this process's.
    pub fn remote(mut self) -> Self {
        self.is_remote = true;
        self
    }

    /// The absolute path that a tool means, without `.` and `..`; `None` if that is not known.
    fn absolute(&self, path: &str) -> Option<PathBuf> {
        let path = match path.strip_prefix('~') {
            Some("") => self.home.clone()?,
            Some(rest) if rest.starts_with(['/', '\\']) => self.home.as_ref()?.join(&rest[1..]),
            _ => PathBuf::from(path),
        };
        let path = if path.is_absolute() {
            path
        } else {
            self.cwd.as_ref()?.join(path)
        };
        path.is_absolute().then(|| plain(&path))
    }
}

/// A file that a call names: under which names it can be reached.
#[derive(Debug)]
pub(super) struct Target {
    /// As it was named, absolute.
    pub(super) given: String,
    /// What it is once all links are followed; `None` if that can't be found out.
    pub(super) real: Option<String>,
    /// What it is called on the way there.
    between: Vec<String>,
}

impl Target {
    /// Looks at the file system, which may block for as long as that takes.
    pub(super) fn of(path: &str, place: &Place) -> Option<Self> {
        if path.is_empty() || path.contains('\0') {
            return None;
        }
        let given = place.absolute(path)?;
        if place.is_remote {
            return Some(Self {
                given: slashed(&given)?,
                real: None,
                between: Vec::new(),
            });
        }
        let mut between = Vec::new();
        let real = follow(&given, &mut between).and_then(|path| slashed(&path));
        Some(Self {
            given: slashed(&given)?,
            real,
            between: between.iter().filter_map(|path| slashed(path)).collect(),
        })
    }

    /// All of its names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        [Some(self.given.as_str()), self.real.as_deref()]
            .into_iter()
            .flatten()
            .chain(self.between.iter().map(String::as_str))
    }

    /// Whether it is known to be no directory.
    pub(super) fn is_file(&self) -> bool {
        std::fs::metadata(native(&self.given)).is_ok_and(|metadata| !metadata.is_dir())
    }
}

/// A directory as rules see it, and the one that it leads to.
pub(super) fn names_of(directory: &Path) -> Vec<String> {
    let directory = plain(directory);
    let mut names: Vec<String> = slashed(&directory).into_iter().collect();
    match follow(&directory, &mut Vec::new()).and_then(|path| slashed(&path)) {
        Some(real) if !names.contains(&real) => names.push(real),
        _ => {}
    }
    names
}

/// The path of a name in the form of [`slashed`].
pub(super) fn native(name: &str) -> PathBuf {
    if cfg!(windows) {
        let mut chars = name.chars();
        match (chars.next(), chars.next(), chars.next()) {
            (Some('/'), Some(drive), Some('/') | None) if drive.is_ascii_alphabetic() => {
                return PathBuf::from(format!("{drive}:\\{}", chars.as_str().replace('/', "\\")));
            }
            _ => {}
        }
    }
    PathBuf::from(name)
}

/// A path with slashes, `/c/x` for `C:\x`; `None` if it is no text.
fn slashed(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    if !cfg!(windows) {
        return Some(text.to_owned());
    }
    let text = text.strip_prefix(r"\\?\").unwrap_or(text).replace('\\', "/");
    Some(match text.split_once(":/") {
        Some((drive, rest)) if drive.len() == 1 => format!("/{}/{rest}", drive.to_ascii_lowercase()),
        _ => text,
    })
}

/// An absolute path without `.` and `..`, by its words alone.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Follows all links, also those that lead nowhere yet. `None` when that fails for another reason than a missing file.
fn follow(path: &Path, between: &mut Vec<PathBuf>) -> Option<PathBuf> {
    let mut done = PathBuf::new();
    let mut rest: VecDeque<OsString> = VecDeque::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => rest.push_back(name.to_owned()),
            other => done.push(other),
        }
    }
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            done.pop();
            continue;
        }
        done.push(&name);
        match std::fs::symlink_metadata(&done) {
            Ok(metadata) if metadata.file_type().is_symlink() => {}
            Ok(_) => continue,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            Err(_) => return None,
        }
        links += 1;
        if links > LINKS {
            return None;
        }
        let target = std::fs::read_link(&done).ok()?;
        done.pop();
        for component in target.components().rev() {
            match component {
                Component::Normal(name) => rest.push_front(name.to_owned()),
                Component::ParentDir => rest.push_front("..".into()),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => {}
            }
        }
        if target.is_absolute() {
            done = target
                .components()
                .take_while(|component| matches!(component, Component::RootDir | Component::Prefix(_)))
                .collect();
        }
        let mut stop = done.clone();
        stop.extend(&rest);
        between.push(plain(&stop));
    }
    Some(done)
}
