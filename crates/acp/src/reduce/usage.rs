//! The fill of the context, and the cost of the session.

use std::collections::BTreeMap;

use outrigger::protocol::inbound::{MessageDeltaUsage, ResultMessage};
use outrigger::protocol::shared::Usage as Counted;

use super::step::Steps;
use crate::event::{Event, Usage};

#[derive(Debug, Default)]
pub(super) struct Meter {
    /// The context window of each model, from results or from a reply of the CLI.
    windows: BTreeMap<String, u64>,
    model: Option<String>,
    used: Option<u64>,
    cost: Option<f64>,
    /// The cost that is not in the CLI's sum, as the process that had it was killed, or `/clear` began to count anew.
    earlier_cost: f64,
    /// The sum in the last result of this process.
    process_cost: Option<f64>,
    reported: Option<Usage>,
    /// The usage at the start of the current message: input, output, cache writes, cache reads.
    begun: Option<[Option<u64>; 4]>,
    /// The model whose window was requested last.
    asked: Option<String>,
}

impl Meter {
    pub(super) fn model(&mut self, model: &str) {
        // Synthetic messages have no model.
        if !model.starts_with('<') {
            self.model = Some(model.to_owned());
        }
    }

    pub(super) fn window(&mut self, model: &str, size: u64) {
        if size > 0 && (self.windows.len() < 64 || self.windows.contains_key(model)) {
            self.windows.insert(model.to_owned(), size);
        }
    }

    pub(super) fn begun(&mut self, usage: Option<&Counted>) {
        self.begun = Some(usage.map_or([None; 4], |usage| {
            [
                Some(usage.input_tokens),
                Some(usage.output_tokens),
                usage.cache_creation_input_tokens,
                usage.cache_read_input_tokens,
            ]
        }));
    }

    /// The usage at the end of a message of the main conversation. Missing fields are as at its start.
    pub(super) fn message(&mut self, usage: &MessageDeltaUsage, steps: &mut Steps) {
        let parts = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
        ];
        let begun = self.begun.unwrap_or_default();
        let parts = parts.into_iter().zip(begun).map(|(now, then)| now.or(then));
        self.used = Some(parts.flatten().fold(0, u64::saturating_add));
        self.report(steps);
    }

    /// Whether the window of the current model is unknown and was not requested. The request goes out while the CLI waits for the API.
    pub(super) fn wants_size(&mut self) -> bool {
        let Some(model) = self.model.as_ref().filter(|_| self.begun.is_some()) else {
            return false;
        };
        if self.windows.contains_key(model) || self.asked.as_ref() == Some(model) {
            return false;
        }
        self.asked = Some(model.clone());
        true
    }

    /// The CLI's reply: the window, and the tokens in use, which the API counts better.
    pub(super) fn asked(&mut self, model: &str, size: u64, used: u64, steps: &mut Steps) {
        // The suffix for a larger window is no part of the name in messages.
        let model = model.split('[').next().unwrap_or(model);
        self.window(model, size);
        if self.model.is_none() {
            self.model(model);
        }
        if used > 0 {
            self.used.get_or_insert(used);
        }
        self.report(steps);
    }

    /// Sets the tokens in the context.
    pub(super) fn context(&mut self, tokens: u64, steps: &mut Steps) {
        self.used = Some(tokens);
        self.report(steps);
    }

    /// Takes the result of a turn.
    pub(super) fn result(&mut self, result: &ResultMessage, steps: &mut Steps) {
        for (model, usage) in &result.model_usage {
            self.window(model, usage.context_window);
        }
        if self.model.is_none() && result.model_usage.len() == 1 {
            self.model = result.model_usage.keys().next().cloned();
        }
        self.add_cost(result);
        self.report(steps);
    }

    /// The CLI's sum has what the processes before cost, if they ended in good order.
    fn add_cost(&mut self, result: &ResultMessage) {
        let sum = result.total_cost_usd;
        let told = self.cost.unwrap_or_default();
        let includes = match (self.process_cost, &result.model_usage_since_last_result) {
            (Some(last), _) if sum >= last => None,
            (Some(_), _) => Some(0.0),
            (None, Some(since)) => Some(sum - since.values().map(|usage| usage.cost_usd).sum::<f64>()),
            (None, None) => Some(if sum >= told { told } else { 0.0 }),
        };
        if let Some(includes) = includes {
            self.earlier_cost = (told - includes).max(0.0);
        }
        self.process_cost = Some(sum);
        self.cost = Some(self.earlier_cost + sum);
    }

    /// The process ended.
    pub(super) fn died(&mut self) {
        self.process_cost = None;
    }

    /// The tokens in the context.
    pub(super) fn used(&self) -> Option<u64> {
        self.used
    }

    /// The fill of the context in percent.
    pub(super) fn fullness(&self) -> Option<u64> {
        let size = *self.windows.get(self.model.as_ref()?)?;
        let percent = self.used?.saturating_mul(100).saturating_add(size / 2) / size.max(1);
        Some(percent.min(100))
    }

    fn report(&mut self, steps: &mut Steps) {
        let size = self.model.as_ref().and_then(|model| self.windows.get(model));
        // Not without the window: a guess could be wrong by a factor of five.
        let (Some(used), Some(size)) = (self.used, size) else {
            return;
        };
        let usage = Usage {
            used,
            size: *size,
            cost: self.cost,
            model: self.model.clone(),
        };
        if self.reported.as_ref() != Some(&usage) {
            self.reported = Some(usage.clone());
            steps.event(Event::Usage(usage));
        }
    }
}
