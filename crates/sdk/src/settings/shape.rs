//! What the CLI wants of a value beyond its type: keys that must be there, ranges, names.

use serde_json::Value;

use super::settings_file::SettingsObject;

/// Why a value that has the right type is still none.
pub(super) fn flaw(key: &str, value: &Value) -> Option<String> {
    match (key, value) {
        ("statusLine" | "fileSuggestion" | "subagentStatusLine", Value::Object(command)) => {
            let is_command = command.get("type").and_then(Value::as_str) == Some("command");
            (!is_command)
                .then(|| "has no `type` \"command\"".to_owned())
                .or_else(|| texts(command, &["command"]))
        }
        ("policyHelper", Value::Object(helper)) => texts(helper, &["path"]),
        ("modelPicker", Value::Object(picker)) => {
            (!picker.get("options").is_some_and(Value::is_array)).then(|| "has no `options`".to_owned())
        }
        ("spinnerVerbs", Value::Object(verbs)) => {
            let mode = verbs.get("mode").and_then(Value::as_str);
            if !matches!(mode, Some("append" | "replace")) {
                return Some("has no `mode` that is \"append\" or \"replace\"".to_owned());
            }
            (!verbs.get("verbs").is_some_and(Value::is_array)).then(|| "has no `verbs`".to_owned())
        }
        ("sshConfigs", Value::Array(list)) => each(list, |config| texts(config, &["id", "name", "sshHost"])),
        ("allowedChannelPlugins", Value::Array(list)) => {
            each(list, |plugin| texts(plugin, &["marketplace", "plugin"]))
        }
        ("footerLinksRegexes", Value::Array(list)) => each(list, |link| texts(link, &["type"])),
        ("allowedMcpServers" | "deniedMcpServers", Value::Array(list)) => each(list, mcp_rule),
        ("enabledPlugins", Value::Object(plugins)) => plugins.iter().find_map(|(name, value)| {
            let fits = value.is_boolean()
                || value
                    .as_array()
                    .is_some_and(|list| list.iter().all(Value::is_string));
            (!fits).then(|| {
                format!("has {value} for `{name}`, which is neither true or false nor a list of texts")
            })
        }),
        ("extraKnownMarketplaces" | "additionalMarketplaces", Value::Object(map)) => map
            .iter()
            .find_map(|(name, entry)| Some(format!("has a `{name}` that {}", marketplace(entry)?))),
        ("managedMcpServers", Value::Object(servers)) => servers
            .iter()
            .find(|(_, server)| server.get("command").or_else(|| server.get("url")).is_none())
            .map(|(name, _)| format!("has a `{name}` without `command` and `url`")),
        ("attribution", value) if !value.is_object() => Some("is no object".to_owned()),
        ("permissions" | "sandbox" | "worktree", Value::Object(object)) => nulls(key, object),
        ("hooks", Value::Object(hooks)) => hooks
            .values()
            .filter_map(Value::as_array)
            .find_map(|list| each(list, matcher)),
        ("strictPluginOnlyCustomization", value) => {
            let surface =
                |value: &Value| matches!(value.as_str(), Some("skills" | "agents" | "hooks" | "mcp"));
            let fits = value.is_boolean() || value.as_array().is_some_and(|list| list.iter().all(surface));
            (!fits).then(|| "is neither true or false nor a list of skills, agents, hooks, mcp".to_owned())
        }
        ("forceLoginOrgUUID", value) => {
            let fits = value.is_string()
                || value
                    .as_array()
                    .is_some_and(|list| list.iter().all(Value::is_string));
            (!fits).then(|| "is neither a text nor a list of texts".to_owned())
        }
        ("theme", Value::String(theme)) => {
            let known = [
                "auto",
                "dark",
                "light",
                "light-daltonized",
                "dark-daltonized",
                "light-ansi",
                "dark-ansi",
            ];
            (!known.contains(&theme.as_str()) && !theme.starts_with("custom:"))
                .then(|| format!("is {theme:?}, which is no theme"))
        }
        (key, Value::Number(number)) => range(key, number.as_f64()?),
        _ => None,
    }
}

