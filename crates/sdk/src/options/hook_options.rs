//! What options say of hooks.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger_protocol::shared::HookEvent;

use super::{Confirmation, Options, OptionsError, SettingsInput};
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
            Err(OptionsError::invalid("hook", value, problem))
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
        let conflict = |with, advice| {
            Err(OptionsError::Conflict {
                options: ["hook", with],
                advice,
            })
        };
        if self.extra_args.iter().any(|(flag, _)| flag == "bare") {
            return conflict("extra_args", "a CLI with --bare takes hooks and never calls them");
        }
        let inherited = self.environment.inherited(&surroundings.env);
        let set = env::get(self.environment.own(), SIMPLE).or_else(|| env::get(&inherited, SIMPLE));
        let is_on = |value: Option<&str>| !matches!(value, Some("" | "0" | "false" | "no" | "off"));
        let by_settings = match &self.settings {
            Some(SettingsInput::Inline(settings)) => settings.json().and_then(|json| {
                let env: BTreeMap<String, String> = Fields::of_object(json).get("env")?;
                env.get(SIMPLE).cloned()
            }),
            _ => None,
        };
        if set.is_some_and(|value| is_on(value.to_str()))
            || by_settings.is_some_and(|value| is_on(Some(&value)))
        {
            return conflict(
                "environment",
                "a CLI with CLAUDE_CODE_SIMPLE takes hooks and never calls them",
            );
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

/// The variable that has the CLI leave out all that it can.
const SIMPLE: &str = "CLAUDE_CODE_SIMPLE";
