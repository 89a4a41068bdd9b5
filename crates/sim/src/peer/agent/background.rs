//! Commands and agents as tasks: in the foreground, in the background, and on their way from one to the other.

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

/// A command or an agent that is known as a task.
#[derive(Default)]
pub(super) struct Task {
    pub(super) id: String,
    run_id: String,
    tool_use_id: String,
    description: String,
    pub(super) output: Output,
    /// The path of the output, which stays when the session gets another id.
    pub(super) output_file: String,
    /// The tag that the reply gave it.
    pub(super) tag: Option<u64>,
    background: bool,
    done: bool,
    /// Whether the model is to hear of its end, which was not its own.
    told: bool,
    /// Hears when the task has written its last frame.
    over: Option<watch::Receiver<bool>>,
    job: Option<AbortHandle>,
    watcher: Option<AbortHandle>,
    to_background: Option<oneshot::Sender<()>>,
    /// The agent, if the task is one, and how it is stopped.
    agent: Option<(Arc<RunningSubagent>, StopTurn)>,
}

/// A background task has ended.
pub(super) struct Finished {
    task_id: String,
    ended: TaskResult,
}

/// The result of a background task.
enum TaskResult {
    Command(i32),
    Agent(Option<Box<SubagentReport>>),
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
        description: &str,
        output: &Output,
        job: &JoinHandle<Ran>,
    ) -> (Self, oneshot::Receiver<()>) {
        let (to_background, moved) = oneshot::channel();
        let task = Self {
            output_file: ctx.output_file(&id),
            id,
            run_id,
            tool_use_id: call.id.clone(),
            description: description.to_owned(),
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
            run_id: agent.run_id.clone(),
            tool_use_id: agent.tool_use_id.clone(),
            description: agent.description.clone(),
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
            done: true,
            ..Self::default()
        }
    }

    /// What a turn that its end begins has as its origin.
    fn origin(&self) -> Value {
        json!({"kind": "task-notification", "producer": "session-task", "runId": self.run_id})
    }

    /// Whether a turn with this origin is about it.
    pub(super) fn is_origin(&self, origin: &Value) -> bool {
        origin["runId"] == self.run_id
    }

    /// Whether the task runs in the background.
    pub(super) fn runs(&self) -> bool {
        self.background && !self.done
    }

    /// Whether the task is an agent.
    pub(super) fn is_agent(&self) -> bool {
        self.agent.is_some()
    }

    /// The fields of the task's `task_started`.
    pub(super) fn started(&self, backgrounded: bool) -> Value {
        json!({
            "task_id": self.id, "run_id": self.run_id, "tool_use_id": self.tool_use_id,
            "description": self.description, "is_backgrounded": backgrounded, "task_type": "local_bash",
        })
    }

    /// What hooks hear of it.
    pub(super) fn summary(&self) -> Value {
        let (kind, agent) = match &self.agent {
            Some((agent, _)) => ("local_agent", Some(&agent.kind)),
            None => ("local_bash", None),
        };
        let mut entry = json!({
            "id": self.id, "type": kind, "status": "running", "description": self.description,
        });
        if let Some(agent) = agent {
            entry["agent_type"] = json!(agent);
        }
        entry
    }

    fn listed(&self) -> Value {
        let mut entry = json!({
            "task_id": self.id, "run_id": self.run_id, "task_type": "local_bash", "description": self.description,
        });
        if let Some((agent, _)) = &self.agent {
            entry["task_type"] = json!("local_agent");
            entry["subagent_type"] = json!(agent.kind);
        }
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
        if let (Some(line), Some(extra)) = (line.as_object_mut(), ending.extra.as_object()) {
            line.extend(extra.clone());
        }
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
        "Command running in background with ID: {id}. Output is being written to: {}. You will be notified when it \
         completes. To check interim output, use Read on that file path.",
        task.output_file
    );
    task.watcher = Some(watch(ctx, &id, job));
    ctx.state().tasks.push(task);
    send_list(ctx).await;
    ctx.send_system("task_started", started).await;
    outcome(text, &id)
}

/// Continues in the background, at the client's request.
pub(super) async fn moved(ctx: &Arc<Context>, id: &str, job: JoinHandle<Ran>) -> ToolOutcome {
    let found = {
        let state = ctx.state();
        let task = state.tasks.iter().find(|task| task.id == id);
        task.map(|task| (task.output.clone(), task.output_file.clone()))
    };
    let (output, file) = found.unwrap_or_default();
    output.keep(ctx);
    let watcher = watch(ctx, id, job);
    if let Some(task) = ctx.state().tasks.iter_mut().find(|task| task.id == id) {
        task.watcher = Some(watcher);
    }
    let text = format!(
        "Command was manually backgrounded by user with ID: {id}. Output is being written to: {file}."
    );
    let mut outcome = outcome(text, id);
    outcome.details["backgroundedByUser"] = json!(true);
    outcome
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
        let ended = TaskResult::Command(job.await.map_or(137, |ran| ran.code));
        let _ = finished.send(Finished { task_id, ended }).await;
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
    if let Some(task) = ctx.state().tasks.iter_mut().find(|task| task.id == id) {
        task.over = Some(over);
    }
    tokio::spawn(async move {
        let ended = TaskResult::Agent(job.await.ok().map(Box::new));
        is_over.send_replace(true);
        let _ = finished.send(Finished { task_id, ended }).await;
    });
}

