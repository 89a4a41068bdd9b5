//! What tools do.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::background::{self, Task};
use super::brain::{CallPlan, CallResult, ToolOutcome};
use super::caller::{CallLine, Caller, Halt, Made, ModelCall};
use super::context::{Abort, AgentState, Context};
use super::output::{self, Output, command_outcome};
use super::rules::{PermissionRule, RuleSource};
use super::shell::{self, ShellCommand};
use super::subagent::is_agent_tool;
use super::turn::INTERRUPTED;
use super::{
    Config, bash, decision, disk, mcp, not_simulated, payload, permission, plans, resources, structured,
    todos,
};
use crate::fields::JsonFields as _;

/// After this long a foreground command is announced as a task.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(3);

/// How often a tool that runs gives a sign of life.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(30);

/// Tools that exist only if a person can answer.
const NEED_A_PERSON: &[&str] = &["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"];

/// What came out of a tool, and the exit code if it was a command.
pub(super) struct Ran {
    pub(super) outcome: ToolOutcome,
    pub(super) code: i32,
}

/// The tools that look for files, which are there where a flag allows one of them, and where there is no `Bash`.
pub(super) const SEARCH: [&str; 2] = ["Glob", "Grep"];

/// The tools of the CLI's own that a session has, but for those that rules take away.
fn chosen(config: &Config, state: &AgentState) -> Vec<String> {
    let Some(chosen) = &config.tools else {
        let mut tools = payload::tools();
        let rules = &state.rules;
        let is_allowed = |rule: &PermissionRule| {
            rule.source == RuleSource::CliArg && SEARCH.iter().any(|tool| rule.is_about(tool))
        };
        let searches =
            rules.deny.iter().any(|rule| rule.is_for_all("Bash")) || rules.allow.iter().any(is_allowed);
        if searches {
            let place = tools
                .iter()
                .position(|tool| tool.as_str() > "Grep" && tool != "Task");
            let place = place.unwrap_or(tools.len());
            tools.splice(place..place, SEARCH.map(str::to_owned));
        }
        if decision::disallowed(rules, "Bash") {
            tools.retain(|tool| tool != "Monitor");
        }
        if mcp::with_resources(&state.servers).next().is_some() {
            for new in resources::TOOLS {
                let place = tools
                    .iter()
                    .position(|tool| tool.as_str() > new && tool != "Task");
                tools.insert(place.unwrap_or(tools.len()), new.to_owned());
            }
        }
        return tools;
    };
    // The order is that of the CLI, which calls the tool that starts subagents `Agent` there.
    let mut chosen = chosen.clone();
    chosen.sort_by_key(|tool| {
        if tool == "Task" {
            "Agent".to_owned()
        } else {
            tool.clone()
        }
    });
    chosen.dedup();
    chosen
}

/// The tools that `system/init` lists.
pub(super) fn listed(config: &Config, state: &AgentState) -> Vec<String> {
    let mut tools = chosen(config, state);
    if !config.permission_prompts {
        tools.retain(|tool| !NEED_A_PERSON.contains(&tool.as_str()));
    }
    tools.retain(|tool| !todos::has(tool));
    for todo in todos::tools(config, state) {
        let wanted = config
            .tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|tool| tool == todo));
        if wanted {
            let place = tools.iter().position(|tool| tool.as_str() > *todo);
            tools.insert(place.unwrap_or(tools.len()), (*todo).to_owned());
        }
    }
    tools.extend(config.handlers.iter().map(|(name, _)| name.clone()));
    if state.schema.is_some() {
        let place = tools.iter().position(|tool| tool.as_str() > structured::TOOL);
        tools.insert(place.unwrap_or(tools.len()), structured::TOOL.to_owned());
    }
    tools.extend(mcp::tool_names(&state.servers));
    tools.retain(|tool| !decision::disallowed(&state.rules, tool));
    tools
}

