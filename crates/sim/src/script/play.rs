//! Plays a script: the model of the agent, and its prompter.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::assertion::Assert;
use super::gates::Gates;
use super::judge;
use super::place::{Placed, Position};
use super::rule::Rule;
use super::step::{Ask, Background, Call, Compact, Permission, Question, Raw, Run, Step, Subagent, Wait};
use super::{Script, Unmatched};
use crate::directive::{Block, Fault, FaultKind, Pace, Usage};
use crate::flaw::Flaw;
use crate::peer::agent::{Act, Brain, CallPlan, Deed, Look, Outcome, Reply, rate_limit};
use crate::peer::{Exit, Line, agent};

/// A step that is still to come, and its place.
#[derive(Debug, Clone)]
struct Next {
    place: String,
    step: Step,
}

/// Plays a script.
#[derive(Debug)]
pub(crate) struct Player {
    script: Script,
    gates: Gates,
    /// How often each rule was used.
    used: Vec<u32>,
    /// The rule whose turn it is, among those that are used in their order.
    current: usize,
    /// The remaining steps of this turn, of the main agent and of subagents by their ids.
    left: HashMap<Option<String>, VecDeque<Next>>,
    /// The steps of the subagent with this tag.
    subagents: BTreeMap<u64, Vec<Next>>,
    /// The steps of the agent after the end of the command with this tag.
    after: BTreeMap<u64, Vec<Next>>,
    next_tag: u64,
    /// Up to which line waits have looked for control requests.
    looked: Arc<AtomicUsize>,
}

impl Player {
    pub(super) fn new(script: Script, gates: Gates) -> Self {
        Self {
            used: vec![0; script.prompts.len()],
            script,
            gates,
            current: 0,
            left: HashMap::new(),
            subagents: BTreeMap::new(),
            after: BTreeMap::new(),
            next_tag: 0,
            looked: Arc::default(),
        }
    }

    /// The rule for a prompt, which is used up by it.
    fn take(&mut self, prompt: &str) -> Option<usize> {
        let rules = &self.script.prompts;
        let open = |n: usize| self.used[n] < rules[n].value.times.most();
        let mut found = None;
        let ordered = (self.current..rules.len()).filter(|n| !rules[*n].value.anytime);
        for n in ordered {
            if open(n) && rules[n].value.is_for(prompt) {
                found = Some(n);
                break;
            }
            if self.used[n] < rules[n].value.times.least() {
                // Its turn has come, and it waits for another prompt.
                break;
            }
        }
        if let Some(n) = found {
            self.current = n;
        } else {
            found = (0..rules.len())
                .find(|n| rules[*n].value.anytime && open(*n) && rules[*n].value.is_for(prompt));
        }
        if let Some(n) = found {
            self.used[n] += 1;
        }
        found
    }

    /// Adds the reply to a prompt. Returns the problem, if no rule matches it.
    fn load(&mut self, prompt: &str) -> Option<String> {
        match self.take(prompt) {
            Some(n) => {
                let rule = &self.script.prompts[n].value;
                let steps = self.script.places(&rule.steps, &format!("prompts[{n}]"));
                self.left.entry(None).or_default().extend(steps);
                None
            }
            None if self.script.unmatched == Unmatched::Ok => None,
            None => Some(self.script.unmatched_text(prompt, &self.used)),
        }
    }

    /// The next reply: steps up to the next tool call.
    fn next(&mut self, who: &Option<String>, complaint: Option<String>) -> Reply {
        let mut reply = Reply::default();
        if !self.script.pacing.every.is_zero() {
            let pacing = self.script.pacing;
            reply.response.pace = Some(Pace {
                every: pacing.every,
                chunk: pacing.chunk.unwrap_or(8).max(1),
            });
        }
        if let Some(what) = complaint {
            let flaw = what.clone();
            let deed = Deed::Check(Look::new(move |_| Some(flaw.clone())));
            let place = self.script.name().to_owned();
            reply.acts.push((0, Act { place, deed }));
            reply.response.faults.push(Fault {
                kind: FaultKind::Status {
                    status: 400,
                    message: Some(what),
                },
                times: u32::MAX,
            });
            self.left.remove(who);
            return reply;
        }
        while let Some(next) = self.left.get_mut(who).and_then(VecDeque::pop_front) {
            let calls = self.add(&mut reply, next);
            if calls {
                return reply;
            }
        }
        // A response of the model needs content, unless it fails.
        if reply.response.blocks.is_empty() && reply.response.faults.is_empty() {
            reply.response.blocks.push(Block::Text("ok".to_owned()));
        }
        reply
    }