/// An agent in the foreground is over.
pub(super) async fn end_agent(ctx: &Context, id: &str, ending: &TaskEnding) {
    let lines = {
        let mut state = ctx.state();
        // One that was stopped has ended already.
        let mut tasks = state.tasks.iter_mut();
        let Some(task) = tasks.find(|task| task.id == id && !task.done) else {
            return;
        };
        task.done = true;
        (
            task.updated(ending, ctx),
            task.notification(ending, &task.output_file),
        )
    };
    ctx.send_system("task_updated", lines.0).await;
    ctx.send_system("task_notification", lines.1).await;
}

/// Ends a background task: reports it, and starts a turn.
pub(super) async fn finish(ctx: &Context, finished: Finished) {
    let agent = {
        let mut state = ctx.state();
        let mut tasks = state.tasks.iter_mut();
        let Some(task) = tasks.find(|task| task.id == finished.task_id) else {
            return;
        };
        if !task.runs() {
            let origin = std::mem::take(&mut task.told).then(|| task.origin());
            state.wakes.extend(origin);
            return;
        }
        task.agent.as_ref().map(|(agent, _)| agent.clone())
    };
    let ending = match (&finished.ended, agent) {
        (TaskResult::Agent(Some(report)), Some(agent)) => Some(report.in_background(ctx, &agent)),
        _ => None,
    };
    let (lines, output) = {
        let mut state = ctx.state();
        let Some(task) = state.tasks.iter_mut().find(|task| task.id == finished.task_id) else {
            return;
        };
        task.done = true;
        let output = task.output.clone();
        let ending = ending.unwrap_or_else(|| match finished.ended {
            TaskResult::Command(code) => TaskEnding::of_command(&task.description, code),
            TaskResult::Agent(_) => TaskEnding::killed(&task.description),
        });
        let lines = (
            task.updated(&ending, ctx),
            task.notification(&ending, &task.output_file),
        );
        let origin = task.origin();
        state.wakes.push_back(origin);
        (lines, output)
    };
    if let TaskResult::Command(code) = finished.ended {
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
        let Some(task) = state.tasks.iter_mut().find(|task| task.id == id) else {
            return;
        };
        task.done = true;
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
    let updates: Vec<Value> = {
        let mut state = ctx.state();
        let foreground = state
            .tasks
            .iter_mut()
            .filter(|task| !task.background && !task.done);
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

/// Kills a background task, or an agent in the foreground. The model is told of an agent if it is to be.
pub(super) async fn stop(ctx: &Context, id: &str, told: bool) {
    let (lines, listed, output) = {
        let mut state = ctx.state();
        let mut tasks = state.tasks.iter_mut();
        let Some(task) =
            tasks.find(|task| task.id == id && !task.done && (task.background || task.is_agent()))
        else {
            return;
        };
        task.done = true;
        task.told = told && task.is_agent();
        task.kill();
        let ending = TaskEnding::killed(&task.description);
        let lines = (
            task.updated(&ending, ctx),
            task.notification(&ending, &task.output_file),
        );
        let (listed, is_told) = (task.background, task.told);
        let output = task.output.clone();
        // Who waits for the agent counts it.
        state.subagents.killed_by_user += u64::from(listed && is_told);
        (lines, listed, output)
    };
    output.end(ctx, "killed");
    ctx.withdraw_of(id).await;
    ctx.send_system("task_updated", lines.0).await;
    ctx.send_system("task_notification", lines.1).await;
    if listed {
        send_list(ctx).await;
    }
}

fn running(ctx: &Context, is_wanted: fn(&Task) -> bool) -> Vec<String> {
    let state = ctx.state();
    let tasks = state.tasks.iter().filter(|task| task.runs() && is_wanted(task));
    tasks.map(|task| task.id.clone()).collect()
}

/// Kills the agents in the background.
pub(super) async fn stop_agents(ctx: &Context) {
    for id in running(ctx, Task::is_agent) {
        ctx.state().subagents.killed_by_system += 1;
        stop(ctx, &id, false).await;
    }
}

/// Kills the commands in the background.
pub(super) async fn stop_commands(ctx: &Context) {
    for id in running(ctx, |task| !task.is_agent()) {
        stop(ctx, &id, false).await;
    }
}

/// Waits until agents in the background that were stopped have written their last frame.
pub(super) async fn last_words(ctx: &Context) {
    let stopped: Vec<_> = {
        let state = ctx.state();
        let stopped = state.tasks.iter().filter(|task| task.done);
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
        if let Some(task) = ctx.state().tasks.iter_mut().find(|task| task.id == id) {
            task.done = true;
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

/// The output of a task so far.
pub(super) fn output(ctx: &Context, id: &str) -> Option<String> {
    let state = ctx.state();
    let task = state
        .tasks
        .iter()
        .find(|task| task.id == id && !task.is_agent())?;
    Some(task.output.text())
}

/// Kills everything, at the end of the process, and takes away what is empty of the directories for outputs.
pub(super) fn stop_all(ctx: &Context) {
    {
        let mut state = ctx.state();
        for task in &mut state.tasks {
            task.kill();
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
    fn kill(&mut self) {
        for handle in [self.watcher.take(), self.job.take()].into_iter().flatten() {
            handle.abort();
        }
        // An agent writes its last frame before it ends.
        if let Some((_, abort)) = &self.agent {
            abort.send_replace(Some(Abort::Interrupt));
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
