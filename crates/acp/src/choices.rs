//! The choices of the user: mode, model, effort, fast mode, agent.
//!
//! Modes are sent twice, as modes and as a config option: older clients know only modes.

mod agent;
mod fast;

use agent_client_protocol::v1::schema as acp;
use outrigger::protocol::inbound::system::{FastModeDisabledReason, FastModeState};
use outrigger::protocol::outbound::InitializeReply;
use outrigger::protocol::outbound::control::ModelInfo;
use outrigger::protocol::shared::{Effort, PermissionMode};

use self::agent::Agents;
use self::fast::Fast;

/// The ids of the config options.
pub(crate) const MODE: &str = "mode";
pub(crate) const MODEL: &str = "model";
pub(crate) const EFFORT: &str = "effort";
pub(crate) const FAST: &str = "fast";
pub(crate) const AGENT: &str = "agent";

/// The CLI's id of the default model.
const DEFAULT: &str = "default";

/// The choices of a session, and their options.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    mode: String,
    /// Whether permissions may be bypassed.
    bypass: bool,
    models: Vec<ModelInfo>,
    model: String,
    /// The effort, if it is another one than the default.
    effort: Option<Effort>,
    /// A model, and the effort that it has by default.
    default_effort: Option<(String, Effort)>,
    fast: Fast,
    agents: Agents,
    /// Whether the editor has boolean options.
    has_switches: bool,
}

impl Choices {
    /// From the CLI's reply to `initialize`.
    pub(crate) fn new(told: &InitializeReply, bypass: bool) -> Self {
        let mode = told.current_permission_mode.as_ref();
        let mode = mode.map_or(DEFAULT, |mode| mode.as_str()).to_owned();
        let mut choices = Self {
            mode,
            bypass,
            models: told.models.clone(),
            model: DEFAULT.to_owned(),
            effort: None,
            default_effort: None,
            fast: Fast::default(),
            agents: Agents::new(told),
            has_switches: false,
        };
        choices.fast_is(
            told.fast_mode_state.as_ref(),
            told.fast_mode_disabled_reason.as_ref(),
        );
        if let Some(model) = &told.current_model {
            choices.model_is(model);
        }
        choices
    }

    /// Sets whether the editor has boolean options.
    pub(crate) fn switches(mut self, has_switches: bool) -> Self {
        self.has_switches = has_switches;
        self
    }

    /// The current mode.
    pub(crate) fn mode(&self) -> &str {
        &self.mode
    }

    /// The CLI reports this mode. Returns whether it is new.
    pub(crate) fn mode_is(&mut self, mode: &str) -> bool {
        let is_news = self.mode != mode;
        mode.clone_into(&mut self.mode);
        is_news
    }

    /// The CLI reports this model, by its id or by the full name behind it. Returns whether it is new.
    pub(crate) fn model_is(&mut self, model: &str) -> bool {
        let by_name = |info: &&ModelInfo| info.value == model;
        let by_full_name = |info: &&ModelInfo| info.resolved_model.as_deref() == Some(model);
        // Several aliases can have one full name.
        let current = self.models.iter().find(|info| info.value == self.model);
        if current.as_ref().is_some_and(by_full_name) {
            return false;
        }
        let found = self.models.iter().find(by_name);
        let found = found.or_else(|| self.models.iter().find(by_full_name));
        let id = found.map_or(model, |info| info.value.as_str()).to_owned();
        let is_news = self.model != id;
        self.model = id;
        is_news
    }

    /// From the reply of a new process to `initialize`.
    pub(crate) fn renewed(&self, told: &InitializeReply) -> Self {
        let mut renewed = Self::new(told, self.bypass).switches(self.has_switches);
        renewed.default_effort.clone_from(&self.default_effort);
        if self.agents.is_settled() {
            renewed.agents.settle();
        }
        renewed
    }

    /// The user chose this effort; `None` is the model's default.
    pub(crate) fn effort_is(&mut self, effort: Option<Effort>) {
        self.effort = effort;
    }

