//! What contradicts, found before anything is started.

use std::path::Path;

use outrigger_protocol::shared::{JsonObject, McpServerConfig, OutputFormat, PermissionMode, ThinkingConfig};
use serde_json::Value;

use super::flags::{OPTIONS, RESERVED, SESSION_FIELDS};
use super::{
    Auth, Delivery, Encoded, Host, Isolation, Options, OptionsError, SettingsInput, Skills, Tools, Worktree,
    conflict, delivery, invalid, refuse, requires,
};
use crate::env::{self, Surroundings, Variables};
use crate::fields::Fields;
use crate::rule::{Rule, RuleError};
use crate::value_syntax;

impl Options {
    /// Finds what contradicts, misses something or cannot be passed on, for a launch from this process. Starts nothing and
    /// looks at no file; [`launch`](Self::launch) does the same first.
    ///
    /// # Errors
    ///
    /// The first problem found.
    pub fn check(&self) -> Result<(), OptionsError> {
        self.check_in(&self.hosting.surroundings(), Host::default())
    }

    /// [`check`](Self::check) for a launch from elsewhere, by a session that takes the given part in it.
    ///
    /// # Errors
    ///
    /// The first problem found.
    pub fn check_in(&self, surroundings: &Surroundings, host: Host) -> Result<(), OptionsError> {
        self.rules(surroundings, host)?;
        self.plan(host, surroundings.cwd.as_deref().unwrap_or_else(|| "".as_ref()))
            .map(drop)
    }

    pub(crate) fn rules(&self, surroundings: &Surroundings, host: Host) -> Result<(), OptionsError> {
        self.check_account()?;
        self.check_permissions(surroundings, host)?;
        self.check_session()?;
        self.check_store(host.awaits_claim)?;
        self.check_lease(host.remote)?;
        if host.awaits_claim {
            self.check_spare()?;
        }
        self.check_model()?;
        self.check_tools()?;
        self.check_agents()?;
        self.check_servers()?;
        self.check_settings()?;
        self.check_place()?;
        self.check_hooks(surroundings)?;
        self.check_hatches()
    }

    fn check_account(&self) -> Result<(), OptionsError> {
        refuse! { self.auth.is_blank() => invalid("auth", "", "holds an empty key, token or URL") }
        if let Auth::ApiKey(secret)
        | Auth::AuthToken(secret)
        | Auth::OAuthToken(secret)
        | Auth::Gateway { token: secret, .. } = &self.auth
        {
            // It ends up in a header; a stray line feed from a file makes every request fail.
            refuse! {
                secret.reveal().chars().any(|c| c.is_control() || c.is_whitespace())
                    => invalid("auth", "", "holds a key or token with a blank or line feed: trim it"),
            }
        }
        let hidden = self.isolation == Isolation::Hermetic && self.hermetic_home.is_none();
        refuse! { hidden && self.auth.lives_in_home() => OptionsError::AuthNotReachable { auth: self.auth.name() } }
        let by_hand = self.environment.own().keys().chain(self.environment.passed());
        for name in by_hand {
            value_syntax::variable(name)
                .map_err(|problem| invalid("environment", name.to_string_lossy(), problem))?;
            let moved = ["HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_TMPDIR"];
            refuse! {
                self.auth.decides(name) => OptionsError::auth_variable(name, &self.auth),
                self.isolation == Isolation::Hermetic && moved.iter().any(|moved| name == moved)
                    => conflict(["isolation", "environment"],
                        "`Isolation::Hermetic` sets HOME, CLAUDE_CONFIG_DIR and CLAUDE_CODE_TMPDIR; name a `hermetic_home` instead"),
            }
        }
        // Those that the choice sets without any of this process.
        let mut of_auth = self.auth.variables(&Variables::new()).into_keys();
        if let Some(name) = of_auth.find(|name| self.environment.unsets(name)) {
            let problem = "is unset, and the chosen `auth` sets it: leave it, or choose another `auth`";
            return Err(invalid("environment", name.to_string_lossy(), problem));
        }
        for (name, value) in self.environment.own() {
            refuse! {
                env::same(name, "HOME".as_ref()) && !Path::new(value).is_absolute()
                    => invalid("environment", "HOME", "has to be an absolute path"),
                value.as_encoded_bytes().contains(&0)
                    => invalid("environment", name.to_string_lossy(), "has a value with a NUL character in it"),
            }
        }
        refuse! {
            self.hermetic_home.is_some() && self.isolation != Isolation::Hermetic
                => requires("hermetic_home", "isolation", "set it to `Isolation::Hermetic`"),
        }
        Ok(())
    }

