//! The environment of the CLI: a list of the variables that it inherits.
//!
//! A child that inherits everything inherits the wrong account (`ANTHROPIC_API_KEY`), the marks of an outer session (`CLAUDECODE`,
//! `CLAUDE_CODE_*`) and debugger hooks that make it exit silently (`NODE_OPTIONS`). So the default passes only [`PASSED`], and
//! even [`Environment::inherit_all`] does not pass [`NEVER_INHERITED`].

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variables with a key or a token; each selects an account.
pub(crate) const KEYS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
];

/// A complete environment, or a part of one: names and values as the operating system has them.
pub type Variables = BTreeMap<OsString, OsString>;

/// The variables that pass by default. A name that ends in `*` stands for all names with that beginning.
///
/// Deliberately not on the list: credentials of any kind (those of the API come from [`Auth`](crate::options::Auth)),
/// `SSH_AUTH_SOCK` (it lets the child sign as the user), `LD_PRELOAD` and the like. [`Environment::pass`] adds what a
/// program needs.
pub const PASSED: &[&str] = &[
    // Who and where.
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "TMPDIR",
    "TMP",
    "TEMP",
    // Language and time.
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LOCALE_ARCHIVE",
    "TZ",
    "TZDIR",
    // The terminal, for the tools that the CLI runs.
    "TERM",
    "COLORTERM",
    "TERMINFO",
    "TERMINFO_DIRS",
    "NO_COLOR",
    // The way out: proxies and certificates.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    // Where programs keep their files.
    "XDG_*",
    "CLAUDE_CONFIG_DIR",
    // What the user has decided about the CLI's own traffic.
    "DISABLE_TELEMETRY",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_AUTOUPDATER",
    "DO_NOT_TRACK",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    // What NixOS needs to run a program that was built elsewhere.
    "NIX_LD",
    "NIX_LD_LIBRARY_PATH",
    // What a Windows program cannot start without.
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "USERPROFILE",
    "USERNAME",
    "USERDOMAIN",
    "HOMEDRIVE",
    "HOMEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "COMMONPROGRAMFILES",
    "COMMONPROGRAMFILES(X86)",
    "ALLUSERSPROFILE",
    "PUBLIC",
    "COMPUTERNAME",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "OS",
    "PSMODULEPATH",
    "CLAUDE_CODE_GIT_BASH_PATH",
];

/// The variables that are never inherited, whatever [`Environment`] says; only [`Environment::set`] can set one.
/// A name that ends in `*` stands for all names with that beginning. Names that [`PASSED`] has in full (`CLAUDE_CONFIG_DIR`, for
/// example) are exempt.
pub const NEVER_INHERITED: &[&str] = &[
    // An outer session's marks. With CLAUDECODE the CLI takes itself for a nested session and may refuse to run.
    "CLAUDECODE",
    "CLAUDE_*",
    "AI_AGENT",
    // Money: which account pays is decided by `Auth`, which also knows what to pass for each provider.
    "ANTHROPIC_*",
    "AWS_BEARER_TOKEN_BEDROCK",
    // Options and debuggers of JavaScript runtimes. The CLI is built on one and obeys them.
    "NODE_OPTIONS",
    "NODE_INSPECT*",
    "NODE_V8_COVERAGE",
    "NODE_CHANNEL_FD",
    "NODE_CHANNEL_SERIALIZATION_MODE",
    "NODE_UNIQUE_ID",
    "BUN_OPTIONS",
    "BUN_INSPECT*",
    "BUN_CONFIG_*",
    "BUN_BE_BUN",
    "ELECTRON_*",
    "VSCODE_INSPECTOR_OPTIONS",
    "DEBUG",
    // A trace that the parent may long have finished.
    "TRACEPARENT",
    "TRACESTATE",
    // Only a deliberate choice may say that this is a sandbox.
    "IS_SANDBOX",
];

/// How the CLI's environment is computed from that of this process. The default passes [`PASSED`].
///
/// ```
/// use outrigger::env::Environment;
///
/// let environment = Environment::listed()
///     .pass("SSH_AUTH_SOCK")
///     .set("GIT_AUTHOR_NAME", "Release robot")
///     .unset("TERM");
/// # let _ = environment;
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    everything: bool,
    passed: Vec<OsString>,
    unset: Vec<OsString>,
    set: Variables,
}

impl Environment {
    /// Passes only [`PASSED`].
    pub fn listed() -> Self {
        Self::default()
    }

