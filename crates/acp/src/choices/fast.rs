//! Fast mode: the same model, faster and at a higher price.

use agent_client_protocol::v1::schema as acp;
use outrigger::protocol::inbound::system::{FastModeDisabledReason, FastModeState};

use super::FAST;

const ON: &str = "on";
const OFF: &str = "off";

/// The state of fast mode.
#[derive(Debug, Clone, Default)]
pub(super) struct Fast {
    is_on: bool,
    /// Why the fast mode is off.
    why: Option<FastModeDisabledReason>,
    /// Whether the CLI reports it.
    is_known: bool,
    /// What the user of the editor chose.
    chosen: Option<bool>,
}

impl Fast {
    /// The CLI reports the state. Returns whether it is new.
    pub(super) fn is(&mut self, state: Option<&FastModeState>, why: Option<&FastModeDisabledReason>) -> bool {
        let before = (self.is_on, self.can_be_had());
        // A cooldown is temporary.
        self.is_on = matches!(state, Some(FastModeState::On | FastModeState::Cooldown));
        self.why = why.cloned();
        self.is_known = state.is_some();
        before != (self.is_on, self.can_be_had())
    }

    pub(super) fn choose(&mut self, on: bool) {
        self.is_on = on;
        self.chosen = Some(on);
    }

    pub(super) fn chosen(&self) -> Option<bool> {
        self.chosen
    }

    /// Whether the account and the environment allow it. It may be off because the user has not enabled it.
    pub(super) fn can_be_had(&self) -> bool {
        let is_only_unasked = matches!(
            self.why,
            None | Some(FastModeDisabledReason::SdkOptInRequired | FastModeDisabledReason::Preference)
        );
        self.is_known && (self.is_on || is_only_unasked)
    }

    /// The setting for an id.
    pub(super) fn find(id: &str) -> Option<bool> {
        match id {
            ON => Some(true),
            OFF => Some(false),
            _ => None,
        }
    }

    /// As a boolean option, for editors that have them.
    pub(super) fn option(&self, has_switches: bool) -> acp::SessionConfigOption {
        self.plain_option(has_switches)
            .description("Answers sooner, for more money".to_owned())
            .category(acp::SessionConfigOptionCategory::ModelConfig)
    }

    fn plain_option(&self, has_switches: bool) -> acp::SessionConfigOption {
        if has_switches {
            return acp::SessionConfigOption::boolean(FAST, "Fast mode", self.is_on);
        }
        let values = [(OFF, "Off"), (ON, "On")];
        let values = values.map(|(id, name)| acp::SessionConfigSelectOption::new(id, name));
        let current = if self.is_on { ON } else { OFF };
        acp::SessionConfigOption::select(FAST, "Fast mode", current, values.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_had_where_nothing_but_the_asking_is_missing() {
        let off = FastModeState::Off;
        for (state, why, expected) in [
            (None, None, false),
            (Some(&off), None, true),
            (Some(&off), Some(FastModeDisabledReason::SdkOptInRequired), true),
            (Some(&off), Some(FastModeDisabledReason::Preference), true),
            (Some(&off), Some(FastModeDisabledReason::Free), false),
            (Some(&off), Some(FastModeDisabledReason::NotFirstParty), false),
            (Some(&off), Some(FastModeDisabledReason::ModelNotAllowed), false),
            (Some(&FastModeState::On), None, true),
            (Some(&FastModeState::Cooldown), None, true),
        ] {
            let mut fast = Fast::default();
            fast.is(state, why.as_ref());
            assert_eq!(fast.can_be_had(), expected, "{state:?} {why:?}");
        }
    }

    #[test]
    fn what_the_cli_says_outweighs_what_was_chosen() {
        let mut fast = Fast::default();
        assert!(fast.is(Some(&FastModeState::Off), None));
        fast.choose(true);
        assert!(
            !fast.is(Some(&FastModeState::Cooldown), None),
            "it is on, and pauses"
        );
        assert!(fast.is(Some(&FastModeState::Off), Some(&FastModeDisabledReason::Free)));
        assert!(!fast.can_be_had());
        assert_eq!(fast.chosen(), Some(true));
    }
}
