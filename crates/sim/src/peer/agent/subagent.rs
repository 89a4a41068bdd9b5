//! Subagents: their definitions, their runs, and their results.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::background::{self, Task, TaskEnding};
use super::brain::{AgentInfo, CallPlan, ModelRequest, ToolOutcome};
use super::caller::{Caller, ModelCall};
use super::context::{Abort, AgentState, Context};
use super::control::MODES;
use super::models;
use super::not_simulated::{self, Feature};
use super::tools::HEARTBEAT;
use super::turn::{End, INTERRUPTED, Turn};
use super::{BYPASS, Config, commands, payload};
use crate::fields::JsonFields as _;

/// An agent that another one has started.
#[derive(Debug)]
pub(super) struct RunningSubagent {
    pub(super) id: String,
    /// The id of the run under way: an agent that is taken up again gets another one.
    pub(super) run_id: Mutex<String>,
    pub(super) tool_use_id: String,
    pub(super) kind: String,
    /// The name that the model has given it.
    pub(super) name: Option<String>,
    pub(super) is_built_in: bool,
    pub(super) description: String,
    pub(super) prompt: String,
    pub(super) depth: u32,
    /// Whether the subagent was started in the background.
    pub(super) background: bool,
    /// Whether the subagent's text is shown; that of an agent in the background always is.
    pub(super) shows_text: AtomicBool,
    /// Whether its calls go to the host, whatever started it.
    shows_calls: bool,
    pub(super) model: String,
    /// Whether the subagent's call or its definition names a model.
    pub(super) is_model_named: bool,
    /// The mode that its calls are decided in, where the session's does not allow more.
    pub(super) mode: Option<String>,
    /// The agent that started it, unless that is the main one.
    pub(super) parent: Option<String>,
    /// The tag that the reply gave it.
    pub(super) tag: Option<u64>,
    /// Hears when the result of the call that started it is written.
    pub(super) launched: Notify,
    /// Hears when the hooks for its beginning are called.
    pub(super) began: Notify,
}

/// After which time an agent in the background goes on although hooks still hold the result of the call that started it.
const LAUNCH: Duration = Duration::from_millis(100);

/// A kind of subagent that the host has defined.
#[derive(Debug, Clone, Default)]
pub(super) struct Definition {
    pub(super) description: String,
    model: Option<String>,
    background: bool,
    pub(super) tools: Option<Vec<String>>,
    pub(super) disallowed: Vec<String>,
    max_turns: Option<u64>,
    /// The mode that its calls are decided in, where the session's does not allow more.
    mode: Option<String>,
    /// Whether it works in a worktree of its own.
    is_isolated: bool,
}

/// What the model reads of an agent that has said nothing.
const NO_REPORT: &str = "(Subagent completed but returned no output.)";

/// The number of subagents, and their results.
#[derive(Debug, Default)]
pub(super) struct Stats {
    spawned: u64,
    background: u64,
    foreground: u64,
    unset: u64,
    started_in_background: u64,
    max_depth: u32,
    by_subagents: u64,
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) killed_by_parent: u64,
    pub(super) killed_by_user: u64,
    pub(super) killed_by_system: u64,
    by_type: BTreeMap<String, u64>,
    /// The tools that the model has called, or read of in the report of an agent, and those that it will.
    noted: BTreeSet<String>,
    to_note: BTreeSet<String>,
    /// What the agents that an agent has started have used, by its id, until it ends.
    used_below: BTreeMap<String, BTreeSet<String>>,
}

/// The result of a subagent.
pub(super) struct SubagentReport {
    pub(super) end: Option<End>,
    took: Duration,
    /// The calls that the subagent might not make.
    denials: Vec<Value>,
    /// The conversation, which may be taken up again.
    turn: Turn,
}

/// The names of these tools. What rules say behind a name does not count.
fn tools(named: Vec<String>) -> Vec<String> {
    let name = |tool: String| tool.split('(').next().unwrap_or_default().to_owned();
    named.into_iter().map(name).collect()
}

