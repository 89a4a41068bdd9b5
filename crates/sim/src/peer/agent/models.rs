//! The models that the CLI knows, and what it takes a model for that it does not know.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::payload;

static KNOWN: LazyLock<Vec<Model>> =
    LazyLock::new(|| serde_json::from_str(include_str!("models.json")).unwrap_or_default());

/// What the CLI knows of a model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    /// The model's name without a date.
    pub(super) name: String,
    /// Other names.
    #[serde(default)]
    also: Vec<String>,
    /// The model's name for people.
    #[serde(default, rename = "displayName")]
    display_name: Option<String>,
    /// The efforts that it takes.
    #[serde(default)]
    effort: String,
    /// What else it can: fields of the list of models.
    flags: Vec<String>,
    /// The tokens that it reads, and writes, at most.
    pub(super) window: u64,
    pub(super) most: u64,
    /// A million tokens read, in US dollars. Five times as much are written.
    price: f64,
    /// Whether sessions have the tools for tasks without being asked to.
    #[serde(default)]
    pub(super) tasks: bool,
    /// Whether the model is always listed.
    #[serde(default)]
    pub(super) current: bool,
    #[serde(skip)]
    pub(super) is_unknown: bool,
}

/// The name without a date, or without the word that stands for the latest.
fn dateless(model: &str) -> &str {
    let is_date = |end: &str| end == "latest" || (end.len() == 8 && end.chars().all(|c| c.is_ascii_digit()));
    model
        .rsplit_once('-')
        .filter(|(_, end)| is_date(end))
        .map_or(model, |(name, _)| name)
}

impl Model {
    /// What is known of the model of this name.
    pub(super) fn of(model: &str) -> Self {
        let name = dateless(model);
        let known = KNOWN
            .iter()
            .find(|known| known.name == name || known.also.iter().any(|also| also == name));
        known.cloned().unwrap_or_else(|| Self {
            name: name.to_owned(),
            also: Vec::new(),
            display_name: None,
            effort: "low medium high xhigh max".to_owned(),
            flags: vec![
                "supportsAdaptiveThinking".to_owned(),
                "supportsAutoMode".to_owned(),
            ],
            window: 1_000_000,
            most: 32_000,
            price: 4.0,
            tasks: false,
            current: false,
            is_unknown: true,
        })
    }

    /// The price of a million tokens read, and written, in US dollars.
    pub(super) fn price(&self) -> (f64, f64) {
        (self.price, self.price * 5.0)
    }

    pub(super) fn has_auto_mode(&self) -> bool {
        self.flags.iter().any(|flag| flag == "supportsAutoMode")
    }

    pub(super) fn has_effort(&self) -> bool {
        !self.effort.is_empty()
    }

    /// The entry of a model that a session has and that is not always listed.
    pub(super) fn listed(&self, model: &str) -> Value {
        let shown = self.display_name.as_deref().unwrap_or(model);
        let mut listed = json!({
            "value": model, "resolvedModel": model, "displayName": shown, "description": "The model of this session",
        });
        if self.has_effort() {
            listed["supportsEffort"] = json!(true);
            listed["supportedEffortLevels"] = self.effort.split(' ').collect();
        }
        for flag in &self.flags {
            listed[flag] = json!(true);
        }
        listed["supportsThinkingOff"] = json!(true);
        listed
    }
}

/// The model that a name stands for: an alias is resolved, and one that is not there any more; anything else stands for itself.
pub(super) fn resolve(name: &str) -> String {
    let name = name.strip_suffix("[1m]").unwrap_or(name);
    let name = match dateless(name) {
        "best" | "claude-opus-4-1" | "claude-opus-4-0" | "claude-opus-4" => "opus",
        _ => name,
    };
    let models = payload::models();
    let mut known = models.as_array().into_iter().flatten();
    match known.find(|model| model["value"] == name) {
        Some(model) => model["resolvedModel"].as_str().unwrap_or(name).to_owned(),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_resolved() {
        for (name, model) in [
            ("sonnet", "claude-sonnet-5-5"),
            ("sonnet[1m]", "claude-sonnet-5-5"),
            ("best", "claude-opus-5-5"),
            ("claude-opus-4-1-20250805", "claude-opus-5-5"),
            ("claude-sonnet-4-20250514", "claude-sonnet-4-20250514"),
            ("x", "x"),
        ] {
            assert_eq!(resolve(name), model);
        }
    }

    #[test]
    fn what_is_always_listed_is_known() {
        let models = payload::models();
        for listed in models.as_array().unwrap() {
            let model = Model::of(listed["resolvedModel"].as_str().unwrap());
            assert!(
                model.current && model.has_auto_mode() && model.has_effort(),
                "{model:?}"
            );
        }
        assert_eq!(Model::of("claude-3-7-sonnet-latest").name, "claude-3-7-sonnet");
        assert_eq!(Model::of("claude-sonnet-4-20250514").name, "claude-sonnet-4-0");
        assert!(Model::of("made-up").is_unknown);
    }
}
