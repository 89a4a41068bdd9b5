//! What cannot be meant in a script, and what a player cannot play.

use serde_json::Value;

use super::assertion::Assert;
use super::course::ends_response;
use super::error::Mistake;
use super::fill;
use super::place::{Placed, Position};
use super::rule::Rule;
use super::step::{
    ApiError, Ask, Background, Call, ChoiceQuestion, Raw, Run, SHOULD_RETRY, Step, Usage, Wait,
};
use super::{Clock, Script, ScriptError};
use crate::inject::Effect;
use crate::inject::moment::{kind, unknown_kind};

/// Who plays a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScriptPlayer {
    /// The simulated agent.
    Simulator,
    /// The scripted Messages API, behind the real CLI.
    Api,
    /// The same in a run of `outrigger-sim play`, which makes the files and sees the frames of the client.
    RealCli,
}

/// The place of the value at a path, if the script was read from a text.
pub(super) type PlaceOf<'a> = dyn Fn(&[&str]) -> Option<Position> + 'a;

/// The ways on, where the scripted API cannot play something.
const RUNS: &str = "the real CLI runs its tools: leave it out, and make what the tool finds";
const ASKS: &str = "the real CLI asks by itself: let a `call` make it ask";
const PIPES: &str = "the real CLI has its pipes to itself: play it with the simulator";
const FLAG: &str = "start the real CLI with its own flags";
const FRAMES: &str = "the API does not see the client: only `result` and `is_error` can be judged here";

impl Script {
    /// Whether this player can play everything in the script.
    ///
    /// # Errors
    ///
    /// The first thing that it cannot play, with its place and the way on.
    pub fn check(&self, player: ScriptPlayer) -> Result<(), ScriptError> {
        let mut found = Vec::new();
        self.unfit(player, &mut found);
        let Some((at, what)) = found.into_iter().next() else {
            return Ok(());
        };
        let who = match player {
            ScriptPlayer::Simulator => "the simulator",
            ScriptPlayer::Api => "the scripted API",
            ScriptPlayer::RealCli => "the real CLI",
        };
        Err(ScriptError {
            file: self.source.0.as_deref().map(str::to_owned),
            at,
            what: format!("{who} cannot play {what}"),
        })
    }

    /// What this player cannot play.
    fn unfit(&self, player: ScriptPlayer, found: &mut Vec<Mistake>) {
        let expect = &self.expect;
        let fields: &[(bool, &str, &str)] = match player {
            ScriptPlayer::Simulator => &[
                (!self.models.is_empty(), "models", "nobody lists them here"),
                (
                    self.input_tokens.is_some(),
                    "input_tokens",
                    "nobody counts tokens here",
                ),
                (expect.api_requests.is_some(), "expect.api_requests", NO_API),
                (expect.sessions.is_some(), "expect.sessions", NO_API),
                (expect.subagents.is_some(), "expect.subagents", NO_API),
            ],
            ScriptPlayer::Api | ScriptPlayer::RealCli => &[
                (self.model.is_some(), "model", FLAG),
                (self.permission_mode.is_some(), "permission_mode", FLAG),
                (self.tools.is_some(), "tools", FLAG),
                (
                    !self.mcp_servers.is_empty(),
                    "mcp_servers",
                    "the client names its servers itself",
                ),
                (
                    self.seed.is_some(),
                    "seed",
                    "the real CLI makes its ids: leave it out",
                ),
                (
                    self.clock == Clock::Virtual,
                    "clock",
                    "the real CLI measures its times",
                ),
                (
                    !self.files.is_empty() && player == ScriptPlayer::Api,
                    "files",
                    "the API makes no files: make them before, or let `outrigger-sim play --real` do it",
                ),
                (
                    self.real_tools == Some(false),
                    "real_tools: false",
                    "the tools of the real CLI always run",
                ),
                (!self.faults.is_empty(), "faults", PIPES),
                (
                    !expect.requests.is_empty() && player == ScriptPlayer::Api,
                    "expect.requests",
                    FRAMES,
                ),
            ],
        };
        let top = fields.iter().filter(|(there, ..)| *there);
        found.extend(top.map(|(_, name, why)| (None, format!("`{name}`: {why}"))));
        for rule in &self.prompts {
            unfit_steps(&rule.value.steps, player, true, found);
            let mut unknown = |at, name: &str| {
                if player == ScriptPlayer::Simulator && name == "plan" {
                    let why = "there is no file for a plan here: give the plan in a `plan` step";
                    found.push((at, format!("`{{{{plan}}}}`: {why}")));
                }
            };
            each_variable(&rule.value.steps, &mut unknown);
        }
    }

