//! What came of a run: as JSON for programs, as a line for people.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger::protocol::RawJson;
use outrigger::{Cause, Outcome, Session, Tokens};
use serde::Serialize;

/// The object of `--output json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The final text: that of the last turn that said anything. Empty if none has an answer.
    text: String,
    verdict: &'static str,
    /// Why the prompt's own turn failed, if it did.
    cause: Option<&'static str>,
    is_success: bool,
    session_id: Option<String>,
    /// The cost of the whole run.
    cost_usd: f64,
    /// The time from the prompt to the end of the run.
    duration_ms: u64,
    /// Agentic turns of the prompt's own turn.
    num_turns: Option<u64>,
    usage: BTreeMap<String, ModelUsage>,
    structured_output: Option<RawJson>,
    errors: Vec<String>,
    api_error_status: Option<u16>,
    permission_denials: Vec<Denial>,
    /// The turns that background work began.
    follow_ups: Vec<FollowUp>,
}

#[derive(Debug, Serialize)]
struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_creation_tokens: u64,
    web_searches: u64,
    cost_usd: f64,
}

impl From<Tokens> for ModelUsage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            cache_read_tokens: tokens.cache_read,
            cache_creation_tokens: tokens.cache_creation,
            web_searches: tokens.web_searches,
            cost_usd: tokens.cost_usd,
        }
    }
}

#[derive(Debug, Serialize)]
struct Denial {
    tool_name: String,
    tool_use_id: String,
    tool_input: RawJson,
}

#[derive(Debug, Serialize)]
struct FollowUp {
    origin: Option<String>,
    verdict: &'static str,
    cause: Option<&'static str>,
    text: String,
}

impl Report {
    /// Reports a run that is over.
    pub(crate) fn new(session: &Session, outcome: &Outcome, follow_ups: &[Outcome], took: Duration) -> Self {
        let used = session.usage();
        let turns = || std::iter::once(outcome).chain(follow_ups);
        let denials = turns()
            .filter_map(|turn| turn.result()?.ok())
            .flat_map(|result| result.permission_denials)
            .map(|denial| Denial {
                tool_name: denial.tool_name,
                tool_use_id: denial.tool_use_id,
                tool_input: denial.tool_input,
            });
        Self {
            text: final_text(outcome, follow_ups).to_owned(),
            verdict: outcome.verdict().name(),
            cause: outcome.verdict().cause().map(Cause::name),
            is_success: outcome.is_success(),
            session_id: session.id().map(String::from),
            cost_usd: used.cost_usd,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            num_turns: outcome.num_turns(),
            usage: used
                .by_model
                .into_iter()
                .map(|(model, tokens)| (model, tokens.into()))
                .collect(),
            structured_output: outcome.structured_output().cloned(),
            errors: turns()
                .filter_map(Outcome::error_text)
                .map(str::to_owned)
                .collect(),
            api_error_status: outcome.api_error_status(),
            permission_denials: denials.collect(),
            follow_ups: follow_ups
                .iter()
                .map(|turn| FollowUp {
                    origin: turn.origin().map(str::to_owned),
                    verdict: turn.verdict().name(),
                    cause: turn.verdict().cause().map(Cause::name),
                    text: text(turn).to_owned(),
                })
                .collect(),
        }
    }

    /// Cost, turns and time, for people.
    pub(crate) fn summary(&self) -> String {
        let turns = match self.num_turns {
            Some(1) => "1 turn, ".to_owned(),
            Some(turns) => format!("{turns} turns, "),
            None => String::new(),
        };
        let seconds = Duration::from_millis(self.duration_ms).as_secs_f64();
        format!("${:.4}, {turns}{seconds:.1} s", self.cost_usd)
    }
}

/// The text of the last turn that said anything.
pub(crate) fn final_text<'a>(outcome: &'a Outcome, follow_ups: &'a [Outcome]) -> &'a str {
    std::iter::once(outcome)
        .chain(follow_ups)
        .rev()
        .map(text)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// What the turn answered; nothing if it has no answer.
pub(crate) fn text(outcome: &Outcome) -> &str {
    if outcome.verdict().has_answer() {
        outcome.result_text()
    } else {
        ""
    }
}