    /// Adds a step to a reply. Returns whether it calls tools, which ends the reply.
    fn add(&mut self, reply: &mut Reply, Next { place, step }: Next) -> bool {
        let index = reply.response.blocks.len();
        let mut act = |deed: Deed| {
            reply.acts.push((
                index,
                Act {
                    place: place.clone(),
                    deed,
                },
            ))
        };
        let patience = self.script.patience;
        match step {
            Step::Say(text) => reply.response.blocks.push(Block::Text(text)),
            Step::Think(text) => reply.response.blocks.push(Block::Thinking(text)),
            Step::Call(call) => return add_calls(reply, [call]),
            Step::Parallel(calls) => return add_calls(reply, calls),
            Step::Plan(plan) => return add_calls(reply, [Call::new("ExitPlanMode", json!({"plan": plan}))]),
            Step::Ask(Ask::Question(question)) => return add_calls(reply, [questions(&[question])]),
            Step::Ask(Ask::Questions(asked)) => return add_calls(reply, [questions(&asked)]),
            Step::Ask(Ask::Elicitation(asked)) => {
                let properties = asked.schema.as_ref().and_then(|schema| schema.get("properties"));
                let order: Vec<&String> = properties
                    .and_then(Value::as_object)
                    .map(Map::keys)
                    .into_iter()
                    .flatten()
                    .collect();
                let empty = json!({"type": "object", "properties": {}});
                act(Deed::Request(json!({
                    "subtype": "elicitation", "mcp_server_name": asked.server, "message": asked.message, "mode": "form",
                    "requested_schema": asked.schema.as_ref().map_or(empty, |schema| json!(schema)),
                    "property_order": order,
                })));
            }
            Step::Ask(Ask::Permission(Permission {
                tool,
                input,
                suggestions,
            })) => {
                let tag = self.tag();
                let mut request = json!({
                    "subtype": "can_use_tool", "tool_name": tool, "display_name": tool, "input": input,
                    "tool_use_id": format!("toolu_asked_{tag:04}"),
                });
                if !suggestions.is_empty() {
                    request["permission_suggestions"] = json!(suggestions);
                }
                reply.acts.push((
                    index,
                    Act {
                        place,
                        deed: Deed::Request(request),
                    },
                ));
            }
            Step::Ask(Ask::Request(request)) => act(Deed::Request(Value::Object(request))),
            Step::Subagent(subagent) => {
                self.add_subagent(reply, subagent, &place);
                return true;
            }
            Step::Background(background) => {
                self.add_background(reply, background, &place);
                return true;
            }
            Step::Fault(fault) => act(Deed::Arm(*fault)),
            Step::ApiError(error) => reply.response.faults.push(Fault {
                kind: FaultKind::Status {
                    status: error.status,
                    message: error.message,
                },
                times: error.times.unwrap_or(u32::MAX),
            }),
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
            Step::Wait(wait) => act(self.wait(wait, patience)),
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

    fn tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag
    }

    fn add_subagent(&mut self, reply: &mut Reply, subagent: Subagent, place: &str) {
        let tag = self.tag();
        self.subagents
            .insert(tag, self.script.places(&subagent.steps, place));
        self.after.insert(tag, self.script.places(&subagent.then, place));
        reply.response.blocks.push(Block::ToolUse {
            name: "Agent".to_owned(),
            input: json!({
                "description": subagent.description,
                "prompt": subagent.prompt.as_ref().unwrap_or(&subagent.description),
                "subagent_type": subagent.kind.as_deref().unwrap_or("general-purpose"),
                "run_in_background": subagent.background,
            }),
        });
        reply.calls.push(CallPlan::RunTagged(tag));
    }

    fn add_background(&mut self, reply: &mut Reply, background: Background, place: &str) {
        let tag = self.tag();
        let then = self.script.places(&background.then, place);
        self.after.insert(tag, then);
        let description = background.description.as_ref().unwrap_or(&background.command);
        reply.response.blocks.push(Block::ToolUse {
            name: "Bash".to_owned(),
            input: json!({
                "command": background.command, "description": description, "run_in_background": true,
            }),
        });
        reply.calls.push(CallPlan::Command {
            after: background.after,
            output: background.output,
            code: background.exit,
            tag,
        });
    }
}

impl Brain for Player {
    fn reply(&mut self, ask: &agent::Ask) -> Reply {
        if let Some(info) = &ask.agent {
            let who = Some(info.id.clone());
            if let Some(steps) = info.tag.and_then(|tag| self.subagents.remove(&tag)) {
                self.left.insert(who.clone(), steps.into());
            }
            return self.next(&who, None);
        }
        let mut complaint = None;
        if ask.round == 0 {
            // What an interrupted turn left over is gone.
            self.left.remove(&None);
            self.looked.store(ask.seen, Ordering::Relaxed);
            if let Some(steps) = ask.woken_by.and_then(|tag| self.after.remove(&tag)) {
                self.left.insert(None, steps.into());
            }
        }
        let begins = ask.round == 0 || ask.continued;
        let prompts: &[String] = if begins { &ask.prompts } else { &[] };
        for prompt in ask.folded.iter().chain(prompts) {
            complaint = complaint.or(self.load(prompt));
        }
        if ask.continued && complaint.is_none() {
            // The process before has given these.
            for _ in 0..ask.round {
                self.next(&None, None);
            }
        }
        self.next(&None, complaint)
    }