    /// Passes everything except [`NEVER_INHERITED`]: marks of an outer session, credentials of the API, options of JavaScript
    /// runtimes, trace context. For programs that cannot know what the tools of a project need.
    pub fn inherit_all() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }

    /// Passes one more variable of this process, if it is set. This also works for a variable of [`NEVER_INHERITED`], except for
    /// those that belong to [`Auth`](crate::options::Auth).
    pub fn pass(mut self, name: impl Into<OsString>) -> Self {
        self.passed.push(name.into());
        self
    }

    /// Does not pass one variable of this process, neither by itself nor for [`Auth`](crate::options::Auth). A variable that the chosen
    /// `Auth` sets itself is an error.
    pub fn unset(mut self, name: impl Into<OsString>) -> Self {
        self.unset.push(name.into());
        self
    }

    /// Sets a variable of the CLI. This outranks inherited variables and those that the SDK sets.
    pub fn set(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        put(&mut self.set, name.into(), value.into());
        self
    }

    /// The variables set by [`Environment::set`].
    pub fn own(&self) -> &Variables {
        &self.set
    }

    /// The names given to [`Environment::pass`].
    pub fn passed(&self) -> &[OsString] {
        &self.passed
    }

    /// The variables of `parent` that pass, without those of [`Environment::set`]: they come last, see
    /// [`Options::launch`](crate::options::Options::launch).
    pub fn inherited(&self, parent: &Variables) -> Variables {
        parent
            .iter()
            .filter(|(name, _)| self.lets(name))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect()
    }

    /// Whether the name was given to [`Environment::unset`].
    pub(crate) fn unsets(&self, name: &OsStr) -> bool {
        self.unset.iter().any(|unset| same(unset, name))
    }

    /// The variables of `parent` without those of [`Environment::unset`].
    pub(crate) fn without_unset(&self, parent: &Variables) -> Variables {
        let mut variables = parent.clone();
        variables.retain(|name, _| !self.unsets(name));
        variables
    }

    fn lets(&self, name: &OsStr) -> bool {
        if self.unsets(name) {
            return false;
        }
        if self.passed.iter().any(|passed| same(passed, name)) {
            return true;
        }
        if is_listed(PASSED, name) {
            return true;
        }
        self.everything && !is_listed(NEVER_INHERITED, name)
    }
}

/// Shows names only: values may be secret.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("everything", &self.everything)
            .field("passed", &self.passed)
            .field("unset", &self.unset)
            .field("set", &self.set.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// Whether `name` is in `list`, whose entries may end in `*`.
pub(crate) fn is_listed(list: &[&str], name: &OsStr) -> bool {
    list.iter().any(|entry| match entry.strip_suffix('*') {
        Some(beginning) => begins(name, beginning),
        None => same(OsStr::new(entry), name),
    })
}

/// Whether two names are one variable: Windows ignores case.
pub(crate) fn same(a: &OsStr, b: &OsStr) -> bool {
    if cfg!(windows) {
        a.eq_ignore_ascii_case(b)
    } else {
        a == b
    }
}

fn begins(name: &OsStr, beginning: &str) -> bool {
    let (name, beginning) = (name.as_encoded_bytes(), beginning.as_bytes());
    name.get(..beginning.len()).is_some_and(|head| {
        if cfg!(windows) {
            head.eq_ignore_ascii_case(beginning)
        } else {
            head == beginning
        }
    })
}

/// Sets a variable; on Windows in any case.
pub(crate) fn put(variables: &mut Variables, name: OsString, value: OsString) {
    if cfg!(windows) {
        variables.retain(|other, _| !same(other, &name));
    }
    variables.insert(name, value);
}

/// Removes a variable; on Windows in any case.
pub(crate) fn remove(variables: &mut Variables, name: &str) {
    variables.retain(|other, _| !same(other, OsStr::new(name)));
}

/// Looks a variable up; on Windows in any case. An empty value counts as none.
pub(crate) fn get<'a>(variables: &'a Variables, name: &str) -> Option<&'a OsStr> {
    let found = match variables.get(OsStr::new(name)) {
        Some(value) => Some(value),
        None if cfg!(windows) => variables
            .iter()
            .find(|(other, _)| same(other, OsStr::new(name)))
            .map(|(_, value)| value),
        None => None,
    };
    found.map(OsString::as_os_str).filter(|value| !value.is_empty())
}

/// The process that starts the CLI: its environment, its working directory, its user.
///
/// Read once and passed on, so that a launch is a function of its arguments, which tests can set.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Surroundings {
    /// The environment.
    pub env: Variables,
    /// The working directory; `None` if it no longer exists or cannot be read.
    pub cwd: Option<PathBuf>,
    /// The user id on Unix; `None` elsewhere.
    pub uid: Option<u32>,
}

impl Surroundings {
    /// Reads the variables of this process.
    pub fn of_this_process() -> Self {
        Self {
            env: std::env::vars_os().collect(),
            cwd: std::env::current_dir().ok(),
            uid: uid(),
        }
    }