    /// The contradictions in a script, and names in it that are misspelt. `place` finds values by their path.
    pub(super) fn mistakes(&self, place: &PlaceOf<'_>) -> Vec<Mistake> {
        let mut found = Vec::new();
        for path in self.files.keys() {
            let inside = std::path::Path::new(path).components().all(|part| {
                matches!(
                    part,
                    std::path::Component::Normal(_) | std::path::Component::CurDir
                )
            });
            if !inside || path.is_empty() {
                let what = format!(
                    "the file `{path}` is not inside the working directory: give a relative path without `..`"
                );
                found.push((place(&["files", path]), what));
            }
        }
        for rule in &self.prompts {
            mistakes_of(&rule.value.steps, &mut found);
            rule.value.unknown_variables(&mut found);
        }
        self.unknown_kinds(place, &mut found);
        self.slips(place, &mut found);
        found
    }

    /// Faults at frames that neither the CLI nor the script writes.
    fn unknown_kinds(&self, place: &PlaceOf<'_>, found: &mut Vec<Mistake>) {
        let top = self.faults.iter().enumerate();
        let mut faults: Vec<_> = top
            .map(|(n, fault)| (place(&["faults", &n.to_string(), "at", "kind"]), fault))
            .collect();
        let mut written = Vec::new();
        for rule in &self.prompts {
            each_step(&rule.value.steps, &mut |at, step| match step {
                Step::Fault(fault) => faults.push((at, fault)),
                Step::Raw(Raw::Frame(frame)) => {
                    written.push(kind(Value::from(frame.clone()).to_string().as_bytes()));
                }
                Step::Raw(Raw::Line(line)) => written.push(kind(line.as_bytes())),
                _ => {}
            });
        }
        for (_, fault) in &faults {
            match &fault.effect {
                Effect::Insert { frame: Some(frame) } => written.push(kind(frame.to_string().as_bytes())),
                // It makes frames of any kind.
                Effect::SetValue { .. } => return,
                _ => {}
            }
        }
        for (at, fault) in faults {
            let unknown = fault
                .at
                .kind
                .as_ref()
                .and_then(|kind| unknown_kind(kind, &written));
            found.extend(unknown.map(|what| (at, format!("`at`: {what}"))));
        }
    }

    /// The names of the gates that it waits for.
    pub fn gate_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for rule in &self.prompts {
            each_step(&rule.value.steps, &mut |_, step| {
                if let Step::Wait(Wait::Gate(name)) = step
                    && !names.contains(name)
                {
                    names.push(name.clone());
                }
            });
        }
        names
    }

    /// Whether that is true of any step, however deep.
    pub(crate) fn any_step(&self, is: &dyn Fn(&Step) -> bool) -> bool {
        let mut any = false;
        for rule in &self.prompts {
            each_step(&rule.value.steps, &mut |_, step| any |= is(step));
        }
        any
    }
}

const NO_API: &str = "nobody asks an API here";

/// The built-in variables.
const BUILT_IN: [&str; 6] = ["prompt", "result", "cwd", "home", "plan", "braces"];

impl Rule {
    /// Variables in its steps that nothing sets.
    fn unknown_variables(&self, found: &mut Vec<Mistake>) {
        let groups = [&self.prompt, &self.tool_result].into_iter().flatten();
        let groups = groups.flat_map(|pattern| pattern.groups());
        let known: Vec<&str> = groups.chain(BUILT_IN).collect();
        let mut check = |at, name: &str| {
            if !known.contains(&name) {
                let text = crate::near::unknown("variable", name, &known);
                found.push((
                    at,
                    format!("{text}; a named group of a `regex` in this rule makes one"),
                ));
            }
        };
        each_variable(&self.steps, &mut check);
    }
}

fn each_variable(steps: &[Placed<Step>], visit: &mut dyn FnMut(Option<Position>, &str)) {
    each_step(steps, &mut |at, step| {
        for name in fill::names(step) {
            visit(at, &name);
        }
    });
}

