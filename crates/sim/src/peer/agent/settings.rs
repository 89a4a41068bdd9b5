//! Settings and rules, as the host changes them and asks for them.

use serde_json::{Map, Value, json};

use super::context::{Context, State};
use super::control::{self, Reply};

/// The keys that `update_settings` may change.
const UPDATABLE: &[&str] = &["effortLevel", "outputStyle"];

/// Settings that came while the session runs, and with its flags.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    flags: Map<String, Value>,
    local: Map<String, Value>,
    user: Map<String, Value>,
}

impl Settings {
    /// Settings as `--settings` has them.
    pub(super) fn new(flags: &Map<String, Value>) -> Self {
        Self {
            flags: flags.clone(),
            ..Self::default()
        }
    }

    /// All of them, the strongest last.
    fn sources(&self) -> impl Iterator<Item = (&'static str, &Map<String, Value>)> {
        [
            ("userSettings", &self.user),
            ("localSettings", &self.local),
            ("flagSettings", &self.flags),
        ]
        .into_iter()
        .filter(|(_, settings)| !settings.is_empty())
    }

    fn effective(&self) -> Value {
        let mut effective = Map::new();
        for (_, settings) in self.sources() {
            effective.extend(settings.clone());
        }
        Value::Object(effective)
    }

    /// The rules of the flags' settings, by behavior.
    fn flag_rules(&self, behavior: &str) -> Vec<String> {
        let rules = self
            .flags
            .get("permissions")
            .map(|permissions| &permissions[behavior]);
        strings(rules.unwrap_or(&Value::Null))
    }
}

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|entry| entry.as_str().map(str::to_owned))
        .collect()
}

/// Answers a request about settings; `None` is about something else.
pub(super) async fn handle(ctx: &Context, subtype: &str, request: &Value) -> Option<Reply> {
    Some(match subtype {
        "apply_flag_settings" => apply(ctx, &request["settings"]).await,
        "get_settings" => Reply::Payload(get(&ctx.state())),
        "update_settings" => update(ctx, request),
        "list_permission_rules" => Reply::Payload(rules(ctx)),
        _ => return None,
    })
}

/// What is given takes the place of what was there under the same key, and what it says counts at once.
async fn apply(ctx: &Context, settings: &Value) -> Reply {
    let Some(settings) = settings.as_object() else {
        let what = match settings {
            Value::Null => "null",
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Bool(_) => "boolean",
            _ => "number",
        };
        return Reply::Error(format!(
            "apply_flag_settings requires `settings` to be an object, got {what}"
        ));
    };
    {
        let mut state = ctx.state();
        if let Some(permissions) = settings.get("permissions") {
            for behavior in ["allow", "deny", "ask"] {
                let before = state.settings.flag_rules(behavior);
                let now = strings(&permissions[behavior]);
                if let Some(rules) = state.rules.list(behavior) {
                    rules.retain(|rule| !before.contains(rule));
                    rules.extend(now);
                }
            }
        }
        state.settings.flags.extend(settings.clone());
    }
    if let Some(model) = settings.get("model").and_then(Value::as_str) {
        control::switch_model(ctx, model).await;
    }
    Reply::Done
}

fn update(ctx: &Context, request: &Value) -> Reply {
    let Some(settings) = request["settings"].as_object() else {
        return Reply::Error("update_settings requires `settings` to be an object".to_owned());
    };
    let refused: Vec<&str> = settings
        .keys()
        .map(String::as_str)
        .filter(|key| !UPDATABLE.contains(key))
        .collect();
    if !refused.is_empty() {
        return Reply::Error(format!(
            "update_settings keys not allowed: {}",
            refused.join(", ")
        ));
    }
    let mut state = ctx.state();
    let of_source = match request["source"].as_str() {
        Some("userSettings") => &mut state.settings.user,
        _ => &mut state.settings.local,
    };
    of_source.extend(settings.clone());
    Reply::Payload(json!({}))
}

fn get(state: &State) -> Value {
    let sources = state.settings.sources();
    let sources: Vec<Value> = sources
        .map(|(source, settings)| json!({"source": source, "settings": settings}))
        .collect();
    json!({
        "effective": state.settings.effective(),
        "sources": sources,
        "served_settings_state": "ineligible",
        "applied": {
            "model": state.model, "effort": "medium", "advisor": null, "ultracode": false,
            "ultracodeRequested": false, "ultracodeAvailable": true, "ultrathinkAvailable": false,
            "outsideFileToolReadsBlocked": false, "outsideFileToolWritesBlocked": false,
            "outsideBlocksCountLaunchFoldersOnly": false, "launchEnvLeftOwnFilesInPlace": true,
        },
    })
}

fn rules(ctx: &Context) -> Value {
    let state = ctx.state();
    let mut rules = Vec::new();
    for (behavior, list, flags) in [
        ("allow", &state.rules.allow, &ctx.config.allowed),
        ("deny", &state.rules.deny, &ctx.config.disallowed),
        ("ask", &state.rules.ask, &ctx.config.asked),
    ] {
        let of_settings = state.settings.flag_rules(behavior);
        for rule in list {
            let source = if of_settings.contains(rule) {
                "flagSettings"
            } else if flags.iter().any(|given| given.contains(rule.as_str())) {
                "cliArg"
            } else {
                "session"
            };
            let editability = if source == "session" {
                "session"
            } else {
                "readonly"
            };
            rules.push(
                json!({"behavior": behavior, "source": source, "rule": rule, "editability": editability}),
            );
        }
    }
    let directories = state.directories.iter();
    let directories: Vec<Value> = directories
        .map(|path| json!({"path": path, "source": "session"}))
        .collect();
    json!({"state": {
        "rules": rules, "workspaceDirectories": directories, "originalCwd": ctx.config.cwd.to_string_lossy(),
        "managedOnly": false,
    }})
}
