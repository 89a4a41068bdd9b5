//! Paths in settings that are passed to the CLI as text.
//!
//! The CLI writes such settings to a temporary file. Beside that file begin the paths of permission rules that have one `/` in front,
//! and all relative paths of the sandbox. So these get the directory of the session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::{JsonObject, PermissionMode, SettingSource};
use serde_json::{Error, Value};

use super::routes::unwritable;
use super::{Host, Isolation, Options, OptionsError, SettingsInput, invalid};
use crate::rule::in_settings;

/// Where paths in settings begin.
#[derive(Debug, Clone)]
pub(crate) struct SettingsPlace {
    /// Paths of rules. `None` if only the CLI knows it: then a rule that restricts matches more than it says, and one that allows
    /// matches nothing.
    rules: Option<PathBuf>,
    /// Relative paths of the sandbox. `None` if only the CLI knows it: then such paths are an error.
    sandbox: Option<PathBuf>,
}

impl SettingsPlace {
    /// A session with these options in this directory.
    pub(crate) fn new(options: &Options, host: Host, directory: &Path) -> Self {
        // The CLI goes by the real path of its directory.
        let directory = match directory.canonicalize() {
            Ok(real) if !host.remote => real,
            _ => directory.to_owned(),
        };
        // A spare's directory comes with the claim.
        let is_known = !host.awaits_claim && options.worktree.is_none();
        // A session that is resumed goes back to its worktree, if it has one.
        let is_resumed = options.resume.is_some() || options.continue_conversation;
        Self {
            rules: (is_known && !is_resumed).then(|| directory.clone()),
            sandbox: is_known.then_some(directory),
        }
    }
}

/// The settings with paths that mean the same wherever the CLI puts them. What has another form than it should is left to the CLI.
///
/// # Errors
/// When the sandbox has a relative path, and nobody knows where it begins.
pub(crate) fn placed(settings: &JsonObject, place: &SettingsPlace) -> Result<JsonObject, OptionsError> {
    let mut lost = None;
    let changed = change(settings.as_raw(), place, &mut lost).map_err(|_| unwritable("settings"))?;
    if let Some(path) = lost {
        let problem = "is relative, and the directory of the session is not known yet (a spare, or a worktree that the CLI makes): \
                       write the whole path";
        return Err(invalid("sandbox", path, problem));
    }
    match changed {
        Some(changed) => JsonObject::try_from(changed).map_err(|_| unwritable("settings")),
        None => Ok(settings.clone()),
    }
}

/// In plan mode, which the model enters without a request, the CLI lets a classifier decide in place of the permission handler, and reads
/// any file, unless its settings say otherwise.
const AUTO_IN_PLAN: &str = "useAutoModeDuringPlan";

impl Options {
    /// Whether calls in plan mode are decided as in any other: if somebody decides about them or about plans, since a session that begins
    /// with the classifier may leave it; and if the session begins in plan mode. Other sessions have no way into it, and get no settings
    /// for this: any `--settings` make the CLI write a file.
    pub(crate) fn plans_are_asked_about(&self) -> bool {
        self.hosting.handlers.decides_in_plan_mode() || self.permission_mode == Some(PermissionMode::Plan)
    }

    /// The settings with plan mode as [`plans_are_asked_about`](Self::plans_are_asked_about) says, unless they say it themselves.
    pub(crate) fn with_plans_asked(&self, settings: JsonObject) -> Result<JsonObject, OptionsError> {
        if !self.plans_are_asked_about() {
            return Ok(settings);
        }
        let mut fields: BTreeMap<String, RawJson> = settings.decode().map_err(|_| unwritable("settings"))?;
        if fields.contains_key(AUTO_IN_PLAN) {
            return Ok(settings);
        }
        fields.insert(AUTO_IN_PLAN.to_owned(), RawJson::from(Value::Bool(false)));
        JsonObject::encode(&fields).map_err(|_| unwritable("settings"))
    }

    /// Whether files of the user could keep requests from the permission handler by the mode `bypassPermissions`, of which this program
    /// has not said that it is meant.
    pub(crate) fn files_may_bypass(&self) -> bool {
        let reads_user = match &self.setting_sources {
            Some(sources) => sources.contains(&SettingSource::User),
            None => self.isolation == Isolation::Interactive,
        };
        self.hosting.handlers.permissions_set && reads_user && !self.allow_dangerously_skip_permissions
    }