/// Visits all steps, however deep.
pub(super) fn each_step<'a>(steps: &'a [Placed<Step>], visit: &mut dyn FnMut(Option<Position>, &'a Step)) {
    for step in steps {
        visit(step.at, &step.value);
        for (_, steps) in fill::inside(&step.value) {
            each_step(steps, visit);
        }
    }
}

fn unfit_steps(steps: &[Placed<Step>], player: ScriptPlayer, last: bool, found: &mut Vec<Mistake>) {
    for (n, step) in steps.iter().enumerate() {
        let last = last && n + 1 == steps.len();
        let unfit = match player {
            ScriptPlayer::Simulator => unfit_for_simulator(&step.value, last),
            ScriptPlayer::Api | ScriptPlayer::RealCli => unfit_for_api(&step.value, player),
        };
        if let Some((name, why)) = unfit {
            found.push((step.at, format!("`{name}`: {why}")));
        }
        // The steps of a subagent have an end of their own.
        let last = last || !matches!(step.value, Step::Response(_));
        for (_, steps) in fill::inside(&step.value) {
            unfit_steps(steps, player, last, found);
        }
    }
}

fn unfit_for_simulator(step: &Step, last: bool) -> Option<(&'static str, &'static str)> {
    const BYTES: &str = "it has no HTTP: take `cut` or `error_event`, or play it with the scripted API";
    Some(match step {
        Step::Truncated => ("truncated", BYTES),
        Step::MalformedEvent => ("malformed_event", BYTES),
        Step::ContentType(_) => ("content_type", BYTES),
        Step::Headers(_) => ("headers", BYTES),
        Step::More(_) => (
            "more",
            "a text comes without a break here: play it with the scripted API",
        ),
        Step::Raw(Raw::Event(_)) => ("raw: event", BYTES),
        Step::Raw(Raw::Block(_)) => ("raw: block", "give a `block`, or play it with the scripted API"),
        Step::StopSequence(_) => ("stop_sequence", "play it with the scripted API"),
        Step::StopReason(_) if !last => (
            "stop_reason",
            "its turn ends there: let it be the last step, or play it with the scripted API",
        ),
        Step::Usage(Usage {
            cache_creation,
            cache_read,
            ..
        }) if (*cache_creation, *cache_read) != (0, 0) => (
            "usage.cache_creation` and `usage.cache_read",
            "it has no cache: leave them out, or play it with the scripted API",
        ),
        Step::ApiError(ApiError { headers, .. })
            if headers
                .keys()
                .any(|name| !name.eq_ignore_ascii_case(SHOULD_RETRY)) =>
        {
            (
                "headers` of `api_error",
                "of these it takes `x-should-retry` alone: play it with the scripted API",
            )
        }
        _ => return None,
    })
}

fn unfit_for_api(step: &Step, player: ScriptPlayer) -> Option<(&'static str, &'static str)> {
    let in_call = |call: &Call| match call {
        Call { result: Some(_), .. } => Some(("result", RUNS)),
        Call {
            run: Some(Run::Simulated),
            ..
        } => Some(("run: simulated", RUNS)),
        _ => None,
    };
    Some(match step {
        Step::Call(call) => return in_call(call),
        Step::Parallel(calls) => return calls.iter().find_map(in_call),
        Step::Ask(Ask::Elicitation(_)) => (
            "ask: elicitation",
            "let a `call` of a tool of that MCP server make it ask",
        ),
        Step::Ask(Ask::Permission(_)) => ("ask: permission", ASKS),
        Step::Ask(Ask::Request(_)) => ("ask: request", ASKS),
        Step::Background(Background {
            after, output, exit, ..
        }) if !after.is_zero() || !output.is_empty() || *exit != 0 => (
            "after`, `output` and `exit` of `background",
            "the real CLI runs the command: leave them out",
        ),
        Step::RateLimit(_) => ("rate_limit", "give the response `headers`"),
        Step::Compact(_) => ("compact", "the real CLI compacts by itself: send it `/compact`"),
        Step::Cost(_) => ("cost", "the real CLI counts the list price of `usage`"),
        Step::Raw(Raw::Frame(_) | Raw::Line(_) | Raw::Base64(_)) => ("raw", PIPES),
        Step::Stderr(_) => ("stderr", PIPES),
        Step::Fault(_) => ("fault", PIPES),
        Step::Exit(_) => ("exit", PIPES),
        Step::Wait(Wait::Prompt) => ("wait: prompt", "wait for a gate that the test opens"),
        Step::Wait(Wait::Request(_)) => ("wait: request", "wait for a gate that the test opens"),
        Step::Assert(assert) if player == ScriptPlayer::Api && !judged_by_both(assert) => ("assert", FRAMES),
        _ => return None,
    })
}

