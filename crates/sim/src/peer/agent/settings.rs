//! Settings and rules: their sources, changes by the host, and requests about them.

use serde_json::{Map, Value, json};

use super::context::{AgentState, Context};
use super::control::{ControlReply, MODES};
use super::model;
use super::models::Model;
use super::rules::{PermissionRule, PermissionRules, RuleSource, SettingsPlace};
use super::settings_files::{self, Files, strings};
use super::{BYPASS, Config};

/// Settings of all sources.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    /// The settings of `--settings`, and later changes.
    flags: Map<String, Value>,
    place: SettingsPlace,
    files: Files,
}

impl Settings {
    /// The settings of a new session.
    pub(super) fn new(config: &Config) -> Self {
        Self {
            flags: config.settings.clone(),
            place: config.settings_place.clone(),
            files: Files::read(config),
        }
    }

    /// Replaces the settings of `--settings` by others, which are there.
    pub(super) fn set_flags(&mut self, flags: Map<String, Value>, place: SettingsPlace) {
        (self.flags, self.place) = (flags, place);
    }

    /// Where the settings of `--settings` are.
    pub(super) fn place(&self) -> &SettingsPlace {
        &self.place
    }

    /// All of them, the strongest last.
    fn sources(&self) -> impl Iterator<Item = (RuleSource, &Map<String, Value>)> {
        let files = self
            .files
            .kept
            .iter()
            .map(|(source, settings)| (*source, settings));
        let all = files.chain([(RuleSource::Flag, &self.flags)]);
        all.filter(|(_, settings)| !settings.is_empty())
    }

    fn of(&mut self, source: RuleSource) -> Option<&mut Map<String, Value>> {
        if source == RuleSource::Flag {
            return Some(&mut self.flags);
        }
        let mut files = self.files.kept.iter_mut();
        let (_, settings) = files.find(|(known, _)| *known == source)?;
        Some(settings)
    }

    /// The merged settings: objects are merged, lists joined, and else the strongest source wins.
    fn effective(&self) -> Value {
        let mut effective = json!({});
        for (_, settings) in self.sources() {
            merge(&mut effective, &Value::Object(settings.clone()));
        }
        effective
    }

    /// The effective value at a path of keys.
    pub(super) fn get(&self, path: &[&str]) -> Option<Value> {
        let effective = self.effective();
        let value = path.iter().fold(&effective, |value, key| &value[*key]);
        (!value.is_null()).then(|| value.clone())
    }

    /// Whether one of them forbids this mode.
    pub(super) fn disable(&self, mode: &str) -> bool {
        let is_disabled = |path: &[&str]| self.get(path).is_some_and(|value| value == "disable");
        match mode {
            BYPASS => is_disabled(&["permissions", "disableBypassPermissionsMode"]),
            "auto" => is_disabled(&["permissions", "disableAutoMode"]) || is_disabled(&["disableAutoMode"]),
            _ => false,
        }
    }

    /// Whether the CLI starts MCP servers of configuration files.
    pub(super) fn configures_servers(&self) -> bool {
        let disabled = self.get(&["disabledMcpjsonServers"]).unwrap_or_default();
        let disabled = strings(&disabled);
        let mut shared = self.files.shared_servers.iter();
        self.files.own_servers || shared.any(|name| !disabled.contains(name))
    }

    /// The variables for commands.
    pub(super) fn env(&self) -> Vec<(String, String)> {
        let env = self.get(&["env"]).unwrap_or_default();
        let env = env.as_object().into_iter().flatten();
        env.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect()
    }

    /// Whether permissions granted by a source count.
    pub(super) fn may_grant(&self, source: RuleSource) -> bool {
        source != RuleSource::Project || self.files.trusted
    }

    /// Adds the rules by which the project grants permissions. Its directories count from the next process on.
    pub(super) fn trust(&mut self, rules: &mut PermissionRules) {
        let is_new = !std::mem::replace(&mut self.files.trusted, true);
        if let (true, Some(settings)) = (is_new, self.of(RuleSource::Project)) {
            let permissions = settings.get("permissions").unwrap_or(&Value::Null);
            let allowed = strings(&permissions["allow"]);
            rules
                .allow
                .extend(PermissionRule::all(allowed, RuleSource::Project));
        }
    }

    /// Adds all rules that stand in settings, and gives the directories that do.
    pub(super) fn grant(&self, rules: &mut PermissionRules) -> Vec<(String, RuleSource)> {
        let mut directories = Vec::new();
        for (source, settings) in self.sources() {
            let permissions = settings.get("permissions").unwrap_or(&Value::Null);
            for behavior in ["allow", "deny", "ask"] {
                let grants = behavior == "allow";
                if let (Some(list), true) = (rules.list(behavior), !grants || self.may_grant(source)) {
                    list.extend(PermissionRule::all(strings(&permissions[behavior]), source));
                }
            }
            if self.may_grant(source) {
                let more = strings(&permissions["additionalDirectories"]).into_iter();
                directories.extend(more.map(|path| (path, source)));
            }
        }
        directories
    }

