//! Which option goes which way: the command line, `initialize`, or a private file. No I/O.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::Initialize;
use outrigger_protocol::settings::merge_sandbox_json;
use outrigger_protocol::shared::{
    JsonObject, McpServerConfig, OutputFormat, SettingSource, ThinkingConfig, ThinkingDisplay,
};
use serde::Serialize;

use crate::rule::Rule;

use super::args::{Args, LONG};
use super::inline_settings::{SettingsPlace, placed};
use super::secret::{looks_secret, sounds_secret};
use super::{
    Confirmation, Delivery, Encoded, Host, Isolation, Options, OptionsError, SettingsInput, Skills, Tools,
    Worktree, conflict, initialize, invalid,
};

/// Where every option goes.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) args: Vec<OsString>,
    pub(crate) files: Vec<PrivateFile>,
    pub(crate) initialize: Initialize,
    pub(crate) await_initialize: bool,
    pub(crate) confirmations: Vec<Confirmation>,
}

/// A private file to be written, and the flag that names it.
#[derive(Debug)]
pub(crate) struct PrivateFile {
    pub(crate) flag: &'static str,
    pub(crate) content: String,
}

/// What goes into `initialize` only because of how it is delivered.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) mcp_servers: bool,
    pub(crate) plugins: bool,
    pub(crate) disallowed_tools: bool,
    pub(crate) settings: Option<JsonObject>,
    pub(crate) managed_settings: Option<JsonObject>,
}

impl Options {
    /// Sorts the options. `base` is what relative files are relative to.
    pub(super) fn plan(&self, host: Host, base: &Path) -> Result<Routes, OptionsError> {
        let mut args = Args::default();
        let mut files = Vec::new();
        let mut delivered = Delivered::default();

        args.value("output_format", "output-format", "stream-json")?;
        args.switch("verbose");
        args.value("input_format", "input-format", "stream-json")?;
        self.model_args(&mut args, base)?;
        self.permission_args(&mut args, host)?;
        self.session_args(&mut args)?;
        self.other_args(&mut args)?;

        let spilled = self.tool_args(&mut args, &mut delivered)?;
        self.settings_args(&mut args, &mut files, &mut delivered, spilled, base, host)?;
        self.server_args(&mut args, &mut files, &mut delivered, base)?;

        let mut confirmations = confirmations(&delivered, !self.code_running_mcp_tools.is_empty());
        confirmations.extend(self.hook_confirmations());
        let await_initialize =
            self.await_initialize || confirmations.iter().any(|what| what.is_taken_at_launch());
        if await_initialize {
            args.switch("await-initialize");
        }
        if host.awaits_claim {
            args.switch("await-claim");
        }
        if delivered.managed_settings.is_some() {
            args.switch("managed-settings-in-initialize");
        }
        let fields: Vec<&str> = [
            ("settings", delivered.settings.is_some()),
            ("disallowedTools", delivered.disallowed_tools),
        ]
        .into_iter()
        .filter_map(|(field, is)| is.then_some(field))
        .collect();
        if !fields.is_empty() {
            args.value("settings", "initialize-fields", fields.join(","))?;
        }

        for (flag, value) in &self.extra_args {
            if args.has(flag) || files.iter().any(|file| file.flag == flag) {
                let problem = "is a flag that an option has set already";
                return Err(OptionsError::ExtraArg {
                    flag: flag.clone(),
                    problem,
                });
            }
            match value {
                Some(value) => args.value_or_empty("extra_args", flag, value)?,
                None => args.switch(flag),
            }
        }

        let initialize = initialize::request(self, delivered)?;
        Ok(Routes {
            args: args.finish()?,
            files,
            initialize,
            await_initialize,
            confirmations,
        })
    }

