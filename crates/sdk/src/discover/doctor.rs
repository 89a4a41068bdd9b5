//! The report that answers "why does it not start?": installations, machine, account, directories, surroundings.

mod problems;
mod report;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::binary::{self, Unusable};
use super::version_request::{self, Command};
use super::{FoundBy, candidates};
use crate::env::{self, KEYS, Surroundings, Variables};

pub use report::*;

/// What to examine. The default looks for the CLI as [`find`](super::find) does, from this process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Doctor {
    /// The path that the program would give, if it gives one.
    pub cli_path: Option<PathBuf>,
    /// The process that would start the CLI.
    pub surroundings: Surroundings,
    /// How long each `--version` may take. The default of 10 s leaves room for a cold disk.
    pub deadline: Duration,
}

impl Default for Doctor {
    fn default() -> Self {
        Self {
            cli_path: None,
            surroundings: Surroundings::of_this_process(),
            deadline: Duration::from_secs(10),
        }
    }
}

impl Doctor {
    /// Names the CLI that the program would name.
    pub fn cli_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.cli_path = Some(path.into());
        self
    }

    /// Examines for another process than this one.
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// Sets how long each `--version` may take.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Makes the report. Starts each installation that looks sound once, with `--version`, in a private home and with
    /// next to no environment; writes nothing else, and asks nothing of the network.
    ///
    /// # Cancel safety
    /// Dropping the future kills what runs.
    pub async fn examine(self) -> DoctorReport {
        let Self {
            cli_path,
            surroundings,
            deadline,
        } = self;
        let mut list = Vec::new();
        for (path, origin) in candidates(cli_path.as_deref(), &surroundings) {
            let named = matches!(origin, FoundBy::Given | FoundBy::Variable(_));
            let inspected = if path.is_absolute() {
                binary::inspect(&path, &surroundings)
            } else {
                Err(Unusable::NotAbsolute)
            };
            if !named && inspected == Err(Unusable::Missing) {
                continue;
            }
            let real_path = path.canonicalize().ok();
            let version = match &inspected {
                Err(_) => VersionCheck::NotRun,
                Ok(_) if binary::is_module(&path) => VersionCheck::NotRun,
                Ok(_) => match known_version(&list, real_path.as_deref()) {
                    Some(known) => known,
                    None => {
                        let program = path.clone();
                        let before = Vec::new();
                        version_request::ask(&Command { program, before }, &surroundings, deadline).await
                    }
                },
            };
            let (binary, unusable) = match inspected {
                Ok(binary) => (Some(binary), None),
                Err(why) => (None, Some(why)),
            };
            list.push(Candidate {
                path,
                origin,
                real_path,
                binary,
                unusable,
                version,
            });
        }
        report(list, &surroundings)
    }
}

/// Examines this process's surroundings with the default settings. See [`Doctor::examine`].
///
/// # Cancel safety
/// As [`Doctor::examine`].
pub async fn doctor() -> DoctorReport {
    Doctor::default().examine().await
}

/// The variables that pick an account or a provider.
const AUTH_VARIABLES: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "AWS_BEARER_TOKEN_BEDROCK",
];

fn report(candidates: Vec<Candidate>, surroundings: &Surroundings) -> DoctorReport {
    let home = surroundings.home();
    let config = match surroundings.var("CLAUDE_CONFIG_DIR") {
        Some(directory) => Some(PathBuf::from(directory)),
        None => home.as_ref().map(|home| home.join(".claude")),
    };
    let mut report = DoctorReport {
        chosen: chosen(&candidates),
        candidates,
        host: host(surroundings),
        used: None,
        auth: auth(config.as_deref(), surroundings),
        home: home.map(Directory::examine),
        config: config.map(Directory::examine),
        cwd: surroundings.cwd.clone().map(Directory::examine),
        root: surroundings.is_root(),
        sandbox_declared: surroundings.var("IS_SANDBOX").is_some(),
        nested: nested(&surroundings.env),
        problems: Vec::new(),
    };
    report.used = used(&report.auth);
    report.problems = problems::problems(&report);
    report
}

/// What [`find`](super::find) would take: a path that was named is taken or nothing is.
fn chosen(candidates: &[Candidate]) -> Option<PathBuf> {
    let first = candidates
        .iter()
        .find(|c| c.unusable.is_none() || matches!(c.origin, FoundBy::Given | FoundBy::Variable(_)))?;
    first.unusable.is_none().then(|| first.path.clone())
}

impl Directory {
    fn examine(path: PathBuf) -> Self {
        let exists = path.is_dir();
        let readable = exists && std::fs::read_dir(&path).is_ok();
        let nearest = path.ancestors().find(|ancestor| ancestor.is_dir());
        // Permission bits lie (read-only mounts, ACLs, root); making a file does not. It is gone at once.
        let writable = nearest.is_some_and(|nearest| tempfile::tempfile_in(nearest).is_ok());
        Self {
            path,
            exists,
            readable,
            writable,
        }
    }
}

fn auth(config: Option<&Path>, surroundings: &Surroundings) -> Vec<AuthSource> {
    let mut sources: Vec<AuthSource> = AUTH_VARIABLES
        .iter()
        .filter(|name| surroundings.var(name).is_some_and(|value| counts(name, value)))
        .map(|name| AuthSource::Variable((*name).to_owned()))
        .collect();
    let Some(config) = config else { return sources };
    let login = config.join(".credentials.json");
    if login.is_file() {
        sources.push(AuthSource::Login(login));
    }
    let settings = config.join("settings.json");
    let helper = std::fs::read(&settings)
        .ok()
        .and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok())
        .is_some_and(|settings| settings.get("apiKeyHelper").is_some());
    if helper {
        sources.push(AuthSource::ApiKeyHelper(settings));
    }
    sources
}