    fn check_permissions(&self, surroundings: &Surroundings, host: Host) -> Result<(), OptionsError> {
        let bypass = self.permission_mode == Some(PermissionMode::BypassPermissions);
        refuse! {
            host.answers_permissions && self.permission_prompt_tool_name.is_some()
                => conflict(["permission_prompt_tool_name", "permissions"],
                    "either an MCP tool answers permission questions or this program does"),
            self.permission_prompt_tool_name.as_deref() == Some("stdio")
                => invalid("permission_prompt_tool_name", "stdio",
                    "means this program: give the session something that answers permission questions instead"),
            bypass && !self.allow_dangerously_skip_permissions
                => requires("permission_mode", "allow_dangerously_skip_permissions",
                    "bypassPermissions runs everything unasked; say that this is meant"),
        }
        let skips = bypass || self.allow_dangerously_skip_permissions;
        let root = self.user.map_or(surroundings.is_root(), |user| user.uid == 0);
        let sandboxed = self.assume_sandbox
            || self
                .environment
                .own()
                .contains_key(std::ffi::OsStr::new("IS_SANDBOX"));
        refuse! { skips && root && !sandboxed => OptionsError::BypassAsRoot }
        Ok(())
    }

    fn check_session(&self) -> Result<(), OptionsError> {
        let resumes = self.resume.is_some() || self.continue_conversation;
        let is_kept = self.hermetic_home.is_some() || self.hosting.store.is_set();
        let going_on = if self.resume.is_some() {
            "resume"
        } else {
            "continue_conversation"
        };
        refuse! {
            self.resume.is_some() && self.continue_conversation
                => conflict(["resume", "continue_conversation"], "name a session or take the latest one"),
            resumes && self.isolation == Isolation::Hermetic && !is_kept
                => requires(going_on, "hermetic_home",
                    "a hermetic session leaves nothing behind to go on with unless its home is kept"),
            self.session_id.is_some() && resumes && !self.fork_session
                => requires("session_id", "fork_session",
                    "a session that goes on keeps its id; fork it to get a new one"),
            self.fork_session && !resumes
                => requires("fork_session", "resume",
                    "only a session that goes on can be forked; or set `continue_conversation`"),
            self.hosting.usage_so_far.is_some() && !resumes
                => requires("usage_so_far", "resume",
                    "a new session has used nothing; or set `continue_conversation`"),
            self.resume_session_at.is_some() && self.resume.is_none()
                => requires("resume_session_at", "resume",
                    "the CLI wants the session by its id, not by `continue_conversation`"),
            self.resume_drops_turn.is_some() && self.resume_session_at.is_none()
                => requires("resume_drops_turn", "resume_session_at", "only a cut can drop a turn"),
        }
        for (option, id) in [
            ("session_id", &self.session_id),
            ("resume_session_at", &self.resume_session_at),
        ] {
            if let Some(id) = id {
                value_syntax::uuid(id).map_err(|problem| invalid(option, id, problem))?;
            }
        }
        if let Some(resume) = &self.resume
            && (resume.trim().is_empty() || resume.chars().any(char::is_control))
        {
            let problem = "is neither an id nor a title of a session";
            return Err(invalid("resume", resume, problem));
        }
        Ok(())
    }