/// The name that a tool has now: the CLI still knows one by two old names.
pub(super) fn present_name(name: &str) -> &str {
    match name {
        "KillBash" | "KillShell" => "TaskStop",
        name => name,
    }
}

/// Why there is no such tool; none if there is.
pub(super) fn missing(ctx: &Context, name: &str) -> Option<String> {
    let config = &ctx.config;
    if config.handlers.iter().any(|(tool, _)| tool == name) {
        return None;
    }
    // The tool that starts subagents is listed under its old name, and has both names.
    let listed = |tools: &[String]| {
        let name_of = |tool: &String| tool == name || (is_agent_tool(tool) && is_agent_tool(name));
        tools.iter().any(name_of)
    };
    let left_out = config.tools.as_ref().is_some_and(|tools| !listed(tools)) && listed(&payload::tools());
    if left_out || decision::disallowed(&ctx.state().rules, name) {
        let why = format!("{name} is disabled for this session, in subagents as well as here.");
        return Some(format!("No such tool available: {name}. {why}"));
    }
    if mcp::find(ctx, name).is_some() {
        return None;
    }
    if !config.permission_prompts && NEED_A_PERSON.contains(&name) {
        return Some(format!("No such tool available: {name}"));
    }
    let known = match &config.tools {
        _ if todos::has(name) => {
            todos::tools(config, &ctx.state()).contains(&name)
                && config.tools.as_ref().is_none_or(|tools| listed(tools))
        }
        _ => listed(&chosen(config, &ctx.state())),
    };
    (!known).then(|| format!("No such tool available: {name}"))
}

impl Caller {
    /// Runs a tool that may run.
    pub(super) async fn work(
        &self,
        call: ModelCall,
        meta: Value,
        messages: Vec<String>,
    ) -> Result<Made, Halt> {
        let began = self.ctx.log.elapsed();
        let stopped = |why| Halt::Abort(why, permission::STOPPED);
        let outcome = match &call.plan {
            CallPlan::Outcome(outcome) => Ok(outcome.clone()),
            _ if is_agent_tool(&call.name) && !self.is_handled(&call.name) => self.run_agent(&call).await,
            _ => self.run_tool(&call).await,
        };
        let mut outcome = outcome.map_err(stopped)?;
        if call.by_user && outcome.details["userModified"] == false {
            outcome.details["userModified"] = json!(true);
        }
        let took = self.ctx.log.elapsed().saturating_sub(began);
        let behind = self
            .after_tool(&call, &mut outcome, took)
            .await
            .map_err(stopped)?;
        let mut block = json!({"type": "tool_result", "tool_use_id": call.id, "content": outcome.content});
        block.put("is_error", outcome.is_error);
        let mut meta = meta;
        if outcome.content == INTERRUPTED {
            meta["non_execution_kind"] = json!("interrupted");
        }
        meta["id"] = json!(call.id);
        let extra = json!({"tool_use_result": outcome.details, "tool_result_meta": [meta]});
        let mut lines: Vec<CallLine> = messages.into_iter().map(CallLine::Message).collect();
        lines.push(CallLine::result(block, extra));
        lines.extend(behind.into_iter().map(CallLine::Message));
        Ok(Made {
            result: CallResult {
                name: call.name,
                content: outcome.content,
                is_error: outcome.is_error == Some(true),
            },
            lines,
        })
    }

