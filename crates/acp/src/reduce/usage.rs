//! How full the context is, and what the session cost.

use std::collections::BTreeMap;

use outrigger::protocol::inbound::{MessageDeltaUsage, ResultMessage};
use outrigger::protocol::shared::Usage as Counted;

use super::step::Steps;
use crate::event::{Event, Usage};

#[derive(Debug, Default)]
pub(super) struct Meter {
    /// How many tokens fit, by model; known from results, or told by the session.
    windows: BTreeMap<String, u64>,
    model: Option<String>,
    used: Option<u64>,
    cost: Option<f64>,
    told: Option<Usage>,
    /// What the message counted that is being said, when it began: input, output, written to the cache, read from it.
    begun: Option<[Option<u64>; 4]>,
    /// The model whose size was asked for last.
    asked: Option<String>,
}

impl Meter {
    pub(super) fn model(&mut self, model: &str) {
        // What the CLI makes up itself is of no model.
        if !model.starts_with('<') {
            self.model = Some(model.to_owned());
        }
    }

    pub(super) fn window(&mut self, model: &str, size: u64) {
        if size > 0 && (self.windows.len() < 64 || self.windows.contains_key(model)) {
            self.windows.insert(model.to_owned(), size);
        }
    }

    /// A message of the main conversation begins.
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

    /// A message of the main conversation is over. What is not said again is as it was when it began.
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
        self.tell(steps);
    }

    /// Whether the size of the model that is used is not known, and nobody asked for it yet. That has time until the API answers: the
    /// CLI has nothing else to do then.
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

    /// What the CLI says when it is asked for the size, and for what is used; the API counts that better.
    pub(super) fn asked(&mut self, model: &str, size: u64, used: u64, steps: &mut Steps) {
        // What it is called to have more room is no part of its name in answers.
        let model = model.split('[').next().unwrap_or(model);
        self.window(model, size);
        if self.model.is_none() {
            self.model(model);
        }
        if used > 0 {
            self.used.get_or_insert(used);
        }
        self.tell(steps);
    }

    /// The context has so many tokens now.
    pub(super) fn context(&mut self, tokens: u64, steps: &mut Steps) {
        self.used = Some(tokens);
        self.tell(steps);
    }

    /// A turn is over.
    pub(super) fn result(&mut self, result: &ResultMessage, steps: &mut Steps) {
        for (model, usage) in &result.model_usage {
            self.window(model, usage.context_window);
        }
        if self.model.is_none() && result.model_usage.len() == 1 {
            self.model = result.model_usage.keys().next().cloned();
        }
        self.cost = Some(result.total_cost_usd);
        self.tell(steps);
    }

    /// How full the context is, in percent.
    pub(super) fn fullness(&self) -> Option<u64> {
        let size = *self.windows.get(self.model.as_ref()?)?;
        let percent = self.used?.saturating_mul(100).saturating_add(size / 2) / size.max(1);
        Some(percent.min(100))
    }

    fn tell(&mut self, steps: &mut Steps) {
        let size = self.model.as_ref().and_then(|model| self.windows.get(model));
        // Without the size the fullness means nothing, and a guess would be wrong by a factor of five.
        let (Some(used), Some(size)) = (self.used, size) else {
            return;
        };
        let usage = Usage {
            used,
            size: *size,
            cost: self.cost,
            model: self.model.clone(),
        };
        if self.told.as_ref() != Some(&usage) {
            self.told = Some(usage.clone());
            steps.event(Event::Usage(usage));
        }
    }
}