    /// What no claim can make good, and the CLI refuses or would lose.
    fn check_spare(&self) -> Result<(), OptionsError> {
        let new = "cannot be had by a spare, which always becomes a new session: use `start`";
        refuse! {
            self.worktree.is_some() => invalid("worktree", "",
                "cannot be had by a spare, which learns where it works when it is claimed: use `start`"),
            self.resume.is_some() => invalid("resume", "", new),
            self.continue_conversation => invalid("continue_conversation", "", new),
            self.fork_session => invalid("fork_session", "", new),
        }
        Ok(())
    }

    fn check_model(&self) -> Result<(), OptionsError> {
        for model in self.fallback_model.iter().flat_map(|models| models.split(',')) {
            refuse! {
                model.trim().is_empty()
                    => invalid("fallback_model", self.fallback_model.as_deref().unwrap_or_default(), "has an empty entry"),
                Some(model.trim()) == self.model.as_deref()
                    => conflict(["fallback_model", "model"], "a model cannot stand in for itself; name another"),
            }
        }
        let is_no_budget = matches!(
            self.thinking,
            Some(ThinkingConfig::Enabled {
                budget_tokens: Some(0),
                ..
            })
        );
        let usd = self.max_budget_usd.unwrap_or(1.0);
        refuse! {
            self.thinking.is_some() && self.max_thinking_tokens.is_some()
                => conflict(["thinking", "max_thinking_tokens"], "give the budget as `ThinkingConfig::Enabled`"),
            is_no_budget => invalid("thinking", "0", "is no budget; use `ThinkingConfig::Disabled`"),
            self.max_turns == Some(0)
                => invalid("max_turns", "0", "is no limit at all to the CLI; leave it unset or give at least 1"),
            !usd.is_finite() || usd <= 0.0 => invalid("max_budget_usd", usd.to_string(), "is not more than 0"),
            self.task_budget == Some(0) => invalid("task_budget", "0", "is not at least 1"),
            self.system_prompt.is_some() && self.system_prompt_file.is_some()
                => conflict(["system_prompt", "system_prompt_file"], "give the prompt or the file"),
        }
        if let Some(OutputFormat::JsonSchema { schema }) = &self.output_format {
            let unreadable = "holds a schema that cannot be read, or is nested too deep";
            let checked = schema.to_value().map_err(|_| unreadable);
            checked
                .and_then(|schema| value_syntax::schema(&schema))
                .map_err(|problem| invalid("output_format", "", problem))?;
        }
        each("betas", &self.betas, value_syntax::word)
    }

    fn check_tools(&self) -> Result<(), OptionsError> {
        if let Some(Tools::Only(names)) = &self.tools {
            each("tools", names, value_syntax::word)?;
        }
        each_rule("allowed_tools", &self.allowed_tools, Rule::check_allow)?;
        each_rule("disallowed_tools", &self.disallowed_tools, |_| Ok(()))?;
        let handed = (*self.hosting.handlers.rules()).clone();
        if let Some(problem) = handed.problem {
            return Err(OptionsError::Policy(problem));
        }
        if let Some((rule, layer)) = handed.misplaced {
            let rule = rule.to_string();
            return Err(OptionsError::RuleBehindLayer { rule, layer });
        }
        if let Some(Skills::Named(names)) = &self.skills {
            each("skills", names, value_syntax::skill)?;
        }
        each("channels", &self.channels, value_syntax::word)?;
        for tools in self.code_running_mcp_tools.values() {
            each("code_running_mcp_tools", tools, value_syntax::own_name)?;
        }
        for (from, to) in &self.tool_aliases {
            each("tool_aliases", [from, to], value_syntax::word)?;
        }
        not_by_file("disallowed_tools", self.disallowed_tools_delivery)
    }

