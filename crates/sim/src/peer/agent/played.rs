//! What plays the model of a simulated agent: steps, wherever they come from.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::act::{Act, Deed, Look, rate_limit};
use super::brain::{Brain, CallPlan, FaultKind, ModelRequest, ModelResponse, ResponseFault, ToolOutcome};
use super::{Agent, Builder};
use crate::directive;
use crate::flaw::Flaw;
use crate::inject::Schedule;
use crate::running::{ClientIo, Exit, Line, Running};
use crate::script::course::{Engine, Found, ModelCaller, NextStep, Request};
use crate::script::fill::Variables;
use crate::script::response::Block;
use crate::script::{
    self, ApiError, Call, Clock, Compact, Elicitation, Gates, Permission, Placed, Progress, Raw, Reply,
    ResponsePace, Run, Script, ScriptError, Step, Unmatched, Wait, judge,
};

/// Plays the model.
#[derive(Debug)]
pub(super) struct ModelPlayer {
    engine: Engine,
    pub(super) source: StepSource,
    pub(super) gates: Gates,
    /// Whether nobody else plays the script, so that its expectations can be judged in the end.
    pub(super) alone: bool,
    /// Why the script cannot be played.
    unfit: Option<String>,
    /// Up to which line waits have looked for control requests.
    looked: Arc<AtomicUsize>,
    /// The last tool result that each has read, and whether it was a failure.
    results: HashMap<ModelCaller, (String, bool)>,
}

/// Where the steps come from.
pub(super) enum StepSource {
    /// The rules of the script.
    Script,
    /// The [directives](crate::directive) in the prompts.
    ///
    /// A prompt without directives is answered `ok:` and its beginning. A turn whose prompt has directives starts them over; the
    /// requests that follow continue them, and so does a turn that background work started. Prompts that were folded in count
    /// only once the directives before them have run out. Further requests are answered `ok`. Each subagent follows its own
    /// prompt. A turn that another process began goes on with the directives that are left of its prompt.
    Prompts,
    /// Replies in order, and `ok` once they have run out.
    Replies(VecDeque<Reply>),
    Brain(Box<dyn Brain>),
}

impl fmt::Debug for StepSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Script => "script",
            Self::Prompts => "prompts",
            Self::Replies(_) => "replies",
            Self::Brain(_) => "brain",
        })
    }
}

impl ModelPlayer {
    /// Takes the steps from the prompts.
    pub(super) fn new() -> Self {
        Self {
            engine: Engine::new(Script::new()),
            source: StepSource::Prompts,
            gates: Gates::default(),
            alone: false,
            unfit: None,
            looked: Arc::default(),
            results: HashMap::new(),
        }
    }

    /// Goes on where others are.
    pub(super) fn among_others(script: &Script, gates: &Gates, progress: Progress) -> Self {
        let fit = script.check(script::ScriptPlayer::Simulator);
        Self {
            engine: Engine::among_others(script.clone(), progress),
            source: StepSource::Script,
            gates: gates.clone(),
            unfit: fit.err().map(|error| error.to_string()),
            ..Self::new()
        }
    }

    /// The reply to a prompt without a rule, or to a loop.
    fn refuse(&mut self, request: &Request, what: String) -> ModelResponse {
        let script = self.engine.script();
        let is_flaw = script.expect.no_unmatched || self.unfit.is_some();
        let (place, flaw) = (script.name().to_owned(), what.clone());
        let deed = Deed::Check(Look::new(move |_| Some(flaw.clone())));
        self.fail(request, what, is_flaw.then_some((0, Act { place, deed })))
    }

    /// An error of the API, and the end of the turn.
    fn fail(&mut self, request: &Request, what: String, act: Option<(usize, Act)>) -> ModelResponse {
        self.engine.give_up(&request.who);
        let mut response = ModelResponse {
            acts: act.into_iter().collect(),
            ..ModelResponse::default()
        };
        response.refuse(ApiError::new(400).message(what));
        response
    }

