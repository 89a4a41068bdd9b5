//! What the user can choose: mode, model, effort, fast mode, agent. As the CLI has it, in the words of the protocol.
//!
//! Modes are there twice, as modes and as a config option: older clients know only the former.

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

/// What the CLI calls the model that it takes when none is chosen.
const DEFAULT: &str = "default";

/// What is chosen in a session, and what there is to choose from.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    mode: String,
    /// Whether leave was given to bypass permissions.
    bypass: bool,
    models: Vec<ModelInfo>,
    model: String,
    effort: Option<Effort>,
    fast: Fast,
    agents: Agents,
    /// The editor has switches besides lists.
    has_switches: bool,
}

impl Choices {
    /// What the CLI says at the start.
    pub(crate) fn new(told: &InitializeReply, bypass: bool) -> Self {
        let mode = told.current_permission_mode.as_ref();
        let mode = mode.map_or(DEFAULT, |mode| mode.as_str()).to_owned();
        let mut choices = Self {
            mode,
            bypass,
            models: told.models.clone(),
            model: DEFAULT.to_owned(),
            effort: None,
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

    /// For an editor that has switches, or does not.
    pub(crate) fn switches(mut self, has_switches: bool) -> Self {
        self.has_switches = has_switches;
        self
    }

    /// The mode that holds.
    pub(crate) fn mode(&self) -> &str {
        &self.mode
    }

    /// The CLI works in this mode now. Returns whether that is news.
    pub(crate) fn mode_is(&mut self, mode: &str) -> bool {
        let is_news = self.mode != mode;
        mode.clone_into(&mut self.mode);
        is_news
    }

    /// The CLI uses this model now: an id to choose by, or the full name behind one. Returns whether that is news.
    pub(crate) fn model_is(&mut self, model: &str) -> bool {
        let by_name = |info: &&ModelInfo| info.value == model;
        let by_full_name = |info: &&ModelInfo| info.resolved_model.as_deref() == Some(model);
        // The name behind an alias is often that behind several.
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

    /// What the CLI says in a new process.
    pub(crate) fn renewed(&self, told: &InitializeReply) -> Self {
        let mut renewed = Self::new(told, self.bypass).switches(self.has_switches);
        if self.agents.is_settled() {
            renewed.agents.settle();
        }
        renewed
    }

    /// This effort was chosen; `None` is the model's own.
    pub(crate) fn effort_is(&mut self, effort: Option<Effort>) {
        self.effort = effort;
    }

    /// The effort that was chosen.
    pub(crate) fn effort(&self) -> Option<Effort> {
        self.effort
    }

    /// The CLI says how fast mode is. Returns whether that is news.
    pub(crate) fn fast_is(
        &mut self,
        state: Option<&FastModeState>,
        why: Option<&FastModeDisabledReason>,
    ) -> bool {
        self.fast.is(state, why)
    }

    /// Fast mode was switched.
    pub(crate) fn choose_fast(&mut self, on: bool) {
        self.fast.choose(on);
    }

    /// What was chosen of fast mode, if anything was.
    pub(crate) fn fast_chosen(&self) -> Option<bool> {
        self.fast.chosen()
    }

    /// Whether there is fast mode, with the model that holds.
    fn has_fast(&self) -> bool {
        let current = self.models.iter().find(|info| info.value == self.model);
        self.fast.can_be_had() && current.is_some_and(|info| info.supports_fast_mode == Some(true))
    }

    /// What fast mode is to be for a value; nothing where it is not offered, or knows no such value.
    pub(crate) fn find_fast(&self, value: &acp::SessionConfigOptionValue) -> Option<bool> {
        let on = match value {
            acp::SessionConfigOptionValue::Boolean { value } => Some(*value),
            value => value.as_value_id().and_then(|id| Fast::find(&id.0)),
        };
        on.filter(|_| self.has_fast())
    }

    /// Whether there are agents to choose from.
    pub(crate) fn has_agents(&self) -> bool {
        self.agents.are_there()
    }

    /// The conversation begins, or has begun, after which its agent can't be chosen any more. Returns whether that is news.
    pub(crate) fn settle_agent(&mut self) -> bool {
        self.agents.settle()
    }

    /// The agent that leads; none is Claude Code itself.
    pub(crate) fn agent(&self) -> Option<&str> {
        self.agents.current()
    }

    /// This agent leads now. Returns whether that is news.
    pub(crate) fn agent_is(&mut self, agent: Option<String>) -> bool {
        self.agents.is(agent)
    }

    /// The agent of an id, where there is such a choice.
    pub(crate) fn find_agent(&self, id: &str) -> Option<Option<String>> {
        self.agents.find(id)
    }

    /// Whether there is such an option now.
    pub(crate) fn has_option(&self, id: &str) -> bool {
        self.as_options().iter().any(|option| option.id.0.as_ref() == id)
    }

    /// The id of the model that holds.
    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// The mode of an id, if it may be chosen.
    pub(crate) fn find_mode(&self, id: &str) -> Option<PermissionMode> {
        let known = self.modes().into_iter().any(|(known, ..)| known == id);
        known.then(|| PermissionMode::from_wire(id)).flatten()
    }

    /// Whether there is such a model.
    pub(crate) fn has_model(&self, id: &str) -> bool {
        id == self.model
            || self
                .models
                .iter()
                .any(|info| info.value == id && info.disabled != Some(true))
    }

    /// The effort of an id, if the model has it.
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
        // One that came from settings, or that is newer than this.
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

    /// The ids of the modes, in order.
    pub(crate) fn mode_ids(&self) -> Vec<&str> {
        self.modes().into_iter().map(|(id, ..)| id).collect()
    }

    /// As modes.
    pub(crate) fn as_modes(&self) -> acp::SessionModeState {
        let modes = self.modes().into_iter();
        let modes = modes
            .map(|(id, name, what)| acp::SessionMode::new(id.to_owned(), name).description(what.to_owned()));
        acp::SessionModeState::new(self.mode.clone(), modes.collect::<Vec<_>>())
    }

    /// As config options: all of them.
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
            // What the CLI does with none chosen is its model's own affair.
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
