//! Tokens and money, per turn and per session.
//!
//! The CLI's `total_cost_usd` and `modelUsage` are sums over the whole session, and its `usage` is the main loop's alone.
//! What a turn used is therefore the difference between two results; it is computed here.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use outrigger_protocol::Frame;
use outrigger_protocol::shared::{amount, count};
use outrigger_sessions::Cost;
use serde::Deserialize;

use crate::fields::Fields;

/// The usage of one model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
#[cfg_attr(all(test, feature = "serde"), derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Tokens {
    /// Input tokens that were neither read from nor written to the cache.
    pub input: u64,
    /// Output tokens, thinking included.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_creation: u64,
    /// Web searches.
    pub web_searches: u64,
    /// Cost in US dollars, by the CLI's price table.
    pub cost_usd: f64,
}

impl Tokens {
    fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.input, other.input);
        add(&mut self.output, other.output);
        add(&mut self.cache_read, other.cache_read);
        add(&mut self.cache_creation, other.cache_creation);
        add(&mut self.web_searches, other.web_searches);
        self.cost_usd += other.cost_usd;
    }

    fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
            cache_read: self.cache_read.saturating_sub(before.cache_read),
            cache_creation: self.cache_creation.saturating_sub(before.cache_creation),
            web_searches: self.web_searches.saturating_sub(before.web_searches),
            cost_usd: (self.cost_usd - before.cost_usd).max(0.0),
        }
    }

    fn is_zero(self) -> bool {
        self == Self::default()
    }
}

/// The usage of one turn: of its main loop, its subagents, and all else since the previous result.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
#[cfg_attr(all(test, feature = "serde"), derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TurnUsage {
    /// Cost in US dollars, by the CLI's price table.
    ///
    /// For the first result of a resumed session, the CLI's sums include the earlier cost. Then the CLI's own
    /// `model_usage_since_last_result` counts; with a CLI that does not send it, this is the cost of the whole session.
    pub cost_usd: f64,
    /// By model, as the CLI names it; only the models that the turn used.
    pub by_model: BTreeMap<String, Tokens>,
}

impl TurnUsage {
    /// All models together.
    pub fn total(&self) -> Tokens {
        sum(&self.by_model)
    }

    /// Adds the usage of another turn.
    pub(crate) fn add(&mut self, other: &TurnUsage) {
        self.cost_usd += other.cost_usd;
        for (model, tokens) in &other.by_model {
            self.by_model.entry(model.clone()).or_default().add(tokens);
        }
    }
}

/// The usage of a session since this program started or resumed it, over all its processes: [`Session::revive`] goes on with the
/// sums of the process before. What earlier programs have used is part of it if the program says so:
/// [`Options::usage_so_far`](crate::Options::usage_so_far).
///
/// [`Session::revive`]: crate::Session::revive
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
#[cfg_attr(all(test, feature = "serde"), derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SessionUsage {
    /// Cost in US dollars: the sum of the turns' costs, ambient turns included.
    pub cost_usd: f64,
    /// By model, as the CLI names it.
    pub by_model: BTreeMap<String, Tokens>,
    /// The number of results, ambient ones included. The CLI does not record it: 0 in the usage of a [`Cost`].
    pub results: u64,
}

/// What the CLI recorded of a stored session, when it ended in good order the last time.
impl From<&Cost> for SessionUsage {
    fn from(cost: &Cost) -> Self {
        let by_model = cost.model_usage.iter().map(|(model, used)| {
            let tokens = Tokens {
                input: used.input_tokens,
                output: used.output_tokens,
                cache_read: used.cache_read_input_tokens,
                cache_creation: used.cache_creation_input_tokens,
                web_searches: used.web_search_requests,
                cost_usd: used.cost_usd,
            };
            (model.clone(), tokens)
        });
        Self {
            cost_usd: cost.total_cost_usd,
            by_model: by_model.collect(),
            results: 0,
        }
    }
}