    /// The next response: steps up to the next tool call.
    fn next(&mut self, request: &Request) -> ModelResponse {
        let pacing = self.engine.script().pacing;
        let pace =
            (!pacing.every.is_zero()).then(|| ResponsePace::new(pacing.chunk.unwrap_or(8), pacing.every));
        let mut response = ModelResponse {
            pace,
            ..ModelResponse::default()
        };
        let exact = loop {
            let taken = self.engine.next(request);
            // With nothing behind its errors the request that succeeds gets what comes next.
            let is_passing =
                |next: &NextStep| matches!(&next.step, Step::ApiError(error) if error.times.is_some());
            let only_fails = !taken.steps.is_empty() && taken.steps.iter().all(is_passing);
            let mut again = false;
            for next in taken.steps {
                again = self.add(&mut response, next, request);
            }
            if !(again || only_fails && taken.exact) {
                break taken.exact;
            }
            let is_broken = |fault: &mut ResponseFault| fault.kind.breaks_off();
            // The CLI keeps the blocks that were complete, and goes on behind them.
            if response.blocks.len() > 1
                && let Some(fault) = response.faults.pop_if(is_broken)
            {
                response.breaks = Some(fault.kind);
                response.acts = fault.acts;
                // In the conversation such a response is one that has come, by which a prompt counts.
                if matches!(self.source, StepSource::Prompts)
                    && response.blocks.iter().any(Block::is_tool_use)
                {
                    self.engine.skip_response(&request.who);
                }
                return response;
            }
            // Otherwise the response is asked for again.
            let ModelResponse {
                mut faults, blocks, ..
            } = response;
            if let Some(fault) = faults.last_mut().filter(|fault| fault.kind.breaks_off()) {
                fault.came = blocks;
            }
            response = ModelResponse {
                faults,
                pace,
                ..ModelResponse::default()
            };
        };
        // A response of the model needs content, unless it fails for good, or the steps say that it has none.
        let fails = response.faults.iter().any(|fault| fault.times == u32::MAX);
        if response.blocks.is_empty() && !fails && !response.hang && !exact {
            response.blocks.push(Block::Text("ok".to_owned()));
        }
        response
    }

    /// Adds a step to a response. Returns whether the response breaks off here, and is asked for again.
    fn add(&mut self, response: &mut ModelResponse, next: NextStep, request: &Request) -> bool {
        let (blocks, tag) = self.engine.blocks(&request.who, &next);
        if !blocks.is_empty() {
            response.blocks.extend(blocks);
            response.calls.extend(plans(next.step, tag));
            return false;
        }
        let index = response.blocks.len();
        let place = next.place.clone();
        let act = |deed: Deed| response.acts.push((index, Act { place, deed }));
        match next.step {
            Step::Ask(script::Ask::Elicitation(asked)) => act(Deed::Request(elicitation(&asked))),
            Step::Ask(script::Ask::Permission(asked)) => {
                act(Deed::Request(permission(&asked, self.engine.tag())))
            }
            Step::Ask(script::Ask::Request(request)) => act(Deed::Request(Value::Object(request))),
            Step::Fault(fault) => act(Deed::Arm(*fault)),
            Step::ApiError(error) => response.refuse(error),
            Step::Drop | Step::Cut | Step::ErrorEvent(_) => {
                let kind = match next.step {
                    Step::ErrorEvent(kind) => FaultKind::SseError(kind),
                    Step::Cut => FaultKind::Cut,
                    _ => FaultKind::Drop,
                };
                response.fail(kind, 1);
                return true;
            }
            Step::Stall => response.hang = true,
            Step::StopReason(reason) => response.stop_reason = Some(reason),
            Step::RateLimit(limit) => act(Deed::Stamped(rate_limit(
                &limit.status,
                &limit.limit,
                limit.utilization,
                limit.resets_in,
            ))),
            Step::Compact(Compact {
                pre_tokens,
                post_tokens,
                summary,
            }) => act(Deed::Compact {
                pre_tokens,
                post_tokens,
                summary,
            }),
            Step::Usage(usage) => response.usage = usage,
            Step::Cost(cost) => response.cost = Some(cost),
            Step::Pace(pace) => response.pace = Some(pace),
            Step::Wait(wait) => act(self.wait(wait, self.engine.script().patience)),
            Step::Assert(assert) => {
                let read = self.results.get(&request.who);
                let read = read.map(|(text, is_error)| (text.as_str(), *is_error));
                let wrong = judge::result(&assert, read).err();
                let (due, place) = (self.engine.due().clone(), next.place);
                act(Deed::Check(Look::new(move |lines| {
                    let lost = due.settled(vec![place.clone()]).err();
                    let wrong = wrong.clone().or_else(|| judge::check(&assert, lines));
                    wrong.or_else(|| Some(Script::new().lost(&lost?).what))
                })));
            }
            Step::Stderr(text) => act(Deed::Complain(text)),
            Step::Raw(Raw::Frame(frame)) => {
                act(Deed::Bytes(format!("{}\n", Value::Object(frame)).into_bytes()))
            }
            Step::Raw(Raw::Line(line)) => act(Deed::Bytes(format!("{line}\n").into_bytes())),
            Step::Raw(Raw::Base64(bytes)) => act(Deed::Bytes(bytes.0)),
            Step::Exit(exit) => act(Deed::Exit {
                exit: exit.signal.map_or(Exit::Code(exit.code), Exit::Signal),
                after_result: exit.after_result,
            }),
            // The others are content, or `Script::check` rejects them.
            _ => {}
        }
        false
    }

