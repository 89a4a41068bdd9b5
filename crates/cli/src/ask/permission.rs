//! Asks the person at the terminal whether a tool call may run.

use std::fmt::Write as _;

use outrigger::permissions::{PermissionRequest, PermissionResult, PermissionUpdate};
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::{PermissionAllow, PermissionDecisionClassification};

use super::{Attention, NO_ANSWER, Person, by_subagent};

/// How many characters of a tool's input are shown, of its beginning and of its end: what a command does may stand behind all else.
const BEGIN_SHOWN: usize = 8000;
const END_SHOWN: usize = 4000;

pub(super) async fn decide(person: &Person, request: &PermissionRequest) -> PermissionResult {
    let Some(attention) = person.attention().await else {
        return PermissionResult::deny("the terminal can't be read, and no rule allows this call");
    };
    let mut text = describe(request);
    let suggestions = suggestions(request);
    let result = loop {
        text.push_str(if suggestions.is_empty() {
            "Allow? [y]es, [n]o, or what to do instead: "
        } else {
            "Allow? [y]es, [a]lways, [n]o, or what to do instead: "
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
            "a" | "always" if !suggestions.is_empty() => match always(&attention, suggestions).await {
                Always::Take(updates) => {
                    break PermissionAllow::default()
                        .updated_permissions(updates)
                        .decision_classification(PermissionDecisionClassification::UserPermanent)
                        .into();
                }
                Always::Back => text.clear(),
                Always::NoAnswer => break PermissionResult::deny(NO_ANSWER),
            },
            "n" | "no" => break PermissionResult::deny("the person at the terminal denied this call"),
            "" | "a" | "always" => text.clear(),
            _ => {
                break PermissionResult::deny(format!(
                    "the person at the terminal denied this call and says: {}",
                    words(&answer)
                ));
            }
        }
    };
    attention.done();
    result
}

/// What a person wants the CLI to remember.
enum Always {
    Take(Vec<PermissionUpdate>),
    /// To decide anew.
    Back,
    NoAnswer,
}

/// Lets the person choose among the suggestions. One alone needs no choice: it stands in the question.
async fn always(attention: &Attention<'_>, suggestions: &[PermissionUpdate]) -> Always {
    if let [only] = suggestions {
        return Always::Take(vec![only.clone()]);
    }
    let mut text = String::new();
    for (number, suggestion) in suggestions.iter().enumerate() {
        let _ = writeln!(text, "  {}. {}", number + 1, shown_update(suggestion));
    }
    loop {
        text.push_str("Which? Numbers separated by commas, [a]ll of them, or nothing to go back: ");
        let Some(answer) = attention.ask(&text).await else {
            return Always::NoAnswer;
        };
        match chosen(&answer, suggestions.len()) {
            Ok(numbers) if numbers.is_empty() => return Always::Back,
            Ok(numbers) => {
                let chosen = numbers.into_iter().filter_map(|number| suggestions.get(number));
                return Always::Take(chosen.cloned().collect());
            }
            Err(why) => text = format!("{why}\n"),
        }
    }
}

/// The suggestions that a line chooses, counted from 0.
fn chosen(line: &str, count: usize) -> Result<Vec<usize>, String> {
    if matches!(line.to_ascii_lowercase().as_str(), "a" | "all") {
        return Ok((0..count).collect());
    }
    let mut chosen = Vec::new();
    for word in line.split([',', ' ']).filter(|word| !word.is_empty()) {
        match word
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1))
        {
            Some(number) if number < count => {
                if !chosen.contains(&number) {
                    chosen.push(number);
                }
            }
            _ => return Err(format!("There is no number {word}.")),
        }
    }
    Ok(chosen)
}

/// What the CLI suggests that would spare the next question.
fn suggestions(request: &PermissionRequest) -> &[PermissionUpdate] {
    if request.suppress_always_allow_rule {
        &[]
    } else {
        &request.suggestions
    }
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
    match suggestions(request) {
        [] => {}
        [only] => {
            let _ = writeln!(text, "  always would mean: {}", shown_update(only));
        }
        several => {
            let _ = writeln!(text, "  always: choose among {} suggestions", several.len());
        }
    }
    text
}

fn shown_input(input: &RawJson) -> String {
    let text = input
        .to_value()
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| input.get().to_owned());
    without_middle(&text).replace('\n', "\n  ")
}

/// A text without the middle, if it is long. What is left out is said where it is, and in a line of its own, so that no text looks like it.
fn without_middle(text: &str) -> String {
    let left = text.chars().count().saturating_sub(BEGIN_SHOWN + END_SHOWN);
    if left == 0 {
        return text.to_owned();
    }
    let begin: String = text.chars().take(BEGIN_SHOWN).collect();
    let end: String = text.chars().skip(BEGIN_SHOWN + left).collect();
    format!("{begin}\n[{left} characters in the middle are NOT SHOWN; the input goes on:]\n{end}")
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
    fn suggestions_are_chosen_singly_or_together() {
        assert_eq!(chosen("2", 3), Ok(vec![1]));
        assert_eq!(chosen("3, 1,3", 3), Ok(vec![2, 0]));
        assert_eq!(chosen("1 2", 3), Ok(vec![0, 1]));
        assert_eq!(chosen("A", 3), Ok(vec![0, 1, 2]));
        assert_eq!(chosen("", 3), Ok(vec![]));
        for wrong in ["0", "4", "one", "1,x", "-1"] {
            assert!(chosen(wrong, 3).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_end_of_a_long_input_is_shown_and_what_is_left_out_is_said() {
        let short = "x".repeat(BEGIN_SHOWN + END_SHOWN);
        assert_eq!(without_middle(&short), short);
        let command = format!("echo {}; rm important", "ä".repeat(20_000));
        let input = RawJson::encode(&serde_json::json!({ "command": command })).unwrap();
        let shown = shown_input(&input);
        assert!(shown.contains("; rm important\"\n"), "{shown}");
        assert!(
            shown.contains("characters in the middle are NOT SHOWN"),
            "{shown}"
        );
        let left = shown.split_once('[').unwrap().1.split(' ').next().unwrap();
        let whole = input
            .to_value()
            .map(|value| serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(
            left.parse::<usize>().unwrap(),
            whole.unwrap().chars().count() - BEGIN_SHOWN - END_SHOWN
        );
    }

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
