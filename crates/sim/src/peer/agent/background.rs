//! Commands and agents as tasks: in the foreground, in the background, and on their way from one to the other.

mod agent_commands;
mod task_stop;

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::brain::ToolOutcome;
use super::caller::ModelCall;
use super::context::{Abort, Context, StopTurn};
use super::ids::wall_ms;
use super::output::Output;
use super::subagent::{RunningSubagent, SubagentReport};
use super::tools::Ran;
use crate::fields::JsonFields as _;

use self::agent_commands::note;
pub(super) use self::agent_commands::{hand_over, has_commands, heard, leave, stop_commands_of, take_up};
pub(super) use self::task_stop::{stop_by_model, unfit};

/// A command or an agent that is known as a task.
#[derive(Default)]
pub(super) struct Task {
    pub(super) id: String,
    run_id: String,
    tool_use_id: String,
    description: String,
    /// The line of a command.
    command: String,
    /// The agent that has started the task, unless that is the main one.
    parent: Option<String>,
    pub(super) output: Output,
    /// The path of the output, which stays when the session gets another id.
    pub(super) output_file: String,
    /// The tag that the reply gave it.
    pub(super) tag: Option<u64>,
    background: bool,
    /// How the task has ended: `completed`, `failed` or `killed`.
    ended: Option<&'static str>,
    /// Whether the model is to hear of its end, which was not its own.
    told: bool,
    /// Hears when the task has written its last frame.
    over: Option<watch::Receiver<bool>>,
    job: Option<AbortHandle>,
    watcher: Option<AbortHandle>,
    to_background: Option<oneshot::Sender<()>>,
    /// The agent, if the task is one, and how it is stopped.
    agent: Option<(Arc<RunningSubagent>, StopTurn)>,
    /// What an agent has reported while commands of it still run: the end of one takes the agent up again.
    parked: Option<Box<SubagentReport>>,
}

/// What the model reads of a command in the background.
const NOTIFIED: &str = "You will be notified when it completes.";

/// What an agent reads whose report somebody waits for: its commands do not outlive it.
const TERMINATED: &str = "If it exits while you are still working you will be notified, but it is terminated when you give \
                          your final response and no notification can follow that — so do not end your turn to wait for it; if \
                          you need its result, wait for it before giving your final response.";

/// A background task has ended.
pub(super) struct Finished {
    task_id: String,
    /// The exit code of a command.
    code: Option<i32>,
    /// The report of an agent that has made one.
    report: Option<Box<SubagentReport>>,
}

/// How the host hears of the end of a task.
pub(super) struct TaskEnding {
    /// The `status` of the task's `task_notification`.
    pub(super) status: &'static str,
    /// The `status` in the patch of its `task_updated`.
    pub(super) patch: &'static str,
    pub(super) summary: String,
    /// What else the task's `task_notification` has.
    pub(super) extra: Value,
}

impl TaskEnding {
    /// Of a task that was stopped.
    pub(super) fn killed(description: &str) -> Self {
        Self {
            status: "stopped",
            patch: "killed",
            summary: description.to_owned(),
            extra: json!({}),
        }
    }

    fn of_command(description: &str, code: i32) -> Self {
        let (status, summary) = match code {
            0 => (
                "completed",
                format!("Background command \"{description}\" completed (exit code 0)"),
            ),
            code => (
                "failed",
                format!("Background command \"{description}\" failed with exit code {code}"),
            ),
        };
        Self {
            status,
            patch: status,
            summary,
            extra: json!({}),
        }
    }
}

impl Task {
    /// A command that has just begun. The receiver hears when the client wants it in the background.
    pub(super) fn new(
        ctx: &Context,
        (id, run_id): (String, String),
        call: &ModelCall,
        parent: Option<String>,
        output: &Output,
        job: &JoinHandle<Ran>,
    ) -> (Self, oneshot::Receiver<()>) {
        let (to_background, moved) = oneshot::channel();
        let text = |key: &str| call.used[key].as_str();
        let command = text("command").unwrap_or_default().to_owned();
        let task = Self {
            output_file: ctx.output_file(&id),
            id,
            run_id,
            tool_use_id: call.id.clone(),
            description: text("description").map_or_else(|| command.clone(), str::to_owned),
            command,
            parent,
            output: output.clone(),
            job: Some(job.abort_handle()),
            to_background: Some(to_background),
            ..Self::default()
        };
        (task, moved)
    }

