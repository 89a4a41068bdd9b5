//! A place of its own for one or more CLI processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use tempfile::TempDir;

/// The API key in the environment of a sandbox: no key of anybody's.
pub const DUMMY_KEY: &str = "dummy";

/// Variables that would lead the CLI to another API, or to an account: a process that inherits an environment must not have them.
pub const LEADS_ELSEWHERE: &[&str] = &[
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
];

/// A temporary home, configuration and project, removed when this is dropped.
///
/// Processes started with [`env`](Self::env) see nothing of the user's own settings, credentials and sessions, and write
/// nothing outside of it. Without `HOME` the CLI would go by the password file and write to the real home directory.
#[derive(Debug)]
pub struct Sandbox {
    root: TempDir,
}

impl Sandbox {
    /// Creates the directories.
    ///
    /// # Errors
    /// When the system's temporary directory cannot be written to.
    pub fn new() -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("outrigger-").tempdir()?;
        // Without links, since the CLI names its project by the resolved path.
        let sandbox = Self { root };
        for directory in [
            sandbox.home(),
            sandbox.config(),
            sandbox.temp(),
            sandbox.project(),
        ] {
            fs::create_dir_all(directory)?;
        }
        Ok(sandbox)
    }

    /// The `HOME`.
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// The `CLAUDE_CONFIG_DIR`, where settings and sessions are.
    pub fn config(&self) -> PathBuf {
        self.home().join(".claude")
    }

    /// The `CLAUDE_CODE_TMPDIR`, where sockets and the output of tasks are. Its path is short: that of a socket may not be long.
    pub fn temp(&self) -> PathBuf {
        self.path().join("t")
    }

    /// The working directory.
    pub fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    /// The directory with everything in it.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Writes a file below the project, with its directories.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        let path = self.project().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, content)?;
        Ok(path)
    }

    /// The whole environment for a process: this sandbox, the API's address, a dummy key, no other network,
    /// and from the environment of this program only `PATH` and the variables that Windows requires.
    pub fn env(&self, api_base_url: &str) -> BTreeMap<String, String> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut variables: BTreeMap<String, String> = [
            ("HOME", text(self.home())),
            ("CLAUDE_CONFIG_DIR", text(self.config())),
            ("CLAUDE_CODE_TMPDIR", text(self.temp())),
            ("TMPDIR", text(self.temp())),
            ("ANTHROPIC_BASE_URL", api_base_url.to_owned()),
            ("ANTHROPIC_API_KEY", DUMMY_KEY.to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        let kept: &[&str] = if cfg!(windows) {
            &["PATH", "SystemRoot", "ComSpec", "PATHEXT"]
        } else {
            &["PATH"]
        };
        for name in kept {
            if let Ok(value) = env::var(name) {
                variables.insert((*name).to_owned(), value);
            }
        }
        if cfg!(windows) {
            for name in ["TEMP", "TMP"] {
                variables.insert(name.to_owned(), text(self.temp()));
            }
            variables.insert("USERPROFILE".to_owned(), text(self.home()));
        }
        variables
    }

    /// Leaves the directory behind, to look at after a failure, and returns its path.
    pub fn keep(self) -> PathBuf {
        self.root.keep()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_complete_and_inside() {
        let sandbox = Sandbox::new().unwrap();
        let variables = sandbox.env("http://127.0.0.1:1");
        for name in ["HOME", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_TMPDIR", "TMPDIR"] {
            let path = Path::new(&variables[name]);
            assert!(path.starts_with(sandbox.path()) && path.is_dir(), "{name}");
        }
        assert_eq!(variables["ANTHROPIC_API_KEY"], DUMMY_KEY);
        assert_eq!(variables["ANTHROPIC_BASE_URL"], "http://127.0.0.1:1");
        assert_eq!(variables["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"], "1");
        let file = sandbox.write("a/b.txt", "x").unwrap();
        assert!(file.starts_with(sandbox.project()));
        let path = sandbox.path().to_owned();
        drop(sandbox);
        assert!(!path.exists());
    }
}