    fn wait(&self, wait: Wait, patience: Duration) -> Deed {
        let looked = self.looked.clone();
        let until = |what: String, fits: Box<dyn Fn(&Value) -> bool + Send + Sync>| Deed::Until {
            what,
            ready: Look::new(move |lines: &[Line]| {
                let from = looked.load(Ordering::Relaxed);
                let rest = lines.iter().enumerate().skip(from);
                let found = rest
                    .filter(|(_, line)| line.from_client)
                    .find(|(_, line)| fits(&line.json));
                if let Some((n, _)) = found {
                    looked.store(n + 1, Ordering::Relaxed);
                }
                found.is_some()
            }),
            patience,
        };
        match wait {
            Wait::Time(time) => Deed::Sleep(time),
            Wait::Interrupt => Deed::Interrupt { patience },
            Wait::Gate(name) => Deed::Pass(self.gates.gate(&name)),
            Wait::Prompt => until(
                "another prompt".to_owned(),
                Box::new(|json| json["type"] == "user"),
            ),
            Wait::Request(subtype) => until(
                format!("the control request `{subtype}`"),
                Box::new(move |json| json["request"]["subtype"] == subtype.as_str()),
            ),
        }
    }

    /// The response to one request.
    pub(super) fn respond(&mut self, ask: &ModelRequest) -> ModelResponse {
        let begins = ask.round == 0 && ask.agent.is_none();
        if begins {
            self.looked.store(ask.seen, Ordering::Relaxed);
        }
        let first = ask.round == 0 || ask.continued;
        let prompts: &[String] = match &ask.agent {
            _ if !first => &[],
            Some(_) if ask.woken => &[],
            Some(_) => std::slice::from_ref(&ask.prompt),
            None => &ask.prompts,
        };
        let variables = [("cwd", &ask.cwd), ("home", &ask.home)];
        let request = Request {
            who: ModelCaller {
                session: None,
                agent: ask.agent.as_ref().map(|agent| agent.id.clone()),
            },
            begins,
            continued: ask.continued,
            prompts: ask.folded.iter().chain(prompts).cloned().collect(),
            woken_by: ask.woken_by.clone(),
            tag: ask.agent.as_ref().and_then(|agent| agent.tag),
            model: ask.model.clone(),
            tools: ask.tools.clone(),
            results: ask
                .tool_results
                .iter()
                .map(|result| judge::text_of(&result.content))
                .collect(),
            variables: variables
                .map(|(name, value)| (name.to_owned(), value.clone()))
                .into_iter()
                .collect::<Variables>(),
        };
        if let (Some(result), Some(text)) = (ask.tool_results.last(), request.results.last()) {
            self.results
                .insert(request.who.clone(), (text.clone(), result.is_error));
        }
        if let Err(refused) = self.take(ask, &request) {
            return *refused;
        }
        if ask.continued && !matches!(self.source, StepSource::Replies(_) | StepSource::Brain(_)) {
            // The process before has given these.
            for _ in 0..ask.round {
                self.next(&request);
            }
        }
        self.next(&request)
    }

