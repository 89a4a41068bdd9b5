//! Plays a script for the simulated agent: it is the agent's model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::assertion::Assert;
use super::course::{Engine, Found, Next, Request, Who};
use super::fill::Variables;
use super::gates::Gates;
use super::judge;
use super::progress::Progress;
use super::step::{
    Ask, Background, Call, Compact, Elicitation, Permission, Question, Raw, Run, Step, Subagent, Wait,
};
use super::{Script, Unmatched};
use crate::directive::{Block, Fault, FaultKind, Pace, Response, Usage};
use crate::flaw::Flaw;
use crate::peer::agent::{Act, Brain, CallPlan, Deed, Look, Outcome, Reply, rate_limit};
use crate::peer::{Exit, Line, Report, agent};

/// Plays a script.
#[derive(Debug)]
pub(crate) struct Player {
    engine: Engine,
    gates: Gates,
    /// Whether nobody else plays the script, so that its expectations can be judged in the end.
    alone: bool,
    /// Why it cannot be played.
    unfit: Option<String>,
    /// Up to which line waits have looked for control requests.
    looked: Arc<AtomicUsize>,
}

impl Player {
    /// Plays it from the beginning, and judges in the end.
    pub(super) fn alone(script: Script, gates: Gates) -> Self {
        Self {
            alone: true,
            ..Self::among_others(script, gates, Progress::new())
        }
    }

    /// Goes on where others are.
    pub(super) fn among_others(script: Script, gates: Gates, progress: Progress) -> Self {
        Self {
            alone: false,
            unfit: script
                .check(super::Player::Simulator)
                .err()
                .map(|error| error.to_string()),
            engine: Engine::among_others(script, progress),
            gates,
            looked: Arc::default(),
        }
    }

    /// The reply to a prompt without a rule, or to a loop.
    fn refuse(&mut self, who: &Who, what: String) -> Reply {
        let mut reply = Reply::default();
        let script = self.engine.script();
        if script.expect.no_unmatched || self.unfit.is_some() {
            let flaw = what.clone();
            let deed = Deed::Check(Look::new(move |_| Some(flaw.clone())));
            let place = script.name().to_owned();
            reply.acts.push((0, Act { place, deed }));
        }
        reply.response.faults.push(Fault {
            kind: FaultKind::Status {
                status: 400,
                message: Some(what),
            },
            times: u32::MAX,
        });
        self.engine.give_up(who);
        reply
    }

    /// The next reply: steps up to the next tool call.
    fn next(&mut self, request: &Request) -> Reply {
        let mut reply = Reply::default();
        let pacing = self.engine.script().pacing;
        let pace = (!pacing.every.is_zero()).then(|| Pace {
            every: pacing.every,
            chunk: pacing.chunk.unwrap_or(8).max(1),
        });
        reply.response.pace = pace;
        loop {
            let steps = self.engine.next(request);
            let mut again = false;
            for next in steps {
                again = self.add(&mut reply, next, request);
            }
            if !again {
                break;
            }
            // What came of the response before it broke off is lost. The response that is asked for again has its own.
            let faults = std::mem::take(&mut reply.response.faults);
            reply.response = Response {
                faults,
                pace,
                ..Response::default()
            };
            reply.acts.iter_mut().for_each(|(index, _)| *index = 0);
        }
        // A response of the model needs content, unless it fails for good.
        let response = &mut reply.response;
        let fails = response.faults.iter().any(|fault| fault.times == u32::MAX);
        if response.blocks.is_empty() && !fails && !response.hang {
            response.blocks.push(Block::Text("ok".to_owned()));
        }
        reply
    }

