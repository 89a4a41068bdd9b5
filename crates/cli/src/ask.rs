//! Asks the person at the terminal whether a tool call may run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use outrigger::permissions::{
    PermissionDecision, PermissionHandler, PermissionRequest, PermissionResult, PermissionUpdate,
};
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::{JsonObject, PermissionAllow, PermissionDecisionClassification};
use outrigger::protocol::tools::{AskUserQuestionInput, Question, ToolInput};
use outrigger::transport::BoxFuture;
use tokio::sync::Mutex;

use crate::keyboard::{self, Keyboard};
use crate::screen::plain;

/// How much of a tool's input is shown.
const INPUT_SHOWN: usize = 4000;

/// Decides by asking. One question at a time.
pub(crate) struct Ask {
    /// `None`: nobody is to be asked.
    keyboard: Option<Source>,
    turn: Mutex<()>,
}

enum Source {
    /// The terminal, opened when the first question comes.
    Terminal(OnceLock<Option<Keyboard>>),
    /// What also carries the conversation.
    Shared(Keyboard),
}

impl Ask {
    /// Asks at the terminal of this process, if it has one.
    pub(crate) fn at_terminal() -> Self {
        Self {
            keyboard: Some(Source::Terminal(OnceLock::new())),
            turn: Mutex::default(),
        }
    }

    /// Asks whoever types the conversation.
    pub(crate) fn by(keyboard: Keyboard) -> Self {
        Self {
            keyboard: Some(Source::Shared(keyboard)),
            turn: Mutex::default(),
        }
    }

    /// Asks nobody, and refuses.
    pub(crate) fn nobody() -> Self {
        Self {
            keyboard: None,
            turn: Mutex::default(),
        }
    }

    async fn decision(&self, request: PermissionRequest) -> PermissionResult {
        let keyboard = match &self.keyboard {
            None => {
                return PermissionResult::deny(
                    "outrigger was told not to ask anybody (--no-ask), and no rule allows this call",
                );
            }
            Some(Source::Shared(keyboard)) => Some(keyboard),
            Some(Source::Terminal(terminal)) => {
                terminal.get_or_init(|| Keyboard::of_terminal().ok()).as_ref()
            }
        };
        let Some(keyboard) = keyboard else {
            return PermissionResult::deny(
                "there is no terminal to ask at, and no rule allows this call (see `outrigger run --allow`)",
            );
        };
        let _turn = self.turn.lock().await;
        let mut open = Open(true);
        let decision = match ToolInput::read(&request.tool_name, &request.input) {
            ToolInput::AskUserQuestion(input) => choose(keyboard, &request, &input).await,
            _ => allow_or_deny(keyboard, &request).await,
        };
        open.0 = false;
        decision
    }
}

/// Says so when a question is withdrawn: the CLI no longer waits for it.
struct Open(bool);

impl Drop for Open {
    fn drop(&mut self) {
        if self.0 {
            keyboard::tell("\n(the question was withdrawn)\n");
        }
    }
}

impl PermissionHandler for Ask {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async { self.decision(request).await.into() })
    }
}

/// The usual question.
async fn allow_or_deny(keyboard: &Keyboard, request: &PermissionRequest) -> PermissionResult {
    let mut text = describe(request);
    let choices = if request.suggestions.is_empty() {
        "Allow? [y]es, [n]o, or what to do instead: "
    } else {
        "Allow? [y]es, [a]lways, [n]o, or what to do instead: "
    };
    loop {
        text.push_str(choices);
        keyboard::tell(&text);
        let Some(answer) = keyboard.answer().await else {
            return PermissionResult::deny("the person at the terminal gave no answer");
        };
        let answer = answer.trim();
        match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" => return once().into(),
            "a" | "always" if !request.suggestions.is_empty() => {
                return PermissionAllow::default()
                    .updated_permissions(request.suggestions.iter().cloned())
                    .decision_classification(PermissionDecisionClassification::UserPermanent)
                    .into();
            }
            "n" | "no" => return PermissionResult::deny("the person at the terminal refused this call"),
            "" | "a" | "always" => text.clear(),
            _ => {
                // `n: use the other file`, or just the words.
                let words = answer
                    .strip_prefix("n:")
                    .or_else(|| answer.strip_prefix("no:"))
                    .unwrap_or(answer);
                return PermissionResult::deny(format!(
                    "the person at the terminal refused this call and says: {}",
                    words.trim()
                ));
            }
        }
    }
}

