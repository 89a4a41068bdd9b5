//! Usage, and its cost.

use std::collections::BTreeMap;

use super::models::Model;
use serde_json::{Value, json};

/// The usage of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Used {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cost: f64,
    /// Whether all of it is of a process before, which has told where it comes from.
    restored: bool,
}

impl Used {
    /// Counts a response, at the list price.
    pub(super) fn add(&mut self, model: &str, input: u64, output: u64) {
        let (per_input, per_output) = Model::of(model).price();
        // In this order, for the same last digits.
        let cost = input as f64 * per_input / 1e6 + output as f64 * per_output / 1e6;
        self.add_at(cost, input, output);
    }

    /// Counts a response that costs so many US dollars.
    pub(super) fn add_at(&mut self, cost: f64, input: u64, output: u64) {
        self.restored = false;
        self.input += input;
        self.output += output;
        self.cost += cost;
    }

    /// One entry of `modelUsage`.
    pub(super) fn entry(&self, model: &str) -> Value {
        let known = Model::of(model);
        let mut entry = json!({
            "inputTokens": self.input,
            "outputTokens": self.output,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
            "webSearchRequests": 0,
            "costUSD": self.cost,
            "contextWindow": known.window,
            "maxOutputTokens": known.most,
            "thinkingTokens": 0,
            "cacheCreationEphemeral5mInputTokens": 0,
            "cacheCreationEphemeral1hInputTokens": 0,
        });
        if !self.restored {
            entry["canonicalModel"] = json!(known.name);
            entry["provider"] = json!("firstParty");
            entry["costBasis"] = json!(if known.is_unknown { "unknown" } else { "list" });
        }
        entry
    }

    /// Reads `modelUsage` back.
    pub(super) fn read(usage: &Value) -> BTreeMap<String, Self> {
        let models = usage.as_object().into_iter().flatten();
        models
            .map(|(model, entry)| {
                let used = Self {
                    input: entry["inputTokens"].as_u64().unwrap_or_default(),
                    output: entry["outputTokens"].as_u64().unwrap_or_default(),
                    cost: entry["costUSD"].as_f64().unwrap_or_default(),
                    restored: true,
                };
                (model.clone(), used)
            })
            .collect()
    }
}

/// `modelUsage`.
pub(super) fn by_model(used: &BTreeMap<String, Used>) -> Value {
    used.iter()
        .map(|(model, used)| (model.clone(), used.entry(model)))
        .collect()
}

/// All of it, in US dollars. Nothing costs 0, not -0.
pub(super) fn total(used: &BTreeMap<String, Used>) -> f64 {
    used.values().fold(0.0, |sum, used| sum + used.cost)
}
