//! The report of the doctor.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::super::binary::{Libc, Unusable};
use super::super::{Binary, FoundBy};

/// What [`doctor`](super::doctor()) found. Holds names of variables, never their values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DoctorReport {
    /// Every installation, in the order in which [`find`](crate::discover::find) would take them, and every path that was named.
    pub candidates: Vec<Candidate>,
    /// The CLI that would be used.
    pub chosen: Option<PathBuf>,
    /// This machine.
    pub host: Machine,
    /// Where credentials are, by name.
    pub auth: Vec<AuthSource>,
    /// The one of them that the CLI uses in a session of [`Agent::builder`](crate::Agent::builder), which loads no settings, so that an
    /// `apiKeyHelper` does not count. `None` if none is seen; the CLI may know places that are not looked at here.
    pub used: Option<AuthSource>,
    /// The home directory, if there is one.
    pub home: Option<Directory>,
    /// The CLI's configuration directory, if there is a home to look in.
    pub config: Option<Directory>,
    /// The working directory; `None` if it does not exist any more.
    pub cwd: Option<Directory>,
    /// Whether this is the superuser, for whom the CLI refuses `bypassPermissions`.
    pub root: bool,
    /// Whether `IS_SANDBOX` is set here. The SDK never passes it on by itself.
    pub sandbox_declared: bool,
    /// The variables here that a surrounding Claude Code session has set. The SDK keeps them back.
    pub nested: Vec<String>,
    /// The problems, worst first, each with advice.
    pub problems: Vec<Problem>,
}

impl DoctorReport {
    /// Whether nothing stands in the way of a session.
    pub fn is_healthy(&self) -> bool {
        self.problems
            .iter()
            .all(|problem| problem.severity != Severity::Error)
    }
}

/// An installation of the CLI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// Where the CLI is.
    pub path: PathBuf,
    /// Why this place was looked at.
    pub origin: FoundBy,
    /// Where the path leads, links resolved.
    pub real_path: Option<PathBuf>,
    /// What the file is; `None` if that is why it cannot be used.
    pub binary: Option<Binary>,
    /// Why this CLI cannot be used.
    pub unusable: Option<Unusable>,
    /// What this CLI replied to `--version`.
    pub version: VersionCheck,
}

/// The outcome of `--version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VersionCheck {
    /// The version, as `2.1.330`.
    Version(String),
    /// The CLI ran but did not print a version; the text is its output, shortened, with its exit.
    Odd(String),
    /// The CLI did not end in time and was killed.
    TimedOut,
    /// The system would not start it; the text is the system's.
    Failed(String),
    /// Not tried: the file cannot be run, or needs a JavaScript runtime.
    NotRun,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Machine {
    /// The operating system, in the names of [`std::env::consts::OS`].
    pub os: String,
    /// The processor, in the names of [`std::env::consts::ARCH`].
    pub arch: String,
    /// The C library of the system's own shell; `None` where that says nothing.
    pub libc: Option<Libc>,
}

/// A place that holds a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuthSource {
    /// A variable of the environment is set.
    Variable(String),
    /// A login is stored in this file.
    Login(PathBuf),
    /// A settings file names an `apiKeyHelper`.
    ApiKeyHelper(PathBuf),
}

impl AuthSource {
    /// Whether the variable is the switch of a cloud provider, where the account is that provider's.
    pub fn is_provider(&self) -> bool {
        matches!(self, Self::Variable(name) if name.starts_with("CLAUDE_CODE_USE_"))
    }
}

impl fmt::Display for AuthSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variable = match self {
            Self::Login(path) => return write!(f, "the login stored in {}", path.display()),
            Self::ApiKeyHelper(path) => return write!(f, "the apiKeyHelper in {}", path.display()),
            Self::Variable(name) => name,
        };
        write!(f, "{variable} in the environment")?;
        f.write_str(match variable.as_str() {
            "ANTHROPIC_API_KEY" => ": a key of the Claude API",
            "ANTHROPIC_AUTH_TOKEN" => ": a bearer token, as gateways take it",
            "ANTHROPIC_BASE_URL" => ": where requests go; no account by itself",
            "CLAUDE_CODE_OAUTH_TOKEN" => ": a token of a subscription",
            "CLAUDE_CODE_USE_BEDROCK" => ": Amazon Bedrock",
            "CLAUDE_CODE_USE_VERTEX" => ": Google Vertex AI",
            "CLAUDE_CODE_USE_FOUNDRY" => ": Microsoft Foundry",
            "AWS_BEARER_TOKEN_BEDROCK" => {
                ": a token for Amazon Bedrock; no account without CLAUDE_CODE_USE_BEDROCK"
            }
            _ => "",
        })
    }
}

/// A directory and what may be done there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Directory {
    /// Where the directory is.
    pub path: PathBuf,
    /// Whether the directory exists and is a directory.
    pub exists: bool,
    /// Whether the directory's entries can be listed.
    pub readable: bool,
    /// Whether files can be made in it; for one that does not exist, whether it could be made.
    pub writable: bool,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// How bad the problem is.
    pub severity: Severity,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub advice: String,
}

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A session cannot be started.
    Error,
    /// A session starts, but something may not work.
    Warning,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}; {}", self.found, self.advice)
    }
}
