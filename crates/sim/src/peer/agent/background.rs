//! Commands as tasks: in the foreground, in the background, and on their way from one to the other.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

use super::brain::Outcome;
use super::context::Context;
use super::ids::wall_ms;
use super::tools::{Output, Ran};

/// A command that is known as a task.
pub(super) struct Task {
    pub(super) id: String,
    run_id: String,
    tool_use_id: String,
    description: String,
    pub(super) output: Output,
    /// What the reply that started it calls it.
    pub(super) tag: Option<u64>,
    background: bool,
    done: bool,
    job: Option<AbortHandle>,
    watcher: Option<AbortHandle>,
    to_background: Option<oneshot::Sender<()>>,
}

/// A background task has come to its end.
pub(super) struct Finished {
    task_id: String,
    code: i32,
}

impl Task {
    /// A command that has just begun. The receiver hears when the client wants it in the background.
    pub(super) fn new(
        ctx: &Context,
        tool_use_id: &str,
        description: &str,
        output: &Output,
        job: &JoinHandle<Ran>,
    ) -> (Self, oneshot::Receiver<()>) {
        let (id, run_id) = ctx.state().ids.task();
        let (to_background, moved) = oneshot::channel();
        let task = Self {
            id,
            run_id,
            tool_use_id: tool_use_id.to_owned(),
            description: description.to_owned(),
            output: output.clone(),
            tag: None,
            background: false,
            done: false,
            job: Some(job.abort_handle()),
            watcher: None,
            to_background: Some(to_background),
        };
        (task, moved)
    }

    /// Takes the place of a task that has been handed over to the state.
    pub(super) fn placeholder() -> Self {
        Self {
            id: String::new(),
            run_id: String::new(),
            tool_use_id: String::new(),
            description: String::new(),
            output: Output::default(),
            tag: None,
            background: false,
            done: true,
            job: None,
            watcher: None,
            to_background: None,
        }
    }

    /// Whether a turn with this origin is about it.
    pub(super) fn is_origin(&self, origin: &Value) -> bool {
        origin["runId"] == self.run_id
    }

    /// Whether it runs in the background.
    pub(super) fn runs(&self) -> bool {
        self.background && !self.done
    }

    /// The fields of its `task_started`.
    pub(super) fn started(&self, backgrounded: bool) -> Value {
        json!({
            "task_id": self.id, "run_id": self.run_id, "tool_use_id": self.tool_use_id,
            "description": self.description, "is_backgrounded": backgrounded, "task_type": "local_bash",
        })
    }

    fn notification(&self, status: &str, output_file: &str, summary: &str) -> Value {
        json!({
            "task_id": self.id, "run_id": self.run_id, "tool_use_id": self.tool_use_id, "status": status,
            "output_file": output_file, "summary": summary,
        })
    }
}

/// The list of what runs in the background.
pub(super) async fn send_list(ctx: &Context) {
    let tasks: Vec<Value> = {
        let state = ctx.state();
        let running = state.tasks.iter().filter(|task| task.runs());
        running
            .map(|task| {
                json!({
                    "task_id": task.id, "run_id": task.run_id, "task_type": "local_bash",
                    "description": task.description,
                })
            })
            .collect()
    };
    ctx.send_system("background_tasks_changed", json!({"tasks": tasks}))
        .await;
}

/// Puts a task into the background from the start.
pub(super) async fn start(ctx: &Arc<Context>, mut task: Task, job: JoinHandle<Ran>) -> Outcome {
    let (id, started) = (task.id.clone(), task.started(true));
    task.background = true;
    task.watcher = Some(watch(ctx, &id, job));
    ctx.state().tasks.push(task);
    send_list(ctx).await;
    ctx.send_system("task_started", started).await;
    let text = format!(
        "Command running in background with ID: {id}. Output is being written to: {}. You will be notified when it \
         completes. To check interim output, use Read on that file path.",
        ctx.output_file(&id)
    );
    outcome(text, &id)
}