    fn model_args(&self, args: &mut Args, base: &Path) -> Result<(), OptionsError> {
        if let Some(model) = &self.model {
            args.value("model", "model", model)?;
        }
        if let Some(model) = &self.fallback_model {
            args.value("fallback_model", "fallback-model", model)?;
        }
        if let Some(effort) = self.effort {
            args.value("effort", "effort", effort.as_str())?;
        }
        match (self.thinking, self.max_thinking_tokens) {
            (Some(ThinkingConfig::Adaptive { display }), _) => {
                args.value("thinking", "thinking", "adaptive")?;
                display_arg(args, display)?;
            }
            (
                Some(ThinkingConfig::Enabled {
                    budget_tokens,
                    display,
                }),
                _,
            ) => {
                match budget_tokens {
                    Some(budget) => args.value("thinking", "max-thinking-tokens", budget.to_string())?,
                    None => args.value("thinking", "thinking", "adaptive")?,
                }
                display_arg(args, display)?;
            }
            (Some(ThinkingConfig::Disabled), _) => args.value("thinking", "thinking", "disabled")?,
            (None, Some(0)) => args.value("max_thinking_tokens", "thinking", "disabled")?,
            (None, Some(tokens)) => {
                args.value("max_thinking_tokens", "max-thinking-tokens", tokens.to_string())?
            }
            (None, None) => {}
        }
        if !self.betas.is_empty() {
            args.value("betas", "betas", self.betas.join(","))?;
        }
        if let Some(turns) = self.max_turns {
            args.value("max_turns", "max-turns", turns.to_string())?;
        }
        if let Some(budget) = self.max_budget_usd {
            args.value("max_budget_usd", "max-budget-usd", budget.to_string())?;
        }
        if let Some(total) = self.task_budget {
            args.value("task_budget", "task-budget", total.to_string())?;
        }
        if let Some(file) = &self.system_prompt_file {
            args.value("system_prompt_file", "system-prompt-file", base.join(file))?;
        }
        if let Some(schema) = self.output_schema() {
            // On the command line the CLI checks the schema; only what is too long has to do without.
            let text = schema.as_raw().get();
            if text.len() <= LONG {
                args.value("output_format", "json-schema", text)?;
            }
        }
        if let Some(agent) = &self.agent {
            args.value("agent", "agent", agent)?;
        }
        Ok(())
    }

    /// The schema of the final answer as the CLI takes it: it looks for the draft that `$schema` names, and has none.
    pub(super) fn output_schema(&self) -> Option<JsonObject> {
        let OutputFormat::JsonSchema { schema } = self.output_format.as_ref()? else {
            return None;
        };
        // The values stay as they are written.
        let Ok(mut fields) = schema.decode::<BTreeMap<String, RawJson>>() else {
            return Some(schema.clone());
        };
        if fields.remove("$schema").is_none() {
            return Some(schema.clone());
        }
        Some(JsonObject::encode(&fields).unwrap_or_else(|_| schema.clone()))
    }

    fn permission_args(&self, args: &mut Args, host: Host) -> Result<(), OptionsError> {
        if let Some(mode) = self.permission_mode {
            args.value("permission_mode", "permission-mode", mode.as_str())?;
        }
        if self.allow_dangerously_skip_permissions {
            args.switch("allow-dangerously-skip-permissions");
        }
        if host.answers_permissions {
            args.value("permission_prompt_tool_name", "permission-prompt-tool", "stdio")?;
        } else if let Some(name) = &self.permission_prompt_tool_name {
            args.value("permission_prompt_tool_name", "permission-prompt-tool", name)?;
        }
        if let Some(prompts) = self.permission_prompts {
            args.value("permission_prompts", "permission-prompts", prompts.as_str())?;
        }
        Ok(())
    }

    fn session_args(&self, args: &mut Args) -> Result<(), OptionsError> {
        if self.continue_conversation {
            args.switch("continue");
        }
        let texts = [
            ("resume", "resume", &self.resume),
            ("session_id", "session-id", &self.session_id),
            ("resume_session_at", "resume-session-at", &self.resume_session_at),
        ];
        for (option, flag, text) in texts {
            if let Some(text) = text {
                args.value(option, flag, text)?;
            }
        }
        if let Some(prompt) = &self.resume_drops_turn {
            args.value_or_empty("resume_drops_turn", "resume-drops-turn", prompt)?;
        }
        if self.fork_session {
            args.switch("fork-session");
        }
        if self.persist_session == Some(false) {
            args.switch("no-session-persistence");
        }
        if self.hosting.store.is_set() {
            args.switch("session-mirror");
        }
        Ok(())
    }