    async fn run_tool(&self, call: &ModelCall) -> Result<ToolOutcome, Abort> {
        let is_command = call.name == "Bash" && !self.is_handled("Bash");
        let in_background = is_command && call.used["run_in_background"] == true;
        let task = is_command.then(|| self.ctx.state().ids.task());
        let output = task.as_ref().map(|(id, _)| {
            let real = is_real(&self.ctx, &call.plan);
            Output::new(&self.ctx.output_file(id), real, in_background)
        });
        let output = output.unwrap_or_default();
        let ran = execute(
            self.ctx.clone(),
            call.name.clone(),
            call.used.clone(),
            call.id.clone(),
            call.plan.clone(),
            output.clone(),
            self.reader(),
        );
        let Some(task) = task else {
            // Ends with this future, also when the process is killed.
            let mut job = JoinSet::new();
            job.spawn(ran);
            return Ok(match self.or_abort(job.join_next()).await? {
                Some(Ok(ran)) => ran.outcome,
                _ => ToolOutcome::error("the tool broke down"),
            });
        };
        let job = tokio::spawn(ran);
        let parent = self.agent.as_ref().map(|agent| agent.id.clone());
        let (mut task, moved) = Task::new(&self.ctx, task, call, parent, &output, &job);
        if let CallPlan::Command { tag, .. } = &call.plan {
            task.tag = Some(*tag);
        }
        if in_background {
            let started = background::start(&self.ctx, task, job).await;
            return Ok(with_line(&self.ctx, call, started));
        }
        self.ctx.state().commands += 1;
        let outcome = self.watch_command(call, task, moved, job, &output).await;
        self.ctx.state().commands -= 1;
        outcome
    }

    /// A sign of life of a call. Those of the calls of agents are shown to nobody: the call that has started the agent has its own.
    pub(super) async fn beat(&self, call: &ModelCall, number: u64, began: Instant) {
        if self.agent.is_some() {
            return;
        }
        let line = json!({
            "type": "tool_progress",
            "tool_use_id": format!("{}-heartbeat-{number}", call.id),
            "parent_tool_use_id": call.id,
            "tool_name": call.name,
            "elapsed_time_seconds": began.elapsed().as_secs(),
            "heartbeat": true,
        });
        self.ctx.send_stamped(line).await;
    }