    fn end(&mut self, lines: &[Line]) -> Vec<Flaw> {
        judge::end(&self.script, &self.used, lines)
    }
}

/// Adds tool calls, which end a reply.
fn add_calls(reply: &mut Reply, calls: impl IntoIterator<Item = Call>) -> bool {
    let before = reply.calls.len();
    for call in calls {
        reply.calls.push(plan(&call));
        reply.response.blocks.push(Block::ToolUse {
            name: call.tool,
            input: Value::Object(call.input),
        });
    }
    reply.calls.len() > before
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

fn questions(asked: &[Question]) -> Call {
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

impl Rule {
    fn is_for(&self, prompt: &str) -> bool {
        self.prompt.as_ref().is_none_or(|wanted| wanted.fits(prompt))
    }
}

impl Script {
    /// Steps with the places where they stand.
    fn places(&self, steps: &[Placed<Step>], path: &str) -> Vec<Next> {
        let steps = steps.iter().enumerate();
        steps
            .map(|(n, step)| Next {
                place: self.place(step.at, &format!("{path}.steps[{n}]")),
                step: step.value.clone(),
            })
            .collect()
    }

    /// The name of the kind of step.
    pub(super) fn name(&self) -> &str {
        self.source.0.as_deref().unwrap_or("script")
    }

    /// Why a prompt has no answer.
    fn unmatched_text(&self, prompt: &str, used: &[u32]) -> String {
        let shown: String = prompt.chars().take(200).collect();
        let mut text = format!("no rule of the script is for the prompt {shown:?}");
        let rated = self.prompts.iter().enumerate().map(|(n, rule)| {
            let wanted = rule.value.prompt.as_ref().map_or("", |prompt| prompt.wanted());
            (strsim::jaro_winkler(prompt, wanted), n)
        });
        let Some((_, n)) = rated.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            return text + "; it has none at all";
        };
        let rule = &self.prompts[n];
        let place = self.place(rule.at, &format!("prompts[{n}]"));
        let wanted = match &rule.value.prompt {
            Some(wanted) => wanted.to_string(),
            None => "any prompt".to_owned(),
        };
        text.push_str(&format!("; the nearest is at {place}, for {wanted}"));
        let most = rule.value.times.most();
        if used[n] >= most {
            let times = if most == 1 {
                "once".to_owned()
            } else {
                format!("{most} times")
            };
            text.push_str(&format!(", which has been used already ({times})"));
        } else if rule.value.is_for(prompt) {
            text.push_str(", whose turn it is not");
        }
        text
    }

    /// The names of the gates that it waits for.
    pub fn gate_names(&self) -> Vec<String> {
        let names = std::cell::RefCell::new(Vec::new());
        self.any_step(&|step| {
            let mut names = names.borrow_mut();
            if let Step::Wait(Wait::Gate(name)) = step
                && !names.contains(name)
            {
                names.push(name.clone());
            }
            false
        });
        names.into_inner()
    }

    /// Whether that is true of any step, however deep.
    pub(super) fn any_step(&self, is: &dyn Fn(&Step) -> bool) -> bool {
        fn any(steps: &[Placed<Step>], is: &dyn Fn(&Step) -> bool) -> bool {
            steps.iter().any(|step| {
                let below = |steps: &[Placed<Step>]| any(steps, is);
                is(&step.value)
                    || match &step.value {
                        Step::Background(background) => below(&background.then),
                        Step::Subagent(subagent) => below(&subagent.steps) || below(&subagent.then),
                        _ => false,
                    }
            })
        }
        self.prompts.iter().any(|rule| any(&rule.value.steps, is))
    }

    /// The contradictions in a script.
    pub(super) fn mistakes(&self) -> Vec<(Option<Position>, String)> {
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
                found.push((None, what));
            }
        }
        for rule in &self.prompts {
            mistakes_of(&rule.value.steps, &mut found);
        }
        found
    }
}