    /// Any environment and directory: for a launch on behalf of another process, and for tests. The user is that of this process.
    pub fn new(env: impl IntoIterator<Item = (OsString, OsString)>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            env: env.into_iter().collect(),
            cwd: Some(cwd.into()),
            uid: uid(),
        }
    }

    /// A variable, if it is set and not empty.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        get(&self.env, name)
    }

    /// The home directory: `HOME`, on Windows `USERPROFILE` before it. `None` if neither holds an absolute path.
    ///
    /// The user database is not used: a service without `HOME` has to set where its sessions belong.
    pub fn home(&self) -> Option<PathBuf> {
        let names: &[&str] = if cfg!(windows) {
            &["USERPROFILE", "HOME"]
        } else {
            &["HOME"]
        };
        names.iter().find_map(|name| {
            self.var(name)
                .map(Path::new)
                .filter(|path| path.is_absolute())
                .map(PathBuf::from)
        })
    }

    /// Puts another home in the place of this one.
    pub(crate) fn move_home(&mut self, home: &Path) {
        remove(&mut self.env, "CLAUDE_CONFIG_DIR");
        put(&mut self.env, "HOME".into(), home.into());
        if cfg!(windows) {
            put(&mut self.env, "USERPROFILE".into(), home.into());
        }
    }

    /// Whether this is the superuser. The CLI does not skip permissions for the superuser.
    pub fn is_root(&self) -> bool {
        self.uid == Some(0)
    }
}

/// Shows the names of variables only.
impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .field("uid", &self.uid)
            .finish()
    }
}

#[cfg(unix)]
fn uid() -> Option<u32> {
    Some(rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn uid() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(names: &[&str]) -> Variables {
        names
            .iter()
            .map(|name| (OsString::from(name), OsString::from("x")))
            .collect()
    }

    fn names(variables: &Variables) -> Vec<&str> {
        variables.keys().map(|name| name.to_str().unwrap()).collect()
    }

    const HOSTILE: &[&str] = &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_ENV_FILE",
        "CLAUDE_PROJECT_DIR",
        "AI_AGENT",
        "NODE_OPTIONS",
        "BUN_OPTIONS",
        "ELECTRON_RUN_AS_NODE",
        "TRACEPARENT",
        "IS_SANDBOX",
        "DEBUG",
    ];

    #[test]
    fn default_passes_the_list_and_nothing_else() {
        let mut parent = vars(&[
            "HOME",
            "PATH",
            "LC_TIME",
            "XDG_CONFIG_HOME",
            "CLAUDE_CONFIG_DIR",
            "EDITOR",
            "AWS_PROFILE",
        ]);
        parent.extend(vars(HOSTILE));
        let got = Environment::listed().inherited(&parent);
        assert_eq!(
            names(&got),
            ["CLAUDE_CONFIG_DIR", "HOME", "LC_TIME", "PATH", "XDG_CONFIG_HOME"]
        );
    }

    #[test]
    fn everything_still_strips_what_must_not_pass() {
        let mut parent = vars(&["HOME", "EDITOR", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_GIT_BASH_PATH"]);
        parent.extend(vars(HOSTILE));
        let got = Environment::inherit_all().inherited(&parent);
        assert_eq!(
            names(&got),
            ["CLAUDE_CODE_GIT_BASH_PATH", "CLAUDE_CONFIG_DIR", "EDITOR", "HOME"]
        );
    }

    #[test]
    fn pass_and_unset_name_single_variables() {
        let parent = vars(&["HOME", "TERM", "SSH_AUTH_SOCK", "NODE_OPTIONS"]);
        let got = Environment::listed()
            .pass("SSH_AUTH_SOCK")
            .unset("TERM")
            .inherited(&parent);
        assert_eq!(names(&got), ["HOME", "SSH_AUTH_SOCK"]);
    }

    #[test]
    fn debug_shows_no_value() {
        let environment = Environment::listed().set("TOKEN", "hunter2");
        assert!(!format!("{environment:?}").contains("hunter2"));
        assert!(format!("{environment:?}").contains("TOKEN"));
        let surroundings = Surroundings::new([("TOKEN".into(), "hunter2".into())], "/");
        assert!(!format!("{surroundings:?}").contains("hunter2"));
    }

    #[test]
    #[cfg(unix)]
    fn home_must_be_absolute() {
        let at = |home: &str| Surroundings::new([("HOME".into(), home.into())], "/").home();
        assert_eq!(at("/home/ada"), Some(PathBuf::from("/home/ada")));
        assert_eq!(at("ada"), None);
        assert_eq!(at(""), None);
    }
}