    /// The CLI runs the model, by its full name, with this effort, which was set if `is_set`. Returns whether it is new.
    pub(crate) fn effort_runs(&mut self, model: &str, effort: Option<Effort>, is_set: bool) -> bool {
        // Not every model has one.
        let Some(effort) = effort else { return false };
        let default = self.default_effort.as_ref().filter(|(of, _)| of == model);
        let before = self.effort;
        self.effort = match default {
            _ if is_set => Some(effort),
            Some((_, default)) => Some(effort).filter(|effort| effort != default),
            // It was chosen for another model.
            None if before.is_some() => Some(effort),
            None => {
                self.default_effort = Some((model.to_owned(), effort));
                None
            }
        };
        self.effort != before
    }

    pub(crate) fn effort(&self) -> Option<Effort> {
        self.effort
    }

    /// The CLI reports the state of fast mode. Returns whether it is new.
    pub(crate) fn fast_is(
        &mut self,
        state: Option<&FastModeState>,
        why: Option<&FastModeDisabledReason>,
    ) -> bool {
        self.fast.is(state, why)
    }

    /// The user switched fast mode.
    pub(crate) fn choose_fast(&mut self, on: bool) {
        self.fast.choose(on);
    }

    /// The user's choice of fast mode, if any.
    pub(crate) fn fast_chosen(&self) -> Option<bool> {
        self.fast.chosen()
    }

    /// Whether the current model has fast mode.
    fn has_fast(&self) -> bool {
        let current = self.models.iter().find(|info| info.value == self.model);
        self.fast.can_be_had() && current.is_some_and(|info| info.supports_fast_mode == Some(true))
    }

    /// Fast mode for the value of an option; `None` if there is no such choice.
    pub(crate) fn find_fast(&self, value: &acp::SessionConfigOptionValue) -> Option<bool> {
        let on = match value {
            acp::SessionConfigOptionValue::Boolean { value } => Some(*value),
            value => value.as_value_id().and_then(|id| Fast::find(&id.0)),
        };
        on.filter(|_| self.has_fast())
    }

    pub(crate) fn has_agents(&self) -> bool {
        self.agents.are_there()
    }

    /// The conversation has begun: its agent can't change any more. Returns whether it could before.
    pub(crate) fn settle_agent(&mut self) -> bool {
        self.agents.settle()
    }

    /// The leading agent; `None` is Claude Code itself.
    pub(crate) fn agent(&self) -> Option<&str> {
        self.agents.current()
    }

    /// The CLI reports this leading agent. Returns whether it is new.
    pub(crate) fn agent_is(&mut self, agent: Option<String>) -> bool {
        self.agents.is(agent)
    }

    /// The agent of an id, if there is such a choice.
    pub(crate) fn find_agent(&self, id: &str) -> Option<Option<String>> {
        self.agents.find(id)
    }

    pub(crate) fn has_option(&self, id: &str) -> bool {
        self.as_options().iter().any(|option| option.id.0.as_ref() == id)
    }

    /// The id of the current model.
    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    pub(crate) fn find_mode(&self, id: &str) -> Option<PermissionMode> {
        let known = self.modes().into_iter().any(|(known, ..)| known == id);
        known.then(|| PermissionMode::from_wire(id)).flatten()
    }

    pub(crate) fn has_model(&self, id: &str) -> bool {
        id == self.model
            || self
                .models
                .iter()
                .any(|info| info.value == id && info.disabled != Some(true))
    }

    pub(crate) fn find_effort(&self, id: &str) -> Option<Effort> {
        self.efforts().into_iter().find(|effort| effort.as_str() == id)
    }

    fn efforts(&self) -> Vec<Effort> {
        let current = self.models.iter().find(|info| info.value == self.model);
        current.map(|info| info.efforts().collect()).unwrap_or_default()
    }

    fn modes(&self) -> Vec<(&str, &str, &str)> {
        let mut modes = vec![
            ("default", "Manual", "Always ask before making changes"),
            (
                "acceptEdits",
                "Accept edits",
                "Automatically accept all file edits",
            ),
            ("plan", "Plan", "Create a plan before making changes"),
        ];
        let current = self.models.iter().find(|info| info.value == self.model);
        if self.mode == "auto" || current.is_some_and(|info| info.supports_auto_mode == Some(true)) {
            modes.push(("auto", "Auto", "Claude handles permission decisions"));
        }
        if self.bypass {
            modes.push((
                "bypassPermissions",
                "Bypass permissions",
                "Accepts all permissions",
            ));
        }
        // The model comes from settings, or is newer than this list.
        if !modes.iter().any(|(id, ..)| *id == self.mode) {
            let name = if self.mode == "dontAsk" {
                "Don't ask"
            } else {
                &self.mode
            };
            modes.push((&self.mode, name, "As the settings say"));
        }
        modes
    }

