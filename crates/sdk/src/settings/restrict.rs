//! What a program that embeds the CLI may manage: it can take away, and not give.

use outrigger_protocol::shared::JsonObject;
use serde_json::{Value, json};

use super::accepted::{self, Author};
use super::settings_file::SettingsObject;
use super::value;

/// What a key may say.
enum May {
    /// Only this.
    Be(&'static str),
    /// Anything that fits.
    Anything,
    /// Only that nothing may be used.
    BeEmpty,
    /// Anything but false and an empty list.
    NotBeFalse,
    /// Anything but what is empty.
    NotBeEmpty,
    /// An object of keys that may say this.
    Have(&'static [(&'static str, May)]),
}

use May::{Anything, Be, BeEmpty, Have, NotBeEmpty, NotBeFalse};

const ROOT: &[(&str, May)] = &[
    ("allowManagedHooksOnly", Be("true")),
    ("allowManagedMcpServersOnly", Be("true")),
    ("allowManagedPermissionRulesOnly", Be("true")),
    ("allowedHttpHookUrls", BeEmpty),
    ("allowedMcpServers", Anything),
    ("allowedProviders", Anything),
    (
        "attribution",
        Have(&[("commitTrailers", Be("false")), ("sessionUrl", Be("false"))]),
    ),
    ("availableModels", Anything),
    ("availableModelsMatch", Be(r#""exact""#)),
    ("deniedMcpServers", Anything),
    ("deniedModels", NotBeEmpty),
    ("disableAgentView", Be("true")),
    ("disableArtifact", Be("true")),
    ("disableAutoMode", Be(r#""disable""#)),
    ("disableClaudeAiConnectors", Be("true")),
    ("disableCommandPluginSources", Be("true")),
    ("disableRemoteControl", Be("true")),
    ("disableSideloadFlags", Be("true")),
    ("disableSkillShellExecution", Be("true")),
    ("disableWindowsBashCommandSplit", Be("true")),
    ("disableWorkflows", Be("true")),
    ("enableArtifact", Be("false")),
    ("enableWorkflows", Be("false")),
    ("enforceAvailableModels", Be("true")),
    ("forceLoginOrgUUID", NotBeEmpty),
    ("httpHookAllowedEnvVars", BeEmpty),
    (
        "permissions",
        Have(&[
            ("deny", Anything),
            ("ask", Anything),
            ("allow", Anything),
            ("additionalDirectories", Anything),
            ("disableBypassPermissionsMode", Be(r#""disable""#)),
            ("disableAutoMode", Be(r#""disable""#)),
            ("blockReadsOutsideWorkingDirectories", Be("true")),
            ("blockWritesOutsideWorkingDirectories", Be("true")),
            ("denyInsteadOfPrompting", Be("true")),
        ]),
    ),
    (
        "sandbox",
        Have(&[
            ("enabled", Be("true")),
            ("failIfUnavailable", Be("true")),
            ("autoAllowBashIfSandboxed", Be("false")),
            ("allowUnsandboxedCommands", Be("false")),
            ("enableWeakerNestedSandbox", Be("false")),
            ("enableWeakerNetworkIsolation", Be("false")),
            ("allowAppleEvents", Be("false")),
            ("allowNestedUserNamespaces", Be("false")),
            ("windows", Have(&[("backend", Be(r#""sandboxuser""#))])),
            (
                "network",
                Have(&[
                    ("allowedDomains", Anything),
                    ("deniedDomains", Anything),
                    ("allowManagedDomainsOnly", Be("true")),
                    ("strictAllowlist", Be("true")),
                    ("allowAllUnixSockets", Be("false")),
                    ("allowLocalBinding", Be("false")),
                ]),
            ),
            (
                "filesystem",
                Have(&[
                    ("denyRead", Anything),
                    ("denyWrite", Anything),
                    ("allowRead", Anything),
                    ("allowManagedReadPathsOnly", Be("true")),
                    ("disabled", Be("false")),
                ]),
            ),
            (
                "credentials",
                Have(&[
                    ("allowPlaintextInject", Be("false")),
                    (
                        "sigv4",
                        Have(&[
                            ("streaming", Be(r#""deny""#)),
                            ("presigned", Be(r#""deny""#)),
                            ("sigv4a", Be(r#""deny""#)),
                        ]),
                    ),
                ]),
            ),
        ]),
    ),
    ("strictKnownMarketplaces", Anything),
    ("strictPluginOnlyCustomization", NotBeFalse),
    ("syncClaudeAiPlugins", Be("false")),
    ("syncClaudeAiSkills", Be("false")),
];

/// The restrictions among `settings`. What does not fit means the strictest value, as in what an administrator manages.
pub(super) fn to_restrictions(settings: &JsonObject) -> SettingsObject {
    let Ok(Value::Object(object)) = value(settings) else {
        return SettingsObject::new();
    };
    let mut object = object;
    // Whoever turns it off wants no trailers either.
    if object.get("attribution") == Some(&json!(false)) {
        object.insert(
            "attribution".to_owned(),
            json!({"commitTrailers": false, "sessionUrl": false}),
        );
    }
    let object = match accepted::fit(object, Author::Administrator) {
        Ok((taken, _)) => taken,
        Err(_) => return SettingsObject::new(),
    };
    keep(object, ROOT)
}

fn keep(object: SettingsObject, rules: &[(&str, May)]) -> SettingsObject {
    object
        .into_iter()
        .filter_map(|(key, value)| {
            let (_, may) = rules.iter().find(|(name, _)| *name == key)?;
            let kept = match (may, value) {
                (Anything, value) => Some(value),
                (Be(only), value) => serde_json::from_str(only)
                    .is_ok_and(|only: Value| only == value)
                    .then_some(value),
                (BeEmpty, value) => (value == json!([])).then_some(value),
                (NotBeFalse, value) => (value != json!(false) && value != json!([])).then_some(value),
                (NotBeEmpty, value) => (value != json!("")
                    && (key == "forceLoginOrgUUID" || value != json!([])))
                .then_some(value),
                (Have(rules), Value::Object(object)) => {
                    let kept = keep(object, rules);
                    (!kept.is_empty()).then_some(Value::Object(kept))
                }
                (Have(_), _) => None,
            };
            Some((key, kept?))
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_kept(given: Value, expected: Value) {
        let settings: JsonObject = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(Value::Object(to_restrictions(&settings)), expected, "{given}");
    }

    #[test]
    fn what_takes_away_is_kept_and_what_gives_is_not() {
        for kept in [
            json!({"allowManagedHooksOnly": true}),
            json!({"disableAutoMode": "disable"}),
            json!({"enableWorkflows": false}),
            json!({"allowedHttpHookUrls": []}),
            json!({"availableModels": []}),
            json!({"deniedModels": ["opus"]}),
            json!({"forceLoginOrgUUID": []}),
            json!({"permissions": {"deny": ["A"], "disableBypassPermissionsMode": "disable"}}),
            json!({"sandbox": {"enabled": true, "network": {"deniedDomains": ["x"], "allowLocalBinding": false}}}),
        ] {
            assert_kept(kept.clone(), kept);
        }
        for dropped in [
            json!({"model": "opus"}),
            json!({"allowManagedHooksOnly": false}),
            json!({"enableWorkflows": true}),
            json!({"allowedHttpHookUrls": ["https://example.com"]}),
            json!({"deniedModels": []}),
            json!({"forceLoginOrgUUID": ""}),
            json!({"strictPluginOnlyCustomization": false}),
            json!({"strictPluginOnlyCustomization": []}),
            json!({"permissions": {"defaultMode": "plan", "blockReadsOutsideWorkingDirectories": false}}),
            json!({"sandbox": {"enabled": false, "network": {"allowLocalBinding": true}}}),
            json!({"hooks": {}}),
        ] {
            assert_kept(dropped, json!({}));
        }
    }

    #[test]
    fn whoever_turns_attribution_off_wants_no_trailers() {
        assert_kept(
            json!({"attribution": false}),
            json!({"attribution": {"commitTrailers": false, "sessionUrl": false}}),
        );
        assert_kept(json!({"attribution": {"commitTrailers": true}}), json!({}));
    }
}
