//! Expectations of the requests in the end.

use std::collections::BTreeSet;

use super::play::ApiPlayer;
use super::request::{ApiRequest, Route};
use crate::script::{Expect, Flaw, judge};

/// The counts over all requests, including those that are no longer kept.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestTally {
    pub(super) messages: u64,
    /// Requests for messages that nothing was for: how many, and why the first ones.
    pub(super) unmatched: u64,
    reasons: Vec<Reason>,
    pub(super) sessions: BTreeSet<String>,
    pub(super) agents: BTreeSet<String>,
    /// How many requests are no longer kept.
    pub(super) forgotten: u64,
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

impl RequestTally {
    pub(super) fn came(&mut self, request: &ApiRequest) {
        if request.route() != Route::Messages {
            return;
        }
        self.messages += 1;
        self.sessions.extend(request.session_id().map(str::to_owned));
        self.agents.extend(request.agent_id().map(str::to_owned));
    }

    pub(super) fn unmatched(&mut self, number: u64, why: &str) {
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
pub(super) fn judge(
    expect: &Expect,
    tally: &RequestTally,
    kept: &[ApiRequest],
    player: Option<&ApiPlayer>,
) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    let mut prompts = None;
    let mut file = None;
    if let Some(player) = player {
        player.with(|engine, found| {
            let script = engine.script();
            flaws.extend(found.iter().cloned());
            match engine
                .used()
                .and_then(|used| Ok((used, engine.due().unreached()?)))
            {
                Ok((used, due)) => {
                    flaws.extend(judge::unused(script, expect, &used));
                    flaws.extend(judge::unreached(expect, due));
                }
                Err(error) => flaws.push(script.lost(&error)),
            }
            if expect.every_rule_used {
                let left = engine.left().into_iter().filter(|next| next.is_missing());
                flaws.extend(
                    left.map(|next| Flaw::new(&next.place, "no request came for the steps from here on")),
                );
            }
            prompts = Some(engine.prompts());
            file = Some(script.name().to_owned());
        });
    }
    let place = |name: &str| match &file {
        Some(file) => format!("{file}: expect.{name}"),
        None => format!("expect.{name}"),
    };
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
    let mut count = |name: &str, what: &str, wanted: Option<u64>, there: u64| {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != there) {
            let what = format!("{there} {what} instead of {wanted}");
            flaws.push(Flaw::new(place(name), what));
        }
    };
    let wide = |count: usize| count as u64;
    count(
        "sessions",
        "sessions asked",
        expect.sessions.map(wide),
        wide(tally.sessions.len()),
    );
    count(
        "subagents",
        "subagents asked",
        expect.subagents.map(wide),
        wide(tally.agents.len()),
    );
    count(
        "api_requests",
        "requests for a message came",
        expect.api_requests,
        tally.messages,
    );
    if let Some(there) = prompts.filter(|_| player.is_none_or(|player| !player.sees_frames())) {
        count("prompts", "prompts came", expect.prompts.map(wide), wide(there));
    }
    let forgotten = match tally.forgotten {
        0 => String::new(),
        count => format!("; {count} requests are no longer kept and were not looked at"),
    };
    let results: Vec<String> = kept
        .iter()
        .flat_map(|request| request.new_tool_results().into_iter().map(|result| result.text))
        .collect();
    let missed = judge::missed_results(expect, &results).into_iter();
    flaws.extend(missed.map(|what| Flaw::new(place("tool_results"), what + &forgotten)));
    let calls = judge::calls(kept.iter().flat_map(ApiRequest::messages));
    for called in &expect.tools {
        if let Some(what) = judge::missed(&called.value, &calls) {
            let at = match (called.at, &file) {
                (Some(at), Some(file)) => format!("{file}:{at}"),
                _ => place("tools"),
            };
            flaws.push(Flaw::new(at, what + &forgotten));
        }
    }
    flaws
}