/// The mode of a definition, if one can have it.
fn own_mode(mode: &str) -> Option<String> {
    match mode {
        "manual" => Some("default".to_owned()),
        BYPASS => None,
        mode => MODES.contains(&mode).then(|| mode.to_owned()),
    }
}

impl Definition {
    /// Reads `agents` of `initialize` or of the flag. One that is wrong drops them all, as in the CLI.
    pub(super) fn read_all(agents: &Value) -> Option<BTreeMap<String, Self>> {
        let agents = agents.as_object()?;
        agents
            .iter()
            .map(|(name, agent)| Some((name.clone(), Self::read(agent)?)))
            .collect()
    }

    /// What an agent of the CLI's own is like: those that look around change no files and start no agents.
    fn built_in(kind: &str) -> Self {
        let kept_from: &[&str] = match kind {
            "Explore" | "Plan" => &["Agent", "Edit", "ExitPlanMode", "NotebookEdit", "Write"],
            _ => &[],
        };
        Self {
            disallowed: kept_from.iter().map(|tool| (*tool).to_owned()).collect(),
            ..Self::default()
        }
    }

    fn read(agent: &Value) -> Option<Self> {
        let strings = |value: &Value| -> Option<Vec<String>> {
            let list = value.as_array()?.iter();
            list.map(|entry| entry.as_str().map(str::to_owned)).collect()
        };
        agent["prompt"].as_str()?;
        let only = match &agent["tools"] {
            Value::Null => None,
            list => Some(tools(strings(list)?)),
        };
        Some(Self {
            description: agent["description"].as_str()?.to_owned(),
            model: agent["model"].as_str().map(str::to_owned),
            background: agent["background"] == true,
            tools: only,
            disallowed: strings(&agent["disallowedTools"]).map(tools).unwrap_or_default(),
            max_turns: agent["maxTurns"].as_u64(),
            mode: agent["permissionMode"].as_str().and_then(own_mode),
            is_isolated: agent["isolation"] == "worktree",
        })
    }

    /// Reads a file; none without the fields that it needs.
    fn read_markdown(text: &str) -> Option<(String, Self)> {
        let (head, _) = commands::parts(text);
        let field = |key: &str| commands::field(head, key);
        let agent = json!({
            // A file may have no prompt.
            "prompt": "", "description": field("description"), "model": field("model"),
            "background": field("background").as_deref() == Some("true"), "tools": commands::list(head, "tools"),
            "disallowedTools": commands::list(head, "disallowedTools"), "permissionMode": field("permissionMode"),
            "maxTurns": field("maxTurns").and_then(|turns| turns.parse::<u64>().ok()), "isolation": field("isolation"),
        });
        Some((field("name")?, Self::read(&agent)?))
    }

    /// The entry in the reply to `initialize`.
    pub(super) fn listed(&self, name: &str) -> Value {
        let mut entry = json!({"name": name, "description": self.description});
        entry.put("model", self.model.as_ref());
        entry
    }
}

impl Stats {
    fn start(&mut self, agent: &RunningSubagent, requested: Option<bool>) {
        self.spawned += 1;
        match requested {
            Some(true) => self.background += 1,
            Some(false) => self.foreground += 1,
            None => self.unset += 1,
        }
        self.started_in_background += u64::from(agent.background);
        self.max_depth = self.max_depth.max(agent.depth);
        self.by_subagents += u64::from(agent.parent.is_some());
        *self.by_type.entry(agent.kind.clone()).or_default() += 1;
    }

    /// The model itself has called a tool, of which no report has to tell it.
    pub(super) fn calls(&mut self, tool: &str) {
        self.to_note.insert(tool.to_owned());
    }