    fn check_agents(&self) -> Result<(), OptionsError> {
        for (name, agent) in &self.agents {
            value_syntax::name(name).map_err(|problem| invalid("agents", name, problem))?;
            agent.validate().map_err(|problem| OptionsError::Agent {
                name: name.clone(),
                problem,
            })?;
            let tools = agent.tools.iter().flatten().map(|text| Rule::check_given(text));
            let taken = agent.disallowed_tools.iter().flatten();
            let mut all = tools.chain(taken.map(|text| Rule::check_taken(text)));
            all.try_for_each(|checked| {
                checked.map_err(|error| OptionsError::Rule {
                    option: "agents",
                    error,
                })
            })?;
        }
        Ok(())
    }

    fn check_servers(&self) -> Result<(), OptionsError> {
        self.hosting.mcp.check(self)?;
        for (name, server) in &self.mcp_servers {
            value_syntax::name(name).map_err(|problem| invalid("mcp_servers", name, problem))?;
            let problem = match server {
                McpServerConfig::Stdio(server) if server.command.is_empty() => "has no command",
                McpServerConfig::Sse(server)
                | McpServerConfig::Http(server)
                | McpServerConfig::Ws(server)
                    if server.url.is_empty() =>
                {
                    "has no URL"
                }
                McpServerConfig::Sdk(_) => "lives in this program: give it to `sdk_mcp_server` instead",
                server if server.timeout() == Some(0) => "has a timeout of 0: leave it unset",
                _ => continue,
            };
            return Err(invalid("mcp_servers", name, problem));
        }
        for plugin in &self.plugins {
            refuse! {
                plugin.path.is_empty() => invalid("plugins", "", "has an entry with an empty path"),
                plugin.required_by_organization.is_some() && self.plugin_delivery == Delivery::CommandLine
                    => delivery("plugins", self.plugin_delivery,
                        "required_by_organization has no flag; use `Delivery::Initialize`"),
            }
        }
        not_by_file("plugins", self.plugin_delivery)
    }

    fn check_settings(&self) -> Result<(), OptionsError> {
        let file = matches!(self.settings, Some(SettingsInput::File(_)));
        refuse! {
            file && self.sandbox.is_some()
                => conflict(["settings", "sandbox"],
                    "a sandbox can only be merged into inline settings: read the file, or put the sandbox into it"),
            file && self.settings_delivery != Delivery::Auto
                => delivery("settings", self.settings_delivery,
                    "a settings file is passed by its path; only inline settings can be delivered otherwise"),
        }
        if let Some(SettingsInput::Inline(settings)) = &self.settings
            && let Some(settings) = settings.json()
        {
            self.check_own_settings(settings)?;
        }
        if let Some(settings) = self.managed_settings.as_ref().and_then(Encoded::json) {
            check_rules_of_settings("managed_settings", settings)?;
        }
        not_by_file("managed_settings", self.managed_settings_delivery)
    }

    /// Checks settings of the program, inline or from a file.
    pub(crate) fn check_own_settings(&self, settings: &JsonObject) -> Result<(), OptionsError> {
        if let Some(problem) = crate::settings::dropped(settings) {
            let problem = problem.trim_end_matches(", so nothing of it counts");
            let lost = "and the CLI would drop all of these settings without a word, with their rules";
            return Err(invalid("settings", problem, lost));
        }
        check_rules_of_settings("settings", settings)?;
        self.check_hooks_of_settings(settings)?;
        let permissions: Option<JsonObject> = Fields::of_object(settings).get("permissions");
        let mode = permissions.and_then(|permissions| Fields::of_object(&permissions).get("defaultMode"));
        let bypass = PermissionMode::BypassPermissions.as_str();
        refuse! {
            mode.is_some_and(|mode: String| mode == bypass) && !self.allow_dangerously_skip_permissions
                => requires("settings", "allow_dangerously_skip_permissions",
                    "their `defaultMode` is bypassPermissions, which runs everything unasked; say that this is meant"),
        }
        Ok(())
    }