    /// The process has ended, with these lines. Returns what was wrong with them.
    pub(super) fn end(&mut self, lines: &[Line]) -> Vec<Flaw> {
        if !self.alone {
            return Vec::new();
        }
        let played = [judge::Played { lines, ended: true }];
        let (script, used, due) = (self.engine.script(), self.engine.used(), self.engine.due());
        match used.and_then(|used| Ok((used, due.unreached()?))) {
            Ok((used, due)) => judge::end(script, &used, due, &played),
            Err(error) => vec![script.lost(&error)],
        }
    }

    /// Gets the engine the steps for a request, unless it has them. Otherwise the response is this one.
    fn take(&mut self, ask: &ModelRequest, request: &Request) -> Result<(), Box<ModelResponse>> {
        let reply = match &mut self.source {
            StepSource::Script => return self.take_rule(request),
            StepSource::Prompts => {
                let prompt = if ask.continued || (ask.round == 0 && !ask.woken) {
                    Some(&ask.prompt)
                } else {
                    ask.folded.last().filter(|_| self.engine.is_idle(&request.who))
                };
                let Some(prompt) = prompt else { return Ok(()) };
                let steps = match directive::parse(prompt) {
                    Ok(steps) => steps,
                    Err(error) => return Err(Box::new(self.fail(request, error.to_string(), None))),
                };
                let steps: Vec<_> = steps.into_iter().map(Placed::from).collect();
                self.engine.put(&request.who, prompt, &steps, Variables::new());
                return Ok(());
            }
            StepSource::Replies(replies) => replies.pop_front(),
            StepSource::Brain(brain) => Some(brain.reply(ask)),
        };
        if let Some(why) = reply
            .as_ref()
            .and_then(|reply| reply.unfit(script::ScriptPlayer::Simulator))
        {
            return Err(Box::new(self.refuse(request, why)));
        }
        let steps: Vec<_> = reply.map(|reply| Step::from(reply).into()).into_iter().collect();
        self.engine
            .put(&request.who, &ask.prompt, &steps, Variables::new());
        Ok(())
    }

    /// Takes the rule of the script for a request.
    fn take_rule(&mut self, request: &Request) -> Result<(), Box<ModelResponse>> {
        if let Some(why) = self.unfit.clone() {
            return Err(Box::new(self.refuse(request, why)));
        }
        let lenient = self.engine.script().unmatched == Unmatched::Ok;
        match self.engine.take(request) {
            Found::Unmatched(_) if lenient => Ok(()),
            Found::Steps => Ok(()),
            Found::Unmatched(what) | Found::Refused(what) => Err(Box::new(self.refuse(request, what))),
        }
    }
}

impl ModelResponse {
    /// Lets the API refuse it like this first.
    fn refuse(&mut self, error: ApiError) {
        let times = error.times.unwrap_or(u32::MAX);
        self.fail(FaultKind::Status(error), times);
    }
}

impl Script {
    /// An agent that plays this script.
    ///
    /// # Errors
    ///
    /// When there is something in it that the simulated agent cannot play, see [`check`](Self::check).
    pub fn agent(&self) -> Result<Builder, ScriptError> {
        self.agent_with(&Gates::default())
    }

    /// An agent that plays this script, whose gates the test opens.
    ///
    /// # Errors
    ///
    /// As [`agent`](Self::agent).
    pub fn agent_with(&self, gates: &Gates) -> Result<Builder, ScriptError> {
        self.check(script::ScriptPlayer::Simulator)?;
        Ok(self.setting().script(self, gates))
    }

