//! What an operator allows, as it stands in a file.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger::hooks::{self, HookOutput};
use outrigger::options::{Auth, Environment, Options, Secret};
use outrigger::protocol::shared::{PermissionMode, SettingSource};
use serde::Deserialize;
use toml::Spanned;

use crate::address_rule::AddressRule;
use crate::memory::MemoryLimits;
use crate::policy::HostPolicy;
use crate::workspace::WorkspacePolicy;

/// Where a host listens unless something else is said.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7070);

/// The most bytes of a file with one secret.
const SECRET: u64 = 64 << 10;

/// A policy file: what sessions may have, where the host listens, and whom it may call.
///
/// ```toml
/// [sessions]
/// roots = ["/srv/projects"]              # where sessions may be, with what is below
/// models = ["sonnet", "opus"]            # that clients may choose; none unless said
/// permission_modes = ["plan"]            # that clients may choose; none unless said
/// idle_seconds = 600                     # how long a process without work lives
/// max_processes = 8
/// spares = 2                             # started processes that wait for new sessions; none unless said
/// changed_inputs = false                 # whether who allows a call may change its input, which no rule checks
/// memory_soft_mib = 2048                 # a process with more ends after its turn; no limit unless said
/// memory_hard_mib = 4096                 # a process with more is killed; no limit unless said
/// approvals_expire_seconds = 86400       # then nobody is waited for; never unless said
/// deferred = "Bash|Write"                # tools whose approvals outlive the process, and the host; none unless said
///
/// [workspaces]                           # unless said, no worktrees and no diffs
/// directory = "/var/lib/outrigger/workspaces"
/// worktrees = true
/// snapshots = true
/// setup = ["npm", "ci"]                  # run in a new worktree
///
/// [options]                              # of every session
/// model = "sonnet"
/// permission_mode = "acceptEdits"
/// allowed_tools = ["Read", "Bash(git log *)"]
/// disallowed_tools = ["WebFetch"]
/// additional_directories = ["/srv/shared"]
/// setting_sources = ["project"]
/// max_turns = 100
/// max_budget_usd = 20.0
///
/// [environment]                          # of every session
/// pass = ["LANG"]                        # variables of the host that sessions get
/// set = { CI = "1", NPM_TOKEN = { file = "/run/secrets/npm" } }
///
/// [account]                              # unless said, the one that `claude` would use
/// api_key = { file = "/run/secrets/anthropic" }   # or { env = "NAME" }; also auth_token, oauth_token
///
/// [server]
/// listen = "127.0.0.1:7070"
/// proxy_names = ["agents.example.com"]   # host names of a proxy in front that has TLS
/// origins = ["https://app.example.com"]  # of web pages that may be clients
///
/// [server.tls]
/// certificate = "/etc/outrigger/cert.pem"
/// key = "/etc/outrigger/key.pem"
/// names = ["host.example.com"]
///
/// [webhooks]
/// networks = ["127.0.0.0/8"]             # beside public addresses over https
/// ```
///
/// Only `roots` has to be there. A key that is not known is an error, so that nothing that was meant to restrict is ignored. A secret is never written in the
/// file: it is named by a file or by a variable of the host's environment. Relative paths start at the file's directory.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServePolicy {
    /// What sessions may have.
    pub policy: HostPolicy,
    /// Where the host listens.
    pub server: ServerSettings,
    /// Which addresses webhooks may have.
    pub webhooks: AddressRule,
}

/// Where a host listens, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// The address; `127.0.0.1:7070` unless the file says another one.
    pub listen: SocketAddr,
    /// The host names of a proxy in front that has TLS; empty if there is none.
    pub proxy_names: Vec<String>,
    /// The origins of web pages that may be clients.
    pub origins: Vec<String>,
    /// The host's own certificate.
    pub tls: Option<TlsFiles>,
}

/// A certificate and its key, in PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The file of the certificate, with its chain.
    pub certificate: PathBuf,
    /// The file of the key.
    pub key: PathBuf,
    /// The host names that are served.
    pub names: Vec<String>,
}