    /// Adds a step to a reply. Returns whether the response breaks off here, and is asked for again.
    fn add(&mut self, reply: &mut Reply, next: Next, request: &Request) -> bool {
        let index = reply.response.blocks.len();
        let place = next.place.clone();
        let act = |deed: Deed| reply.acts.push((index, Act { place, deed }));
        let mut fails = |kind: FaultKind, times: u32| reply.response.faults.push(Fault { kind, times });
        match next.step.clone() {
            Step::Say(text) => reply.response.blocks.push(Block::Text(text)),
            Step::Think(text) => reply.response.blocks.push(Block::Thinking(text)),
            Step::Redacted(data) => reply.response.blocks.push(Block::Redacted(data)),
            Step::Block(block) => reply.response.blocks.push(Block::Raw(Value::Object(block))),
            Step::Call(call) => add_calls(reply, [call]),
            Step::Parallel(calls) => add_calls(reply, calls),
            Step::Plan(plan) => add_calls(reply, [plan_call(plan)]),
            Step::Ask(Ask::Question(question)) => add_calls(reply, [questions(&[question])]),
            Step::Ask(Ask::Questions(asked)) => add_calls(reply, [questions(&asked)]),
            Step::Ask(Ask::Elicitation(asked)) => act(Deed::Request(elicitation(&asked))),
            Step::Ask(Ask::Permission(asked)) => act(Deed::Request(permission(&asked, self.engine.tag()))),
            Step::Ask(Ask::Request(request)) => act(Deed::Request(Value::Object(request))),
            Step::Subagent(subagent) => {
                let tag = self.engine.hand(&request.who, &subagent, &next);
                reply.response.blocks.push(agent_call(&subagent));
                reply.calls.push(CallPlan::RunTagged(tag));
            }
            Step::Background(background) => {
                let tag = self.engine.set_off(&background, &next);
                reply.response.blocks.push(command_call(&background));
                reply.calls.push(CallPlan::Command {
                    after: background.after,
                    output: background.output,
                    code: background.exit,
                    tag,
                });
            }
            Step::Fault(fault) => act(Deed::Arm(*fault)),
            Step::ApiError(error) => {
                let status = error.status;
                let message = error.message;
                fails(
                    FaultKind::Status { status, message },
                    error.times.unwrap_or(u32::MAX),
                );
            }
            Step::Drop => {
                fails(FaultKind::Drop, 1);
                return true;
            }
            Step::Cut => {
                fails(FaultKind::Cut, 1);
                return true;
            }
            Step::ErrorEvent(kind) => {
                fails(FaultKind::SseError(kind), 1);
                return true;
            }
            Step::Stall => reply.response.hang = true,
            Step::StopReason(reason) => reply.response.stop_reason = Some(reason),
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
            Step::Usage(usage) => {
                reply.response.usage = Usage {
                    input: usage.input,
                    output: usage.output,
                }
            }
            Step::Cost(cost) => reply.cost = Some(cost),
            Step::Pace(pace) => {
                reply.response.pace = Some(Pace {
                    every: pace.every,
                    chunk: pace.chunk.max(1),
                })
            }
            Step::Wait(wait) => act(self.wait(wait, self.engine.script().patience)),
            Step::Assert(assert) => act(check(*assert)),
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
            // `Script::check` rejects these.
            Step::Truncated
            | Step::MalformedEvent
            | Step::StopSequence(_)
            | Step::Headers(_)
            | Step::ContentType(_) => {}
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
}

impl Brain for Player {
    fn reply(&mut self, ask: &agent::Ask) -> Reply {
        let begins = ask.round == 0 && ask.agent.is_none();
        if begins {
            self.looked.store(ask.seen, Ordering::Relaxed);
        }
        let first = ask.round == 0 || ask.continued;
        let prompts: &[String] = match &ask.agent {
            _ if !first => &[],
            Some(_) => std::slice::from_ref(&ask.prompt),
            None => &ask.prompts,
        };
        let variables = [("cwd", &ask.cwd), ("home", &ask.home)];
        let request = Request {
            who: Who {
                session: None,
                agent: ask.agent.as_ref().map(|agent| agent.id.clone()),
            },
            begins,
            continued: ask.continued,
            prompts: ask.folded.iter().chain(prompts).cloned().collect(),
            woken_by: ask.woken_by.filter(|_| begins),
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
        let aside = ask
            .agent
            .as_ref()
            .is_some_and(|agent| agent.kind == agent::SIDE_QUESTION);
        let lenient = aside || self.engine.script().unmatched == Unmatched::Ok;
        if let Some(why) = self.unfit.clone() {
            return self.refuse(&request.who, why);
        }
        match self.engine.take(&request) {
            Found::Unmatched(_) if lenient => {}
            Found::Steps => {}
            Found::Unmatched(what) | Found::Refused(what) => return self.refuse(&request.who, what),
        }
        if ask.continued {
            // The process before has given these.
            for _ in 0..ask.round {
                self.next(&request);
            }
        }
        self.next(&request)
    }

    fn end(&mut self, lines: &[Line]) -> Vec<Flaw> {
        if !self.alone {
            return Vec::new();
        }
        let played = [judge::Played { lines, ended: true }];
        match self.engine.used() {
            Ok(used) => judge::end(self.engine.script(), &used, &played),
            Err(error) => vec![self.engine.script().lost(&error)],
        }
    }
}

impl Script {
    /// What the client did wrong, and what is missing, once all that play the script with this progress are done. A process that
    /// was killed, or whose end is not known, has a report without an [`exit`](Report::exit).
    pub fn judge(&self, progress: &Progress, reports: &[Report]) -> Vec<Flaw> {
        let read = progress.flaws().and_then(|flaws| Ok((flaws, progress.uses()?)));
        let (mut flaws, uses) = match read {
            Ok(read) => read,
            Err(error) => return vec![self.lost(&error)],
        };
        let played = reports.iter().map(|report| judge::Played {
            lines: &report.lines,
            ended: report.exit.is_some(),
        });
        flaws.extend(reports.iter().flat_map(|report| report.flaws.iter().cloned()));
        let used: Vec<u32> = (0..self.prompts.len()).map(|n| uses.most(n)).collect();
        flaws.extend(judge::end(self, &used, &played.collect::<Vec<_>>()));
        flaws
    }
}

/// The call of `ExitPlanMode` that presents a plan.
pub(crate) fn plan_call(plan: String) -> Call {
    Call::new("ExitPlanMode", json!({"plan": plan}))
}

/// The call of `Agent` that starts a subagent.
pub(crate) fn agent_call(subagent: &Subagent) -> Block {
    Block::ToolUse {
        name: "Agent".to_owned(),
        input: json!({
            "description": subagent.description,
            "prompt": subagent.prompt.as_ref().unwrap_or(&subagent.description),
            "subagent_type": subagent.kind.as_deref().unwrap_or("general-purpose"),
            "run_in_background": subagent.background,
        }),
    }
}

/// The call of `Bash` that starts a command in the background.
pub(crate) fn command_call(background: &Background) -> Block {
    let description = background.description.as_ref().unwrap_or(&background.command);
    Block::ToolUse {
        name: "Bash".to_owned(),
        input: json!({
            "command": background.command, "description": description, "run_in_background": true,
        }),
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

/// Adds tool calls.
fn add_calls(reply: &mut Reply, calls: impl IntoIterator<Item = Call>) {
    for call in calls {
        reply.calls.push(plan(&call));
        reply.response.blocks.push(Block::ToolUse {
            name: call.tool,
            input: Value::Object(call.input),
        });
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
        Outcome::error(text)
    } else {
        Outcome::text(text)
    };
    outcome.content = result.clone();
    if let Some(details) = &call.details {
        outcome.details = details.clone();
    }
    CallPlan::Outcome(outcome)
}

/// The call of `AskUserQuestion` with these questions.
pub(crate) fn questions(asked: &[Question]) -> Call {
    let questions: Vec<Value> = asked
        .iter()
        .map(|question| {
            let options = question.options.iter();
            let options: Vec<Value> = options
                .map(|choice| json!({"label": choice.label, "description": choice.description}))
                .collect();
            json!({
                "question": question.question, "header": question.header.as_deref().unwrap_or("Question"),
                "options": options, "multiSelect": question.multi_select,
            })
        })
        .collect();
    Call::new("AskUserQuestion", json!({"questions": questions}))
}

fn check(assert: Assert) -> Deed {
    Deed::Check(Look::new(move |lines| judge::check(&assert, lines)))
}

impl Script {
    /// The name of the script.
    pub(crate) fn name(&self) -> &str {
        self.source.0.as_deref().unwrap_or("script")
    }
}