    /// Runs an agent that plays this script in a task of its own, over pipes in memory. Must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    ///
    /// As [`agent`](Self::agent).
    pub fn spawn_in_memory(&self) -> Result<(ClientIo, Running), ScriptError> {
        Ok(self.agent()?.spawn_in_memory())
    }

    /// An agent in the setting that the script wants, which does not play it yet.
    ///
    /// For the executable, which lets the command line speak behind the script; [`agent`](Self::agent) is for everybody else.
    pub fn setting(&self) -> Builder {
        let mut agent = Agent::builder()
            .sdk_mcp_servers(self.mcp_servers.iter().cloned())
            .seed(self.seed.unwrap_or_default())
            .latency(self.pacing.turn)
            .virtual_clock(self.clock == Clock::Virtual)
            .real_tools(self.real_tools.unwrap_or(false))
            .files(self.files.clone());
        if !self.faults.is_empty() || self.any_step(&|step| matches!(step, Step::Fault(_))) {
            let schedule = Schedule::new(self.seed.unwrap_or_default());
            agent = agent.faults(self.faults.iter().fold(schedule, |schedule, fault| {
                schedule.with(fault.effect.clone(), fault.at.clone())
            }));
        }
        if let Some(model) = &self.model {
            agent = agent.model(model);
        }
        if let Some(mode) = &self.permission_mode {
            agent = agent.permission_mode(mode);
        }
        if let Some(tools) = &self.tools {
            agent = agent.tools(tools.iter().cloned());
        }
        agent
    }
}

fn elicitation(asked: &Elicitation) -> Value {
    let properties = asked.schema.as_ref().and_then(|schema| schema.get("properties"));
    let order: Vec<&String> = properties
        .and_then(Value::as_object)
        .map(Map::keys)
        .into_iter()
        .flatten()
        .collect();
    let empty = json!({"type": "object", "properties": {}});
    json!({
        "subtype": "elicitation", "mcp_server_name": asked.server, "message": asked.message, "mode": "form",
        "requested_schema": asked.schema.as_ref().map_or(empty, |schema| json!(schema)),
        "property_order": order,
    })
}

fn permission(asked: &Permission, tag: u64) -> Value {
    let mut request = json!({
        "subtype": "can_use_tool", "tool_name": asked.tool, "display_name": asked.tool, "input": asked.input,
        "tool_use_id": format!("toolu_asked_{tag:04}"),
    });
    if !asked.suggestions.is_empty() {
        request["permission_suggestions"] = json!(asked.suggestions);
    }
    request
}

/// How the calls of a step are handled.
fn plans(step: Step, tag: Option<u64>) -> Vec<CallPlan> {
    match (step, tag) {
        (Step::Call(call), _) => vec![plan(&call)],
        (Step::Parallel(calls), _) => calls.iter().map(plan).collect(),
        (Step::Subagent(_), Some(tag)) => vec![CallPlan::RunTagged(tag)],
        (Step::Background(background), Some(tag)) => vec![CallPlan::Command {
            after: background.after,
            output: background.output,
            code: background.exit,
            tag,
        }],
        (Step::Plan(_) | Step::Ask(_), _) => vec![CallPlan::Run],
        // A content block may be a call.
        (Step::Block(block), _) if block.get("type").is_some_and(|kind| kind == "tool_use") => {
            vec![CallPlan::Run]
        }
        _ => Vec::new(),
    }
}

fn plan(call: &Call) -> CallPlan {
    let Some(result) = &call.result else {
        return match call.run {
            None => CallPlan::Run,
            Some(Run::Real) => CallPlan::RunReal,
            Some(Run::Simulated) => CallPlan::RunSimulated,
        };
    };
    let text = judge::text_of(result);
    let mut outcome = if call.is_error {
        ToolOutcome::error(text)
    } else {
        ToolOutcome::text(text)
    };
    outcome.content = result.clone();
    if let Some(details) = &call.details {
        outcome.details = details.clone();
    }
    CallPlan::Outcome(outcome)
}