    /// Notes these tools of an agent. Gives the tools that the model has neither called nor read of in a report.
    fn note<'a>(&mut self, tools: &[&'a str]) -> Vec<&'a str> {
        let new = tools.iter().copied();
        let new: Vec<&str> = new.filter(|tool| !self.noted.contains(*tool)).collect();
        self.to_note.extend(new.iter().map(|tool| (*tool).to_owned()));
        new
    }

    /// The model reads the reports so far.
    pub(super) fn are_read(&mut self) {
        self.noted.append(&mut self.to_note);
    }

    /// The `subagent_stats` of a result.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "spawned": self.spawned,
            "requested": {"background": self.background, "foreground": self.foreground, "unset": self.unset},
            "started_in_background": self.started_in_background,
            "max_depth": self.max_depth,
            "spawned_by_subagents": self.by_subagents,
            "completed": self.completed,
            "failed": self.failed,
            "killed": {"parent": self.killed_by_parent, "user": self.killed_by_user, "system": self.killed_by_system},
            "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0},
            "by_type": self.by_type,
        })
    }
}

impl RunningSubagent {
    /// Whether the agent's text goes to the host.
    pub(super) fn shows_text(&self) -> bool {
        self.shows_text.load(Ordering::Relaxed)
    }

    /// Whether nothing that is said in it is shown: an agent that waits for another shows only what comes of it, unless the host wants
    /// the calls of such agents.
    pub(super) fn is_hidden(&self) -> bool {
        self.parent.is_some() && !self.shows_text() && !self.shows_calls
    }

