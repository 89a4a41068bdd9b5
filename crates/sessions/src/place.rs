//! Where the CLI keeps its sessions: `<config dir>/projects/<project>/<session id>.jsonl`.

mod lookup;
mod project;
mod worktrees;

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

use crate::error::{Error, Result};

pub use lookup::SessionFile;
pub(crate) use project::{composed, is_same_when_cut};
pub use project::{project_dir_name, real_path};
pub use worktrees::worktrees;

/// The sessions below one config directory.
///
/// Cheap to clone; it holds paths and no open files.
#[derive(Debug, Clone)]
pub struct Sessions {
    config_dir: Arc<Path>,
    project_dir_name: Option<Arc<str>>,
}

impl Sessions {
    /// The directories that the CLI would use in this environment: below `CLAUDE_CONFIG_DIR`, or else `.claude` in the home directory.
    /// `CLAUDE_CODE_PROJECT_DIR_NAME` counts as in the CLI: only if `CLAUDE_CONFIG_DIR` is set too.
    ///
    /// # Errors
    /// When there is no home directory either, or the CLI would reject `CLAUDE_CODE_PROJECT_DIR_NAME`.
    pub fn from_env() -> Result<Self> {
        Self::from_vars(|name| env::var_os(name), env::home_dir())
    }

    fn from_vars(var: impl Fn(&str) -> Option<std::ffi::OsString>, home: Option<PathBuf>) -> Result<Self> {
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        let Some(config_dir) = set("CLAUDE_CONFIG_DIR") else {
            let home = home.filter(|home| !home.as_os_str().is_empty());
            return Ok(Self::at(home.ok_or(Error::NoConfigDir)?.join(".claude")));
        };
        let sessions = Self::at(PathBuf::from(config_dir));
        match set("CLAUDE_CODE_PROJECT_DIR_NAME") {
            Some(name) => sessions.with_project_dir_name(&name.to_string_lossy()),
            None => Ok(sessions),
        }
    }

    /// The sessions below this config directory; its name is normalized to Unicode's form C, as the CLI does with this path on all
    /// systems. It need not exist.
    pub fn at(config_dir: impl Into<PathBuf>) -> Self {
        Self {
            config_dir: in_form_c(config_dir.into().as_os_str()).into(),
            project_dir_name: None,
        }
    }

    /// Puts all projects into the one directory of this name, like `CLAUDE_CODE_PROJECT_DIR_NAME`.
    ///
    /// # Errors
    /// When the name is not 1 to 64 ASCII letters, digits, `_` and `-`.
    pub fn with_project_dir_name(mut self, name: &str) -> Result<Self> {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !(1..=64).contains(&name.len()) || !name.bytes().all(is_fine) {
            return Err(Error::ProjectDirName(name.to_owned()));
        }
        self.project_dir_name = Some(name.into());
        Ok(self)
    }

    /// The config directory.
    pub fn config_dir(&self) -> &Path {
        &self.config_dir
    }

    /// The directory with one directory for each project.
    pub fn projects_dir(&self) -> PathBuf {
        self.config_dir.join("projects")
    }

    /// The directory that the current CLI would create for sessions that run in `dir`. It need not exist.
    pub fn project_dir(&self, dir: impl AsRef<Path>) -> PathBuf {
        self.project_dir_of(&real_path(dir.as_ref()))
    }

    pub(crate) fn project_dir_of(&self, real: &str) -> PathBuf {
        let projects = self.projects_dir();
        match &self.project_dir_name {
            Some(name) => projects.join(&**name),
            None => projects.join(project_dir_name(real)),
        }
    }
}

/// A path in Unicode's normal form C. A path that is not Unicode is unchanged.
fn in_form_c(path: &OsStr) -> PathBuf {
    match path.to_str() {
        Some(text) if !text.is_ascii() => text.nfc().collect::<String>().into(),
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_directory_is_the_one_the_cli_would_use() {
        let of = |vars: &[(&str, &str)], home: Option<&str>| {
            let vars = vars.to_vec();
            let var = move |name: &str| vars.iter().find(|var| var.0 == name).map(|var| var.1.into());
            Sessions::from_vars(var, home.map(PathBuf::from))
        };
        assert_eq!(
            of(&[], Some("/home/x")).unwrap().config_dir(),
            Path::new("/home/x/.claude")
        );
        assert!(matches!(of(&[], None), Err(Error::NoConfigDir)));
        assert!(matches!(
            of(&[("CLAUDE_CONFIG_DIR", "")], Some("")),
            Err(Error::NoConfigDir)
        ));
        let sessions = of(&[("CLAUDE_CONFIG_DIR", "/e\u{301}")], None).unwrap();
        assert_eq!(sessions.config_dir(), Path::new("/\u{e9}"));

        let named = ("CLAUDE_CODE_PROJECT_DIR_NAME", "one_and-all");
        let sessions = of(&[("CLAUDE_CONFIG_DIR", "/c"), named], None).unwrap();
        assert_eq!(sessions.project_dir("/any"), Path::new("/c/projects/one_and-all"));
        let sessions = of(&[named], Some("/h")).unwrap();
        assert_eq!(sessions.project_dir("/"), Path::new("/h/.claude/projects/-"));
        for bad in ["../up", "a b", &"x".repeat(65)] {
            let vars = [("CLAUDE_CONFIG_DIR", "/c"), ("CLAUDE_CODE_PROJECT_DIR_NAME", bad)];
            assert!(matches!(of(&vars, None), Err(Error::ProjectDirName(_))), "{bad}");
        }
    }
}
