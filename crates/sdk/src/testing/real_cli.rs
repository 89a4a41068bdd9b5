//! The real CLI in a place of its own, behind a scripted API.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_sim::api::{MessagesApi, StartError};
use outrigger_sim::claude::{DUMMY_KEY, FetchError, Sandbox, executable};
use outrigger_sim::peer::Report;
use outrigger_sim::script::{Flaws, Gates, Script, ScriptError};

use super::Traced;
use crate::child::Local;
use crate::env::{Environment, is_listed};
use crate::options::{Auth, Options, Secret};
use crate::start::Agent;

/// Variables that would lead out of the place: to a proxy, which need not reach the API, and to the user's own files.
const ELSEWHERE: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "XDG_*",
    "APPDATA",
    "LOCALAPPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
];

/// The environment without those of these variables that lead out of the place.
fn within(environment: Environment, inherited: impl IntoIterator<Item = OsString>) -> Environment {
    let elsewhere = inherited.into_iter().filter(|name| is_listed(ELSEWHERE, name));
    elsewhere.fold(environment, Environment::unset)
}

/// The real CLI, with a scripted Messages API in place of the model, for the tests of programs.
///
/// The CLI is the version that this crate is tested with; npm fetches it once, and it is kept in the user's cache. It has a home and a
/// configuration of its own, which are removed when the last clone is dropped, a key that is none, and no address but that of the
/// API, which listens on loopback. Tools really run, in [`sandbox`](Self::sandbox)`().project()`.
///
/// It has the doors of [`Simulated`](super::Simulated), so that a test goes from one to the other by one word:
///
/// ```no_run
/// use outrigger::testing::RealCli;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Or `Simulated::script_file`.
/// let cli = RealCli::script_file("tests/hello.yaml").await?;
/// let session = cli.options().start().await?;
/// assert_eq!(session.prompt("Say hello.").await?.answer().await?.text(), "hello");
/// session.close().await?;
/// assert!(cli.report().is_some_and(|seen| seen.sent_kinds().contains(&"result/success".to_owned())));
/// cli.verdict()?;
/// # Ok(())
/// # }
/// ```
///
/// The clock must not be paused: the CLI is a process, and takes the time that it takes. Clones share everything.
#[derive(Clone)]
pub struct RealCli(Arc<RealCliInner>);

struct RealCliInner {
    api: MessagesApi,
    sandbox: Sandbox,
    executable: PathBuf,
    traced: Traced<Local>,
}

