//! Asks the person at the terminal whether a tool call may run.

use std::fmt::Write as _;

use outrigger::permissions::{PermissionRequest, PermissionResult, PermissionUpdate};
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::{PermissionAllow, PermissionDecisionClassification};

use super::{NO_ANSWER, Person, by_subagent};

/// How much of a tool's input is shown.
const INPUT_SHOWN: usize = 4000;

pub(super) async fn decide(person: &Person, request: &PermissionRequest) -> PermissionResult {
    let Some(attention) = person.attention().await else {
        return PermissionResult::deny("the terminal can't be read, and no rule allows this call");
    };
    let mut text = describe(request);
    let may_always = may_always(request);
    let result = loop {
        text.push_str(if may_always {
            "Allow? [y]es, [a]lways, [n]o, or what to do instead: "
        } else {
            "Allow? [y]es, [n]o, or what to do instead: "
        });
        let Some(answer) = attention.ask(&text).await else {
            break PermissionResult::deny(NO_ANSWER);
        };
        match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" => {
                break PermissionAllow::default()
                    .decision_classification(PermissionDecisionClassification::UserTemporary)
                    .into();
            }
            "a" | "always" if may_always => {
                break PermissionAllow::default()
                    .updated_permissions(request.suggestions.iter().cloned())
                    .decision_classification(PermissionDecisionClassification::UserPermanent)
                    .into();
            }
            "n" | "no" => break PermissionResult::deny("the person at the terminal refused this call"),
            "" | "a" | "always" => text.clear(),
            _ => {
                break PermissionResult::deny(format!(
                    "the person at the terminal refused this call and says: {}",
                    words(&answer)
                ));
            }
        }
    };
    attention.done();
    result
}

/// Whether the CLI has something to suggest that would spare the next question.
fn may_always(request: &PermissionRequest) -> bool {
    !request.suggestions.is_empty() && !request.suppress_always_allow_rule
}

/// What stands behind `n:`, or just the words.
pub(super) fn words(answer: &str) -> &str {
    let words = answer.strip_prefix("n:").or_else(|| answer.strip_prefix("no:"));
    words.unwrap_or(answer).trim()
}

/// What is asked for, with everything that may change the answer.
fn describe(request: &PermissionRequest) -> String {
    let mut text = String::from("\n");
    let who = by_subagent(request.agent_id.as_ref());
    let _ = writeln!(text, "{}{who}", request.tool_name);
    for (label, value) in [
        ("does", &request.description),
        ("path", &request.blocked_path),
        ("asked because", &request.decision_reason),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "  {label}: {value}");
        }
    }
    let _ = writeln!(text, "  input: {}", shown_input(&request.input));
    for suggestion in request.suggestions.iter().filter(|_| may_always(request)) {
        let _ = writeln!(text, "  always would mean: {}", shown_update(suggestion));
    }
    text
}

fn shown_input(input: &RawJson) -> String {
    let text = input
        .to_value()
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| input.get().to_owned());
    let mut shown: String = text.chars().take(INPUT_SHOWN).collect();
    let left = text.chars().count().saturating_sub(INPUT_SHOWN);
    if left > 0 {
        let _ = write!(shown, "… and {left} more characters");
    }
    shown.replace('\n', "\n  ")
}

/// A change of permissions in a few words.
fn shown_update(update: &PermissionUpdate) -> String {
    let rules = |verb: &str, rules: &outrigger::protocol::shared::RulesUpdate| {
        let list: Vec<String> = rules
            .rules
            .iter()
            .map(|rule| match &rule.rule_content {
                Some(content) => format!("{}({content})", rule.tool_name),
                None => rule.tool_name.clone(),
            })
            .collect();
        format!("{verb} {} {}", rules.behavior.as_str(), list.join(", "))
    };
    let what = match update {
        PermissionUpdate::AddRules(update) => rules("add rule:", update),
        PermissionUpdate::ReplaceRules(update) => rules("replace all rules by:", update),
        PermissionUpdate::RemoveRules(update) => rules("remove rule:", update),
        PermissionUpdate::SetMode(mode) => format!("permission mode {}", mode.mode.as_str()),
        PermissionUpdate::AddDirectories(list) => format!("add directory {}", list.directories.join(", ")),
        PermissionUpdate::RemoveDirectories(list) => {
            format!("remove directory {}", list.directories.join(", "))
        }
        other => RawJson::encode(other).map_or_else(|_| "?".to_owned(), |raw| raw.get().to_owned()),
    };
    match update.destination() {
        Some(destination) => format!("{what} (kept in: {})", destination.as_str()),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_shown_with_where_they_are_kept() {
        let update: PermissionUpdate = serde_json::from_str(
            r#"{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"touch:*"}],"behavior":"allow","destination":"localSettings"}"#,
        )
        .unwrap();
        assert_eq!(
            shown_update(&update),
            "add rule: allow Bash(touch:*) (kept in: localSettings)"
        );
    }
}
