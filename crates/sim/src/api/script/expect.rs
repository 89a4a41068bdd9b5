//! Expectations of the requests in the end.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use super::play::Player;
use crate::api::request::{ApiRequest, Route};
use crate::script::{Flaw, TextMatch};

/// Expectations of the requests to the API. By default every request must have a reply, and all replies of the script
/// must have been sent.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ApiExpect {
    /// Whether every message request must have been matched; true unless set.
    pub no_unmatched: bool,
    /// Whether, of each conversation that is not for `any` times, some session must have got all replies; true unless set.
    pub every_reply_given: bool,
    /// How many sessions must have sent requests.
    pub sessions: Option<usize>,
    /// How many subagents must have sent requests.
    pub subagents: Option<usize>,
    /// How many requests for a message there must have been.
    pub requests: Option<u64>,
    /// Prompts that must have come.
    pub prompts: Vec<TextMatch>,
    /// The tool results that must have been sent.
    pub tool_results: Vec<TextMatch>,
}

impl Default for ApiExpect {
    fn default() -> Self {
        Self {
            no_unmatched: true,
            every_reply_given: true,
            sessions: None,
            subagents: None,
            requests: None,
            prompts: Vec::new(),
            tool_results: Vec::new(),
        }
    }
}

impl ApiExpect {
    /// The default expectations.
    pub fn new() -> Self {
        Self::default()
    }

    /// So many sessions must have sent requests.
    #[must_use]
    pub fn sessions(mut self, count: usize) -> Self {
        self.sessions = Some(count);
        self
    }

    /// So many subagents must have sent requests.
    #[must_use]
    pub fn subagents(mut self, count: usize) -> Self {
        self.subagents = Some(count);
        self
    }

    /// There must have been so many requests for a message.
    #[must_use]
    pub fn requests(mut self, count: u64) -> Self {
        self.requests = Some(count);
        self
    }

    /// Such a prompt must have come.
    #[must_use]
    pub fn prompt(mut self, text: impl Into<TextMatch>) -> Self {
        self.prompts.push(text.into());
        self
    }

    /// Some tool must have had this result.
    #[must_use]
    pub fn tool_result(mut self, text: impl Into<TextMatch>) -> Self {
        self.tool_results.push(text.into());
        self
    }
}

/// The counts over all requests, including those that are no longer kept.
#[derive(Debug, Clone, Default)]
pub(in crate::api) struct Tally {
    pub(in crate::api) messages: u64,
    /// Requests for messages that nothing was for: how many, and why the first ones.
    pub(in crate::api) unmatched: u64,
    reasons: Vec<Reason>,
    pub(in crate::api) sessions: BTreeSet<String>,
    pub(in crate::api) agents: BTreeSet<String>,
    /// How many requests are no longer kept.
    pub(in crate::api) forgotten: u64,
}

/// Why nothing was for a request.
#[derive(Debug, Clone)]
struct Reason {
    /// The first request.
    number: u64,
    /// How many there were.
    times: u64,
    why: String,
}

/// How many are reported one by one.
const TOLD: usize = 8;

impl Tally {
    pub(in crate::api) fn came(&mut self, request: &ApiRequest) {
        if request.route() != Route::Messages {
            return;
        }
        self.messages += 1;
        self.sessions.extend(request.session_id().map(str::to_owned));
        self.agents.extend(request.agent_id().map(str::to_owned));
    }

    pub(in crate::api) fn unmatched(&mut self, number: u64, why: &str) {
        self.unmatched += 1;
        // The CLI retries a rejected request.
        if let Some(known) = self.reasons.iter_mut().find(|known| known.why == why) {
            known.times += 1;
        } else if self.reasons.len() < TOLD {
            self.reasons.push(Reason {
                number,
                times: 1,
                why: why.to_owned(),
            });
        }
    }
}

/// The expectations that do not hold.
pub(in crate::api) fn judge(
    expect: &ApiExpect,
    tally: &Tally,
    kept: &[ApiRequest],
    player: Option<&Player>,
) -> Vec<Flaw> {
    let place = |name: &str| {
        player.map_or_else(
            || format!("expect.{name}"),
            |player| player.script().expectation(name),
        )
    };
    let mut flaws = Vec::new();
    if expect.no_unmatched && tally.unmatched > 0 {
        for Reason { number, times, why } in &tally.reasons {
            let again = match times {
                1 => String::new(),
                times => format!(", asked {times} times"),
            };
            flaws.push(Flaw::new(
                place("no_unmatched"),
                format!("request {number}{again}: {why}"),
            ));
        }
        let told: u64 = tally.reasons.iter().map(|reason| reason.times).sum();
        let more = tally.unmatched - told;
        if more > 0 {
            flaws.push(Flaw::new(
                place("no_unmatched"),
                format!("and {more} requests more"),
            ));
        }
    }
    if expect.every_reply_given {
        flaws.extend(player.map(Player::left).unwrap_or_default());
    }
    let mut count = |name: &str, what: &str, wanted: Option<u64>, there: u64| {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != there) {
            flaws.push(Flaw::new(
                place(name),
                format!("{there} {what} instead of {wanted}"),
            ));
        }
    };
    count(
        "sessions",
        "sessions asked",
        expect.sessions.map(|count| count as u64),
        tally.sessions.len() as u64,
    );
    count(
        "subagents",
        "subagents asked",
        expect.subagents.map(|count| count as u64),
        tally.agents.len() as u64,
    );
    count(
        "requests",
        "requests for a message came",
        expect.requests,
        tally.messages,
    );
    let forgotten = match tally.forgotten {
        0 => String::new(),
        count => format!("; {count} requests are no longer kept and were not looked at"),
    };
    let prompts: Vec<String> = kept.iter().filter_map(ApiRequest::last_user_text).collect();
    for wanted in expect
        .prompts
        .iter()
        .filter(|wanted| !prompts.iter().any(|text| wanted.fits(text)))
    {
        let what = format!("no prompt was {wanted}{forgotten}{}", those("prompts", &prompts));
        flaws.push(Flaw::new(place("prompts"), what));
    }
    let results: Vec<String> = kept
        .iter()
        .flat_map(|request| request.new_tool_results().into_iter().map(|result| result.text))
        .collect();
    for wanted in expect
        .tool_results
        .iter()
        .filter(|wanted| !results.iter().any(|text| wanted.fits(text)))
    {
        let what = format!(
            "no tool brought {wanted}{forgotten}{}",
            those("results", &results)
        );
        flaws.push(Flaw::new(place("tool_results"), what));
    }
    flaws
}

/// The texts that there were, in short.
fn those(what: &str, texts: &[String]) -> String {
    let mut told: Vec<String> = Vec::new();
    for text in texts {
        let short: String = text.chars().take(80).collect();
        let text = format!("{short:?}");
        if !told.contains(&text) {
            told.push(text);
        }
    }
    if told.is_empty() {
        return format!("; there were no {what}");
    }
    let more = if told.len() > TOLD { ", …" } else { "" };
    told.truncate(TOLD);
    format!("; the {what} were {}{more}", told.join(", "))
}