/// Whether it has no more than what both players judge.
fn judged_by_both(assert: &Assert) -> bool {
    let common = Assert {
        result: assert.result.clone(),
        is_error: assert.is_error,
        ..Assert::default()
    };
    *assert == common
}

/// Whether a gate may be called so; there is a file of that name.
pub(super) fn is_gate_name(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.chars().all(known)
}

const NO_HEADER: &str = "HTTP carries no such header: a name has letters, digits and `-`, a value one line and no control characters";

/// Whether HTTP carries a header of this name with this value.
fn is_header((name, value): (&String, &String)) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(known) && is_header_value(value)
}

fn is_header_value(value: &str) -> bool {
    value.chars().all(|c| c == '\t' || !c.is_ascii_control())
}

fn mistakes_of(steps: &[Placed<Step>], found: &mut Vec<Mistake>) {
    let mut content = false;
    for step in steps {
        let is_response = matches!(step.value, Step::Response(_));
        let mistake = match &step.value {
            Step::Call(call) => mistake_in(call),
            Step::Parallel(calls) if calls.is_empty() => Some("`parallel` without a call"),
            Step::Parallel(calls) => calls.iter().find_map(mistake_in),
            Step::Ask(Ask::Question(question)) => no_choice(question),
            Step::Ask(Ask::Questions(questions)) if questions.is_empty() => {
                Some("`questions` without a question")
            }
            Step::Ask(Ask::Questions(questions)) => questions.iter().find_map(no_choice),
            Step::Ask(Ask::Request(request)) if !request.get("subtype").is_some_and(Value::is_string) => {
                Some("a control request needs a `subtype`")
            }
            Step::Assert(assert) if **assert == Assert::default() => Some("`assert` demands nothing"),
            Step::Headers(headers) | Step::ApiError(ApiError { headers, .. })
                if !headers.iter().all(is_header) =>
            {
                Some(NO_HEADER)
            }
            Step::ContentType(kind) if !is_header_value(kind) => Some(NO_HEADER),
            Step::Wait(Wait::Gate(name)) if !is_gate_name(name) => {
                Some("the name of a gate is made of letters, digits, `-` and `_`")
            }
            Step::ApiError(ApiError { times: Some(0), .. }) => {
                Some("an `api_error` that no request gets (`times: 0`) is none")
            }
            Step::Response(inside) if inside.iter().any(|step| matches!(step.value, Step::Response(_))) => {
                Some("a `response` has no other `response` in it")
            }
            Step::Drop if content => Some(
                "`drop` comes before the first byte of a response: put it before what is said, or take `cut`",
            ),
            _ => None,
        };
        found.extend(mistake.map(|what| (step.at, what.to_owned())));
        for (_, steps) in fill::inside(&step.value) {
            mistakes_of(steps, found);
        }
        let is_content = matches!(
            step.value,
            Step::Say(_) | Step::Think(_) | Step::Redacted(_) | Step::Block(_)
        );
        content = (content || is_content) && !ends_response(&step.value) && !is_response;
    }
}

fn no_choice(question: &ChoiceQuestion) -> Option<&'static str> {
    let none = question.options.is_empty();
    none.then_some("`options` without an answer to choose: give the question some")
}

fn mistake_in(call: &Call) -> Option<&'static str> {
    Some(match &call.result {
        None if call.is_error => "`is_error` says what `result` is: give it one",
        None if call.details.is_some() => "`details` go with a `result`: give it one",
        Some(_) if call.run.is_some() => "with a `result` nothing is run: leave out `run` or `result`",
        Some(result) if !result.is_string() && !result.is_array() => {
            "`result` is a text, or a list of content blocks"
        }
        _ => return None,
    })
}