/// Adds what another session has used, or this one in another program.
impl AddAssign<&SessionUsage> for SessionUsage {
    fn add_assign(&mut self, other: &Self) {
        self.results = self.results.saturating_add(other.results);
        self.add(other.cost_usd, &other.by_model);
    }
}

impl SessionUsage {
    fn add(&mut self, cost_usd: f64, by_model: &BTreeMap<String, Tokens>) {
        self.cost_usd += cost_usd;
        for (model, tokens) in by_model {
            self.by_model.entry(model.clone()).or_default().add(tokens);
        }
    }

    /// All models together.
    pub fn total(&self) -> Tokens {
        sum(&self.by_model)
    }
}

fn sum(by_model: &BTreeMap<String, Tokens>) -> Tokens {
    by_model.values().fold(Tokens::default(), |mut total, tokens| {
        total.add(tokens);
        total
    })
}

/// Turns the CLI's sums into differences.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    last_cost: f64,
    last: BTreeMap<String, Tokens>,
    seen_any: bool,
    session: SessionUsage,
}

impl Meter {
    /// Takes a `result` and returns the usage since the previous one.
    pub(crate) fn on_result(&mut self, result: &Frame) -> TurnUsage {
        let fields = Fields::of(result);
        let models = |key| -> Option<BTreeMap<String, Tokens>> {
            let models: BTreeMap<String, ModelUsage> = fields.get(key)?;
            Some(
                models
                    .into_iter()
                    .map(|(model, usage)| (model, usage.into()))
                    .collect(),
            )
        };
        let total_cost: Option<f64> = fields.get("total_cost_usd");
        let totals = models("modelUsage");
        let since = models("model_usage_since_last_result");

        // `/clear` begins to count anew.
        let restarted = total_cost.is_some_and(|total| total < self.last_cost);
        if restarted {
            self.last_cost = 0.0;
            self.last.clear();
        }
        let mut by_model = match (&since, &totals) {
            (Some(since), _) => since.clone(),
            (None, Some(totals)) => totals
                .iter()
                .map(|(model, now)| {
                    (
                        model.clone(),
                        now.since(self.last.get(model).copied().unwrap_or_default()),
                    )
                })
                .collect(),
            (None, None) => BTreeMap::new(),
        };
        by_model.retain(|_, tokens| !tokens.is_zero());
        let cost_usd = match (total_cost, &since) {
            (_, Some(_)) if !self.seen_any => sum(&by_model).cost_usd,
            (Some(total), _) => total - self.last_cost,
            (None, _) => sum(&by_model).cost_usd,
        };
        self.seen_any = true;
        self.last_cost = total_cost.unwrap_or(self.last_cost);
        self.last = totals.unwrap_or_else(|| std::mem::take(&mut self.last));
        let turn = TurnUsage { cost_usd, by_model };
        self.session.results = self.session.results.saturating_add(1);
        self.session.add(turn.cost_usd, &turn.by_model);
        turn
    }

    /// Adds what earlier processes of the session used.
    pub(crate) fn add_earlier(&mut self, earlier: &SessionUsage) {
        self.session += earlier;
    }

    pub(crate) fn session(&self) -> SessionUsage {
        self.session.clone()
    }
}

/// The CLI's numbers for one model, each read such that an odd one does not take the others with it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ModelUsage {
    #[serde(deserialize_with = "count")]
    input_tokens: u64,
    #[serde(deserialize_with = "count")]
    output_tokens: u64,
    #[serde(deserialize_with = "count")]
    cache_read_input_tokens: u64,
    #[serde(deserialize_with = "count")]
    cache_creation_input_tokens: u64,
    #[serde(deserialize_with = "count")]
    web_search_requests: u64,
    #[serde(rename = "costUSD", deserialize_with = "amount")]
    cost_usd: f64,
}

