//! Usage, and its cost.

use std::collections::BTreeMap;

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

/// The list price of a model, in US dollars for a million tokens in and out; unknown models have the price of the default.
pub(super) fn price(model: &str) -> (f64, f64) {
    let known = [
        ("haiku-4", (1.0, 5.0)),
        ("haiku", (0.1, 0.5)),
        ("sonnet-4", (3.0, 15.0)),
        ("sonnet", (2.0, 10.0)),
        ("fable", (8.0, 40.0)),
    ];
    let found = known.iter().find(|(family, _)| model.contains(family));
    found.map_or((4.0, 20.0), |(_, price)| *price)
}

impl Used {
    /// Counts a response, at the list price.
    pub(super) fn add(&mut self, model: &str, input: u64, output: u64) {
        let (per_input, per_output) = price(model);
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
        // A date is not a part of a model's name.
        let dated = model.rsplit_once('-').filter(|(_, date)| date.len() == 8);
        let name = dated.map_or(model, |(name, _)| name);
        let (window, most) = if name.ends_with("-4-5") {
            (200_000, 32_000)
        } else {
            (1_000_000, 128_000)
        };
        let mut entry = json!({
            "inputTokens": self.input,
            "outputTokens": self.output,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
            "webSearchRequests": 0,
            "costUSD": self.cost,
            "contextWindow": window,
            "maxOutputTokens": most,
            "thinkingTokens": 0,
            "cacheCreationEphemeral5mInputTokens": 0,
            "cacheCreationEphemeral1hInputTokens": 0,
        });
        if !self.restored {
            entry["canonicalModel"] = json!(name);
            entry["provider"] = json!("firstParty");
            entry["costBasis"] = json!("list");
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