fn once() -> PermissionAllow {
    PermissionAllow::default().decision_classification(PermissionDecisionClassification::UserTemporary)
}

/// What is asked for, with everything that may change the answer.
fn describe(request: &PermissionRequest) -> String {
    let mut text = String::from("\n");
    let who = match &request.agent_id {
        Some(agent) => format!(" (subagent {agent})"),
        None => String::new(),
    };
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
    for suggestion in &request.suggestions {
        let _ = writeln!(text, "  always would mean: {}", shown_update(suggestion));
    }
    plain(&text)
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

/// A question of the model to the person: choices by number, or own words.
async fn choose(
    keyboard: &Keyboard,
    request: &PermissionRequest,
    input: &AskUserQuestionInput,
) -> PermissionResult {
    let mut answers = BTreeMap::new();
    for question in &input.questions {
        keyboard::tell(&plain(&shown_question(question)));
        match keyboard.answer().await {
            None => return PermissionResult::deny("the person at the terminal gave no answer"),
            Some(answer) if answer.trim().is_empty() => {}
            Some(answer) => {
                answers.insert(question.question.clone(), chosen(question, answer.trim()));
            }
        }
    }
    // The rest of the input goes back as it came.
    let mut fields: BTreeMap<String, RawJson> = request.input.decode().unwrap_or_default();
    let input = RawJson::encode(&answers).and_then(|answers| {
        fields.insert("answers".to_owned(), answers);
        JsonObject::encode(&fields)
    });
    match input {
        Ok(input) => once().updated_input(input).into(),
        Err(error) => PermissionResult::deny(format!("the answers could not be written down: {error}")),
    }
}

fn shown_question(question: &Question) -> String {
    let mut text = format!("\n{}\n", question.question);
    for (number, option) in question.options.iter().enumerate() {
        let _ = writeln!(
            text,
            "  {}. {} - {}",
            number + 1,
            option.label,
            option.description
        );
    }
    text.push_str(if question.multi_select {
        "Numbers separated by commas, or own words (nothing: no answer): "
    } else {
        "A number, or own words (nothing: no answer): "
    });
    text
}

/// The labels of the numbers, or the words as they are.
fn chosen(question: &Question, answer: &str) -> String {
    let label = |number: &str| {
        let number: usize = number.trim().parse().ok()?;
        let option = question.options.get(number.checked_sub(1)?)?;
        Some(option.label.clone())
    };
    let labels: Option<Vec<String>> = if question.multi_select {
        answer.split(',').map(label).collect()
    } else {
        label(answer).map(|label| vec![label])
    };
    labels.map_or_else(|| answer.to_owned(), |labels| labels.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(multi_select: bool) -> Question {
        let text = format!(
            r#"{{"question":"Which?","header":"W","multiSelect":{multi_select},"options":[{{"label":"Red","description":"r"}},{{"label":"Blue","description":"b"}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn numbers_choose_and_words_stand() {
        assert_eq!(chosen(&question(false), "2"), "Blue");
        assert_eq!(chosen(&question(false), "3"), "3");
        assert_eq!(chosen(&question(false), "0"), "0");
        assert_eq!(chosen(&question(false), "green, rather"), "green, rather");
        assert_eq!(chosen(&question(true), "1, 2"), "Red, Blue");
        assert_eq!(chosen(&question(true), "1 and more"), "1 and more");
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