    /// The settings with that mode forbidden to the files of the user, unless they decide about it themselves.
    pub(crate) fn with_bypass_as_meant(&self, settings: JsonObject) -> Result<JsonObject, OptionsError> {
        if !self.files_may_bypass() {
            return Ok(settings);
        }
        let forbidden = |settings: &JsonObject| -> serde_json::Result<JsonObject> {
            let mut settings: BTreeMap<String, RawJson> = settings.decode()?;
            let permissions = settings.entry("permissions".to_owned()).or_default();
            let all: Option<BTreeMap<String, RawJson>> = permissions.decode()?;
            let mut all = all.unwrap_or_default();
            all.entry("disableBypassPermissionsMode".to_owned())
                .or_insert_with(|| RawJson::from(Value::String("disable".to_owned())));
            *permissions = RawJson::encode(&all)?;
            JsonObject::encode(&settings)
        };
        forbidden(&settings).map_err(|_| unwritable("settings"))
    }

    /// What is said of plan mode once the CLI runs, since nothing can be added to a settings file.
    pub(crate) fn late_settings(&self) -> Option<JsonObject> {
        let is_file = matches!(self.settings, Some(SettingsInput::File(_)));
        (is_file && self.plans_are_asked_about()).then_some(())?;
        self.with_plans_asked(JsonObject::empty()).ok()
    }
}

type Changed = Result<Option<RawJson>, Error>;

fn change(settings: &RawJson, place: &SettingsPlace, lost: &mut Option<String>) -> Changed {
    let mut path = |path: &str| {
        if path.starts_with(['/', '~']) || Path::new(path).is_absolute() {
            return path.to_owned();
        }
        // A directory that is relative itself, or no text, is of no use to the CLI.
        let directory = place
            .sandbox
            .as_deref()
            .filter(|directory| directory.is_absolute());
        let whole = directory.and_then(|directory| directory.join(path).to_str().map(str::to_owned));
        whole.unwrap_or_else(|| {
            lost.get_or_insert_with(|| path.to_owned());
            path.to_owned()
        })
    };
    let rules = |list: &RawJson, restricts| {
        texts(list, &mut |rule| {
            in_settings(rule, place.rules.as_deref(), restricts)
        })
    };
    at(settings, |key, value| match key {
        "permissions" => at(value, |key, list| match key {
            "allow" => rules(list, false),
            "ask" | "deny" => rules(list, true),
            _ => Ok(None),
        }),
        "sandbox" => at(value, |key, value| match key {
            "filesystem" => at(value, |key, list| match key {
                "allowRead" | "allowWrite" | "denyRead" | "denyWrite" => texts(list, &mut path),
                _ => Ok(None),
            }),
            "credentials" => at(value, |key, files| match key {
                "files" => each(files, |file| {
                    at(file, |key, value| match key {
                        "path" => text(value, &mut path),
                        _ => Ok(None),
                    })
                }),
                _ => Ok(None),
            }),
            _ => Ok(None),
        }),
        _ => Ok(None),
    })
}

/// The object with what `change` makes of its values; `None` if that is nothing, and for what is no object.
fn at(object: &RawJson, mut change: impl FnMut(&str, &RawJson) -> Changed) -> Changed {
    let Ok(mut fields) = object.read::<BTreeMap<String, RawJson>>() else {
        return Ok(None);
    };
    let mut is_changed = false;
    for (key, value) in &mut fields {
        if let Some(changed) = change(key, value)? {
            *value = changed;
            is_changed = true;
        }
    }
    is_changed.then(|| RawJson::encode(&fields)).transpose()
}

/// The list with what `change` makes of its values; `None` if that is nothing, and for what is no list.
fn each(list: &RawJson, mut change: impl FnMut(&RawJson) -> Changed) -> Changed {
    let Ok(mut values) = list.read::<Vec<RawJson>>() else {
        return Ok(None);
    };
    let mut is_changed = false;
    for value in &mut values {
        if let Some(changed) = change(value)? {
            *value = changed;
            is_changed = true;
        }
    }
    is_changed.then(|| RawJson::encode(&values)).transpose()
}