    /// The complaints about them for stderr, once.
    pub(super) fn take_complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.files.complaints)
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => {
            let fresh: Vec<Value> = from
                .iter()
                .filter(|value| !into.contains(value))
                .cloned()
                .collect();
            into.extend(fresh);
        }
        (into, from) => *into = from.clone(),
    }
}

/// Answers a request about settings; `None` is about something else.
pub(super) async fn handle(ctx: &Context, subtype: &str, request: &Value) -> Option<ControlReply> {
    Some(match subtype {
        "apply_flag_settings" => apply(ctx, &request["settings"]).await,
        "get_settings" => ControlReply::Payload(get(ctx, &ctx.state())),
        "list_permission_rules" => ControlReply::Payload(rules(ctx)),
        _ => return None,
    })
}

/// New settings replace those under the same key, and count at once.
async fn apply(ctx: &Context, settings: &Value) -> ControlReply {
    let Some(settings) = settings.as_object() else {
        let what = match settings {
            Value::Null => "null",
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Bool(_) => "boolean",
            _ => "number",
        };
        return ControlReply::Error(format!(
            "apply_flag_settings requires `settings` to be an object, got {what}"
        ));
    };
    {
        let mut state = ctx.state();
        if let Some(permissions) = settings.get("permissions") {
            for behavior in ["allow", "deny", "ask"] {
                let now = strings(&permissions[behavior]);
                if let Some(rules) = state.rules.list(behavior) {
                    rules.retain(|rule| rule.source != RuleSource::Flag);
                    rules.extend(PermissionRule::all(now, RuleSource::Flag));
                }
            }
        }
        state.settings.flags.extend(settings.clone());
    }
    let is_stopped = {
        let mut state = ctx.state();
        let is_stopped = state.mode == BYPASS && state.settings.disable(BYPASS);
        if is_stopped {
            "default".clone_into(&mut state.mode);
        }
        is_stopped
    };
    if is_stopped {
        ctx.send_system("status", json!({"status": null, "permissionMode": "default"}))
            .await;
    }
    if let Some(name) = settings.get("model").and_then(Value::as_str)
        && let Err(refused) = model::switch(ctx, name).await
    {
        return refused;
    }
    ControlReply::Done
}

/// Changes the settings of a source, and their file if it is one that is read.
async fn store(ctx: &Context, source: RuleSource, change: impl Fn(&mut Map<String, Value>)) {
    if let Some(settings) = ctx.state().settings.of(source) {
        change(settings);
    }
    // A file that is not read is not written either: the change lasts as long as the session.
    let read = settings_files::counts(source, &ctx.config);
    let path = settings_files::path(source, ctx.config.config_dir.as_deref(), &ctx.project());
    if let (Some(path), true) = (path, read)
        && let Err(complaint) = settings_files::change(&path, change)
    {
        ctx.complain(complaint).await;
    }
}

/// The rules that an update is about.
fn rules_of(update: &Value) -> Vec<String> {
    let rules = update["rules"].as_array().into_iter().flatten();
    rules
        .filter_map(|rule| {
            // What is no name of a tool is about none, and neither is an empty pattern.
            let name = rule["toolName"].as_str().filter(|name| !name.contains('('))?;
            if rule["ruleContent"] == "" {
                return None;
            }
            Some(match rule["ruleContent"].as_str() {
                Some(content) => format!("{name}({content})"),
                None => name.to_owned(),
            })
        })
        .collect()
}

/// Whether this is a list of permission updates.
pub(super) fn are_updates(updates: &Value) -> bool {
    let strings = |value: &Value| {
        value
            .as_array()
            .is_some_and(|list| list.iter().all(Value::is_string))
    };
    let is_rule = |rule: &Value| {
        rule["toolName"].is_string() && (rule["ruleContent"].is_null() || rule["ruleContent"].is_string())
    };
    let is_update = |update: &Value| {
        let destinations = [
            "userSettings",
            "projectSettings",
            "localSettings",
            "session",
            "cliArg",
        ];
        destinations.iter().any(|known| update["destination"] == *known)
            && match update["type"].as_str() {
                Some("setMode") => update["mode"]
                    .as_str()
                    .is_some_and(|mode| mode == "manual" || MODES.contains(&mode)),
                Some("addDirectories" | "removeDirectories") => strings(&update["directories"]),
                Some("addRules" | "replaceRules" | "removeRules") => {
                    ["allow", "deny", "ask"]
                        .iter()
                        .any(|known| update["behavior"] == *known)
                        && update["rules"]
                            .as_array()
                            .is_some_and(|rules| rules.iter().all(is_rule))
                }
                _ => false,
            }
    };
    updates
        .as_array()
        .is_some_and(|updates| updates.iter().all(is_update))
}