    /// An agent that has just begun.
    pub(super) fn of_agent(
        ctx: &Context,
        agent: &Arc<RunningSubagent>,
        abort: StopTurn,
    ) -> (Self, oneshot::Receiver<()>) {
        let (to_background, moved) = oneshot::channel();
        let task = Self {
            output_file: ctx.output_file(&agent.id),
            id: agent.id.clone(),
            run_id: agent.run_id(),
            tool_use_id: agent.tool_use_id.clone(),
            description: agent.description.clone(),
            parent: agent.parent.clone(),
            background: agent.background,
            to_background: Some(to_background),
            agent: Some((agent.clone(), abort)),
            tag: agent.tag,
            ..Self::default()
        };
        task.link(ctx);
        (task, moved)
    }

    /// Takes the place of a task that has been handed over to the state.
    pub(super) fn placeholder() -> Self {
        Self {
            ended: Some("completed"),
            ..Self::default()
        }
    }

    /// What a turn that its end begins has as its origin.
    fn origin(&self) -> Value {
        json!({"kind": "task-notification", "producer": "session-task", "runId": self.run_id})
    }

    /// What hooks for prompts are told of its end.
    pub(super) fn notice(&self) -> String {
        let ended = self.ended.unwrap_or("killed");
        let what = if self.is_agent() {
            "Agent"
        } else {
            "Background command"
        };
        format!(
            "<task-notification>\n<task-id>{}</task-id>\n<tool-use-id>{}</tool-use-id>\n<output-file>{}</output-file>\n\
             <status>{ended}</status>\n<summary>{what} \"{}\" {ended}</summary>\n</task-notification>",
            self.id, self.tool_use_id, self.output_file, self.description
        )
    }

    /// Whether a turn with this origin is about it.
    pub(super) fn is_origin(&self, origin: &Value) -> bool {
        origin["runId"] == self.run_id
    }

    /// Whether the task runs in the background.
    pub(super) fn runs(&self) -> bool {
        self.background && self.ended.is_none()
    }

    /// Whether the task is an agent.
    pub(super) fn is_agent(&self) -> bool {
        self.agent.is_some()
    }

    /// Whether the task is a command of another agent than the main one.
    pub(super) fn is_owned(&self) -> bool {
        self.parent.is_some() && !self.is_agent()
    }

    /// The fields of the task's `task_started`.
    pub(super) fn started(&self, backgrounded: bool) -> Value {
        let mut started = json!({
            "task_id": self.id, "run_id": self.run_id, "tool_use_id": self.tool_use_id,
            "description": self.description, "is_backgrounded": backgrounded, "task_type": "local_bash",
        });
        if let Some(parent) = &self.parent {
            started["owned_by_subagent"] = json!(true);
            started["parent_task_id"] = json!(parent);
        }
        started
    }

    /// What hooks hear of it.
    pub(super) fn summary(&self) -> Value {
        let (kind, key, value) = match &self.agent {
            Some((agent, _)) => ("subagent", "agent_type", &agent.kind),
            None => ("shell", "command", &self.command),
        };
        json!({
            "id": self.id, "type": kind, "status": "running", "description": self.description, key: value,
        })
    }

    fn listed(&self) -> Value {
        let mut entry = json!({
            "task_id": self.id, "run_id": self.run_id, "task_type": "local_bash", "description": self.description,
        });
        if let Some((agent, _)) = &self.agent {
            entry["task_type"] = json!("local_agent");
            entry["subagent_type"] = json!(agent.kind);
        }
        entry.put("parent_task_id", self.parent.as_ref());
        entry
    }