    fn check_place(&self) -> Result<(), OptionsError> {
        let is_wrong = |c: char| c.is_control() || c.is_whitespace();
        let worktree = match &self.worktree {
            Some(Worktree::Named(name)) => name.as_str(),
            _ => "",
        };
        refuse! {
            !cfg!(unix) && self.user.is_some() => invalid("user", "", "works on Unix only"),
            self.additional_directories.iter().any(|directory| directory.as_os_str().is_empty())
                => invalid("additional_directories", "", "has an empty entry"),
            worktree.contains(is_wrong)
                => invalid("worktree", worktree, "is no name: it holds a blank or a control character"),
            self.max_line_bytes == Some(0) => invalid("max_line_bytes", "0", "lets no line through"),
        }
        for (option, text) in [("client_app", &self.client_app), ("workload", &self.workload)] {
            refuse! {
                text.as_deref().is_some_and(|text| text.trim().is_empty() || text.contains(char::is_control))
                    => invalid(option, "", "is empty or holds a control character"),
            }
        }
        for argument in &self.executable_args {
            refuse! { argument.contains('\0') => invalid("executable_args", argument, "holds a NUL character") }
        }
        Ok(())
    }

    fn check_hatches(&self) -> Result<(), OptionsError> {
        for (index, (flag, _)) in self.extra_args.iter().enumerate() {
            let wrong = |problem| OptionsError::ExtraArg {
                flag: flag.clone(),
                problem,
            };
            value_syntax::flag(flag).map_err(wrong)?;
            let mut earlier = self.extra_args.iter().take(index);
            refuse! {
                RESERVED.contains(&flag.as_str()) => wrong("is a flag that the session depends on"),
                OPTIONS.contains(&flag.as_str()) => wrong("is a flag that has an option: use that"),
                earlier.any(|(earlier, _)| earlier == flag)
                    => wrong("is given twice, of which the CLI would take the last"),
            }
        }
        for name in self.initialize_fields.keys() {
            let wrong = |problem| OptionsError::InitializeField {
                name: name.clone(),
                problem,
            };
            value_syntax::name(name).map_err(wrong)?;
            refuse! { SESSION_FIELDS.contains(&name.as_str()) => wrong("is a field that the session fills in") }
        }
        Ok(())
    }
}

fn each<S: AsRef<str>>(
    option: &'static str,
    values: impl IntoIterator<Item = S>,
    rule: fn(&str) -> Result<(), &'static str>,
) -> Result<(), OptionsError> {
    values
        .into_iter()
        .try_for_each(|value| rule(value.as_ref()).map_err(|problem| invalid(option, value, problem)))
}

/// Rules that the CLI reads as they look. One that it would skip refuses nothing.
fn each_rule(
    option: &'static str,
    rules: &[String],
    check: fn(&Rule) -> Result<(), RuleError>,
) -> Result<(), OptionsError> {
    rules.iter().try_for_each(|text| {
        let checked = text.parse::<Rule>().and_then(|rule| check(&rule));
        checked.map_err(|error| OptionsError::Rule { option, error })
    })
}

/// The rules in settings of the program. The CLI skips a wrong one without an error, so a rule that looks like a refusal would refuse
/// nothing.
fn check_rules_of_settings(option: &'static str, settings: &JsonObject) -> Result<(), OptionsError> {
    let permissions: Option<JsonObject> = Fields::of_object(settings).get("permissions");
    let Some(permissions) = permissions else {
        return Ok(());
    };
    for list in ["allow", "ask", "deny"] {
        let rules: Vec<Value> = Fields::of_object(&permissions).get(list).unwrap_or_default();
        for text in rules.iter().filter_map(Value::as_str) {
            let rule = Rule::of_settings(text);
            let checked = rule.and_then(|rule| match list {
                "allow" => rule.check_allow(),
                _ => Ok(()),
            });
            checked.map_err(|error| OptionsError::Rule { option, error })?;
        }
    }
    Ok(())
}

/// The options that the CLI takes no file for.
fn not_by_file(option: &'static str, chosen: Delivery) -> Result<(), OptionsError> {
    refuse! {
        chosen == Delivery::File
            => delivery(option, chosen, "the CLI takes no file for it; use `Delivery::Initialize`"),
    }
    Ok(())
}