/// Whether a gate may be called so; there is a file of that name.
fn is_gate_name(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.chars().all(known)
}

fn mistakes_of(steps: &[Placed<Step>], found: &mut Vec<(Option<Position>, String)>) {
    for step in steps {
        let mut mistake = |what: &str| found.push((step.at, what.to_owned()));
        let calls: &[Call] = match &step.value {
            Step::Call(call) => std::slice::from_ref(call),
            Step::Parallel(calls) => {
                if calls.is_empty() {
                    mistake("`parallel` without a call");
                }
                calls
            }
            Step::Ask(Ask::Questions(questions)) if questions.is_empty() => {
                mistake("`questions` without a question");
                &[]
            }
            Step::Ask(Ask::Request(request)) if !request.get("subtype").is_some_and(Value::is_string) => {
                mistake("a control request needs a `subtype`");
                &[]
            }
            Step::Assert(assert) if **assert == Assert::default() => {
                mistake("`assert` demands nothing");
                &[]
            }
            Step::Wait(Wait::Gate(name)) if !is_gate_name(name) => {
                mistake("the name of a gate is made of letters, digits, `-` and `_`");
                &[]
            }
            Step::Background(background) => {
                mistakes_of(&background.then, found);
                &[]
            }
            Step::Subagent(subagent) => {
                mistakes_of(&subagent.steps, found);
                mistakes_of(&subagent.then, found);
                &[]
            }
            _ => &[],
        };
        for call in calls {
            let mut mistake = |what: &str| found.push((step.at, what.to_owned()));
            if call.result.is_none() && call.is_error {
                mistake("`is_error` says what `result` is: give it one");
            }
            if call.result.is_none() && call.details.is_some() {
                mistake("`details` go with a `result`: give it one");
            }
            if call.result.is_some() && call.run.is_some() {
                mistake("with a `result` nothing is run: leave out `run` or `result`");
            }
            let readable = call
                .result
                .as_ref()
                .is_none_or(|result| result.is_string() || result.is_array());
            if !readable {
                mistake("`result` is a text, or a list of content blocks");
            }
        }
    }
}