    /// Lets the output of an agent be its conversation, if that is stored.
    fn link(&self, ctx: &Context) {
        let conversation = ctx.keep(|transcript| transcript.subagent_path(&self.id));
        let file = Path::new(&self.output_file);
        if let (true, true, Some(conversation), Some(directory)) = (
            ctx.config.real_tools,
            self.is_agent(),
            conversation,
            file.parent(),
        ) {
            // Without the link a reader finds no file, and the agent works all the same.
            let _ = fs::create_dir_all(directory);
            let _ = fs::remove_file(file);
            let _ = link(&conversation, file);
        }
    }

    fn notification(&self, ending: &TaskEnding, output_file: &str) -> Value {
        let mut line = json!({
            "task_id": self.id, "run_id": self.run_id, "tool_use_id": self.tool_use_id, "status": ending.status,
            "output_file": output_file, "summary": ending.summary,
        });
        line.put("owned_by_subagent", self.is_owned().then_some(true));
        line.merge(ending.extra.clone());
        line
    }

    fn updated(&self, ending: &TaskEnding, ctx: &Context) -> Value {
        let mut patch = json!({"status": ending.patch, "end_time": wall_ms(ctx.log.elapsed())});
        if self.is_agent() && ending.status == "failed" {
            patch["error"] = json!(ending.summary);
        }
        json!({"task_id": self.id, "run_id": self.run_id, "patch": patch})
    }
}

/// The list of what runs in the background.
pub(super) async fn send_list(ctx: &Context) {
    let tasks: Vec<Value> = {
        let state = ctx.state();
        let running = state.tasks.iter().filter(|task| task.runs());
        running.map(Task::listed).collect()
    };
    ctx.send_system("background_tasks_changed", json!({"tasks": tasks}))
        .await;
}

/// Puts a task into the background from the start.
pub(super) async fn start(ctx: &Arc<Context>, mut task: Task, job: JoinHandle<Ran>) -> ToolOutcome {
    let (id, started) = (task.id.clone(), task.started(true));
    task.background = true;
    task.output.keep(ctx);
    let text = format!(
        "Command running in background with ID: {id}. Output is being written to: {}. {} To check interim output, use Read on \
         that file path.",
        task.output_file,
        notice(&ctx.state().tasks, &task)
    );
    task.watcher = Some(watch(ctx, &id, job));
    ctx.state().tasks.push(task);
    send_list(ctx).await;
    ctx.send_system("task_started", started).await;
    outcome(text, &id)
}

/// Continues in the background, at the client's request.
pub(super) async fn moved(ctx: &Arc<Context>, id: &str, job: JoinHandle<Ran>) -> ToolOutcome {
    let (output, text) = {
        let state = ctx.state();
        let Some(task) = state.task(id) else {
            return ToolOutcome::error("the command was killed");
        };
        let mut text = format!(
            "Command was manually backgrounded by user with ID: {id}. Output is being written to: {}.",
            task.output_file
        );
        if notice(&state.tasks, task) == TERMINATED {
            text.push(' ');
            text.push_str(TERMINATED);
        }
        (task.output.clone(), text)
    };
    output.keep(ctx);
    let watcher = watch(ctx, id, job);
    if let Some(task) = ctx.state().task_mut(id) {
        task.watcher = Some(watcher);
    }
    let mut outcome = outcome(text, id);
    outcome.details["backgroundedByUser"] = json!(true);
    outcome
}

/// What the model reads of the end of a command with this id.
pub(super) fn notice_of(ctx: &Context, id: &str) -> &'static str {
    let state = ctx.state();
    state.task(id).map_or(NOTIFIED, |task| notice(&state.tasks, task))
}

/// What the model reads of the end of a command.
fn notice(tasks: &[Task], command: &Task) -> &'static str {
    let waited_for = |task: &Task| {
        let agent = task.agent.as_ref().filter(|(agent, _)| !agent.background);
        agent.is_some() && Some(&task.id) == command.parent.as_ref()
    };
    match tasks.iter().any(waited_for) {
        true => TERMINATED,
        false => NOTIFIED,
    }
}

