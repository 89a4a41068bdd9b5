//! What options say of hooks.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::{HookEvent, JsonObject};
use serde_json::Value;

use super::routes::unwritable;
use super::{Confirmation, Options, OptionsError, conflict};
use crate::env::{self, Surroundings};
use crate::fields::Fields;
use crate::hooks::{Hook, OnFailure, Registration, matcher};

/// The longest time that a hook can be given: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Registration {
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        let invalid = |value: &str, problem| {
            let event = self.event.as_str();
            let value = if value.is_empty() {
                event.to_owned()
            } else {
                format!("{event}: {value}")
            };
            Err(super::invalid("hook", value, problem))
        };
        let name = self.event.as_str();
        if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return invalid("", "is no name of an event");
        }
        if self.event == HookEvent::Setup {
            return invalid(
                "",
                "is never called for a callback: such hooks run before the CLI reads `initialize`; put a command into `settings`",
            );
        }
        if let Some(Err(problem)) = self
            .matcher
            .as_deref()
            .map(|text| matcher::check(&self.event, text))
        {
            return invalid(self.matcher.as_deref().unwrap_or_default(), problem);
        }
        if self
            .timeout
            .is_some_and(|timeout| timeout.is_zero() || timeout > LONGEST)
        {
            return invalid("timeout", "is not between nothing and a year");
        }
        if self.on_failure == Some(OnFailure::Block) {
            if self.is_background() {
                return invalid(
                    "on_failure",
                    "means nothing in the background: the CLI has gone on already",
                );
            }
            if self.observes() {
                return invalid("on_failure", "cannot be Block for an event that no hook can stop");
            }
        }
        Ok(())
    }
}

impl Options {
    /// Adds a hook: code of this program that the CLI calls when something happens. See [`hooks`](crate::hooks). Reaches the CLI in
    /// `initialize.hooks`. There may be several for one event; hooks are given at the start and stay.
    pub fn hook<E>(mut self, hook: Hook<E>) -> Self {
        self.hosting.handlers.hooks.push(hook.registration);
        self
    }

    /// Finds hooks that could not work.
    pub(crate) fn check_hooks(&self, surroundings: &Surroundings) -> Result<(), OptionsError> {
        let hooks = &self.hosting.handlers.hooks;
        hooks.iter().try_for_each(Registration::check)?;
        if hooks.is_empty() {
            return Ok(());
        }
        if self.extra_args.iter().any(|(flag, _)| flag == "bare") {
            let advice = "a CLI with --bare takes hooks and never calls them";
            return Err(conflict(["hook", "extra_args"], advice));
        }
        let inherited = self.environment.inherited(&surroundings.env);
        let set = env::get(self.environment.own(), SIMPLE).or_else(|| env::get(&inherited, SIMPLE));
        match set {
            Some(value) if !says_off(value.to_str()) => Err(never_called("environment")),
            _ => Ok(()),
        }
    }

    /// The settings with a variable that keeps the hooks of this program on, whatever the user's own files say, also later.
    ///
    /// # Errors
    /// When the settings switch the hooks off.
    pub(crate) fn with_hooks_on(&self, settings: JsonObject) -> Result<JsonObject, OptionsError> {
        self.check_hooks_of_settings(&settings)?;
        if self.hosting.handlers.hooks.is_empty() {
            return Ok(settings);
        }
        let on = |settings: &JsonObject| -> serde_json::Result<Option<JsonObject>> {
            let mut settings: BTreeMap<String, RawJson> = settings.decode()?;
            let env = settings.entry("env".to_owned()).or_default();
            let Ok(variables) = env.decode::<Option<BTreeMap<String, RawJson>>>() else {
                // The CLI takes no settings with such an `env`.
                return Ok(None);
            };
            let mut variables = variables.unwrap_or_default();
            if variables.contains_key(SIMPLE) {
                return Ok(None);
            }
            variables.insert(SIMPLE.to_owned(), RawJson::encode("0")?);
            *env = RawJson::encode(&variables)?;
            JsonObject::encode(&settings).map(Some)
        };
        let kept = on(&settings).map_err(|_| unwritable("settings"))?;
        Ok(kept.unwrap_or(settings))
    }

    /// The same for settings that replace those of the start, key by key.
    pub(crate) fn with_hooks_kept(&self, settings: JsonObject) -> Result<JsonObject, OptionsError> {
        match Fields::of_object(&settings).get::<RawJson>("env") {
            Some(_) => self.with_hooks_on(settings),
            None => Ok(settings),
        }
    }

    /// Finds settings that switch the hooks of this program off.
    pub(crate) fn check_hooks_of_settings(&self, settings: &JsonObject) -> Result<(), OptionsError> {
        if self.hosting.handlers.hooks.is_empty() {
            return Ok(());
        }
        let variables: BTreeMap<String, RawJson> = Fields::of_object(settings).get("env").unwrap_or_default();
        let is_simple = |name: &str| env::same(OsStr::new(name), OsStr::new(SIMPLE));
        // The CLI makes a text of each value.
        let is_off = |value: &RawJson| match value.decode::<Value>() {
            Ok(Value::String(text)) => says_off(Some(&text)),
            Ok(Value::Number(number)) => number.as_f64() == Some(0.0),
            Ok(Value::Null | Value::Bool(false)) => true,
            _ => false,
        };
        let mut variables = variables.iter();
        if variables.any(|(name, value)| is_simple(name) && !is_off(value)) {
            return Err(never_called("settings"));
        }
        Ok(())
    }

    /// What the CLI has to confirm of the hooks.
    pub(crate) fn hook_confirmations(&self) -> impl Iterator<Item = Confirmation> {
        let hooks = &self.hosting.handlers.hooks;
        let promise = hooks.iter().any(Registration::is_promise);
        [
            (!hooks.is_empty(), Confirmation::Hooks),
            (promise, Confirmation::HookOnFailure),
        ]
        .into_iter()
        .filter_map(|(is, confirmation)| is.then_some(confirmation))
    }
}

/// Whether the value leaves the CLI as it is.
fn says_off(value: Option<&str>) -> bool {
    matches!(value, Some("" | "0" | "false" | "no" | "off"))
}

fn never_called(with: &'static str) -> OptionsError {
    let advice = "a CLI with CLAUDE_CODE_SIMPLE takes hooks and never calls them";
    conflict(["hook", with], advice)
}

/// The variable that has the CLI leave out all that it can.
const SIMPLE: &str = "CLAUDE_CODE_SIMPLE";
