//! What the CLI takes of an object that somebody wrote.

use outrigger_protocol::RawJson;
use outrigger_protocol::drift::{self, DriftKind};
use outrigger_protocol::settings::{
    AttributionProjectPolicy, AutoModeSettings, CommandSetting, ModelPricing, RemoteSettings, Settings,
    StatusLine, VoiceSettings, WorktreeSettings,
};
use outrigger_protocol::shared::HookEvent;
use serde_json::{Value, json};

use super::key_rules::{
    ENTRY_BY_ENTRY, INSTEAD, KNOWN_KEYS_ONLY, LEFT_OUT, MANAGED_ENTRY_BY_ENTRY, MANAGED_INSTEAD,
    MANAGED_NULL_IS_STRICT, MANAGED_ONLY, NULL_IS_ABSENT, ONE_OR_MANY,
};
use super::settings_file::SettingsObject;
use super::shape;

/// Who wrote the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    /// The user, a repository, a program.
    Anybody,
    /// Who manages the machine.
    Administrator,
}

/// What counts of `object`, and what to tell about the rest; or why nothing counts.
pub(super) fn fit(object: SettingsObject, author: Author) -> Result<(SettingsObject, Vec<String>), String> {
    let mut taken = SettingsObject::new();
    let mut notes = Vec::new();
    let mut object = object;
    for (name, also) in [
        ("extraKnownMarketplaces", "additionalMarketplaces"),
        ("strictKnownMarketplaces", "allowedMarketplaces"),
    ] {
        if let Some(value) = object.remove(also) {
            object.entry(name).or_insert(value);
        }
    }
    for (key, value) in object {
        // It would change what JavaScript takes for the settings' type.
        if key == "__proto__" {
            continue;
        }
        if author == Author::Anybody && MANAGED_ONLY.contains(&key.as_str()) {
            notes.push(format!("`{key}` counts only in managed settings"));
            continue;
        }
        if let Some(value) = one(&key, value, author, &mut notes)? {
            taken.insert(key, value);
        }
    }
    Ok((taken, notes))
}

fn one(key: &str, value: Value, author: Author, notes: &mut Vec<String>) -> Result<Option<Value>, String> {
    let value = plainer(key, value, author, notes);
    let reason = match misfit(key, &value) {
        None => return Ok(Some(known_keys(key, value))),
        Some(reason) => reason,
    };
    let instead = |list: &[(&str, &str)]| {
        let (_, text) = list.iter().find(|(name, _)| *name == key)?;
        serde_json::from_str::<Value>(text).ok()
    };
    if let Some(instead) = instead(INSTEAD) {
        notes.push(format!("`{key}` {reason}; {instead} is taken instead"));
        return Ok(Some(instead));
    }
    if author == Author::Administrator {
        let is_absent = value.is_null() && !MANAGED_NULL_IS_STRICT.contains(&key);
        let is_off =
            value == Value::Bool(false) && matches!(key, "disableAutoMode" | "disableDeepLinkRegistration");
        if !is_absent
            && !is_off
            && let Some(strict) = instead(MANAGED_INSTEAD)
        {
            notes.push(format!(
                "`{key}` {reason}; the strictest value, {strict}, is taken instead"
            ));
            return Ok(Some(strict));
        }
    } else if !(LEFT_OUT.contains(&key) || value.is_null() && NULL_IS_ABSENT.contains(&key))
        || key == "hooks" && value.is_object()
    {
        return Err(format!("`{key}` {reason}, so nothing of it counts"));
    }
    notes.push(format!("`{key}` {reason}, and is dropped"));
    Ok(None)
}