/// What is wrong with a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServePolicyError {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1, if it is about one.
    pub line: Option<usize>,
    /// What is wrong. It has no secret in it.
    pub message: String,
}

impl fmt::Display for ServePolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServePolicyError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sessions: SessionsTable,
    workspaces: Option<WorkspacesTable>,
    #[serde(default)]
    options: OptionsTable,
    #[serde(default)]
    environment: EnvironmentTable,
    account: Option<Spanned<AccountTable>>,
    #[serde(default)]
    server: ServerTable,
    #[serde(default)]
    webhooks: WebhooksTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionsTable {
    roots: Spanned<Vec<Spanned<PathBuf>>>,
    #[serde(default)]
    models: Vec<String>,
    #[serde(default)]
    permission_modes: Vec<PermissionMode>,
    idle_seconds: Option<u64>,
    max_processes: Option<Spanned<usize>>,
    spares: Option<Spanned<usize>>,
    #[serde(default)]
    changed_inputs: bool,
    memory_soft_mib: Option<u64>,
    memory_hard_mib: Option<Spanned<u64>>,
    approvals_expire_seconds: Option<u64>,
    deferred: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkspacesTable {
    directory: PathBuf,
    worktrees: Option<bool>,
    snapshots: Option<bool>,
    #[serde(default)]
    setup: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct OptionsTable {
    cli: Option<PathBuf>,
    model: Option<String>,
    permission_mode: Option<PermissionMode>,
    allowed_tools: Vec<Spanned<String>>,
    disallowed_tools: Vec<Spanned<String>>,
    additional_directories: Vec<PathBuf>,
    setting_sources: Option<Vec<SettingSource>>,
    max_turns: Option<u64>,
    max_budget_usd: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct EnvironmentTable {
    pass: Vec<String>,
    set: BTreeMap<String, Spanned<Value>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct AccountTable {
    api_key: Option<Spanned<Reference>>,
    auth_token: Option<Spanned<Reference>>,
    oauth_token: Option<Spanned<Reference>>,
}

/// A value of a variable: as it stands there, or a secret that is named.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text, `{ file = \"…\" }` or `{ env = \"…\" }`")]
enum Value {
    Text(String),
    Named(Reference),
}

/// Where a secret is.
enum Reference {
    /// In this file, without the line break at its end.
    File(PathBuf),
    /// In this variable of the host's environment.
    Env(String),
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named;

        impl<'de> serde::de::Visitor<'de> for Named {
            type Value = Reference;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`{ file = \"…\" }` or `{ env = \"…\" }`")
            }

            /// The message of serde would have the text, which may be the secret.
            fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Reference, E> {
                Err(E::custom(
                    "a secret is not written here, but named: `{ file = \"…\" }` or `{ env = \"…\" }`",
                ))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Reference, A::Error> {
                let reference = match map.next_key::<String>()?.as_deref() {
                    Some("file") => Reference::File(map.next_value()?),
                    Some("env") => Reference::Env(map.next_value()?),
                    _ => return Err(serde::de::Error::invalid_length(0, &self)),
                };
                match map.next_key::<String>()? {
                    None => Ok(reference),
                    Some(_) => Err(serde::de::Error::invalid_length(2, &self)),
                }
            }
        }

        deserializer.deserialize_any(Named)
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ServerTable {
    listen: Option<Spanned<SocketAddr>>,
    proxy_names: Vec<String>,
    origins: Vec<Spanned<String>>,
    tls: Option<TlsTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsTable {
    certificate: PathBuf,
    key: PathBuf,
    #[serde(default)]
    names: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WebhooksTable {
    networks: Vec<Spanned<String>>,
}

impl ServePolicy {
    /// This policy, at `127.0.0.1:7070`, with webhooks to public addresses.
    pub fn new(policy: HostPolicy) -> Self {
        Self {
            policy,
            server: ServerSettings {
                listen: LISTEN,
                proxy_names: Vec::new(),
                origins: Vec::new(),
                tls: None,
            },
            webhooks: AddressRule::public(),
        }
    }

    /// Reads a policy file in TOML, and the secrets that it names.
    ///
    /// # Errors
    /// When the file or a secret can't be read, when a key is not known or a value is not valid, and when the host would be open to a network without TLS.
    /// The error has the line.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ServePolicyError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| ServePolicyError {
            path: path.to_owned(),
            line: None,
            message: format!("cannot be read: {error}"),
        })?;
        let environment = |name: &str| std::env::var(name).ok();
        let reader = Reader {
            path,
            text: &text,
            environment: &environment,
        };
        reader.read()
    }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    environment: &'a dyn Fn(&str) -> Option<String>,
}

type Read<T> = Result<T, ServePolicyError>;

impl Reader<'_> {
    fn wrong(&self, at: Option<Range<usize>>, message: impl Into<String>) -> ServePolicyError {
        let before = at.and_then(|at| self.text.get(..at.start));
        ServePolicyError {
            path: self.path.to_owned(),
            line: before.map(|before| before.matches('\n').count() + 1),
            message: message.into(),
        }
    }

    /// A path as it is meant.
    fn place(&self, path: &Path) -> PathBuf {
        match self.path.parent() {
            Some(directory) => directory.join(path),
            None => path.to_owned(),
        }
    }

    fn read(&self) -> Read<ServePolicy> {
        let file: File =
            toml::from_str(self.text).map_err(|error| self.wrong(error.span(), error.message().trim()))?;
        let mut options = self.options(file.options)?;
        options.environment = self.environment(file.environment)?;
        options.auth = match file.account {
            Some(account) => self.account(account)?,
            None => Auth::Inherit,
        };
        options
            .check()
            .map_err(|error| self.wrong(None, format!("the options of sessions: {error}")))?;
        let mut policy = self.sessions(file.sessions, options)?;
        policy.workspaces = file.workspaces.map(|table| self.workspaces(table));
        Ok(ServePolicy {
            policy,
            server: self.server(file.server)?,
            webhooks: self.webhooks(file.webhooks)?,
        })
    }

    fn sessions(&self, table: SessionsTable, options: Options) -> Read<HostPolicy> {
        let span = table.roots.span();
        let mut roots = Vec::new();
        for root in table.roots.into_inner() {
            let place = self.place(root.get_ref());
            if !place.is_dir() {
                return Err(self.wrong(
                    Some(root.span()),
                    format!("the root {} is no directory that is there", place.display()),
                ));
            }
            roots.push(place);
        }
        if roots.is_empty() {
            return Err(self.wrong(Some(span), "`roots` is empty: no session could be anywhere"));
        }
        let mut policy = HostPolicy::new(options, roots);
        policy.models = table.models;
        policy.permission_modes = table
            .permission_modes
            .iter()
            .map(|mode| mode.as_str().to_owned())
            .collect();
        if let Some(seconds) = table.idle_seconds {
            policy.idle = Duration::from_secs(seconds);
        }
        policy.changed_inputs = table.changed_inputs;
        if let Some(most) = table.max_processes {
            if *most.get_ref() == 0 {
                return Err(self.wrong(Some(most.span()), "`max_processes` is at least 1"));
            }
            policy.max_processes = most.into_inner();
        }
        if let Some(spares) = table.spares {
            if *spares.get_ref() > policy.max_processes {
                let error = "`spares` is more than `max_processes`, in which spares count";
                return Err(self.wrong(Some(spares.span()), error));
            }
            policy.spares = spares.into_inner();
        }
        if let (Some(soft), Some(hard)) = (table.memory_soft_mib, &table.memory_hard_mib)
            && soft > *hard.get_ref()
        {
            return Err(self.wrong(Some(hard.span()), "`memory_hard_mib` is below `memory_soft_mib`"));
        }
        if table.memory_soft_mib.is_some() || table.memory_hard_mib.is_some() {
            let bytes = |mib: u64| mib.saturating_mul(1 << 20);
            let mut memory = MemoryLimits::new();
            memory.soft = table.memory_soft_mib.map(bytes);
            memory.hard = table.memory_hard_mib.map(|hard| bytes(hard.into_inner()));
            policy.memory = Some(memory);
        }
        policy.approvals_expire = table.approvals_expire_seconds.map(Duration::from_secs);
        if let Some(matcher) = table.deferred {
            let hook = hooks::pre_tool_use(async |_, _| HookOutput::none()).matcher(matcher.get_ref());
            let checked = Options::new(Auth::Inherit).hook(hook).check();
            checked.map_err(|error| self.wrong(Some(matcher.span()), error.to_string()))?;
            policy.deferred = Some(matcher.into_inner());
        }
        Ok(policy)
    }

    fn workspaces(&self, table: WorkspacesTable) -> WorkspacePolicy {
        let mut workspaces = WorkspacePolicy::new(self.place(&table.directory));
        workspaces.worktrees = table.worktrees.unwrap_or(workspaces.worktrees);
        workspaces.snapshots = table.snapshots.unwrap_or(workspaces.snapshots);
        workspaces.setup = table.setup;
        workspaces
    }

    fn options(&self, table: OptionsTable) -> Read<Options> {
        let mut options = Options::new(Auth::Inherit);
        options.cli_path = table.cli.map(|cli| self.place(&cli));
        options.model = table.model;
        options.permission_mode = table.permission_mode;
        options.setting_sources = table.setting_sources;
        options.max_turns = table.max_turns;
        options.max_budget_usd = table.max_budget_usd;
        options.additional_directories = table
            .additional_directories
            .iter()
            .map(|directory| self.place(directory))
            .collect();
        // One at a time, so that the error has the line of the rule.
        for rule in &table.allowed_tools {
            let alone = Options::new(Auth::Inherit).allowed_tools([rule.get_ref()]);
            self.check_rule(&alone, rule)?;
        }
        for rule in &table.disallowed_tools {
            let alone = Options::new(Auth::Inherit).disallowed_tools([rule.get_ref()]);
            self.check_rule(&alone, rule)?;
        }
        let texts = |rules: Vec<Spanned<String>>| rules.into_iter().map(Spanned::into_inner).collect();
        options.allowed_tools = texts(table.allowed_tools);
        options.disallowed_tools = texts(table.disallowed_tools);
        Ok(options)
    }

    fn check_rule(&self, alone: &Options, rule: &Spanned<String>) -> Read<()> {
        alone
            .check()
            .map_err(|error| self.wrong(Some(rule.span()), error.to_string()))
    }

    fn environment(&self, table: EnvironmentTable) -> Read<Environment> {
        let mut environment = Environment::listed();
        for name in table.pass {
            environment = environment.pass(name);
        }
        for (name, value) in table.set {
            let span = value.span();
            let value = match value.into_inner() {
                Value::Text(text) => text,
                Value::Named(reference) => self.secret(&reference, span)?,
            };
            environment = environment.set(name, value);
        }
        Ok(environment)
    }

    fn account(&self, account: Spanned<AccountTable>) -> Read<Auth> {
        let span = account.span();
        let table = account.into_inner();
        let read = |reference: Spanned<Reference>| {
            let span = reference.span();
            self.secret(&reference.into_inner(), span).map(Secret::new)
        };
        match (table.api_key, table.auth_token, table.oauth_token) {
            (Some(key), None, None) => read(key).map(Auth::ApiKey),
            (None, Some(token), None) => read(token).map(Auth::AuthToken),
            (None, None, Some(token)) => read(token).map(Auth::OAuthToken),
            _ => Err(self.wrong(
                Some(span),
                "`account` has one of `api_key`, `auth_token` and `oauth_token`",
            )),
        }
    }

    fn secret(&self, reference: &Reference, span: Range<usize>) -> Read<String> {
        let wrong = |message: String| self.wrong(Some(span.clone()), message);
        let secret = match reference {
            Reference::Env(name) => (self.environment)(name).ok_or_else(|| {
                wrong(format!(
                    "the variable {name} is not set in the environment of this process"
                ))
            })?,
            Reference::File(path) => {
                let path = self.place(path);
                let failed = |why: String| wrong(format!("the secret in {}: {why}", path.display()));
                let length = std::fs::metadata(&path)
                    .map_err(|error| failed(error.to_string()))?
                    .len();
                if length > SECRET {
                    return Err(failed(format!(
                        "the file has {length} bytes, which no secret has"
                    )));
                }
                std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?
            }
        };
        let secret = secret.trim_end_matches(['\r', '\n']);
        if secret.is_empty() {
            return Err(wrong("the secret is empty".to_owned()));
        }
        Ok(secret.to_owned())
    }

    fn server(&self, table: ServerTable) -> Read<ServerSettings> {
        let tls = table.tls.map(|tls| TlsFiles {
            certificate: self.place(&tls.certificate),
            key: self.place(&tls.key),
            names: tls.names,
        });
        let listen = match table.listen {
            None => LISTEN,
            Some(listen) => {
                let is_safe =
                    listen.get_ref().ip().is_loopback() || tls.is_some() || !table.proxy_names.is_empty();
                if !is_safe {
                    return Err(self.wrong(
                        Some(listen.span()),
                        "beyond the loopback, tokens would go over the network in plain text: add `[server.tls]`, or state the names of a proxy with TLS in `proxy_names`",
                    ));
                }
                listen.into_inner()
            }
        };
        let mut origins = Vec::new();
        for origin in table.origins {
            let authority = origin.get_ref().split_once("://").map(|(_, authority)| authority);
            if !authority.is_some_and(|authority| !authority.is_empty() && !authority.contains(['/', '*'])) {
                return Err(self.wrong(
                    Some(origin.span()),
                    format!(
                        "`{}` is no origin such as `https://app.example.com`",
                        origin.get_ref()
                    ),
                ));
            }
            origins.push(origin.into_inner());
        }
        Ok(ServerSettings {
            listen,
            proxy_names: table.proxy_names,
            origins,
            tls,
        })
    }

    fn webhooks(&self, table: WebhooksTable) -> Read<AddressRule> {
        let mut rule = AddressRule::public();
        for network in table.networks {
            rule = rule
                .allow(network.get_ref())
                .map_err(|error| self.wrong(Some(network.span()), error))?;
        }
        Ok(rule)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("projects")).unwrap();
            std::fs::write(dir.path().join("key"), "sk-very-secret\n").unwrap();
            Self { dir }
        }

        fn read(&self, text: &str) -> Read<ServePolicy> {
            let path = self.dir.path().join("policy.toml");
            let environment = |name: &str| (name == "THE_TOKEN").then(|| "token-very-secret".to_owned());
            let reader = Reader {
                path: &path,
                text,
                environment: &environment,
            };
            reader.read()
        }

        fn error(&self, text: &str) -> String {
            let error = self.read(text).unwrap_err();
            assert_eq!(error.path, self.dir.path().join("policy.toml"));
            format!("{}: {}", error.line.unwrap_or(0), error.message)
        }
    }

    #[test]
    fn a_file_is_read_with_the_secrets_that_it_names_and_none_is_shown() {
        let place = Place::new();
        let found = place
            .read(
                r#"
                [sessions]
                roots = ["projects"]
                models = ["opus"]
                permission_modes = ["plan", "acceptEdits"]
                idle_seconds = 60
                max_processes = 3
                spares = 2
                changed_inputs = true
                memory_soft_mib = 2
                memory_hard_mib = 4
                approvals_expire_seconds = 90
                deferred = "Bash|Write"
                [workspaces]
                directory = "workspaces"
                snapshots = false
                setup = ["npm", "ci"]
                [options]
                cli = "bin/claude"
                model = "sonnet"
                permission_mode = "plan"
                allowed_tools = ["Read", "Bash(git log *)"]
                disallowed_tools = ["WebFetch"]
                additional_directories = ["/srv/shared"]
                setting_sources = ["project"]
                max_turns = 10
                max_budget_usd = 2.5
                [environment]
                pass = ["LANG"]
                set = { CI = "1", NPM_TOKEN = { env = "THE_TOKEN" } }
                [account]
                api_key = { file = "key" }
                [server]
                listen = "0.0.0.0:8443"
                origins = ["https://app.example.com"]
                [server.tls]
                certificate = "cert.pem"
                key = "key.pem"
                names = ["host.example.com"]
                [webhooks]
                networks = ["127.0.0.0/8"]
                "#,
            )
            .unwrap();
        let dir = place.dir.path();
        let policy = &found.policy;
        assert_eq!(policy.roots, [dir.join("projects")]);
        assert_eq!(
            (&policy.models[..], &policy.permission_modes[..]),
            (
                &["opus".to_owned()][..],
                &["plan".to_owned(), "acceptEdits".to_owned()][..]
            )
        );
        assert_eq!((policy.idle, policy.max_processes), (Duration::from_secs(60), 3));
        assert_eq!(policy.spares, 2);
        assert!(policy.changed_inputs);
        let memory = policy.memory.as_ref().unwrap();
        assert_eq!((memory.soft, memory.hard), (Some(2 << 20), Some(4 << 20)));
        assert_eq!(policy.approvals_expire, Some(Duration::from_secs(90)));
        assert_eq!(policy.deferred.as_deref(), Some("Bash|Write"));
        let workspaces = policy.workspaces.as_ref().unwrap();
        assert_eq!(workspaces.directory, dir.join("workspaces"));
        assert_eq!((workspaces.worktrees, workspaces.snapshots), (true, false));
        assert_eq!(workspaces.setup, ["npm", "ci"]);
        let options = &policy.options;
        assert_eq!(options.cli_path, Some(dir.join("bin/claude")));
        assert_eq!(options.model.as_deref(), Some("sonnet"));
        assert_eq!(options.permission_mode, Some(PermissionMode::Plan));
        assert_eq!(options.allowed_tools, ["Read", "Bash(git log *)"]);
        assert_eq!(options.disallowed_tools, ["WebFetch"]);
        assert_eq!(options.additional_directories, [PathBuf::from("/srv/shared")]);
        assert_eq!(options.setting_sources, Some(vec![SettingSource::Project]));
        assert_eq!((options.max_turns, options.max_budget_usd), (Some(10), Some(2.5)));
        assert!(matches!(&options.auth, Auth::ApiKey(key) if key.reveal() == "sk-very-secret"));
        let own = options.environment.own();
        assert_eq!(
            own.get(std::ffi::OsStr::new("NPM_TOKEN")).unwrap(),
            "token-very-secret"
        );
        assert_eq!(options.environment.passed(), ["LANG"]);
        let tls = TlsFiles {
            certificate: dir.join("cert.pem"),
            key: dir.join("key.pem"),
            names: vec!["host.example.com".to_owned()],
        };
        let server = ServerSettings {
            listen: "0.0.0.0:8443".parse().unwrap(),
            proxy_names: Vec::new(),
            origins: vec!["https://app.example.com".to_owned()],
            tls: Some(tls),
        };
        assert_eq!(found.server, server);
        assert!(found.webhooks.allows("127.0.0.1".parse().unwrap(), false));
        let shown = format!("{found:?}");
        assert!(!shown.contains("very-secret"), "{shown}");

        let least = place.read("sessions.roots = [\"projects\"]").unwrap();
        assert_eq!(least.server.listen, "127.0.0.1:7070".parse().unwrap());
        assert_eq!(least.webhooks, AddressRule::public());
        assert!(matches!(least.policy.options.auth, Auth::Inherit));
        assert!(
            least.policy.memory.is_none()
                && least.policy.workspaces.is_none()
                && least.policy.approvals_expire.is_none()
                && least.policy.deferred.is_none()
        );
        assert!(least.policy.models.is_empty() && least.policy.permission_modes.is_empty());
    }

    #[test]
    fn the_examples_of_the_docs_are_read() {
        let page = include_str!("../../../docs/host-policy.md");
        let docs = include_str!("serve_policy.rs");
        let of_page = page.split("```toml").nth(1).unwrap().split("```").next().unwrap();
        let of_docs = docs
            .split("/// ```toml")
            .nth(1)
            .unwrap()
            .split("/// ```")
            .next()
            .unwrap();
        let of_docs = of_docs.replace("\n///", "\n");
        toml::from_str::<File>(of_page).unwrap();
        toml::from_str::<File>(&of_docs).unwrap();
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let place = Place::new();
        let roots = "sessions.roots = [\"projects\"]\n";
        for (text, line, part) in [
            ("", 1, "missing field `sessions`"),
            ("[sessions]\nroots = []", 2, "`roots` is empty"),
            (
                "[sessions]\nroots = [\n\"projects\",\n\"elsewhere\"]",
                4,
                "elsewhere is no directory",
            ),
            (
                "[sessions]\nroots = [\"projects\"]\nmodel = \"opus\"",
                3,
                "unknown field `model`",
            ),
            (
                "[sessions]\nroots = [\"projects\"]\npermission_modes = [\"bypas\"]",
                3,
                "bypas",
            ),
            (
                "[sessions]\nroots = [\"projects\"]\nmax_processes = 0",
                3,
                "at least 1",
            ),
            (
                "[sessions]\nroots = [\"projects\"]\nmax_processes = 2\nspares = 3",
                4,
                "more than `max_processes`",
            ),
            (
                "[sessions]\nroots = [\"projects\"]\nmemory_soft_mib = 2\nmemory_hard_mib = 1",
                4,
                "is below",
            ),
            (
                "[sessions]\nroots = [\"projects\"]\ndeferred = \"Bash(\"",
                3,
                "Bash(",
            ),
            ("[sessions\nroots = []", 1, "table"),
        ] {
            let error = place.error(text);
            assert!(
                error.starts_with(&format!("{line}: ")) && error.contains(part),
                "{text}: {error}"
            );
        }
        for (rest, line, part) in [
            ("tools = 1", 2, "unknown field `tools`"),
            ("[options]\nallowed_tools = [\"Read\",\n\"Bash(\"]", 4, "Bash("),
            (
                "[environment]\nset = { A = { file = \"missing\" } }",
                3,
                "missing",
            ),
            ("[environment]\nset = { A = { secret = \"x\" } }", 3, "a text"),
            (
                "[account]\napi_key = \"sk-very-secret\"",
                3,
                "is not written here, but named",
            ),
            (
                "[account]\napi_key = { file = \"key\", env = \"KEY\" }",
                3,
                "expected `{ file",
            ),
            (
                "[account]\napi_key = { env = \"UNSET\" }",
                3,
                "the variable UNSET is not set",
            ),
            (
                "[account]\napi_key = { file = \"key\" }\nauth_token = { file = \"key\" }",
                2,
                "has one of",
            ),
            ("[account]", 2, "has one of"),
            ("[server]\nlisten = \"0.0.0.0:7070\"", 3, "plain text"),
            ("[server]\nlisten = \"localhost\"", 3, "address"),
            ("[server]\norigins = [\"*\"]", 3, "is no origin"),
            ("[server.tls]\ncertificate = \"c\"", 2, "key"),
            ("[workspaces]\nworktrees = true", 2, "directory"),
            ("[webhooks]\nnetworks = [\"localhost\"]", 3, "localhost"),
        ] {
            let error = place.error(&format!("{roots}{rest}"));
            assert!(
                error.starts_with(&format!("{line}: ")) && error.contains(part),
                "{rest}: {error}"
            );
            assert!(!error.contains("very-secret"), "{error}");
        }
        place
            .read(&format!(
                "{roots}[server]\nlisten = \"0.0.0.0:7070\"\nproxy_names = [\"a.example\"]"
            ))
            .unwrap();
        let missing = ServePolicy::read(place.dir.path().join("none.toml")).unwrap_err();
        assert_eq!(missing.line, None);
    }
}
