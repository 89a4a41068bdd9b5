//! `TaskStop`, by which the model stops a task.

use serde_json::{Value, json};

use super::{StoppedBy, stop};
use crate::peer::agent::brain::ToolOutcome;
use crate::peer::agent::context::Context;

/// Why the model cannot stop this task; none if it can.
pub(in crate::peer::agent) fn unfit(ctx: &Context, input: &Value) -> Option<String> {
    let Some(named) = stopped_id(input) else {
        return Some("Missing required parameter: task_id".to_owned());
    };
    let (state, id) = (ctx.state(), named.trim());
    let mut tasks = state.tasks.iter();
    match tasks.find(|task| task.is_called(named) && task.background) {
        Some(task) if task.can_stop() => None,
        // The CLI forgets commands that have ended.
        Some(task) if task.is_agent() => {
            let status = task.ended.unwrap_or_default();
            Some(format!("Task {id} is not running (status: {status})"))
        }
        _ => Some(format!("No task found with ID: {id}")),
    }
}

/// Stops a task for the model.
pub(in crate::peer::agent) async fn stop_by_model(
    ctx: &Context,
    by: Option<&str>,
    input: &Value,
) -> ToolOutcome {
    let named = stopped_id(input).unwrap_or_default();
    let (id, kind, line, refused) = {
        let state = ctx.state();
        let Some(task) = state.tasks.iter().find(|task| task.is_called(named)) else {
            return ToolOutcome::error(format!("No task found with ID: {named}"));
        };
        let id = task.id.clone();
        let owner = task.parent.as_deref();
        let refused = match by {
            Some(by) if task.is_agent() && by != id => Some(format!(
                "The main session, the user or the agent itself can stop task {id}; agent {by} cannot stop it."
            )),
            Some(by) if !task.is_agent() && owner != Some(by) => {
                let owner = owner.map_or("main session".to_owned(), |owner| format!("agent {owner}"));
                Some(format!(
                    "Task {id} is owned by {owner}; agent {by} cannot stop it."
                ))
            }
            _ => None,
        };
        match task.is_agent() {
            true => (id, "local_agent", task.description.clone(), refused),
            false => (id, "local_bash", task.command.clone(), refused),
        }
    };
    if let Some(refused) = refused {
        return ToolOutcome::error(refused);
    }
    stop(ctx, &id, StoppedBy::Model).await;
    let details = json!({
        "message": format!("Successfully stopped task: {id} ({line})"), "task_id": id, "task_type": kind, "command": line,
    });
    ToolOutcome::text(details.to_string()).with_details(details)
}

/// The task that the model means, by the present name of the parameter or by its old one.
fn stopped_id(input: &Value) -> Option<&str> {
    let id = input["task_id"].as_str().or(input["shell_id"].as_str());
    id.filter(|id| !id.is_empty())
}