fn outcome(text: String, id: &str) -> ToolOutcome {
    let mut outcome = ToolOutcome::text(text);
    outcome.is_error = Some(false);
    outcome.with_details(json!({
        "stdout": "", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
        "backgroundTaskId": id,
    }))
}

fn watch(ctx: &Arc<Context>, id: &str, job: JoinHandle<Ran>) -> AbortHandle {
    let (finished, task_id) = (ctx.finished.clone(), id.to_owned());
    let watcher = tokio::spawn(async move {
        let ended = Finished {
            task_id,
            code: Some(job.await.map_or(137, |ran| ran.code)),
            report: None,
        };
        let _ = finished.send(ended).await;
    });
    watcher.abort_handle()
}

/// Puts an agent into the background from the start.
pub(super) async fn start_agent(ctx: &Context, task: Task, started: Value, job: JoinHandle<SubagentReport>) {
    let id = task.id.clone();
    ctx.state().tasks.push(task);
    watch_agent(ctx, &id, job);
    send_list(ctx).await;
    ctx.send_system("task_started", started).await;
}

/// The result of this call is written: an agent that it has started goes on.
pub(super) fn launched(ctx: &Context, tool_use_id: &str) {
    let state = ctx.state();
    let mut tasks = state.tasks.iter();
    let task = tasks.find(|task| task.tool_use_id == tool_use_id);
    if let Some((agent, _)) = task.and_then(|task| task.agent.as_ref()) {
        agent.launched.notify_one();
    }
}

/// Waits for an agent in the background.
pub(super) fn watch_agent(ctx: &Context, id: &str, job: JoinHandle<SubagentReport>) {
    let (finished, task_id) = (ctx.finished.clone(), id.to_owned());
    let (is_over, over) = watch::channel(false);
    if let Some(task) = ctx.state().task_mut(id) {
        task.over = Some(over);
    }
    tokio::spawn(async move {
        let ended = Finished {
            task_id,
            code: None,
            report: job.await.ok().map(Box::new),
        };
        is_over.send_replace(true);
        let _ = finished.send(ended).await;
    });
}

/// An agent in the foreground is over.
pub(super) async fn end_agent(ctx: &Context, id: &str, ending: &TaskEnding) {
    let lines = {
        let mut state = ctx.state();
        // One that was stopped has ended already.
        let Some(task) = state.task_mut(id).filter(|task| task.ended.is_none()) else {
            return;
        };
        task.ended = Some(ending.patch);
        (
            task.updated(ending, ctx),
            task.notification(ending, &task.output_file),
        )
    };
    ctx.send_system("task_updated", lines.0).await;
    ctx.send_system("task_notification", lines.1).await;
}

/// Ends a background task: reports it, and starts a turn, or goes on with the agent that has started it.
pub(super) async fn finish(ctx: &Context, finished: Finished) {
    let id = finished.task_id;
    let (agent, runs) = {
        let mut state = ctx.state();
        let Some(task) = state.task_mut(&id) else {
            return;
        };
        let origin = std::mem::take(&mut task.told).then(|| task.origin());
        let found = (task.agent.as_ref().map(|(agent, _)| agent.clone()), task.runs());
        state.wakes.extend(origin);
        found
    };
    let waits = agent.as_ref().is_some_and(|agent| agent.background);
    let report = finished.report;
    let fails = report.as_ref().is_some_and(|report| report.end.is_some());
    if agent.is_some() && (!runs || !waits || fails) {
        stop_commands_of(ctx, &id).await;
    }
    if !runs {
        return;
    }
    let has_commands = has_commands(ctx, &id);
    let ending = match (&report, &agent) {
        (Some(report), Some(agent)) => Some(report.in_background(ctx, agent, !has_commands)),
        _ => None,
    };
    let (lines, output) = {
        let mut state = ctx.state();
        let works = |parent: &String| state.task(parent).is_some_and(|task| task.ended.is_none());
        let parent = state.task(&id).and_then(|task| task.parent.clone());
        // An agent that still works hears of it instead of the main one.
        let is_heard_below = parent.is_some_and(|parent| agent.is_none() || works(&parent));
        let Some(task) = state.task_mut(&id) else {
            return;
        };
        let ending = ending.unwrap_or_else(|| match finished.code {
            Some(code) => TaskEnding::of_command(&task.description, code),
            None => TaskEnding::killed(&task.description),
        });
        task.ended = Some(ending.patch);
        task.parked = report.filter(|_| has_commands);
        let lines = (
            task.updated(&ending, ctx),
            task.notification(&ending, &task.output_file),
        );
        let (origin, output) = (task.origin(), task.output.clone());
        match is_heard_below {
            true => note(&mut state, &id),
            false => state.wakes.push_back(origin),
        }
        (lines, output)
    };
    if let Some(code) = finished.code {
        output.end(ctx, &format!("exited with code {code}"));
    }
    ctx.send_system("task_updated", lines.0).await;
    ctx.send_system("task_notification", lines.1).await;
    send_list(ctx).await;
}

