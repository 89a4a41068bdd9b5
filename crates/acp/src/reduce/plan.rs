//! The plan: the list of `TodoWrite`, or the tasks of the task tools.

use std::collections::BTreeMap;

use outrigger::protocol::RawJson;
use outrigger::protocol::inbound::system::TaskListStatus;
use outrigger::protocol::tools::{Todo, TodoStatus, ToolInput, ToolOutput};

use super::step::Steps;
use crate::event::{Event, PlanEntry, PlanStatus};

/// How many tasks are kept.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct TaskPlan {
    tasks: BTreeMap<TaskId, Task>,
    reported: Vec<PlanEntry>,
}

/// The CLI's ids of tasks are numbers as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TaskId(u64, String);

#[derive(Debug, Clone)]
struct Task {
    subject: String,
    active: Option<String>,
    status: TodoStatus,
}

impl TaskId {
    fn new(id: &str) -> Self {
        Self(id.parse().unwrap_or(u64::MAX), id.to_owned())
    }
}

impl TaskPlan {
    /// The model replaces its list.
    pub(super) fn todos(&mut self, input: &RawJson, steps: &mut Steps) {
        if let ToolInput::TodoWrite(write) = ToolInput::read("TodoWrite", input) {
            let entries = write
                .todos
                .iter()
                .filter_map(|todo: &Todo| entry(&todo.content, Some(&todo.active_form), &todo.status));
            self.report(entries.take(MOST).collect(), steps);
        }
    }

    /// The result of a task tool.
    pub(super) fn tool_result(&mut self, tool: &str, input: &RawJson, output: &RawJson, steps: &mut Steps) {
        match (ToolInput::read(tool, input), ToolOutput::read(tool, output)) {
            (ToolInput::TaskCreate(input), ToolOutput::TaskCreate(output)) => {
                let task = Task {
                    subject: output.task.subject,
                    active: input.active_form,
                    status: TodoStatus::Pending,
                };
                self.put(TaskId::new(&output.task.id), task);
            }
            (ToolInput::TaskUpdate(input), ToolOutput::TaskUpdate(output)) if output.success => {
                let id = TaskId::new(&input.task_id);
                // A plan of one task without a name would replace the one that the editor shows.
                let Some(mut task) = self.tasks.get(&id).cloned() else {
                    return;
                };
                task.subject = input.subject.unwrap_or(task.subject);
                task.active = input.active_form.or(task.active);
                task.status = input.status.unwrap_or(task.status);
                self.put(id, task);
            }
            (_, ToolOutput::TaskList(output)) => {
                let mut before = std::mem::take(&mut self.tasks);
                for listed in output.tasks {
                    let id = TaskId::new(&listed.id);
                    let active = before.remove(&id).and_then(|task| task.active);
                    let task = Task {
                        subject: listed.subject,
                        active,
                        status: listed.status,
                    };
                    self.put(id, task);
                }
            }
            (_, ToolOutput::TaskGet(output)) => {
                let Some(got) = output.task else { return };
                let id = TaskId::new(&got.id);
                let active = self.tasks.get(&id).and_then(|task| task.active.clone());
                let task = Task {
                    subject: got.subject,
                    active,
                    status: got.status,
                };
                self.put(id, task);
            }
            _ => return,
        }
        self.tell_tasks(steps);
    }

    /// The CLI reports the status of tasks.
    pub(super) fn statuses(&mut self, statuses: &[TaskListStatus], steps: &mut Steps) {
        for listed in statuses {
            if let Some(task) = self.tasks.get_mut(&TaskId::new(&listed.id)) {
                task.status = TodoStatus::from(listed.status.as_str());
            }
        }
        self.tell_tasks(steps);
    }

    /// The conversation starts over.
    pub(super) fn clear(&mut self, steps: &mut Steps) {
        self.tasks.clear();
        self.report(Vec::new(), steps);
    }

    fn put(&mut self, id: TaskId, task: Task) {
        if task.status == TodoStatus::Deleted {
            self.tasks.remove(&id);
        } else if self.tasks.len() < MOST || self.tasks.contains_key(&id) {
            self.tasks.insert(id, task);
        }
    }

    fn tell_tasks(&mut self, steps: &mut Steps) {
        let tasks = self.tasks.values();
        let entries = tasks.filter_map(|task| entry(&task.subject, task.active.as_deref(), &task.status));
        self.report(entries.collect(), steps);
    }

    fn report(&mut self, entries: Vec<PlanEntry>, steps: &mut Steps) {
        if entries != self.reported {
            self.reported.clone_from(&entries);
            steps.event(Event::Plan(entries));
        }
    }
}

fn entry(content: &str, active: Option<&str>, status: &TodoStatus) -> Option<PlanEntry> {
    let active = active.filter(|active| !active.trim().is_empty());
    let (status, content) = match status {
        TodoStatus::InProgress => (PlanStatus::InProgress, active.unwrap_or(content)),
        TodoStatus::Completed => (PlanStatus::Completed, content),
        TodoStatus::Deleted => return None,
        _ => (PlanStatus::Pending, content),
    };
    Some(PlanEntry {
        content: content.to_owned(),
        status,
    })
}