impl From<ModelUsage> for Tokens {
    fn from(usage: ModelUsage) -> Self {
        Self {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cache_read: usage.cache_read_input_tokens,
            cache_creation: usage.cache_creation_input_tokens,
            web_searches: usage.web_search_requests,
            cost_usd: usage.cost_usd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(total: f64, output: u64, since: Option<u64>) -> Frame {
        let usage = |output: u64| {
            format!(
                r#"{{"m":{{"inputTokens":1,"outputTokens":{output},"costUSD":{}}}}}"#,
                output as f64 / 10.0
            )
        };
        let since = since
            .map(|output| format!(r#","model_usage_since_last_result":{}"#, usage(output)))
            .unwrap_or_default();
        let text = format!(
            r#"{{"type":"result","total_cost_usd":{total},"modelUsage":{}{since}}}"#,
            usage(output)
        );
        Frame::from_line(text.into_bytes()).remove(0)
    }

    #[test]
    fn a_turn_is_the_difference_between_two_results() {
        let mut meter = Meter::default();
        assert_eq!(meter.on_result(&result(1.0, 10, None)).cost_usd, 1.0);
        let second = meter.on_result(&result(1.5, 15, None));
        assert_eq!(
            (second.cost_usd, second.total().output, second.total().input),
            (0.5, 5, 0)
        );
        // `/clear`: the sums begin anew.
        assert_eq!(meter.on_result(&result(0.25, 2, None)).cost_usd, 0.25);
        assert_eq!(
            (
                meter.session().cost_usd,
                meter.session().total().output,
                meter.session().results
            ),
            (1.75, 17, 3)
        );
    }

    #[test]
    fn an_odd_count_of_a_gateway_hides_no_other() {
        let line = r#"{"type":"result","total_cost_usd":null,"modelUsage":{
            "a":{"inputTokens":2.6,"outputTokens":null,"cacheReadInputTokens":"04","costUSD":null},
            "b":{"inputTokens":7,"outputTokens":1,"costUSD":0.5}}}"#;
        let frame = Frame::from_line(line.replace('\n', "").into_bytes()).remove(0);
        let used = Meter::default().on_result(&frame);
        assert_eq!((used.by_model["a"].input, used.by_model["b"].input), (3, 7));
        assert_eq!((used.cost_usd, used.total().output), (0.5, 1));
    }

    #[test]
    fn the_first_turn_of_a_resumed_session_does_not_pay_for_the_past() {
        let mut meter = Meter::default();
        let first = meter.on_result(&result(42.0, 420, Some(5)));
        assert_eq!((first.cost_usd, first.total().output), (0.5, 5));
        assert_eq!(meter.on_result(&result(42.5, 425, Some(5))).cost_usd, 0.5);
    }

    #[test]
    fn a_session_goes_on_with_what_its_earlier_processes_used() {
        let mut old = Meter::default();
        old.on_result(&result(1.0, 10, None));
        let mut meter = Meter::default();
        // A result that comes before the sums are taken over counts as well.
        assert_eq!(meter.on_result(&result(1.5, 15, Some(5))).cost_usd, 0.5);
        meter.add_earlier(&old.session());
        meter.on_result(&result(1.75, 17, Some(2)));
        let session = meter.session();
        assert_eq!(
            (session.cost_usd, session.total().output, session.results),
            (1.75, 17, 3)
        );
    }

    #[test]
    fn sums_stay_at_their_limit() {
        let mut earlier = SessionUsage {
            results: u64::MAX,
            ..SessionUsage::default()
        };
        earlier += &earlier.clone();
        let mut meter = Meter::default();
        meter.add_earlier(&earlier);
        for _ in 0..2 {
            let turn = meter.on_result(&result(1.0, u64::MAX, Some(u64::MAX)));
            assert_eq!(turn.total().output, u64::MAX);
        }
        let session = meter.session();
        assert_eq!((session.total().output, session.results), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_result_without_numbers_costs_nothing() {
        let mut meter = Meter::default();
        meter.on_result(&result(1.0, 10, None));
        let bare = Frame::from_line(br#"{"type":"result","modelUsage":"?"}"#.as_slice()).remove(0);
        assert_eq!(meter.on_result(&bare), TurnUsage::default());
        assert_eq!(meter.on_result(&result(1.5, 15, None)).cost_usd, 0.5);
    }
}