/// The value in the form that the CLI makes of it before it looks whether it fits.
fn plainer(key: &str, value: Value, author: Author, notes: &mut Vec<String>) -> Value {
    match (key, value) {
        ("env", Value::Object(variables)) if variables.is_empty() && author == Author::Administrator => {
            Value::Null
        }
        ("env", Value::Object(variables)) => variables
            .into_iter()
            .map(|(name, value)| (name, text_of(value)))
            .collect(),
        ("attribution", Value::Bool(true)) => json!({}),
        ("attribution", Value::Bool(false)) => {
            json!({"commit": "", "pr": "", "sessionUrl": false})
        }
        ("permissions", Value::Object(mut permissions)) => {
            for behavior in ["allow", "deny", "ask"] {
                if let Some(Value::Array(rules)) = permissions.get_mut(behavior) {
                    rules.retain(|rule| match bad_rule(rule) {
                        None => true,
                        Some(why) => {
                            notes.push(format!(
                                "the rule {rule} of `permissions.{behavior}` {why}, and is dropped"
                            ));
                            false
                        }
                    });
                }
            }
            // Its name in the user interface.
            if permissions
                .get("defaultMode")
                .is_some_and(|mode| mode == "manual")
            {
                permissions.insert("defaultMode".to_owned(), json!("default"));
            }
            Value::Object(permissions)
        }
        ("hooks", Value::Object(mut hooks)) => {
            let all = hooks.len();
            hooks.retain(|event, _| {
                let known = HookEvent::KNOWN.contains(&event.as_str());
                if !known {
                    notes.push(format!("`hooks.{event}` is not an event, and is dropped"));
                }
                known
            });
            hooks.retain(|_, matchers| !matchers.is_null());
            if hooks.is_empty() && all > 0 {
                Value::Null
            } else {
                Value::Object(hooks)
            }
        }
        ("strictPluginOnlyCustomization", Value::Array(mut surfaces)) => {
            surfaces.retain(|surface| misfit(key, &json!([surface])).is_none());
            Value::Array(surfaces)
        }
        ("forceLoginGatewayUrl", Value::String(url)) if url.is_empty() => Value::Null,
        (key, Value::String(text))
            if ONE_OR_MANY.contains(&key) && !text.is_empty() && author == Author::Anybody =>
        {
            json!([text])
        }
        (key, value)
            if ENTRY_BY_ENTRY.contains(&key)
                || author == Author::Administrator && MANAGED_ENTRY_BY_ENTRY.contains(&key) =>
        {
            entry_by_entry(key, value, notes)
        }
        (_, value) => value,
    }
}

/// The text that JavaScript makes of a value.
fn text_of(value: Value) -> Value {
    Value::String(match value {
        Value::String(text) => text,
        Value::Object(_) => "[object Object]".to_owned(),
        Value::Array(list) => {
            let texts = list.into_iter().map(|value| match text_of(value) {
                Value::String(text) if text != "null" => text,
                _ => String::new(),
            });
            texts.collect::<Vec<_>>().join(",")
        }
        plain => plain.to_string(),
    })
}

fn entry_by_entry(key: &str, value: Value, notes: &mut Vec<String>) -> Value {
    let mut keep = |single: Value, name: String| match misfit(key, &single) {
        None => true,
        Some(reason) => {
            notes.push(format!("{name} of `{key}` {reason}, and is dropped"));
            false
        }
    };
    match value {
        Value::Array(mut list) => {
            list.retain(|entry| keep(json!([entry]), entry.to_string()));
            Value::Array(list)
        }
        Value::Object(mut map) => {
            map.retain(|name, entry| keep(json!({ name: entry }), name.clone()));
            Value::Object(map)
        }
        other => other,
    }
}

/// Why a permission rule is none.
fn bad_rule(rule: &Value) -> Option<&'static str> {
    let Value::String(rule) = rule else {
        return Some("is no text");
    };
    if rule.is_empty() {
        return Some("is empty");
    }
    let (tool, rest) = rule
        .split_once('(')
        .map_or((rule.as_str(), None), |(tool, rest)| (tool, Some(rest)));
    if !tool.starts_with("mcp__") && !tool.starts_with(|c: char| c.is_uppercase()) {
        return Some("does not begin with the name of a tool");
    }
    match rest {
        Some(rest) if !rest.ends_with(')') => Some("has a parenthesis that is not closed"),
        Some(")") => Some("has nothing between its parentheses"),
        _ => None,
    }
}

