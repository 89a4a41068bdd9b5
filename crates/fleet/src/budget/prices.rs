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

/// Dollars for an input token by model, from what the CLI charged.
#[derive(Debug, Default)]
pub(super) struct Prices(HashMap<String, f64>);

impl Prices {
    pub(super) fn learn(&mut self, usage: &TurnUsage) {
        for (model, tokens) in &usage.by_model {
            let weight = tokens.input as f64
                + OUTPUT * tokens.output as f64
                + CACHE_READ * tokens.cache_read as f64
                + CACHE_CREATION * tokens.cache_creation as f64;
            let price = tokens.cost_usd / weight;
            if price.is_finite() && price > 0.0 {
                self.0.insert(model.clone(), price);
            }
        }
    }

    fn of(&self, model: &str, usage: &Usage) -> Usd {
        let Some(price) = self.0.get(model) else {
            return Usd::ZERO;
        };
        let weight = usage.input_tokens as f64
            + OUTPUT * usage.output_tokens as f64
            + CACHE_READ * usage.cache_read_input_tokens.unwrap_or_default() as f64
            + CACHE_CREATION * usage.cache_creation_input_tokens.unwrap_or_default() as f64;
        Usd::reported(price * weight)
    }
}

/// The requests of a turn, and their tokens.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    /// By the id of the message, since each of its blocks repeats its usage.
    requests: HashMap<String, (String, Usage)>,
}

impl Estimate {
    /// Takes what an event shows. Returns whether that is something new.
    pub(super) fn observe(&mut self, event: &Event) -> bool {
        match event {
            Event::Subagent(subagent) => self.observe(&subagent.event),
            Event::ToolUse(call) => {
                let Ok(Message::Assistant(assistant)) = call.frame.decode() else {
                    return false;
                };
                let message = assistant.message;
                let (Some(id), Some(usage)) = (message.id, message.usage) else {
                    return false;
                };
                self.requests.insert(id, (message.model, usage)).is_none()
            }
            _ => false,
        }
    }

    pub(super) fn amount(&self, prices: &Prices) -> Amount {
        let each = self.requests.values().map(|(model, usage)| Amount {
            usd: prices.of(model, usage),
            tokens: [
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_input_tokens.unwrap_or_default(),
                usage.cache_creation_input_tokens.unwrap_or_default(),
            ]
            .into_iter()
            .fold(0, u64::saturating_add),
        });
        each.fold(Amount::default(), |sum, one| sum + one)
    }
}
