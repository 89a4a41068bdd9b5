//! What an operator allows, as it stands in a file.

mod reader;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use self::reader::Reader;
use crate::address_rule::AddressRule;
use crate::policy::HostPolicy;

/// Where a host listens unless something else is said.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7070);

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