    fn other_args(&self, args: &mut Args) -> Result<(), OptionsError> {
        match &self.worktree {
            Some(Worktree::Named(name)) => args.value("worktree", "worktree", name)?,
            Some(Worktree::Unnamed) => args.switch("worktree"),
            None => {}
        }
        args.paths(
            "additional_directories",
            "add-dir",
            self.additional_directories.iter().map(AsRef::as_ref),
        )?;
        args.paths(
            "project_config_root",
            "project-config-root",
            self.project_config_root.as_deref(),
        )?;
        if self.include_hook_events {
            args.switch("include-hook-events");
        }
        if self.include_partial_messages {
            args.switch("include-partial-messages");
        }
        match &self.debug_file {
            Some(file) => args.value("debug_file", "debug-file", file)?,
            None if self.debug => args.switch("debug"),
            None => {}
        }
        if let Some(workload) = &self.workload {
            args.value("workload", "workload", workload)?;
        }
        // The CLI splits no list of channels.
        for channel in &self.channels {
            args.value("channels", "channels", channel)?;
        }
        Ok(())
    }

    /// Returns the rules for `permissions.allow` of the settings: those that are too long for the command line, which
    /// `initialize` takes in no other way.
    fn tool_args(&self, args: &mut Args, delivered: &mut Delivered) -> Result<Vec<String>, OptionsError> {
        match &self.tools {
            Some(Tools::Preset) => args.value("tools", "tools", "default")?,
            Some(Tools::Only(names)) => args.value_or_empty("tools", "tools", names.join(","))?,
            None => {}
        }
        let denied = self.denied();
        if !denied.is_empty() {
            let list = denied.join(",");
            match self.disallowed_tools_delivery {
                Delivery::CommandLine => args.value("disallowed_tools", "disallowedTools", list)?,
                Delivery::Auto if list.len() <= LONG => {
                    args.value("disallowed_tools", "disallowedTools", list)?
                }
                _ => delivered.disallowed_tools = true,
            }
        }
        let policy = self.hosting.handlers.rules();
        let mut allowed = with(&self.allowed_tools, &policy.allow);
        match &self.skills {
            Some(Skills::All) => allowed.push("Skill".to_owned()),
            Some(Skills::Named(names)) => allowed.extend(names.iter().map(|name| format!("Skill({name})"))),
            None => {}
        }
        let list = allowed.join(",");
        if list.len() > LONG {
            return Ok(allowed);
        }
        if !list.is_empty() {
            args.value("allowed_tools", "allowedTools", list)?;
        }
        Ok(Vec::new())
    }

    /// [`disallowed_tools`](Self::disallowed_tools) and what the permission handler has refused by rules.
    pub(super) fn denied(&self) -> Vec<String> {
        with(&self.disallowed_tools, &self.hosting.handlers.rules().deny)
    }