/// Whether a variable with this value means something to the CLI: an empty key is none, and a switch can be off.
fn counts(name: &str, value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    let is_off = matches!(value.to_ascii_lowercase().as_str(), "0" | "false" | "no" | "off");
    !(value.is_empty() || name.starts_with("CLAUDE_CODE_USE_") && is_off)
}

/// What the CLI takes of these in a session with the default options, which load no settings. A cloud provider comes first, then
/// keys and tokens, then the login.
fn used(sources: &[AuthSource]) -> Option<AuthSource> {
    let variable = |name: &str| AuthSource::Variable(name.to_owned());
    let switches = sources.iter().find(|source| source.is_provider());
    let key = KEYS
        .iter()
        .map(|key| variable(key))
        .find(|key| sources.contains(key));
    let login = sources
        .iter()
        .find(|source| matches!(source, AuthSource::Login(_)));
    switches.cloned().or(key).or_else(|| login.cloned())
}

/// The variables that a session of Claude Code gives to what it starts. Only some are told from what a user sets: if none of these
/// is there, nothing is.
fn nested(variables: &Variables) -> Vec<String> {
    const CERTAIN: &[&str] = &[
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_PID",
        "CLAUDE_ENV_FILE",
        "CLAUDE_PROJECT_DIR",
    ];
    const MARKS: &[&str] = &["CLAUDECODE", "CLAUDE_*", "AI_AGENT"];
    const OWN: &[&str] = &[
        "CLAUDE_CODE_USE_*",
        "CLAUDE_CODE_OAUTH_*",
        "CLAUDE_CODE_DISABLE_*",
        "CLAUDE_CODE_EXECUTABLE",
        "CLAUDE_CODE_GIT_BASH_PATH",
        "CLAUDE_CONFIG_DIR",
    ];
    if !variables.keys().any(|name| env::is_listed(CERTAIN, name)) {
        return Vec::new();
    }
    let by_session = |name: &&std::ffi::OsString| env::is_listed(MARKS, name) && !env::is_listed(OWN, name);
    variables
        .keys()
        .filter(by_session)
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

fn host(surroundings: &Surroundings) -> Machine {
    let libc = cfg!(target_os = "linux")
        .then(|| {
            binary::inspect(Path::new("/bin/sh"), surroundings)
                .ok()
                .and_then(|shell| shell.libc)
        })
        .flatten();
    Machine {
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        libc,
    }
}

fn known_version(list: &[Candidate], real_path: Option<&Path>) -> Option<VersionCheck> {
    let real_path = real_path?;
    let same = |candidate: &&Candidate| candidate.real_path.as_deref() == Some(real_path);
    list.iter().find(same).map(|candidate| candidate.version.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_sessions_are_told_by_their_variables() {
        let variables = [
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_USE_BEDROCK",
            "HOME",
            "CLAUDE_CONFIG_DIR",
        ]
        .map(|name| (name.into(), "1".into()));
        assert_eq!(
            nested(&Variables::from(variables)),
            ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID"]
        );
        // What a user sets is no mark.
        let own = ["CLAUDE_CODE_TMPDIR", "CLAUDE_CODE_MAX_RETRIES", "AI_AGENT"]
            .map(|name| (name.into(), "1".into()));
        assert_eq!(nested(&Variables::from(own)), [""; 0]);
    }

    #[test]
    fn the_account_is_what_the_cli_takes_first() {
        let variable = |name: &str| AuthSource::Variable(name.to_owned());
        let login = AuthSource::Login("/l".into());
        let helper = AuthSource::ApiKeyHelper("/s".into());
        let key = variable("ANTHROPIC_API_KEY");
        let base = variable("ANTHROPIC_BASE_URL");
        assert_eq!(used(&[base.clone(), helper.clone()]), None);
        assert_eq!(used(&[helper.clone(), login.clone()]), Some(login.clone()));
        assert_eq!(used(&[base, login.clone(), key.clone()]), Some(key.clone()));
        let cloud = variable("CLAUDE_CODE_USE_VERTEX");
        assert_eq!(used(&[key, login, cloud.clone()]), Some(cloud));
        for (name, value, is) in [
            ("ANTHROPIC_API_KEY", "", false),
            ("ANTHROPIC_API_KEY", "0", true),
            ("CLAUDE_CODE_USE_BEDROCK", "0", false),
            ("CLAUDE_CODE_USE_BEDROCK", "1", true),
        ] {
            assert_eq!(counts(name, OsStr::new(value)), is, "{name}={value}");
        }
    }

    #[test]
    fn unset_is_not_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let there = Directory::examine(directory.path().to_owned());
        assert!(there.exists && there.readable && there.writable);
        let not_yet = Directory::examine(directory.path().join("a/b"));
        assert!(!not_yet.exists && !not_yet.readable && not_yet.writable);
    }

    #[test]
    fn os_names_are_compared_as_the_system_does() {
        assert!(env::is_listed(&["A_*"], OsStr::new("A_B")));
        assert!(!env::is_listed(&["A_*"], OsStr::new("B_A_")));
    }
}