    /// Waits for a command in the foreground.
    async fn watch_command(
        &self,
        call: &ModelCall,
        mut task: Task,
        moved: oneshot::Receiver<()>,
        mut job: JoinHandle<Ran>,
        output: &Output,
    ) -> Result<ToolOutcome, Abort> {
        let mut terminating = self.ctx.terminating.subscribe();
        let mut announced = false;
        let mut beats = 0_u64;
        let mut moved = Some(moved);
        let began = Instant::now();
        // The clock of a test may jump beyond the time that a command has where the input does not say.
        let config = &self.ctx.config;
        let usual = config.real_tools.then_some(config.usual_run);
        let limit = call.used["timeout"].as_f64().map(|most| {
            let most = Duration::from_millis(most as u64);
            most.min(config.longest_run)
        });
        let limit = limit.or(usual).filter(|limit| !limit.is_zero());
        loop {
            let next = if announced {
                HEARTBEAT * (beats as u32 + 1)
            } else {
                ANNOUNCED_AFTER
            };
            let backgrounded = async {
                match &mut moved {
                    Some(moved) => moved.await.is_ok(),
                    None => std::future::pending().await,
                }
            };
            let step = async {
                tokio::select! {
                    biased;
                    ran = &mut job => ToolStep::Done(ran.ok()),
                    moved = backgrounded => if moved { ToolStep::Moved } else { ToolStep::Gone },
                    Ok(_) = terminating.wait_for(|terminating| *terminating) => ToolStep::Killed,
                    () = tokio::time::sleep_until(began + limit.unwrap_or_default()), if limit.is_some() => ToolStep::Late,
                    () = tokio::time::sleep_until(began + next) => ToolStep::Beat,
                }
            };
            // A prompt that is to come at once waits for the command.
            match self.or_aborted_by(|why| why != Abort::Displaced, step).await {
                Ok(ToolStep::Late) => {
                    let limit = limit.unwrap_or_default();
                    let said = command_outcome("", 0, output).details["stdout"].clone();
                    let said = said.as_str().unwrap_or_default();
                    let before = if said.is_empty() {
                        String::new()
                    } else {
                        format!("{said}\n")
                    };
                    let command = call.used["command"].as_str().unwrap_or_default();
                    if command.trim_start().starts_with("sleep ") {
                        job.abort();
                        if announced {
                            background::end_foreground(&self.ctx, &task.id, "stopped").await;
                        }
                        let text = format!(
                            "Exit code 143\n{before}Command timed out after {}s",
                            limit.as_secs()
                        );
                        return Ok(ToolOutcome::error(text));
                    }
                    let (id, file) = (task.id.clone(), task.output_file.clone());
                    let mut outcome = if announced {
                        background::moved(&self.ctx, &id, job).await
                    } else {
                        background::start(&self.ctx, task, job).await
                    };
                    outcome.content = json!(format!(
                        "{before}Command did not complete within its {}s timeout and was moved to the background (ID: {id}). \
                         Output is being written to: {}. {}",
                        limit.as_millis().div_ceil(1000),
                        file,
                        background::notice_of(&self.ctx, &id)
                    ));
                    if let Some(details) = outcome.details.as_object_mut() {
                        details.shift_remove("backgroundedByUser");
                        details.insert("stdout".to_owned(), json!(said));
                        details.insert("timedOutAfterMs".to_owned(), json!(limit.as_millis() as u64));
                    }
                    return Ok(with_line(&self.ctx, call, outcome));
                }
                Ok(ToolStep::Done(ran)) => {
                    if announced {
                        background::end_foreground(&self.ctx, &task.id, "completed").await;
                    }
                    let broke = || ToolOutcome::error("the command was killed");
                    return Ok(ran.map_or_else(broke, |ran| ran.outcome));
                }
                Ok(ToolStep::Moved) => {
                    let moved = background::moved(&self.ctx, &task.id, job).await;
                    return Ok(with_line(&self.ctx, call, moved));
                }
                Ok(ToolStep::Gone) => moved = None,
                Ok(ToolStep::Killed) => {
                    job.abort();
                    return Ok(command_outcome("", 137, output));
                }
                Ok(ToolStep::Beat) if !announced => {
                    announced = true;
                    let line = task.started(false);
                    self.ctx
                        .state()
                        .tasks
                        .push(std::mem::replace(&mut task, Task::placeholder()));
                    let id = line["task_id"].as_str().unwrap_or_default();
                    id.clone_into(&mut task.id);
                    self.ctx.send_system("task_started", line).await;
                }
                Ok(ToolStep::Beat) => {
                    self.beat(call, beats, began).await;
                    beats += 1;
                }
                Err(why) => {
                    job.abort();
                    if announced {
                        background::end_foreground(&self.ctx, &task.id, "stopped").await;
                    }
                    return Err(why);
                }
            }
        }
    }
}

enum ToolStep {
    Done(Option<Ran>),
    /// The client has moved it to the background.
    Moved,
    /// The process is to end.
    Killed,
    /// The command has taken too long.
    Late,
    /// Nobody can do that any more.
    Gone,
    Beat,
}

/// Whether a call has real effects.
fn is_real(ctx: &Context, plan: &CallPlan) -> bool {
    match plan {
        CallPlan::RunReal => true,
        CallPlan::RunSimulated => false,
        _ => ctx.config.real_tools,
    }
}

/// The result of a command that runs in the background, with what its line tells about it.
fn with_line(ctx: &Context, call: &ModelCall, mut outcome: ToolOutcome) -> ToolOutcome {
    let line = call.used["command"].as_str().unwrap_or_default();
    outcome.details["noOutputExpected"] = json!(output::is_silent(line));
    let parsed = shell::parse(line, Path::new(&ctx.config.home));
    if parsed.commands.iter().any(ShellCommand::goes) {
        let hint = format!(
            "Session cwd remains {}; directory changes made by the backgrounded command do not apply to subsequent commands.",
            ctx.cwd().display()
        );
        let said = outcome.content.as_str().unwrap_or_default();
        outcome.content = json!(format!("{said}\n{hint}"));
        outcome.details["backgroundCwdHint"] = json!(hint);
    }
    outcome
}