/// A foreground command that had been announced is over.
pub(super) async fn end_foreground(ctx: &Context, id: &str, status: &'static str) {
    let notification = {
        let mut state = ctx.state();
        let Some(task) = state.task_mut(id) else {
            return;
        };
        task.ended = Some("completed");
        let ending = TaskEnding {
            status,
            ..TaskEnding::killed(&task.description)
        };
        task.notification(&ending, "")
    };
    ctx.send_system("task_notification", notification).await;
}

/// Moves the foreground commands that have been announced to the background.
pub(super) async fn move_all(ctx: &Context) {
    for agents in [false, true] {
        let updates: Vec<Value> = {
            let mut state = ctx.state();
            let tasks = state.tasks.iter_mut();
            let foreground =
                tasks.filter(|task| !task.background && task.ended.is_none() && task.is_agent() == agents);
            foreground
                .filter_map(|task| {
                    task.to_background.take()?.send(()).ok()?;
                    task.background = true;
                    Some(json!({"task_id": task.id, "run_id": task.run_id, "patch": {"is_backgrounded": true}}))
                })
                .collect()
        };
        if !updates.is_empty() {
            send_list(ctx).await;
            for update in updates {
                ctx.send_system("task_updated", update).await;
            }
        }
    }
}

/// Who stops a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoppedBy {
    Host,
    Model,
    /// The end of something else. The model does not hear of it.
    System,
}

/// Kills a background task, or an agent in the foreground.
pub(super) async fn stop(ctx: &Context, id: &str, by: StoppedBy) {
    let (lines, listed, was_parked, output) = {
        let mut state = ctx.state();
        let Some(task) = state.task_mut(id).filter(|task| task.can_stop()) else {
            return;
        };
        task.ended = Some("killed");
        let was_parked = task.parked.take().is_some();
        let is_agent = task.is_agent();
        task.told = is_agent && !was_parked && by != StoppedBy::System;
        task.kill();
        let ending = TaskEnding::killed(&task.description);
        let lines = (
            task.updated(&ending, ctx),
            task.notification(&ending, &task.output_file),
        );
        let (listed, output) = (task.background, task.output.clone());
        let stats = &mut state.subagents;
        match by {
            // Who waits for the agent counts it.
            _ if !is_agent || !listed => {}
            StoppedBy::Host => stats.killed_by_user += 1,
            StoppedBy::Model => stats.killed_by_parent += 1,
            StoppedBy::System => stats.killed_by_system += 1,
        }
        (lines, listed, was_parked, output)
    };
    if was_parked {
        // The host has its report already.
        ctx.send_system("task_updated", lines.0).await;
        return Box::pin(stop_commands_of(ctx, id)).await;
    }
    output.end(ctx, "killed");
    ctx.withdraw_of(id).await;
    ctx.send_system("task_updated", lines.0).await;
    ctx.send_system("task_notification", lines.1).await;
    if listed {
        send_list(ctx).await;
    }
    note(&mut ctx.state(), id);
}

fn running(ctx: &Context, is_wanted: fn(&Task) -> bool) -> Vec<String> {
    let state = ctx.state();
    let tasks = state.tasks.iter();
    let tasks = tasks.filter(|task| (task.runs() || task.parked.is_some()) && is_wanted(task));
    tasks.map(|task| task.id.clone()).collect()
}

