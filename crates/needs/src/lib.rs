//! What tests need of a machine beside Rust: where it is, and what becomes of a test where it is missing.
//!
//! Such a test is left out, loudly: [`needs!`] writes down its name and the reason, and `cargo xtask test` lists both when all
//! else is done. Where [`REQUIRED`] is set, as `.ci/run` does, the test fails instead.
//!
//! ```no_run
//! use outrigger_needs::needs;
//!
//! // With `#[test]` before it.
//! fn a_commit_is_found() {
//!     let git = needs!(outrigger_needs::program("git", "install git"));
//!     # let _ = git;
//! }
//! ```

mod list;
mod script;
mod servers;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use list::{LeftOut, leave_out, read};
pub use script::script;
pub use servers::{POSTGRESQL, Postgres, SEAWEEDFS, VALKEY, postgres, redis, redis_with_tls, seaweedfs};

/// The variable that, set to `1`, makes what is missing a failure.
pub const REQUIRED: &str = "OUTRIGGER_TESTS_REQUIRE_ALL";

/// The variable that names the file in which tests that are left out are listed. Without it they say so on stderr.
pub const LIST: &str = "OUTRIGGER_TESTS_LEFT_OUT";

/// Why something that a test needs is not there, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    why: String,
    /// The system does not allow it.
    is_refused: bool,
}

impl Missing {
    /// What is missing, and what to do about it.
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_refused: false,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Missing {}

/// What is there; where it is not, the test that asks returns, and is listed as left out.
#[macro_export]
macro_rules! needs {
    ($found:expr) => {
        match $found {
            Ok(found) => found,
            Err(missing) => {
                $crate::leave_out(&missing);
                return;
            }
        }
    };
}

/// A program that the machine finds by its name.
///
/// # Errors
/// When it is in no directory of `PATH`; `how` says how to get it.
pub fn program(name: &str, how: &str) -> Result<PathBuf, Missing> {
    on_path(name)
        .next()
        .ok_or_else(|| Missing::new(format!("there is no program `{name}`: {how}")))
}

/// Whether this command succeeds, which shows that the system allows `what`. Where it does not, nobody can install it, so that tests
/// are left out even where [`REQUIRED`] is set.
///
/// # Errors
/// When it does not.
pub fn allows(command: &mut Command, what: &str) -> Result<(), Missing> {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let how = match status {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => format!("ended with {status}"),
        Err(error) => format!("cannot be run: {error}"),
    };
    Err(Missing {
        why: format!("this needs {what}: `{}` {how}", command.get_program().display()),
        is_refused: true,
    })
}

/// All programs of this name, in the order in which the machine looks for them.
fn on_path(name: &str) -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    places
        .into_iter()
        .map(move |place| place.join(&name))
        .filter(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    #[cfg(unix)]
    let may_run =
        |meta: &std::fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = |_: &std::fs::Metadata| true;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && may_run(&meta))
}