/// The real CLI cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RealCliError {
    /// The script cannot be read, or is none.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The API cannot listen.
    #[error(transparent)]
    Api(#[from] StartError),
    /// The pinned version cannot be had; `RealCli::with_executable` takes another.
    #[error("the pinned CLI cannot be had")]
    Fetch(#[from] FetchError),
    /// There is no place for it.
    #[error("cannot make a place for the CLI in the system's temporary directory")]
    Place(#[from] io::Error),
}

impl RealCli {
    /// With a model that does what the prompts say ([directives](outrigger_sim::directive)).
    ///
    /// # Cancel safety
    /// Dropping the future closes the API and removes the place. A fetch of the CLI that has begun goes on in the background and
    /// fills the cache.
    ///
    /// # Errors
    /// When the CLI cannot be had, or the API or a place for them.
    pub async fn directives() -> Result<Self, RealCliError> {
        Self::with_api(MessagesApi::builder().start().await?).await
    }

    /// With a model that plays this script, whose files are put into the project. All sessions play it together, and [`verdict`](Self::verdict) says in the end what the
    /// script did not like.
    ///
    /// # Cancel safety
    /// As [`directives`](Self::directives).
    ///
    /// # Errors
    /// As [`directives`](Self::directives), and when the API cannot play something in the script.
    pub async fn script(mut script: Script) -> Result<Self, RealCliError> {
        let sandbox = Sandbox::new()?;
        script.write_files(&sandbox.project())?;
        script.files.clear();
        let home = sandbox.home().to_string_lossy().into_owned();
        let api = MessagesApi::builder().home(home).script_of_one_run(script)?;
        Ok(Self::of(sandbox, executable().await?, api.start().await?))
    }

    /// With a model that plays the script in this file; see [`script`](Self::script).
    ///
    /// # Cancel safety
    /// As [`directives`](Self::directives).
    ///
    /// # Errors
    /// When the file cannot be read, or is not a script, and as [`directives`](Self::directives).
    pub async fn script_file(path: impl AsRef<Path>) -> Result<Self, RealCliError> {
        Self::script(Script::from_file(path)?).await
    }

    /// With this API in place of the model.
    ///
    /// # Cancel safety
    /// As [`directives`](Self::directives).
    ///
    /// # Errors
    /// When the CLI cannot be had, or a place for it.
    pub async fn with_api(api: MessagesApi) -> Result<Self, RealCliError> {
        Self::with_executable(executable().await?, api)
    }

    /// With this executable of the CLI, such as that of another version, and this API.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn with_executable(executable: impl Into<PathBuf>, api: MessagesApi) -> Result<Self, RealCliError> {
        Ok(Self::of(Sandbox::new()?, executable.into(), api))
    }

    fn of(sandbox: Sandbox, executable: PathBuf, api: MessagesApi) -> Self {
        Self(Arc::new(RealCliInner {
            api,
            sandbox,
            executable,
            traced: Traced::new(Local::new()),
        }))
    }

    /// Options that reach it: its executable, its environment, its project as the working directory, and a key that is none. The place
    /// to set what else the test is about. [`report`](Self::report) knows nothing of sessions with another
    /// [transport](Options::transport).
    pub fn options(&self) -> Options {
        let mut options = Agent::builder()
            .auth(Auth::ApiKey(Secret::new(DUMMY_KEY)))
            .cli_path(&self.0.executable)
            .cwd(self.0.sandbox.project())
            .transport(self.0.traced.clone());
        for (name, value) in self.0.sandbox.env(&self.0.api.base_url()) {
            if name != "ANTHROPIC_API_KEY" {
                options = options.env(name, value);
            }
        }
        let inherited = std::env::vars_os().map(|(name, _)| name);
        options.environment = within(options.environment, inherited);
        options
    }

    /// What went through in the session that was started last, up to now, and how its process ended; `None` if there was none.
    pub fn report(&self) -> Option<Report> {
        self.0.traced.report()
    }

    /// What the script did not like about the requests so far; what must have been asked in the end counts, so ask once all sessions
    /// are closed.
    ///
    /// # Errors
    /// All that was wrong, each with its place in the script.
    pub fn verdict(&self) -> Result<(), Flaws> {
        self.0.api.verdict()
    }

    /// The gates for which the [script](Self::script) waits.
    pub fn gates(&self) -> &Gates {
        self.0.api.gates()
    }

    /// The API, for its requests, and for gates that let one reply through.
    pub fn api(&self) -> &MessagesApi {
        &self.0.api
    }

    /// The home, the configuration and the project.
    pub fn sandbox(&self) -> &Sandbox {
        &self.0.sandbox
    }

    /// The executable.
    pub fn executable(&self) -> &Path {
        &self.0.executable
    }
}

impl fmt::Debug for RealCli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealCli")
            .field("executable", &self.0.executable)
            .field("sandbox", &self.0.sandbox)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Variables;

    #[test]
    fn neither_a_proxy_nor_the_users_files_are_inherited() {
        let names = ["PATH", "LANG", "HTTPS_PROXY", "all_proxy", "XDG_CONFIG_HOME"];
        let parent: Variables = names.map(|name| (name.into(), "x".into())).into();
        let environment = within(Environment::listed(), parent.keys().cloned());
        let inherited: Vec<_> = environment.inherited(&parent).into_keys().collect();
        assert_eq!(inherited, ["LANG", "PATH"]);
    }
}