/// Kills the agents in the background.
pub(super) async fn stop_agents(ctx: &Context) {
    for id in running(ctx, Task::is_agent) {
        stop(ctx, &id, StoppedBy::System).await;
    }
}

/// Kills the commands in the background, at the end: no agent goes on because of it.
pub(super) async fn stop_commands(ctx: &Context) {
    ctx.state().tasks.iter_mut().for_each(|task| task.parked = None);
    for id in running(ctx, |task| !task.is_agent()) {
        stop(ctx, &id, StoppedBy::System).await;
    }
}

/// Waits until agents in the background that were stopped have written their last frame.
pub(super) async fn last_words(ctx: &Context) {
    let stopped: Vec<_> = {
        let state = ctx.state();
        let stopped = state.tasks.iter().filter(|task| task.ended.is_some());
        stopped.filter_map(|task| task.over.clone()).collect()
    };
    for mut over in stopped {
        // One whose watcher has gone is over.
        let _ = over.wait_for(|over| *over).await;
    }
}

/// Kills the commands in the background, at a signal: the host hears of each.
pub(super) async fn terminate(ctx: &Context) {
    let killed: Vec<_> = {
        let state = &mut *ctx.state();
        let tasks = state.tasks.iter_mut();
        let commands = tasks.filter(|task| task.runs() && !task.is_agent());
        let kill = |task: &mut Task| {
            task.kill();
            let ending = TaskEnding::killed(&task.description);
            // At the end of the process the CLI names no file.
            let lines = (task.notification(&ending, ""), task.updated(&ending, ctx));
            (task.id.clone(), task.output.clone(), lines)
        };
        commands.map(kill).collect()
    };
    for (_, output, (notification, _)) in &killed {
        output.end(ctx, "killed");
        ctx.send_system("task_notification", notification.clone()).await;
    }
    for (id, _, (_, updated)) in killed {
        if let Some(task) = ctx.state().task_mut(&id) {
            task.ended = Some("killed");
        }
        ctx.send_system("task_updated", updated).await;
        send_list(ctx).await;
    }
}

/// Lets the outputs of agents be what they store under another id of the session.
pub(super) fn link_agents(ctx: &Context) {
    for task in ctx.state().tasks.iter().filter(|task| task.runs()) {
        task.link(ctx);
    }
}

/// The output of a command so far.
pub(super) fn output(ctx: &Context, id: &str) -> Option<String> {
    let state = ctx.state();
    let task = state.task(id).filter(|task| !task.is_agent())?;
    Some(task.output.text())
}

/// Kills everything, at the end of the process, and takes away what is empty of the directories for outputs.
pub(super) fn stop_all(ctx: &Context) {
    {
        let mut state = ctx.state();
        for task in &mut state.tasks {
            task.kill();
            task.parked = None;
        }
        for connecting in state.connecting.drain(..) {
            connecting.abort();
        }
    }
    if ctx.config.real_tools {
        let file = ctx.output_file("");
        let directories = Path::new(&file).ancestors().skip(1).take(3);
        directories.for_each(|directory| drop(fs::remove_dir(directory)));
    }
}

impl Task {
    /// Whether the model means the task by this id or name.
    fn is_called(&self, named: &str) -> bool {
        let name = self.agent.as_ref().and_then(|(agent, _)| agent.name.as_deref());
        self.id == named || name == Some(named)
    }

    /// Whether there is something to stop: a task that runs, or an agent that waits for its commands.
    fn can_stop(&self) -> bool {
        let runs = self.ended.is_none() && (self.background || self.is_agent());
        runs || self.parked.is_some()
    }

    fn kill(&mut self) {
        for handle in [self.watcher.take(), self.job.take()].into_iter().flatten() {
            handle.abort();
        }
        // An agent writes its last frame before it ends.
        if let Some((_, abort)) = &self.agent {
            abort.send_replace(Some(Abort::Killed));
        }
    }
}

#[cfg(unix)]
fn link(to: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, path)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
