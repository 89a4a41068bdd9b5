//! Each option, and what it becomes.

mod conflicts;
mod hostile;
mod launched;
mod setters;
mod upstream;
mod wire;

use std::path::{Path, PathBuf};

use super::{Auth, Isolation, Launch, Options, OptionsError};
use crate::env::{Surroundings, Variables};

/// A directory with something in it that passes for the CLI, and a home.
struct TestHome {
    root: tempfile::TempDir,
    surroundings: Surroundings,
}

impl TestHome {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["home", "work"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        // The test's own program is as sound as the real one, and is never started here.
        let env = Variables::from([
            ("HOME".into(), root.path().join("home").into()),
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("OUTRIGGER_CLAUDE".into(), std::env::current_exe().unwrap().into()),
        ]);
        let mut surroundings = Surroundings::new(env, root.path().join("work"));
        surroundings.uid = Some(1000);
        Self { root, surroundings }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    fn launch(&self, options: &Options) -> Result<Launch, OptionsError> {
        options.launch(&self.surroundings, super::Host::default())
    }
}

/// Options that add nothing to the command line but its fixed part.
fn bare() -> Options {
    Options::new(Auth::ApiKey("sk-test-key".into())).isolation(Isolation::Interactive)
}

fn args(launch: &Launch) -> Vec<String> {
    launch
        .args
        .iter()
        .map(|argument| argument.to_str().unwrap().to_owned())
        .collect()
}

fn var<'a>(launch: &'a Launch, name: &str) -> Option<&'a str> {
    launch
        .env
        .get(std::ffi::OsStr::new(name))
        .map(|value| value.to_str().unwrap())
}

fn mode(path: &Path) -> u32 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        0
    }
}