/// Applies `updatedPermissions`, also to the files that they name. Returns the new mode if it changed. Where one of them is
/// wrong, none counts.
pub(super) async fn apply_permissions(ctx: &Context, updates: &Value) -> Option<String> {
    if !are_updates(updates) {
        return None;
    }
    let mut mode = None;
    for update in updates.as_array().into_iter().flatten() {
        let source = RuleSource::destination(update);
        if update["mode"] == BYPASS && !ctx.config.may_bypass(&ctx.state().settings) {
            continue;
        }
        mode = apply_permission(&mut ctx.state(), update, source).or(mode);
        if source.is_file() {
            let rules = rules_of(update);
            store(ctx, source, |settings| {
                settings_files::apply(settings, update, &rules);
            })
            .await;
        }
    }
    mode
}

fn apply_permission(state: &mut AgentState, update: &Value, source: RuleSource) -> Option<String> {
    let directories = strings(&update["directories"]);
    match update["type"].as_str() {
        Some("setMode") => {
            let mode = update["mode"].as_str()?;
            let mode = if mode == "manual" { "default" } else { mode }.to_owned();
            state.is_mode_answered = true;
            let before = std::mem::replace(&mut state.mode, mode.clone());
            return (before != mode).then_some(mode);
        }
        Some("addDirectories") if source == RuleSource::Session => add(&mut state.directories, directories),
        Some("addDirectories") if state.settings.may_grant(source) => {
            let granted = directories.into_iter().map(|path| (path, source));
            add(&mut state.granted, granted);
        }
        Some("removeDirectories") => {
            state
                .directories
                .retain(|directory| !directories.contains(directory));
            state
                .granted
                .retain(|(directory, _)| !directories.contains(directory));
        }
        Some(kind @ ("addRules" | "replaceRules" | "removeRules")) => {
            let behavior = update["behavior"].as_str().unwrap_or_default();
            let counts = behavior != "allow" || state.settings.may_grant(source);
            let texts = rules_of(update);
            let list = state.rules.list(behavior)?;
            match kind {
                "removeRules" => list.retain(|rule| rule.source != source || !texts.contains(&rule.text)),
                "replaceRules" => list.retain(|rule| rule.source != source),
                _ => {}
            }
            if kind != "removeRules" && counts {
                add(list, PermissionRule::all(texts, source));
            }
        }
        _ => {}
    }
    None
}

/// Adds what is not there yet.
fn add<T: PartialEq>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

fn get(ctx: &Context, state: &AgentState) -> Value {
    let effort = Model::of(&state.model).has_effort();
    let sources = state.settings.sources();
    let sources: Vec<Value> = sources
        .map(|(source, settings)| json!({"source": source.as_str(), "settings": settings}))
        .collect();
    let mut told = json!({
        "effective": state.settings.effective(),
        "sources": sources,
        "served_settings_state": "ineligible",
        "applied": {
            "model": state.model, "effort": effort.then_some("medium"), "advisor": null, "ultracode": false,
            "ultracodeRequested": false, "ultracodeAvailable": effort, "ultrathinkAvailable": false,
            "outsideFileToolReadsBlocked": false, "outsideFileToolWritesBlocked": false,
            "outsideBlocksCountLaunchFoldersOnly": false, "launchEnvLeftOwnFilesInPlace": !ctx.config.is_config_dir_named,
        },
    });
    if !state.settings.files.errors.is_empty() {
        told["errors"] = json!(state.settings.files.errors);
    }
    told
}

fn rules(ctx: &Context) -> Value {
    let state = ctx.state();
    let session = state
        .directories
        .iter()
        .map(|path| json!({"path": path, "source": "session"}));
    let granted = state
        .granted
        .iter()
        .map(|(path, source)| json!({"path": path, "source": source.as_str()}));
    let directories: Vec<Value> = session.chain(granted).collect();
    let mut told = json!({
        "rules": state.rules.listed(), "workspaceDirectories": directories,
        "originalCwd": ctx.config.cwd.to_string_lossy(), "managedOnly": false,
    });
    if !state.settings.files.errors.is_empty() {
        told["errors"] = json!(state.settings.files.errors);
    }
    json!({ "state": told })
}
