//! What a turn has cost so far, by its events.

use std::collections::HashMap;

use outrigger::protocol::inbound::Message;
use outrigger::protocol::shared::Usage;
use outrigger::{Event, TurnUsage};

use super::Amount;
use super::usd::Usd;

/// How many input tokens a token of another kind costs as much as. The same for all models of the API.
const OUTPUT: f64 = 5.0;
const CACHE_READ: f64 = 0.1;
const CACHE_CREATION: f64 = 1.25;

/// How many bytes of text a token has, as a rule.
const BYTES_PER_TOKEN: u64 = 4;

/// Dollars for an input token by the plain name of the model, from what the CLI charged.
#[derive(Debug, Default)]
pub(super) struct Prices(HashMap<String, f64>);

/// The name of a model without what providers, versions, dates and the size of the context add to it: the CLI charges for
/// `us.anthropic.claude-x-20260101-v1:0` or `claude-x[1m]` where messages say `claude-x-20260101`.
fn plain(model: &str) -> &str {
    let name = model.rsplit_once("anthropic.").map_or(model, |(_, name)| name);
    let name = name.split(['[', '@']).next().unwrap_or(name);
    let is_version = |part: &str| {
        let digits = part.strip_prefix('v').unwrap_or(part).bytes();
        let digits = digits.take_while(u8::is_ascii_digit).count();
        digits >= 8 || part.starts_with('v') && digits > 0
    };
    let mut parts = name.match_indices('-');
    let end = parts.find(|(at, _)| is_version(&name[at + 1..]));
    end.map_or(name, |(at, _)| &name[..at])
}

impl Prices {
    pub(super) fn learn(&mut self, usage: &TurnUsage) {
        for (model, tokens) in &usage.by_model {
            let weight = tokens.input as f64
                + OUTPUT * tokens.output as f64
                + CACHE_READ * tokens.cache_read as f64
                + CACHE_CREATION * tokens.cache_creation as f64;
            let price = tokens.cost_usd / weight;
            if price.is_finite() && price > 0.0 {
                self.0.insert(plain(model).to_owned(), price);
            }
        }
    }

    /// What a request costs. A model without a price has the dearest one that is known: an estimate that is too low would let the turn
    /// exceed its cap.
    fn of(&self, model: &str, usage: &Usage, output: u64) -> Usd {
        let dearest = || self.0.values().copied().fold(0.0, f64::max);
        let price = self.0.get(plain(model)).copied().unwrap_or_else(dearest);
        let weight = usage.input_tokens as f64
            + OUTPUT * output as f64
            + CACHE_READ * usage.cache_read_input_tokens.unwrap_or_default() as f64
            + CACHE_CREATION * usage.cache_creation_input_tokens.unwrap_or_default() as f64;
        Usd::reported(price * weight)
    }
}

/// The requests of a turn, and their tokens.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    /// The requests by the id of their message, since each of its blocks repeats its usage.
    requests: HashMap<String, SeenRequest>,
    /// The message that is written in the main conversation, and in that of each subagent.
    open: HashMap<Option<String>, String>,
}

/// What was seen of a request.
#[derive(Debug, Default)]
struct SeenRequest {
    model: String,
    /// What the newest block reports.
    usage: Usage,
    /// The bytes of its text, its thinking and the inputs of its calls.
    written: u64,
}

impl SeenRequest {
    /// The CLI writes a block with the usage from when the message began, in which there is hardly any output.
    fn output(&self) -> u64 {
        self.usage.output_tokens.max(self.written / BYTES_PER_TOKEN)
    }
}

impl Estimate {
    /// Takes what an event shows. Returns whether the model has called a tool: then the amount is another one.
    pub(super) fn observe(&mut self, event: &Event) -> bool {
        match event {
            Event::Subagent(subagent) => self.observe_in(Some(&subagent.parent_tool_use_id), &subagent.event),
            event => self.observe_in(None, event),
        }
    }

    fn observe_in(&mut self, subagent: Option<&str>, event: &Event) -> bool {
        match event {
            Event::MessageStart {
                id: Some(id),
                model: Some(model),
                ..
            } => {
                self.request(id).model.clone_from(model);
                self.open.insert(subagent.map(str::to_owned), id.clone());
                false
            }
            Event::Text(text) | Event::Thinking(text) => {
                if let Some(id) = self.open.get(&subagent.map(str::to_owned)).cloned() {
                    self.request(&id).written += text.len() as u64;
                }
                false
            }
            Event::ToolUse(call) => {
                let Ok(Message::Assistant(assistant)) = call.frame.decode() else {
                    return false;
                };
                let message = assistant.message;
                let (Some(id), Some(usage)) = (message.id, message.usage) else {
                    return false;
                };
                let request = self.request(&id);
                request.model = message.model;
                request.usage = usage;
                request.written += call.input.get().len() as u64;
                true
            }
            _ => false,
        }
    }

    fn request(&mut self, id: &str) -> &mut SeenRequest {
        self.requests.entry(id.to_owned()).or_default()
    }

    pub(super) fn amount(&self, prices: &Prices) -> Amount {
        let each = self.requests.values().map(|request| {
            let (usage, output) = (&request.usage, request.output());
            Amount {
                usd: prices.of(&request.model, usage, output),
                tokens: [
                    usage.input_tokens,
                    output,
                    usage.cache_read_input_tokens.unwrap_or_default(),
                    usage.cache_creation_input_tokens.unwrap_or_default(),
                ]
                .into_iter()
                .fold(0, u64::saturating_add),
            }
        });
        each.fold(Amount::default(), |sum, one| sum + one)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn learned(models: &[(&str, f64)]) -> Prices {
        let mut usage = TurnUsage::default();
        for (model, cost_usd) in models {
            let tokens = usage.by_model.entry((*model).to_owned()).or_default();
            (tokens.input, tokens.cost_usd) = (1000, *cost_usd);
        }
        let mut prices = Prices::default();
        prices.learn(&usage);
        prices
    }

    fn of(prices: &Prices, model: &str) -> f64 {
        let usage: Usage = serde_json::from_str(r#"{"input_tokens":1000,"output_tokens":0}"#).unwrap();
        prices.of(model, &usage, 0).dollars()
    }

    #[test]
    fn a_model_has_its_price_under_all_of_its_names() {
        for (charged, said) in [
            ("claude-x-4-5", "claude-x-4-5"),
            ("claude-x-4-5[1m]", "claude-x-4-5"),
            ("claude-x-4-5", "claude-x-4-5-20260101"),
            ("claude-x-4-5-20260101[1m]", "claude-x-4-5-20260101"),
            ("us.anthropic.claude-x-4-5-20260101-v1:0", "claude-x-4-5-20260101"),
            ("eu.anthropic.claude-x-4-5-v1", "claude-x-4-5"),
            ("claude-x-4-5@20260101", "claude-x-4-5-20260101"),
        ] {
            let prices = learned(&[(charged, 1.0), ("claude-x-4", 2.0)]);
            assert_eq!(of(&prices, said), 1.0, "{charged} and {said}");
            assert_eq!(of(&prices, "claude-x-4-20250101"), 2.0, "{charged}");
        }
    }

    #[test]
    fn a_model_without_a_price_has_the_dearest_one() {
        assert_eq!(of(&Prices::default(), "claude-x"), 0.0);
        let prices = learned(&[("my-deployment", 3.0), ("small", 1.0)]);
        assert_eq!(of(&prices, "claude-x"), 3.0);
    }
}