    fn settings_args(
        &self,
        args: &mut Args,
        files: &mut Vec<PrivateFile>,
        delivered: &mut Delivered,
        spilled: Vec<String>,
        base: &Path,
        host: Host,
    ) -> Result<(), OptionsError> {
        let sources = match (&self.setting_sources, self.isolation) {
            (Some(sources), _) => Some(sources.as_slice()),
            (None, Isolation::Plain | Isolation::Hermetic) => Some([].as_slice()),
            (None, Isolation::Project) => Some([SettingSource::Project, SettingSource::Local].as_slice()),
            (None, Isolation::Interactive) => None,
        };
        if let Some(sources) = sources {
            let list: Vec<&str> = sources.iter().map(|source| source.as_str()).collect();
            args.value_or_empty("setting_sources", "setting-sources", list.join(","))?;
        }

        let asked = texts(&self.hosting.handlers.rules().ask);
        let inline = match &self.settings {
            Some(SettingsInput::File(_)) if !asked.is_empty() => {
                let advice =
                    "rules that ask go into inline settings: read the file, or put the rules into it";
                return Err(conflict(["permissions", "settings"], advice));
            }
            Some(SettingsInput::File(path)) if spilled.is_empty() => {
                args.value("settings", "settings", base.join(path))?;
                None
            }
            Some(SettingsInput::File(_)) => {
                let advice =
                    "so many rules have to go into inline settings: read the file, or put the rules into it";
                return Err(conflict(["allowed_tools", "settings"], advice));
            }
            Some(SettingsInput::Inline(settings)) => Some(written("settings", settings)?.clone()),
            None if self.sandbox.is_some()
                || !spilled.is_empty()
                || !asked.is_empty()
                || !self.hosting.handlers.hooks.is_empty()
                || self.plans_are_asked_about()
                || self.files_may_bypass() =>
            {
                Some(JsonObject::empty())
            }
            None => None,
        };
        if let Some(json) = inline {
            let rules = [("allow", spilled), ("ask", asked)];
            let json = with_rules(json, rules).map_err(|_| unwritable("settings"))?;
            let json = match &self.sandbox {
                Some(sandbox) => {
                    let sandbox = written("sandbox", sandbox)?;
                    merge_sandbox_json(Some(&json), sandbox).map_err(|_| unwritable("sandbox"))?
                }
                None => json,
            };
            let json = placed(&json, &SettingsPlace::new(self, host, base))?;
            let secret = looks_secret(&json);
            let json = self.with_plans_asked(self.with_hooks_on(json)?)?;
            let json = self.with_bypass_as_meant(json)?;
            match route("settings", self.settings_delivery, &json, secret)? {
                Delivery::Initialize => delivered.settings = Some(json),
                Delivery::File => files.push(PrivateFile {
                    flag: "settings",
                    content: json.get().to_owned(),
                }),
                _ => args.value("settings", "settings", json.get())?,
            }
        }
        if let Some(settings) = &self.managed_settings {
            let json = written("managed_settings", settings)?.clone();
            match route(
                "managed_settings",
                self.managed_settings_delivery,
                &json,
                looks_secret(&json),
            )? {
                Delivery::Initialize => delivered.managed_settings = Some(json),
                _ => args.value("managed_settings", "managed-settings", json.get())?,
            }
        }
        Ok(())
    }

    fn server_args(
        &self,
        args: &mut Args,
        files: &mut Vec<PrivateFile>,
        delivered: &mut Delivered,
        base: &Path,
    ) -> Result<(), OptionsError> {
        if !self.mcp_servers.is_empty() {
            let json = object(
                "mcp_servers",
                &BTreeMap::from([("mcpServers", &self.mcp_servers)]),
            )?;
            let secret = self.mcp_servers.values().any(server_looks_secret);
            match route("mcp_servers", self.mcp_servers_delivery, &json, secret)? {
                Delivery::Initialize => delivered.mcp_servers = true,
                Delivery::File => files.push(PrivateFile {
                    flag: "mcp-config",
                    content: json.get().to_owned(),
                }),
                _ => args.value("mcp_servers", "mcp-config", json.get())?,
            }
        }
        for file in &self.mcp_config_files {
            args.value("mcp_config_files", "mcp-config", base.join(file))?;
        }
        let strict = match self.strict_mcp_config {
            Some(strict) => strict,
            None => matches!(self.isolation, Isolation::Plain | Isolation::Hermetic),
        };
        if strict {
            args.switch("strict-mcp-config");
        }

        let length: usize = self.plugins.iter().map(|plugin| plugin.path.len()).sum();
        let flagless = self
            .plugins
            .iter()
            .any(|plugin| plugin.required_by_organization.is_some());
        delivered.plugins = !self.plugins.is_empty()
            && match self.plugin_delivery {
                Delivery::Auto => flagless || length > LONG,
                delivery => delivery == Delivery::Initialize,
            };
        if !delivered.plugins {
            for plugin in &self.plugins {
                let no_mcp = plugin.skip_mcp_discovery == Some(true);
                args.value(
                    "plugins",
                    if no_mcp { "plugin-dir-no-mcp" } else { "plugin-dir" },
                    &plugin.path,
                )?;
            }
        }
        Ok(())
    }
}

