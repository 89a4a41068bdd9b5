//! What agents run in the background: their commands, and the agents that they have started.

use super::{StoppedBy, Task, TaskEnding, end_agent, send_list, stop, watch_agent};
use crate::peer::agent::context::{AgentState, Context};
use crate::peer::agent::subagent::{self, RunningSubagent};
use crate::peer::agent::turn::Turn;

/// The commands of an agent that run in the background.
fn commands_of(ctx: &Context, agent: &str) -> Vec<String> {
    let state = ctx.state();
    let is_of = |task: &&Task| task.runs() && !task.is_agent() && task.parent.as_deref() == Some(agent);
    let tasks = state.tasks.iter().filter(is_of);
    tasks.map(|task| task.id.clone()).collect()
}

/// Kills the commands of an agent that run in the background.
pub(in crate::peer::agent) async fn stop_commands_of(ctx: &Context, agent: &str) {
    for id in commands_of(ctx, agent) {
        stop(ctx, &id, StoppedBy::System).await;
    }
}

/// Whether commands of an agent run in the background.
pub(in crate::peer::agent) fn has_commands(ctx: &Context, agent: &str) -> bool {
    !commands_of(ctx, agent).is_empty()
}

/// Ends an agent that was stopped with the turn, and its commands.
pub(in crate::peer::agent) async fn leave(ctx: &Context, id: &str) {
    stop_commands_of(ctx, id).await;
    let ending = {
        let state = ctx.state();
        state.task(id).map(|task| TaskEnding::killed(&task.description))
    };
    if let Some(ending) = ending {
        end_agent(ctx, id, &ending).await;
    }
}

impl Turn {
    /// Ends the agents that were stopped with the turn of the main one.
    pub(in crate::peer::agent) async fn let_go(&self) {
        if self.agent.is_none() {
            let leaving = std::mem::take(&mut self.ctx.state().leaving);
            for id in leaving {
                leave(&self.ctx, &id).await;
            }
        }
    }
}

/// Gives the agents in the background that an agent has started to the main one.
pub(in crate::peer::agent) async fn hand_over(ctx: &Context, agent: &str) {
    let changes = {
        let mut state = ctx.state();
        let tasks = state.tasks.iter_mut();
        let children = tasks.filter(|task| task.runs() && task.parent.as_deref() == Some(agent));
        children.map(|task| task.parent = None).count() > 0
    };
    if changes {
        send_list(ctx).await;
    }
}

/// Lets the agent that has started a task hear of its end.
pub(super) fn note(state: &mut AgentState, id: &str) {
    let parent = state
        .task(id)
        .and_then(|task| Some((task.parent.clone()?, task.tag)));
    state.notes.extend(parent);
}

/// The tags of the tasks that have ended, of which an agent hears with its next request; of the main one unless it is named.
pub(in crate::peer::agent) fn heard(ctx: &Context, agent: Option<&RunningSubagent>) -> Vec<u64> {
    let mut state = ctx.state();
    match agent {
        None => {
            let origins = std::mem::take(&mut state.wakes);
            state.unheard.extend(origins);
            state.hear()
        }
        Some(agent) => {
            let notes = state.notes.extract_if(.., |(id, _)| *id == agent.id);
            notes.filter_map(|(_, tag)| tag).collect()
        }
    }
}

/// Takes up an agent again that has reported, and of which a command has ended since. Says whether there was one.
pub(in crate::peer::agent) async fn take_up(ctx: &Context) -> bool {
    let (id, agent, report) = {
        let state = &mut *ctx.state();
        let notes = &state.notes;
        let is_noted = |task: &&mut Task| task.parked.is_some() && notes.iter().any(|(id, _)| *id == task.id);
        let Some(task) = state.tasks.iter_mut().find(is_noted) else {
            return false;
        };
        let (Some(report), Some((agent, _))) = (task.parked.take(), task.agent.clone()) else {
            return false;
        };
        (task.id.clone(), agent, report)
    };
    let tags = heard(ctx, Some(&agent));
    let (started, job) = subagent::take_up(ctx, &agent, *report, tags);
    if let Some(task) = ctx.state().task_mut(&id) {
        task.ended = None;
        task.run_id = agent.run_id();
    }
    watch_agent(ctx, &id, job);
    send_list(ctx).await;
    ctx.send_system("task_started", started).await;
    true
}
