//! Checks the changes of permissions in a reply of the program.

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::{PermissionRuleValue, PermissionUpdate};
use serde::Deserialize as _;

use super::Rule;

const TAKES_RULES_AWAY: &str = "with a change that takes away rules by which the session was started: what they refuse or want asked is \
     decided when it starts";

/// Why a change of permissions must not be sent, checked in its wire form. `suggestions` are the CLI's own.
pub(crate) fn refused_change(update: &PermissionUpdate, suggestions: &[PermissionUpdate]) -> Option<String> {
    // The CLI reads lone surrogates, which a `Value` cannot hold: `RawJson` replaces them.
    let read = |update| RawJson::encode(update).and_then(|text| text.to_value());
    let Ok(update) = read(update) else {
        return Some("with a change of permissions that cannot be read".to_owned());
    };
    let is = |field: &str, values: &[&str]| {
        update[field]
            .as_str()
            .is_some_and(|value| values.contains(&value))
    };
    // Rules of the command line that ask or refuse are those of a policy and of the options. The CLI would do it.
    if is("destination", &["cliArg"])
        && is("type", &["replaceRules", "removeRules"])
        && !is("behavior", &["allow"])
    {
        return Some(TAKES_RULES_AWAY.to_owned());
    }
    if !is("type", &["addRules", "replaceRules"]) || is("behavior", &["ask", "deny"]) {
        return None;
    }
    let is_suggested = suggestions
        .iter()
        .any(|own| read(own).is_ok_and(|own| own == update));
    let checked = match Vec::<PermissionRuleValue>::deserialize(&update["rules"]) {
        Ok(rules) => rules
            .iter()
            .try_for_each(|rule| Rule::check_answer(rule, is_suggested))
            .map_err(|error| error.to_string()),
        Err(_) => Err("its rules cannot be read".to_owned()),
    };
    let why = checked.err()?;
    Some(format!("with rules that could allow more than they say: {why}"))
}