    pub(super) fn run_id(&self) -> String {
        self.run_id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn info(&self) -> AgentInfo {
        AgentInfo {
            id: self.id.clone(),
            kind: self.kind.clone(),
            description: self.description.clone(),
            tool_use_id: self.tool_use_id.clone(),
            background: self.background,
            depth: self.depth,
            tag: self.tag,
        }
    }

    /// The fields of its `task_started`.
    fn started(&self) -> Value {
        let mut started = json!({
            "task_id": self.id, "run_id": self.run_id(), "tool_use_id": self.tool_use_id,
            "description": self.description, "subagent_type": self.kind, "is_backgrounded": self.background,
            "spawn_depth": self.depth, "task_type": "local_agent", "prompt": self.prompt,
        });
        started.put("parent_task_id", self.parent.as_ref());
        started
    }
}

/// The names of the tools that start an agent.
pub(super) fn is_agent_tool(name: &str) -> bool {
    name == "Agent" || name == "Task"
}

/// The agents of files and of flags; those of flags win, and those of the project over those of the user.
pub(super) fn known(config: &Config) -> BTreeMap<String, Definition> {
    let files = commands::markdown(config, &config.cwd, "agents")
        .into_iter()
        .rev();
    let mut agents: BTreeMap<String, Definition> = files
        .filter_map(|(_, _, text)| Definition::read_markdown(&text))
        .collect();
    agents.extend(config.agents.clone());
    agents
}

/// What a name of a kind of agents comes down to: `code_reviewer` means `Code-Reviewer`.
fn letters(kind: &str) -> String {
    let letters = kind.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// All kinds of agents that can be started, as `initialize` lists them.
pub(super) fn listed(config: &Config, state: &AgentState) -> Vec<Value> {
    let mut listed = payload::agents(&config.entrypoint);
    listed.extend(state.agents.iter().map(|(name, agent)| agent.listed(name)));
    listed.sort_by_key(|agent| agent["name"].as_str().map(str::to_lowercase));
    listed
}

/// The names of the kinds of agents.
pub(super) fn kinds(config: &Config, state: &AgentState) -> Vec<String> {
    let listed = listed(config, state).into_iter();
    listed
        .filter_map(|agent| Some(agent["name"].as_str()?.to_owned()))
        .collect()
}

impl Caller {
    /// Runs the tool that starts an agent.
    pub(super) async fn run_agent(&self, call: &ModelCall) -> Result<ToolOutcome, Abort> {
        let named = call.used["subagent_type"].as_str().unwrap_or("general-purpose");
        let kinds = kinds(&self.ctx.config, &self.ctx.state());
        let exact = kinds.iter().find(|known| *known == named);
        let denied = |kind: &str| {
            let state = self.ctx.state();
            let mut rules = state.rules.deny.iter();
            rules.find(|rule| rule.means_agent(kind)).map(|rule| rule.source)
        };
        let Some(kind) = exact.or_else(|| kinds.iter().find(|known| letters(known) == letters(named))) else {
            let kinds = kinds.iter().map(String::as_str);
            let kinds: Vec<&str> = kinds.filter(|kind| denied(kind).is_none()).collect();
            self.send_stop().await;
            return Ok(ToolOutcome::error(format!(
                "Agent type '{named}' not found. Available agents: {}",
                kinds.join(", ")
            )));
        };
        let kind = kind.as_str();
        if call.used["isolation"] == "worktree" {
            self.send_stop().await;
            return Ok(ToolOutcome::error(not_simulated::feature(Feature::Worktree)));
        }
        let definition = self.ctx.state().agents.get(kind).cloned();
        if let Some(source) = denied(kind) {
            self.send_stop().await;
            return Ok(ToolOutcome::error(format!(
                "Agent type '{kind}' has been denied by permission rule 'Agent({kind})' from {}.",
                source.as_str()
            )));
        }
        if definition
            .as_ref()
            .is_some_and(|definition| definition.is_isolated)
        {
            self.send_stop().await;
            return Ok(ToolOutcome::error(not_simulated::feature(Feature::Worktree)));
        }
        let is_built_in = definition.is_none();
        let definition = definition.unwrap_or_else(|| Definition::built_in(kind));
        let requested = call.used["run_in_background"].as_bool();
        // An agent waits for those that it starts, unless it is to be otherwise.
        let background = requested.unwrap_or(self.agent.is_none()) || definition.background;
        let text = |key: &str| call.used[key].as_str().unwrap_or_default().to_owned();
        let agent = {
            let mut state = self.ctx.state();
            let (id, run_id) = state.ids.agent();
            let model = call.used["model"].as_str().or(definition.model.as_deref());
            let is_model_named = model.is_some();
            let model = match (model, &self.ctx.config.subagent_model) {
                (Some("inherit"), _) | (None, None) => state.model.clone(),
                (Some(model), _) => models::resolve(model),
                (None, Some(model)) => model.clone(),
            };
            let agent = RunningSubagent {
                id,
                run_id: Mutex::new(run_id),
                tool_use_id: call.id.clone(),
                kind: kind.to_owned(),
                is_built_in,
                description: text("description"),
                prompt: text("prompt"),
                depth: self.agent.as_ref().map_or(0, |agent| agent.depth) + 1,
                background,
                name: call.used["name"].as_str().map(str::to_owned),
                shows_text: AtomicBool::new(background || state.forward_text),
                shows_calls: state.forward_nested_calls,
                model,
                is_model_named,
                mode: definition
                    .mode
                    .clone()
                    .or_else(|| self.agent.as_ref()?.mode.clone()),
                parent: self.agent.as_ref().map(|agent| agent.id.clone()),
                tag: match &call.plan {
                    CallPlan::RunTagged(tag) => Some(*tag),
                    _ => None,
                },
                launched: Notify::new(),
                began: Notify::new(),
            };
            state.subagents.start(&agent, requested);
            Arc::new(agent)
        };
        let abort = Arc::new(watch::Sender::new(None));
        let prompt_id = self.prompt_id().unwrap_or_else(|| self.ctx.uuid());
        let caller = Self::new(self.ctx.clone(), abort.clone(), prompt_id);
        let mut turn = Turn::new(caller.of_agent(agent.clone(), &definition));
        turn.max_turns = definition.max_turns;
        let job = tokio::spawn(play(turn, None));
        let (task, moved) = Task::of_agent(&self.ctx, &agent, abort.clone());
        if background {
            background::start_agent(&self.ctx, task, agent.started(), job).await;
            self.send_next_stop().await;
            // Its hooks are called before the result of the call is written.
            self.or_abort(agent.began.notified()).await?;
            return Ok(launched(&self.ctx, &agent));
        }
        self.ctx.send_system("task_started", agent.started()).await;
        self.ctx.state().tasks.push(task);
        self.send_next_stop().await;
        // Its first line comes before the end of the message.
        tokio::task::yield_now().await;
        self.send_stop().await;
        let mut job = job;
        let began = Instant::now();
        let step = async {
            let mut moved = std::pin::pin!(moved);
            let mut beats = 0;
            loop {
                let next = began + HEARTBEAT * (beats + 1);
                tokio::select! {
                    biased;
                    report = &mut job => return Some(report),
                    Ok(()) = &mut moved => return None,
                    () = tokio::time::sleep_until(next) => self.beat(call, u64::from(beats), began).await,
                }
                beats += 1;
            }
        };
        match self.or_abort(step).await {
            Ok(Some(report)) => Ok(match report {
                Ok(mut report) => {
                    self.tally().denials.append(&mut report.denials);
                    self.handed_back(&agent, report).await
                }
                Err(_) => ToolOutcome::error("the agent broke down"),
            }),
            Ok(None) => {
                agent.shows_text.store(true, Ordering::Relaxed);
                background::watch_agent(&self.ctx, &agent.id, job);
                Ok(launched(&self.ctx, &agent))
            }
            Err(why) => {
                self.ctx.withdraw_of(&agent.id).await;
                abort.send_replace(Some(why));
                let _ = job.await;
                self.ctx.state().subagents.killed_by_user += 1;
                if self.agent.is_none() && background::has_commands(&self.ctx, &agent.id) {
                    self.ctx.state().leaving.push(agent.id.clone());
                } else {
                    background::leave(&self.ctx, &agent.id).await;
                }
                Err(why)
            }
        }
    }

    /// The result for the parent when a subagent ends.
    async fn handed_back(&self, agent: &RunningSubagent, report: SubagentReport) -> ToolOutcome {
        let ending = report.ending(&self.ctx, agent, false);
        background::stop_commands_of(&self.ctx, &agent.id).await;
        background::end_agent(&self.ctx, &agent.id, &ending).await;
        background::hand_over(&self.ctx, &agent.id).await;
        if let Some(failure) = report.failure() {
            return ToolOutcome::error(failure);
        }
        if let Some(End::Aborted { .. }) = &report.end {
            self.ctx.state().subagents.killed_by_user += 1;
            return ToolOutcome::error(INTERRUPTED);
        }
        let ms = report.took.as_millis() as u64;
        let (turn, used) = (&report.turn, &report.turn.used);
        let mut tools = used.tools.clone();
        let new = {
            let stats = &mut self.ctx.state().subagents;
            tools.extend(stats.used_below.remove(&agent.id).unwrap_or_default());
            if let Some(parent) = &agent.parent {
                stats
                    .used_below
                    .entry(parent.clone())
                    .or_default()
                    .extend(tools.clone());
            }
            // Of each tool the model reads once in a session.
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            stats.note(&tools)
        };
        let tools_note = (!new.is_empty()).then(|| {
            format!(
                "<tools-used-before-summary>{}</tools-used-before-summary>\n",
                new.join(", ")
            )
        });
        let notes: Vec<String> = tools_note.into_iter().chain(report.limit_note()).collect();
        let text = (!turn.text.is_empty()).then_some(&turn.text);
        let blocks = notes.iter().chain(text);
        let blocks: Vec<Value> = blocks.map(|text| json!({"type": "text", "text": text})).collect();
        let mut hasher = DefaultHasher::new();
        (&notes, text).hash(&mut hasher);
        let mut shown: String = notes.iter().map(|note| format!("  {note}  \n")).collect();
        let text = text.map_or(NO_REPORT, String::as_str);
        let indented: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
        shown.push_str(&format!(
            "[Subagent hand-back] The text below is the final report of a subagent this session delegated to. The report \
             follows:\n{}\nagentId: {} (use SendMessage with to: '{}', summary: '<5-10 word recap>' to continue this \
             agent)\n<usage>subagent_tokens: {}\ntool_uses: {}\nduration_ms: {ms}</usage>",
            indented.join("\n"),
            agent.id,
            agent.id,
            turn.context,
            used.calls,
        ));
        let count = |names: &[&str]| {
            names
                .iter()
                .filter_map(|name| used.by_tool.get(*name))
                .sum::<u64>()
        };
        let known = ["Read", "Glob", "Grep", "Bash", "Edit", "Write"];
        let mut details = json!({
            "status": "completed",
            "prompt": agent.prompt,
            "agentId": agent.id,
            "agentType": agent.kind,
            "harnessNoteCount": notes.len(),
            "harnessTailCount": 0,
            "harnessSectionHash": format!("{:016x}", hasher.finish()),
            "content": blocks,
            "resolvedModel": agent.model,
            "totalDurationMs": ms,
            "totalTokens": turn.context,
            "totalToolUseCount": used.calls,
            "usage": payload::usage(turn.last_usage.0, turn.last_usage.1),
            "canContinueAgent": true,
        });
        details.put("toolsUsed", (!tools.is_empty()).then_some(tools));
        let agents = count(&["Agent", "Task"]);
        if used.calls > agents {
            details["toolStats"] = json!({
                "readCount": count(&["Read"]), "searchCount": count(&["Glob", "Grep"]), "bashCount": count(&["Bash"]),
                "editFileCount": count(&["Edit", "Write"]), "linesAdded": used.lines_added,
                "linesRemoved": used.lines_removed,
                "otherToolCount": used.calls - agents - count(&known),
            });
        }
        let mut outcome = ToolOutcome::text("");
        outcome.content = json!([{"type": "text", "text": shown}]);
        outcome.with_details(details)
    }
}

/// The immediate result for the parent of a background subagent.
fn launched(ctx: &Context, agent: &RunningSubagent) -> ToolOutcome {
    let id = &agent.id;
    let file = ctx.output_file(id);
    let text = format!(
        "Async agent launched successfully.\nagentId: {id} (internal ID - do not mention to user. Use SendMessage with to: \
         '{id}', summary: '<5-10 word recap>' to continue this agent.)\nThe agent is working in the background. You will be \
         notified automatically when it completes.\noutput_file: {file}"
    );
    let mut outcome = ToolOutcome::text("");
    outcome.content = json!([{"type": "text", "text": text}]);
    outcome.with_details(json!({
        "isAsync": true, "status": "async_launched", "agentId": id, "description": agent.description,
        "resolvedModel": agent.model, "prompt": agent.prompt, "outputFile": file, "canReadOutputFile": true,
        "canContinueAgent": true,
    }))
}

/// Runs an agent to its end. Boxed, for an agent may start others.
///
/// An agent that is taken up again is given the tags of its commands that have ended.
fn play(mut turn: Turn, woken_by: Option<Vec<u64>>) -> Pin<Box<dyn Future<Output = SubagentReport> + Send>> {
    Box::pin(async move {
        let end = run(&mut turn, woken_by).await.err();
        let (took, denials) = (turn.took(), std::mem::take(&mut turn.tally().denials));
        SubagentReport {
            end,
            took,
            denials,
            turn,
        }
    })
}

/// Takes up an agent again, of which commands in the background have ended. Gives the fields of its `task_started`.
pub(super) fn take_up(
    ctx: &Context,
    agent: &RunningSubagent,
    report: SubagentReport,
    woken_by: Vec<u64>,
) -> (Value, JoinHandle<SubagentReport>) {
    let (_, run_id) = ctx.state().ids.agent();
    *agent.run_id.lock().unwrap_or_else(PoisonError::into_inner) = run_id;
    let mut started = agent.started();
    if let Some(started) = started.as_object_mut() {
        started.shift_remove("prompt");
    }
    (started, tokio::spawn(play(report.turn, Some(woken_by))))
}

async fn run(turn: &mut Turn, woken_by: Option<Vec<u64>>) -> Result<(), End> {
    let Some(agent) = turn.agent.clone() else {
        return Ok(());
    };
    let (context, failed, misnamed) = match turn.agent_starts().await {
        Ok((context, failed)) => (context, failed, None),
        Err(end @ End::Misnamed(_)) => (Vec::new(), Vec::new(), Some(end)),
        Err(end) => return Err(end),
    };
    turn.ctx.keep(|transcript| transcript.describe(&agent, false));
    if woken_by.is_none() {
        let content = json!([{"type": "text", "text": agent.prompt}]);
        let is_shown = !agent.background && (agent.parent.is_none() || agent.shows_text());
        turn.say_prompt(content, &agent.prompt, is_shown).await;
    }
    if let Some(end) = misnamed {
        return Err(end);
    }
    for (callback_id, blocks) in failed {
        turn.ctx.send_failed("SubagentStart", &callback_id, blocks).await;
    }
    if agent.background && woken_by.is_none() {
        // The first answer of the API takes longer than the hooks behind the call.
        let _ = turn
            .or_abort(tokio::time::timeout(LAUNCH, agent.launched.notified()))
            .await;
    }
    let ask = {
        let state = turn.ctx.state();
        ModelRequest {
            prompt: if woken_by.is_none() {
                agent.prompt.clone()
            } else {
                String::new()
            },
            turn: state.turns.saturating_sub(1),
            agent: Some(agent.info()),
            woken: woken_by.is_some(),
            woken_by: woken_by.unwrap_or_default(),
            context,
            ..ModelRequest::default()
        }
    };
    let end = turn.converse(ask).await;
    turn.ctx.keep(|transcript| transcript.describe(&agent, true));
    end
}

impl SubagentReport {
    /// What an agent has failed with.
    fn failure(&self) -> Option<String> {
        match &self.end {
            Some(End::Api(failure)) => Some(format!(
                "Agent terminated early due to an API error: {}",
                failure.text
            )),
            Some(End::Misnamed(text)) => Some(text.clone()),
            _ => None,
        }
    }

    /// What the model reads of an agent that its limit of turns has stopped.
    fn limit_note(&self) -> Option<String> {
        let Some(End::MaxTurns(limit)) = self.end else {
            return None;
        };
        let left = match self.turn.text.as_str() {
            "" => "It was still calling tools and had produced no report.",
            _ => "The text below is PARTIAL output.",
        };
        Some(format!(
            "NOTE: this agent stopped at its {limit}-turn limit before finishing. {left}\n"
        ))
    }

    /// How the host hears of it.
    fn ending(&self, ctx: &Context, agent: &RunningSubagent, is_report: bool) -> TaskEnding {
        let mut state = ctx.state();
        let failure = self.failure();
        let failed = failure.is_some();
        match &self.end {
            Some(End::Aborted { .. }) => return TaskEnding::killed(&agent.description),
            _ if failed => state.subagents.failed += 1,
            _ => state.subagents.completed += 1,
        }
        let summary = match (failure, self.limit_note()) {
            (Some(failure), _) => failure,
            (_, Some(note)) if self.turn.text.is_empty() => note,
            (_, Some(note)) => format!("{note}\n{}", self.turn.text),
            _ if self.turn.text.is_empty() => agent.description.clone(),
            _ => self.turn.text.clone(),
        };
        let ms = self.took.as_millis() as u64;
        let mut extra = json!({});
        if !failed {
            let turn = &self.turn;
            extra["usage"] =
                json!({"total_tokens": turn.context, "tool_uses": turn.used.calls, "duration_ms": ms});
        }
        if !failed && is_report {
            extra["summary_is_report"] = json!(true);
        }
        TaskEnding {
            status: if failed { "failed" } else { "completed" },
            patch: if failed { "failed" } else { "completed" },
            summary,
            extra,
        }
    }

    /// How an agent in the background has ended, or would have but for its commands, which still run.
    pub(super) fn in_background(&self, ctx: &Context, agent: &RunningSubagent, is_over: bool) -> TaskEnding {
        let ending = self.ending(ctx, agent, is_over);
        // Only one that is over counts.
        ctx.state().subagents.completed -= u64::from(!is_over);
        ending
    }
}