/// Keys whose value is one of a few texts, where the type is any text.
const ONE_OF: &[(&str, &[&str])] = &[
    ("autoUpdatesChannel", &["latest", "stable", "rc"]),
    ("availableModelsMatch", &["prefix", "exact"]),
    ("crossSessionInbound", &["accept", "hold", "refuse"]),
    ("daemonColdStart", &["transient", "ask"]),
    ("defaultShell", &["bash", "powershell"]),
    ("defaultView", &["chat", "transcript"]),
    ("disableAutoMode", &["disable"]),
    ("disableDeepLinkRegistration", &["disable"]),
    ("editorMode", &["normal", "vim"]),
    ("feedbackDrafts", &["notify", "quiet", "off"]),
    ("forceLoginMethod", &["claudeai", "console", "gateway"]),
    ("keybindingFlavor", &["classic", "readline"]),
    (
        "preferredNotifChannel",
        &[
            "auto",
            "iterm2",
            "terminal_bell",
            "iterm2_with_bell",
            "kitty",
            "ghostty",
            "notifications_disabled",
        ],
    ),
    ("teammateMode", &["auto", "tmux", "iterm2", "in-process"]),
    ("tui", &["default", "fullscreen"]),
    ("viewMode", &["default", "verbose", "focus"]),
    (
        "workflowSizeGuideline",
        &["unrestricted", "small", "medium", "large"],
    ),
];

const PROVIDERS: &[&str] = &[
    "anthropic",
    "customEndpoint",
    "bedrock",
    "vertex",
    "foundry",
    "anthropicAws",
    "mantle",
    "gateway",
];

/// Why the key cannot hold the value.
fn misfit(key: &str, value: &Value) -> Option<String> {
    if !Settings::KNOWN.contains(&key) || key == "sshHostCommands" {
        return None;
    }
    if value.is_null() {
        return Some("is null".to_owned());
    }
    if let (Some((_, of)), Value::String(text)) = (ONE_OF.iter().find(|(name, _)| *name == key), value) {
        return (!of.contains(&text.as_str()))
            .then(|| format!("is {text:?} and not one of {}", of.join(", ")));
    }
    if let ("allowedProviders", Value::Array(list)) = (key, value) {
        let stranger = list
            .iter()
            .find(|entry| entry.as_str().is_none_or(|entry| !PROVIDERS.contains(&entry)));
        return stranger.map(|entry| format!("has {entry}, which is no provider"));
    }
    let decode = || RawJson::encode(&json!({ key: value })).and_then(|raw| raw.read::<Settings>());
    let (decoded, drifts) = drift::watch(decode);
    if let Err(error) = decoded {
        return Some(format!("does not fit: {error}"));
    }
    let drift = drifts.into_iter().find_map(|drift| match drift.kind {
        DriftKind::Misfit(reason) if drift.tag == key => Some(format!("does not fit: {reason}")),
        DriftKind::Misfit(reason) => Some(format!("has a `{}` that does not fit: {reason}", drift.tag)),
        DriftKind::UnknownValue => Some(format!("has the value {:?}, which there is not", drift.tag)),
        DriftKind::UnknownTag
            if matches!(drift.place, "HookHandler" | "MarketplaceSource" | "PluginSource") =>
        {
            Some(format!(
                "has an entry of the kind {:?}, which there is not",
                drift.tag
            ))
        }
        _ => None,
    });
    drift.or_else(|| shape::flaw(key, value))
}

/// Without the keys that the CLI does not know, where it drops them.
fn known_keys(key: &str, mut value: Value) -> Value {
    if KNOWN_KEYS_ONLY.contains(&key)
        && let Value::Object(object) = &mut value
    {
        let known = match key {
            "autoMode" => AutoModeSettings::KNOWN,
            "remote" => RemoteSettings::KNOWN,
            "voice" => VoiceSettings::KNOWN,
            "modelPricing" => ModelPricing::KNOWN,
            "attributionProjectPolicy" => AttributionProjectPolicy::KNOWN,
            "statusLine" => StatusLine::KNOWN,
            "fileSuggestion" => CommandSetting::KNOWN,
            _ => WorktreeSettings::KNOWN,
        };
        object.retain(|name, _| known.contains(&name.as_str()));
    }
    value
}