fn texts(list: &RawJson, change: &mut impl FnMut(&str) -> String) -> Changed {
    each(list, |value| text(value, change))
}

fn text(value: &RawJson, change: &mut impl FnMut(&str) -> String) -> Changed {
    let Ok(text) = value.read::<String>() else {
        return Ok(None);
    };
    let changed = change(&text);
    (changed != text).then(|| RawJson::encode(&changed)).transpose()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::{Value, json};

    use super::*;

    fn known(settings: Value, rules: Option<&str>, sandbox: Option<&str>) -> Result<Value, OptionsError> {
        let settings = JsonObject::encode(&settings).unwrap();
        let place = SettingsPlace {
            rules: rules.map(PathBuf::from),
            sandbox: sandbox.map(PathBuf::from),
        };
        placed(&settings, &place).map(|placed| placed.as_raw().to_value().unwrap())
    }

    #[test]
    fn paths_begin_in_the_directory_of_the_session() {
        let sandbox = |one: &str, two: &str| {
            json!({
                "enabled": true,
                "filesystem": {
                    "denyRead": [one, "/a", "//b", "~/c", "~"], "denyWrite": [one], "allowRead": [two], "allowWrite": [two],
                    "disabled": false,
                },
                "credentials": {"files": [{"path": one, "mode": "deny"}, {"path": "~/c"}], "envVars": [{"name": two}]},
            })
        };
        let rules =
            |one: &str| json!({"allow": [one, "Bash"], "ask": [one], "deny": [one], "defaultMode": one});
        let mut expected = json!({"permissions": rules("Read(//p/q/x)"), "sandbox": sandbox("/p/q/./x", "/p/q/../y"), "model": "m"});
        expected["permissions"]["defaultMode"] = json!("Read(/x)");
        expected["sandbox"]["credentials"]["envVars"][0]["name"] = json!("../y");
        let settings =
            json!({"permissions": rules("Read(/x)"), "sandbox": sandbox("./x", "../y"), "model": "m"});
        assert_eq!(known(settings, Some("/p/q"), Some("/p/q")).unwrap(), expected);
    }

    #[test]
    fn where_nobody_knows_the_directory_nothing_more_is_allowed() {
        let rules =
            json!({"permissions": {"allow": ["Read(/x)"], "ask": ["Read(/x)"], "deny": ["Read(/x)"]}});
        let expected =
            json!({"permissions": {"allow": ["Read(/x)"], "ask": ["Read(x)"], "deny": ["Read(x)"]}});
        assert_eq!(known(rules, None, None).unwrap(), expected);
        for relative in [
            json!({"filesystem": {"denyRead": ["/a", "b"]}}),
            json!({"credentials": {"files": [{"path": "b", "mode": "deny"}]}}),
        ] {
            let relative = json!({ "sandbox": relative });
            assert!(known(relative.clone(), None, Some("a/b")).is_err());
            let error = known(relative, None, None).unwrap_err();
            assert!(
                matches!(&error, OptionsError::Invalid { value, .. } if value == "b"),
                "{error}"
            );
        }
        let whole = json!({"sandbox": {"filesystem": {"denyRead": ["/a", "~/b"]}}});
        assert_eq!(known(whole.clone(), None, None).unwrap(), whole);
    }

    #[test]
    fn what_has_another_form_stays_as_it_is() {
        for settings in [
            json!({"permissions": null, "sandbox": []}),
            json!({"permissions": {"deny": "Read(/x)", "ask": [1, null]}}),
            json!({"sandbox": {"filesystem": {"denyRead": {"a": "b"}}, "credentials": {"files": ["x", {"path": 1}]}}}),
        ] {
            assert_eq!(known(settings.clone(), None, None).unwrap(), settings);
        }
        let odd = r#"{"b":1e400, "a":12345678901234567890123}"#;
        let settings = JsonObject::try_from(RawJson::from_text(odd).unwrap()).unwrap();
        let place = SettingsPlace {
            rules: None,
            sandbox: None,
        };
        assert_eq!(placed(&settings, &place).unwrap().get(), odd);
    }
}