/// Goes on in the background, as the client has asked.
pub(super) async fn moved(ctx: &Arc<Context>, id: &str, job: JoinHandle<Ran>) -> Outcome {
    let watcher = watch(ctx, id, job);
    if let Some(task) = ctx.state().tasks.iter_mut().find(|task| task.id == id) {
        task.watcher = Some(watcher);
    }
    let text = format!(
        "Command was manually backgrounded by user with ID: {id}. Output is being written to: {}.",
        ctx.output_file(id)
    );
    outcome(text, id)
}

fn outcome(text: String, id: &str) -> Outcome {
    let mut outcome = Outcome::text(text);
    outcome.is_error = Some(false);
    outcome.with_details(json!({
        "stdout": "", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
        "backgroundTaskId": id,
    }))
}

fn watch(ctx: &Arc<Context>, id: &str, job: JoinHandle<Ran>) -> AbortHandle {
    let (finished, task_id) = (ctx.finished.clone(), id.to_owned());
    let watcher = tokio::spawn(async move {
        let code = job.await.map_or(137, |ran| ran.code);
        let _ = finished.send(Finished { task_id, code }).await;
    });
    watcher.abort_handle()
}

/// A background task is over: tells so, and wakes a turn.
pub(super) async fn finish(ctx: &Context, finished: Finished) {
    let status = if finished.code == 0 { "completed" } else { "failed" };
    let file = ctx.output_file(&finished.task_id);
    let lines = {
        let mut state = ctx.state();
        let end = wall_ms(ctx.log.elapsed());
        let Some(task) = state
            .tasks
            .iter_mut()
            .find(|task| task.id == finished.task_id && task.runs())
        else {
            return;
        };
        task.done = true;
        let patch = json!({"status": status, "end_time": end});
        let updated = json!({"task_id": task.id, "run_id": task.run_id, "patch": patch});
        let summary = match finished.code {
            0 => format!(
                "Background command \"{}\" completed (exit code 0)",
                task.description
            ),
            code => format!(
                "Background command \"{}\" failed with exit code {code}",
                task.description
            ),
        };
        let notification = task.notification(status, &file, &summary);
        let origin = json!({"kind": "task-notification", "producer": "session-task", "runId": task.run_id});
        state.wakes.push_back(origin);
        (updated, notification)
    };
    ctx.send_system("task_updated", lines.0).await;
    ctx.send_system("task_notification", lines.1).await;
    send_list(ctx).await;
}

/// A foreground command that had been announced is over.
pub(super) async fn end_foreground(ctx: &Context, id: &str, status: &str) {
    let notification = {
        let mut state = ctx.state();
        let Some(task) = state.tasks.iter_mut().find(|task| task.id == id) else {
            return;
        };
        task.done = true;
        task.notification(status, "", &task.description)
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

/// Kills a background task.
pub(super) async fn stop(ctx: &Context, id: &str) {
    let file = ctx.output_file(id);
    let lines = {
        let mut state = ctx.state();
        let end = wall_ms(ctx.log.elapsed());
        let Some(task) = state.tasks.iter_mut().find(|task| task.id == id && task.runs()) else {
            return;
        };
        task.done = true;
        task.kill();
        let patch = json!({"status": "killed", "end_time": end});
        let updated = json!({"task_id": task.id, "run_id": task.run_id, "patch": patch});
        (updated, task.notification("stopped", &file, &task.description))
    };
    ctx.send_system("task_updated", lines.0).await;
    ctx.send_system("task_notification", lines.1).await;
    send_list(ctx).await;
}

/// What a task has written so far.
pub(super) fn output(ctx: &Context, id: &str) -> Option<String> {
    let state = ctx.state();
    let task = state.tasks.iter().find(|task| task.id == id)?;
    let output = task
        .output
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    Some(output.clone())
}

/// Kills everything, at the end of the process.
pub(super) fn stop_all(ctx: &Context) {
    let mut state = ctx.state();
    for task in &mut state.tasks {
        task.kill();
    }
    for connecting in state.connecting.drain(..) {
        connecting.abort();
    }
}

impl Task {
    fn kill(&mut self) {
        for handle in [self.watcher.take(), self.job.take()].into_iter().flatten() {
            handle.abort();
        }
    }
}
