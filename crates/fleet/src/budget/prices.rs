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

    fn of(&self, model: &str, usage: &Usage, output: u64) -> Usd {
        let Some(price) = self.0.get(model) else {
            return Usd::ZERO;
        };
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
    /// By the id of the message, since each of its blocks repeats its usage.
    requests: HashMap<String, SeenRequest>,
    /// The message that is written in the main conversation, and in that of each subagent.
    open: HashMap<Option<String>, String>,
}

/// What was seen of a request.
#[derive(Debug, Default)]
struct SeenRequest {
    model: String,
    /// As the newest block has it.
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