fn range(key: &str, number: f64) -> Option<String> {
    let (least, most, whole) = match key {
        "cleanupPeriodDays" | "skillListingMaxDescChars" | "bashOutputMaxChars" | "taskOutputMaxChars" => {
            (1.0, f64::MAX, true)
        }
        "desktopSessionCleanupPeriodDays" => (0.0, f64::MAX, true),
        "skillListingBudgetFraction" => (f64::MIN_POSITIVE, 1.0, false),
        "feedbackSurveyRate" => (0.0, 1.0, false),
        "maxProseWidth" => (40.0, f64::MAX, true),
        "autoCompactWindow" => (100_000.0, f64::MAX, true),
        _ => return None,
    };
    let fits = (least..=most).contains(&number) && (!whole || number.fract() == 0.0);
    (!fits).then(|| format!("is {number}, which is out of its range"))
}

fn texts(object: &SettingsObject, keys: &[&str]) -> Option<String> {
    let missing = keys
        .iter()
        .find(|key| !object.get(**key).is_some_and(Value::is_string))?;
    Some(format!("has no `{missing}`"))
}

fn each(list: &[Value], flaw: impl Fn(&SettingsObject) -> Option<String>) -> Option<String> {
    list.iter().find_map(|entry| match entry {
        Value::Object(entry) => flaw(entry),
        _ => Some("has an entry that is no object".to_owned()),
    })
}

fn mcp_rule(rule: &SettingsObject) -> Option<String> {
    let by = ["serverName", "serverCommand", "serverUrl"].map(|key| rule.get(key));
    if by.iter().flatten().count() != 1 {
        return Some("has an entry that is not by one of serverName, serverCommand, serverUrl".to_owned());
    }
    let name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let fits = match by {
        [Some(Value::String(text)), ..] => name(text),
        [_, Some(Value::Array(command)), _] => !command.is_empty(),
        [_, _, Some(url)] => url.is_string(),
        _ => false,
    };
    (!fits).then(|| "has an entry that names no server".to_owned())
}

fn marketplace(entry: &Value) -> Option<String> {
    let Some(Value::Object(source)) = entry.get("source") else {
        return Some("has no `source`".to_owned());
    };
    let wanted = match source.get("source").and_then(Value::as_str) {
        Some("github") => "repo",
        Some("git" | "url") => "url",
        Some("directory" | "file") => "path",
        Some("npm") => "package",
        _ => return None,
    };
    texts(source, &[wanted])
}

fn matcher(matcher: &SettingsObject) -> Option<String> {
    let Some(Value::Array(hooks)) = matcher.get("hooks") else {
        return Some("has a matcher without `hooks`".to_owned());
    };
    each(hooks, |hook| match hook.get("type").and_then(Value::as_str) {
        Some("command") => texts(hook, &["command"]),
        Some("http") => texts(hook, &["url"]),
        Some("prompt" | "agent") => texts(hook, &["prompt"]),
        Some("mcp_tool") => texts(hook, &["server", "tool"]),
        _ => None,
    })
}

/// A key that is known must not be null; and some hold one text only.
fn nulls(key: &str, object: &SettingsObject) -> Option<String> {
    use outrigger_protocol::settings::{PermissionSettings, SandboxSettings, WorktreeSettings};
    let known = match key {
        "permissions" => PermissionSettings::KNOWN,
        "sandbox" => SandboxSettings::KNOWN,
        _ => WorktreeSettings::KNOWN,
    };
    object.iter().find_map(|(name, value)| {
        if value.is_null() && known.contains(&name.as_str()) {
            return Some(format!("has a `{name}` that is null"));
        }
        let only = match (key, name.as_str()) {
            ("permissions", "disableBypassPermissionsMode" | "disableAutoMode") => &["disable"][..],
            ("worktree", "baseRef") => &["head", "fresh"],
            _ => return None,
        };
        let fits = value.as_str().is_some_and(|text| only.contains(&text));
        (!fits).then(|| format!("has a `{name}` that is none of {}", only.join(", ")))
    })
}