/// Runs a tool.
async fn execute(
    ctx: Arc<Context>,
    name: String,
    input: Value,
    id: String,
    plan: CallPlan,
    output: Output,
    by: disk::Viewer,
) -> Ran {
    if let CallPlan::Command {
        after,
        output: text,
        code,
        ..
    } = &plan
    {
        if !after.is_zero() {
            tokio::time::sleep(*after).await;
        }
        output.push(&ctx, text.as_bytes());
        return Ran {
            outcome: command_outcome("", *code, &output),
            code: *code,
        };
    }
    let real = is_real(&ctx, &plan);
    if let Some((_, run)) = ctx.config.handlers.iter().rev().find(|(tool, _)| *tool == name) {
        let outcome = run(&input);
        let code = i32::from(outcome.is_error == Some(true));
        return Ran { outcome, code };
    }
    let outcome = match name.as_str() {
        "Bash" => {
            let command = input["command"].as_str().unwrap_or_default();
            let before = disk::stale(&ctx, &by, real).await;
            let code = if real {
                bash::real_command(&ctx, command, &output, by.is_none()).await
            } else {
                bash::pretended_command(&ctx, command, &output).await
            };
            if code == 0 {
                disk::show(&ctx, &by, command, real).await;
            }
            let outcome = output::bounded(&ctx, command_outcome(command, code, &output), &output, real).await;
            let changed = disk::stale(&ctx, &by, real).await.into_iter();
            let changed = changed.filter(|path| !before.contains(path));
            let outcome = match shell::edits_in_place(command) {
                true => with_hint(&ctx, outcome, &changed.collect::<Vec<_>>()),
                false => outcome,
            };
            return Ran { outcome, code };
        }
        name if name.starts_with("mcp__") => match mcp::find(&ctx, name) {
            Some(found) => mcp::run(&ctx, &found, &input, &id).await,
            None => ToolOutcome::error(format!("No such tool available: {name}")),
        },
        "Read" => disk::read(&ctx, &by, &input, real).await,
        "Write" => disk::write(&ctx, &by, &input, real).await,
        "Edit" => disk::edit(&ctx, &by, &input, real).await,
        "TaskStop" => background::stop_by_model(&ctx, by.as_deref(), &input).await,
        "ListMcpResourcesTool" => resources::list(&ctx, &input).await,
        "ReadMcpResourceTool" => resources::read(&ctx, &input).await,
        "AskUserQuestion" => plans::answered(&input),
        "EnterPlanMode" => plans::switch(&ctx, true).await,
        "ExitPlanMode" => plans::switch(&ctx, false).await,
        _ => {
            todos::run(&ctx, &name, &input).unwrap_or_else(|| ToolOutcome::error(not_simulated::tool(&name)))
        }
    };
    let code = i32::from(outcome.is_error == Some(true));
    Ran { outcome, code }
}

/// Tells of files that the model has seen and the command has changed.
fn with_hint(ctx: &Context, mut outcome: ToolOutcome, changed: &[String]) -> ToolOutcome {
    let Some(details) = outcome.details.as_object_mut().filter(|_| !changed.is_empty()) else {
        return outcome;
    };
    let cwd = ctx.cwd();
    let names = changed.iter().map(Path::new);
    let names = names.map(|path| path.strip_prefix(&cwd).unwrap_or(path).to_string_lossy());
    let hint = format!(
        "[This command modified {} file{} you've previously read: {}. Call Read before editing.]",
        changed.len(),
        if changed.len() == 1 { "" } else { "s" },
        names.collect::<Vec<_>>().join(", ")
    );
    let stdout = details["stdout"].as_str().filter(|stdout| !stdout.is_empty());
    outcome.content = json!(stdout.map_or_else(|| hint.clone(), |stdout| format!("{stdout}\n{hint}")));
    details.insert("staleReadFileStateHint".to_owned(), json!(hint));
    outcome
}