/// The list, and those of the rules that it lacks.
fn with(list: &[String], rules: &[Rule]) -> Vec<String> {
    let mut all = list.to_vec();
    all.extend(texts(rules).into_iter().filter(|rule| !list.contains(rule)));
    all
}

fn texts(rules: &[Rule]) -> Vec<String> {
    rules.iter().map(|rule| rule.as_str().to_owned()).collect()
}

fn display_arg(args: &mut Args, display: Option<ThinkingDisplay>) -> Result<(), OptionsError> {
    display.map_or(Ok(()), |display| {
        args.value("thinking", "thinking-display", display.as_str())
    })
}

fn confirmations(delivered: &Delivered, code_running: bool) -> Vec<Confirmation> {
    [
        (delivered.mcp_servers, Confirmation::McpServers),
        (delivered.plugins, Confirmation::Plugins),
        (delivered.settings.is_some(), Confirmation::Settings),
        (
            delivered.managed_settings.is_some(),
            Confirmation::ManagedSettings,
        ),
        (delivered.disallowed_tools, Confirmation::DisallowedTools),
        (code_running, Confirmation::CodeRunningMcpTools),
    ]
    .into_iter()
    .filter_map(|(is, confirmation)| is.then_some(confirmation))
    .collect()
}

fn written<'a, T>(option: &'static str, value: &'a Encoded<T>) -> Result<&'a JsonObject, OptionsError> {
    value.json().ok_or_else(|| unwritable(option))
}

/// The settings with these rules behind those that they have under `permissions`.
fn with_rules(
    settings: JsonObject,
    rules: [(&str, Vec<String>); 2],
) -> Result<JsonObject, serde_json::Error> {
    if rules.iter().all(|(_, rules)| rules.is_empty()) {
        return Ok(settings);
    }
    let mut settings: BTreeMap<String, RawJson> = settings.decode()?;
    let permissions = settings.entry("permissions".to_owned()).or_default();
    let all: Option<BTreeMap<String, RawJson>> = permissions.decode()?;
    let mut all = all.unwrap_or_default();
    for (behavior, rules) in rules {
        if !rules.is_empty() {
            let list = all.entry(behavior.to_owned()).or_default();
            // A list that cannot be read is an error: without its rules that ask, more would be allowed.
            let own: Option<Vec<String>> = list.decode()?;
            let mut own = own.unwrap_or_default();
            own.extend(rules);
            *list = RawJson::encode(&own)?;
        }
    }
    *permissions = RawJson::encode(&all)?;
    JsonObject::encode(&settings)
}

pub(crate) fn object<T: Serialize + ?Sized>(
    option: &'static str,
    value: &T,
) -> Result<JsonObject, OptionsError> {
    JsonObject::encode(value).map_err(|_| unwritable(option))
}

pub(crate) fn unwritable(option: &'static str) -> OptionsError {
    invalid(option, "", "cannot be written as JSON")
}

/// The way that a value takes, if it may.
fn route(
    option: &'static str,
    delivery: Delivery,
    json: &JsonObject,
    secret: bool,
) -> Result<Delivery, OptionsError> {
    let long = json.get().len() > LONG;
    match delivery {
        Delivery::Auto if secret || long => Ok(Delivery::Initialize),
        Delivery::Auto => Ok(Delivery::CommandLine),
        Delivery::CommandLine if secret => Err(OptionsError::Delivery {
            option,
            delivery,
            problem: "it looks as if it held a secret, and every process of the machine can read a command line",
        }),
        other => Ok(other),
    }
}

fn server_looks_secret(server: &McpServerConfig) -> bool {
    match server {
        McpServerConfig::Stdio(server) => {
            server.env.as_ref().is_some_and(|env| !env.is_empty())
                || server.args.iter().any(|arg| sounds_secret(arg))
                || !server.extra.is_empty()
        }
        McpServerConfig::Sse(server) | McpServerConfig::Http(server) | McpServerConfig::Ws(server) => {
            server.headers.as_ref().is_some_and(|headers| !headers.is_empty())
                || server.headers_helper.is_some()
                || server.url.contains(['?', '@'])
                || !server.extra.is_empty()
        }
        _ => true,
    }
}