    pub(crate) fn mode_ids(&self) -> Vec<&str> {
        self.modes().into_iter().map(|(id, ..)| id).collect()
    }

    pub(crate) fn as_modes(&self) -> acp::SessionModeState {
        let modes = self.modes().into_iter();
        let modes = modes
            .map(|(id, name, what)| acp::SessionMode::new(id.to_owned(), name).description(what.to_owned()));
        acp::SessionModeState::new(self.mode.clone(), modes.collect::<Vec<_>>())
    }

    pub(crate) fn as_options(&self) -> Vec<acp::SessionConfigOption> {
        let modes = self.modes().into_iter();
        let modes = modes.map(|(id, name, what)| {
            acp::SessionConfigSelectOption::new(id.to_owned(), name).description(what.to_owned())
        });
        let mut options = vec![
            acp::SessionConfigOption::select(MODE, "Mode", self.mode.clone(), modes.collect::<Vec<_>>())
                .description("How tool calls are decided".to_owned())
                .category(acp::SessionConfigOptionCategory::Mode),
        ];
        let mut models: Vec<_> = self
            .models
            .iter()
            .filter(|info| info.disabled != Some(true))
            .map(|info| {
                acp::SessionConfigSelectOption::new(info.value.clone(), info.display_name.as_str())
                    .description(info.description.clone())
            })
            .collect();
        if !models.iter().any(|model| model.value.0.as_ref() == self.model) {
            models.push(acp::SessionConfigSelectOption::new(
                self.model.clone(),
                self.model.as_str(),
            ));
        }
        options.push(
            acp::SessionConfigOption::select(MODEL, "Model", self.model.clone(), models)
                .description("Which model answers".to_owned())
                .category(acp::SessionConfigOptionCategory::Model),
        );
        let efforts = self.efforts();
        if !efforts.is_empty() {
            // Without a choice, the effort is the model's default.
            let own = acp::SessionConfigSelectOption::new(DEFAULT, "Default")
                .description("As the model and the settings say".to_owned());
            let levels = efforts.iter().map(|effort| {
                let id = effort.as_str();
                let mut name = id.to_owned();
                name.get_mut(..1).map(str::make_ascii_uppercase);
                acp::SessionConfigSelectOption::new(id, name)
            });
            let levels: Vec<_> = std::iter::once(own).chain(levels).collect();
            let current = self.effort.filter(|effort| efforts.contains(effort));
            let current = current.map_or(DEFAULT, Effort::as_str);
            options.push(
                acp::SessionConfigOption::select(EFFORT, "Effort", current, levels)
                    .description("How hard the model thinks".to_owned())
                    .category(acp::SessionConfigOptionCategory::ThoughtLevel),
            );
        }
        if self.has_fast() {
            options.push(self.fast.option(self.has_switches));
        }
        options.extend(self.agents.option());
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effort_that_is_not_the_models_own_is_shown() {
        let told = serde_json::from_str("{}").expect("a reply");
        let mut choices = Choices::new(&told, false);
        let low = Some(Effort::Low);
        let medium = Some(Effort::Medium);
        for (model, runs, is_set, shown, is_news) in [
            ("a", medium, false, None, false),
            // A slash command.
            ("a", low, false, low, true),
            ("b", low, false, low, false),
            ("a", medium, false, None, true),
            // The next model has its own.
            ("b", low, false, None, false),
            ("b", medium, false, medium, true),
            ("c", None, false, medium, false),
            ("b", low, true, low, true),
        ] {
            assert_eq!(
                choices.effort_runs(model, runs, is_set),
                is_news,
                "{model} {runs:?}"
            );
            assert_eq!(choices.effort(), shown, "{model} {runs:?}");
        }
    }
}
