//! From the tables of a policy file to what holds: each value is checked, and a wrong one is told with its line.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger::hooks::{self, HookOutput};
use outrigger::options::{Auth, Environment, Options, Secret};
use toml::Spanned;

use super::tables::{
    AccountTable, EnvironmentTable, File, OptionsTable, Reference, ServerTable, SessionsTable, Value,
    WebhooksTable, WorkspacesTable,
};
use super::{LISTEN, ServePolicy, ServePolicyError, ServerSettings, TlsFiles};
use crate::address_rule::AddressRule;
use crate::memory::MemoryLimits;
use crate::policy::HostPolicy;
use crate::workspace::WorkspacePolicy;

/// The most bytes of a file with one secret.
const SECRET: u64 = 64 << 10;

pub(super) struct Reader<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
}

pub(super) type PolicyResult<T> = Result<T, ServePolicyError>;

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

    pub(super) fn read(&self) -> PolicyResult<ServePolicy> {
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

    fn sessions(&self, table: SessionsTable, options: Options) -> PolicyResult<HostPolicy> {
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
        workspaces.max_worktrees = table.max_worktrees.unwrap_or(workspaces.max_worktrees);
        workspaces.setup = table.setup;
        workspaces
    }

    fn options(&self, table: OptionsTable) -> PolicyResult<Options> {
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

    fn check_rule(&self, alone: &Options, rule: &Spanned<String>) -> PolicyResult<()> {
        alone
            .check()
            .map_err(|error| self.wrong(Some(rule.span()), error.to_string()))
    }

    fn environment(&self, table: EnvironmentTable) -> PolicyResult<Environment> {
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

    fn account(&self, account: Spanned<AccountTable>) -> PolicyResult<Auth> {
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

    fn secret(&self, reference: &Reference, span: Range<usize>) -> PolicyResult<String> {
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

    fn server(&self, table: ServerTable) -> PolicyResult<ServerSettings> {
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

    fn webhooks(&self, table: WebhooksTable) -> PolicyResult<AddressRule> {
        let mut rule = AddressRule::public();
        for network in table.networks {
            rule = rule
                .allow(network.get_ref())
                .map_err(|error| self.wrong(Some(network.span()), error))?;
        }
        Ok(rule)
    }
}
